"""The posterior of instance weights: mode, Laplace approximation and NUTS."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import potential_energy, unconstrain_fn
from weighted_mixture import weighted_mixture

import bpa_ppl as bpa
from bpa_ppl.models.instance_weighting import (
    PhiPrior,
    Problem,
    Variant,
    fit,
    problem_of,
    variant_named,
)
from bpa_ppl.models.instance_weighting.mixture import (
    Phi,
    constrained,
    evaluate_mixture,
    log_likelihood,
    unconstrained,
)
from bpa_ppl.models.instance_weighting.posterior import laplace, mean_probabilities
from bpa_ppl.phrases import PhraseCounts
from bpa_ppl.posterior import as_draws

NAMES = ("one", "two")
PRIOR = PhiPrior(weight_deviation=1.0, alpha=(2.0, 1.5), scale_deviation=1.5)


@pytest.fixture(scope="module")
def problem() -> Problem:
    """A small problem with more than a hundred dev pairs."""
    rng = np.random.default_rng(8)

    def random_counts(pairs: int, first: int) -> PhraseCounts:
        source, target = rng.integers(first, first + 12, (2, pairs))
        texts = [f"s{n}" for n in source], [f"t{n}" for n in target]
        return PhraseCounts.of(*texts, rng.integers(1, 9, pairs))

    inside, outside, dev = random_counts(40, 2), random_counts(90, 0), random_counts(120, 0)
    features = rng.normal(size=(len(outside), 2)).astype(np.float32)
    return problem_of(inside, outside, dev, features, NAMES)


def unconstrained_sites(variant: Variant, problem: Problem, z: np.ndarray) -> dict[str, jax.Array]:
    """Return unconstrained values of φ as a dictionary of NumPyro sites."""
    phi = constrained(variant, z)
    sites = {"alpha" if variant.mixture == "linear" else "beta": phi.mixing, "weights": phi.weights}
    if variant.smoothed:
        sites["gamma"] = phi.gamma
    sites = jax.tree.map(jnp.asarray, sites)
    return unconstrain_fn(weighted_mixture, (problem, variant, PRIOR), {}, sites)


@pytest.mark.parametrize(("form", "mixture"), [("weighted", "linear"), ("gamma-0", "map")])
def test_density_and_mode_agree_with_numpyro_program(
    problem: Problem, form: str, mixture: str
) -> None:
    variant = variant_named(form, mixture)
    theirs = jax.jit(
        jax.value_and_grad(
            lambda z: -potential_energy(weighted_mixture, (problem, variant, PRIOR), {}, z)
        )
    )
    points = np.random.default_rng(1).normal(size=(3, variant.size(problem)))
    ours = [
        log_likelihood(problem, variant, z)[0] + PRIOR.log_density(variant, z)[0] for z in points
    ]
    result = [theirs(unconstrained_sites(variant, problem, z)) for z in points]
    assert np.diff(ours) == pytest.approx(np.diff([float(v) for v, _ in result]), rel=1e-9)
    mode = unconstrained(variant, fit(problem, variant, prior=PRIOR).phi)
    slope = theirs(unconstrained_sites(variant, problem, mode))[1]
    # The gradient of a sum over hundreds of pairs; it is large away from the mode.
    assert np.concatenate(list(map(np.atleast_1d, slope.values()))) == pytest.approx(0, abs=1e-3)
    assert all(max(np.abs(s).max() for s in slopes.values()) > 1 for _, slopes in result)


def test_sites_of_the_program(problem: Problem) -> None:
    variant = variant_named("weighted")
    seeded = handlers.seed(weighted_mixture, jax.random.key(0))
    trace = handlers.trace(seeded).get_trace(problem, variant, PRIOR)
    latent = {n for n, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
    assert latent == {"beta", "gamma", "weights"}
    assert trace["dev"]["fn"].log_factor.shape == problem.weight.shape


def test_laplace_agrees_with_quadrature(problem: Problem) -> None:
    variant = replace(variant_named("gamma-0", "linear"), features=("one",))
    result = as_draws(laplace(problem, variant, prior=PRIOR, draws=2000))
    ready = problem.only(("one",))
    points = np.array([[a, w] for a in np.linspace(-4, 4, 60) for w in np.linspace(-4, 4, 60)])
    logs = np.array(
        [log_likelihood(ready, variant, z)[0] + PRIOR.log_density(variant, z)[0] for z in points]
    )
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean, deviation = mass @ points[:, 1], np.sqrt(mass @ (points[:, 1] - mass @ points[:, 1]) ** 2)
    # 2000 draws with importance weights, at least 1000 effective draws.
    assert abs(result.mean[0] - mean) < 5 * deviation / np.sqrt(1000)
    assert result.deviation[0] == pytest.approx(deviation, rel=0.1)
    alpha = np.average(result.values["alpha"].ravel(), weights=result.importance)
    assert alpha == pytest.approx(mass @ (1 / (1 + np.exp(-points[:, 0]))), abs=0.01)
    assert bpa.check(result)


@pytest.mark.slow  # compiling NUTS takes most of the time
def test_laplace_agrees_with_nuts(problem: Problem) -> None:
    variant = variant_named("gamma-0", "linear")
    posterior = laplace(problem, variant, prior=PRIOR, draws=2000)
    assert bpa.check(posterior)
    assert posterior.attrs["pareto_k"] < 0.7
    ours = as_draws(posterior)
    with jax.enable_x64(True):
        kernel = NUTS(lambda: weighted_mixture(problem, variant, PRIOR), dense_mass=True)
        mcmc = MCMC(kernel, num_warmup=300, num_samples=600, progress_bar=False)
        mcmc.run(jax.random.key(0))
        sites = jax.device_get(mcmc.get_samples())
    # 600 draws, at least 200 effective draws.
    mean, deviation = sites["weights"].mean(axis=0), sites["weights"].std(axis=0)
    assert (np.abs(ours.mean - mean) < 5 * deviation / np.sqrt(200)).all()
    assert ours.deviation == pytest.approx(deviation, rel=0.25)
    alpha = np.average(ours.values["alpha"].ravel(), weights=ours.importance)
    assert alpha == pytest.approx(sites["alpha"].mean(), abs=0.05)


def test_mean_probabilities(problem: Problem) -> None:
    variant = variant_named("weighted")
    posterior = laplace(problem, variant, prior=PRIOR, draws=300)
    mean = mean_probabilities(posterior, problem, variant, draws=60)
    assert ((mean > 0) == problem.supported).all()
    at_mode = fit(problem, variant, prior=PRIOR).probabilities(problem)
    assert mean == pytest.approx(at_mode, abs=0.1)
    # The mean over a single draw equals the probabilities of this draw.
    draws = as_draws(posterior)
    one = replace(
        draws,
        values={name: values[:, :1] for name, values in draws.values.items()},
        kind="point",
        log_weight=None,
        log_density=None,
        log_likelihood={},
        log_prior={},
    )
    site = {name: values[0, 0] for name, values in draws.values.items()}
    phi = Phi(float(site["beta"]), float(site["gamma"]), site["weights"])
    expected = evaluate_mixture(problem, variant, phi).probability
    assert mean_probabilities(one, problem, variant, draws=3) == pytest.approx(expected)

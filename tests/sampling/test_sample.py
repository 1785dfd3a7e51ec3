"""Any NumPyro program: samplers against quadrature and closed forms, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from arviz_stats.base import array_stats
from numpyro.contrib.control_flow import scan
from numpyro.contrib.module import ParamShape
from numpyro.handlers import substitute
from scipy.stats import gamma, invgamma, lognorm, norm
from support.raising import raises
from support.registries import SAMPLERS
from support.targets import moments_of, starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import DataError, UsageError, as_draws
from bpa_ppl.extending import Sampled, Target

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
DATA = np.array([1.2, 0.4, 2.1, 1.7, 0.9])


def schools(count: int, error: Any, effect: Any = None) -> None:
    """The eight schools (Rubin 1981), with a normal scale in place of a half-Cauchy one."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfNormal(5.0))
    with numpyro.plate("school", count):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("effect", dist.Normal(theta, error), obs=effect)


def known_scale(y: Any) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def moments_of_schools() -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of mu and tau by quadrature: each effect is normal given both."""
    mu, tau = np.meshgrid(np.linspace(-25, 35, 401), np.linspace(0.01, 30, 400), indexing="ij")
    log_p = norm.logpdf(mu, 0, 5) + norm.logpdf(tau, 0, 5)
    for effect, error in zip(EFFECTS, ERRORS, strict=True):
        log_p += norm.logpdf(effect, mu, np.hypot(tau, error))
    p = np.exp(log_p - log_p.max()).ravel()
    return moments_of(np.stack([mu.ravel(), tau.ravel()], axis=1), p / p.sum())


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["auto", "rwm:draws=4000,thinning=60"])
def test_the_eight_schools_are_sampled_as_quadrature_says(sampler: str) -> None:
    data = bpa.sample(schools, (8, ERRORS), {"effect": EFFECTS}, sampler=sampler, seed=1)
    assert bpa.check(data), str(bpa.check(data))
    drawn = np.stack([data["posterior"][name].values.ravel() for name in ("mu", "tau")])
    mean, covariance = moments_of_schools()
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.12 * deviation.max())
    np.testing.assert_allclose(drawn.std(axis=1), deviation, rtol=0.1)
    assert data["posterior"]["theta"].dims == ("chain", "draw", "school")
    expected = data["posterior"]["mu"] + data["posterior"]["tau"] * data["posterior"]["z"]
    np.testing.assert_allclose(data["posterior"]["theta"], expected, rtol=1e-6)
    assert data["log_likelihood"]["effect"].shape[2:] == (8,)
    np.testing.assert_array_equal(data["observed_data"]["effect"], EFFECTS)
    assert (data.attrs["model"], data.attrs["seed"]) == ("schools", 1)


@pytest.mark.slow
def test_auto_says_why_it_takes_nuts() -> None:
    data = bpa.sample(schools, (8, ERRORS), {"effect": EFFECTS}, sampler="auto:draws=200")
    assert data.attrs["chosen"] == "nuts"
    assert re.search("Pareto k̂|earlier draws failed: imh", data.attrs["chosen_because"])
    statistics = data["sample_stats"]
    rates = {"acceptance_rate", "diverging", "energy", "lp", "n_steps", "step_size", "tree_depth"}
    assert {*statistics.data_vars} == rates
    depth = np.log2(statistics["n_steps"].values).astype(int) + 1  # as ArviZ computes it
    np.testing.assert_array_equal(statistics["tree_depth"], depth)
    assert (statistics["step_size"].values > 0).all()


def two_modes(y: float) -> None:
    """Its posterior has a mode near √y, and one near −√y."""
    root = numpyro.sample("root", dist.Normal(0.0, 10.0))
    numpyro.sample("y", dist.Normal(root**2, 1.0), obs=y)


@pytest.mark.slow
def test_several_modes_are_said_and_never_pass_in_silence() -> None:
    data = bpa.sample(two_modes, (25.0,), sampler="auto:draws=200")
    assert data.attrs["chosen"] == "nuts"
    # More draws of each mode would not help.
    assert data.attrs["chosen_because"] == "there are 2 modes"
    assert data.attrs["modes"] == 2
    advice = {one.advice.partition(": ")[2] for one in bpa.check(data).failures}
    assert all("several modes" in text for text in advice), advice
    drawn = data["posterior"]["root"].values
    assert (drawn > 4).any()
    assert (drawn < -4).any()
    assert not bpa.check(data)
    for sampler in ("rwm", "rwm-isotropic"):
        report = bpa.check(bpa.sample(two_modes, (25.0,), sampler=sampler))
        assert "R-hat" in {finding.name for finding in report.failures}
    with pytest.raises(DataError, match="there are 2 modes, and proposals around one miss"):
        bpa.sample(two_modes, (25.0,), sampler="imh")


@pytest.mark.parametrize(
    "sampler",
    [
        "imh",
        "laplace",
        "rwm",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("nuts", "numpyro:HMC")),
    ],
)
def test_a_normal_mean_has_its_closed_form(sampler: str) -> None:
    data = bpa.sample(known_scale, (DATA,), sampler=sampler, seed=2)
    variance = 1 / (len(DATA) + 1 / 4)
    weight = np.ones(1)
    if "log_weight" in data["sample_stats"]:
        weight = np.exp(data["sample_stats"]["log_weight"].values.ravel())
    draws = data["posterior"]["mean"].values.ravel()
    mean = np.average(draws, weights=np.broadcast_to(weight, draws.shape))
    assert mean == pytest.approx(variance * DATA.sum(), abs=0.15 * np.sqrt(variance))
    assert draws.std() == pytest.approx(np.sqrt(variance), rel=0.15)
    lp, z = data["sample_stats"]["lp"].values.ravel(), draws
    expected = norm.logpdf(z, 0, 2) + norm.logpdf(DATA[:, None], z, 1).sum(axis=0)
    np.testing.assert_allclose(lp, expected, atol=1e-4)


@pytest.mark.slow
def test_supports_are_those_of_the_sites() -> None:
    """A rate with its conjugate Gamma posterior, shares with their Dirichlet one, a variance."""
    counts, shares, data = np.array([3, 5, 2, 4]), np.array([9, 4, 2]), np.array([1.5, -0.7, 0.2])

    def program() -> None:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
        variance = numpyro.sample("variance", dist.InverseGamma(3.0, 2.0))
        with numpyro.plate("count", 4):
            numpyro.sample("n", dist.Poisson(rate), obs=counts)
        numpyro.sample("k", dist.Multinomial(probs=share, total_count=15), obs=shares)
        numpyro.sample("x", dist.Normal(0.0, jnp.sqrt(variance)).expand([3]).to_event(1), obs=data)

    found = bpa.sample(program, sampler="nuts", seed=3)["posterior"]
    rate, variance = gamma(16, scale=1 / 5), invgamma(4.5, scale=2 + (data**2).sum() / 2)
    for name, known in (("rate", rate), ("variance", variance)):
        assert float(found[name].mean()) == pytest.approx(known.mean(), abs=0.1 * known.std())
    np.testing.assert_allclose(found["share"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(
        found["share"].mean(axis=(0, 1)), (shares + 1) / 18, atol=0.1 * np.sqrt(1 / 18)
    )


@pytest.mark.slow
def test_a_program_may_read_its_arguments_and_observe_nothing() -> None:
    """Sizes of plates come from values of arrays; the posterior without data is the prior."""

    def grouped(group: Any, y: Any = None) -> None:
        with numpyro.plate("group", len(np.unique(group))):
            mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        if y is not None:
            numpyro.sample("y", dist.Normal(mean[group], 1.0), obs=y)

    group = np.array([0, 0, 1, 1, 2])
    assert bpa.sample(grouped, (group, DATA), sampler="map")["posterior"]["mean"].shape == (1, 1, 3)
    prior = bpa.sample(grouped, (group,), sampler="imh", seed=4)["posterior"]["mean"].values
    assert abs(prior.mean()) < 0.05
    assert prior.std() == pytest.approx(1.0, rel=0.05)


@pytest.mark.slow
def test_a_program_that_numpyro_has_run_in_float32_is_sampled_in_float64() -> None:
    """JAX remembers the type of arrays: without copies, the first gradient fails."""
    script = """
import sys
import jax
from numpyro.infer import MCMC, NUTS
from support.posteriors import arviz_version
from sampling.test_sample import EFFECTS, ERRORS, bpa, schools

mcmc = MCMC(NUTS(schools), num_warmup=5, num_samples=5, progress_bar=False)
mcmc.run(jax.random.key(0), 8, ERRORS, effect=EFFECTS)
loaded = []
progress = lambda *_: loaded.append("arviz" in sys.modules)
data = bpa.sample(schools, (8, ERRORS), {"effect": EFFECTS}, sampler="map", progress=progress)
assert data["posterior"]["mu"].dtype == "float64"
assert loaded and all(loaded) or arviz_version() > 0  # Ctrl-C while it is imported would break it
"""
    folder = Path(__file__).resolve().parents[1]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=folder)


def test_log_likelihoods_are_kept_up_to_a_limit_or_on_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = partial(bpa.sample, known_scale, (DATA,), sampler="map")
    monkeypatch.setattr("bpa_ppl.sampling.sample.MOST_KEPT", 4)
    with caplog.at_level("INFO", "bpa_ppl"), starting_at_zero():
        posteriors = {
            choice: as_draws(run(log_likelihood=choice)) for choice in (None, False, True)
        }
    assert caplog.text.count("the log likelihoods of 5 observations are not kept") == 1
    assert {choice: [*of.log_likelihood] for choice, of in posteriors.items()} == {
        None: [],
        False: [],
        True: ["y"],
    }
    assert posteriors[True].log_likelihood["y"].shape == (1, 1, 5)
    for draws in posteriors.values():
        np.testing.assert_allclose(draws.log_density, posteriors[True].log_density)


@pytest.mark.slow
def test_a_site_may_be_called_weights_or_feature() -> None:
    """Only weights of lists have features, and only they have a dimension of that name."""

    def program() -> None:
        numpyro.sample("weights", dist.Normal(jnp.zeros((2, 3)), 1.0).to_event(2))
        numpyro.sample("feature", dist.Normal(0.0, 1.0))

    data = bpa.sample(program, sampler="imh")
    assert data["posterior"]["weights"].shape == (4, 1000, 2, 3)
    assert {"feature", "other_feature"}.isdisjoint(data["posterior"].dims)
    report = bpa.check(data)
    assert report
    assert as_draws(data).main == ()
    assert {one.where for one in report.rows} <= {
        *(f"weights[{i}, {j}]" for i in range(2) for j in range(3)),
        *(f"chain {c}" for c in range(4)),
        "feature",
    }
    with raises(DataError, "no-data", match="no weights of features: adapt to lists"):
        bpa.Reranker(data)
    again = bpa.sample(program, sampler="imh", seed=1)
    assert bpa.compare(again, data)["a"].verdict == "agrees"


def discrete() -> None:
    numpyro.sample("kind", dist.Bernoulli(0.3))


def improper() -> None:
    level = numpyro.sample("level", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.sample("y", dist.Normal(level, 1.0), obs=1.0)


def constant() -> None:
    numpyro.sample("level", dist.Delta(1.0))


def untraceable(y: Any) -> None:
    if numpyro.sample("mean", dist.Normal(0.0, 1.0)) > 0:
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


def undefined() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.factor("odd", jnp.log(-jnp.exp(mean)))


FLOATS = jnp.arange(3, dtype=jnp.float32)


def with_floats(y: Any) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    _, mean = jax.lax.scan(lambda x, of: (x * slope + of, x), FLOATS[0], FLOATS)
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def draw() -> None:
    numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("draw", dist.Normal(0.0, 1.0), obs=1.0)


def dimension() -> None:
    numpyro.sample("mean", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    numpyro.deterministic("mean_dim_0", jnp.ones(()))


def empty() -> None:
    numpyro.sample("mean", dist.Normal(jnp.zeros(0), 1.0).to_event(1))


def nothing() -> None:
    numpyro.sample("y", dist.Normal(0.0, 1.0), obs=1.0)


def unbounded() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.5, 1.0))
    numpyro.factor("odd", jnp.where(mean < 0, jnp.inf, 0.0))


def far_unbounded() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1000.0))
    numpyro.factor("odd", jnp.where(mean < -50, jnp.inf, 0.0))


def censored(times: Any, limit: float, end: int) -> None:
    """Waiting times; `end` of them are longer than a limit."""
    shape = numpyro.sample("shape", dist.LogNormal(0.0, 1.0))
    numpyro.sample("times", dist.Gamma(shape, 1.0).expand([len(times)]).to_event(1), obs=times)
    numpyro.factor("longer", end * jnp.log(jsp.gammaincc(shape, limit)))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["rwm", "nuts", "auto"])
def test_a_program_without_a_second_derivative_is_sampled(sampler: str) -> None:
    """JAX has no rule for that of `gammaincc` by the shape."""
    times, grid = np.array([0.4, 0.9, 1.3, 0.7]), np.linspace(1e-3, 15, 3001)[:, None]
    log_p = lognorm(1.0).logpdf(grid[:, 0]) + gamma(grid).logpdf(times).sum(axis=1)
    log_p += 3 * gamma(grid[:, 0]).logsf(1.5)
    p = np.exp(log_p - log_p.max())
    mean, covariance = moments_of(grid, p / p.sum())
    shape = bpa.sample(censored, (times, 1.5, 3), sampler=sampler)["posterior"]["shape"].values
    error = np.sqrt(
        covariance[0, 0] / array_stats.ess(shape, method="mean", chain_axis=0, draw_axis=1)
    )
    assert shape.mean() == pytest.approx(mean[0], abs=5 * error)


CALLS = iter(range(1000))


def counting(y: Any) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, 1.0 + 0.1 * next(CALLS)), obs=y)


def noisy(y: Any) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=y + np.random.normal(size=3))


@pytest.mark.parametrize(
    ("program", "args", "message"),
    [
        (unbounded, (), r"the log density of the model unbounded is \+inf for some values"),
        (far_unbounded, (), r"the log density of the model far_unbounded is \+inf for some values"),
        (counting, (1.0,), r"the model counting is another one at each call \(.* -.*, then -"),
        (noisy, (1.0,), "the model noisy is another one at each call"),
    ],
)
def test_a_value_that_is_no_log_density_is_refused(program: Any, args: Any, message: str) -> None:
    with starting_at_zero(), pytest.raises(UsageError, match=message):
        bpa.sample(program, args)


def network(prior: Any) -> None:
    parameters = numpyro.param("nn$params")
    if parameters is None:
        parameters = {"bias": jnp.zeros(()), "kernel": jax.random.normal(jax.random.key(0))}
        numpyro.param("nn$params", parameters)
    drawn = dict(parameters)
    with numpyro.handlers.scope(prefix="nn"):
        for name, value in parameters.items():
            of_name = prior.get(name) if isinstance(prior, dict) else prior
            if of_name is not None:  # as `random_flax_module` does
                parameters[name] = ParamShape(value.shape)
                drawn[name] = numpyro.sample(name, of_name.expand(value.shape).to_event())
    numpyro.sample("y", dist.Normal(drawn["bias"] + drawn["kernel"] * DATA**2, 1.0), obs=DATA)


def direction() -> None:
    numpyro.sample("direction", dist.ProjectedNormal(jnp.ones(2)))


def without_gradient(y: Any) -> None:
    a = numpyro.sample("a", dist.LogNormal(0.0, 1.0))
    numpyro.factor("y", jnp.log(jsp.betainc(a, 1.0, y)).sum())


@pytest.mark.parametrize(
    ("program", "args", "message"),
    [
        (discrete, (), "the site kind of the model is discrete"),
        (constant, (), "the site level of the model is constant, so that it has no density"),
        (untraceable, (DATA,), "the model untraceable failed with TracerBool"),
        (undefined, (), "the site odd of the model is not a number where samplers start"),
        (nothing, (), "the model nothing has no latent site"),
        (draw, (), "the site draw of the model has the name of a dimension of all draws"),
        (dimension, (), "the site mean_dim_0 of the model has the name of a dimension of the site"),
        (empty, (), "the site mean of the model has no values"),
        (known_scale, (jnp.array([1.0, jnp.nan]),), "the site y .* cannot take, such as nan"),
        (known_scale, (), "the model known_scale failed with TypeError"),
        (known_scale, DATA, "are a tuple, even of one"),
        (known_scale, (iter(DATA),), "the argument y is an iterator .*: give a list or an array"),
        (with_floats, (DATA[:3],), "has type float32.* float64.*make them NumPy arrays.*look at"),
        (lru_cache(known_scale), (2.0,), "calls numpyro.sample at its first run only"),
        (substitute(known_scale, {"mean": 1.0}), (DATA,), "condition in place of substitute"),
        (without_gradient, (DATA / 9,), "a gradient, .*: define one by jax.custom_jvp"),
        (3, (), "a model is a function"),
        (network, ({"kernel": dist.Normal(0.0, 1.0)},), r"the site nn\$params .*, with a prior of"),
        (direction, (), r"the support Sphere.*numpyro.infer.reparam, such as ProjectedNormalRep"),
    ],
)
def test_what_cannot_be_sampled_is_refused(program: Any, args: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bpa.sample(program, args)


def test_a_network_is_sampled_if_priors_replace_all_of_its_arrays() -> None:
    """As those of `random_flax_module`, which is a linear regression here."""
    drawn = bpa.as_draws(bpa.sample(network, (dist.Normal(0.0, 1.0),), sampler="laplace:draws=9"))
    bias, kernel = (drawn.values[f"nn.{name}"].reshape(9, 1) for name in ("bias", "kernel"))
    expected = norm.logpdf(bias + kernel * DATA**2, DATA).sum(axis=1)
    expected += (norm.logpdf(bias) + norm.logpdf(kernel))[:, 0]
    np.testing.assert_allclose(drawn.log_density[0], expected, rtol=1e-6)


def test_a_scan_may_start_with_types_of_32_bits() -> None:
    """NumPyro's own examples begin with such a carry; an autoregression has a closed form."""

    def program(y: Any) -> None:
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))

        def step(carry: Any, of: Any) -> Any:
            numpyro.sample("y", dist.Normal(slope * carry, 1.0), obs=of)
            return of, None

        scan(step, jnp.zeros((), dtype=jnp.float32), y)

    drawn = bpa.as_draws(bpa.sample(program, (DATA,), sampler="laplace:draws=9"))
    slope, before = drawn.values["slope"].reshape(9, 1), np.append(0.0, DATA[:-1])
    expected = norm.logpdf(slope)[:, 0] + norm.logpdf(DATA, slope * before).sum(axis=1)
    np.testing.assert_allclose(drawn.log_density[0], expected, rtol=1e-6)


def test_slashes_in_names_become_dots(caplog: pytest.LogCaptureFixture) -> None:
    """ArviZ data cannot have them, and `numpyro.handlers.scope` adds them."""

    def scoped(y: Any) -> None:
        with numpyro.handlers.scope(prefix="prior"):
            mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        numpyro.deterministic("half/mean", mean / 2)
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    with starting_at_zero(), caplog.at_level("INFO", "bpa_ppl"):
        posterior = bpa.sample(scoped, (DATA,), sampler="imh")["posterior"]
    assert set(posterior.data_vars) == {"prior.mean", "half.mean"}
    assert "the site prior/mean is called prior.mean" in caplog.text


def test_samplers_of_weights_need_lists() -> None:
    with pytest.raises(UsageError, match="heuristic needs canonical weights"):
        bpa.sample(known_scale, (DATA,), sampler="heuristic")


class Shifted(SAMPLERS["imh"], frozen=True):  # type: ignore[misc]
    """A sampler whose draws are half a standard deviation too large."""

    def sample(self, target: Target, seed: int, progress: Any) -> Sampled:
        sampled = super().sample(target, seed, progress)
        sampled.z["mean"] = np.asarray(sampled.z["mean"]) + 0.25
        return sampled


@pytest.fixture
def shifted(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(SAMPLERS.registered, "shifted", Shifted)
    return "shifted"


@pytest.mark.slow
def test_samplers_are_compared_and_failures_are_rows(shifted: str, tmp_path: Any) -> None:
    options: dict[str, Any] = {"runs": 2, "reference": "imh", "reference_draws": 4000}
    names = ["imh", shifted, "heuristic"]
    found = bpa.compare_samplers(known_scale, (DATA,), samplers=names, **options)
    assert [one.verdict for one in found.samplers] == ["agrees", "DIFFERS", "failed"]
    assert "needs canonical weights" in found["heuristic"].reason
    assert "imh" in str(found)
    reference = bpa.sample(known_scale, (DATA,), sampler="imh:draws=4000", seed=9)
    bpa.write_posterior(reference, tmp_path / "reference.nc")
    for known in (reference, str(tmp_path / "reference.nc")):
        again = bpa.compare_samplers(known_scale, (DATA,), samplers=["imh"], reference=known)
        assert again["imh"].verdict == "agrees"
    density = bpa.log_density(
        bpa.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"]), {"LM0": 0.5}
    )
    assert bpa.compare_samplers(density, samplers=["laplace"], **options)["laplace"].verdict
    with pytest.raises(UsageError, match="has its data already"):
        bpa.compare_samplers(density, (DATA,), samplers=["imh"])
    with pytest.raises(UsageError, match=r"samplers are a list, .* samplers=\['imh'\]"):
        bpa.compare_samplers(known_scale, (DATA,), samplers="imh")


@pytest.mark.slow
def test_calibration_of_any_model_finds_a_wrong_sampler(shifted: str) -> None:
    samplers = ["imh:draws=200", f"{shifted}:draws=200"]
    right, wrong = bpa.calibrate(known_scale, (DATA,), samplers=samplers, replications=100)
    assert right.names == ("mean", "log likelihood")
    assert right, str(right)
    assert not wrong


@pytest.mark.slow
def test_data_of_plates_and_several_sites_are_simulated() -> None:
    (found,) = bpa.calibrate(
        schools, (8, ERRORS), {"effect": EFFECTS}, samplers=["imh:draws=100"], replications=20
    )
    assert found.names[:3] == ("mu", "tau", "z[0]")
    assert found.ranks.shape == (20, 11)


def scaled() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.handlers.scale(scale=2.0):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=1.0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (scaled, "the density of the site y of scaled is scaled"),
        (lambda: numpyro.sample("mean", dist.Normal(0.0, 1.0)), "observes nothing"),
        (improper, "the prior of the site level of improper has no draws"),
        (undefined, "not a number"),
    ],
)
def test_what_cannot_be_simulated_is_refused(program: Callable[[], Any], message: str) -> None:
    with pytest.raises((UsageError, DataError), match=message):
        bpa.calibrate(program, samplers=["imh"])


def test_the_stages_and_the_size_of_a_large_program_are_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def three(y: np.ndarray) -> None:
        values = numpyro.sample("values", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(values, 1.0).to_event(1), obs=y)

    monkeypatch.setattr("bpa_ppl.sampling.run_sampler._MANY_VALUES", 3)
    steps: list[tuple[int, int, str]] = []
    for progress in (False, lambda *step: steps.append(step)):
        caplog.clear()
        with caplog.at_level("INFO", "bpa_ppl"):
            bpa.sample(three, (np.zeros(3),), sampler="nuts:draws=100", progress=progress)
        assert caplog.text.count("3 values") == bool(progress)
    stages = list(dict.fromkeys(note.partition(",")[0] for _, _, note in steps))
    assert stages[0] == "mode and starts"
    assert stages[-3:] == ["warm-up", "draws", "diagnostics"]
    assert all(0 <= done <= total for done, total, _ in steps)

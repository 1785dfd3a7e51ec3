"""Posteriors with known moments: lists of two are logistic regression, integrated on a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.special import log_expit, logsumexp
from scipy.stats import norm

from bpa_ppl import Isotropic, NBest, Prior, adapt, calibrate, log_density
from bpa_ppl.adapting import weights_target
from bpa_ppl.adapting.common_scale import transform_for
from bpa_ppl.adapting.simulation import make_density_simulation
from bpa_ppl.densities import model_target
from bpa_ppl.densities.mode import find_mode, start_at_medians
from bpa_ppl.densities.newton import Mode
from bpa_ppl.densities.target import Target as Density
from bpa_ppl.densities.target import evaluate as evaluate
from bpa_ppl.extending import Sampled, Sampler
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.priors.scale import LogNormalScale
from bpa_ppl.samplers.sampler import SAMPLERS
from bpa_ppl.sampling.run_sampler import run_sampler as run_sampler
from support.known_targets import target
from support.reference_model import Array, given, pairs

SENTENCES = 12
#: Of each chain of the posteriors that the tests of samplers share.
DRAWS = 2000
#: Samplers that need no optional package.
OWN = [name for name in SAMPLERS if not SAMPLERS[name].packages]
#: Samplers whose draws have the posterior as their distribution; `auto` selects one of them.
EXACT = [n for n in OWN if SAMPLERS[n].exact and n not in ("auto", "numpyro")]
#: Settings by sampler: the published step, 0.01, needs many more draws in these wide targets.
STEPS: dict[str, dict[str, Any]] = {"rwm-isotropic": {"proposal_variance": 2.0}}
#: Kernels of `numpyro`; NUTS has a name of its own.
STEPS |= {"numpyro:ESS": {}, "numpyro:HMC": {"trajectory_length": 1.5}}
KERNELS = [n for n in STEPS if n.startswith("numpyro:")]
NAMES = ("LM0", "WP0")


def calibrate_density(density: Any, **options: Any) -> Any:
    """Calibrate samplers on oracles or answers that are simulated from a density of lists."""
    return calibrate(make_density_simulation(density), **options)


def with_common_scale(prior: Prior, deviation: float, shared: npt.ArrayLike) -> Prior:
    """Return a prior whose shared weights have a common log-normal scale."""
    return prior._replace(scale=LogNormalScale(np.asarray(deviation), np.asarray(shared)))


def draw_in_span(sampler: Sampler, target: Density) -> Sampled:
    """Return draws in the coordinates that suit the sampler, as `adapt` does."""
    chosen = transform_for(sampler, target)
    return chosen.restore(sampler.sample(chosen, 0, lambda *_: None), 0)


def program_target(model: Callable[..., Any], *args: Any) -> Density:
    """Return the density of a NumPyro program, as `sample` gives it to its samplers."""
    return model_target.make_model_target(model, args)


def laplace(target: Density) -> Mode:
    """Return the mode of a density, with the covariance there."""
    with jax.enable_x64(True):
        return find_mode(target)


def log_likelihoods(target: Density, z: Mapping[str, npt.ArrayLike]) -> Array:
    """Return that of each observation of lists, at one unconstrained value of each site."""
    _, result = evaluate(target, {n: np.asarray(x)[None, None] for n, x in z.items()})
    return np.asarray(result["oracle"][0, 0])


def standard_mode(size: int) -> Mode:
    """Return the mode of a standard normal density."""
    return Mode(np.zeros(size), 0.0, np.eye(size), 0.0, 1, True)


def by_domain(lists: Any, prior: Any, likelihood: Any) -> None:
    """λ_d = μ + τ z_d of two domains; the weights of the first one are adapted."""
    base = prior.distribution()
    shared = numpyro.sample("shared", base)
    scale = numpyro.sample("scale", dist.HalfNormal(base.variance**0.5).to_event(1))
    standard = dist.Normal(0.0, 1.0).expand((2, *base.event_shape)).to_event(2)
    weights = shared[None] + scale[None] * numpyro.sample("own", standard)
    numpyro.deterministic("weights", weights[0])
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, weights)


class Target(NamedTuple):
    """An adaptation problem with first candidates as oracles, and its posterior moments."""

    pool: NBest
    canonical: dict[str, float]
    variance: float
    mean: Array
    covariance: Array
    skewness: Array

    def density(self, **options: Any) -> Density:
        """Return its log density."""
        oracle = given(*[0] * SENTENCES)
        fixed = {"likelihood": "oracle", "prior": Isotropic(variance=self.variance), "gain": oracle}
        return log_density(self.pool, self.canonical, **{**fixed, **options})

    @property
    def rows(self) -> Array:
        """The differences h(other) − h(oracle), one row per sentence."""
        return np.asarray(self.pool.features[1::2] - self.pool.features[::2], np.float64)

    def check_density(self, draws: Any) -> None:
        """Assert that the recorded log density is the log posterior, up to a constant."""
        centre = np.array(list(self.canonical.values()))
        log_prior = -0.5 * ((draws.weights - centre) ** 2).sum(axis=-1) / self.variance
        constant = draws.draws.log_density - draws.pointwise.sum(axis=-1) - log_prior
        np.testing.assert_allclose(constant, constant.mean(), atol=1e-4)

    def adapt(self, sampler: str, settings: dict[str, Any] | None = None, **options: Any) -> Any:
        """Return its posterior by a sampler with some settings."""
        fixed = {"prior": Isotropic(variance=self.variance), "gain": given(*[0] * SENTENCES)}
        engine = SAMPLERS.resolve(sampler, {**STEPS.get(sampler, {}), **(settings or {})})
        return adapt(self.pool, self.canonical, sampler=engine, **{**fixed, **options})


@contextmanager
def starting_at_zero() -> Iterator[None]:
    """Let densities start at 0: the search for a start compiles more than the density itself."""

    def zeros(density: Density, seed: int = 0) -> Any:
        start = jax.eval_shape(start_at_medians, density, {})
        return {name: np.zeros(value.shape) for name, value in start.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights_target, "find_start", zeros)
        patch.setattr(model_target, "_find_start", zeros)
        patch.setattr(Preference, "log_concave_start", lambda likelihood: None)
        yield


def logistic(differences: npt.ArrayLike, variance: float, width: float) -> Target:
    """Return a target from rows h(other) − h(oracle), one per sentence, integrated over ±width."""
    rows = np.asarray(differences, np.float32).astype(np.float64)
    names = NAMES[: rows.shape[1]]
    canonical = dict(zip(names, (0.3, -0.2), strict=False))
    prior_mean = np.array(list(canonical.values()))

    def log_density(weights: Array) -> Array:
        log_prior = norm.logpdf(weights, prior_mean, np.sqrt(variance)).sum(axis=1)
        return np.asarray(log_expit(-weights @ rows.T).sum(axis=1) + log_prior)

    # A third of these grid points would already give ten correct digits.
    grid, p = integrated(log_density, prior_mean, width, 601 if len(names) == 1 else 201)
    mean, covariance = moments_of(grid, p)
    skewness = (p @ (grid - mean) ** 3) / np.diag(covariance) ** 1.5
    return Target(pairs(rows, names), canonical, variance, mean, covariance, skewness)


def integrated(
    log_density: Callable[[Array], Array], centre: npt.ArrayLike, width: float, points: int = 601
) -> tuple[Array, Array]:
    """Return a grid with `points` per dimension around `centre` (n, d), and its probabilities."""
    axes = [np.linspace(c - width, c + width, points) for c in np.atleast_1d(centre)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    log_p = log_density(grid)
    return grid, np.exp(log_p - logsumexp(log_p))


def moments_of(grid: Array, p: Array) -> tuple[Array, Array]:
    """Return mean and covariance of points (n, d) with probabilities."""
    mean = p @ grid
    return mean, (grid - mean).T @ ((grid - mean) * p[:, None])


@cache
def balanced() -> Target:
    """Return a target of one weight with a nearly symmetric posterior."""
    return logistic(np.random.default_rng(1).normal(size=(SENTENCES, 1)), 1.0, 6.0)


@cache
def skewed() -> Target:
    """Return a target of one weight with an asymmetric posterior."""
    return logistic(rows_of("skewed"), 4.0, 16.0)


@cache
def plane() -> Target:
    """Return a target of two weights with a correlated, skewed posterior."""
    return logistic(rows_of("two-candidates"), 2.0, 9.0)


def rows_of(name: str) -> Array:
    """Return the feature differences of a target of the package with lists of two."""
    return target(name).lists.features[1::2].astype(np.float64)


TARGETS = {"balanced": balanced, "skewed": skewed, "plane": plane}


#: The eight schools (Rubin 1981): effects and their standard errors.
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def centred_schools() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, ERRORS), obs=EFFECTS)

"""What `compare` says of samplers, correct ones and broken ones, on 17 posteriors of posteriordb.

    python benchmarks/bench_posteriordb.py [--tables verdicts jacobians] [--only arK-arK]
        [--samplers "NumPyro NUTS"] [--reasons]

Each sampler draws four chains, which are compared with the reference draws. Those of this package
are called `bpa`: `nuts` has the settings of the other NUTS samplers, the others have their defaults
and as many draws. A sampler that raises an error has `failed`, with its message. Samplers of
packages that are not installed (BlackJAX, nutpie) are left out. Hamiltonian Monte Carlo of fixed
length, with the inverse Hessian of the mode as metric, is a control: the broken samplers are this
one with

* every proposal accepted, at a step that is too large,
* the log determinant of the Jacobian of constrained parameters left out,
* chains that start 5 standard deviations away, take small steps, and keep all draws,
* momenta with 1.25 times the standard deviation that the acceptance step assumes.

The programs are written from the mathematical models. Latent sites have the names and shapes of the
parameters of posteriordb's Stan programs, and deterministic sites those of transformed parameters
that have reference draws. Data sets and reference draws (Magnusson et al. 2024) are in
`../shared/data/posteriordb`. Parameters without a prior in the Stan programs have a flat one, which
is improper: `beta` of the kidiq, earnings, mesquite and nes posteriors, `sigma` of the last three
and of kilpisjarvi, `mu` and `alpha0` of garch11. All others are proper; ordered parameters have a
flat prior on their support, and a factor with their own. Values are in float64, because the
Cholesky decomposition of gp_pois_regr has a jitter of 1e-10.

`jacobians` has the errors that a missing Jacobian makes: with many observations they are much
smaller than the 0.1 standard deviations that a sampler that agrees may be off. The exit status is 1
if a correct sampler differs, or a broken one agrees whose error is larger than that.

Seconds are those of warm-up and draws. Those of `bpa` are of a second run, and include the search
for the mode and pilot samples. In brackets are those of everything, with compilation and the first
run. Evaluations are those from one kept draw to the next, with the gradient for NUTS and HMC, and
without it for `imh` and `rwm`. Compiled programs are stored in `build/compiled`.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias
from zipfile import ZipFile

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import numpyro
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from measuring import DATA, Table, run_tables
from numpyro.distributions import constraints
from numpyro.distributions.transforms import ExpTransform, OrderedTransform, Transform
from numpyro.infer import NUTS, init_to_uniform
from numpyro.infer.util import constrain_fn, initialize_model, log_density, potential_energy
from scipy.optimize import minimize

from bpa_ppl import compare
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.errors import BpaError
from bpa_ppl.posterior.arviz_functions import InferenceData, to_arviz_data, to_datasets
from bpa_ppl.posterior.groups import label_groups
from bpa_ppl.sampling.finish import draw_posterior

FOLDER = DATA / "posteriordb"
#: K of arK, which the shape of its parameters depends on.
ORDER = 5
#: Steps of the ODE between two observations of hudson_lynx_hare, which are a year apart.
ODE_STEPS = 10
_CELL = re.compile(r"(.+)\[(\d+)\]")
Array: TypeAlias = jax.Array | npt.NDArray[Any]


def flat(*transforms: Transform, shape: tuple[int, ...] = ()) -> dist.Distribution:
    """Return the flat prior on the image of transforms, one after the other.

    It has no density, but draws values, which samplers start from: those of a normal distribution.
    """
    prior = dist.Normal(0, 1).expand(shape).to_event(len(shape))
    if transforms:
        prior = dist.TransformedDistribution(prior, list(transforms))
    return prior.mask(False)


def observe_regression(columns: Sequence[Array], y: Array, beta: Array, sigma: Array) -> None:
    """Observe y ~ N(β₁ + β₂ x₁ + β₃ x₂ + …, σ²)."""
    design = jnp.stack([jnp.ones_like(y), *columns], axis=1)
    numpyro.sample("y", dist.Normal(design @ beta, sigma), obs=y)


def observe_flat_regression(columns: Sequence[Array], y: Array) -> None:
    """Observe a regression with flat priors of β and of σ > 0."""
    beta = numpyro.sample("beta", flat(shape=(len(columns) + 1,)))
    sigma = numpyro.sample("sigma", flat(ExpTransform()))
    observe_regression(columns, y, beta, sigma)


def observe_kid_scores(columns: Sequence[Array], kid_score: Array) -> None:
    """Observe a regression with a flat prior of β and a half-Cauchy prior of σ."""
    beta = numpyro.sample("beta", flat(shape=(len(columns) + 1,)))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    observe_regression(columns, kid_score, beta, sigma)


def kidscore_interaction(kid_score: Array, mom_iq: Array, mom_hs: Array) -> None:
    """Regress test scores of children on school and IQ of their mothers, with an interaction."""
    observe_kid_scores([mom_hs, mom_iq, mom_hs * mom_iq], kid_score)


def kidscore_momiq(kid_score: Array, mom_iq: Array) -> None:
    """Regress test scores of children on the IQ of their mothers."""
    observe_kid_scores([mom_iq], kid_score)


def logearn_interaction(earn: Array, height: Array, male: Array) -> None:
    """Regress log earnings on height and sex, with an interaction."""
    observe_flat_regression([height, male, height * male], jnp.log(earn))


def logmesquite(
    weight: Array,
    diam1: Array,
    diam2: Array,
    canopy_height: Array,
    total_height: Array,
    density: Array,
    group: Array,
) -> None:
    """Regress the log weight of mesquite bushes on the logarithms of their sizes."""
    sizes = diam1, diam2, canopy_height, total_height, density
    observe_flat_regression([*map(jnp.log, sizes), group], jnp.log(weight))


def nes(
    partyid7: Array,
    real_ideo: Array,
    race_adj: Array,
    educ1: Array,
    gender: Array,
    income: Array,
    age_discrete: Array,
) -> None:
    """Regress party identification on ideology and demography."""
    ages = [1.0 * (age_discrete == group) for group in (2, 3, 4)]
    observe_flat_regression([real_ideo, race_adj, *ages, educ1, gender, income], partyid7)


def kilpisjarvi(
    x: Array, y: Array, pmualpha: float, psalpha: float, pmubeta: float, psbeta: float
) -> None:
    """Regress summer temperatures at Kilpisjärvi on the year, with informative priors."""
    alpha = numpyro.sample("alpha", dist.Normal(pmualpha, psalpha))
    beta = numpyro.sample("beta", dist.Normal(pmubeta, psbeta))
    sigma = numpyro.sample("sigma", flat(ExpTransform()))
    numpyro.sample("y", dist.Normal(alpha + beta * x, sigma), obs=y)


def blr(X: Array, y: Array) -> None:  # noqa: N803
    """Regress without an intercept, with proper priors."""
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([X.shape[1]]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(10))
    numpyro.sample("y", dist.Normal(X @ beta, sigma), obs=y)


def autoregression(y: Array) -> None:
    """AR(5), given the first values."""
    alpha = numpyro.sample("alpha", dist.Normal(0, 10))
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([ORDER]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    lags = jnp.stack([y[ORDER - k : len(y) - k] for k in range(1, ORDER + 1)], axis=1)
    numpyro.sample("y", dist.Normal(alpha + lags @ beta, sigma), obs=y[ORDER:])


def arma(y: Array) -> None:
    """ARMA(1, 1), in which the error and the deviation from the mean are 0 before the first value.

    The errors follow e_t = y_t − μ − φ y_{t−1} − θ e_{t−1}.
    """
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    phi = numpyro.sample("phi", dist.Normal(0, 2))
    theta = numpyro.sample("theta", dist.Normal(0, 2))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    without_error = y - mu - phi * jnp.concatenate([mu[None], y[:-1]])

    def step(error: jax.Array, rest: jax.Array) -> tuple[jax.Array, jax.Array]:
        error = rest - theta * error
        return error, error

    _, errors = jax.lax.scan(step, jnp.zeros_like(mu), without_error)
    numpyro.sample("y", dist.Normal(y - errors, sigma), obs=y)


def garch(y: Array, sigma1: float) -> None:
    """GARCH(1, 1), σ_t² = α₀ + α₁ (y_{t−1} − μ)² + β₁ σ_{t−1}².

    (α₁, β₁) is uniform on the triangle α₁ + β₁ < 1, as the product of a marginal distribution and a
    conditional one.
    """
    mu = numpyro.sample("mu", flat())
    alpha0 = numpyro.sample("alpha0", flat(ExpTransform()))
    alpha1 = numpyro.sample("alpha1", dist.Beta(1, 2))
    # ImproperUniform on this interval has the same density, but NumPyro 0.22 then constrains draws
    # with the bound of the initial value of alpha1.
    beta1 = numpyro.sample("beta1", dist.Uniform(0, 1 - alpha1))
    shocks = alpha0 + alpha1 * (y[:-1] - mu) ** 2

    def step(variance: jax.Array, shock: jax.Array) -> tuple[jax.Array, jax.Array]:
        variance = shock + beta1 * variance
        return variance, variance

    first = jnp.full_like(mu, sigma1**2)
    _, later = jax.lax.scan(step, first, shocks)
    scale = jnp.sqrt(jnp.concatenate([first[None], later]))
    numpyro.sample("y", dist.Normal(mu, scale), obs=y)


def eight_schools(y: Array, sigma: Array) -> None:
    """Eight schools, non-centred: θ = μ + τ θ'."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    standard = numpyro.sample("theta_trans", dist.Normal(0, 1).expand([len(y)]).to_event(1))
    theta = numpyro.deterministic("theta", mu + tau * standard)
    numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def squared_exponential(x: Array, alpha: Array, rho: Array) -> jax.Array:
    """Return the covariance matrix α² exp(−(x − x')² / 2ρ²)."""
    return alpha**2 * jnp.exp(-0.5 * ((x[:, None] - x[None, :]) / rho) ** 2)


def gp_regression(x: Array, y: Array) -> None:
    """Gaussian process with Gaussian noise, whose *variance* is the parameter sigma."""
    rho = numpyro.sample("rho", dist.Gamma(25, 4))
    alpha = numpyro.sample("alpha", dist.HalfNormal(2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    covariance = squared_exponential(x, alpha, rho) + sigma * jnp.eye(len(x))
    factor = jnp.linalg.cholesky(covariance)
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), scale_tril=factor), obs=y)


def gp_poisson(x: Array, k: Array) -> None:
    """Poisson counts, whose log rate is a Gaussian process f = L f'."""
    rho = numpyro.sample("rho", dist.Gamma(25, 4))
    alpha = numpyro.sample("alpha", dist.HalfNormal(2))
    standard = numpyro.sample("f_tilde", dist.Normal(0, 1).expand([len(x)]).to_event(1))
    covariance = squared_exponential(x, alpha, rho) + 1e-10 * jnp.eye(len(x))
    f = numpyro.deterministic("f", jnp.linalg.cholesky(covariance) @ standard)
    numpyro.sample("k", dist.Poisson(jnp.exp(f)), obs=k)


def hidden_markov(y: Array) -> None:
    """Hidden Markov model of two states with normal outputs; states are summed out.

    All first states are equally probable. Rows of transition probabilities have flat priors.
    """
    rows = [numpyro.sample(f"theta{k}", dist.Dirichlet(jnp.ones(2))) for k in (1, 2)]
    mu = numpyro.sample(
        "mu", flat(OrderedTransform(), ExpTransform(constraints.ordered_vector), shape=(2,))
    )
    numpyro.factor("prior of mu", dist.Normal(jnp.array([3.0, 10.0]), 1).log_prob(mu).sum())
    transitions = jnp.stack(rows)
    outputs = dist.Normal(mu, 1).log_prob(y[:, None])
    # Relative to the more probable state, so that probabilities do not underflow.
    largest = outputs.max(axis=1)
    relative = jnp.exp(outputs - largest[:, None])

    def step(forward: jax.Array, output: jax.Array) -> tuple[jax.Array, jax.Array]:
        forward = (forward @ transitions) * output
        total = forward.sum()
        return forward / total, total

    first = relative[0].sum()
    _, totals = jax.lax.scan(step, relative[0] / first, relative[1:])
    numpyro.factor("y", largest.sum() + jnp.log(first) + jnp.log(totals).sum())


def gaussian_mixture(y: Array) -> None:
    """Mixture of two normal distributions with ordered means."""
    mu = numpyro.sample("mu", flat(OrderedTransform(), shape=(2,)))
    numpyro.factor("prior of mu", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    shares = dist.Categorical(jnp.stack([theta, 1 - theta]))
    numpyro.sample("y", dist.MixtureSameFamily(shares, dist.Normal(mu, sigma)), obs=y)


def lotka_volterra(ts: Array, y_init: Array, y: Array) -> None:
    """Hares and lynxes, u' = (α − β v) u and v' = (δ u − γ) v, observed with log-normal errors.

    The parameters are θ = (α, β, γ, δ). The ODE is solved for the logarithms of u and v, which
    remain finite and need fewer steps, by the Runge-Kutta method of order 4.
    """
    theta = numpyro.sample(
        "theta",
        dist.TruncatedNormal(
            jnp.array([1, 0.05, 1, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05]), low=0.0
        ).to_event(1),
    )
    z_init = numpyro.sample("z_init", dist.LogNormal(jnp.log(10), 1).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1).expand([2]).to_event(1))
    growth = theta[jnp.array([0, 2])] * jnp.array([1, -1])
    interaction = theta[jnp.array([1, 3])] * jnp.array([-1, 1])

    def slope(state: jax.Array) -> jax.Array:
        return growth + interaction * jnp.exp(state[::-1])

    def step(state: jax.Array, time: jax.Array) -> tuple[jax.Array, jax.Array]:
        a = slope(state)
        b = slope(state + time / 2 * a)
        c = slope(state + time / 2 * b)
        d = slope(state + time * c)
        state = state + time / 6 * (a + 2 * b + 2 * c + d)
        return state, state

    lengths = jnp.diff(jnp.concatenate([jnp.zeros(1), ts])) / ODE_STEPS
    _, states = jax.lax.scan(step, jnp.log(z_init), jnp.repeat(lengths, ODE_STEPS))
    numpyro.sample("y_init", dist.LogNormal(jnp.log(z_init), sigma), obs=y_init)
    numpyro.sample("y", dist.LogNormal(states[ODE_STEPS - 1 :: ODE_STEPS], sigma), obs=y)


#: Where chains start, in unconstrained space. With |theta| > 1, the errors of arma11 grow
#: exponentially: chains that start at theta = ±2, as by default, may never return from there.
START = init_to_uniform(radius=1)
#: Program by the name of the posterior, which is that of its data, a hyphen, and posteriordb's name
#: of the model.
PROGRAMS: dict[str, Callable[..., None]] = {
    "arK-arK": autoregression,
    "arma-arma11": arma,
    "earnings-logearn_interaction": logearn_interaction,
    "eight_schools-eight_schools_noncentered": eight_schools,
    "garch-garch11": garch,
    "gp_pois_regr-gp_pois_regr": gp_poisson,
    "gp_pois_regr-gp_regr": gp_regression,
    "hmm_example-hmm_example": hidden_markov,
    "hudson_lynx_hare-lotka_volterra": lotka_volterra,
    "kidiq-kidscore_interaction": kidscore_interaction,
    "kidiq-kidscore_momiq": kidscore_momiq,
    "kilpisjarvi_mod-kilpisjarvi": kilpisjarvi,
    "low_dim_gauss_mix-low_dim_gauss_mix": gaussian_mixture,
    "mesquite-logmesquite": logmesquite,
    "nes1988-nes": nes,
    "sblrc-blr": blr,
    "sblri-blr": blr,
}


def read_data(name: str) -> dict[str, Any]:
    """Return the keyword arguments of the program of a posterior: arrays and numbers.

    Args:
        name: of the posterior, as in `PROGRAMS`.
    """
    values = _read_json(FOLDER / "data" / f"{name.split('-')[0]}.json.zip")
    wanted = inspect.signature(PROGRAMS[name]).parameters
    found = {key: values[key] for key in wanted}
    return {key: np.array(x, float) if isinstance(x, list) else x for key, x in found.items()}


def read_reference(name: str) -> InferenceData:
    """Return the reference draws of a posterior, 10 chains of 1000.

    Cells such as `beta[1]` become arrays with the dimensions of Stan's parameter.
    """
    chains = _read_json(FOLDER / f"{name}.json.zip")
    cells: dict[str, list[Float64]] = {}
    for key in chains[0]:  # in the order of the cells
        matched = _CELL.fullmatch(key)
        column = np.array([chain[key] for chain in chains])
        cells.setdefault(key if matched is None else matched[1], []).append(column)
    scalars = {*cells} & {*chains[0]}
    return to_data({key: x[0] if key in scalars else np.stack(x, -1) for key, x in cells.items()})


def to_data(
    values: dict[str, Array],
    statistics: dict[str, Array] | None = None,
    seconds: float | None = None,
) -> InferenceData:
    """Return draws as ArviZ data.

    Args:
        values: by site, each (chains, draws, …).
        statistics: of the sampler, each (chains, draws).
        seconds: of warm-up and draws together.
    """
    arrays = [
        {key: np.asarray(x) for key, x in group.items()} for group in (values, statistics or {})
    ]
    groups = label_groups(dict(zip(("posterior", "sample_stats"), arrays, strict=True)))
    if seconds is not None:
        groups["posterior"] = groups["posterior"]._replace(attrs={"sampling_time": seconds})
    return to_arviz_data(to_datasets(groups), {})


def _read_json(path: Path) -> Any:
    """Return the content of a zip archive with one JSON file."""
    with ZipFile(path) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


CHAINS, WARMUP, DRAWS = 4, 1000, 2000
#: Acceptance that NUTS aims at: with 0.8 or 0.9, a few transitions of eight_schools diverge.
TARGET = 0.95
#: Draws that HMC discards: it starts near the mode.
HMC_WARMUP = 200
#: A sampler with a smaller error, in posterior standard deviations, may agree.
SMALL_ERROR = 0.1
VERDICTS = ("agrees", "inconclusive", "not converged", "DIFFERS", "failed")

Model: TypeAlias = Callable[..., None]
Options: TypeAlias = dict[str, Any]
#: From a model, its arguments and a seed to draws: those of chains, with the statistic `n_steps`.
Sampler: TypeAlias = Callable[[Model, tuple[Any, ...], Options, int], InferenceData]
Density: TypeAlias = Callable[[jax.Array], jax.Array]


class Flat(NamedTuple):
    """A model as a function of one unconstrained vector.

    Attributes:
        potential: −log density of a vector, (d,).
        without_jacobian: the same of the constrained values: what a wrong program would use.
        unflatten: from a vector to the values of latent sites.
        constrain: from (chains, draws, d) to the values of all sites.
        mode: (d,).
        root: a root of the inverse Hessian at the mode, (d, d).
        starts: of the chains, (chains, d), from the normal distribution with this covariance.
    """

    potential: Density
    without_jacobian: Density
    unflatten: Callable[[jax.Array], dict[str, Any]]
    constrain: Callable[[Any], dict[str, Any]]
    mode: Float64
    root: Float64
    starts: Float64


def flatten(model: Model, args: tuple[Any, ...], kwargs: Options, seed: int) -> Flat:
    """Return a model as a function of one vector.

    Chains start near the mode. With a dense metric, which is estimated on the way there, an eighth
    of the chains of arma11 would leave for |theta| > 1, where the density is a needle.
    """
    keys = jax.random.split(jax.random.key(seed), CHAINS)
    options = {"model_args": args, "model_kwargs": kwargs, "init_strategy": START}
    points = initialize_model(keys, model, **options).param_info.z
    _, unflatten = ravel_pytree(jax.tree.map(lambda x: x[0], points))

    def potential(z: jax.Array) -> jax.Array:
        return potential_energy(model, args, kwargs, unflatten(z))

    def constrain(z: jax.Array, **options: bool) -> dict[str, Any]:
        return constrain_fn(model, args, kwargs, unflatten(z), **options)

    mode, root = find_mode(potential, np.asarray(jax.vmap(lambda z: ravel_pytree(z)[0])(points)))
    noise = np.random.default_rng(seed).normal(size=(CHAINS, len(mode)))
    return Flat(
        potential,
        lambda z: -log_density(model, args, kwargs, constrain(z))[0],
        unflatten,
        jax.jit(jax.vmap(jax.vmap(partial(constrain, return_deterministic=True)))),
        mode,
        root,
        mode + noise @ root.T,
    )


def find_mode(potential: Density, points: Float64) -> tuple[Float64, Float64]:
    """Return the best mode that is found from some points, and a root of the inverse Hessian."""
    evaluate = jax.jit(jax.value_and_grad(potential))

    def objective(z: Float64) -> tuple[float, Float64]:
        value, gradient = evaluate(z)
        if not np.isfinite(value):  # a step of the search was too long
            return 1e100, np.zeros_like(z)
        return float(value), np.nan_to_num(gradient)

    found = [minimize(objective, z, jac=True, method="BFGS") for z in points]
    mode = min(found, key=lambda one: one.fun).x
    values, vectors = np.linalg.eigh(jax.jit(jax.hessian(potential))(mode))
    return mode, vectors / np.sqrt(np.abs(values))


def run_compiled(function: Callable[..., Any], *operands: Any) -> tuple[Any, float]:
    """Compile and call a function, and return its result with the seconds of the call."""
    compiled = jax.jit(function).lower(*operands).compile()
    start = perf_counter()
    result = jax.block_until_ready(compiled(*operands))
    return result, perf_counter() - start


def draw_numpyro(model: Model, args: tuple[Any, ...], kwargs: Options, seed: int) -> InferenceData:
    """Draw by NumPyro's NUTS with a dense metric."""
    flat = flatten(model, args, kwargs, seed)
    kernel = NUTS(model, dense_mass=True, target_accept_prob=TARGET)

    def chain(key: jax.Array, start: jax.Array) -> Any:
        def step(state: Any, _: None) -> tuple[Any, Any]:
            state = kernel.sample(state, args, kwargs)
            values = ravel_pytree(state.z)[0]
            return state, (
                values,
                {
                    "n_steps": state.num_steps,
                    "diverging": state.diverging,
                    "energy": state.energy,
                    "acceptance_rate": state.accept_prob,
                },
            )

        state = kernel.init(key, WARMUP, flat.unflatten(start), args, kwargs)
        return jax.lax.scan(step, state, length=WARMUP + DRAWS)[1]

    keys = jax.random.split(jax.random.key(seed), CHAINS)
    (z, statistics), seconds = run_compiled(jax.vmap(chain), keys, flat.starts)
    kept = {name: x[:, WARMUP:] for name, x in statistics.items()}
    return to_data(flat.constrain(z[:, WARMUP:]), kept, seconds)


def draw_bpa(
    settings: str, model: Model, args: tuple[Any, ...], kwargs: Options, seed: int
) -> InferenceData:
    """Draw by a sampler of this package; the first of two equal runs compiles it."""
    target = make_model_target(model, args, kwargs)
    draw_posterior(target, settings, seed=seed)
    draws = draw_posterior(target, settings, seed=seed)
    return to_data(dict(draws.values), dict(draws.statistics), draws.record.sampler.seconds)


def draw_blackjax(model: Model, args: tuple[Any, ...], kwargs: Options, seed: int) -> InferenceData:
    """Draw by BlackJAX's NUTS with a dense metric."""
    blackjax = import_module("blackjax")
    flat = flatten(model, args, kwargs, seed)

    def density(z: jax.Array) -> jax.Array:
        return -flat.potential(z)

    def chain(key: jax.Array, start: jax.Array) -> Any:
        first, second = jax.random.split(key)
        warmup = blackjax.window_adaptation(
            blackjax.nuts, density, is_mass_matrix_diagonal=False, target_acceptance_rate=TARGET
        )
        (state, tuned), _ = warmup.run(first, start, WARMUP)
        algorithm = blackjax.nuts(density, **tuned)

        def step(state: Any, key: jax.Array) -> tuple[Any, Any]:
            state, info = algorithm.step(key, state)
            return state, (
                state.position,
                {
                    "n_steps": info.num_integration_steps,
                    "diverging": info.is_divergent,
                    "energy": info.energy,
                    "acceptance_rate": info.acceptance_rate,
                },
            )

        return jax.lax.scan(step, state, jax.random.split(second, DRAWS))[1]

    keys = jax.random.split(jax.random.key(seed), CHAINS)
    (z, statistics), seconds = run_compiled(jax.vmap(chain), keys, flat.starts)
    return to_data(flat.constrain(z), statistics, seconds)


def draw_nutpie(model: Model, args: tuple[Any, ...], kwargs: Options, seed: int) -> InferenceData:
    """Draw by nutpie with a metric of low rank."""
    flat = flatten(model, args, kwargs, seed)
    evaluate = jax.jit(jax.value_and_grad(lambda z: -flat.potential(z)))
    evaluate(flat.starts[0])  # compiled before the threads begin

    def value_and_gradient(z: Float64) -> tuple[float, Float64]:
        value, gradient = evaluate(z)
        return float(value), np.asarray(gradient)

    dimension = len(flat.mode)
    compiled = import_module("nutpie.compiled_pyfunc").from_pyfunc(
        ndim=dimension,
        make_logp_fn=lambda: value_and_gradient,
        make_expand_fn=lambda *_: lambda z: {"z": np.array(z)},
        expanded_dtypes=[np.dtype("float64")],
        expanded_shapes=[(dimension,)],
        expanded_names=["z"],
        make_initial_point_fn=lambda seed: flat.starts[seed % CHAINS],
    )
    start = perf_counter()
    data = import_module("nutpie").sample(
        compiled,
        draws=DRAWS,
        tune=WARMUP,
        chains=CHAINS,
        seed=seed,
        low_rank_modified_mass_matrix=True,
        target_accept=TARGET,
        progress_bar=False,
    )
    seconds = perf_counter() - start
    statistics = {
        name: data["sample_stats"][name].values for name in ("n_steps", "diverging", "energy")
    }
    return to_data(flat.constrain(data["posterior"]["z"].values), statistics, seconds)


class Settings(NamedTuple):
    """Settings of Hamiltonian Monte Carlo; distances are standard deviations at the mode.

    Attributes:
        step: mean size of a leapfrog step.
        steps: leapfrog steps of a draw; the number is drawn from 1 to 2 steps − 1.
        momentum: standard deviation of the momenta, 1 in a correct sampler.
        always: whether all proposals of finite density are accepted.
        offset: where chains start; None is at random near the mode.
        jacobian: whether the density has the Jacobian of constrained parameters.
    """

    step: float = 0.25
    steps: int = 16
    momentum: float = 1.0
    always: bool = False
    offset: float | None = None
    jacobian: bool = True


def draw_hmc(
    settings: Settings, model: Model, args: tuple[Any, ...], kwargs: Options, seed: int
) -> InferenceData:
    """Draw by Hamiltonian Monte Carlo in coordinates in which the Hessian is the identity."""
    flat = flatten(model, args, kwargs, seed)
    z, statistics, seconds = run_hmc(settings, flat, seed)
    return to_data(flat.constrain(z), statistics, seconds)


def run_hmc(settings: Settings, flat: Flat, seed: int) -> tuple[Any, dict[str, Any], float]:
    """Return unconstrained draws, (chains, draws, d), their statistics and the seconds."""
    mode, root = flat.mode, flat.root
    density = flat.potential if settings.jacobian else flat.without_jacobian
    evaluate = jax.value_and_grad(lambda u: density(mode + root @ u))

    def chain(key: jax.Array, u: jax.Array, options: Settings) -> Any:
        def draw(state: Any, key: jax.Array) -> tuple[Any, Any]:
            u, potential, gradient = state
            keys = jax.random.split(key, 4)
            step = options.step * jax.random.uniform(keys[0], minval=0.8, maxval=1.2)
            momentum = options.momentum * jax.random.normal(keys[1], u.shape)

            def leap(_: int, at: Any) -> Any:
                u, momentum, _, gradient = at
                momentum = momentum - step / 2 * gradient
                u = u + step * momentum
                potential, gradient = evaluate(u)
                return u, momentum - step / 2 * gradient, potential, gradient

            first = u, momentum, potential, gradient
            steps = jax.random.randint(keys[3], (), 1, 2 * options.steps)
            last = jax.lax.fori_loop(0, steps, leap, first)
            energies = [p + (m @ m) / 2 for _, m, p, _ in (first, last)]
            rate = jnp.minimum(jnp.exp(energies[0] - energies[1]), 1.0)
            accepted = options.always | (jax.random.uniform(keys[2]) < rate)
            accepted &= jnp.isfinite(last[2]) & jnp.isfinite(last[3]).all()
            state = jax.tree.map(
                lambda new, old: jnp.where(accepted, new, old),
                (last[0], last[2], last[3]),
                state,
            )
            return state, (mode + root @ state[0], accepted, steps)

        state = u, *evaluate(u)
        return jax.lax.scan(draw, state, jax.random.split(key, HMC_WARMUP + DRAWS))[1]

    keys = jax.random.split(jax.random.key(seed), CHAINS + 1)
    u = jax.random.normal(keys[-1], (CHAINS, len(mode)))
    if settings.offset is not None:
        u = jnp.full_like(u, settings.offset)
    # None would be another argument: the same program is compiled once for all settings.
    traced = settings._replace(offset=0.0, jacobian=True)
    run = jax.vmap(chain, in_axes=(0, 0, None))
    (z, accepted, steps), seconds = run_compiled(run, keys[:CHAINS], u, traced)
    kept = slice(HMC_WARMUP, None) if settings.offset is None else slice(DRAWS)
    statistics = {"n_steps": steps[:, kept], "acceptance_rate": 1.0 * accepted[:, kept]}
    return z[:, kept], statistics, seconds


HMC, NO_JACOBIAN = "HMC", "HMC, no Jacobian"
#: Of the sampler `nuts`: those of the other NUTS samplers.
NUTS_SETTINGS = f"nuts:draws={DRAWS},chains={CHAINS},warmup={WARMUP},target_accept={TARGET}"
#: Correct samplers.
CORRECT: list[tuple[str, Sampler]] = [
    ("bpa nuts", partial(draw_bpa, NUTS_SETTINGS)),
    *((f"bpa {n}", partial(draw_bpa, f"{n}:draws={DRAWS}")) for n in ("auto", "imh", "rwm")),
    ("NumPyro NUTS", draw_numpyro),
    *([("BlackJAX NUTS", draw_blackjax)] if find_spec("blackjax") else []),
    *([("nutpie", draw_nutpie)] if find_spec("nutpie") else []),
    (HMC, partial(draw_hmc, Settings())),
]
BROKEN: list[tuple[str, Sampler]] = [
    ("HMC, all accepted", partial(draw_hmc, Settings(step=1.0, always=True))),
    (NO_JACOBIAN, partial(draw_hmc, Settings(jacobian=False))),
    ("HMC, unfinished", partial(draw_hmc, Settings(steps=1, offset=5.0))),
    ("HMC, wide momenta", partial(draw_hmc, Settings(momentum=1.25))),
]
SAMPLERS = dict(CORRECT + BROKEN)


def print_verdicts(options: argparse.Namespace) -> None:
    """Print the verdicts on all samplers, a table for each posterior, and how many there are."""
    columns = "verdict", "bound, sd", "R-hat", "ESS", "ESS/s", "ESS/evaluation", "seconds"
    found: dict[str, Counter[str]] = {name: Counter() for name in options.samplers}
    for name in options.only:
        table = Table(name, *columns, width=13)
        reference = read_reference(name)
        variables = list(reference["posterior"].data_vars)
        model = partial(PROGRAMS[name], **read_data(name))
        differ = list[str]()
        for sampler in options.samplers:
            start = perf_counter()
            try:
                draws = SAMPLERS[sampler](model, (), {}, options.seed)
                total = perf_counter() - start
                result = compare({sampler: draws}, reference, var_names=variables)[sampler]
            except BpaError as error:
                found[sampler]["failed"] += 1
                table.row(sampler, "failed", *[""] * (len(columns) - 1))
                print(f"  {error}")
                continue
            of = result.efficiency
            bound = "–" if result.bound is None else f"{result.bound:.3f}"
            cells = [f"{of['r_hat']:.3f}", f"{of['ess']:.0f}", f"{of['ess_per_second']:.0f}"]
            cells += [f"{of['ess_per_evaluation']:.4f}", f"{of['seconds']:.1f} ({total:.0f})"]
            table.row(sampler, result.verdict, bound, *cells)
            if options.reasons:
                print(f"  {result.reason}")
            found[sampler][result.verdict] += 1
            if result.verdict == "DIFFERS" and sampler in dict(CORRECT):
                differ.append(f"{sampler} differs on {name}: {result.reason}")
            if result.verdict == "agrees" and sampler in dict(BROKEN):
                error = measure_jacobian(name) if sampler == NO_JACOBIAN else (np.inf, 0)
                if max(error) > SMALL_ERROR:
                    options.failed.append(f"{sampler} agrees on {name}: {result.reason}")
        if len(differ) > 1:  # of the verdicts on right samplers one in a hundred is wrong
            options.failed += differ
    if len(options.only) < 2:
        return
    table = Table("posteriors", *VERDICTS)
    for sampler, verdicts in found.items():
        table.row(sampler, *(str(verdicts[verdict]) for verdict in VERDICTS))


def print_jacobians(options: argparse.Namespace) -> None:
    """Print the largest errors of means and standard deviations without the Jacobian."""
    table = Table("without the Jacobian", "mean, sd", "sd, relative")
    for name in options.only:
        table.row(name, *(f"{error:.3f}" for error in measure_jacobian(name)))


def measure_jacobian(name: str) -> tuple[float, float]:
    """Return the largest errors of a mean, in sd, and of an sd, relative, without the Jacobian.

    Draws of HMC are weighted by the inverse of the Jacobian.
    """
    flat = flatten(partial(PROGRAMS[name], **read_data(name)), (), {}, 0)
    z, _, _ = run_hmc(Settings(), flat, 0)
    values = flat.constrain(z)
    x = np.concatenate([np.reshape(values[key], (CHAINS * DRAWS, -1)) for key in sorted(values)], 1)
    ratio = jax.jit(jax.vmap(lambda z: flat.potential(z) - flat.without_jacobian(z)))
    log_weight = np.asarray(ratio(z.reshape(len(x), -1)))
    weight = np.exp(log_weight - log_weight.max())
    mean = np.average(x, axis=0, weights=weight)
    deviation = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
    shift = np.abs(mean - x.mean(0)) / x.std(0)
    return float(shift.max()), float(np.abs(deviation / x.std(0) - 1).max())


def main() -> None:
    """Print the tables, and exit with 1 if a verdict is wrong."""
    jax.config.update("jax_enable_x64", True)
    compiled = Path(__file__).resolve().parents[1] / "build" / "compiled"
    jax.config.update("jax_compilation_cache_dir", str(compiled))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    failed: list[str] = []

    def verdicts(options: argparse.Namespace) -> None:
        options.failed = failed
        print_verdicts(options)

    run_tables(
        __doc__,
        (verdicts, print_jacobians),
        only=tuple(PROGRAMS),
        samplers=tuple(SAMPLERS),
        seed=0,
        reasons=False,
    )
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()

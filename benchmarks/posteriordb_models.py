"""NumPyro programs of 17 posteriors of posteriordb, their data and their reference draws.

The programs are written from the mathematical models. Latent sites have the names and shapes of the
parameters of posteriordb's Stan programs, and deterministic sites those of transformed parameters
that have reference draws. Data sets and reference draws (Magnusson et al. 2024) are in
`../shared/data/posteriordb`.

Parameters without a prior in the Stan programs have a flat one, which is improper:

* `beta` of the kidiq, earnings, mesquite and nes posteriors, and `sigma` of the last three,
* `sigma` of kilpisjarvi,
* `mu` and `alpha0` of garch11.

All others are proper; ordered parameters have a flat prior on their support, and a factor with
their own. Values are in float64: call `jax.config.update("jax_enable_x64", True)`
first, because the Cholesky decomposition of gp_pois_regr has a jitter of 1e-10.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import numpyro
import numpyro.distributions as dist
from measuring import DATA
from numpyro.distributions import constraints
from numpyro.distributions.transforms import ExpTransform, OrderedTransform, Transform
from numpyro.infer import init_to_uniform

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.posterior.arviz_functions import InferenceData, to_arviz_data, to_datasets
from bpa_ppl.posterior.groups import label_groups

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

"""Programs of the usual kinds, with their data, for `bench_gallery.py`.

Each is what a user of NumPyro writes. Data are simulated with a fixed seed, except those of the
eight schools (Rubin 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.experimental.ode import odeint
from jax.scipy.special import gammainc, gammaincc, ndtri
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.distributions import constraints
from numpyro.infer.reparam import LocScaleReparam
from scipy import stats
from scipy.integrate import odeint as solve

from bpa_ppl._runtime.arrays import Float64

RNG = np.random.default_rng(0)
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


#: Mean and standard deviation of values, by label.
Moments = dict[str, tuple[float, float]]


class Program(NamedTuple):
    """A program and its data.

    Attributes:
        model: the NumPyro program.
        data: its positional arguments.
        exact: by site, mean and standard deviation in closed form, if they are known.
        expected: what `bpa_ppl.sample` should say: "passes", "fails" (NumPyro's NUTS fails, too),
            or "refuses".
        is_discrete: whether it has discrete sites that are summed out.
        reference: the name of another program that gives its posterior, and a function from the
            moments of that one to those of this one; None if its own run is the reference.
    """

    model: Callable[..., Any]
    data: tuple[Any, ...] = ()
    exact: Mapping[str, tuple[float, float]] = {}
    expected: str = "passes"
    is_discrete: bool = False
    reference: tuple[str, Callable[[Moments], Moments]] | None = None


def linear(x: Float64, y: Float64) -> None:
    """A linear regression."""
    intercept = numpyro.sample("intercept", dist.Normal(0, 5))
    slopes = numpyro.sample("slopes", dist.Normal(0, 5).expand([x.shape[1]]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2))
    numpyro.sample("y", dist.Normal(intercept + x @ slopes, sigma), obs=y)


def logistic(x: Float64, y: Float64) -> None:
    """A logistic regression."""
    slopes = numpyro.sample("slopes", dist.Normal(0, 2).expand([x.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ slopes), obs=y)


def counts(exposure: Float64, x: Float64, y: Float64) -> None:
    """A Poisson regression with an offset."""
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    slope = numpyro.sample("slope", dist.Normal(0, 2))
    numpyro.sample("y", dist.Poisson(exposure * jnp.exp(intercept + slope * x)), obs=y)


def schools_centred(effects: Float64, errors: Float64) -> None:
    """The eight schools with effects around their mean."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(effects)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(theta, errors), obs=effects)


def schools(effects: Float64, errors: Float64) -> None:
    """The eight schools with standardised effects."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(effects)):
        z = numpyro.sample("z", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("y", dist.Normal(theta, errors), obs=effects)


#: The eight schools in coordinates that NumPyro chooses.
schools_reparametrised = handlers.reparam(schools_centred, config={"theta": LocScaleReparam(0)})


def mixture_free(y: Float64) -> None:
    """A mixture of two normal distributions whose labels may switch."""
    share = numpyro.sample("share", dist.Beta(2, 2))
    means = numpyro.sample("means", dist.Normal(0, 5).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2))
    parts = dist.Categorical(probs=jnp.stack([share, 1 - share]))
    numpyro.sample("y", dist.MixtureSameFamily(parts, dist.Normal(means, sigma)), obs=y)


def mixture_ordered(y: Float64) -> None:
    """The same mixture with ordered means."""
    share = numpyro.sample("share", dist.Beta(2, 2))
    ordered = dist.transforms.OrderedTransform()
    free = dist.Normal(0, 5).expand([2]).to_event(1)
    means = numpyro.sample("means", dist.TransformedDistribution(free, ordered))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2))
    parts = dist.Categorical(probs=jnp.stack([share, 1 - share]))
    numpyro.sample("y", dist.MixtureSameFamily(parts, dist.Normal(means, sigma)), obs=y)


def mixture_enumerated(y: Float64) -> None:
    """A mixture with a discrete site for each observation."""
    share = numpyro.sample("share", dist.Beta(2, 2))
    low = numpyro.sample("low", dist.Normal(-2, 1))
    high = numpyro.sample("high", dist.Normal(2, 1))
    with numpyro.plate("data", len(y)):
        part = numpyro.sample("part", dist.Bernoulli(share), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Normal(jnp.where(part == 1, high, low), 1.0), obs=y)


def hidden_markov(y: Float64) -> None:
    """A hidden Markov model whose states are summed out by the forward algorithm."""
    rows = numpyro.sample("rows", dist.Dirichlet(jnp.array([[4.0, 1.0], [1.0, 4.0]])).to_event(1))
    means = numpyro.sample("means", dist.Normal(jnp.array([-1.0, 1.0]), 0.5).to_event(1))
    emission = dist.Normal(means, 0.7).log_prob(jnp.asarray(y)[:, None])

    def step(forward: jax.Array, value: jax.Array) -> tuple[jax.Array, None]:
        return jax.nn.logsumexp(forward[:, None] + jnp.log(rows), axis=0) + value, None

    last, _ = jax.lax.scan(step, emission[0] - jnp.log(2.0), emission[1:])
    numpyro.factor("y", jax.nn.logsumexp(last))


def hidden_markov_enumerated(y: Float64) -> None:
    """The same with a discrete site for each state."""
    rows = numpyro.sample("rows", dist.Dirichlet(jnp.array([[4.0, 1.0], [1.0, 4.0]])).to_event(1))
    means = numpyro.sample("means", dist.Normal(jnp.array([-1.0, 1.0]), 0.5).to_event(1))

    def step(state: jax.Array, value: jax.Array) -> tuple[jax.Array, None]:
        state = numpyro.sample(
            "state", dist.Categorical(rows[state]), infer={"enumerate": "parallel"}
        )
        numpyro.sample("y", dist.Normal(means[state], 0.7), obs=value)
        return state, None

    scan(step, 0, jnp.asarray(y))


def correlated(group: Any, x: Float64, y: Float64) -> None:
    """Intercepts and slopes of groups with an LKJ prior of their correlation."""
    count = int(group.max()) + 1
    mean = numpyro.sample("mean", dist.Normal(0, 2).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1).expand([2]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    with numpyro.plate("groups", count):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([2]).to_event(1))
    lines = mean + z @ (scale[:, None] * factor).T
    numpyro.sample("y", dist.Normal(lines[group, 0] + lines[group, 1] * x, 0.5), obs=y)


def gaussian_process(x: Float64, y: Float64) -> None:
    """A Gaussian process with unknown scale, length and noise."""
    scale = numpyro.sample("scale", dist.HalfNormal(1))
    length = numpyro.sample("length", dist.InverseGamma(5, 5))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    squares = (x[:, None] - x) ** 2
    covariance = scale**2 * jnp.exp(-squares / 2 / length**2)
    covariance += (noise**2 + 1e-6) * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance), obs=y)


def autoregression(y: Float64) -> None:
    """A first-order autoregression."""
    level = numpyro.sample("level", dist.Normal(0, 2))
    slope = numpyro.sample("slope", dist.Uniform(-1, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(level + slope * y[:-1], sigma), obs=y[1:])


def random_walk(y: Float64) -> None:
    """A random walk that is observed with noise, by `scan`."""
    step_size = numpyro.sample("step_size", dist.HalfNormal(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1))

    def step(before: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        level = numpyro.sample("level", dist.Normal(before, step_size))
        numpyro.sample("y", dist.Normal(level, noise), obs=value)
        return level, level

    scan(step, jnp.zeros(()), jnp.asarray(y))


def horseshoe(x: Float64, y: Float64) -> None:
    """A regression with few large slopes."""
    common = numpyro.sample("common", dist.HalfCauchy(0.1))
    with numpyro.plate("features", x.shape[1]):
        local = numpyro.sample("local", dist.HalfCauchy(1))
        z = numpyro.sample("z", dist.Normal(0, 1))
    slopes = numpyro.deterministic("slopes", common * local * z)
    numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)


def funnel() -> None:
    """Neal's funnel, which samplers do not reach the end of."""
    log_scale = numpyro.sample("log_scale", dist.Normal(0, 3))
    numpyro.sample("x", dist.Normal(0, jnp.exp(log_scale / 2)).expand([9]).to_event(1))


def two_modes() -> None:
    """Two modes, so far apart that no chain passes from one to the other."""
    parts = dist.Categorical(probs=jnp.array([0.5, 0.5]))
    numpyro.sample("x", dist.MixtureSameFamily(parts, dist.Normal(jnp.array([-10.0, 10.0]), 1.0)))


def cauchy() -> None:
    """A variable without a mean, and one that has one."""
    numpyro.sample("x", dist.Cauchy(0, 1))
    numpyro.sample("y", dist.Normal(0, 1))


def many_groups(group: Any, y: Float64) -> None:
    """500 groups with their own means."""
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    with numpyro.plate("groups", int(group.max()) + 1):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    numpyro.sample("y", dist.Normal(theta[group], 1.0), obs=y)


def masked(y: Float64, is_seen: Any) -> None:
    """A mean and a scale, with observations of which some are missing."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    sigma = numpyro.sample("sigma", dist.HalfNormal(5))
    with numpyro.plate("data", len(y)), numpyro.handlers.mask(mask=is_seen):
        numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


def imputed(y: Float64, is_seen: Any) -> None:
    """The same, where the missing ones are sampled, by `obs_mask`."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    sigma = numpyro.sample("sigma", dist.HalfNormal(5))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(mu, sigma), obs=y, obs_mask=is_seen)


def factors(y: Float64) -> None:
    """A likelihood of a weight in (0, 1), written as a factor."""
    share = numpyro.sample("share", dist.Uniform(0, 1))
    numpyro.factor("y", jnp.sum(jnp.where(jnp.asarray(y) > 0, jnp.log(share), jnp.log1p(-share))))


def simplex(y: Any) -> None:
    """Shares of six categories."""
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(6)))
    numpyro.sample("y", dist.Multinomial(int(y.sum()), shares), obs=y)


def overdispersed(y: Any) -> None:
    """Counts of categories that vary more than those of a multinomial distribution."""
    concentration = numpyro.sample("concentration", dist.HalfNormal(10))
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(y.shape[1])))
    of_rows = dist.DirichletMultinomial(concentration * shares, y.sum(axis=1))
    numpyro.sample("y", of_rows, obs=y)


def predator_prey(times: Float64, y: Float64) -> None:
    """Numbers of predators and prey by the equations of Lotka and Volterra."""
    start = numpyro.sample("start", dist.LogNormal(jnp.log(10.0), 1).expand([2]).to_event(1))
    centre = jnp.array([1.0, 0.05, 1.0, 0.05])
    rates = numpyro.sample("rates", dist.TruncatedNormal(centre, centre / 2, low=0.0).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1).expand([2]).to_event(1))
    numbers = odeint(
        lotka_volterra, start, jnp.asarray(times), rates, rtol=1e-6, atol=1e-5, mxstep=1000
    )
    numpyro.sample("y", dist.LogNormal(jnp.log(numbers), sigma).to_event(2), obs=y)


def lotka_volterra(numbers: Any, time: Any, rates: Any) -> Any:
    """Return the growth of the prey and of the predators."""
    growth = jnp.stack([rates[0] - rates[1] * numbers[1], rates[3] * numbers[0] - rates[2]])
    return growth * numbers


def copula(y: Float64) -> None:
    """Two gamma distributions, joined by a Gaussian copula."""
    shapes = numpyro.sample("shapes", dist.LogNormal(0, 1).expand([2]).to_event(1))
    rates = numpyro.sample("rates", dist.LogNormal(0, 1).expand([2]).to_event(1))
    correlation = numpyro.sample("correlation", dist.Uniform(-1, 1))
    numpyro.sample("y", dist.Gamma(shapes, rates).to_event(1), obs=y)
    levels = jnp.clip(gammainc(shapes, rates * y), 1e-6, 1 - 1e-6)
    first, second = ndtri(levels).T
    free = 1 - correlation**2
    squares = correlation**2 * (first**2 + second**2) - 2 * correlation * first * second
    numpyro.factor("joint", -jnp.sum(squares / free + jnp.log(free)) / 2)


def censored(y: Float64, is_censored: Any) -> None:
    """Waiting times of a gamma distribution, of which some have not ended."""
    shape = numpyro.sample("shape", dist.LogNormal(0, 1))
    rate = numpyro.sample("rate", dist.LogNormal(0, 1))
    ended = dist.Gamma(shape, rate).log_prob(y)
    numpyro.factor("y", jnp.sum(jnp.where(is_censored, jnp.log(gammaincc(shape, rate * y)), ended)))


def improper(y: Float64) -> None:
    """A flat prior on the positive numbers."""
    sigma = numpyro.sample("sigma", dist.ImproperUniform(constraints.positive, (), ()))
    numpyro.sample("y", dist.Normal(0, sigma), obs=y)


def subsampled(y: Float64) -> None:
    """A plate of which each evaluation sees a part: no density that a chain could follow."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    with numpyro.plate("data", len(y), subsample_size=20) as rows:
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=jnp.asarray(y)[rows])


def _make() -> dict[str, Program]:
    """Return the programs by name, with simulated data."""
    normal = RNG.normal
    x = normal(size=(100, 3))
    line = 1.0 + x @ np.array([1.0, -0.5, 0.0]) + 0.8 * normal(size=100)
    yes = RNG.uniform(size=100) < 1 / (1 + np.exp(-(x @ np.array([1.0, -1.0, 0.5]))))
    exposure = RNG.uniform(1, 10, size=80)
    events = RNG.poisson(exposure * np.exp(-0.5 + 0.4 * x[:80, 0]))
    parts = np.concatenate([normal(-2, 1, size=60), normal(2, 1, size=90)])
    states = (np.cumsum(RNG.uniform(size=100) < 0.15) % 2).astype(int)
    emitted = normal(np.array([-1.0, 1.0])[states], 0.7)
    group = np.repeat(np.arange(20), 10)
    of_group = normal(size=(20, 2)) * [1.0, 0.5] + [1.0, -1.0]
    u = normal(size=200)
    by_group = of_group[group, 0] + of_group[group, 1] * u + 0.5 * normal(size=200)
    t = np.linspace(0, 6, 40)
    walk = np.cumsum(0.5 * normal(size=60)) + 0.5 * normal(size=60)
    series = np.zeros(120)
    for k in range(1, 120):
        series[k] = 0.3 + 0.7 * series[k - 1] + 0.5 * normal()
    wide = normal(size=(60, 30))
    sparse = wide[:, :3] @ np.array([2.0, -1.5, 1.0]) + normal(size=60)
    many = np.repeat(np.arange(500), 4)
    y_many = normal(0.5, 0.7, size=500)[many] + normal(size=2000)
    y, is_seen = normal(1.0, 2.0, size=100), np.arange(100) % 5 != 0
    signs = np.where(np.arange(40) < 25, 1.0, -1.0)
    votes = np.array([12, 7, 30, 4, 9, 18])
    alpha = votes + 1.0
    share = stats.beta(26, 16)
    first = stats.beta(alpha[0], alpha.sum() - alpha[0])
    root, of_scale = np.sqrt(np.sum(y**2)), stats.chi(len(y) - 1)  # of root / sigma
    scale = root * of_scale.expect(lambda x: 1 / x)
    scale_sd = np.sqrt(root**2 * of_scale.expect(lambda x: 1 / x**2) - scale**2)

    years = np.arange(21.0)
    rates, begin = np.array([0.55, 0.028, 0.84, 0.026]), np.array([33.9, 5.9])

    def grow(numbers: Any, time: float) -> Any:
        return numbers * [rates[0] - rates[1] * numbers[1], rates[3] * numbers[0] - rates[2]]

    numbers = solve(grow, begin, years) * np.exp(0.25 * normal(size=(21, 2)))
    pair = stats.norm.cdf(RNG.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=150))
    amounts = stats.gamma.ppf(pair, [2.0, 3.0]) / [1.0, 2.0]
    waited = RNG.gamma(2.0, 1 / 0.5, size=100)
    tables = RNG.multinomial(20, RNG.dirichlet([4.0, 2.0, 1.0, 3.0], size=40))

    def with_missing(found: Moments) -> Moments:
        """Return the moments of a program with those of the observations that are missing."""
        (mean, error), (sigma, error_of_sigma) = found["mu"], found["sigma"]
        missing = mean, float(np.sqrt(error**2 + sigma**2 + error_of_sigma**2))
        return found | {f"y_unobserved[{k}]": missing for k in np.flatnonzero(~is_seen)}

    return {
        "linear": Program(linear, (x, line)),
        "logistic": Program(logistic, (x, yes.astype(np.float64))),
        "counts": Program(counts, (exposure, x[:80, 0], events)),
        "schools, centred": Program(schools_centred, (EFFECTS, ERRORS), expected="fails"),
        "schools": Program(schools, (EFFECTS, ERRORS)),
        "schools, reparametrised": Program(schools_reparametrised, (EFFECTS, ERRORS)),
        "mixture, free": Program(mixture_free, (parts,), expected="fails"),
        "mixture, ordered": Program(mixture_ordered, (parts,)),
        "mixture, enumerated": Program(mixture_enumerated, (parts,), is_discrete=True),
        "hidden Markov": Program(hidden_markov, (emitted,)),
        "hidden Markov, enumerated": Program(
            hidden_markov_enumerated, (emitted,), is_discrete=True
        ),
        "correlated groups": Program(correlated, (group, u, by_group)),
        "Gaussian process": Program(gaussian_process, (t, np.sin(t) + 0.2 * normal(size=40))),
        "autoregression": Program(autoregression, (series,)),
        "random walk": Program(random_walk, (walk,)),
        "horseshoe": Program(horseshoe, (wide, sparse), expected="fails"),
        "funnel": Program(funnel, exact={"log_scale": (0.0, 3.0)}, expected="fails"),
        "two modes": Program(two_modes, exact={"x": (0.0, 101**0.5)}, expected="fails"),
        "Cauchy": Program(cauchy, exact={"y": (0.0, 1.0)}),
        "500 groups": Program(many_groups, (many, y_many)),
        "mask": Program(masked, (y, is_seen)),
        "obs_mask": Program(imputed, (y, is_seen), reference=("mask", with_missing)),
        "factor": Program(factors, (signs,), {"share": (share.mean(), share.std())}),
        "simplex": Program(simplex, (votes,), {"shares[0]": (first.mean(), first.std())}),
        "Dirichlet-multinomial": Program(overdispersed, (tables,)),
        "predator and prey": Program(predator_prey, (years, numbers)),
        "copula": Program(copula, (amounts,)),
        "censored": Program(censored, (np.minimum(waited, 5.0), waited > 5)),
        "improper": Program(improper, (y,), {"sigma": (scale, scale_sd)}),
        "subsample": Program(subsampled, (y,), expected="refuses"),
    }


PROGRAMS = _make()

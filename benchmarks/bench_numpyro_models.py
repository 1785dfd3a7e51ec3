"""`bpa_ppl.sample` on the usual models of NumPyro's examples, tests and notebooks.

    python benchmarks/bench_numpyro_models.py [--programs "AR(2)" …]

For each program, written again with simulated data of a fixed seed: the sampler that
`bpa_ppl.sample` chose; whether its draws pass their check, or the program is refused; the CPU
seconds of the first call of a process, and those of NumPyro's NUTS with four chains of 1,000 draws
after 1,000 of warm-up, each with the conversion to ArviZ data; whether NumPyro's draws pass the
same check; and if both pass, the largest difference of a mean, in posterior standard deviations.
The reasons of what is refused, fails, or ends in another exception are below the table; for the
latter the exit status is 1.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import gallery_programs as gallery
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from bench_gallery import describe_errors, run_apart, run_numpyro, run_ours
from gallery_programs import Program
from jax.scipy.special import expit
from measuring import Table, run_tables
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.contrib.hsgp.approximation import hsgp_squared_exponential
from numpyro.distributions import constraints
from numpyro.infer.reparam import CircularReparam, ProjectedNormalReparam, TransformReparam

RNG = np.random.default_rng(1)


def regularised_horseshoe(x: Any, y: Any) -> None:
    """The horseshoe of NumPyro's example, with an unknown noise."""
    local = numpyro.sample("lambdas", dist.HalfCauchy(jnp.ones(x.shape[1])).to_event(1))
    common = numpyro.sample("tau", dist.HalfCauchy(1.0))
    z = numpyro.sample("unscaled_betas", dist.Normal(0, jnp.ones(x.shape[1])).to_event(1))
    betas = numpyro.deterministic("betas", common * local * z)
    precision = numpyro.sample("prec_obs", dist.Gamma(3.0, 1.0))
    numpyro.sample("y", dist.Normal(x @ betas, 1 / jnp.sqrt(precision)), obs=y)


def radon(county: Any, floor: Any, y: Any) -> None:
    """Intercepts and slopes of counties around their means."""
    means = [numpyro.sample(name, dist.Normal(0, 1)) for name in ("mu_a", "mu_b")]
    scales = [numpyro.sample(name, dist.HalfNormal(1)) for name in ("sigma_a", "sigma_b")]
    with numpyro.plate("county", int(county.max()) + 1):
        a = numpyro.sample("a", dist.Normal(means[0], scales[0]))
        b = numpyro.sample("b", dist.Normal(means[1], scales[1]))
    noise = numpyro.sample("noise", dist.HalfCauchy(1))
    numpyro.sample("y", dist.Normal(a[county] + b[county] * floor, noise), obs=y)


def semi_supervised_hmm(words: Any) -> None:
    """A hidden Markov model of words, whose states are enumerated in a scan."""
    transition = numpyro.sample(
        "transition", dist.Dirichlet(jnp.ones((3, 3)) + 4 * jnp.eye(3)).to_event(1)
    )
    emission = numpyro.sample("emission", dist.Dirichlet(1 + 5 * jnp.eye(3, 6)).to_event(1))

    def step(state: Any, word: Any) -> Any:
        state = numpyro.sample(
            "state", dist.Categorical(transition[state]), infer={"enumerate": "parallel"}
        )
        numpyro.sample("word", dist.Categorical(emission[state]), obs=word)
        return state, None

    scan(step, jnp.zeros((), dtype=jnp.int32), words)


def multi_hmm(notes: Any) -> None:
    """NumPyro's first hidden Markov model of polyphonic music: several tones at once."""
    rows = numpyro.sample("probs_x", dist.Dirichlet(0.9 * jnp.eye(2) + 0.1).to_event(1))
    tones = numpyro.sample(
        "probs_y",
        dist.Beta(jnp.array([[1.0], [4.0]]), jnp.array([[4.0], [1.0]]))
        .expand([2, notes.shape[1]])
        .to_event(2),
    )

    def step(state: Any, now: Any) -> Any:
        state = numpyro.sample("x", dist.Categorical(rows[state]), infer={"enumerate": "parallel"})
        numpyro.sample("y", dist.Bernoulli(tones[state]).to_event(1), obs=now)
        return state, None

    scan(step, jnp.zeros((), dtype=jnp.int32), notes)


def ar2(y: Any) -> None:
    """A second-order autoregression, by a scan that is conditioned."""
    const, first, second = (
        numpyro.sample(name, dist.Normal(0, 1)) for name in ("const", "a1", "a2")
    )
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))

    def step(carry: Any, _: Any) -> Any:
        y1, y2 = carry
        value = numpyro.sample("y", dist.Normal(const + first * y1 + second * y2, sigma))
        return (value, y1), None

    with handlers.condition(data={"y": jnp.asarray(y[2:])}):
        scan(step, (y[1], y[0]), jnp.arange(len(y) - 2))


def ar_with_gaps(y: Any, is_observed: Any) -> None:
    """An autoregression whose missing values are drawn in a scan."""
    slope = numpyro.sample("slope", dist.Uniform(-1, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))

    def step(before: Any, now: Any) -> Any:
        value = numpyro.sample("y", dist.Normal(slope * before, sigma), obs=now[0], obs_mask=now[1])
        return value, value

    scan(step, jnp.zeros(()), (y, is_observed))


def local_level(y: Any) -> None:
    """A level that walks, by the distribution of a random walk."""
    drift = numpyro.sample("drift", dist.HalfNormal(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    walk = numpyro.sample("walk", dist.GaussianRandomWalk(1.0, len(y)))
    numpyro.sample("y", dist.Normal(drift * walk, noise), obs=y)


def stochastic_volatility(returns: Any) -> None:
    """Returns whose log volatility walks."""
    step = numpyro.sample("sigma", dist.Exponential(50.0))
    s = numpyro.sample("s", dist.GaussianRandomWalk(step, len(returns)))
    nu = numpyro.sample("nu", dist.Exponential(0.1))
    numpyro.sample("r", dist.StudentT(nu, 0.0, jnp.exp(s)), obs=returns)


def hilbert_gp(x: Any, y: Any) -> None:
    """A Gaussian process, approximated by twenty functions of a basis."""
    scale = numpyro.sample("alpha", dist.HalfNormal(1))
    length = numpyro.sample("length", dist.InverseGamma(5, 5))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    f = hsgp_squared_exponential(jnp.asarray(x), scale, length, ell=4.5, m=20)
    numpyro.sample("y", dist.Normal(f, noise), obs=y)


def hilbert_gp_2d(x: Any, y: Any) -> None:
    """A Gaussian process of two inputs, approximated by 36 functions of a basis."""
    scale = numpyro.sample("alpha", dist.HalfNormal(1))
    length = numpyro.sample("length", dist.InverseGamma(5, 5))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    f = hsgp_squared_exponential(jnp.asarray(x), scale, length, ell=[2.0, 2.0], m=[6, 6])
    numpyro.sample("y", dist.Normal(f, noise), obs=y)


def sparse_interactions(x: Any, y: Any) -> None:
    """A regression with interactions by a kernel, of which few variables matter."""
    count = x.shape[1]
    kappa = numpyro.sample("kappa", dist.HalfCauchy(jnp.ones(count)).to_event(1))
    eta = numpyro.sample("eta", dist.HalfCauchy(0.5))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    scaled = x * kappa / (1 + kappa)
    products = scaled @ scaled.T
    covariance = (1 + products) ** 2 / 4 + eta**2 * products + 1.0
    covariance += (sigma**2 + 1e-4) * jnp.eye(len(y))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(y)), covariance), obs=y)


def network(x: Any, y: Any) -> None:
    """A network with two hidden layers of five units."""
    sizes = (x.shape[1], 5, 5, 1)
    z = x
    for k, shape in enumerate(pairwise(sizes)):
        weights = numpyro.sample(f"w{k}", dist.Normal(jnp.zeros(shape), 1.0).to_event(2))
        z = jnp.tanh(z @ weights) if k < 2 else z @ weights
    precision = numpyro.sample("prec_obs", dist.Gamma(3.0, 1.0))
    numpyro.sample("y", dist.Normal(z[:, 0], 1 / jnp.sqrt(precision)), obs=y)


def zero_inflated(x: Any, y: Any) -> None:
    """Counts with more zeros than Poisson's."""
    b = numpyro.sample("b", dist.Normal(0, 2).expand([x.shape[1]]).to_event(1))
    gate = numpyro.sample("gate", dist.Beta(1, 1))
    numpyro.sample("y", dist.ZeroInflatedPoisson(gate, jnp.exp(x @ b)), obs=y)


def ordinal(x: Any, y: Any) -> None:
    """Ordered categories with ordered cut points."""
    b = numpyro.sample("b", dist.Normal(0, 1))
    free = dist.Normal(0, 2).expand([3]).to_event(1)
    cuts = numpyro.sample(
        "c", dist.TransformedDistribution(free, dist.transforms.OrderedTransform())
    )
    numpyro.sample("y", dist.OrderedLogistic(b * x, cuts), obs=y)


def capture_recapture(captures: Any) -> None:
    """Survival and recapture of animals, whose states are enumerated (Cormack–Jolly–Seber)."""
    phi, rho = (numpyro.sample(name, dist.Uniform(0, 1)) for name in ("phi", "rho"))

    def step(carry: Any, now: Any) -> Any:
        first, alive = carry
        with numpyro.plate("animals", captures.shape[1], dim=-1), handlers.mask(mask=first):
            survives = dist.Bernoulli(probs=alive * phi)
            alive = numpyro.sample("z", survives, infer={"enumerate": "parallel"})
            numpyro.sample("y", dist.Bernoulli(probs=alive * rho), obs=now)
        return (first | now.astype(bool), alive), None

    count = captures.shape[1]
    start = (jnp.asarray(captures[0], bool), jnp.ones(count, jnp.int32))
    scan(step, start, captures[1:])


def dawid_skene(labels: Any) -> None:
    """Annotators who confuse three classes; the classes are enumerated."""
    count, annotators = labels.shape
    prior = 1 + 4 * jnp.eye(3)
    with numpyro.plate("annotator", annotators, dim=-2), numpyro.plate("class", 3, dim=-1):
        beta = numpyro.sample("beta", dist.Dirichlet(prior))
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.ones(3)))
    with numpyro.plate("item", count, dim=-1):
        c = numpyro.sample("c", dist.Categorical(pi), infer={"enumerate": "parallel"})
        with numpyro.plate("position", annotators, dim=-2):
            of_annotator = beta[jnp.arange(annotators)[:, None], c]
            numpyro.sample("y", dist.Categorical(of_annotator), obs=labels.T)


def mace(labels: Any) -> None:
    """Annotators who spam or do not; both that and the class are enumerated."""
    count, annotators = labels.shape
    with numpyro.plate("annotator", annotators, dim=-2):
        epsilon = numpyro.sample("epsilon", dist.Dirichlet(jnp.full(3, 10.0)))
        theta = numpyro.sample("theta", dist.Beta(0.5, 0.5))
    with numpyro.plate("item", count, dim=-1):
        c = numpyro.sample("c", dist.Categorical(jnp.ones(3) / 3), infer={"enumerate": "parallel"})
        with numpyro.plate("position", annotators, dim=-2):
            s = numpyro.sample("s", dist.Bernoulli(1 - theta), infer={"enumerate": "parallel"})
            honest = jax.nn.one_hot(c, 3)
            numpyro.sample(
                "y", dist.Categorical(jnp.where(s[..., None] == 0, honest, epsilon)), obs=labels.T
            )


def lda(documents: Any, words: Any) -> None:
    """Two topics of documents, enumerated for each word."""
    topics = numpyro.sample(
        "topics", dist.Dirichlet(jnp.array([[2.0, 2, 2, 1, 1, 1], [1, 1, 1, 2, 2, 2]])).to_event(1)
    )
    with numpyro.plate("document", int(documents.max()) + 1):
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(2)))
    with numpyro.plate("word", len(words)):
        topic = numpyro.sample(
            "topic", dist.Categorical(shares[documents]), infer={"enumerate": "parallel"}
        )
        numpyro.sample("w", dist.Categorical(topics[topic]), obs=words)


def funnel_reparametrised() -> None:
    """Neal's funnel in standardised coordinates."""
    y = numpyro.sample("y", dist.Normal(0, 3))
    config = {"x": TransformReparam()}
    with handlers.reparam(config=config), numpyro.plate("cells", 9):
        scale = dist.transforms.AffineTransform(0.0, jnp.exp(y / 2))
        numpyro.sample("x", dist.TransformedDistribution(dist.Normal(0, 1), scale))


def banana() -> None:
    """A curved density of two variables."""
    x = numpyro.sample("x", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(0.5 * x**2, 0.3))


class DualMoon(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """Two moons, as in NumPyro's example of neural transport."""

    support = constraints.real_vector

    def __init__(self) -> None:
        super().__init__(event_shape=(2,))

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Return zeros: there are no draws."""
        return jnp.zeros((*sample_shape, 2))

    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return the log density."""
        ring = 0.5 * ((jnp.linalg.norm(value, axis=-1) - 2) / 0.4) ** 2
        sides = -0.5 * ((value[..., :1] + jnp.array([-2.0, 2.0])) / 0.6) ** 2
        return -ring + jax.nn.logsumexp(sides, axis=-1)


def dual_moon() -> None:
    """A distribution of one's own, which has no draws."""
    numpyro.sample("x", DualMoon())


def gaussian_shells() -> None:
    """Two thin shells, by a factor under a uniform prior."""
    x = numpyro.sample("x", dist.Uniform(-6, 6).expand([2]).to_event(1))
    centres = jnp.array([[-3.5, 0.0], [3.5, 0.0]])
    radius = jnp.linalg.norm(x - centres, axis=-1)
    numpyro.factor("shells", jax.nn.logsumexp(dist.Normal(2.0, 0.1).log_prob(radius)))


def censored_survival(x: Any, time: Any, is_censored: Any) -> None:
    """Exponential times of survival, some of which are censored."""
    a, b = (numpyro.sample(name, dist.Normal(0, 2)) for name in ("a", "b"))
    rate = jnp.exp(a + b * x)
    with handlers.mask(mask=~is_censored):
        numpyro.sample("ended", dist.Exponential(rate), obs=time)
    with handlers.mask(mask=is_censored):
        numpyro.factor("running", -rate * time)


def lkj_covariance(y: Any) -> None:
    """A covariance by its scales and its correlations."""
    count = y.shape[1]
    scales = numpyro.sample("theta", dist.HalfCauchy(jnp.ones(count)).to_event(1))
    factor = numpyro.sample("L_omega", dist.LKJCholesky(count, 1.0))
    tril = scales[:, None] * factor
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(count), scale_tril=tril), obs=y)


def dirichlet_categorical(y: Any) -> None:
    """Shares of three categories."""
    p = numpyro.sample("p", dist.Dirichlet(jnp.ones(3)))
    numpyro.sample("y", dist.Categorical(p), obs=y)


def change_point(counts: Any) -> None:
    """A day on which the rate of messages changes."""
    alpha = 1 / counts.mean()
    before, after = (
        numpyro.sample(name, dist.Exponential(alpha)) for name in ("lambda1", "lambda2")
    )
    tau = numpyro.sample("tau", dist.Uniform(0, 1))
    day = jnp.arange(len(counts))
    rates = jnp.where(day < tau * len(counts), before, after)
    numpyro.sample("y", dist.Poisson(rates), obs=counts)


def truncated(y: Any) -> None:
    """A normal distribution that is cut off at a known bound."""
    loc = numpyro.sample("loc", dist.Normal(0, 3))
    scale = numpyro.sample("scale", dist.HalfNormal(2))
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", dist.TruncatedNormal(loc, scale, low=0.0), obs=y)


def von_mises(y: Any) -> None:
    """Directions around an unknown one."""
    config = {"loc": CircularReparam()}
    with handlers.reparam(config=config):
        loc = numpyro.sample("loc", dist.VonMises(0.0, 0.1))
    concentration = numpyro.sample("concentration", dist.Gamma(2, 0.5))
    numpyro.sample("y", dist.VonMises(loc, concentration), obs=y)


def von_mises_plain(y: Any) -> None:
    """The same without a reparametrisation."""
    loc = numpyro.sample("loc", dist.VonMises(0.0, 0.1))
    concentration = numpyro.sample("concentration", dist.Gamma(2, 0.5))
    numpyro.sample("y", dist.VonMises(loc, concentration), obs=y)


def zero_sum(group: Any, y: Any) -> None:
    """Effects of groups with the sum zero."""
    mu, sigma = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("sigma", dist.HalfNormal(1))
    effects = numpyro.sample("effects", dist.ZeroSumNormal(1.0, (int(group.max()) + 1,)))
    numpyro.sample("y", dist.Normal(mu + effects[group], sigma), obs=y)


def projected_normal(y: Any) -> None:
    """Directions in three dimensions around an unknown one."""
    config = {"direction": ProjectedNormalReparam()}
    with handlers.reparam(config=config):
        direction = numpyro.sample("direction", dist.ProjectedNormal(jnp.zeros(3)))
    numpyro.sample("y", dist.Normal(direction, 0.5).to_event(1), obs=y)


def copula_beta(y: Any) -> None:
    """NumPyro's Gaussian copula with margins in (0, 1)."""
    a = numpyro.sample("a", dist.LogNormal(1, 0.5).expand([2]).to_event(1))
    b = numpyro.sample("b", dist.LogNormal(1, 0.5).expand([2]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    numpyro.sample("y", dist.GaussianCopulaBeta(a, b, correlation_cholesky=factor), obs=y)


def proportions(x: Any, y: Any) -> None:
    """Two proportions, by an intercept and the effect of a campaign."""
    b = numpyro.sample("b", dist.Normal(0, 2).expand([2]).to_event(1))
    probs = numpyro.deterministic("probs", expit(b[0] + b[1] * x))
    numpyro.sample("y", dist.Bernoulli(probs), obs=y)


def baseball(hits: Any, at_bats: Any) -> None:
    """Batting averages, partially pooled by a Pareto prior."""
    m = numpyro.sample("m", dist.Uniform(0, 1))
    kappa = numpyro.sample("kappa", dist.Pareto(1.0, 1.5))
    with numpyro.plate("players", len(hits)):
        phi = numpyro.sample("phi", dist.Beta(m * kappa, (1 - m) * kappa))
        numpyro.sample("y", dist.Binomial(at_bats, probs=phi), obs=hits)


def baseball_logits(hits: Any, at_bats: Any) -> None:
    """The same with logits around a mean."""
    loc = numpyro.sample("loc", dist.Normal(-1, 1))
    scale = numpyro.sample("scale", dist.HalfCauchy(1))
    with numpyro.plate("players", len(hits)):
        alpha = numpyro.sample("alpha", dist.Normal(loc, scale))
        numpyro.sample("y", dist.Binomial(at_bats, logits=alpha), obs=hits)


def bradley_terry(winners: Any, losers: Any) -> None:
    """Strengths of players, by the games that they have won."""
    scale = numpyro.sample("scale", dist.HalfNormal(1))
    with numpyro.plate("player", int(max(winners.max(), losers.max())) + 1):
        strength = numpyro.sample("strength", dist.Normal(0, scale))
    logits = strength[winners] - strength[losers]
    numpyro.sample("won", dist.Bernoulli(logits=logits), obs=np.ones(len(winners)))


def softmax_regression(x: Any, y: Any) -> None:
    """Three categories, the first of which is the reference."""
    b = numpyro.sample("b", dist.Normal(0, 2).expand([x.shape[1], 2]).to_event(2))
    logits = jnp.concatenate([jnp.zeros((len(x), 1)), x @ b], axis=1)
    numpyro.sample("y", dist.Categorical(logits=logits), obs=y)


def robust_regression(x: Any, y: Any) -> None:
    """A line through data with outliers."""
    a, b = (numpyro.sample(name, dist.Normal(0, 5)) for name in ("a", "b"))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(1))
    nu = numpyro.sample("nu", dist.Gamma(2, 0.1))
    numpyro.sample("y", dist.StudentT(nu, a + b * x, sigma), obs=y)


def quantile_regression(x: Any, y: Any) -> None:
    """The line of the upper quartile."""
    a, b = (numpyro.sample(name, dist.Normal(0, 5)) for name in ("a", "b"))
    sigma, odds = numpyro.sample("sigma", dist.HalfNormal(1)), np.sqrt(0.25 / 0.75)
    numpyro.sample("y", dist.AsymmetricLaplace(a + b * x, sigma, odds), obs=y)


def holt_winters(y: Any) -> None:
    """A level, a trend and a season of four, smoothed exponentially."""
    smooth = numpyro.sample("smooth", dist.Beta(1, 2).expand([3]).to_event(1))
    level = numpyro.sample("level", dist.Normal(5, 5))
    trend = numpyro.sample("trend", dist.Normal(0, 1))
    season = numpyro.sample("season", dist.Normal(0, 2).expand([4]).to_event(1))
    noise = numpyro.sample("noise", dist.HalfNormal(2))

    def step(carry: Any, now: Any) -> Any:
        level, trend, season = carry
        mean = level + trend + season[0]
        numpyro.sample("y", dist.Normal(mean, noise), obs=now)
        next_level = smooth[0] * (now - season[0]) + (1 - smooth[0]) * (level + trend)
        next_trend = smooth[1] * (next_level - level) + (1 - smooth[1]) * trend
        last = smooth[2] * (now - level - trend) + (1 - smooth[2]) * season[0]
        return (next_level, next_trend, jnp.append(season[1:], last)), None

    scan(step, (level, trend, season), y)


def seasonal_global_trend(y: Any) -> None:
    """A multiplicative season and a trend that is a power of the level (SGT)."""
    scale = float(y.max()) / 150
    nu = numpyro.sample("nu", dist.Uniform(2, 20))
    powers = numpyro.sample("pow", dist.Uniform(0, 1).expand([2]).to_event(1))
    smooth, seasonal = (numpyro.sample(name, dist.Beta(1, 2)) for name in ("level_sm", "s_sm"))
    trend = numpyro.sample("trend", dist.Cauchy(0, scale))
    sigma, offset = (numpyro.sample(name, dist.HalfCauchy(scale)) for name in ("sigma", "offset"))
    season = numpyro.sample("season", dist.LogNormal(0, 0.3).expand([4]).to_event(1))

    def step(carry: Any, now: Any) -> Any:
        level, season = carry
        mean = jnp.clip((level + trend * level ** powers[0]) * season[0], 1e-3)
        numpyro.sample("y", dist.StudentT(nu, mean, sigma * mean ** powers[1] + offset), obs=now)
        next_level = jnp.clip(smooth * now / season[0] + (1 - smooth) * level, 1e-3)
        last = seasonal * now / next_level + (1 - seasonal) * season[0]
        return (next_level, jnp.append(season[1:], last)), None

    scan(step, (jnp.asarray(y[0]), season), y[1:])


def admissions(department: Any, male: Any, applied: Any, admitted: Any) -> None:
    """Admissions by department, with correlated intercepts and slopes."""
    mean = numpyro.sample("mean", dist.Normal(0, 1).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.HalfCauchy(2).expand([2]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
    with numpyro.plate("department", int(department.max()) + 1):
        of_one = dist.MultivariateNormal(jnp.zeros(2), scale_tril=scale[:, None] * factor)
        effects = numpyro.sample("effects", of_one)
    lines = mean + effects
    logits = lines[department, 0] + lines[department, 1] * male
    numpyro.sample("y", dist.Binomial(applied, logits=logits), obs=admitted)


def imputation(age: Any, is_observed: Any, x: Any, y: Any) -> None:
    """A logistic regression with a covariate that is missing in some rows."""
    mu, sigma = numpyro.sample("mu", dist.Normal(0, 1)), numpyro.sample("sigma", dist.HalfNormal(1))
    with numpyro.plate("row", len(age)):
        drawn = dist.Normal(mu, sigma)
        complete = numpyro.sample("age", drawn, obs=age, obs_mask=is_observed)
    a, b, c = (numpyro.sample(name, dist.Normal(0, 1)) for name in "abc")
    numpyro.sample("y", dist.Bernoulli(logits=a + b * x + c * complete), obs=y)


def conditional_autoregression(adjacency: Any, y: Any) -> None:
    """Counts of areas, whose rates are like those of their neighbours."""
    tau = numpyro.sample("tau", dist.Gamma(2, 1))
    alpha = numpyro.sample("alpha", dist.Uniform(0, 0.99))
    level = numpyro.sample("level", dist.Normal(0, 2))
    phi = numpyro.sample("phi", dist.CAR(jnp.zeros(len(y)), alpha, tau, adjacency))
    numpyro.sample("y", dist.Poisson(jnp.exp(level + phi)), obs=y)


def gamma_poisson(y: Any) -> None:
    """A rate with its conjugate prior, and its concentration unknown."""
    alpha, beta = (numpyro.sample(name, dist.HalfNormal(5)) for name in ("alpha", "beta"))
    numpyro.sample("y", dist.GammaPoisson(alpha, beta), obs=y)


def item_response(student: Any, item: Any, y: Any) -> None:
    """Abilities of students, and difficulties and discriminations of items."""
    with numpyro.plate("student", int(student.max()) + 1):
        ability = numpyro.sample("ability", dist.Normal(0, 1))
    with numpyro.plate("item", int(item.max()) + 1):
        difficulty = numpyro.sample("difficulty", dist.Normal(0, 2))
        slope = numpyro.sample("slope", dist.LogNormal(0, 0.5))
    logits = slope[item] * (ability[student] - difficulty[item])
    numpyro.sample("y", dist.Bernoulli(logits=logits), obs=y)


def simulate_surface() -> tuple[Any, Any]:
    """Return 80 noisy values of a function of two inputs."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(80, 2))
    return x, np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.3 * rng.normal(size=80)


def _make() -> dict[str, Program]:
    """Return the programs by name, with simulated data."""
    normal, uniform = RNG.normal, RNG.uniform
    of_gallery = {
        name: gallery.PROGRAMS[name]
        for name in (
            "linear",
            "logistic",
            "counts",
            "schools, centred",
            "schools",
            "schools, reparametrised",
            "Gaussian process",
            "mixture, ordered",
            "mixture, enumerated",
            "predator and prey",
            "copula",
            "censored",
            "funnel",
            "Dirichlet-multinomial",
        )
    }
    x = normal(size=(100, 3))
    u = normal(size=100)
    wide = normal(size=(60, 20))
    county = np.repeat(np.arange(25), 8)
    floor = (uniform(size=200) < 0.3).astype(float)
    states = [0]
    for _ in range(149):
        states.append(states[-1] if uniform() < 0.8 else int(RNG.integers(3)))
    hidden = np.array(states)
    words = np.where(uniform(size=150) < 0.7, hidden, RNG.integers(6, size=150))[:60]
    notes = (uniform(size=(80, 5)) < np.array([0.2, 0.7])[hidden[:80] % 2, None]).astype(int)
    series = np.zeros(120)
    for k in range(2, 120):
        series[k] = 0.2 + 0.5 * series[k - 1] + 0.3 * series[k - 2] + 0.5 * normal()
    quarters = 20 + 0.3 * np.arange(60) + np.tile([3.0, -1, -3, 1], 15) + normal(size=60)
    t = np.linspace(-3, 3, 60)
    votes = np.digitize(u + RNG.logistic(size=100), [-1.0, 0.5, 2.0])
    alive = np.cumprod(np.vstack([np.ones((1, 60)), uniform(size=(6, 60)) < 0.8]), axis=0)
    captures = (alive * (uniform(size=(7, 60)) < 0.6)).astype(int)
    captures[0] = 1
    true = RNG.integers(3, size=50)
    labels = np.where(uniform(size=(50, 5)) < 0.75, true[:, None], RNG.integers(3, size=(50, 5)))
    documents = np.repeat(np.arange(10), 30)
    topic = uniform(size=300) < np.repeat(uniform(size=10), 30)
    of_topic = np.where(topic, RNG.integers(3, size=300), 3 + RNG.integers(3, size=300))
    times = RNG.exponential(1 / np.exp(-0.5 + 0.5 * u))
    group = np.repeat(np.arange(6), 20)
    direction = np.array([0.6, 0.0, 0.8])
    at_bats = np.full(18, 45)
    hits = RNG.binomial(at_bats, RNG.beta(20, 55, size=18))
    strength = normal(size=8)
    first, second = RNG.integers(8, size=(2, 200))
    second = np.where(first == second, (second + 1) % 8, second)
    wins = uniform(size=200) < expit(strength[first] - strength[second])
    logits = np.stack([np.zeros(100), x[:, 0], -x[:, 1]], axis=1) + RNG.gumbel(size=(100, 3))
    grid = np.zeros((16, 16))
    for k in range(16):
        for n in (k + 1) * (k % 4 < 3), (k + 4) * (k < 12):
            if n:
                grid[k, n] = grid[n, k] = 1
    department, male = np.repeat(np.arange(6), 2), np.tile([0.0, 1.0], 6)
    applied = RNG.integers(50, 500, size=12)
    student, item = (
        part.ravel() for part in np.meshgrid(np.arange(30), np.arange(10), indexing="ij")
    )
    right = uniform(size=300) < expit(normal(size=30)[student] - normal(size=10)[item])
    seen = uniform(size=100) < 0.8
    return of_gallery | {
        "horseshoe": Program(
            regularised_horseshoe, (wide, wide[:, :2] @ [2.0, -1.5] + 0.5 * normal(size=60))
        ),
        "radon": Program(
            radon,
            (county, floor, normal(1, 0.3, size=25)[county] - 0.7 * floor + 0.7 * normal(size=200)),
        ),
        "hidden Markov, words": Program(semi_supervised_hmm, (words,), is_discrete=True),
        "hidden Markov, notes": Program(multi_hmm, (notes,), is_discrete=True),
        "AR(2)": Program(ar2, (series,)),
        "AR with gaps": Program(ar_with_gaps, (series, np.arange(120) % 6 != 0)),
        "local level": Program(
            local_level, (np.cumsum(0.5 * normal(size=60)) + 0.5 * normal(size=60),)
        ),
        "stochastic volatility": Program(
            stochastic_volatility,
            (0.1 * normal(size=120) * np.exp(np.cumsum(0.05 * normal(size=120))),),
        ),
        "Hilbert-space GP": Program(hilbert_gp, (t, np.sin(2 * t) + 0.2 * normal(size=60))),
        "Hilbert-space GP, 2-d": Program(hilbert_gp_2d, simulate_surface()),
        "sparse interactions": Program(
            sparse_interactions,
            (wide[:, :8], wide[:, 0] * wide[:, 1] + wide[:, 0] + 0.3 * normal(size=60)),
        ),
        "network": Program(
            network, (np.stack([t**0, t, t**2], axis=1), np.tanh(t) + 0.2 * normal(size=60))
        ),
        "zero-inflated Poisson": Program(
            zero_inflated, (x, RNG.poisson(np.exp(0.5 * x[:, 0])) * (uniform(size=100) < 0.7))
        ),
        "ordinal": Program(ordinal, (u, votes)),
        "capture-recapture": Program(capture_recapture, (captures,), is_discrete=True),
        "Dawid-Skene": Program(dawid_skene, (labels,), is_discrete=True),
        "MACE": Program(mace, (labels,), is_discrete=True),
        "LDA": Program(lda, (documents, of_topic), is_discrete=True),
        "funnel, reparametrised": Program(funnel_reparametrised),
        "banana": Program(banana),
        "dual moon": Program(dual_moon),
        "Gaussian shells": Program(gaussian_shells),
        "censored survival": Program(censored_survival, (u, np.minimum(times, 3.0), times > 3)),
        "LKJ covariance": Program(
            lkj_covariance, (normal(size=(100, 4)) @ np.tril(0.5 + uniform(size=(4, 4))).T,)
        ),
        "Dirichlet-categorical": Program(dirichlet_categorical, (true,)),
        "change point": Program(
            change_point, (RNG.poisson(np.where(np.arange(70) < 40, 18.0, 23.0)),)
        ),
        "truncated": Program(truncated, (np.abs(normal(1.0, 1.0, size=100)),)),
        "von Mises, reparametrised": Program(von_mises, (RNG.vonmises(0.5, 3.0, size=60),)),
        "von Mises": Program(von_mises_plain, (RNG.vonmises(0.5, 3.0, size=60),)),
        "zero sum": Program(zero_sum, (group, normal(size=6)[group] + normal(size=120))),
        "projected normal": Program(projected_normal, (direction + 0.5 * normal(size=(10, 3)),)),
        "copula, beta": Program(
            copula_beta,
            (np.clip(expit(normal(size=(80, 2)) @ np.array([[1, 0.5], [0, 0.8]])), 0.01, 0.99),),
        ),
        "proportions": Program(
            proportions,
            ((u > 0).astype(float), (uniform(size=100) < np.where(u > 0, 0.5, 0.3)).astype(int)),
        ),
        "baseball": Program(baseball, (hits, at_bats)),
        "baseball, logits": Program(baseball_logits, (hits, at_bats)),
        "Bradley-Terry": Program(
            bradley_terry, (np.where(wins, first, second), np.where(wins, second, first))
        ),
        "softmax regression": Program(softmax_regression, (x, logits.argmax(axis=1))),
        "robust regression": Program(
            robust_regression, (u, 1 + 2 * u + 0.5 * RNG.standard_t(3, size=100))
        ),
        "quantile regression": Program(quantile_regression, (u, 1 + u + normal(size=100))),
        "Holt-Winters": Program(holt_winters, (quarters,)),
        "seasonal global trend": Program(seasonal_global_trend, (quarters,)),
        "admissions": Program(
            admissions,
            (department, male, applied, RNG.binomial(applied, expit(normal(size=6))[department])),
        ),
        "imputation": Program(
            imputation,
            (
                np.where(seen, x[:, 0], 0.0),
                seen,
                x[:, 1],
                (uniform(size=100) < expit(x[:, 0] - x[:, 1])).astype(int),
            ),
        ),
        "CAR": Program(
            conditional_autoregression, (grid, RNG.poisson(np.exp(1 + 0.3 * normal(size=16))))
        ),
        "gamma-Poisson": Program(gamma_poisson, (RNG.poisson(RNG.gamma(3.0, 1.0, size=80)),)),
        "item response": Program(item_response, (student, item, right.astype(int))),
    }


PROGRAMS = _make()


def print_models(options: Any) -> None:
    """Print the table, and the reasons."""
    columns = "chosen", "check", "CPU seconds", "NumPyro's", "NumPyro's check", "difference"
    table, reasons, is_raised = Table("program", *columns), [], False
    for name in options.programs or PROGRAMS:
        arguments = ("bench_numpyro_models", name, 1)
        ours, theirs = run_apart(run_ours, *arguments), run_apart(run_numpyro, *arguments)
        verdicts = [
            ("passes" if one["passes"] else "fails") if "passes" in one else next(iter(one))
            for one in (ours, theirs)
        ]
        both = verdicts == ["passes", "passes"]
        difference = describe_errors(ours["moments"], theirs["moments"])[0] if both else "–"
        seconds = [one["cpu"][0] for one in (ours, theirs)]
        table.row(name, ours.get("chosen", "–"), verdicts[0], *seconds, verdicts[1], difference)
        if verdicts[0] != "passes":
            reason = ours.get("refused") or ours.get("raised") or ours["problems"]
            reasons.append(f"{name} {verdicts[0]}: {reason}")
        is_raised |= verdicts[0] == "raised"
    print(*reasons, sep="\n")
    if is_raised:
        sys.exit(1)


if __name__ == "__main__":
    run_tables(__doc__, (print_models,), programs=(), needs_data=False)

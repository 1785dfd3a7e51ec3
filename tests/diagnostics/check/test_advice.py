"""Advice names the sites that it is about, is not given where it is void, and helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.contrib.hsgp.approximation import hsgp_squared_exponential
from numpyro.distributions import constraints
from numpyro.infer import MCMC, NUTS
from numpyro.infer.reparam import LocScaleReparam
from support.posteriors import Figures, Record, SamplerRecord
from support.raising import raises
from support.registries import SAMPLERS
from support.targets import centred_schools

import bpa_ppl as bpa
from bpa_ppl import Draws, check
from bpa_ppl.diagnostics.check.advice import (
    ADVICE,
    find_advice,
    find_apart,
    find_exchanged,
    find_mirrored,
)

RNG = np.random.default_rng(0)
TWO = np.concatenate([RNG.normal(-2, 1, size=60), RNG.normal(2, 1, size=90)])
COUNTS = RNG.poisson(np.where(np.arange(70) < 40, 18.0, 23.0))
REACHED = 0.7 + 0.1 * np.random.default_rng(1).normal(size=20)
SQUARES = 4 + 0.3 * RNG.normal(size=20)
STEPS = np.cumsum(RNG.normal(size=12))
LAST = {"target_accept": 0.999, "warmup": 1000}


def draws_of(
    values: dict[str, np.ndarray],
    statistics: dict[str, np.ndarray] | None = None,
    *,
    reparametrisations: dict[str, str] | None = None,
    settings: dict[str, Any] | None = None,
    sampler: str = "nuts",
    **figures: Any,
) -> Draws:
    record = Record(
        sampler=SamplerRecord(name=sampler, settings=settings or {}),
        figures=Figures(**figures),
        reparametrisations=reparametrisations or {},
    )
    return Draws(values, statistics=statistics or {}, sampled=tuple(values), record=record)


def advice_on(draws: Draws, name: str) -> str:
    return next(one.advice for one in check(draws).failures if one.name == name)


@pytest.mark.parametrize("low_bfmi", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_divergences_name_centred_sites_or_none(low_bfmi: bool, centred: bool) -> None:
    """A low BFMI shows that steps do not help; without a centred site, only steps may."""
    diverging = np.arange(4000).reshape(4, 1000) < 7
    energy = RNG.normal(size=(4, 1000))
    energy = energy.cumsum(axis=1) if low_bfmi else energy
    values = {"theta": RNG.normal(size=(4, 1000, 2))}
    found = {"theta": "LocScaleReparam(0)"} if centred else {}
    given = "write theta non-centred (numpyro.infer.reparam.LocScaleReparam(0))"
    for settings in ({"target_accept": 0.95, "warmup": 500}, LAST):
        statistics = {"diverging": diverging, "energy": energy}
        draws = draws_of(values, statistics, reparametrisations=found, settings=settings)
        steps = "raise target_accept (nuts:target_accept=0.99,warmup=1000)"
        known = "" if settings is LAST else steps, given if centred else ""
        expected = given if centred and low_bfmi else "; or ".join(filter(None, known))
        advice = advice_on(draws, "divergences")
        assert advice == ": ".join(filter(None, ("7 divergent transitions", expected)))


def test_a_jump_names_its_sites_and_no_sampler_that_was_tried() -> None:
    slow = {"tau": np.random.default_rng(2).normal(size=(4, 1000)).cumsum(axis=1)}
    for sampler, tried, words in (
        ("nuts", (), "or use auto"),
        ("nuts", ("imh", "nuts", "rwm"), ""),
        ("rwm", (), "or use auto"),
    ):
        draws = draws_of(slow, sampler=sampler, tried=tried, jumps=4, jump_sites=("tau",))
        for finding in check(draws).failures:
            assert "the density jumps at tau" in finding.advice
            assert "use nuts" not in finding.advice
            assert finding.advice.endswith("or use auto") == bool(words)


def test_more_draws_are_advised_until_they_do_not_help() -> None:
    """A chain of 1,000 may be too short; a long one of few effective draws is not the remedy."""
    for count, shortage, more in ((1000, 5, True), (1000, 40, False), (4000, 5, False)):
        values = {"x": np.zeros((4, count))}
        for sampler in ("rwm", "imh"):
            settings = {"draws": count, "scale": 2.38}
            advice = find_advice(draws_of(values, settings=settings, sampler=sampler))
            assert ("draw more (" in advice.more_draws(shortage)) == more
            assert "sampler that mixes better (nuts)" in advice.more_draws(shortage)
            draws = draws_of(values, settings=settings, sampler=sampler, tried=("nuts", sampler))
            assert "nuts" not in find_advice(draws).more_draws(shortage)
            assert "nuts" not in find_advice(draws).other_steps(larger=True)


def test_what_differs_between_modes_is_named() -> None:
    chains = np.arange(4)[:, None] % 2 == 1
    noise = partial(RNG.normal, 0.0, 0.3)
    low, high = (np.where(chains, one, -one) + noise(size=(4, 500)) for one in (3.0, -3.0))
    means = np.stack([low, high], axis=-1)
    share = 0.5 + means / 40
    share /= share.sum(axis=-1, keepdims=True)
    matrix = np.stack([means, means], axis=-1)
    still = noise(size=(4, 500, 2))
    assert find_exchanged(Draws({"m": means, "s": share, "x": still})) == ["m"]
    assert find_exchanged(Draws({"s": share, "x": still})) == ["s"]
    assert find_exchanged(Draws({"m": matrix, "x": still})) == ["m"]
    assert find_exchanged(Draws({"low": low, "high": high, "x": still[..., 0]})) == ["low", "high"]
    ordered = np.sort(means, axis=-1)
    assert find_exchanged(Draws({"m": ordered + np.where(chains, 9, 0)[..., None]})) == []
    assert find_exchanged(Draws({"x": still})) == []
    assert find_mirrored(Draws({"low": low, "x": still})) == ["low"]
    assert find_mirrored(Draws({"x": np.abs(low)})) == []
    assert find_apart(Draws({"low": low, "x": still})) == ["low"]
    assert find_apart(Draws({"x": still})) == []
    assert "labels of m: order" in advice_on(draws_of({"m": means}), "R-hat")
    assert "the sign of low differs" in advice_on(draws_of({"low": low}), "R-hat")
    far = advice_on(draws_of({"far": low + 9, "x": still}), "R-hat")
    assert far.endswith(
        "the chains differ in far: if only one mode makes sense, let the prior exclude the others"
    )


def test_an_energy_that_mixes_slowly_is_not_said_to_need_shorter_steps() -> None:
    """Its change from draw to draw is that of the momentum, of any number of steps."""
    energy = np.random.default_rng(4).normal(size=(4, 1000)).cumsum(axis=1)
    values = {"theta": RNG.normal(size=(4, 1000, 2))}
    for found, remedy in (({}, ""), ({"theta": "LocScaleReparam(0)"}, "write theta non-centred")):
        draws = draws_of(values, {"energy": energy}, reparametrisations=found)
        advice = advice_on(draws, "BFMI")
        assert ": " + remedy in advice if remedy else ": " not in advice
        assert "steps" not in advice


def padded(mask_levels: bool) -> Callable[[], None]:
    """A walk of twelve steps, with eight more as padding."""
    values, real = np.concatenate([STEPS, np.zeros(8)]), np.arange(20) < 12

    def step(before: Any, now: Any) -> Any:
        value, is_real = now
        with handlers.mask(mask=is_real if mask_levels else True):
            level = numpyro.sample("level", dist.Normal(before, 1.0))
        with handlers.mask(mask=is_real):
            numpyro.sample("y", dist.Normal(level, 1.0), obs=value)
        return level, None

    return lambda: scan(step, jnp.zeros(()), (values, real)) and None


def test_padding_of_a_scan_is_not_called_missing() -> None:
    match = "8 of 20 values of level.* mask only what is observed"
    with raises(bpa.UsageError, "not-supported", parameter="model", match=match) as caught:
        bpa.sample(padded(mask_levels=True))
    assert "missing" not in str(caught.value)


@pytest.mark.slow
def test_a_scan_that_masks_only_what_is_observed_is_sampled() -> None:
    """The last real level is that of a Kalman filter."""
    data = bpa.sample(padded(mask_levels=False), seed=1)
    assert check(data), str(check(data))
    mean, variance = 0.0, 0.0
    for value in STEPS:
        gain = (variance + 1) / (variance + 2)
        mean, variance = mean + gain * (value - mean), gain
    level = data["posterior"]["level"].values[..., 11]
    assert abs(level.mean() - mean) < 5 * np.sqrt(variance / 400)


def mixture(ordered: bool) -> None:
    share = numpyro.sample("share", dist.Beta(2, 2))
    free = dist.Normal(0, 5).expand([2]).to_event(1)
    transform = dist.transforms.OrderedTransform()
    prior = dist.TransformedDistribution(free, transform) if ordered else free
    means = numpyro.sample("means", prior)
    sigma = numpyro.sample("sigma", dist.HalfNormal(2))
    parts = dist.Categorical(probs=jnp.stack([share, 1 - share])[None])
    numpyro.sample("y", dist.MixtureSameFamily(parts, dist.Normal(means[None], sigma)), obs=TWO)


def change_point(is_discrete: bool) -> None:
    before, after = (numpyro.sample(n, dist.Exponential(0.05)) for n in ("before", "after"))
    if is_discrete:
        day = numpyro.sample("tau", dist.DiscreteUniform(0, 69), infer={"enumerate": "parallel"})
    else:
        day = 70 * numpyro.sample("tau", dist.Uniform(0, 1))
    rates = jnp.where(np.arange(70) < jnp.expand_dims(day, -1), before, after)
    numpyro.sample("y", dist.Poisson(rates).to_event(1), obs=COUNTS)


def square(prior: dist.Distribution) -> None:
    x = numpyro.sample("x", prior)
    numpyro.sample("y", dist.Normal(x**2, 0.3), obs=SQUARES)


def angle(top: float) -> None:
    """A throw with an angle reaches as far as one with what is left to a right angle."""
    thrown = numpyro.sample("angle", dist.Uniform(0, top))
    numpyro.sample("y", dist.Normal(jnp.sin(2 * thrown), 0.1), obs=REACHED)


def bounded(in_support: bool) -> None:
    """The bound of uniform draws, of which the largest of twenty is 3."""
    prior = dist.TruncatedNormal(0, 4, low=3.0) if in_support else dist.HalfNormal(4)
    bound = numpyro.sample("bound", prior)
    numpyro.factor("data", jnp.where(bound > 3.0, -20 * jnp.log(bound), -jnp.inf))


def funnel() -> None:
    log_scale = numpyro.sample("log_scale", dist.Normal(0, 3))
    numpyro.sample("x", dist.Normal(0, jnp.exp(log_scale / 2)).expand([9]).to_event(1))


def flat(is_proper: bool) -> None:
    """Nothing is observed of x."""
    improper = dist.ImproperUniform(constraints.real, (), ())
    numpyro.sample("x", dist.Normal(0, 10) if is_proper else improper)
    numpyro.sample("z", dist.Normal(0, 1))


#: A program with the sampler that fails, a part of the advice, and the program that follows it.
FOLLOWED: dict[str, tuple[Callable[[], None], str, str, Callable[[], None]]] = {
    "centred": (
        centred_schools,
        "nuts",
        "write theta non-centred (numpyro.infer.reparam.LocScaleReparam(0))",
        handlers.reparam(centred_schools, config={"theta": LocScaleReparam(0)}),
    ),
    "labels": (partial(mixture, False), "auto", "labels of means: order", partial(mixture, True)),
    "jump": (
        partial(change_point, False),
        "nuts",
        "the density jumps at tau",
        partial(change_point, True),
    ),
    "bound": (
        partial(bounded, False),
        "nuts",
        "the density jumps at bound",
        partial(bounded, True),
    ),
    "modes": (
        partial(angle, np.pi / 2),
        "auto",
        "the chains differ in angle: if only one mode makes sense, let the prior exclude",
        partial(angle, np.pi / 4),
    ),
    "funnel": (
        funnel,
        "nuts",
        "write x non-centred (numpyro.infer.reparam.LocScaleReparam(0))",
        handlers.reparam(funnel, config={"x": LocScaleReparam(0)}),
    ),
    "improper": (
        partial(flat, False),
        "nuts",
        "draws reach",
        partial(flat, True),
    ),
    "sign": (
        partial(square, dist.Normal(0, 3)),
        "auto",
        "the sign of x differs between chains: let the prior keep one",
        partial(square, dist.HalfNormal(3)),
    ),
}


@pytest.fixture
def broadcasting() -> Iterator[None]:
    """Programs of users broadcast, in threads as well, which no context of JAX reaches."""
    strict = jax.config.jax_numpy_rank_promotion
    jax.config.update("jax_numpy_rank_promotion", "allow")
    yield
    jax.config.update("jax_numpy_rank_promotion", strict)


@pytest.mark.slow
@pytest.mark.usefixtures("broadcasting")
@pytest.mark.parametrize("case", FOLLOWED)
def test_a_program_that_follows_the_advice_passes(case: str) -> None:
    program, sampler, advice, followed = FOLLOWED[case]
    failures = check(bpa.sample(program, sampler=sampler, seed=1)).failures
    assert any(advice in one.advice for one in failures), [one.advice for one in failures]
    report = check(bpa.sample(followed, seed=1))
    assert report, str(report)


def plain() -> None:
    numpyro.sample("x", dist.Normal(0, 1).expand([3]).to_event(1))


def heavy() -> None:
    numpyro.sample("x", dist.StudentT(4.0).expand([30]).to_event(1))


def far() -> None:
    x = numpyro.sample("x", dist.Normal(0, 30))
    numpyro.sample("y", dist.Normal(x, 1), obs=40.0)


def ring() -> None:
    x = numpyro.sample("x", dist.Normal(0, 3).expand([2]).to_event(1))
    numpyro.factor("radius", -(((jnp.sqrt((x**2).sum()) - 3) / 0.02) ** 2) / 2)


def neck() -> None:
    """A funnel of a normal distribution and a factor, which has no site of a location and scale."""
    v = numpyro.sample("v", dist.Normal(0, 1.5))
    x = numpyro.sample("x", dist.Normal(0, 1))
    numpyro.factor("of_x", dist.Normal(0, jnp.exp(v / 2)).log_prob(x) + x**2 / 2)


def tilted() -> None:
    scales = np.array([1.0, 1.0, 1.0, 50.0])
    correlation = np.full((4, 4), 0.95) + 0.05 * np.eye(4)
    covariance = jnp.asarray(correlation * np.outer(scales, scales))
    numpyro.sample("x", dist.MultivariateNormal(jnp.zeros(4), covariance))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "sampler", "words", "followed"),
    [
        (plain, "nuts:draws=100", "draw more", ""),
        (plain, "imh:draws=100", "draw more", ""),
        (plain, "rwm:draws=200,thinning=1", "draw more", ""),
        (plain, "rwm:draws=200,thinning=1", "use a sampler that mixes better (nuts)", "nuts"),
        (plain, "rwm:scale=30", "lower scale", ""),
        (plain, "rwm:scale=30", "use nuts", "nuts"),
        (plain, "rwm:scale=0.1", "raise scale", ""),
        (tilted, "rwm-isotropic", "use rwm", "rwm"),
        (partial(change_point, False), "rwm", "the density jumps at tau", "auto"),
        (plain, "laplace:draws=100", "draw more", ""),
        (heavy, "laplace", "use a Markov-chain sampler (nuts, rwm)", "nuts"),
        (plain, "laplace:draws=50", "use a Markov-chain sampler (nuts, rwm)", "rwm"),
        (heavy, "imh", "use nuts", "nuts"),
        (plain, "numpyro:BarkerMH,warmup=1", "use nuts", "nuts"),
        (far, "rwm-isotropic:warmup=0,proposal_variance=6,draws=2000", "raise warmup", ""),
        (ring, "nuts:target_accept=0.4", "let the warm-up find it", ""),
        (ring, "nuts:target_accept=0.4", "take shorter steps", ""),
        (ring, "nuts:target_accept=0.4", "raise target_accept", ""),
        (
            neck,
            "nuts:target_accept=0.99,warmup=1000,draws=2000",
            "raise target_accept",
            "nuts:target_accept=0.999,warmup=1000,draws=2000",
        ),
    ],
)
def test_settings_and_samplers_that_are_advised_help(
    program: Callable[[], None], sampler: str, words: str, followed: str
) -> None:
    """Settings are followed as they stand in brackets."""
    with jax.numpy_rank_promotion("allow"):  # programs of users broadcast
        failures = check(bpa.sample(program, sampler=sampler, seed=1)).failures
        advice = next(one.advice for one in failures if words in one.advice)
        if not followed:
            (followed,) = re.findall(rf"{words} \(([^)]+)\)", advice)
        assert followed in advice
        report = check(bpa.sample(program, sampler=followed, seed=1))
    assert report, str(report)


def walk(scale: float, start: float, burn_in: int = 0, draws: int = 1000, thin: int = 1) -> Any:
    """Four chains of random-walk Metropolis of N(0, 1), as another program may draw them."""
    rng = np.random.default_rng(0)
    x, kept = np.full(4, start), np.empty((burn_in + draws, 4))
    for draw in range(len(kept)):
        for _ in range(thin):
            proposed = x + scale * rng.normal(size=4)
            accepted = np.log(rng.random(4)) < (x**2 - proposed**2) / 2
            x = np.where(accepted, proposed, x)
        kept[draw] = x
    return kept[burn_in:].T


SOUND = walk(2.4, 0.0, thin=10)
SLOW = walk(1.5, 0.0, draws=4000, thin=2)
PADDED = np.where((np.arange(1000) < 700) | (np.arange(4)[:, None] > 0), SOUND, SOUND[0, 699])


@pytest.mark.parametrize(
    ("values", "advice", "followed"),
    [
        (
            walk(2.4, 30.0),
            "raise warmup (burn-in), then draws",
            walk(2.4, 30.0, burn_in=200, draws=3000),
        ),
        (walk(300.0, 0.0, thin=10), "take smaller steps", SOUND),
        (np.where(np.arange(4)[:, None] == 1, 9.0, SOUND), "start the chain elsewhere", SOUND),
        (walk(2.4, 0.0, draws=200), "draw more", walk(2.4, 0.0, draws=3000)),
        (PADDED, "leave out what was padded", PADDED[:, :700]),
        (SOUND[:3, :3], "draw at least 1000", SOUND),
        (1e80 * SOUND, "needs a larger unit", SOUND),
        (1e-80 * SOUND, "needs a smaller unit", SOUND),
        (
            SLOW.T.reshape(4, 4000),
            "transpose before you reshape, by draws.swapaxes(0, 1)",
            SLOW.T.swapaxes(0, 1).reshape(4, 4000),
        ),
        (SLOW[[0, 1, 2, 0]], "keep each run once", SLOW[:3]),
    ],
)
def test_advice_on_draws_of_other_programs_helps(
    values: np.ndarray, advice: str, followed: np.ndarray
) -> None:
    report = check({"x": values})
    assert any(advice in one.advice for one in report.failures), str(report)
    assert check({"x": followed}), str(check({"x": followed}))


@pytest.mark.slow
def test_labels_are_left_by_functions_that_do_not_depend_on_them() -> None:
    """Such as the smaller and the larger mean of two."""

    def program() -> None:
        means = numpyro.sample("means", dist.Normal(0, 5).expand([2]).to_event(1))
        numpyro.deterministic("sorted", jnp.sort(means))
        parts = dist.Categorical(probs=jnp.full((1, 2), 0.5))
        numpyro.sample("y", dist.MixtureSameFamily(parts, dist.Normal(means[None], 1)), obs=TWO)

    data = bpa.sample(program, seed=1)
    advice = check(data).failures[0].advice
    assert "labels of means: order them" in advice
    assert advice.endswith("or use functions that do not depend on labels")
    assert check(data, var_names=["sorted"]), str(check(data, var_names=["sorted"]))


def weighed(is_heavy: bool) -> Callable[..., None]:
    def model(lists: Any, prior: Any, likelihood: Any) -> None:
        family = dist.Cauchy if is_heavy else dist.Normal
        weights = numpyro.sample("weights", family(prior.mean, 0.3).to_event(1))
        with numpyro.plate("sentence", len(lists.oracle)):
            numpyro.sample("oracle", bpa.OracleChoice(lists, weights), obs=lists.oracle)

    return model


@pytest.mark.slow
def test_a_prior_with_lighter_tails_helps_weights_without_a_mean() -> None:
    """The lists say little about the second weight, so that its posterior is its prior."""
    features = np.random.default_rng(0).normal(size=(4, 2, 2)) * np.array([1.0, 0.001])
    gains = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    names = ["LM0", "TM0"]
    lists = bpa.from_lists([["a", "b"]] * 4, features, names, extras={"gain": gains})
    run = partial(
        bpa.adapt, lists, dict.fromkeys(names, 0.5), gain="gain", likelihood="oracle", seed=1
    )
    failures = check(run(model=weighed(is_heavy=True), sampler="nuts")).failures
    assert failures[-1].advice.endswith("use a prior with lighter tails")
    report = check(run(model=weighed(is_heavy=False), sampler="nuts"))
    assert report, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["raise target_accept", "let the warm-up", "take shorter steps"])
def test_advice_on_nuts_of_numpyro_helps(words: str) -> None:
    """Its settings are unknown, so that the advice has no values."""

    def run(accept: float) -> Any:
        mcmc = MCMC(
            NUTS(ring, target_accept_prob=accept),
            num_warmup=500,
            num_samples=1500,
            num_chains=4,
            chain_method="sequential",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(1), extra_fields=("energy", "diverging", "accept_prob"))
        return mcmc

    assert any(words in one.advice for one in check(run(0.4)).failures)
    report = check(run(0.9))
    assert report, str(report)


def test_settings_of_the_run_are_repeated_unless_they_are_defaults() -> None:
    """What is followed as it stands keeps what earlier advice has found."""
    x = {"x": np.random.default_rng(2).normal(size=(4, 300)).cumsum(axis=1)}
    for name, kind in ADVICE.items():
        settings = SAMPLERS[name]().settings()
        usual = {"draws": 1000, "chains": 4, "thinning": 1, **kind.defaults}
        assert {setting: usual[setting] for setting in settings} == settings
        more = find_advice(draws_of(x, sampler=name, settings=settings)).try_settings(draws=2000)
        assert more == f" ({name}:draws=2000)"
    tuned = {**SAMPLERS["nuts"]().settings(), "target_accept": 0.99, "warmup": 1000}
    advice = find_advice(draws_of(x, settings=tuned))
    more = advice.try_settings(draws=2000)
    assert more == " (nuts:draws=2000,warmup=1000,target_accept=0.99)"
    last = "raise target_accept (nuts:target_accept=0.999,warmup=1000)"
    assert advice.fewer_divergences() == last


def test_neither_steps_nor_draws_are_advised_where_both_fail() -> None:
    """With divergences and a low BFMI; 4 of 4 runs of the neck of a funnel stay as they are."""
    values = {"x": RNG.normal(size=(4, 1000)).cumsum(axis=1)}
    statistics = {
        "diverging": np.arange(4000).reshape(4, 1000) < 7,
        "energy": RNG.normal(size=(4, 1000)).cumsum(axis=1),
    }
    settings = {**SAMPLERS["nuts"]().settings(), **LAST}
    failures = check(draws_of(values, statistics, settings=settings)).failures
    assert not any("draw more" in one.advice or "steps" in one.advice for one in failures)


def surface(x: Any, y: Any) -> None:
    """A Gaussian process of two inputs by functions of a basis, without centred sites."""
    scale = numpyro.sample("alpha", dist.HalfNormal(1))
    length = numpyro.sample("length", dist.InverseGamma(5, 5))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    with jax.numpy_rank_promotion("allow"):
        f = hsgp_squared_exponential(jnp.asarray(x), scale, length, ell=[2.0, 2.0], m=[6, 6])
    numpyro.sample("y", dist.Normal(f, noise), obs=y)


@pytest.mark.slow
def test_shorter_steps_are_advised_where_nothing_is_centred_and_help() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=(80, 2))
    y = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.3 * rng.normal(size=80)
    short = bpa.sample(surface, (x, y), sampler="nuts:target_accept=0.8", seed=1)
    failures = check(short).failures
    remedy = "raise target_accept (nuts:target_accept=0.99,warmup=1000)"
    assert failures[0].advice.endswith(f"divergent transitions: {remedy}")
    data = bpa.sample(surface, (x, y), sampler="nuts:target_accept=0.99,warmup=1000", seed=1)
    assert check(data), str(check(data))

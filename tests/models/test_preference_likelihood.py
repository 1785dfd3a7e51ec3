"""Bradley–Terry, Plackett–Luce and Davidson, against plain NumPy, quadrature and simulation."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from numpyro.infer import Predictive
from plain import Array, log_prior
from scipy.optimize import approx_fprime
from scipy.stats import kstest, norm
from targets import integrated

from bpa_ppl import NBest, UsageError, adapt
from bpa_ppl.experiments.calibration import calibrate_sampler
from bpa_ppl.models import Hierarchical, Preference, Prior
from bpa_ppl.posterior import as_draws
from bpa_ppl.registry import LIKELIHOODS
from bpa_ppl.sampling import target_of
from bpa_ppl.sampling.base import Target
from bpa_ppl.sampling.density import evaluate, potential
from bpa_ppl.sampling.sentences import preference_sentences
from bpa_ppl.weights import match

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}
VARIANCE = 0.5
WEIGHTS = np.array([0.9, -0.7])
SIZES = (5, 2, 7, 3)
PREFERENCES = [[[2, 0], [0, 2], [1, 4]], None, [[6, 5]], [[1, 0]]]
RANKINGS = [None, [[1, 0]], [[3, 0, 2], [5, [6, 1, 3]], [6, 5, 4, 3, 2, 1, 0]], []]
TIES = [[[3, 4]], [[0, 1]], None, [[2, 0], [2, 0]]]


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of several lengths with equal candidates, and a feature whose weight is fixed."""
    rng = np.random.default_rng(14)
    features = [rng.normal(size=(n, 3)).round(1) for n in SIZES]
    features[2][1] = features[2][3]
    features[0][4] = features[0][1]
    return NBest.from_lists([[str(i) for i in range(n)] for n in SIZES], features, NAMES)


def ranked(lists: NBest, *, ties: bool) -> NBest:
    """The lists with preferences and rankings, and perhaps ties."""
    more = {"ties": TIES} if ties else {}
    return lists.with_sentence_extras(preferences=PREFERENCES, rankings=RANKINGS, **more)


def brute(lists: NBest, weights: Array, nu: float | None, slip: float) -> Array:
    """What the docstring says, judgement by judgement, in float64: a value for each choice."""
    found = []
    for s in range(len(lists)):
        worth = np.exp(lists.features[lists.rows(s)].astype(np.float64) @ [*weights, 1.0])

        def answer(chosen: float, *others: float) -> float:
            p = chosen / (chosen + sum(others))
            return float(np.log((1 - slip) * p + slip / (1 + len(others))))

        extras = {name: column[s] or [] for name, column in lists.sentence_extras.items()}
        for i, j in extras["preferences"]:
            middle = [] if nu is None else [nu * np.sqrt(worth[i] * worth[j])]
            found.append(answer(worth[i], worth[j], *middle))
        for i, j in extras.get("ties", ()):
            assert nu is not None
            found.append(answer(nu * np.sqrt(worth[i] * worth[j]), worth[i], worth[j]))
        for ranking in extras["rankings"]:
            rest = ranking[-1] if isinstance(ranking[-1], list) else []
            order = [k for k in ranking if k is not rest]
            while order and len(order) + len(rest) > 1:
                best = order.pop(0)
                found.append(answer(worth[best], *worth[order + rest]))
    return np.array(found)


def target(
    lists: NBest, likelihood: Preference, canonical: Any = CANONICAL, variance: float = VARIANCE
) -> Target:
    """The posterior of some compared lists."""
    known = preference_sentences(lists, match(canonical, lists), likelihood)
    free = dict(zip(known.match.free_names, known.match.free_values.tolist(), strict=True))
    return target_of(
        known.nbest,
        known.match,
        Prior.isotropic(free, variance),
        likelihood=likelihood,
        oracle=known.oracles.index,
        gains=known.gains,
    )


CASES = {
    "Bradley-Terry and Plackett-Luce": (False, Preference()),
    "slips": (False, Preference(slip=0.2)),
    "ties of a given ν": (True, Preference(nu=0.7)),
    "no tie of a given ν": (False, Preference(nu=0.7, slip=0.1)),
    "ties of any ν": (True, Preference()),
    "ties of any ν and slips": (True, Preference(slip=0.2)),
}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest, lists: NBest) -> tuple[NBest, Preference, Target]:
    """The compared lists, the likelihood, and their posterior."""
    ties, likelihood = CASES[request.param]
    compared_lists = ranked(lists, ties=ties)
    return compared_lists, likelihood, target(compared_lists, likelihood)


def log_density(lists: NBest, likelihood: Preference, flat: Array, free: bool) -> float:
    """Log p(z, data) by brute force, of z = (log ν, λ) where ν is free, else λ."""
    log_nu, weights = (flat[0], flat[1:]) if free else (None, flat)
    nu = likelihood.nu if log_nu is None else float(np.exp(log_nu))
    prior = log_prior(weights, [0.4, -0.2], VARIANCE)
    prior += 0.0 if log_nu is None else float(norm.logpdf(log_nu))
    return float(brute(lists, weights, nu, likelihood.slip).sum()) + prior


def test_density_and_gradient_are_those_of_the_formulas(
    case: tuple[NBest, Preference, Target],
) -> None:
    lists, likelihood, posterior = case
    free = "log_nu" in posterior.start
    assert free is ("ties" in lists.sentence_extras and likelihood.nu is None)
    value = jax.jit(jax.value_and_grad(lambda z: -potential(posterior.program, posterior.data, z)))
    for weights in (WEIGHTS, -4 * WEIGHTS):
        flat = np.append(0.3, weights) if free else weights
        z = {"weights": weights, **({"log_nu": np.array(0.3)} if free else {})}
        ours, slope = value(z)
        of = lambda x: log_density(lists, likelihood, x, free)  # noqa: E731
        np.testing.assert_allclose(ours, of(flat), rtol=2e-5)
        found = np.append(slope["log_nu"], slope["weights"]) if free else slope["weights"]
        np.testing.assert_allclose(found, approx_fprime(flat, of, 1e-6), rtol=2e-4, atol=2e-4)


def test_each_choice_has_its_own_log_likelihood(case: tuple[NBest, Preference, Target]) -> None:
    lists, likelihood, posterior = case
    z = {"weights": WEIGHTS[None, None], "log_nu": np.full((1, 1), -0.4)}
    z = {name: z[name] for name in posterior.start}
    _, found = evaluate(posterior.program, posterior.data, z)
    nu = np.exp(-0.4) if "log_nu" in z else likelihood.nu
    expected = brute(lists, WEIGHTS, nu, likelihood.slip)
    np.testing.assert_allclose(found["oracle"][0, 0], expected, rtol=2e-5, atol=1e-6)


def test_the_order_of_the_candidates_does_not_matter(lists: NBest) -> None:
    rng = np.random.default_rng(2)
    orders = [rng.permutation(n) for n in SIZES]
    rows = np.concatenate([f + o for f, o in zip(lists.offsets[:-1], orders, strict=True)])
    new = [np.argsort(order).tolist() for order in orders]

    def renamed(entries: Any, s: int) -> Any:
        return [renamed(e, s) for e in entries] if isinstance(entries, list) else new[s][entries]

    given = ranked(lists, ties=True)
    extras = {
        name: [e and renamed(e, s) for s, e in enumerate(column)]
        for name, column in given.sentence_extras.items()
    }
    shuffled = lists.regroup(np.arange(len(lists)), rows, lists.sizes)
    shuffled = shuffled.with_sentence_extras(**extras)
    z = {"weights": WEIGHTS, "log_nu": np.array(0.3)}
    ours, other = (target(part, Preference()) for part in (given, shuffled))
    np.testing.assert_allclose(
        potential(ours.program, ours.data, z), potential(other.program, other.data, z), rtol=1e-6
    )


def moments(log_p: Any, centre: Array, width: float, points: int) -> tuple[Array, Array]:
    grid, p = integrated(log_p, centre, width, points)
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2)


def near(draws: Array, mean: Array, deviation: Array) -> None:
    """Assert that draws, (n, d), that are as good as independent have these moments."""
    error = deviation / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * error)
    # The standard error of a standard deviation, of tails up to a kurtosis of 5.
    assert np.all(np.abs(draws.std(axis=0) - deviation) < 5 * error)


@pytest.mark.parametrize("slip", [0.0, 0.15])
def test_the_posterior_of_two_weights_is_that_of_quadrature(lists: NBest, slip: float) -> None:
    given = ranked(lists, ties=False)
    posterior = adapt(
        given,
        CANONICAL,
        likelihood=Preference(slip=slip),
        prior_variance=VARIANCE,
        sampler="laplace",
        draws=20_000,
        arviz=False,
    )
    of = lambda x: log_density(given, Preference(slip=slip), x, free=False)  # noqa: E731
    log_p = lambda grid: np.array([of(x) for x in grid])  # noqa: E731
    mean, deviation = moments(log_p, np.array([0.4, -0.2]), 4.0, 61)
    rng = np.random.default_rng(0)
    near(rng.choice(posterior.flat, 4000, p=posterior.importance), mean, deviation)


def test_the_posterior_of_a_weight_and_of_ties_is_that_of_quadrature(lists: NBest) -> None:
    given = ranked(lists.without_features("WP0"), ties=True)
    canonical = {name: CANONICAL[name] for name in ("LM0", "UnknownWordPenalty0")}
    posterior = adapt(
        given,
        canonical,
        likelihood="preference",
        prior_variance=VARIANCE,
        sampler="laplace",
        draws=20_000,
        arviz=False,
    )

    def log_p(grid: Array) -> Array:
        likelihood = [brute(given, w, np.exp(log_nu), 0.0).sum() for log_nu, *w in grid]
        prior = norm.logpdf(grid[:, 0]) + norm.logpdf(grid[:, 1], 0.4, np.sqrt(VARIANCE))
        return np.array(likelihood) + prior

    mean, deviation = moments(log_p, np.array([0.0, 0.4]), 4.5, 61)
    values = np.column_stack([posterior.values["log_nu"].ravel(), posterior.flat[:, 0]])
    assert posterior.weights.shape[-1] == 1
    rng = np.random.default_rng(0)
    near(rng.choice(values, 4000, p=posterior.importance), mean, deviation)


@pytest.mark.parametrize("name", [n for n, (ties, _) in CASES.items() if "slips" in n])
def test_answers_are_simulated_with_their_probabilities(lists: NBest, name: str) -> None:
    ties, likelihood = CASES[name]
    posterior = target(ranked(lists, ties=ties), likelihood)
    sites = {"weights": np.broadcast_to(WEIGHTS, (4000, 2)), "log_nu": np.full(4000, 0.3)}
    sites = {n: sites[n] for n in posterior.start}
    data = posterior.data
    drawn = Predictive(_unobserved(posterior), sites)(jax.random.key(0), *data)["oracle"]
    width = max(bucket.base.shape[-1] for bucket in data.lists.buckets)
    for row in range(width):
        lists_of_row = data.lists._replace(oracle=np.full_like(data.lists.oracle, row))
        z = {n: value[None, :1] for n, value in sites.items()}
        _, found = evaluate(posterior.program, data._replace(lists=lists_of_row), z)
        used = np.asarray(data.lists.sentence) >= 0
        order = np.argsort(np.asarray(data.lists.sentence)[used])
        seen = (np.asarray(drawn)[:, used] == row).mean(axis=0)[order]
        # Beyond the longest list of a bucket there is no row to choose.
        p = np.nan_to_num(np.exp(found["oracle"][0, 0].astype(np.float64)))
        np.testing.assert_array_less(np.abs(seen - p), 5 * np.sqrt(0.25 / 4000))


def _unobserved(posterior: Target) -> Any:
    from numpyro import handlers

    return handlers.uncondition(posterior.program)


@pytest.mark.parametrize("likelihood", [Preference(), Preference(slip=0.1)])
def test_weights_and_ties_are_calibrated(lists: NBest, likelihood: Preference) -> None:
    found = calibrate_sampler(
        ranked(lists, ties=True),
        CANONICAL,
        "imh",
        replications=200,
        prior_variance=VARIANCE,
        seed=1,
        likelihood=likelihood,
        draws=300,
    )
    assert found.names == ("LM0", "WP0", "log_nu", "log p(A|λ)")
    assert found, str(found)


def test_calibration_finds_a_prior_of_ties_that_is_another(
    lists: NBest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test of the test: ν is simulated from one prior, and inferred with another."""
    import bpa_ppl.experiments.calibration as calibrating

    simulated = calibrating.simulated

    def shifted(program: Any, data: Any, names: Any, key: Any) -> Any:
        truth, oracle, likelihood = simulated(program, data, names, key)
        return truth.at[-1].add(1.5), oracle, likelihood

    monkeypatch.setattr(calibrating, "simulated", shifted)
    found = calibrate_sampler(
        ranked(lists, ties=True),
        CANONICAL,
        "laplace",
        replications=50,
        likelihood="preference",
        draws=500,
    )
    assert not found
    assert kstest(found.ranks[:, found.names.index("log_nu")], "uniform").pvalue < 1e-4


def test_settings_have_bounds() -> None:
    for wrong in ({"slip": 1.0}, {"slip": -0.1}, {"nu": 0.0}, {"nu": "many"}):
        with pytest.raises(UsageError, match=rf"{next(iter(wrong))} must be"):
            LIKELIHOODS.resolve("preference", wrong)


def test_a_model_that_forgets_the_parameter_of_ties_is_refused(lists: NBest) -> None:
    given = ranked(lists, ties=True).with_sentence_extras(domain=["a", "b", "a", "b"])
    with pytest.raises(UsageError, match="sample_parameters"):
        adapt(given, CANONICAL, likelihood="preference", model=Hierarchical(2), sampler="nuts")


def test_as_draws_has_the_weights_alone(lists: NBest) -> None:
    posterior = adapt(ranked(lists, ties=True), CANONICAL, sampler="imh", draws=50)
    draws = as_draws(posterior)
    assert draws.weights.shape == (4, 50, 2)
    assert set(draws.sites) == {"weights", "log_nu"}
    assert np.shape(draws.prior["log_nu"])[1] == np.shape(draws.prior["weights"])[1]

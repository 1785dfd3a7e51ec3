"""Constants in columns and gains, and their units, change no choice and no probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from support.posteriors import name_weights, with_parts
from support.registries import LIKELIHOODS, RULES

import bpa_ppl as bpa
from bpa_ppl import BayesianRanker, Reranker, from_arrays
from bpa_ppl.errors import DataError
from bpa_ppl.extending import match, oracles, tabulate

Array = npt.NDArray[np.float64]

LISTS, SIZE, NAMES = 24, 5, ("lm", "tm", "length")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(LISTS * SIZE, 3))
Y = X @ [2.8, -1.0, 0.5] + RNG.normal(size=len(X))
QID = np.repeat(np.arange(LISTS), SIZE)
#: Notes on columns that seem to be times, and on baselines.
NOTED = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


class Fit(NamedTuple):
    """What an estimator learns from a table, and how it chooses from it."""

    coefficients: Array
    probabilities: Array
    score: float


def fit(features: Array, gains: Array, likelihood: str | None) -> Fit:
    ranker = BayesianRanker(sampler="laplace:draws=1000", likelihood=likelihood, random_state=0)
    ranker.fit(features, gains, qid=QID)
    probabilities = ranker.predict_proba(features, qid=QID)
    return Fit(ranker.coef_, probabilities, ranker.score(features, gains, qid=QID))


@cache
def fit_usual(likelihood: str | None) -> Fit:
    return fit(X, Y, likelihood)


def require_equal(one: Fit, other: Fit) -> None:
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6)
    np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=0, atol=1e-6)
    choices = [of.probabilities.reshape(-1, SIZE).argmax(axis=1).tolist() for of in (one, other)]
    assert choices[0] == choices[1]
    assert one.score == pytest.approx(other.score, abs=1e-9)


@NOTED
@pytest.mark.parametrize(
    ("constant", "likelihood"),
    [
        *((1e-12, None), (1e12, None)),
        *(pytest.param(constant, None, marks=pytest.mark.slow) for constant in (0.1, 1e8)),
        *(pytest.param(1e12, name, marks=pytest.mark.slow) for name in ("pairs", "margin")),
    ],
)
def test_a_constant_changes_nothing(constant: float, likelihood: str | None) -> None:
    """The sum is rounded, so the other numbers are the sum minus the constant, which is exact."""
    added = np.array([constant, 0.0, -constant])
    features, gains = X + added, Y + constant
    alike = fit(features - added, gains - constant, likelihood)
    require_equal(fit(features, gains, likelihood), alike)


@NOTED
@pytest.mark.parametrize(
    ("likelihood", "unit"),
    [
        *((None, 1e-300), (None, 1e58)),
        *(
            pytest.param(*of, marks=pytest.mark.slow)
            for of in ((None, 1e-9), ("pairs:power=0.5", 1e58), ("pairs:power=0.5", 1e-300))
        ),
    ],
)
def test_the_unit_of_a_gain_changes_nothing(likelihood: str | None, unit: float) -> None:
    require_equal(fit(X, Y * unit, likelihood), fit_usual(likelihood))


@pytest.mark.parametrize("unit", [1e-46, pytest.param(1e46, marks=pytest.mark.slow)])
def test_columns_that_do_not_suit_32_bits(unit: float) -> None:
    """Their tables have 64 bits, and the others 32."""
    units = np.array([unit, 1.0, 1.0])
    other = fit(X * units, Y, None)
    require_equal(other._replace(coefficients=other.coefficients * units), fit_usual(None))
    lists = from_arrays([""] * len(X), X * units, NAMES, SIZE)
    for part, kind in ((lists, np.float64), (lists.without("lm"), np.float32)):
        (bucket,) = tabulate(part, match(dict.fromkeys(part.feature_names, 0.0), part)).buckets
        assert bucket["features"].dtype == bucket["base"].dtype == kind
    weights = {"lm": 1 / unit, "tm": 1.0, "length": 1.0}
    (bucket,) = tabulate(lists, match(weights, lists, fixed=["lm"])).buckets
    assert bucket["base"].dtype == np.float32
    assert np.abs(bucket["base"][0, 0]).max() > 0.1


@pytest.mark.parametrize("rule", RULES)
def test_rules_choose_from_differences(rule: str) -> None:
    """Also where a constant has the size of the largest numbers that keep a difference of 1/8."""
    dyadic = np.round(X * 8) / 8
    rng = np.random.default_rng(1)
    weights = rng.normal([2.0, -1.0, 0.5], 0.3, size=(4, 300, 3))
    canonical, density = np.array([1.0, -0.5, 0.3]), rng.normal(size=(4, 300))
    draws = name_weights(weights, NAMES, log_density=density)
    points = {"canonical": canonical, "mode": canonical}
    draws = with_parts(draws, constants={**draws.draws.constants, **points})
    lists = from_arrays([f"w{k % SIZE} x{k}" for k in range(len(X))], dyadic, NAMES, SIZE)
    constant = np.array([2.0**49, 0.0, -(2.0**49)])
    shifted = replace(lists, features=lists.features + constant)
    reranker = Reranker(draws, rule=rule, unchecked=True)
    one, other = reranker(lists), reranker(shifted)
    assert one.choice.tolist() == other.choice.tolist()
    assert one.canonical.tolist() == other.canonical.tolist()
    assert np.abs(one.probabilities - other.probabilities).max() < 1e-12
    names = lists.rows(0)
    chosen = [reranker.choose(of.texts(0), of.features[names]) for of in (lists, shifted)]
    assert chosen[0].position == chosen[1].position == one.choice[0]


def test_candidates_that_differ_little_are_not_tied() -> None:
    """Gains, and features beyond 2^24, that are equal in 32 bits."""
    close = np.array([[1000000.0], [1000000.01], [2.0**24], [2.0**24 + 1]])
    lists = from_arrays(["a", "b", "c", "d"], close, ["lm"], 2, extras={"y": close[:, 0]})
    (bucket,) = tabulate(lists, match({"lm": 1.0}, lists), [1, 1], gains=close[:, 0]).buckets
    differences = sorted(bucket["features"].ravel().tolist())
    assert differences == pytest.approx([-1, -0.01, 0, 0], abs=1e-9)
    assert sorted(bucket["gain"].ravel().tolist()) == close.ravel().tolist()
    assert oracles(lists, "y").tied.tolist() == [1, 1]
    # Among larger differences, ranks keep the smallest.
    gains = np.array([0.0, 1e-9, 1e9, 0.5])
    lists = from_arrays(["a", "b", "c", "d"], close, ["lm"], 4)
    table = tabulate(lists, match({"lm": 1.0}, lists), [2], gains=gains)
    (prepared,) = LIKELIHOODS["pairs"]().prepare(table)[0].buckets
    ranks = dict(zip(prepared["candidate"].ravel().tolist(), prepared["gain"].ravel(), strict=True))
    assert [ranks[k] - ranks[0] for k in range(4)] == [0, 1, 3, 2]


def with_value(value: float) -> Array:
    features = X.copy()
    features[7, 1] = value
    return features


LARGE: dict[str, Callable[[], Any]] = {
    "lm of candidates[2] of list 1 is 1e+300, not a finite number of at most 1e60": lambda: (
        from_arrays([""] * len(X), with_value(1e300), ["tm", "lm", "length"], SIZE)
    ),
    "x1 of candidates[2] of list 1 is -1e+300, not a finite": lambda: fit(
        with_value(-1e300), Y, None
    ),
    "y of candidates[2] of list 1 is 1e+300, not a finite": lambda: fit(
        X, with_value(1e300)[:, 1], None
    ),
    "tm varies by only 5e-61 within the lists, less than 1e-60": lambda: bpa.adapt(
        from_arrays(["a", "b"], np.array([[0.0], [1e-60]]), ["tm"], 2, extras={"y": [0, 1]}),
        gain="y",
    ),
    "the total of candidates[1] of list 0 is 1e+300, not a finite": lambda: from_arrays(
        ["a", "b"], np.ones((2, 1)), ["lm"], 2, totals=[0.0, 1e300]
    ),
    "tm of candidate 1 is 1e+300, not a finite": lambda: Reranker(
        name_weights(np.ones((1, 4, 2)), ("lm", "tm")), unchecked=True
    ).choose(["a", "b"], {"lm": [0, 1], "tm": [0, 1e300]}),
}


@pytest.mark.parametrize("message", LARGE)
def test_a_number_that_is_too_large_or_small_is_named(message: str) -> None:
    """With its column, its list and its value, and without a warning of NumPy."""
    with pytest.raises(DataError) as error:
        LARGE[message]()
    assert message in str(error.value)
    assert error.value.code == "bad-number"

"""Mixtures of phrase tables, compared with their formulas; fits compared with other optimisers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from support.phrase_pairs import counts_by_pair, pairs_of
from support.raising import raises

from bpa_ppl import BpaWarning, DataError, UsageError
from bpa_ppl.extras.phrases.mixtures import (
    DIRECTIONS,
    METHODS,
    align_counts,
    evaluate_mixture,
    fit,
    mix,
    parameter_name,
)
from bpa_ppl.extras.phrases.tables import PhraseCounts, Side


def random_table(seed: int, pairs: int = 60, words: int = 12) -> PhraseCounts:
    """Return random counts of pairs from a few phrases."""
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(words, size=(2, pairs))
    return PhraseCounts.of(sources.astype(str), targets.astype(str), rng.integers(1, 9, pairs))


def reference_probability(
    method: str, inner: PhraseCounts, outer: PhraseCounts, pair: tuple[str, str], side: Side
) -> float:
    """Return p(x|y) of one pair by the formulas of the papers, with the parameter 0.3."""
    place = 0 if side == "target" else 1
    tables = counts_by_pair(inner), counts_by_pair(outer)
    c_in, c_out = (counts.get(pair, 0.0) for counts in tables)
    y_in, y_out = (
        sum(count for other, count in counts.items() if other[place] == pair[place])
        for counts in tables
    )
    p_in, p_out = c_in / y_in if y_in else 0.0, c_out / y_out if y_out else 0.0
    if method.endswith("known") and not (y_in and y_out):
        return p_in if y_in else p_out
    return {
        "concatenate": (c_in + c_out) / (y_in + y_out),
        "linear": 0.3 * p_in + 0.7 * p_out,
        "map": (c_in + 0.3 * p_out) / (y_in + 0.3),
    }[method.removesuffix("-known")]


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_agree_with_formulas(method: str) -> None:
    inner, outer = random_table(1), random_table(2)
    value = 0.3 if parameter_name(method) else None
    mixed, fits = mix(inner, outer, method=method, value=value)
    assert fits == ()
    pairs = pairs_of(mixed)
    assert set(pairs) == {*pairs_of(inner), *pairs_of(outer)}
    for column, side in DIRECTIONS.items():
        expected = [reference_probability(method, inner, outer, pair, side) for pair in pairs]
        np.testing.assert_allclose(mixed.columns[column], expected, rtol=1e-12)


def test_log_linear_table_has_columns_of_both() -> None:
    inner, outer = random_table(1), random_table(2)
    mixed, fits = mix(inner, outer, random_table(3), "log-linear")
    assert list(mixed.columns) == ["direct.in", "direct.out", "inverse.in", "inverse.out"]
    assert fits == ()
    rows = mixed.find_rows(inner)
    expected = inner.count / inner.target_count[inner.target]
    np.testing.assert_allclose(mixed.columns["inverse.in"][rows], expected)
    assert np.count_nonzero(mixed.columns["inverse.in"]) == len(inner)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("method", list(filter(parameter_name, METHODS)))
def test_fits_agree_with_general_optimiser(method: str, side: Side) -> None:
    dev = random_table(3)
    counts = align_counts(random_table(1), random_table(2), dev, side)
    result = fit(method, counts, dev.count, side)

    def cost(x: np.ndarray) -> float:
        value = float(expit(x[0]) if parameter_name(method) == "alpha" else np.exp(x[0]))
        return -evaluate_mixture(method, value, counts, dev.count, side).log_likelihood

    others = [minimize(cost, [start], method="Nelder-Mead").fun for start in (-3, 0, 3)]
    assert -result.log_likelihood <= min(others) + 1e-9


def test_log_likelihood_is_over_supported_pairs() -> None:
    inner, outer = PhraseCounts.of("ab", "xy", [1, 1]), PhraseCounts.of("aa", "xy", [1, 3])
    dev = PhraseCounts.of("aac", "xyz", [2, 1, 1])
    counts = align_counts(inner, outer, dev, "target")
    result = evaluate_mixture("linear", 0.5, counts, dev.count, "target")
    assert result.support == 0.75
    assert result.log_likelihood == pytest.approx((2 * np.log(0.625) + np.log(0.375)) / 3)
    assert str(result) == (
        "p(t|s), linear, alpha = 0.5, log-likelihood per pair -0.6403, "
        "75.0% of the pairs have support"
    )


def test_rejects_unmixable_tables() -> None:
    inner, outer = random_table(1), random_table(2)
    with raises(DataError, "mismatch"):
        mix(inner, outer, PhraseCounts.of(["zut"], ["damn"], [1]))
    with raises(UsageError, "missing-argument", parameter="value"):
        mix(inner, outer)
    with raises(UsageError, "unknown-name", parameter="method"):
        mix(inner, outer, method="mean")
    for method in ("concatenate", "log-linear"):
        with raises(UsageError, "conflict", parameter="value"):
            mix(inner, outer, method=method, value=0.3)
    for method, value in (("linear", 1.5), ("linear", np.nan), ("map", -1.0), ("map", np.inf)):
        with raises(UsageError, parameter="value"):
            mix(inner, outer, method=method, value=value)
    with raises(UsageError, "conflict", parameter="dev"):
        mix(inner, outer, random_table(1))


def swapped(table: PhraseCounts) -> PhraseCounts:
    """Return a table with its languages swapped."""
    return PhraseCounts.of(table.texts("target"), table.texts("source"), table.count)


def test_swapped_tables_are_errors_and_a_small_general_table_is_warned_about() -> None:
    inner = PhraseCounts.of(["le chat", "1 ."], ["the cat", "1 ."], [5, 1])
    outer = PhraseCounts.of(["le chat", "1 ."], ["the cat", "1 ."], [12, 1])
    dev = PhraseCounts.of(["le chat", "1 ."], ["the cat", "1 ."], [9, 2])
    assert len(mix(inner, outer, dev)[1]) == 2
    with raises(DataError, "mismatch", parameter="dev"):
        mix(inner, outer, swapped(dev))
    with raises(DataError, "mismatch"):
        mix(inner, swapped(outer), dev)
    with pytest.warns(BpaWarning, match="IN has 13 .* OUT only 6"):
        mix(outer, inner, dev)

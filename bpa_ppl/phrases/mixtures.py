"""Mixtures of an in-domain and an out-of-domain phrase table (Foster, Goutte & Kuhn 2010, §2).

Both directions are mixed alike and separately: p(t|s) and p(s|t). Below, x is the phrase that is
predicted and y the one that is given; I is the table in the domain, o the general one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from bpa_ppl.errors import DataError, UsageError, checked_seed, one_of
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.phrases.pairs import PhrasePairs, Side, Texts, index_in, keys, union
from bpa_ppl.phrases.tables import PhraseCounts, PhraseTable, aligned

#: The column of a table of probabilities -> the side that is predicted.
DIRECTIONS: dict[str, Side] = {"direct": "target", "inverse": "source"}
#: Where the parameter is searched, on the scale of `Method.parameter`; α and β as good as 0 and 1.
_GRID = np.linspace(-14.0, 14.0, 57)


class Counts(NamedTuple):
    """What two tables say of some pairs, in one direction.

    Attributes:
        pair_in: (pairs,) c_I(x, y).
        given_in: (pairs,) c_I(y).
        pair_out: (pairs,) c_o(x, y).
        given_out: (pairs,) c_o(y).
    """

    pair_in: Float64
    given_in: Float64
    pair_out: Float64
    given_out: Float64

    @property
    def p_in(self) -> Float64:
        """p_I(x|y); 0 where y is not in the table."""
        return _ratio(self.pair_in, self.given_in)

    @property
    def p_out(self) -> Float64:
        """p_o(x|y); 0 where y is not in the table."""
        return _ratio(self.pair_out, self.given_out)

    def part(self, rows: np.ndarray) -> Counts:
        """Return the counts of some of the pairs."""
        return Counts(*(column[rows] for column in self))


class Method(NamedTuple):
    """A way to mix two tables.

    Attributes:
        probabilities: p(x|y) of pairs, with the value of the parameter.
        parameter: its name; empty where there is none.
        scaled: makes of any number a value of the parameter.
    """

    probabilities: Callable[[Counts, float], Float64]
    parameter: str = ""
    scaled: Callable[[float], float] = float


def concatenated(counts: Counts, _: float = 0.0) -> Float64:
    """Return the relative frequencies in both corpora together, their counts added."""
    return _ratio(counts.pair_in + counts.pair_out, counts.given_in + counts.given_out)


def linear(counts: Counts, alpha: float) -> Float64:
    """Return α p_I(x|y) + (1 − α) p_o(x|y)  (Eq. 2), as published.

    Where y is in one table alone, the probabilities sum to less than 1: see `where_known`.
    """
    return alpha * counts.p_in + (1 - alpha) * counts.p_out


def maximum_a_posteriori(counts: Counts, beta: float) -> Float64:
    """Return (c_I(x,y) + β p_o(x|y)) / (c_I(y) + β)  (Eq. 3): p_o is a prior worth β pairs."""
    return (counts.pair_in + beta * counts.p_out) / (counts.given_in + beta)


def where_known(mixed: Callable[[Counts, float], Float64]) -> Callable[[Counts, float], Float64]:
    """Return a mixture that leaves a y, which one table alone knows, to that table.

    As published, the probabilities given such a y sum to less than 1.
    """

    def probabilities(counts: Counts, value: float) -> Float64:
        found = np.where(counts.given_in > 0, mixed(counts, value), counts.p_out)
        return np.where(counts.given_out > 0, found, counts.p_in)

    return probabilities


def _alpha(x: float) -> float:
    return float(expit(x))


def _beta(x: float) -> float:
    return float(np.exp(x))


#: By the name on the command line. `log-linear` has the columns of both tables, and no parameter.
METHODS: dict[str, Method] = {
    "concatenate": Method(concatenated),
    "linear": Method(linear, "alpha", _alpha),
    "map": Method(maximum_a_posteriori, "beta", _beta),
    "linear-known": Method(where_known(linear), "alpha", _alpha),
    "map-known": Method(where_known(maximum_a_posteriori), "beta", _beta),
}
LOG_LINEAR = "log-linear"


@dataclass(frozen=True)
class Fit:
    """A mixture in one direction, fitted to phrase pairs of the domain.

    Attributes:
        method: its name.
        side: the side that is predicted.
        value: of its parameter; NaN where it has none.
        log_likelihood: mean log p(x|y) (natural) over the occurrences of those pairs that have
            support, that is, a probability above 0.
        support: the share of the occurrences that have it.
    """

    method: str
    side: Side
    value: float
    log_likelihood: float
    support: float

    def __str__(self) -> str:
        """Return it in a line, as commands print it."""
        given = "s" if self.side == "target" else "t"
        parameter = METHODS[self.method].parameter
        parts = [f"p({self.side[0]}|{given})", self.method]
        parts += [f"{parameter} = {self.value:.6g}"] if parameter else []
        parts += [f"log-likelihood per pair {self.log_likelihood:.4f}"]
        return ", ".join([*parts, f"{self.support:.1%} of the pairs have support"])


def counts_of(inner: PhraseCounts, outer: PhraseCounts, pairs: PhrasePairs, side: Side) -> Counts:
    """Return what two tables say of pairs of a third one.

    Args:
        inner: the table in the domain.
        outer: the general one.
        pairs: the pairs.
        side: the side that is predicted.
    """
    return Counts(*_counts_in(inner, pairs, side), *_counts_in(outer, pairs, side))


def _counts_in(table: PhraseCounts, pairs: PhrasePairs, side: Side) -> tuple[Float64, Float64]:
    given: Side = "source" if side == "target" else "target"
    numbers = table.numbers_of(given, pairs.phrases(given))
    counts = np.where(numbers >= 0, np.append(table.marginal(given), 0.0)[numbers], 0.0)
    rows = table.rows_of(pairs)
    return np.append(table.count, 0.0)[rows], counts[pairs.number(given)]


def fit(method: str, counts: Counts, weights: Float64, side: Side) -> Fit:
    """Return a mixture with the parameter that makes pairs of the domain most likely.

    The likelihood is Σ p̃(x, y) log p(x|y) over the pairs that have support: in some table x was
    seen with y. For the linear mixture it is concave in α.

    Args:
        method: a name in `METHODS`.
        counts: what the tables say of the pairs.
        weights: (pairs,) how often each occurs, or p̃(x, y).
        side: the side that is predicted.

    Raises:
        DataError: if no pair has support.
        UsageError: if there is no such method.

    >>> inner, outer = PhraseCounts.of(["a"], ["x"], [1]), PhraseCounts.of(["a"], ["y"], [1])
    >>> dev = PhraseCounts.of(["a", "a"], ["x", "y"], [3, 1])
    >>> round(fit("linear", counts_of(inner, outer, dev, "target"), dev.count, "target").value, 6)
    0.75
    """
    from scipy.optimize import minimize_scalar

    one_of(method, METHODS, "method")
    chosen = METHODS[method]
    if not ((counts.pair_in > 0) | (counts.pair_out > 0)).any():
        raise DataError(
            "no phrase pair of the development table is in the other tables: give tables of the "
            "same languages, in the same order, tokenised and cased alike"
        )

    def cost(x: float) -> float:
        return -_log_likelihood(chosen.probabilities(counts, chosen.scaled(x)), weights)[0]

    best = 0.0
    if chosen.parameter:
        place = min(max(int(np.argmin([cost(x) for x in _GRID])), 1), len(_GRID) - 2)
        bounds = (_GRID[place - 1], _GRID[place + 1])
        best = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x
    value = chosen.scaled(best) if chosen.parameter else np.nan
    return evaluated(method, value, counts, weights, side)


def evaluated(method: str, value: float, counts: Counts, weights: Float64, side: Side) -> Fit:
    """Return how likely pairs are under a mixture with a given value of its parameter."""
    found = _log_likelihood(METHODS[method].probabilities(counts, value), weights)
    return Fit(method, side, value, *found)


def held_out(
    method: str, counts: Counts, weights: Float64, side: Side, *, folds: int = 5, seed: int = 0
) -> Fit:
    """Return the likelihood of pairs under mixtures that were fitted to the other folds.

    The distinct pairs are dealt to the folds at random. The value is the mean of the folds'.

    Raises:
        UsageError: if there are fewer than two folds, or more than pairs.

    Two tables that say the same of two pairs:

    >>> counts = Counts(*np.array([[3.0, 1.0], [4.0, 4.0], [3.0, 1.0], [4.0, 4.0]]))
    >>> found = held_out("linear", counts, np.ones(2), "target", folds=2)
    >>> round(found.log_likelihood, 3)  # (log 3/4 + log 1/4) / 2
    -0.837
    """
    if not 2 <= folds <= len(weights):
        raise UsageError(f"folds are from 2 to {len(weights)}, the number of pairs, not {folds}")
    fold = np.random.default_rng(checked_seed(seed)).permutation(np.arange(len(weights)) % folds)
    probabilities, values = np.zeros(len(weights)), []
    for number in range(folds):
        own, others = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        values.append(fit(method, counts.part(others), weights[others], side).value)
        probabilities[own] = METHODS[method].probabilities(counts.part(own), values[-1])
    return Fit(method, side, float(np.mean(values)), *_log_likelihood(probabilities, weights))


def mix(
    inner: PhraseCounts,
    outer: PhraseCounts,
    dev: PhraseCounts | None = None,
    method: str = "map",
    value: float | None = None,
) -> tuple[PhraseTable, tuple[Fit, ...]]:
    r"""Return the mixture of two tables of counts, in both directions.

    Args:
        inner: the table in the domain.
        outer: the general table.
        dev: the phrase pairs of other text of the domain, to which the parameter is fitted.
        method: `concatenate`, `linear` or `map`, with `-known` for `where_known`; or
            `log-linear`, the probabilities of both tables beside one another.
        value: of the parameter, for both directions, instead of fitting it.

    Returns:
        The table of all pairs of both, with the columns `direct`, p(t|s), and `inverse`, p(s|t);
        for `log-linear` `direct.in`, `direct.out`, `inverse.in`, `inverse.out`; and how each
        direction was fitted to `dev`, where that is given.

    Raises:
        DataError: if no pair of `dev` is in the tables.
        UsageError: if there is no such method, or its parameter has neither a value nor `dev`.

    >>> from pathlib import Path
    >>> from bpa_ppl.phrases import read_counts
    >>> _ = Path("in.txt").write_text("un ||| a ||| 3\nun ||| one ||| 1\n")
    >>> _ = Path("out.txt").write_text("un ||| a ||| 1\nun ||| one ||| 1\n")
    >>> table, _ = mix(read_counts("in.txt"), read_counts("out.txt"), method="linear", value=0.5)
    >>> table.columns["direct"].tolist()
    [0.625, 0.375]
    """
    one_of(method, (*METHODS, LOG_LINEAR), "method")
    inner, outer, *others = aligned(inner, outer, *([] if dev is None else [dev]))
    dev = others[0] if others else None
    pairs = pairs_of_both(inner, outer)
    columns: dict[str, Float64] = {}
    fits = []
    for name, side in DIRECTIONS.items():
        counts = counts_of(inner, outer, pairs, side)
        if method == LOG_LINEAR:
            columns |= {f"{name}.in": counts.p_in, f"{name}.out": counts.p_out}
            continue
        found = _chosen(inner, outer, dev, method, value, side)
        columns[name] = METHODS[method].probabilities(counts, found.value)
        fits += [found] if dev is not None else []
    return PhraseTable.on(pairs, columns), tuple(fits)


def pairs_of_both(one: PhrasePairs, other: PhrasePairs) -> PhrasePairs:
    """Return the pairs that are in at least one of two tables."""
    sources, targets = union([one.sources, other.sources]), union([one.targets, other.targets])
    found = np.sort(np.concatenate([_keys_in(t, sources, targets) for t in (one, other)]))
    found = found[np.diff(found, prepend=-1) > 0]
    source, target = np.divmod(found, max(len(targets), 1))
    return PhrasePairs(sources, targets, source.astype(np.int32), target.astype(np.int32))


def _keys_in(table: PhrasePairs, sources: Texts, targets: Texts) -> Int64:
    """Return one number for each pair of a table, of the numbers of its phrases among others."""
    source = index_in(table.sources, sources)[table.source]
    return keys(source, index_in(table.targets, targets)[table.target], len(targets))


def _chosen(
    inner: PhraseCounts,
    outer: PhraseCounts,
    dev: PhraseCounts | None,
    method: str,
    value: float | None,
    side: Side,
) -> Fit:
    """Return the mixture with the value that is given, or that is fitted to `dev`."""
    parameter = METHODS[method].parameter
    if dev is None:
        if parameter and value is None:
            raise UsageError(
                f"{method} has a parameter, {parameter}: give a development table to fit it to, "
                "or its value"
            )
        return Fit(method, side, np.nan if value is None else value, np.nan, np.nan)
    counts = counts_of(inner, outer, dev, side)
    if value is None:
        return fit(method, counts, dev.count, side)
    return evaluated(method, value, counts, dev.count, side)


def _log_likelihood(probabilities: Float64, weights: Float64) -> tuple[float, float]:
    """Return the mean log p of what has support, and the share of that."""
    there = probabilities > 0
    mass = float(weights[there].sum())
    mean = float(weights[there] @ np.log(probabilities[there])) / mass if mass else np.nan
    return mean, mass / float(weights.sum())


def _ratio(part: Float64, whole: Float64) -> Float64:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)

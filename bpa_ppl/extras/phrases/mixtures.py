"""Mixtures of an in-domain and an out-of-domain phrase table (Foster, Goutte & Kuhn 2010, §2).

Both directions, p(t|s) and p(s|t), are mixed separately. Below, x is the predicted phrase, y the
given one, I the in-domain table and o the general one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, UsageError, wrong_value
from bpa_ppl.extras.phrases.tables import (
    PhraseCounts,
    PhrasePairs,
    PhraseTable,
    Side,
    align_phrases,
    make_keys,
)

#: Column of a table of probabilities -> the predicted side.
DIRECTIONS: dict[str, Side] = {"direct": "target", "inverse": "source"}
#: By what factor a number must be larger for this not to be an accident.
_CLEARLY = 2.0
#: Grid of the transformed parameter; at its ends α is almost 0 and 1.
_GRID = np.linspace(-14.0, 14.0, 57)


class PairCounts(NamedTuple):
    """Counts of some pairs in two tables, for one direction.

    Attributes:
        pair_in: (pairs,) c_I(x, y).
        marginal_in: (pairs,) c_I(y).
        pair_out: (pairs,) c_o(x, y).
        marginal_out: (pairs,) c_o(y).
    """

    pair_in: Float64
    marginal_in: Float64
    pair_out: Float64
    marginal_out: Float64

    @property
    def p_in(self) -> Float64:
        """p_I(x|y); 0 if y is not in the table."""
        return _ratio(self.pair_in, self.marginal_in)

    @property
    def p_out(self) -> Float64:
        """p_o(x|y); 0 if y is not in the table."""
        return _ratio(self.pair_out, self.marginal_out)


def pool_counts(counts: PairCounts, _: float = 0.0) -> Float64:
    """Return relative frequencies in both corpora together."""
    return _ratio(counts.pair_in + counts.pair_out, counts.marginal_in + counts.marginal_out)


def linear(counts: PairCounts, alpha: float) -> Float64:
    """Return α p_I(x|y) + (1 − α) p_o(x|y); the sum is below 1 if a table lacks y.

    Source: Foster, Goutte & Kuhn (2010), Eq. 2.
    """
    return alpha * counts.p_in + (1 - alpha) * counts.p_out


def _maximum_a_posteriori(counts: PairCounts, beta: float) -> Float64:
    """Return (c_I(x,y) + β p_o(x|y)) / (c_I(y) + β): p_o is a prior worth β pairs.

    Source: Foster, Goutte & Kuhn (2010), Eq. 3.
    """
    return (counts.pair_in + beta * counts.p_out) / (counts.marginal_in + beta)


def _with_fallback(
    mixed: Callable[[PairCounts, float], Float64],
) -> Callable[[PairCounts, float], Float64]:
    """Return a mixture that uses only one table if y is not in the other.

    As published, the probabilities given such a y sum to less than 1.
    """

    def probabilities(counts: PairCounts, value: float) -> Float64:
        interpolated = np.where(counts.marginal_in > 0, mixed(counts, value), counts.p_out)
        return np.where(counts.marginal_out > 0, interpolated, counts.p_in)

    return probabilities


#: p(x|y) of pairs given the value of the parameter, by name on the command line. `log-linear` has
#: the columns of both tables.
METHODS: dict[str, Callable[[PairCounts, float], Float64]] = {
    "concatenate": pool_counts,
    "linear": linear,
    "map": _maximum_a_posteriori,
    "linear-known": _with_fallback(linear),
    "map-known": _with_fallback(_maximum_a_posteriori),
}
#: The parameter of a method, by the start of its name, and the function that maps any number to it.
_PARAMETERS = {"linear": ("alpha", expit), "map": ("beta", np.exp)}
LOG_LINEAR = "log-linear"


def parameter_name(method: str) -> str:
    """Return the name of the parameter of a method; empty if it has none."""
    return _PARAMETERS.get(method.partition("-")[0], ("", None))[0]


@dataclass(frozen=True)
class FittedMixture:
    """A mixture in one direction, fitted to phrase pairs of the domain.

    Attributes:
        method: its name.
        side: the predicted side.
        value: of the parameter; NaN if there is none.
        log_likelihood: mean log p(x|y) (natural) over the occurrences of pairs with support, that
            is, with a probability above 0.
        support: the share of the occurrences with support.
    """

    method: str
    side: Side
    value: float
    log_likelihood: float
    support: float

    def __str__(self) -> str:
        """Return a line, as commands print it."""
        condition = "s" if self.side == "target" else "t"
        parameter = parameter_name(self.method)
        parts = [f"p({self.side[0]}|{condition})", self.method]
        parts += [f"{parameter} = {self.value:.6g}"] if parameter else []
        parts += [f"log-likelihood per pair {self.log_likelihood:.4f}"]
        return ", ".join([*parts, f"{self.support:.1%} of the pairs have support"])


def align_counts(
    inner: PhraseCounts, outer: PhraseCounts, pairs: PhrasePairs, side: Side
) -> PairCounts:
    """Return the counts of pairs of a third table in two tables.

    Args:
        inner: the in-domain table.
        outer: the general table.
        pairs: the pairs.
        side: the predicted side.
    """
    condition: Side = "source" if side == "target" else "target"
    counts = []
    for table in (inner, outer):
        marginals = table.find_marginals(condition, pairs.phrases(condition))
        counts += [table.find_counts(pairs), marginals[pairs.number(condition)]]
    return PairCounts(*counts)


def fit(method: str, counts: PairCounts, weights: Float64, side: Side) -> FittedMixture:
    """Return a mixture with the parameter that maximises the likelihood of pairs of the domain.

    The log-likelihood is Σ p̃(x, y) log p(x|y) over the pairs with support: x occurs with y in some
    table. For the linear mixture it is concave in α.

    Args:
        method: a name in `METHODS`.
        counts: of the pairs in the tables.
        weights: (pairs,) the number of occurrences of each, or p̃(x, y).
        side: the predicted side.

    Raises:
        DataError: if no pair has support.
        UsageError: if there is no such method.

    >>> inner, outer = PhraseCounts.of(["a"], ["x"], [1]), PhraseCounts.of(["a"], ["y"], [1])
    >>> dev = PhraseCounts.of(["a", "a"], ["x", "y"], [3, 1])
    >>> counts = align_counts(inner, outer, dev, "target")
    >>> round(fit("linear", counts, dev.count, "target").value, 6)
    0.75

    It reaches both ends of the range: pairs that are only in IN, or only in OUT.

    >>> for table in (inner, outer):
    ...     counts = align_counts(inner, outer, table, "target")
    ...     print(abs(round(fit("linear", counts, table.count, "target").value, 5)))
    1.0
    0.0
    """
    from scipy.optimize import minimize_scalar

    require_one_of(method, METHODS, "method")
    if not ((counts.pair_in > 0) | (counts.pair_out > 0)).any():
        message = "no phrase pair of dev in one of the tables: check languages and tokenisation"
        raise DataError(message, code="mismatch")
    value = np.nan
    if parameter_name(method):
        _, transform = _PARAMETERS[method.partition("-")[0]]

        def cost(x: float) -> float:
            return -_log_likelihood(METHODS[method](counts, transform(x)), weights)[0]

        middle = min(max(int(np.argmin([cost(x) for x in _GRID])), 1), len(_GRID) - 2)
        bounds = (_GRID[middle - 1], _GRID[middle + 1])
        best = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x
        value = float(transform(best))
    return evaluate_mixture(method, value, counts, weights, side)


def evaluate_mixture(
    method: str, value: float, counts: PairCounts, weights: Float64, side: Side
) -> FittedMixture:
    """Return the likelihood of pairs under a mixture with a given parameter."""
    likelihood = _log_likelihood(METHODS[method](counts, value), weights)
    return FittedMixture(method, side, value, *likelihood)


def mix(
    inner: PhraseCounts,
    outer: PhraseCounts,
    dev: PhraseCounts | None = None,
    method: str = "map",
    value: float | None = None,
) -> tuple[PhraseTable, tuple[FittedMixture, ...]]:
    r"""Return the mixture of two tables of counts, in both directions.

    Args:
        inner: the in-domain table.
        outer: the general table.
        dev: the phrase pairs of other text of the domain, to which the parameter is fitted.
        method: `concatenate`, `linear` or `map`, with `-known` for `_with_fallback`; or
            `log-linear`, with the probabilities of both tables as columns.
        value: of the parameter, for both directions, instead of fitting it.

    Returns:
        The table of all pairs of both, with the columns `direct`, p(t|s), and `inverse`, p(s|t);
        for `log-linear` `direct.in`, `direct.out`, `inverse.in`, `inverse.out`; and the fit of
        each direction to `dev`, if it is given.

    Raises:
        DataError: if no pair of `dev` is in the tables, or languages are swapped.
        UsageError: if there is no such method, its parameter has neither a value nor `dev`, there
            is a value for a method without a parameter, or `dev` is `inner`.

    >>> from pathlib import Path
    >>> from bpa_ppl.extras.phrases.table_files import read_counts
    >>> _ = Path("in.txt").write_text("un ||| a ||| 3\nun ||| one ||| 1\n")
    >>> _ = Path("out.txt").write_text("un ||| a ||| 1\nun ||| one ||| 1\n")
    >>> table, _ = mix(read_counts("in.txt"), read_counts("out.txt"), method="linear", value=0.5)
    >>> table.columns["direct"].tolist()
    [0.625, 0.375]
    >>> mix(read_counts("in.txt"), read_counts("out.txt"), method="linear", value=1.5)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: alpha is a number from 0 to 1, not 1.5
    """
    require_one_of(method, (*METHODS, LOG_LINEAR), "method")
    parameter = parameter_name(method)
    if parameter and dev is None and value is None:
        message = f"{method} needs a value of {parameter}, or a development table to fit it to"
        raise UsageError(message, parameter="value", code="missing-argument")
    if value is not None and not parameter:
        message = f"{method} has no parameter: leave out the value"
        raise UsageError(message, parameter="value", code="conflict")
    if value is not None and not (0 <= value <= 1 if parameter == "alpha" else 0 < value < np.inf):
        allowed = "from 0 to 1" if parameter == "alpha" else "above 0"
        raise wrong_value(f"{parameter} is a number {allowed}", value, "value")
    check_tables(inner, outer, dev)
    inner, outer, *others = align_phrases(inner, outer, *([] if dev is None else [dev]))
    dev = others[0] if others else None
    pairs = join_pairs(inner, outer)
    columns: dict[str, Float64] = {}
    fits = []
    for name, side in DIRECTIONS.items():
        counts = align_counts(inner, outer, pairs, side)
        if method == LOG_LINEAR:
            columns |= {f"{name}.in": counts.p_in, f"{name}.out": counts.p_out}
            continue
        chosen = np.nan if value is None else value
        if dev is not None:
            of_dev = align_counts(inner, outer, dev, side), dev.count, side
            fits += [
                fit(method, *of_dev) if value is None else evaluate_mixture(method, value, *of_dev)
            ]
            chosen = fits[-1].value
        columns[name] = METHODS[method](counts, chosen)
    return PhraseTable.from_pairs(pairs, columns), tuple(fits)


def check_tables(inner: PhraseCounts, outer: PhraseCounts, dev: PhraseCounts | None = None) -> None:
    """Refuse tables with which no mixture makes sense, and warn about doubtful ones.

    Args:
        inner: the in-domain table.
        outer: the general table.
        dev: the phrase pairs of other text of the domain.

    Raises:
        DataError: if more pairs of a table are in the others when its languages are swapped.
        UsageError: if `dev` is the in-domain table itself.

    >>> table = PhraseCounts.of(["chat", "chien"], ["cat", "dog"], [1, 2])
    >>> check_tables(table, PhraseCounts.of(["cat"], ["chat"], [1]))
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: the sides of OUT are swapped, compared with IN: source comes first
    """
    if _is_swapped(outer, [inner]):
        message = "the sides of OUT are swapped, compared with IN: source comes first"
        raise DataError(message, code="mismatch")
    if dev is not None:
        if len(dev) == len(inner) and np.array_equal(inner.find_counts(dev), dev.count):
            message = "the development table is IN itself: give phrase pairs of other text"
            raise UsageError(message, parameter="dev", code="conflict")
        if _is_swapped(dev, [inner, outer]):
            message = "the sides of the development table are swapped: source comes first"
            raise DataError(message, parameter="dev", code="mismatch")
    totals = [max(table.total, table.source_count.sum()) for table in (inner, outer)]
    if totals[0] > _CLEARLY * totals[1]:
        warn_user(
            f"IN has {totals[0]:,.0f} occurrences of phrase pairs, and OUT only {totals[1]:,.0f}: "
            "IN is the small table of the domain, and comes first"
        )


def _is_swapped(table: PhraseCounts, others: Sequence[PhraseCounts]) -> bool:
    """Return whether others have far more of the pairs of a table when its sides are swapped."""
    crossed = PhrasePairs(table.targets, table.sources, table.target, table.source)
    straight_mass, crossed_mass = (
        table.count @ np.any([other.find_rows(pairs) >= 0 for other in others], axis=0)
        for pairs in (table, crossed)
    )
    return bool(crossed_mass > _CLEARLY * straight_mass)


def join_pairs(a: PhraseCounts, b: PhraseCounts) -> PhrasePairs:
    """Return the pairs that are in at least one of two tables."""
    a, b = align_phrases(a, b)
    both = [make_keys(table.source, table.target, len(table.targets)) for table in (a, b)]
    source, target = np.divmod(np.unique(np.concatenate(both)), max(len(a.targets), 1))
    return PhrasePairs(a.sources, a.targets, source.astype(np.int32), target.astype(np.int32))


def _log_likelihood(probabilities: Float64, weights: Float64) -> tuple[float, float]:
    """Return the mean log p of pairs with support, and their share."""
    support = probabilities > 0
    mass = float(weights[support].sum())
    mean = float(weights[support] @ np.log(probabilities[support])) / mass if mass else np.nan
    return mean, mass / float(weights.sum())


def _ratio(part: Float64, total: Float64) -> Float64:
    return np.divide(part, total, out=np.zeros(len(part)), where=total > 0)

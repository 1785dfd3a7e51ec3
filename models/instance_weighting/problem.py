"""The phrase pairs of a mixture of two tables, in the layout that its likelihood is computed in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float32, Float64
from bpa_ppl.phrases.pairs import PhrasePairs, Side, index_in
from bpa_ppl.phrases.tables import PhraseCounts


class Problem(NamedTuple):
    """What p(x | y; φ) of some pairs is computed from; a pytree of arrays.

    D asked pairs, with G different y among them, of which OUT has R pairs, those of one y side by
    side.

    Attributes:
        features: (R, Q) float32, f(x, y).
        count: (R,) float64, c_o(x, y).
        group: (R,) int64, the number of y, from 0 on, ascending.
        starts: (G + 1,) int64, the first row of each y, then R.
        missing: (G,) float64 ≥ 1, κ_y: c_o(y) in the whole corpus over the sum of the rows of y.
        in_total: (G,) float64, c_I(y).
        asked_group: (D,) int64, the number of the y of each asked pair.
        asked_row: (D,) int64, its row, or −1 where OUT does not have it.
        asked_in: (D,) float64, p_I(x | y); 0 where IN does not have it.
        weight: (D,) float64, how often each pair was seen in dev.
        names: (Q,) of the features.
    """

    features: Any
    count: Any
    group: Any
    starts: Any
    missing: Any
    in_total: Any
    asked_group: Any
    asked_row: Any
    asked_in: Any
    weight: Any
    names: tuple[str, ...]

    @property
    def outside(self) -> Any:
        """(G,) bool, whether OUT knows y at all."""
        return self.starts[1:] > self.starts[:-1]

    @property
    def supported(self) -> Any:
        """(D,) bool, whether a pair is in one of the tables: all others have no probability."""
        return (self.asked_in > 0) | (self.asked_row >= 0)

    @property
    def support(self) -> float:
        """The share of the mass p̃ of the asked pairs that has a probability."""
        return float(self.weight[self.supported].sum() / max(self.weight.sum(), 1e-300))

    def flat(self) -> Problem:
        """Return the problem with each count of OUT replaced by 1."""
        return self._replace(count=np.ones_like(self.count))

    def weighted(self, weight: Float64) -> Problem:
        """Return the problem with other counts of the asked pairs, such as those of a fold."""
        return self._replace(weight=np.asarray(weight, np.float64))

    def with_features(self, features: Float32, names: tuple[str, ...]) -> Problem:
        """Return the problem with other features of its rows."""
        return self._replace(features=np.ascontiguousarray(features, np.float32), names=names)

    def only(self, names: tuple[str, ...]) -> Problem:
        """Return the problem with some of its features.

        Raises:
            DataError: if it does not have one of them.
        """
        if names == self.names:
            return self
        absent = [name for name in names if name not in self.names]
        if absent:
            there = ", ".join(self.names) or "none"
            raise DataError(f"no feature {absent[0]} of the phrase pairs: there are {there}")
        return self.with_features(self.features[:, [self.names.index(n) for n in names]], names)


def problem_of(
    inside: PhraseCounts,
    outside: PhraseCounts,
    asked: PhrasePairs,
    features: Float32,
    names: tuple[str, ...],
    side: Side = "target",
) -> Problem:
    """Lay out what the probabilities of some phrase pairs are computed from.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        asked: dev, to fit φ on, or any other pairs, whose probability is wanted. Where they have
            counts, these are their weights.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        side: what is predicted, x: `target` for p(t|s), `source` for p(s|t).

    Raises:
        DataError: if the features do not fit, there is nothing asked, or a feature of a pair is
            not a finite number.
    """
    if features.shape != (len(outside), len(names)):
        raise DataError(
            f"{len(outside)} phrase pairs and {len(names)} names do not fit features of "
            f"shape {features.shape}"
        )
    if not len(asked):
        raise DataError("no phrase pair is asked for: the table of dev is empty")
    given: Side = "source" if side == "target" else "target"
    # Only the pairs with a y that is asked for matter.
    y, asked_group = np.unique(asked.number(given), return_inverse=True)
    phrases = asked.phrases(given).take(pa.array(y))
    place = index_in(outside.phrases(given), phrases)[outside.number(given)]
    rows = np.flatnonzero(place >= 0)
    rows = rows[np.argsort(place[rows], kind="stable")]
    own = np.ascontiguousarray(features[rows], np.float32)
    if not np.isfinite(own).all():
        raise DataError("a feature of a phrase pair is not a finite number")
    group, count = place[rows], outside.count[rows]
    sums = np.bincount(group, count, len(y)).astype(np.float64)
    whole = np.maximum(_of_phrases(outside, given, phrases), sums)
    in_total = _of_phrases(inside, given, phrases)
    # The places of OUT's pairs among those laid out, and −1 for the pair that is not there.
    position = np.full(len(outside) + 1, -1)
    position[rows] = np.arange(len(rows))
    in_count = np.append(inside.count, 0.0)[inside.rows_of(asked)]
    return Problem(
        features=own,
        count=count,
        group=group,
        starts=np.searchsorted(group, np.arange(len(y) + 1)),
        missing=np.divide(whole, sums, out=np.ones_like(sums), where=sums > 0),
        in_total=in_total,
        asked_group=asked_group,
        asked_row=position[outside.rows_of(asked)],
        asked_in=in_count / np.maximum(in_total, 1e-300)[asked_group],
        weight=asked.count if isinstance(asked, PhraseCounts) else np.ones(len(asked)),
        names=tuple(names),
    )


def _of_phrases(table: PhraseCounts, side: Side, phrases: pa.Array) -> Float64:
    """Return the counts of some phrases of one side; 0 of one that the table does not have."""
    return np.append(table.marginal(side), 0.0)[table.numbers_of(side, phrases)]

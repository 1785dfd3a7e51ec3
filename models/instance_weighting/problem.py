"""The phrase pairs of a mixture of two tables, in the layout of its likelihood."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float32
from bpa_ppl.phrases.tables import PhraseCounts, PhrasePairs, Side, index_in, sums


class Problem(NamedTuple):
    """The data for p(x | y; φ) of some pairs; a pytree of arrays.

    D queried pairs, with G different y among them, of which OUT has R pairs, grouped by y.

    Attributes:
        features: (R, Q) float32, f(x, y).
        count: (R,) float64, c_o(x, y).
        group: (R,) int64, the number of y, ascending from 0.
        starts: (G + 1,) int64, the first row of each y, then R.
        missing: (G,) float64 ≥ 1, κ_y: c_o(y) in the whole corpus over the sum of the rows of y.
        in_total: (G,) float64, c_I(y).
        query_group: (D,) int64, the number of the y of each queried pair.
        query_row: (D,) int64, its row, or −1 if OUT does not have it.
        query_in: (D,) float64, p_I(x | y); 0 if IN does not have it.
        weight: (D,) float64, the count of each pair in dev.
        names: (Q,) of the features.
    """

    features: Any
    count: Any
    group: Any
    starts: Any
    missing: Any
    in_total: Any
    query_group: Any
    query_row: Any
    query_in: Any
    weight: Any
    names: tuple[str, ...]

    @property
    def outside(self) -> Any:
        """(G,) bool, whether OUT has y."""
        return self.starts[1:] > self.starts[:-1]

    @property
    def supported(self) -> Any:
        """(D,) bool, whether a pair is in one of the tables; other pairs have no probability."""
        return (self.query_in > 0) | (self.query_row >= 0)

    @property
    def support(self) -> float:
        """The share of the mass p̃ of the queried pairs that has a probability."""
        return float(self.weight[self.supported].sum() / max(self.weight.sum(), 1e-300))

    def only(self, names: tuple[str, ...]) -> Problem:
        """Return the problem with some of its features.

        Raises:
            DataError: if it does not have one of them.
        """
        if names == self.names:
            return self
        missing = [name for name in names if name not in self.names]
        if missing:
            available = ", ".join(self.names) or "none"
            message = f"the phrase pairs have no feature {missing[0]}: they have {available}"
            raise DataError(message, code="missing-feature")
        columns = self.features[:, [self.names.index(name) for name in names]]
        return self._replace(features=np.ascontiguousarray(columns, np.float32), names=names)


def problem_of(
    inside: PhraseCounts,
    outside: PhraseCounts,
    pairs: PhrasePairs,
    features: Float32,
    names: tuple[str, ...],
    side: Side = "target",
) -> Problem:
    """Collect the data for the probabilities of some phrase pairs.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        pairs: dev, to fit φ on, or any other pairs to query. Their counts, if any, are their
            weights.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        side: the predicted side, x: `target` for p(t|s), `source` for p(s|t).

    Raises:
        DataError: if the features do not fit, no pair is queried, or a feature is not a finite
            number.
    """
    if features.shape != (len(outside), len(names)):
        raise DataError(
            f"{len(outside)} phrase pairs and {len(names)} names do not fit features of "
            f"shape {features.shape}",
            code="wrong-length",
        )
    if not len(pairs):
        message = "there is no phrase pair to query: the table of dev is empty"
        raise DataError(message, code="no-data")
    condition: Side = "source" if side == "target" else "target"
    # Only pairs with a queried y matter.
    y, query_group = np.unique(pairs.number(condition), return_inverse=True)
    phrases = pairs.phrases(condition).take(pa.array(y))
    group_of_pair = index_in(outside.phrases(condition), phrases)[outside.number(condition)]
    rows = np.flatnonzero(group_of_pair >= 0)
    rows = rows[np.argsort(group_of_pair[rows], kind="stable")]
    values = np.ascontiguousarray(features[rows], np.float32)
    if not np.isfinite(values).all():
        message = "a feature of a phrase pair is not a finite number"
        raise DataError(message, code="bad-number")
    group, count = group_of_pair[rows], outside.count[rows]
    of_rows = sums(group, count, len(y))
    marginals = np.maximum(outside.marginals_of(condition, phrases), of_rows)
    in_total = inside.marginals_of(condition, phrases)
    # The rows of OUT's pairs in the problem, and −1 for a pair that OUT does not have.
    position = np.full(len(outside) + 1, -1)
    position[rows] = np.arange(len(rows))
    return Problem(
        features=values,
        count=count,
        group=group,
        starts=np.searchsorted(group, np.arange(len(y) + 1)),
        missing=np.divide(marginals, of_rows, out=np.ones_like(of_rows), where=of_rows > 0),
        in_total=in_total,
        query_group=query_group,
        query_row=position[outside.rows_of(pairs)],
        query_in=inside.counts_of(pairs) / np.maximum(in_total, 1e-300)[query_group],
        weight=pairs.count if isinstance(pairs, PhraseCounts) else np.ones(len(pairs)),
        names=tuple(names),
    )

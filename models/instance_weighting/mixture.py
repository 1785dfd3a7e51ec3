"""The weighted mixture of two phrase tables: its data, forms and parameters.

After Foster et al. (2010), Eq. 4 to 7. For pairs (x, y), of which x is predicted from y, and the
OUT pairs r of y with counts c_r:

    p(x | y) = α_y p_I(x | y) + (1 − α_y) p_o(x | y)
    p_o(x | y) = (w_x + γ u) / (κ_y Σ_r w_r + γ)
    w_r = c_r · logistic(λ · f_r)

The uniform u is over the x that OUT has with y, 1 / (κ_y n_y) for n_y rows. κ_y is 1 if all pairs
of y are in the table. If the table is a part of a larger one, c_o(y) of the whole is given, and the
missing mass gets the mean weight of the available pairs, so that the sum over all pairs of y is
κ_y Σ_r w_r, κ_y = c_o(y) / Σ_r c_r.

If only one of the tables has y, it gets all the weight, α_y = 1 or 0, unless the variant is not
complete: p(· | y) sums to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from bpa_ppl.arrays import Float32
from bpa_ppl.errors import DataError, one_of
from bpa_ppl.labels import places_of
from bpa_ppl.phrases.pair_features import GENERAL, SIMILARITY, SVM
from bpa_ppl.phrases.tables import PhraseCounts, PhrasePairs, Side, index_in, sums

#: The mixtures of IN and OUT (Eq. 4): one α, or α_y = c_I(y) / (c_I(y) + β).
MIXTURES = ("linear", "map")


class MixtureData(NamedTuple):
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


def mixture_data(
    inside: PhraseCounts,
    outside: PhraseCounts,
    pairs: PhrasePairs,
    features: Float32,
    names: tuple[str, ...],
    side: Side = "target",
) -> MixtureData:
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
        DataError: if a feature is not a finite number.
    """
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
    # The rows of OUT's pairs in the data, and −1 for a pair that OUT does not have.
    position = np.full(len(outside) + 1, -1)
    position[rows] = np.arange(len(rows))
    return MixtureData(
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


@dataclass(frozen=True)
class Variant:
    """One form of the weighted mixture p(x | y; φ).

    Attributes:
        mixture: `linear`, with one α for all, or `map`, α_y = c_I(y) / (c_I(y) + β) (Eq. 4).
        smoothed: whether γ is fitted; otherwise it is 0 (Eq. 5).
        link: from the weighted features to the factor of a count: `logistic` (Eq. 6), or
            `exponential`.
        flat: whether each nonzero count c_o is replaced by 1.
        features: the names of the features that have a weight; None takes all.
        complete: whether the only table that has y gets all the weight, so that p(· | y) sums to
            one; otherwise, as in the equations, the share of the other table is lost.
    """

    mixture: Literal["linear", "map"] = "map"
    smoothed: bool = True
    link: Literal["logistic", "exponential"] = "logistic"
    flat: bool = False
    features: tuple[str, ...] | None = None
    complete: bool = True

    def apply(self, data: MixtureData) -> MixtureData:
        """Return data with the counts and features that the variant uses."""
        names = data.names if self.features is None else self.features
        if names != data.names:
            columns = data.features[:, places_of(names, data.names)]
            data = data._replace(features=np.ascontiguousarray(columns, np.float32), names=names)
        return data._replace(count=np.ones_like(data.count)) if self.flat else data

    @property
    def mixing_name(self) -> str:
        """The name of the mixing parameter: `alpha` or `beta`."""
        return "alpha" if self.mixture == "linear" else "beta"


#: The forms of a mixture, by name; each is linear or MAP.
FORMS: dict[str, dict[str, Any]] = {
    "weighted": {},
    "gamma-0": {"smoothed": False},
    "flat": {"flat": True},
    "exponential": {"link": "exponential"},
    "general": {"features": GENERAL},
    "similarity": {"features": SIMILARITY},
    "svm": {"features": (SVM,)},
}


def variant_named(form: str, mixture: str = "map") -> Variant:
    """Return a form of mixture by name.

    Args:
        form: `weighted`, with all features; `gamma-0`, without smoothing; `flat`; `exponential`; or
            with only the features `general`, `similarity` or `svm`.
        mixture: `linear` or `map`.

    Raises:
        UsageError: if there is no such form or mixture.

    >>> variant_named("gamma-0").smoothed
    False
    """
    settings = FORMS[one_of(form, FORMS, "form of instance weighting", "form")]
    return Variant(mixture=one_of(mixture, MIXTURES, "mixture"), **settings)  # type: ignore[arg-type]


class Phi(NamedTuple):
    """The parameters φ.

    Attributes:
        mixing: α of a linear mixture, β of a MAP one.
        gamma: γ, the weight of the uniform distribution in p_o, in counts.
        weights: (Q,) λ, of the features.
    """

    mixing: Any
    gamma: Any
    weights: Any

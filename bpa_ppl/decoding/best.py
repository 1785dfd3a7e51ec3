"""The rule `best`: a simple way to choose, where leave-one-out says that it is better."""

from __future__ import annotations

import math

import numpy as np

from bpa_ppl.decoding.rules import AlignedDraws, Mean
from bpa_ppl.evaluation.compare_ways import read_comparison
from bpa_ppl.evaluation.paired import WORSE
from bpa_ppl.evaluation.simple_ways import BaselineRow
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weight_draws import WeightDraws


class Best(Mean, frozen=True):
    """`mean`, or the weights of a simple way to choose that is better by leave-one-out.

    `adapt` compares its weights with simple ways to choose on the adaptation sentences, and the
    posterior records the result. Where the adapted weights are worse by more than the error of the
    difference, so that `adapt` warns, the weights of the way with the highest mean gain choose in
    their place: those of the mean of the standardised features, the best single feature, a
    regression, the canonical weights, or those of the best single system if systems are features.
    Ways that do not weight features, such as the first candidate, are not taken. The probabilities
    of a simple way are not calibrated, except those of preferences.

    >>> import warnings
    >>> from bpa_ppl import Isotropic, Reranker, adapt, from_lists
    >>> rng = np.random.default_rng(0)
    >>> table, texts = rng.normal(size=(40, 3, 2)), [["a", "b", "c"]] * 40
    >>> lists = from_lists(texts, list(table), ["good", "bad"])
    >>> lists = lists.with_extras(grade=table[..., 0].ravel())
    >>> poor = Isotropic(variance={"good": 1e-6, "bad": 1e-6})
    >>> with warnings.catch_warnings(action="ignore"):  # "the adapted weights are worse than …"
    ...     posterior = adapt(lists, {"good": 0.0, "bad": 1.0}, gain="grade", prior=poor,
    ...                       sampler="laplace")
    >>> reranker = Reranker(posterior, rule="best")
    >>> bool((reranker(lists).choice == table[..., 0].argmax(axis=1)).all())
    True
    """

    def align(self, draws: WeightDraws, lists: NBest) -> AlignedDraws:
        """Return the weights of the better way as one draw, or the draws if there is none."""
        aligned, way = super().align(draws, lists), find_better_way(draws)
        if way is None:
            return aligned
        weights = np.array([way.feature_weights.get(name, 0.0) for name in lists.feature_names])
        slope = 1.0 if math.isnan(way.slope) else way.slope
        return AlignedDraws(slope * weights[None], np.zeros(1), np.zeros(1), 1.0)

    def explain(self, draws: WeightDraws) -> str:
        way, comparison = find_better_way(draws), read_comparison(draws.adaptation)
        if comparison is None:
            return "rule best: the posterior records no comparison with simple ways; mean chooses"
        if way is None:
            return "rule best: no simple way with weights is clearly better; mean chooses"
        reason = comparison.sentence(way, advise=False)
        return f"rule best: the weights of the {way.label} choose, because {reason}"


def find_better_way(draws: WeightDraws) -> BaselineRow | None:
    """Return the best way with weights of features that leave-one-out shows to be better, or None.

    Raises:
        DataError: if the recorded comparison cannot be read.
    """
    comparison = read_comparison(draws.adaptation)
    rows = () if comparison is None else comparison.rows
    better = [row for row in rows if (row.kind, row.verdict) == ("baseline", WORSE)]
    names = {*draws.features, *draws.fixed}
    usable = [row for row in better if not names.isdisjoint(row.feature_weights)]
    return max(usable, key=lambda row: row.gain, default=None)

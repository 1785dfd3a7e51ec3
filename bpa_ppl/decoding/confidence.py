"""Confidence: expected scores of the choices under the posterior predictive distribution."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.decoding.rules import distinct_texts, likely_references
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.column import column_of
from bpa_ppl.quality.pairs import Edited, pairs_of


@dataclass(frozen=True, eq=False)
class Confidence:
    """Expected scores of the choices under the posterior predictive (S lists).

    Hypothesis e' of a list is right with probability p(e'|f); equal strings count as one. Scores
    are against these hypotheses, not against a reference: a reference is rarely in the list, and
    the errors of the oracle are not included.

    The gain is that of the rule `mbr`, else the criterion of the posterior: TER, BLEU, chrF, WER or
    CER. For any other criterion, such as a column of judgements, which has no value of one
    candidate with another as the reference, it is chrF.

    Attributes:
        better: (S,) the probability that the rule's choice has a higher gain, with e' as the
            reference, than the canonical first-best; 0 where they are the same string.
        worse: (S,) that it has a lower one.
        score: (S,) the expected score of the choice in the metric, in percent; NaN without one.
            For TER, the expected edits divided by the expected length.
        canonical_score: (S,) that of the canonical first-best.
        gain: (S,) the expected value of the column of gains that the posterior was adapted to:
            its mean over the judged candidates, weighted by their probabilities. NaN where the
            lists do not carry the column, or no candidate is judged.
        metric: the criterion of the posterior where texts of a list can be compared by it, such
            as `ter`; else None.
        column: the name of the column of gains, where the lists carry it.
    """

    better: Float64
    worse: Float64
    score: Float64
    canonical_score: Float64
    gain: Float64
    metric: str | None = "ter"
    column: str | None = None


def confidence_in(
    lists: NBest,
    probabilities: Float64,
    chosen: Int64,
    *,
    gain: str,
    metric: str | None,
    column: str | None,
) -> Confidence:
    """Return the expected scores of choices.

    Args:
        lists: some lists.
        probabilities: (hypotheses,) of the posterior predictive distribution.
        chosen: (S, 2) the choice from each list, and the canonical first-best.
        gain: by which a choice is better, such as `ter`; see `Confidence`.
        metric: of the expected scores; None for none of them.
        column: the column of gains, which the lists may lack.
    """
    parts = []
    column = column if column in (*lists.feature_names, *lists.extras) else None
    gains = np.full(len(probabilities), np.nan) if column is None else column_of(lists, column)
    for s in range(len(lists)):
        rows = lists.rows(s)
        texts, group, p = distinct_texts(lists, s, probabilities)
        right, share = likely_references(p)
        pair = group[chosen[s]]
        compared = {
            name: -Edited(texts).edits(pair, right).astype(np.float64)
            if name == "ter"
            else pairs_of(texts, name).scores(pair, right)
            for name in {gain, metric or gain}
        }
        better = share @ (compared[gain][0] > compared[gain][1])
        worse = share @ (compared[gain][0] < compared[gain][1])
        scores = np.full(2, np.nan) if metric is None else compared[metric] @ share
        if metric == "ter":
            length = float(share @ np.array([len(texts[i].split()) for i in right]))
            scores = -100 * scores / max(length, 1)
        judged = np.isfinite(gains[rows])
        mass = probabilities[rows][judged]
        gain_mean = gains[rows][judged] @ mass / mass.sum() if mass.sum() > 0 else np.nan
        parts.append((better, worse, *scores, gain_mean))
    columns = [np.array(part, np.float64) for part in zip(*parts, strict=True)]
    names = [field.name for field in fields(Confidence)][: len(columns)]
    return Confidence(**dict(zip(names, columns, strict=True)), metric=metric, column=column)

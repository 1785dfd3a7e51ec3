"""Confidence: expected scores of the choices under the posterior predictive distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.decoding.rules import AlignedDraws
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.column import column_of
from bpa_ppl.quality.pairs import Edited, most_probable, pairs_of

# Texts that are less probable are left out: too few to matter, too many to be compared.
_NEGLIGIBLE = 1e-6
_NORMAL = 1.959963984540054  # half the width of a 95% interval, in standard deviations


@dataclass(frozen=True)
class Expected:
    """The expected TER of a text.

    Attributes:
        value: in percent.
        low: the lower end of the 95% interval, over draws and over what is right.
        high: its upper end.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} (95%: {self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, eq=False)
class Confidence:
    """Expected scores of the choices under the posterior predictive (S sentences, D draws).

    Hypothesis e' of a list is right with probability p(e'|f); equal strings count as one. Scores
    are against these hypotheses, not against a reference: a reference is rarely in the list, and
    the errors of the oracle are not included.

    The gain is that of the rule `mbr`, else the criterion of the posterior: TER, BLEU, chrF, WER or
    CER. For any other criterion, such as a column of judgements, which has no value of one
    candidate with another as the reference, it is chrF. Edits are NaN unless TER is the gain or the
    criterion.

    Attributes:
        better: (S,) the probability that the rule's choice has a higher gain, with e' as the
            reference, than the canonical first-best; 0 where they are the same string.
        worse: (S,) that it has a lower one.
        edits: (S,) expected edits of the choice.
        canonical_edits: (S,) those of the canonical first-best.
        length: (S,) the expected length of what is right, in words.
        variance: (S,) of the edits of the choice, given the weights.
        by_draw: (S, D) the expected edits of the choice given each of some draws of the weights.
        score: (S,) the expected score of the choice in the metric, in percent; NaN without one.
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
    edits: Float64
    canonical_edits: Float64
    length: Float64
    variance: Float64
    by_draw: Float64
    score: Float64
    canonical_score: Float64
    gain: Float64
    metric: str | None = "ter"
    column: str | None = None

    @classmethod
    def joined(cls, parts: Sequence[Confidence]) -> Confidence:
        """Concatenate the confidence of several parts."""
        joined = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)
            if field.name not in ("metric", "column")
        }
        return cls(**joined, metric=parts[0].metric, column=parts[0].column)

    @property
    def ter(self) -> Float64:
        """(S,) the expected TER of each choice, in percent."""
        return 100 * self.edits / np.maximum(self.length, 1)

    @property
    def sums(self) -> Float64:
        """(3 + D,) the sums that `expected` takes; those of several parts can be added."""
        columns = np.column_stack([self.edits, self.length, self.variance, self.by_draw])
        return np.asarray(columns.sum(axis=0))

    @property
    def corpus(self) -> Expected:
        """The expected TER of the whole text."""
        return expected(self.sums)


def expected(sums: Float64) -> Expected:
    """Return the expected TER of a text from `Confidence.sums`.

    Sentences are independent given the weights; what draws of the weights differ in is added. Its
    variance is E_λ Var(edits|λ) + Var_λ E(edits|λ).

    >>> print(expected(np.array([30.0, 100.0, 9.0, 26.0, 34.0])))
    30.00 (95%: 20.20 to 39.80)
    """
    edits, length, variance, by_draw = sums[0], max(sums[1], 1.0), sums[2], sums[3:]
    half = _NORMAL * float(np.sqrt(variance + by_draw.var()))
    low, high = max(edits - half, 0.0), edits + half
    return Expected(*(100 * float(value) / length for value in (edits, low, high)))


def confidence_in(
    lists: NBest,
    probabilities: Float64,
    draws: AlignedDraws,
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
        draws: some draws of the weights, of equal importance.
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
        strings, group = np.unique(lists.string_index[rows], return_inverse=True)
        p = np.bincount(group, weights=probabilities[rows])
        right = most_probable(np.where(p > _NEGLIGIBLE, p, 0.0))
        share = p[right] / p[right].sum()
        texts, pair = [lists.strings[i] for i in strings], group[chosen[s]]
        length, edits = np.nan, np.full((2, len(texts)), np.nan)
        if "ter" in (gain, metric):
            edited = Edited(texts)
            edits = np.zeros((2, len(texts)))
            edits[:, right] = edited.edits(pair, right)
            length = float(share @ edited.lengths[right])
        gain_of_choice = -edits[:, right]
        if gain != "ter":
            gain_of_choice = pairs_of(texts, gain).scores(pair, right)
        score = gain_of_choice
        if metric not in (gain, "ter", None):
            score = pairs_of(texts, metric).scores(pair, right)
        better = share @ (gain_of_choice[0] > gain_of_choice[1])
        worse = share @ (gain_of_choice[0] < gain_of_choice[1])
        mean = edits[:, right] @ share
        by_draw, squares = _by_draw(lists.features[rows].astype(np.float64), edits[0, group], draws)
        variance = np.mean(squares - by_draw**2)
        scores = 100 * mean / max(length, 1) if metric == "ter" else score @ share
        if metric is None:
            scores = np.full(2, np.nan)
        judged = np.isfinite(gains[rows])
        mass = probabilities[rows][judged]
        gain_mean = gains[rows][judged] @ mass / mass.sum() if mass.sum() > 0 else np.nan
        parts.append((better, worse, *mean, length, variance, by_draw, *scores, gain_mean))
    columns = [np.array(part, np.float64) for part in zip(*parts, strict=True)]
    names = [field.name for field in fields(Confidence)][: len(columns)]
    return Confidence(**dict(zip(names, columns, strict=True)), metric=metric, column=column)


def _by_draw(features: Float64, edits: Float64, draws: AlignedDraws) -> tuple[Float64, Float64]:
    """Return the expectation under each draw of the edits, (N,) ↦ (D,), and of their squares."""
    parts = []
    for _, scores in draws.blocks(features):
        p = np.exp(scores, out=scores)
        parts.append(np.stack([edits, edits**2]) @ (p / p.sum(axis=0)))
    return tuple(np.concatenate(parts, axis=1))

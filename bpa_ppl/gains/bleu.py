"""BLEU (Papineni et al., 2002), as sacreBLEU defines it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.gains.metric import Lists, Metric, References, Score, sacrebleu_signature
from bpa_ppl.text.words import Vocabulary

#: The tokenisers of sacreBLEU that need no other package or download.
Tokeniser = Literal["none", "13a", "intl", "char", "zh"]

#: The longest n-grams that BLEU counts.
ORDER = 4


class BLEU(Metric, frozen=True):
    """BLEU with up to four-grams, in percent.

    Orders without a match are smoothed exponentially (Chen and Cherry, 2014). Sentences are scored
    with effective order, a corpus without, as sacreBLEU recommends. The counts of a candidate are
    its matches of order 1 to 4, its n-grams of order 1 to 4, and the length of the nearest
    reference in words.

    Args:
        tokenize: sacreBLEU's tokeniser; "none", because n-best lists are tokenised already.
        lowercase: ignore case.

    Raises:
        UsageError: if the tokeniser is unknown.

    >>> BLEU(lowercase=True)
    BLEU(tokenize='none', lowercase=True)
    >>> float(BLEU().value(np.array([3.0, 2, 1, 1, 4, 3, 2, 1, 4])).round(2))
    70.71
    """

    key: ClassVar[str] = "bleu"

    tokenize: Tokeniser = "none"
    lowercase: bool = False

    width = 2 * ORDER + 1

    def signature(self, references: References, *, sentence: bool = False) -> str:
        return sacrebleu_signature(self._scorer(sentence), references)

    def score(self, sums: Float64, references: References) -> Score:
        return replace(super().score(sums, references), value=self._exact(sums))

    def counts(self, lists: Lists, references: References) -> Float64:
        """Return (candidates, 9) matches, n-grams and reference lengths."""
        from bpa_ppl.gains.pairwise_compiled import count_matches, count_ngrams

        split, rows = self._splitter(), [np.zeros((0, self.width))]
        for texts, refs in zip(lists, references, strict=True):
            text = Vocabulary().number([split(text) for text in (*texts, *refs)])
            hyps, others = np.split(np.arange(len(text[1]) - 1), [len(texts)])
            lengths = np.diff(text[1])
            bags = count_ngrams(*text, ORDER)
            matches = count_matches(bags, ORDER, hyps, others, True)[:, 0]
            totals = np.maximum(lengths[hyps, None] - np.arange(ORDER), 0)
            shortest = np.sort(lengths[others])  # of two that are equally near the shorter
            nearest = shortest[np.abs(shortest - lengths[hyps, None]).argmin(axis=1)]
            rows.append(np.column_stack([matches, totals, nearest]).astype(np.float64))
        return np.concatenate(rows)

    def value(self, sums: Float64) -> Float64:
        matches, totals = sums[..., :ORDER], sums[..., ORDER : 2 * ORDER]
        unmatched = matches == 0
        substitutes = 0.5 ** np.cumsum(unmatched, axis=-1)  # 1/2 for the first order, then 1/4, …
        numerators = np.where(unmatched, substitutes, matches)
        precision = np.log(numerators / np.maximum(totals, 1)).mean(axis=-1)
        undefined = unmatched.all(axis=-1) | (totals == 0).any(axis=-1)
        return 100 * np.where(undefined, 0, np.exp(precision + _log_brevity_penalty(sums)))

    def sentence_values(self, counts: Float64) -> Float64:
        return np.array([self._exact(row, effective_order=True) for row in counts], np.float64)

    def details_of(self, sums: Float64) -> dict[str, float]:
        """Return unsmoothed precisions in percent, brevity penalty, and length ratio."""
        precisions = 100 * sums[:ORDER] / np.maximum(sums[ORDER : 2 * ORDER], 1)
        details = {f"precision_{n}": float(p) for n, p in enumerate(precisions, 1)}
        details["brevity_penalty"] = float(np.exp(_log_brevity_penalty(sums)))
        return {**details, "length_ratio": float(_length_ratio(sums))}

    def fraction(self, counts: Float64) -> Float64:
        """Return BLEU+1 (Lin and Och, 2004: ORANGE).

        1 is added to the matches and the n-grams of orders above 1.
        """
        smoothed = counts.copy()
        smoothed[:, [*range(1, ORDER), *range(ORDER + 1, 2 * ORDER)]] += 1
        return _compute_bleu(smoothed, counts[:, ORDER])

    def gain(self, counts: Float64) -> Float64:
        """Return BLEU+1 times the reference length."""
        return self.fraction(counts) * counts[:, 2 * ORDER]

    def background(self) -> Float64:
        """Return ones, as kbmira does."""
        return np.ones(self.width)

    def within(self, counts: Float64, background: Float64) -> Float64:
        """Return BLEU of background and sentence, times their reference length (Chiang, 2008)."""
        sums = counts + background
        return _compute_bleu(sums, sums[:, ORDER]) * sums[:, 2 * ORDER]

    def _splitter(self) -> Callable[[str], list[str]]:
        """Return the function that splits a text into words."""
        lowered: Callable[[str], str] = str.lower if self.lowercase else str
        if self.tokenize == "none":
            return lambda text: lowered(text).split()
        tokenise = self._scorer().tokenizer
        return lambda text: tokenise(lowered(text).rstrip()).split()

    def _scorer(self, sentence: bool = False) -> Any:
        """Return sacreBLEU's BLEU with these settings, for single sentences or a corpus."""
        from sacrebleu import metrics

        return metrics.BLEU(
            lowercase=self.lowercase,
            force=True,
            tokenize=self.tokenize,
            effective_order=sentence,
        )

    def _exact(self, counts: Float64, *, effective_order: bool = False) -> float:
        """Return sacreBLEU's score of counts, (9,), which rounds as sacreBLEU does."""
        from sacrebleu import metrics

        *grams, length = counts.astype(int).tolist()
        matches, totals = grams[:ORDER], grams[ORDER:]
        score = metrics.BLEU.compute_bleu(
            matches, totals, totals[0], length, "exp", effective_order=effective_order
        )
        return float(score.score)


class LengthRatio(BLEU, frozen=True):
    """Words of translations over those of the nearest references, from the counts of BLEU.

    It is reported with other scores, and is not meant to be optimised.

    >>> float(LengthRatio().value(np.array([3.0, 2, 1, 1, 4, 3, 2, 1, 5])))
    0.8
    """

    key: ClassVar[str] = "length"
    title = "length"
    reported: ClassVar[bool] = False
    decimals: ClassVar[int] = 3

    def value(self, sums: Float64) -> Float64:
        return _length_ratio(sums)

    def score(self, sums: Float64, references: References) -> Score:
        return Score(float(self.value(sums)), self.key, self.title, "", decimals=self.decimals)


def _length_ratio(sums: Float64) -> Float64:
    return np.asarray(sums[..., ORDER] / np.maximum(sums[..., 2 * ORDER], 1))


def _log_brevity_penalty(sums: Float64) -> Float64:
    """Return the logarithm of the brevity penalty, (…, 9) ↦ (…)."""
    length = np.maximum(sums[..., ORDER], 1)
    return np.minimum(0, 1 - sums[..., 2 * ORDER] / length)


def _compute_bleu(counts: Float64, lengths: Float64) -> Float64:
    """Return BLEU, (n,), of counts as a fraction; `lengths` are in words."""
    with np.errstate(divide="ignore"):  # no word matches: log 0, and BLEU is 0
        logs = np.log(counts[:, :ORDER] / np.maximum(counts[:, ORDER : 2 * ORDER], 1))
    precision = logs.mean(axis=1)
    brevity = 1 - counts[:, 2 * ORDER] / np.maximum(lengths, 1)
    result: Float64 = np.exp(precision + np.minimum(0, brevity))
    return result

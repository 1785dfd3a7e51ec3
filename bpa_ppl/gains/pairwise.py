"""Pairs: sentence scores of the texts of a list with each other as references.

They are needed for minimum-risk decoding and expected scores. Scores are those of sacreBLEU for
single sentences, with its settings for tokenised text, and WER and CER.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TypeAlias

import numpy as np

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.text.words import Ragged, Vocabulary

#: The metrics that can compare the texts of a list.
PAIRED = ("ter", "bleu", "chrf", "wer", "cer")
#: Expected scores (in percent) that differ by less are equal: rounding depends on summation order.
TIE = 1e-7
_FIRST_REFERENCES = 16  # that a text is compared with; then twice as many, and so on


def make_pairs(texts: Sequence[str], metric: str = "ter") -> Pairs:
    """Return the pairs of some texts.

    Args:
        texts: (U,) distinct texts of a list.
        metric: `ter` (ignores case), `bleu` (smoothed, effective order), `chrf`, `wer` or `cer`.

    Raises:
        UsageError: if the metric cannot compare the texts of a list, or its package is missing.

    >>> texts = ["a cat sat", "the cat sat", "the cat sat down"]
    >>> make_pairs(texts).best(np.array([0.4, 0.3, 0.3]))
    (1, -20.833333333333332)
    >>> make_pairs(texts).scores(np.array([1]), np.array([0, 2])).round(1).tolist()
    [[-33.3, -25.0]]
    """
    require_one_of(metric, PAIRED, "metric of pairs of texts", "metric")
    if metric in ("wer", "cer"):
        from bpa_ppl.gains.wer import CER, WER

        return _UnitPairs((WER() if metric == "wer" else CER()).units(texts))
    if metric == "ter":
        return _EditedPairs(texts)
    if metric == "chrf":
        return NgramPairs(split_characters(texts), 6)
    return NgramPairs([text.split() for text in texts], 4)


def split_characters(texts: Sequence[str]) -> list[str]:
    """Return the characters of each text that chrF compares: all but blanks.

    >>> split_characters(["a cat  sat", ""])
    ['acatsat', '']
    """
    return ["".join(text.split()) for text in texts]


def sort_by_probability(p: Float64) -> Int64:
    """Return the texts of positive probability, the most probable first.

    >>> sort_by_probability(np.array([0.2, 0.0, 0.8])).tolist()
    [2, 0]
    """
    order = np.argsort(-p, kind="stable")
    return order[: np.count_nonzero(p > 0)]


class _EditedPairs:
    """Texts compared by TER (Snover et al. 2006).

    For any order of the words, at least max(|e|, |e'|) − overlap edits are needed. The expected
    values of these bounds guide a branch-and-bound search for the best text.

    Args:
        texts: distinct texts.

    Attributes:
        lengths: (U,) in words.
    """

    def __init__(self, texts: Sequence[str]):
        vocabulary, words = Vocabulary(), [text.lower().split() for text in texts]
        self._text = vocabulary.number(words)
        self._vocabulary = len(vocabulary)
        self.lengths: Int64 = np.diff(self._text[1])
        # Texts that differ in case only are equal here.
        self._same = np.unique([" ".join(tokens) for tokens in words], return_inverse=True)[1]

    def best(self, p: Float64) -> tuple[int, float]:
        """Return the text with the best expected score, and this score in percent.

        The expected score of e is Σ_e' p(e') score(e, e'). Among equal ones (by 1e-7) the more
        probable text is chosen, then the first. TER is negated: higher is better.

        Best first: the edits to the next references, the most probable ones first, are computed for
        the text with the lowest bound, until this text has all of them.

        Args:
            p: (U,) the probability that each is right.
        """
        references = sort_by_probability(p)
        weights = p[references]
        bounds = self._percent(self._lower_bounds(references), references)
        risks = bounds @ weights
        queue = [(risk, u, 0) for u, risk in enumerate(risks.tolist())]
        heapify(queue)
        best, lowest = -1, np.inf
        while queue and queue[0][0] <= lowest + TIE:
            risk, u, count = heappop(queue)
            if count < len(references):
                stop = min(len(references), max(_FIRST_REFERENCES, 2 * count))
                block = references[count:stop]
                exact = self._percent(self.edits(np.array([u]), block), block)[0]
                risk += float((exact - bounds[u, count:stop]) @ weights[count:stop])
                heappush(queue, (risk, u, stop))
            elif best < 0 or (-p[u], u) < (-p[best], best):
                best, lowest = u, min(lowest, risk)
        return best, -lowest

    def _lower_bounds(self, columns: Int64) -> Int64:
        """Return lower bounds of the edits, (U, columns), for any order of the words.

        They are at least 1 for texts that differ.
        """
        from bpa_ppl.gains.tercom import lower_bounds

        count = len(self.lengths)
        text = _take_sentences(self._text, np.concatenate([np.arange(count), columns]))
        refs = count, count + len(columns)
        bounds = lower_bounds(*text, (0, count), refs, np.zeros(self._vocabulary, np.int32)).T
        return np.asarray(np.maximum(bounds, self._same[:, None] != self._same[columns]))

    def scores(self, rows: Int64, columns: Int64) -> Float64:
        """Return minus TER, (rows, columns), of texts with others as references."""
        return -self._percent(self.edits(rows, columns), columns)

    def edits(self, rows: Int64, columns: Int64) -> Int64:
        """Return the edits, (rows, columns), from some texts to others."""
        from bpa_ppl.gains.tercom import count_edits

        # Each reference is a separate list, whose candidates are the rows.
        count, candidates = len(columns), len(rows) * len(columns)
        text = _take_sentences(self._text, np.concatenate([np.tile(rows, count), columns]))
        starts = np.arange(count + 1)
        edits = count_edits(*text, starts * len(rows), starts + candidates, self._vocabulary)
        return np.asarray(edits).reshape(count, len(rows)).T

    def _percent(self, edits: Int64, columns: Int64) -> Float64:
        """Return TER, (rows, columns), of edits; without reference words, 100 for any edit."""
        lengths = self.lengths[columns]
        return 100 * np.where(lengths == 0, edits > 0, edits / np.maximum(lengths, 1))


class NgramPairs:
    """Texts compared by n-grams: BLEU (Papineni et al. 2002) or chrF (Popović 2015).

    Args:
        units: the words of distinct texts for BLEU, their characters for chrF.
        longest: the length of the longest n-grams: 4 for BLEU, 6 for chrF; any for `f_scores`.

    Attributes:
        lengths: (U,) in words or characters.
        bags: the n-grams of each text, from `count_ngrams`.
    """

    def __init__(self, units: Sequence[Sequence[str]], longest: int):
        from bpa_ppl.gains.pairwise_compiled import count_ngrams

        self._longest = longest
        text = Vocabulary().number(units)
        self.lengths: Int64 = np.diff(text[1])
        self.bags = count_ngrams(*text, longest)

    def best(self, p: Float64) -> tuple[int, float]:
        """Return the best text and its expected score; see `_EditedPairs`."""
        from bpa_ppl.gains.pairwise_compiled import find_most_similar

        order = sort_by_probability(p)
        best, score = find_most_similar(self.bags, self.lengths, self._longest, p, order, TIE)
        return int(best), float(score)

    def scores(self, rows: Int64, columns: Int64) -> Float64:
        """Return BLEU or chrF; see `_EditedPairs`."""
        from bpa_ppl.gains.pairwise_compiled import count_matches, score_matches

        columns = np.ascontiguousarray(columns)
        matches = count_matches(self.bags, self._longest, rows, columns, False)
        return np.asarray(score_matches(matches, self.lengths[rows], self.lengths[columns]))

    def f_scores(self, orders: Sequence[int], beta: float = 2.0) -> Float64:
        """Return F-scores in percent, (orders, U, U), of texts with all of them as references.

        Of characters they are chrF with n-grams up to each order. With words, order 1 and β = 1
        they are the F1 of bags of words. Texts without units have the score 0, with each other too.

        >>> NgramPairs(["abc", "abd"], 3).f_scores([1, 3]).round(1).tolist()
        [[[100.0, 66.7], [66.7, 100.0]], [[100.0, 38.9], [38.9, 100.0]]]
        """
        from bpa_ppl.gains.pairwise_compiled import score_all_pairs

        longest = np.asarray(orders, np.int64)
        return np.asarray(score_all_pairs(self.bags, self.lengths, longest, float(beta)))


class _UnitPairs:
    """Texts of a list compared by WER or CER.

    Args:
        units: the words or characters of distinct texts.
    """

    def __init__(self, units: Ragged):
        self._units = units
        self._lengths: Int64 = np.diff(units[1])

    def best(self, p: Float64) -> tuple[int, float]:
        """Return the best text and its expected score; see `_EditedPairs`."""
        references = sort_by_probability(p)
        expected = self.scores(np.arange(len(p)), references) @ p[references]
        tied = np.flatnonzero(expected >= expected.max() - TIE)
        best = int(tied[np.argmax(p[tied])])
        return best, float(expected[best])

    def scores(self, rows: Int64, columns: Int64) -> Float64:
        """Return minus the error rates in percent, (rows, columns)."""
        from bpa_ppl.gains.levenshtein import edit_distances

        edits = edit_distances(*self._units, rows, columns)
        return np.asarray(0.0 - 100 * edits / np.maximum(self._lengths[columns], 1))


#: U distinct texts of a list, each of which can be the reference of the others.
Pairs: TypeAlias = _EditedPairs | NgramPairs | _UnitPairs


def _take_sentences(text: Ragged, index: Int64) -> Ragged:
    """Return some sentences, which may repeat.

    >>> text = np.array([5, 6, 7], np.int32), np.array([0, 2, 3])
    >>> words, starts = _take_sentences(text, np.array([1, 0]))
    >>> words.tolist(), starts.tolist()
    ([7, 5, 6], [0, 1, 3])
    """
    words, starts = text
    lengths = np.diff(starts)[index]
    ends = np.cumsum(lengths)
    shift = np.repeat(starts[index] - (ends - lengths), lengths)
    return words[np.arange(int(lengths.sum())) + shift], np.concatenate([[0], ends])

"""Pairs: what the texts of one list are worth if others of them are the reference.

Minimum-risk decoding and expected scores need it. Scores are sacreBLEU's of single sentences, with
its settings for text that is tokenised already.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from bpa_ppl.errors import one_of
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.text.vocabulary import Ragged, Vocabulary

#: The metrics by which texts are compared with one another.
PAIRED = ("ter", "bleu", "chrf")
#: Expected scores (in percent) that differ by less are equal: they are sums in another order.
TIE = 1e-7
_FIRST = 16  # references that a text is compared with at first; then twice as many, and so on


class Pairs(Protocol):
    """Different texts of a list (U of them), each of which may be the reference of the others."""

    def best(self, p: Float64) -> tuple[int, float]:
        """Return which text has the best expected score, and how much that is, in percent.

        The expected score of e is Σ_e' p(e') score(e, e'). Of equal ones (by 1e-7) the more
        probable is taken, then the first. TER comes with a minus: higher is better.

        Args:
            p: (U,) the probability that each is right.
        """

    def scores(self, rows: Int64, columns: Int64) -> Float64:
        """Return what some texts are worth, in percent, if others are right: (rows, columns).

        TER comes with a minus: higher is better.
        """


def pairs_of(texts: Sequence[str], metric: str = "ter") -> Pairs:
    """Return texts ready to be compared with one another.

    Args:
        texts: (U,) different texts of a list.
        metric: `ter` (case does not count), `bleu` (smoothed, effective order) or `chrf`.

    Raises:
        UsageError: if texts cannot be compared by such a metric.

    >>> texts = ["a cat sat", "the cat sat", "the cat sat down"]
    >>> pairs_of(texts).best(np.array([0.4, 0.3, 0.3]))
    (1, -20.833333333333332)
    >>> pairs_of(texts).scores(np.array([1]), np.array([0, 2])).round(1).tolist()
    [[-33.3, -25.0]]
    """
    one_of(metric, PAIRED, "metric by which texts of a list are compared")
    return Edited(texts) if metric == "ter" else Similar(texts, characters=metric == "chrf")


def most_probable(p: Float64) -> Int64:
    """Return which texts are not impossible, the most probable first.

    >>> most_probable(np.array([0.2, 0.0, 0.8])).tolist()
    [2, 0]
    """
    order = np.argsort(-p, kind="stable")
    return order[: np.count_nonzero(p > 0)]


class Edited:
    """Texts compared by TER (Snover et al. 2006).

    Whatever the order of their words, max(|e|, |e'|) − overlap edits are needed: what these bounds
    add up to says which texts to look at first, and when to give one up (branch and bound).

    Args:
        texts: different ones.

    Attributes:
        lengths: (U,) in words.
    """

    def __init__(self, texts: Sequence[str]):
        vocabulary, words = Vocabulary(), [text.lower().split() for text in texts]
        self._text = vocabulary.number(words)
        self._vocabulary = len(vocabulary)
        self.lengths: Int64 = np.diff(self._text[1])
        # Texts may differ by case alone: then they are the same here.
        self._same = np.unique([" ".join(each) for each in words], return_inverse=True)[1]

    def best(self, p: Float64) -> tuple[int, float]:
        """Return the best text and its expected score; see `Pairs`.

        Best first: the text of the lowest bound gets the edits of its next references, the most
        probable ones first, until that text has them all.
        """
        references = most_probable(p)
        weights, bounds = p[references], self._percent(self._fewest(references), references)
        risks = bounds @ weights
        queue = [(risk, u, 0) for u, risk in enumerate(risks.tolist())]
        heapify(queue)
        best, lowest = -1, np.inf
        while queue and queue[0][0] <= lowest + TIE:
            risk, u, done = heappop(queue)
            if done < len(references):
                stop = min(len(references), max(_FIRST, 2 * done))
                block = references[done:stop]
                found = self._percent(self.edits(np.array([u]), block), block)[0]
                risk += float((found - bounds[u, done:stop]) @ weights[done:stop])
                heappush(queue, (risk, u, stop))
            elif best < 0 or (-p[u], u) < (-p[best], best):
                best, lowest = u, min(lowest, risk)
        return best, -lowest

    def _fewest(self, columns: Int64) -> Int64:
        """Return the edits, (U, columns), that are needed in any case.

        Those that no order of the words can spare, and one where texts differ by it alone.
        """
        # Each k-th occurrence of a word is a column of zeros and ones: products count overlaps.
        words, _ = self._text
        owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        grouped = np.lexsort((words, owner))
        first = np.ones(len(words), bool)
        first[1:] = np.any(np.diff([owner[grouped], words[grouped]]) != 0, axis=0)
        begins = np.flatnonzero(first)
        nth = np.arange(len(words)) - np.repeat(begins, np.diff([*begins, len(words)]))
        column = np.unique(nth * self._vocabulary + words[grouped], return_inverse=True)[1]
        occurs = np.zeros((len(self.lengths), column.max(initial=-1) + 1), np.float32)
        occurs[owner[grouped], column] = 1
        longest = np.maximum(self.lengths[:, None], self.lengths[columns])
        fewest = longest - (occurs @ occurs[columns].T).astype(np.int64)
        return np.asarray(np.maximum(fewest, self._same[:, None] != self._same[columns]))

    def scores(self, rows: Int64, columns: Int64) -> Float64:
        """Return minus TER; see `Pairs`."""
        return -self._percent(self.edits(rows, columns), columns)

    def edits(self, rows: Int64, columns: Int64) -> Int64:
        """Return the edits, (rows, columns), that make of some texts some others."""
        from bpa_ppl.quality.tercom import count_edits

        # Each reference is a list of its own, whose hypotheses are the rows.
        hypotheses = taken(self._text, np.tile(rows, len(columns)))
        references, count = taken(self._text, columns), len(columns)
        starts = np.arange(count + 1)
        found = count_edits(
            hypotheses, references, starts * len(rows), starts, self._vocabulary, False
        )
        return np.asarray(found).reshape(count, len(rows)).T

    def _percent(self, edits: Int64, columns: Int64) -> Float64:
        """Return TER, (rows, columns), of edits; without a reference word any edit is 100."""
        lengths = self.lengths[columns]
        return 100 * np.where(lengths == 0, edits > 0, edits / np.maximum(lengths, 1))


class Similar:
    """Texts compared by n-grams: BLEU (Papineni et al. 2002) or chrF (Popović 2015).

    Args:
        texts: different ones.
        characters: chrF, of characters, instead of BLEU.
    """

    def __init__(self, texts: Sequence[str], *, characters: bool):
        from bpa_ppl.quality.pairs_compiled import bags_of

        self._longest: int = 6 if characters else 4
        words = [text.split() for text in texts]
        units = [list("".join(parts)) for parts in words] if characters else words
        text = Vocabulary().number(units)
        self._lengths: Int64 = np.diff(text[1])
        self._bags = bags_of(*text, self._longest)

    def best(self, p: Float64) -> tuple[int, float]:
        """Return the best text and its expected score; see `Pairs`."""
        from bpa_ppl.quality.pairs_compiled import most_similar

        best, score = most_similar(self._bags, self._lengths, self._longest, p, most_probable(p))
        return int(best), float(score)

    def scores(self, rows: Int64, columns: Int64) -> Float64:
        """Return BLEU or chrF; see `Pairs`."""
        from bpa_ppl.quality.pairs_compiled import scores_between

        return np.asarray(scores_between(self._bags, self._lengths, self._longest, rows, columns))


def taken(text: Ragged, which: Int64) -> Ragged:
    """Return some sentences, repeats allowed.

    >>> text = np.array([5, 6, 7], np.int32), np.array([0, 2, 3])
    >>> words, starts = taken(text, np.array([1, 0]))
    >>> words.tolist(), starts.tolist()
    ([7, 5, 6], [0, 1, 3])
    """
    words, starts = text
    lengths = np.diff(starts)[which]
    ends = np.cumsum(lengths)
    shift = np.repeat(starts[which] - (ends - lengths), lengths)
    return words[np.arange(int(lengths.sum())) + shift], np.concatenate([[0], ends])

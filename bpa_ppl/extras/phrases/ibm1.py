"""IBM Model 1: word translation probabilities, learned from pairs of sentences.

Brown, Della Pietra, Della Pietra and Mercer (1993), *The Mathematics of Statistical Machine
Translation*, Section 4.1. The probability of a target sentence t of m words, given a source
sentence s of l words preceded by the empty word s_0, is

    p(t | s) = ε Π_j  1/(l + 1) Σ_{i=0..l} t(t_j | s_i)

Here ε, the probability of the length m, is 1: lengths are left to other features.

In compiled code sentences are segments of an array of numbered words. For training, source
sentences begin with the empty word, number 0; for scoring, they do not. An unknown word has number
-1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.errors import DataError
from bpa_ppl.text.words import NumberedText, Ragged, number_words, sum_segments

Sentences = Sequence[Sequence[str]]

#: Concatenated rows: the start of each (and the end of the last), and their content.
Rows = tuple[Int64, Int32]

#: t(target word | source word), see `IBM1`: starts, columns and values.
Table = tuple[Int64, Int32, Float64]

#: Pairs of sentences to be scored: the source and the target sentences; (pairs,) the source and the
#: target of each; (pairs + 1,) the start of the target tokens of each.
Pairs = tuple[Ragged, Ragged, Int64, Int64, Int64]

#: The default minimum probability of a word given a sentence, which unknown words have.
FLOOR = 1e-7
_EMPTY = 0  # the number of the empty source word; the others count from 1
_UNKNOWN = -1


@dataclass(frozen=True, eq=False, repr=False)
class IBM1:
    """A table t(target word | source word) of all pairs of words that occur together.

    Attributes:
        source_words: number of each source word, from 1; 0 is the empty word.
        target_words: number of each target word, from 0.
        starts: (source words + 2,) int64, the start of the row of each source word in the table.
        columns: (entries,) int32, the target words of each row, ascending.
        values: (entries,) float64, t; each row sums to 1.
        skipped: the number of ignored training pairs with no word on one side.
    """

    source_words: Mapping[str, int]
    target_words: Mapping[str, int]
    starts: Int64
    columns: Int32
    values: Float64
    skipped: int = 0

    @classmethod
    def estimate(cls, sources: Sentences, targets: Sentences, iterations: int = 5) -> IBM1:
        """Learn the table by EM, starting from a uniform distribution.

        One iteration visits each link (a source and a target token of one pair) twice. Memory: 12
        bytes for each pair of words that occur together, 28 for each token.

        Args:
            sources: the words of each source sentence.
            targets: the words of its translation.
            iterations: of EM; the likelihood never decreases.

        Raises:
            DataError: if no pair has words on both sides.

        >>> model = IBM1.estimate([["la", "maison"], ["la"]], [["the", "house"], ["the"]])
        >>> round(model.probability("maison", "house"), 2)
        0.89
        """
        pairs = [(s, t) for s, t in zip(sources, targets, strict=True) if s and t]
        if not pairs:
            message = "no pair of sentences with words on both sides: give parallel texts"
            raise DataError(message, code="no-data")
        source, target = map(NumberedText.of, zip(*pairs, strict=True))
        text = ParallelText.of(source, target)
        values, every = text.uniform_table(), np.ones(len(pairs))
        for _ in range(iterations):
            text.re_estimate(values, text.sums(values, every), every)
        source_words = {word: number for number, word in enumerate(source.words, _EMPTY + 1)}
        target_words = {word: number for number, word in enumerate(target.words)}
        return cls(source_words, target_words, *text.rows, values, len(sources) - len(pairs))

    def probability(self, source: str | None, target: str) -> float:
        """Return t(target word | source word), None for the empty word; 0 if they never co-occur.

        >>> IBM1.estimate([["chat"]], [["cat"]]).probability(None, "cat")
        1.0
        """
        f = _EMPTY if source is None else self.source_words.get(source, _UNKNOWN)
        e = self.target_words.get(target, _UNKNOWN)
        table = self.starts, self.columns, self.values
        return float(_find_entry(table, np.int32(f), np.int32(e)))

    def unknown(self, sources: Sentences) -> Int64:
        """Return (sentences,) the number of unknown source tokens in each sentence."""
        words, starts = number_words(sources, self.source_words)
        return sum_segments((words == _UNKNOWN).astype(np.float64), starts).astype(np.int64)

    def log_probabilities(
        self,
        sources: Sentences,
        targets: Sentences,
        source_of: npt.ArrayLike,
        target_of: npt.ArrayLike,
        *,
        floor: float = FLOOR,
    ) -> Float64:
        """Return natural log p(target | source) of each pair, see above.

        The factor of a target word is at least `floor`, also for unknown words. An empty target
        has log-probability 0. Consecutive pairs with the same source, or the same target, are
        cheap, because look-ups are shared.

        Args:
            sources: the words of each source sentence.
            targets: the words of each target sentence.
            source_of: (pairs,) the number of the source of each pair.
            target_of: (pairs,) the number of its target.
            floor: the minimum probability of a target word, above 0.

        Returns:
            (pairs,) float64.

        >>> model, pairs = IBM1.estimate([["chat"]], [["cat"]]), ([0, 0], [0, 1])
        >>> model.log_probabilities([["chat"]], [["cat"], ["cat", "dog"]], *pairs).round(4).tolist()
        [0.0, -16.1181]
        """
        source, target = (
            number_words(sources, self.source_words),
            number_words(targets, self.target_words),
        )
        first, second = np.asarray(source_of, np.int64), np.asarray(target_of, np.int64)
        starts = np.concatenate([[0], np.cumsum(np.diff(target[1])[second])]).astype(np.int64)
        pairs = source, target, first, second, starts
        # Look-ups are shared over runs of pairs with the same source, or the same target.
        table = self.starts, self.columns, self.values
        if np.count_nonzero(np.diff(first)) <= np.count_nonzero(np.diff(second)):
            scores = _score_by_source(table, pairs)
        else:
            words = np.unique(source[0], return_inverse=True)
            longest = int(np.diff(target[1]).max(initial=0))
            scores = _score_by_target(table, *words, pairs, longest)
        return sum_segments(np.log(np.maximum(scores, floor)), starts)


class ParallelText(NamedTuple):
    """Numbered pairs of sentences, from which Model 1 is learned, and their pairs of words.

    Attributes:
        rows: for each source word, the empty word first, the target words that occur with it.
        occurrences: for each source word the sentences of its occurrences, ascending.
        lengths: (sentences,) the number of source words, including the empty word.
        target: the target sentences.
        size: the number of target words.
    """

    rows: Rows
    occurrences: Rows
    lengths: Int64
    target: Ragged
    size: int

    @classmethod
    def of(cls, source: NumberedText, target: NumberedText) -> ParallelText:
        """Return the parallel text of some sentences.

        Args:
            source: the source sentences, whose words are numbered from 1 in the result.
            target: their translations.

        >>> text = NumberedText.of([["a", "b"], ["a"]])
        >>> result = ParallelText.of(text, text)
        >>> [part.tolist() for part in result.rows]
        [[0, 2, 4, 6], [0, 1, 0, 1, 0, 1]]
        >>> [part.tolist() for part in result.occurrences]
        [[0, 2, 4, 5], [0, 1, 0, 1, 0]]
        """
        starts = source.starts + np.arange(len(source.starts))
        with_empty = np.insert(source.numbers + np.int32(1), source.starts[:-1], _EMPTY)
        # A matrix by columns is that of the transposed text by rows.
        by_word = _mark_tokens((with_empty, starts), len(source.words) + 1).tocsc()
        pairs = by_word.T @ _mark_tokens(target.sentences, len(target.words))
        pairs.sort_indices()
        lengths = np.diff(starts)
        return cls(_to_rows(pairs), _to_rows(by_word), lengths, target.sentences, len(target.words))

    def uniform_table(self) -> Float64:
        """Return the table in which all target words are equally probable."""
        # A start must not prefer source words with few partners.
        return np.full(len(self.rows[1]), 1 / self.size)

    def sums(self, values: Float64, weights: Float64) -> Float64:
        """Return (target tokens,) Σ_i t(t_j | s_i); 0 in sentences of weight 0."""
        sums: Float64 = _sum_tokens(self, values, weights)
        return sums

    def log_probabilities(self, sums: Float64, weights: Float64) -> Float64:
        """Return (sentences,) natural log p(target | source); 0 for those of weight 0.

        Args:
            sums: from `sums`.
            weights: (sentences,).
        """
        tokens = np.diff(self.target[1])
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(np.repeat(weights > 0, tokens), sums, 1.0))
        return sum_segments(logs, self.target[1]) - (weights > 0) * tokens * np.log(self.lengths)

    def re_estimate(
        self, values: Float64, sums: Float64, weights: Float64, pseudo: Float64 | None = None
    ) -> None:
        """Replace values t in place by EM's next ones: weighted counts plus pseudo, normalised."""
        weight = np.repeat(weights, np.diff(self.target[1]))
        shares = np.divide(weight, sums, out=np.zeros_like(sums), where=sums > 0)
        _re_estimate(self, values, shares, weights, np.zeros(0) if pseudo is None else pseudo)


def _mark_tokens(text: Ragged, size: int) -> Any:
    """Return the matrix (sentences, words) with an entry for each token."""
    from scipy.sparse import csr_array

    words, starts = text
    return csr_array((np.ones(len(words), bool), words, starts), (len(starts) - 1, size))


def _to_rows(matrix: Any) -> Rows:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)


@compiled
def _sum_tokens(text: ParallelText, values: Float64, weights: Float64) -> Float64:
    """Return the sums of `ParallelText.sums`: one source word at a time, without a search."""
    starts, columns = text.rows
    words, begins = text.target
    sums = np.zeros(len(words))
    row = np.zeros(text.size)  # of the current source word; other entries are not read
    for f in range(len(starts) - 1):
        for k in range(starts[f], starts[f + 1]):
            row[columns[k]] = values[k]
        for s in text.occurrences[1][text.occurrences[0][f] : text.occurrences[0][f + 1]]:
            if weights[s] > 0:
                for j in range(begins[s], begins[s + 1]):
                    sums[j] += row[words[j]]
    return sums


@compiled
def _re_estimate(
    text: ParallelText, values: Float64, shares: Float64, weights: Float64, pseudo: Float64
) -> None:
    """Set each row to its expected counts, normalised: t ∝ t Σ w/Σ_i t(t_j | s_i) + pseudo."""
    starts, columns = text.rows
    words, begins = text.target
    row = np.zeros(text.size)
    for f in range(len(starts) - 1):
        for k in range(starts[f], starts[f + 1]):
            row[columns[k]] = 0.0
        for s in text.occurrences[1][text.occurrences[0][f] : text.occurrences[0][f + 1]]:
            if weights[s] > 0:
                for j in range(begins[s], begins[s + 1]):
                    row[words[j]] += shares[j]
        total = 0.0
        for k in range(starts[f], starts[f + 1]):
            values[k] *= row[columns[k]]
            if len(pseudo) > 0:
                values[k] += pseudo[k]
            total += values[k]
        if total > 0:
            for k in range(starts[f], starts[f + 1]):
                values[k] /= total


@compiled
def _find_entry(table: Table, f: np.int32, e: np.int32) -> float:
    """Return t(e | f); 0 if it is not in the table."""
    starts, columns, values = table
    if f < 0 or e < 0:
        return 0.0
    low, high = starts[f], starts[f + 1]
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < e:
            low = middle + 1
        else:
            high = middle
    return values[low] if low < starts[f + 1] and columns[low] == e else 0.0


@compiled
def _score_by_source(table: Table, pairs: Pairs) -> Float64:
    """Return 1/(l + 1) Σ_i t(t_j | s_i) of each token, sharing work in runs of one source."""
    source, target, source_of, target_of, begins = pairs
    scores = np.zeros(begins[-1])
    size = np.append(target[0], 0).max() + 1
    cached_run, kept, run = np.full(size, -1, np.int64), np.empty(size), 0
    for k in range(len(source_of)):
        if k and source_of[k] != source_of[k - 1]:
            run = k
        first, last = source[1][source_of[k]], source[1][source_of[k] + 1]
        shift = target[1][target_of[k]] - begins[k]
        for j in range(begins[k], begins[k + 1]):
            e = target[0][shift + j]
            if e < 0:
                continue
            if cached_run[e] != run:
                total = _find_entry(table, np.int32(0), e)
                for i in range(first, last):
                    total += _find_entry(table, source[0][i], e)
                cached_run[e], kept[e] = run, total / (last - first + 1)
            scores[j] = kept[e]
    return scores


@compiled
def _score_by_target(
    table: Table, words: Int32, index: Int64, pairs: Pairs, longest: int
) -> Float64:
    """Return the scores of `_score_by_source`, sharing work in runs of one target.

    Args:
        table: t.
        words: the distinct words of the sources.
        index: (source tokens,) the index of each among them.
        pairs: the pairs.
        longest: the length of the longest target sentence.
    """
    source, target, source_of, target_of, begins = pairs
    empty = len(words)
    cached_run, run = np.full(empty + 1, -1, np.int64), 0
    kept = np.empty((empty + 1, longest))
    scores = np.zeros(begins[-1])
    for k in range(len(source_of)):
        if k and target_of[k] != target_of[k - 1]:
            run = k
        first, last = source[1][source_of[k]], source[1][source_of[k] + 1]
        size, begin = begins[k + 1] - begins[k], target[1][target_of[k]]
        for i in range(first - 1, last):  # the empty word first
            n = index[i] if i >= first else empty
            if cached_run[n] != run:
                word = words[n] if n < empty else np.int32(0)
                for j in range(size):
                    kept[n, j] = _find_entry(table, word, target[0][begin + j])
                cached_run[n] = run
            for j in range(size):
                scores[begins[k] + j] += kept[n, j]
        for j in range(begins[k], begins[k + 1]):
            scores[j] /= last - first + 1
    return scores

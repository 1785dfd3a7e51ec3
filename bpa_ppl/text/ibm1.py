"""IBM Model 1: word translation probabilities, learned from pairs of sentences.

Brown, Della Pietra, Della Pietra and Mercer (1993), *The Mathematics of Statistical Machine
Translation*, Section 4.1. The probability of a target sentence t of m words, given a source
sentence s of l words preceded by the empty word s_0, is

    p(t | s) = ε Π_j  1/(l + 1) Σ_{i=0..l} t(t_j | s_i)

Here ε, the probability of the length m, is 1: lengths are left to other features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.text.ibm1_compiled import (
    co_occurring,
    entry,
    re_estimate,
    score_by_source,
    score_by_target,
    sentences_of_words,
    sums_of_tokens,
)
from bpa_ppl.text.vocabulary import Ragged, starts_of

Sentences = Sequence[Sequence[str]]

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
        log_likelihoods: (iterations + 1,) natural log p of all training targets given their
            sources: at the uniform start, then after each iteration.
        skipped: the number of ignored training pairs with no word on one side.
    """

    source_words: Mapping[str, int]
    target_words: Mapping[str, int]
    starts: Int64
    columns: Int32
    values: Float64
    log_likelihoods: Float64
    skipped: int = 0

    @classmethod
    def estimate(
        cls,
        sources: Sentences,
        targets: Sentences,
        iterations: int = 5,
        *,
        progress: bool | Reporter = False,
    ) -> IBM1:
        """Learn the table by EM, starting from a uniform distribution.

        One iteration visits each link (a source and a target token of one pair) twice. Memory: 12
        bytes for each pair of words that occur together, 28 for each token.

        Args:
            sources: the words of each source sentence.
            targets: the words of its translation.
            iterations: of EM; the likelihood never decreases.
            progress: True draws a bar on standard error; or a callback, after each iteration.

        Raises:
            DataError: if the sides differ in length, or no pair has words on both sides.
            UsageError: if there is no iteration, or sentences are not split into words.

        >>> model = IBM1.estimate([["la", "maison"], ["la"]], [["the", "house"], ["the"]])
        >>> round(model.probability("maison", "house"), 2)
        0.89
        """
        if iterations < 1:
            raise UsageError(f"EM needs at least one iteration, not {iterations}")
        kept = _kept(sources, targets)
        source_words = _vocabulary(kept[0], first=1)
        target_words = _vocabulary(kept[1], first=0)
        words, starts = _numbered(source_words, kept[0])
        source = np.insert(words, starts[:-1], _EMPTY), starts + np.arange(len(starts))
        target = _numbered(target_words, kept[1])
        sizes = len(source_words) + 1, len(target_words)
        table, likelihoods = _learned(source, target, sizes, iterations, progress)
        skipped = len(sources) - len(kept[0])
        return cls(source_words, target_words, *table, likelihoods, skipped)

    def __repr__(self) -> str:
        return (
            f"IBM1({len(self.source_words)} source words, {len(self.target_words)} target words, "
            f"{len(self.values)} pairs)"
        )

    def probability(self, source: str | None, target: str) -> float:
        """Return t(target word | source word), None for the empty word; 0 if they never co-occur.

        >>> IBM1.estimate([["chat"]], [["cat"]]).probability(None, "cat")
        1.0
        """
        f = _EMPTY if source is None else self.source_words.get(source, _UNKNOWN)
        e = self.target_words.get(target, _UNKNOWN)
        return float(entry(self.starts, self.columns, self.values, f, e))

    def unknown(self, sources: Sentences) -> Int64:
        """Return (sentences,) the number of unknown source tokens in each sentence."""
        words, starts = _numbered(self.source_words, sources)
        return _sums((words == _UNKNOWN).astype(np.float64), starts).astype(np.int64)

    def log_probabilities(
        self,
        sources: Sentences,
        targets: Sentences,
        source_of: npt.ArrayLike | None = None,
        target_of: npt.ArrayLike | None = None,
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
            source_of: (pairs,) the number of the source of each pair; None is one for each target.
            target_of: (pairs,) the number of its target; None is each once, in order.
            floor: the minimum probability of a target word, above 0.

        Returns:
            (pairs,) float64.

        Raises:
            UsageError: if the numbers of sources and targets do not match, or the floor is not a
                probability.

        >>> model = IBM1.estimate([["chat"]], [["cat"]])
        >>> model.log_probabilities([["chat"]], [["cat"], ["cat", "dog"]], [0, 0]).round(4).tolist()
        [0.0, -16.1181]
        """
        logs, starts = self._logs(sources, targets, source_of, target_of, floor)
        return _sums(logs, starts)

    def word_log_probabilities(
        self,
        sources: Sentences,
        targets: Sentences,
        source_of: npt.ArrayLike | None = None,
        target_of: npt.ArrayLike | None = None,
        *,
        floor: float = FLOOR,
    ) -> Float64:
        """Return (target tokens of all pairs,) the terms that `log_probabilities` sums."""
        return self._logs(sources, targets, source_of, target_of, floor)[0]

    def _logs(
        self,
        sources: Sentences,
        targets: Sentences,
        source_of: npt.ArrayLike | None,
        target_of: npt.ArrayLike | None,
        floor: float,
    ) -> tuple[Float64, Int64]:
        """Return the log of each target token of each pair, and the start of each pair."""
        if not 0 < floor <= 1:
            raise UsageError(f"floor must be a probability above 0, not {floor!r}")
        source, target = (
            _numbered(self.source_words, sources),
            _numbered(self.target_words, targets),
        )
        first, second = _pairs(len(sources), len(targets), source_of, target_of)
        starts = np.concatenate([[0], np.cumsum(np.diff(target[1])[second])]).astype(np.int64)
        table = self.starts, self.columns, self.values
        # Look-ups are shared over runs of pairs with the same source, or the same target.
        if np.count_nonzero(np.diff(first)) <= np.count_nonzero(np.diff(second)):
            probabilities = score_by_source(table, source, target, first, second, starts)
        else:
            distinct = _distinct(source[0], len(self.starts) - 1)
            probabilities = score_by_target(table, distinct, source, target, first, second, starts)
        return np.log(np.maximum(probabilities, floor)), starts


def _kept(sources: Sentences, targets: Sentences) -> tuple[Sentences, Sentences]:
    """Return the pairs that have words on both sides.

    Raises:
        DataError: if the sides differ in length, or no pair is left.
        UsageError: if a sentence is a text, not a list of words.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"{len(sources)} source sentences and {len(targets)} target sentences: "
            "line n of one must be the translation of line n of the other"
        )
    for side in (sources, targets):
        if len(side) and isinstance(side[0], str):
            raise UsageError("a sentence must be a sequence of words: split the text first")
    index = [n for n, (s, t) in enumerate(zip(sources, targets, strict=True)) if s and t]
    if not index:
        raise DataError("no pair of sentences has words on both sides")
    if len(index) == len(sources):
        return sources, targets
    return [sources[n] for n in index], [targets[n] for n in index]


def _vocabulary(sentences: Sentences, first: int) -> dict[str, int]:
    distinct = dict.fromkeys(chain.from_iterable(sentences))
    return {word: number for number, word in enumerate(distinct, first)}


def _numbered(words: Mapping[str, int], sentences: Sentences) -> Ragged:
    starts = starts_of(sentences)
    numbers = map(words.get, chain.from_iterable(sentences), repeat(_UNKNOWN))
    return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts


def _distinct(words: Int32, size: int) -> tuple[Int64, Int64]:
    """Return the distinct words, the empty word first, and the index of each word among them."""
    keys = np.where(words == _UNKNOWN, size, words)
    present = np.zeros(size + 1, dtype=bool)
    present[keys] = present[_EMPTY] = True
    distinct = np.flatnonzero(present)
    distinct[distinct == size] = _UNKNOWN
    return distinct, (np.cumsum(present) - 1)[keys]


def _sums(values: Float64, starts: Int64) -> Float64:
    """Return the sum over each segment of values."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(owner, values, minlength=len(starts) - 1).astype(np.float64)


def _pairs(
    sources: int, targets: int, source_of: npt.ArrayLike | None, target_of: npt.ArrayLike | None
) -> tuple[Int64, Int64]:
    """Return the numbers of the source and of the target of each pair."""
    first = np.arange(sources) if source_of is None else np.asarray(source_of, dtype=np.int64)
    second = np.arange(targets) if target_of is None else np.asarray(target_of, dtype=np.int64)
    if first.shape != second.shape:
        raise UsageError(
            f"{len(first)} sources do not match {len(second)} targets: give one source for each "
            "target, or pair them with source_of and target_of"
        )
    for numbers, count in ((first, sources), (second, targets)):
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
            raise UsageError(f"the sentences of pairs must be numbered from 0 to {count - 1}")
    return first, second


def _learned(
    source: Ragged,
    target: Ragged,
    sizes: tuple[int, int],
    iterations: int,
    progress: bool | Reporter,
) -> tuple[tuple[Int64, Int32, Float64], Float64]:
    """Return the table (starts, columns, values), and the log-likelihood of each step of EM."""
    occurrences = sentences_of_words(source, sizes[0])
    starts, columns = co_occurring(sentences_of_words(target, sizes[1]), source, sizes[0])
    # Uniform over all target words: a start must not prefer source words with few partners.
    values = np.full(len(columns), 1 / sizes[1])
    lengths = np.diff(target[1])
    constant = lengths @ np.log(np.diff(source[1]))
    likelihoods = []
    with reporter(progress, "IBM Model 1") as report:
        for iteration in range(iterations + 1):
            sums = sums_of_tokens(starts, columns, values, occurrences, target, sizes[1])
            likelihoods.append(np.log(sums).sum() - constant)
            if iteration < iterations:
                re_estimate(starts, columns, values, occurrences, target, 1 / sums, sizes[1])
                report(iteration + 1, iterations, f"{likelihoods[-1] / lengths.sum():.4f} a word")
    return (starts, columns, values), np.array(likelihoods)

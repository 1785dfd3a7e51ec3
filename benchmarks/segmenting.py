"""Phrase segmentations of lists whose decoder did not print them.

A derivation builds a candidate from pairs of the phrase table, and covers each source word once.
Of the derivations with the number of phrases and the distance of the jumps that the decoder printed
(`PhrasePenalty0`, `Distortion0`), the search returns the most probable one by log p(t|s) + log
p(s|t). It uses a beam and may miss some; candidates without any are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from bpa_ppl._runtime.arrays import Float64, Int32, Int64
from bpa_ppl.extras.phrases.tables import PhraseCounts
from bpa_ppl.extras.phrases.tree import PhraseTree, build_tree
from bpa_ppl.lists.building import concatenate
from bpa_ppl.lists.nbest import NBest

MAX_WORDS = 5  # of a phrase
_MAX_SOURCE = 60  # words of a source sentence; longer ones are left out
_BEAM = 200
_COPY_SCORE = -10.0  # of a word that the table does not contain
_IMPOSSIBLE = -1e30


class PhraseIndex(NamedTuple):
    """Phrase counts that can be looked up by the spans of a sentence.

    Attributes:
        counts: the counts of an extraction.
        trees: the source phrases and the target phrases.
        numbers: from the nodes of each tree to the phrases, or −1.
        first_rows: (source phrases + 1,) the first pair of each.
    """

    counts: PhraseCounts
    trees: tuple[PhraseTree, PhraseTree]
    numbers: tuple[Int32, Int32]
    first_rows: Int64

    @classmethod
    def of(cls, counts: PhraseCounts) -> PhraseIndex:
        """Return an index of the counts of an extraction."""
        source, target = build_tree(counts.sources), build_tree(counts.targets)
        first = np.searchsorted(counts.source, np.arange(len(counts.sources) + 1))
        return cls(counts, (source[0], target[0]), (source[1], target[1]), first)

    def phrases(self, side: int, texts: list[str]) -> tuple[Int64, Int64]:
        """Return the phrase in each span of each text, or −1, and the first span of each text."""
        words, starts = self.trees[side].words((text.encode() for text in texts), add=False)
        spans = [_spans(length) for length in np.diff(starts).tolist()]
        first = np.cumsum([0, *map(len, spans)])
        begin, count = np.concatenate(spans).astype(np.int32).T.copy()
        nodes = self.trees[side].numbers((words, starts), first, begin, count, add=False)
        numbers = np.where(nodes >= 0, self.numbers[side][np.maximum(nodes, 0)], -1)
        return numbers.astype(np.int64), first

    def scores(self, sources: Int64, targets: Int64) -> Float64:
        """Return (sources, targets + 1) log p(t|s) + log p(s|t), or `_IMPOSSIBLE`.

        Args:
            sources: source phrases, or −1.
            targets: target phrases, ascending.
        """
        counts = self.counts
        scores = np.full((len(sources), len(targets) + 1), _IMPOSSIBLE)
        for row, source in enumerate(sources.tolist()):
            if source < 0 or not len(targets):
                continue
            pairs = slice(self.first_rows[source], self.first_rows[source + 1])
            target = counts.target[pairs]
            columns = np.minimum(np.searchsorted(targets, target), len(targets) - 1)
            present = targets[columns] == target
            log_p = 2 * np.log(counts.count[pairs]) - np.log(counts.source_count[source])
            log_p -= np.log(counts.target_count[target])
            scores[row, columns[present]] = log_p[present]
        return scores


def segment(lists: NBest, index: PhraseIndex) -> NBest:
    """Return the candidates that have a derivation, with the extra `segmentation`."""
    parts = []
    for nbest in lists:
        words = (nbest.sources or ("",))[0].split()
        if not 0 < len(words) <= _MAX_SOURCE:
            continue
        derivations = dict(_derivations(nbest, index, words))
        if derivations:
            rows = np.array(list(derivations))
            part = nbest.regroup(np.array([0]), rows, [len(rows)])
            parts.append(part.with_extras(segmentation=list(derivations.values())))
    return concatenate(parts)


def _derivations(nbest: NBest, index: PhraseIndex, words: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows of one list that have a derivation, with its segmentation."""
    source_phrases, _ = index.phrases(0, [" ".join(words)])
    target_phrases, first = index.phrases(1, list(nbest.strings))
    targets = np.unique(target_phrases[target_phrases >= 0])
    scores = index.scores(source_phrases, targets)
    columns = np.where(target_phrases >= 0, np.searchsorted(targets, target_phrases), len(targets))
    spans = _spans(len(words))
    single = np.flatnonzero(spans[:, 1] == 1)
    unknown = (scores[single] <= _IMPOSSIBLE).all(axis=1)
    names = list(nbest.feature_names)
    phrases = np.rint(nbest.features[:, names.index("PhrasePenalty0")]).astype(int)
    jumps = np.rint(-nbest.features[:, names.index("Distortion0")]).astype(int)
    cache: dict[tuple[int, int, int], str | None] = {}
    for row in range(len(nbest.features)):
        string = int(nbest.string_index[row])
        key = string, int(phrases[row]), int(jumps[row])
        if key not in cache:
            target = np.array(nbest.strings[string].split())
            copied = (np.array(words)[:, None] == target) & unknown[:, None]
            of_string = scores[:, columns[first[string] : first[string + 1]]]
            pairs, values = _pairs(of_string, spans, _spans(len(target)), copied)
            starts = np.searchsorted(pairs[:, 0], np.arange(len(target) + 1))
            path = search(pairs, values, starts, (len(words), len(target), *key[1:]), _BEAM)
            cache[key] = " ".join(
                f"{_format_span(*pairs[p, 2:])}={_format_span(*pairs[p, :2])}" for p in path
            )
        if cache[key]:
            yield row, cache[key]


def _spans(length: int) -> Int64:
    """Return (spans, 2) the first word and the words of each span, by the first word."""
    spans = [(b, c) for b in range(length) for c in range(1, min(MAX_WORDS, length - b) + 1)]
    return np.array(spans, np.int64).reshape(-1, 2)


def _pairs(
    scores: Float64, source: Int64, target: Int64, copied: np.ndarray
) -> tuple[Int64, Float64]:
    """Return the pairs that may build a candidate, and their scores, as `search` takes them.

    Args:
        scores: (source spans, target spans).
        source: (source spans, 2) first word and words.
        target: (target spans, 2) the same.
        copied: (source words, target words) whether a word may be copied.
    """
    first, second = np.nonzero(scores > _IMPOSSIBLE)
    pairs = np.hstack([target[second], source[first]])
    words, places = np.nonzero(copied)
    ones = np.ones(len(words), np.int64)
    pairs = np.vstack([pairs, np.stack([places, ones, words, ones], axis=1)])
    values = np.append(scores[first, second], np.full(len(words), _COPY_SCORE))
    order = np.argsort(pairs[:, 0], kind="stable")
    return pairs[order], values[order]


def _format_span(begin: int, words: int) -> str:
    return f"{begin}" if words == 1 else f"{begin}-{begin + words - 1}"


@njit(nogil=True, cache=True)
def search(
    pairs: Int64, values: Float64, firsts: Int64, sizes: tuple[int, int, int, int], beam: int
) -> Int64:
    """Return the pairs of the best derivation, in target order; empty if there is none.

    Args:
        pairs: (pairs, 4) first target word, words, first source word, words; sorted.
        values: (pairs,) their scores.
        firsts: (target words + 1,) the first pair that begins at each target word.
        sizes: source words, target words, phrases, and the total distance of the jumps.
        beam: the number of states for each number of target words.
    """
    source, target, phrases, jump = sizes
    # A state: covered source words, end of the last phrase, phrases, distance of the jumps, and the
    # previous state and pair.
    states = np.zeros((target + 1, beam, 6), np.int64)
    best = np.full((target + 1, beam), _IMPOSSIBLE)
    filled = np.zeros(target + 1, np.int64)
    filled[0], best[0, 0] = 1, 0.0
    for j in range(target):
        for i in range(filled[j]):
            state = states[j, i]
            if state[2] == phrases:
                continue
            for pair in range(firsts[j], firsts[j + 1]):
                _, words, begin, covered = pairs[pair]
                mask = ((np.int64(1) << covered) - 1) << begin
                distance = state[3] + abs(begin - state[1])
                if state[0] & mask or distance > jump:
                    continue
                new = (state[0] | mask, begin + covered, state[2] + 1, distance, i, pair)
                _add_state(states, best, filled, j + words, new, best[j, i] + values[pair])
    full, last = (np.int64(1) << source) - 1, -1
    for i in range(filled[target]):
        state = states[target, i]
        if state[0] != full or state[2] != phrases or state[3] != jump:
            continue
        if last < 0 or best[target, i] > best[target, last]:
            last = i
    path = np.empty(phrases if last >= 0 else 0, np.int64)
    j = target
    for place in range(len(path) - 1, -1, -1):
        path[place] = states[j, last, 5]
        last = states[j, last, 4]
        j -= pairs[path[place], 1]
    return path


@njit
def _add_state(
    states: Int64,
    best: Float64,
    filled: Int64,
    j: int,
    new: tuple[int, int, int, int, int, int],
    score: float,
) -> None:
    """Add a state to the beam; it replaces an equal state, or the worst one if the beam is full."""
    size, place, worst = filled[j], -1, 0
    for i in range(size):
        one = states[j, i]
        if one[0] == new[0] and one[1] == new[1] and one[2] == new[2] and one[3] == new[3]:
            place = i
            break
        if best[j, i] < best[j, worst]:
            worst = i
    if place < 0:
        place = worst
        if size < states.shape[1]:
            place = size
            filled[j] += 1
    if score > best[j, place]:
        best[j, place] = score
        for f in range(6):
            states[j, place, f] = new[f]

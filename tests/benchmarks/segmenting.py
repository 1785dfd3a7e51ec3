"""Segmentations for lists whose decoder did not print them: the derivation that fits what it did.

Of all ways to build a hypothesis from pairs of the phrase table, each source word being covered
once, those are looked at that have as many phrases, and jump as far, as the decoder printed
(`PhrasePenalty0`, `Distortion0`); of those the most probable one, by log p(t|s) + log p(s|t), is
taken. A beam keeps the search short, so that it may miss some; hypotheses without any are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from bpa_ppl.nbest import Float64, Int32, Int64, NBest
from bpa_ppl.phrases import PhraseCounts
from bpa_ppl.phrases.tree import PhraseTree

LONGEST = 5  # words of a phrase, of both sides
_WORDS = 60  # of a source sentence that is searched at all
_BEAM = 200
_COPIED = -10.0  # score of a word that the table does not know
_NONE = -1e30


class Table(NamedTuple):
    """A table of counts, ready to be asked for spans.

    Attributes:
        counts: the table.
        trees: of its source and target phrases.
        places: the number of the phrase of each node, or −1.
        first_rows: (source phrases + 1,) where the pairs of each begin.
    """

    counts: PhraseCounts
    trees: tuple[PhraseTree, PhraseTree]
    places: tuple[Int32, Int32]
    first_rows: Int64

    @classmethod
    def of(cls, counts: PhraseCounts) -> Table:
        """Return a table of the counts of a whole extraction."""
        sides = PhraseTree.of(counts.sources), PhraseTree.of(counts.targets)
        first = np.searchsorted(counts.source, np.arange(len(counts.sources) + 1))
        return cls(counts, (sides[0][0], sides[1][0]), (sides[0][1], sides[1][1]), first)

    def phrases(self, side: int, texts: list[str]) -> tuple[Int64, Int64, Int64]:
        """Return the words of each text, the number of the phrase in each span, and their starts.

        Spans are in the order of their first words, the shorter first, up to `LONGEST` words.
        """
        words, starts = self.trees[side].known_words(text.encode() for text in texts)
        lengths = np.diff(starts)
        spans = [
            (begin, count)
            for length in lengths.tolist()
            for begin in range(length)
            for count in range(1, min(LONGEST, length - begin) + 1)
        ]
        begin, count = np.array(spans, np.int32).reshape(-1, 2).T.copy()
        each = np.array([sum(min(LONGEST, n - b) for b in range(n)) for n in lengths.tolist()])
        span_starts = np.append(0, np.cumsum(each)).astype(np.int64)
        nodes = self.trees[side].find((words, starts), span_starts, begin, count)
        numbers = np.where(nodes >= 0, self.places[side][np.maximum(nodes, 0)], -1)
        return lengths, numbers.astype(np.int64), span_starts

    def scores(self, sources: Int64, targets: Int64) -> Float64:
        """Return (sources, targets) log p(t|s) + log p(s|t); very low where there is no pair.

        Args:
            sources: numbers of source phrases, or −1.
            targets: numbers of target phrases, ascending.
        """
        counts = self.counts
        scores = np.full((len(sources), len(targets) + 1), _NONE)
        for place, source in enumerate(sources.tolist()):
            if source < 0 or not len(targets):
                continue
            rows = slice(self.first_rows[source], self.first_rows[source + 1])
            target = counts.target[rows]
            columns = np.minimum(np.searchsorted(targets, target), len(targets) - 1)
            there = targets[columns] == target
            both = 2 * np.log(counts.count[rows]) - np.log(counts.source_count[source])
            both -= np.log(counts.target_count[target])
            scores[place, columns[there]] = both[there]
        return scores


def segmented(lists: NBest, table: Table) -> NBest:
    """Return the hypotheses whose derivation is found, with the extra `segmentation`."""
    parts = [part for part in (_one(one, table) for one in lists) if part is not None]
    return NBest.concatenate(parts)


def _one(nbest: NBest, table: Table) -> NBest | None:
    """Return one list with segmentations, or None where nothing is found."""
    source = (nbest.sources or ("",))[0]
    words = source.split()
    if not 0 < len(words) <= _WORDS:
        return None
    found = dict(_derivations(nbest, table, words))
    rows = [row for row in range(len(nbest.features)) if row in found]
    if not rows:
        return None
    kept = nbest.regroup(np.array([0]), np.array(rows), [len(rows)])
    return kept.with_extras(segmentation=[found[row] for row in rows])


def _derivations(nbest: NBest, table: Table, words: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows of which the derivation is found, with it."""
    _, of_source, _ = table.phrases(0, [" ".join(words)])
    _, of_targets, starts = table.phrases(1, list(nbest.strings))
    targets = np.unique(of_targets[of_targets >= 0])
    scores = table.scores(of_source, targets)
    columns = np.where(of_targets >= 0, np.searchsorted(targets, of_targets), len(targets))
    spans = _spans(len(words))
    alone = np.flatnonzero(spans[:, 1] == 1)
    unknown = (scores[alone] <= _NONE).all(axis=1)
    names = list(nbest.feature_names)
    phrases = np.rint(nbest.features[:, names.index("PhrasePenalty0")]).astype(int)
    jumps = np.rint(-nbest.features[:, names.index("Distortion0")]).astype(int)
    done: dict[tuple[int, int, int], str | None] = {}
    for row in range(len(nbest.features)):
        string = int(nbest.string_index[row])
        key = string, int(phrases[row]), int(jumps[row])
        if key not in done:
            target = np.array(nbest.strings[string].split())
            copied = (np.array(words)[:, None] == target) & unknown[:, None]
            inside = columns[starts[string] : starts[string + 1]]
            options = _options(scores[:, inside], spans, _spans(len(target)), copied)
            done[key] = _searched(*options, len(words), len(target), key[1], key[2])
        if done[key] is not None:
            yield row, done[key] or ""


def _spans(length: int) -> Int64:
    """Return (spans, 2) first word and words of each, in the order of `Table.phrases`."""
    return np.array(
        [(b, c) for b in range(length) for c in range(1, min(LONGEST, length - b) + 1)], np.int64
    )


def _options(
    scores: Float64, source: Int64, target: Int64, copied: np.ndarray
) -> tuple[Int64, Float64]:
    """Return the pairs that a hypothesis can be built from, as `search` takes them.

    Args:
        scores: (source spans, target spans).
        source: (source spans, 2) first word and words.
        target: (target spans, 2) the same.
        copied: (source words, target words) whether a word may be copied.
    """
    first, second = np.nonzero(scores > _NONE)
    spans = np.hstack([target[second], source[first]])
    words, places = np.nonzero(copied)
    ones = np.ones(len(words), np.int64)
    spans = np.vstack([spans, np.stack([places, ones, words, ones], axis=1)])
    values = np.append(scores[first, second], np.full(len(words), _COPIED))
    order = np.argsort(spans[:, 0], kind="stable")
    return spans[order], values[order]


def _searched(
    spans: Int64, values: Float64, source: int, target: int, phrases: int, jump: int
) -> str | None:
    if not len(spans):
        return None
    firsts = np.searchsorted(spans[:, 0], np.arange(target + 1))
    path = search(spans, values, firsts, (source, target, phrases, jump), _BEAM)
    if not len(path):
        return None
    return " ".join(f"{_text(*spans[o, 2:])}={_text(*spans[o, :2])}" for o in path)


def _text(begin: int, words: int) -> str:
    return f"{begin}" if words == 1 else f"{begin}-{begin + words - 1}"


@njit(nogil=True, cache=True)
def search(
    spans: Int64, values: Float64, firsts: Int64, wanted: tuple[int, int, int, int], beam: int
) -> Int64:
    """Return the pairs of the best derivation, in target order; none where there is none.

    Args:
        spans: (pairs, 4) first target word, words, first source word, words; sorted.
        values: (pairs,) their scores.
        firsts: (target words + 1,) where the pairs that begin with each target word begin.
        wanted: source words, target words, phrases, and how far the phrases jump in all.
        beam: how many states are kept for each number of target words.
    """
    source, target, phrases, jump = wanted
    # A state: covered source words, end of the last phrase, phrases, jumps, state and pair before.
    states = np.zeros((target + 1, beam, 6), np.int64)
    best = np.full((target + 1, beam), _NONE)
    sizes = np.zeros(target + 1, np.int64)
    sizes[0], best[0, 0] = 1, 0.0
    for j in range(target):
        for i in range(sizes[j]):
            state = states[j, i]
            if state[2] == phrases:
                continue
            for option in range(firsts[j], firsts[j + 1]):
                _, words, begin, covered = spans[option]
                mask = ((np.int64(1) << covered) - 1) << begin
                far = state[3] + abs(begin - state[1])
                if state[0] & mask or far > jump:
                    continue
                new = (state[0] | mask, begin + covered, state[2] + 1, far, i, option)
                _keep(states, best, sizes, j + words, new, best[j, i] + values[option])
    full, found = (np.int64(1) << source) - 1, -1
    for i in range(sizes[target]):
        state = states[target, i]
        if state[0] != full or state[2] != phrases or state[3] != jump:
            continue
        if found < 0 or best[target, i] > best[target, found]:
            found = i
    path = np.empty(phrases if found >= 0 else 0, np.int64)
    j = target
    for place in range(len(path) - 1, -1, -1):
        path[place] = states[j, found, 5]
        found = states[j, found, 4]
        j -= spans[path[place], 1]
    return path


@njit
def _keep(
    states: Int64,
    best: Float64,
    sizes: Int64,
    j: int,
    new: tuple[int, int, int, int, int, int],
    score: float,
) -> None:
    """Put a state into the beam, in place of the same one, or of the worst one, if it is better."""
    size, place, worst = sizes[j], -1, 0
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
            sizes[j] += 1
    if score > best[j, place]:
        best[j, place] = score
        for f in range(6):
            states[j, place, f] = new[f]

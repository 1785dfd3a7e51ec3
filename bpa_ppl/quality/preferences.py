"""Preferences: pairs, ties and rankings of the candidates of a list, as observed choices.

A sentence may carry any of these extras:

    preferences: [[winner, loser], …]     one candidate was preferred to another
    ties:        [[a, b], …]              the judge saw no difference
    rankings:    [[best, …, worst], …]    some or all candidates in order, without ties

A candidate is named by its position in the list (an integer), or by its `id` (a text), an extra of
the candidates. The last member of a ranking may be a list of candidates without an order:
`[2, [0, 1, 3]]` says that 2 was chosen among four.

Each of them is the choice of one row among a few. A pair is a choice among two (Bradley & Terry
1952), or among three where "no difference" is an answer (Davidson 1970). A ranking of m candidates
is a sequence of m − 1 choices, each among those that are left (Plackett 1975; Luce 1959).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bpa_ppl.errors import DataError, quoted, require
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import log_info

#: Extras of a sentence that hold what was compared.
PREFERENCES, TIES, RANKINGS = "preferences", "ties", "rankings"
#: The extra of the candidates by which they can be named.
CANDIDATE_ID = "id"
#: The text of the row that stands for "no difference".
NO_DIFFERENCE = "(no difference)"


class ChoiceSets(NamedTuple):
    """Observed choices (C choices with R rows in all).

    Attributes:
        nbest: the rows among which each choice was made, a list a choice. The features of the row
            that stands for "no difference" are the mean of those of the pair.
        chosen: (C,) the position in its list of the row that was chosen.
        tie: (R,) 1 for the rows that stand for "no difference", 0 for candidates.
        counts: how many lists, preferences, ties and rankings the choices are made from.

    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> found = choice_sets(lists.with_sentence_extras(ties=[[[0, 1]]]))
    >>> found.nbest.texts(0), found.tie.tolist(), found.chosen.tolist()
    (['a', 'b', '(no difference)'], [0.0, 0.0, 1.0], [2])
    """

    nbest: NBest
    chosen: Int64
    tie: Float64
    counts: dict[str, int]


class _Choice(NamedTuple):
    """One choice among the candidates of a list."""

    candidates: tuple[int, ...]
    chosen: int
    pair: bool  # "no difference" could have been the answer


def has_preferences(nbest: NBest) -> bool:
    """Say whether any sentence carries preferences, ties or rankings.

    >>> lists = NBest.from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[2.0]]], ["LM0"])
    >>> compared = lists.with_sentence_extras(preferences=[[[1, 0]], None])
    >>> has_preferences(lists), has_preferences(compared)
    (False, True)
    """
    columns = [nbest.sentence_extras.get(name, ()) for name in (PREFERENCES, TIES, RANKINGS)]
    return any(
        isinstance(entries, list | tuple | np.ndarray) and len(entries) > 0
        for entries in chain.from_iterable(columns)
    )


def choice_sets(nbest: NBest, *, ties: bool | None = None) -> ChoiceSets:
    """Return the choices that the preferences, ties and rankings of some lists stand for.

    Sentences that carry none are left out. Contradictory preferences are all kept. A table without
    any sentence has no choices.

    Args:
        nbest: lists whose sentences carry `preferences`, `ties` or `rankings`.
        ties: whether "no difference" could have been the answer to a pair, so that each pair has a
            third row; None: where it was the answer to one of them.

    Raises:
        DataError: if no sentence carries any, an entry is not of the form described above, names
            no candidate or one of them twice, or there are ties where `ties` is False.

    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> pairs = choice_sets(lists.with_sentence_extras(preferences=[[[1, 0]]], ties=[[[0, 2]]]))
    >>> pairs.nbest.features[:, 0].tolist(), pairs.chosen.tolist()
    ([1.0, 0.0, 0.5, 0.0, 5.0, 2.5], [0, 2])
    >>> ranked = choice_sets(lists.with_sentence_extras(rankings=[[[2, 0, 1]]]))
    >>> [ranked.nbest.texts(choice) for choice in range(2)]
    [['c', 'a', 'b'], ['a', 'b']]
    """
    require(nbest, NBest, "preferences are extras of n-best lists (NBest)")
    found = [
        (s, choice)
        for name, choices in ((PREFERENCES, _pairs), (TIES, _pairs), (RANKINGS, _rankings))
        for s, entries in enumerate(nbest.sentence_extras.get(name, ()))
        for choice in choices(_Entries(nbest, s, name), entries)
    ]
    if not found and len(nbest):
        raise DataError(
            "no sentence carries a preference: give some of them preferences, such as [[2, 0]] "
            "where candidate 2 was preferred to candidate 0, or ties or rankings",
            nbest.origin,
        )
    found.sort(key=lambda one: one[0])
    counts = _counts(nbest, found)
    if ties is False and counts[TIES]:
        raise DataError(
            f"{counts[TIES]} ties, where no tie is part of the model: leave them out with "
            f"without({TIES!r})",
            nbest.origin,
        )
    _note_contradictions(nbest, found)
    return _made(nbest, found, bool(counts[TIES]) if ties is None else ties, counts)


def _made(
    nbest: NBest, found: list[tuple[int, _Choice]], ties: bool, counts: dict[str, int]
) -> ChoiceSets:
    """Lay the choices out as lists: candidates, then perhaps the row of "no difference"."""
    rows, sizes, tie = list[int](), list[int](), list[bool]()
    for s, choice in found:
        first, third = int(nbest.offsets[s]), choice.pair and ties
        # The row of the tie is a copy of the first candidate until its features are known.
        members = choice.candidates + choice.candidates[:1] * third
        rows += [first + candidate for candidate in members]
        tie += [False] * len(choice.candidates) + [True] * third
        sizes.append(len(members))
    sentences = np.array([s for s, _ in found], np.int64)
    lists = nbest.regroup(sentences, np.array(rows, np.int64), sizes)
    virtual = np.flatnonzero(tie)
    if len(virtual):
        features, texts = lists.features.astype(np.float64), np.array(lists.string_index)
        features[virtual] = (features[virtual - 2] + features[virtual - 1]) / 2
        texts[virtual] = len(lists.strings)
        lists = replace(
            lists,
            features=features.astype(np.float32),
            strings=(*lists.strings, NO_DIFFERENCE),
            string_index=texts,
        )
    chosen = np.array([choice.chosen for _, choice in found], np.int64)
    return ChoiceSets(lists, chosen, np.array(tie, np.float64), counts)


def _counts(nbest: NBest, found: list[tuple[int, _Choice]]) -> dict[str, int]:
    pairs = [choice for _, choice in found if choice.pair]
    ties = sum(choice.chosen == 2 for choice in pairs)
    rankings = nbest.sentence_extras.get(RANKINGS, ())
    return {
        "lists": len({s for s, _ in found}),
        PREFERENCES: len(pairs) - ties,
        TIES: ties,
        RANKINGS: sum(len(entries) for entries in rankings if entries is not None),
    }


def _note_contradictions(nbest: NBest, found: list[tuple[int, _Choice]]) -> None:
    decided = {(s, choice.candidates) for s, choice in found if choice.pair and choice.chosen == 0}
    both = sum((s, (a, b)) in decided for s, (b, a) in decided) // 2
    if both:
        log_info(
            f"{nbest.origin}: {both} pair{'s' * (both > 1)} of candidates preferred in both "
            "directions; all judgements are kept, because contradictions are evidence too"
        )


class _Entries(NamedTuple):
    """What one sentence carries under one name."""

    nbest: NBest
    sentence: int
    name: str

    def position(self, candidate: Any, place: int) -> int:
        """Return the position of a candidate that is named by its position or its id."""
        nbest, rows = self.nbest, self.nbest.rows(self.sentence)
        size = rows.stop - rows.start
        if isinstance(candidate, int) and not isinstance(candidate, bool):
            if not 0 <= candidate < size:
                self.fail(place, f"names candidate {candidate} of a list of {size}: count from 0")
            return candidate
        if not isinstance(candidate, str):
            self.fail(place, f"names a candidate {quoted(candidate)}: give its position or its id")
        if CANDIDATE_ID not in nbest.extras:
            self.fail(place, f"names {quoted(candidate)}, and the candidates have no texts `id`")
        ids = list(nbest.extras[CANDIDATE_ID][rows])
        if ids.count(candidate) != 1:
            several = "several candidates" if candidate in ids else "no candidate"
            self.fail(place, f"names {quoted(candidate)}, the id of {several} of the list")
        return ids.index(candidate)

    def positions(self, candidates: Any, place: int) -> tuple[int, ...]:
        """Return the positions of several different candidates."""
        found = tuple(self.position(candidate, place) for candidate in candidates)
        if len(set(found)) < len(found):
            self.fail(place, f"names a candidate twice: {quoted(candidates)}")
        return found

    def each(self, entries: Any) -> Iterator[tuple[int, Any]]:
        """Yield the entries with their places; none where there are none."""
        listed = _listed(entries)
        if entries is not None and listed is None:
            self.fail(None, f"is {quoted(entries)}, not a list")
        for place, entry in enumerate(listed or ()):
            if (one := _listed(entry)) is None:
                self.fail(place, f"is {quoted(entry)}, not a list of candidates")
            yield place, one

    def fail(self, place: int | None, what: str) -> NoReturn:
        """Raise an error that names the entry."""
        ids = self.nbest.sentence_extras.get("id", self.nbest.sentence_ids)
        at = "" if place is None else f"[{place}]"
        raise DataError(
            f"{self.name}{at} of sentence {ids[self.sentence]} {what}", self.nbest.origin
        )


def _listed(values: Any) -> list[Any] | None:
    """Return the members of a list, tuple or array, with Python's numbers; None for others."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(listed, list | tuple):
        return None
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def _pairs(of: _Entries, entries: Any) -> Iterator[_Choice]:
    """Yield the choices of preferences, whose winner comes first, or of ties."""
    for place, pair in of.each(entries):
        if len(pair) != 2:
            of.fail(place, f"is {quoted(pair)}, not a pair of candidates")
        yield _Choice(of.positions(pair, place), 2 if of.name == TIES else 0, pair=True)


def _rankings(of: _Entries, entries: Any) -> Iterator[_Choice]:
    """Yield the choices of rankings, the best among all first."""
    for place, ranking in of.each(entries):
        rest = _listed(ranking[-1]) if ranking else None
        ordered = ranking if rest is None else ranking[:-1]
        if not ordered or len(ordered) + len(rest or ()) < 2 or rest == []:
            of.fail(place, f"is {quoted(ranking)}, not a ranking of two candidates or more")
        if any(_listed(candidate) is not None for candidate in ordered):
            of.fail(place, f"is {quoted(ranking)}: only the last of a ranking may be a list")
        candidates = of.positions([*ordered, *(rest or ())], place)
        for first in range(len(ordered) - (rest is None)):
            yield _Choice(candidates[first:], 0, pair=False)

"""Preferences: pairs, ties and rankings as observed choices, and how their raters agree.

A sentence may have any of these extras:

    preferences: [[winner, loser], …]     one candidate was preferred to another
    ties:        [[a, b], …]              the judge saw no difference
    rankings:    [[best, …, worst], …]    some or all candidates in order, without ties

A candidate is given by its position in the list (an integer), or by its `id` (a text), an extra of
the candidates. The last member of a ranking may be a list of candidates without an order:
`[2, [0, 1, 3]]` says that 2 was chosen among four.

An entry may also be an object, with the strength of the judgement or the name of the rater:

    {"candidates": [winner, loser], "weight": 0.3, "rater": "ann"}

The probability of a choice is raised to the power of its weight (default 1, from 1e-6 to 1e6): a
judgement of weight 2 counts like two equal ones.

Each of them is the choice of one row among a few. A pair is a choice among two (Bradley & Terry
1952), or among three if "no difference" is an answer (Davidson 1970). A ranking of m candidates is
a sequence of m − 1 choices, each among the remaining ones (Plackett 1975; Luce 1959).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import format_count, log_info
from bpa_ppl.adaptation_record import Agreement
from bpa_ppl.errors import DataError, bad_value, locate, quote
from bpa_ppl.formats.block import JUDGEMENTS, PREFERENCES, RANKINGS, TIES
from bpa_ppl.lists.nbest import NBest

#: The text of the row that means "no difference".
_NO_DIFFERENCE = "(no difference)"
#: All raters without a name.
UNNAMED = "(unnamed)"
#: Weights that 32-bit numbers can add up.
_WEIGHT_BOUNDS = (1e-6, 1e6)
#: The fields of an entry that is an object.
_CANDIDATES, _WEIGHT, _RATER = "candidates", "weight", "rater"
#: The answers of raters in order: second, tie, first.
_ANSWERS = (-1, 0, 1)


class ChoiceSets(NamedTuple):
    """Observed choices (C choices with R rows in all).

    Attributes:
        lists: the rows among which each choice was made, one list per choice. The features of a
            row that means "no difference" are the mean of those of the pair.
        chosen: (C,) the position in its list of the row that was chosen.
        tie: (R,) 1 for rows that mean "no difference", 0 for candidates.
        counts: the numbers of lists, preferences, ties and rankings.
        weight: (C,) the exponent of the probability of each choice.
        rater: (C,) the number of the rater who made it, a position in `raters`.
        raters: their names in alphabetical order; those without a name are one, `(unnamed)`.
        answers: what the choices were read from, as `iter_choices` yields them.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> choices = choice_sets(lists.with_sentence_extras(ties=[[[0, 1]]]))
    >>> choices.lists.texts(0), choices.tie.tolist(), choices.chosen.tolist()
    (['a', 'b', '(no difference)'], [0.0, 0.0, 1.0], [2])
    >>> slightly = {"candidates": [1, 0], "weight": 0.3, "rater": "ann"}
    >>> choices = choice_sets(lists.with_sentence_extras(preferences=[[slightly, [0, 1]]]))
    >>> choices.weight.tolist(), choices.rater.tolist(), choices.raters, choices.named_raters
    ([0.3, 1.0], [1, 0], ('(unnamed)', 'ann'), {'ann': 1})
    """

    lists: NBest
    chosen: Int64
    tie: Float64
    counts: dict[str, int]
    weight: Float64
    rater: Int64
    raters: tuple[str, ...]
    answers: tuple[Choice, ...]

    @property
    def named_raters(self) -> dict[str, int]:
        """The number of choices of each rater who has a name."""
        choices = Counter(self.rater.tolist())
        return {name: choices[i] for i, name in enumerate(self.raters) if name != UNNAMED}


class Choice(NamedTuple):
    """One choice among some candidates of a list.

    Attributes:
        sentence: the position of the list.
        candidates: their positions in it.
        chosen: the position of the chosen one among the candidates; of a pair, 2 means "no
            difference".
        pair: whether it is a preference or a tie, not a part of a ranking.
        weight: the exponent of its probability.
        rater: the name of the rater, or `(unnamed)`.
        comparisons: the number of pairs of candidates that the whole answer compares.

    >>> Choice(0, (2, 1), 0, pair=True)
    Choice(sentence=0, candidates=(2, 1), chosen=0, pair=True, weight=1.0, rater='(unnamed)', ...)
    """

    sentence: int
    candidates: tuple[int, ...]
    chosen: int
    pair: bool
    weight: float = 1.0
    rater: str = UNNAMED
    comparisons: int = 1


def has_preferences(lists: NBest) -> bool:
    """Return whether any sentence has preferences, ties or rankings.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[2.0]]], ["LM0"])
    >>> compared = lists.with_sentence_extras(preferences=[[[1, 0]], None])
    >>> has_preferences(lists), has_preferences(compared)
    (False, True)
    """
    columns = [lists.sentence_extras.get(name, ()) for name in JUDGEMENTS]
    return any(map(_to_list, chain.from_iterable(columns)))


def choice_sets(lists: NBest, *, ties: bool = False) -> ChoiceSets:
    """Return the choices that the preferences, ties and rankings of some lists represent.

    Sentences without any are left out. Contradictory preferences are all kept. A table without any
    sentence has no choices.

    Args:
        lists: lists whose sentences have `preferences`, `ties` or `rankings`.
        ties: whether "no difference" was a possible answer to a pair even if nobody gave it: each
            pair then has a third row.

    Raises:
        DataError: if no sentence has any, an entry does not have the form described above, names
            no candidate or one of them twice.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> pairs = choice_sets(lists.with_sentence_extras(preferences=[[[1, 0]]], ties=[[[0, 2]]]))
    >>> pairs.lists.features[:, 0].tolist(), pairs.chosen.tolist()
    ([1.0, 0.0, 0.5, 0.0, 5.0, 2.5], [0, 2])
    >>> ranked = choice_sets(lists.with_sentence_extras(rankings=[[[2, 0, 1]]]))
    >>> [ranked.lists.texts(choice) for choice in range(2)]
    [['c', 'a', 'b'], ['a', 'b']]
    """
    require(lists, NBest, "preferences are extras of n-best lists (NBest)", "lists")
    answers = tuple(iter_choices(lists))
    if not answers and len(lists):
        message = "no preferences: give some, such as [[2, 0]] if candidate 2 is better than 0"
        raise DataError(message, lists.origin, code="no-data")
    pairs = [choice for choice in answers if choice.pair]
    tied = sum(choice.chosen == 2 for choice in pairs)
    rankings = lists.sentence_extras.get(RANKINGS, ())
    counts = {
        "lists": len({choice.sentence for choice in answers}),
        PREFERENCES: len(pairs) - tied,
        TIES: tied,
        RANKINGS: sum(len(entries) for entries in rankings if entries is not None),
    }
    decided = {(choice.sentence, choice.candidates) for choice in pairs if choice.chosen == 0}
    both = sum((sentence, (a, b)) in decided for sentence, (b, a) in decided) // 2
    if both:
        log_info(
            f"{locate(lists.origin)}{format_count(both, 'pair')} of candidates preferred in both "
            "directions; all judgements are kept, because contradictions are evidence too"
        )
    return _lay_out(lists, answers, ties or tied > 0, counts)


def iter_choices(lists: NBest) -> Iterator[Choice]:
    """Yield the choices of all preferences, then of all ties, then of all rankings.

    Raises:
        DataError: as `choice_sets`, for an entry that is not valid.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> list(iter_choices(lists.with_sentence_extras(preferences=[[[1, 0]]])))[0].candidates
    (1, 0)
    """
    ids = lists.sentence_extras.get("id", lists.sentence_ids)
    for name in JUDGEMENTS:
        for sentence, entries in enumerate(lists.sentence_extras.get(name, ())):
            where, path = f"of sentence {ids[sentence]}", lists.origin
            listed = _to_list(entries)
            if entries is not None and listed is None:
                raise bad_value(f"{name} {where}", entries, "a list", path, code="bad-line")
            for index, entry in enumerate(listed or ()):
                wrong = partial(_make_error, f"{name}[{index}] {where}", path)
                yield from _parse_entry(lists, sentence, name, entry, wrong)


def _lay_out(
    lists: NBest, answers: tuple[Choice, ...], ties: bool, counts: dict[str, int]
) -> ChoiceSets:
    """Return choices as lists: the candidates, then the row of "no difference" for a pair."""
    choices = sorted(answers, key=lambda choice: choice.sentence)
    rows, sizes, tie = list[int](), list[int](), list[bool]()
    for choice in choices:
        first, third = int(lists.offsets[choice.sentence]), choice.pair and ties
        # The row of the tie is a copy of the first candidate until its features are computed.
        members = choice.candidates + choice.candidates[:1] * third
        rows += [first + candidate for candidate in members]
        tie += [False] * len(choice.candidates) + [True] * third
        sizes.append(len(members))
    sentences = np.array([choice.sentence for choice in choices], np.int64)
    laid_out = lists.regroup(sentences, np.array(rows, np.int64), sizes)
    virtual = np.flatnonzero(tie)
    if len(virtual):
        features, texts = np.array(laid_out.features), np.array(laid_out.string_index)
        features[virtual] = (features[virtual - 2] + features[virtual - 1]) / 2
        texts[virtual] = len(laid_out.strings)
        laid_out = replace(
            laid_out,
            features=features,
            strings=(*laid_out.strings, _NO_DIFFERENCE),
            string_index=texts,
        )
    raters = tuple(sorted({choice.rater for choice in choices}))
    number = {name: i for i, name in enumerate(raters)}
    return ChoiceSets(
        laid_out,
        np.array([choice.chosen for choice in choices], np.int64),
        np.array(tie, np.float64),
        counts,
        np.array([choice.weight for choice in choices], np.float64),
        np.array([number[choice.rater] for choice in choices], np.int64),
        raters,
        answers,
    )


def _make_error(entry: str, path: str, problem: str, code: str = "bad-line") -> DataError:
    """Return an error about an entry."""
    return DataError(f"{entry} {problem}", path, code=code)


def _parse_entry(
    lists: NBest, sentence: int, name: str, entry: Any, wrong: Callable[..., DataError]
) -> Iterator[Choice]:
    """Yield the choices that one entry represents; of a ranking, the best among all first."""
    fields = entry if isinstance(entry, dict) else {_CANDIDATES: entry}
    for field in fields:
        if field not in (_CANDIDATES, _WEIGHT, _RATER):
            allowed = f"{_CANDIDATES}, {_WEIGHT} and {_RATER}"
            raise wrong(f"has a field {quote(field)}: its fields are {allowed}", "bad-name")
    members = _to_list(fields.get(_CANDIDATES))
    if members is None:
        problem = f"is {quote(fields.get(_CANDIDATES))}, not a list of candidates"
        raise wrong(f"{problem}: a field {name} holds several, such as [[1, 0]]")
    weight, rater, (low, high) = fields.get(_WEIGHT), fields.get(_RATER), _WEIGHT_BOUNDS
    is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    if weight is not None and not (is_number and low <= weight <= high):
        problem = f"has the weight {quote(weight)}, not a number from {low:g} to {high:g}"
        raise wrong(problem, "bad-number")
    if rater is not None and (not isinstance(rater, str) or not rater):
        raise wrong(f"has the rater {quote(rater)}, not a name", "bad-name")
    choice = partial(
        Choice, weight=1.0 if weight is None else float(weight), rater=rater or UNNAMED
    )
    if name != RANKINGS:
        if len(members) != 2:
            raise wrong(f"is {quote(members)}, not a pair of candidates")
        positions = _read_positions(lists, sentence, members, wrong)
        yield choice(sentence, positions, 2 if name == TIES else 0, pair=True)
        return
    rest = _to_list(members[-1]) if members else None
    ordered = members if rest is None else members[:-1]
    if not ordered or len(ordered) + len(rest or ()) < 2 or rest == []:
        raise wrong(f"is {quote(members)}, not a ranking of two candidates or more")
    if any(_to_list(candidate) is not None for candidate in ordered):
        raise wrong(f"is {quote(members)}: only the last of a ranking may be a list")
    candidates = _read_positions(lists, sentence, [*ordered, *(rest or ())], wrong)
    steps = range(len(ordered) - (rest is None))
    comparisons = sum(len(candidates) - first - 1 for first in steps)
    for first in steps:
        yield choice(sentence, candidates[first:], 0, pair=False, comparisons=comparisons)


def _read_positions(
    lists: NBest, sentence: int, candidates: list[Any], wrong: Callable[..., DataError]
) -> tuple[int, ...]:
    """Return the positions of several different candidates, given by position or id."""
    rows = lists.rows(sentence)
    size, positions = rows.stop - rows.start, list[int]()
    for candidate in candidates:
        is_position = isinstance(candidate, int) and not isinstance(candidate, bool)
        if is_position and 0 <= candidate < size:
            positions.append(candidate)
            continue
        ids = list(lists.extras.get("id", ())[rows])
        if not isinstance(candidate, str) or ids.count(candidate) != 1:
            problem = f"names {quote(candidate)}, neither a position below {size} nor an `id`"
            raise wrong(problem, "bad-name")
        positions.append(ids.index(candidate))
    if len(set(positions)) < len(positions):
        raise wrong(f"names a candidate twice: {quote(candidates)}", "duplicate")
    return tuple(positions)


def _to_list(values: Any) -> list[Any] | None:
    """Return the members of a list, tuple or array as Python objects; None for other objects."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(listed, list | tuple):
        return None
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def agreement(answers: Iterable[Choice]) -> Agreement:
    """Return how well the raters of preferences and ties agree.

    Answers without the name of a rater are left out, because several people may have given them. If
    a rater compared a pair twice, the first answer counts, and preferences come before ties.

    Args:
        answers: from `iter_choices`.

    >>> from bpa_ppl import from_lists
    >>> def entry(rater, *candidates):
    ...     return {"candidates": candidates, "rater": rater}
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0], [1.0]]] * 2, ["LM0"])
    >>> lists = lists.with_sentence_extras(
    ...     preferences=[[entry("ann", 0, 1), entry("bob", 0, 1)], [entry("bob", 1, 0)]],
    ...     ties=[None, [entry("ann", 0, 1)]],
    ... )
    >>> print(agreement(iter_choices(lists)))
    2 raters answered 2 pairs in common, and agreed on 1 (Krippendorff's α 0.83)
    """
    table: dict[tuple[int, int, int], dict[str, int]] = {}
    raters: set[str] = set()
    for choice in answers:
        if choice.rater == UNNAMED:
            continue
        raters.add(choice.rater)
        if choice.pair:
            low, high = sorted(choice.candidates)
            answer = 0 if choice.chosen else 1 if choice.candidates[0] == low else -1
            table.setdefault((choice.sentence, low, high), {}).setdefault(choice.rater, answer)
    common = [by_rater for by_rater in table.values() if len(by_rater) > 1]
    alike = sum(len(set(by_rater.values())) == 1 for by_rater in common)
    counts = np.zeros((len(common), len(_ANSWERS)))
    for row, by_rater in zip(counts, common, strict=True):
        np.add.at(row, [_ANSWERS.index(answer) for answer in by_rater.values()], 1)
    return Agreement(len(raters), len(common), alike, ordinal_alpha(counts))


def ordinal_alpha(counts: Float64) -> float | None:
    """Return Krippendorff's α of ordered answers; None if all answers are the same.

    Krippendorff, *Computing Krippendorff's alpha-reliability*, 2011.

    Args:
        counts: (items, answers) how many raters gave each answer. Each item needs two raters.

    >>> ordinal_alpha(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])).__round__(3)
    0.444
    """
    raters = counts.sum(axis=1)
    pairs = (counts.T / (raters - 1)) @ counts  # pairs of answers to the same item
    pairs -= np.diag((counts / (raters - 1)[:, None]).sum(axis=0))
    totals = counts.sum(axis=0)
    ranks = np.cumsum(totals) - totals / 2
    distances = np.subtract.outer(ranks, ranks) ** 2
    expected = totals @ distances @ totals / (totals.sum() - 1)
    return float(1 - (pairs * distances).sum() / expected) if expected > 0 else None

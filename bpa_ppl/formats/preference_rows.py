"""Rows of preference data: a prompt, and two answers of which one is preferred.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "features": {"lm": -1.5}}, "rejected": {…}}
    {"chosen": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}], …}
    {"response_a": "…", "response_b": "…", "winner": "model_a", "score_a": 0.3, "score_b": 0.1}

Each row becomes a list of two candidates, `chosen` or `response_a` first, with the prompt as its
source and `preferences` [[0, 1]]. The winner of two responses is a label of one of them, or of a
tie, for which `ties` has [[0, 1]]. All labels of a file must be of one pair:

* a pair of `_LABELS`, such as `model_a` and `model_b`, or `A` and `B`;
* the names of the columns of the two responses, or of their models;
* the names of the two models of each row.

Labels of ties are those of `_TIE_LABELS`. These and `_LABELS` may be in upper case, with a space or
a hyphen in place of `_`; 1 and 2 may be numbers.

Pairs of fields such as `score_a` and `score_b`, `score_chosen` and `score_rejected`, or
`chosen_score` and `rejected_score`, are the column `score` of the candidates, but `model_a` and
`model_b`, names of models, are the column `system`.

An answer is a text, an object with a `text` and other fields of a candidate, or a conversation:
turns with a `role` and a `content`, of which the last one, of the assistant, is the answer, and
those before it are the same for both answers. A prompt is a text, or turns of which the last one is
the source; without a prompt it is the last turn before the answers.

All other fields of a row are extras of the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from bpa_ppl._runtime.values import RECIPES, abbreviate
from bpa_ppl.errors import COLUMN, DataError, Remedy, list_names, quote
from bpa_ppl.formats.block import CANDIDATES, ID, JUDGEMENTS, PREFERENCES, SOURCE, TEXT, TIES
from bpa_ppl.lists.nbest import DROP

PROMPT, CHOSEN, REJECTED = "prompt", "chosen", "rejected"
MODEL_A, MODEL_B, WINNER = "model_a", "model_b", "winner"
RESPONSE_A, RESPONSE_B = "response_a", "response_b"
#: Fields that may have other names in a file.
SETTINGS = (PROMPT, CHOSEN, REJECTED, MODEL_A, MODEL_B, RESPONSE_A, RESPONSE_B, WINNER)
#: The fields that show such rows.
PAIRS = ((CHOSEN, REJECTED), (RESPONSE_A, RESPONSE_B, WINNER), (MODEL_A, MODEL_B, WINNER))
#: The fields of each form.
Fields = tuple[str, ...]
_PAIR: Fields = (CHOSEN, REJECTED)
_ARENA: Fields = (RESPONSE_A, RESPONSE_B, WINNER)
_SYSTEM, _MODEL = "system", "model"
#: Pairs of labels of the first and the second answer.
_LABELS = (
    (RESPONSE_A, RESPONSE_B),
    (MODEL_A, MODEL_B),
    ("model_1", "model_2"),
    ("a", "b"),
    ("1", "2"),
    ("left", "right"),
    ("first", "second"),
)
#: Labels of ties.
_TIE_LABELS = (
    *("tie", "tied", "draw", "equal", "same", "both", "neither"),
    *("tie_(bothbad)", "both_bad", "both_good", "no_preference", "no_difference"),
)
_ROLE, _CONTENT, _ASSISTANT = "role", "content", "assistant"
_CHARACTERS_SHOWN = 400  # characters of the names of columns in a message
_LABELS_SHOWN = 12  # labels of winners in a message
_Error = Callable[..., DataError]


def find_answer_fields(names: Collection[str]) -> Fields | None:
    """Return the fields of a row of preferences, the answers first; None for other rows.

    Args:
        names: of the fields of the row.

    >>> find_answer_fields({"prompt", "chosen", "rejected"}), find_answer_fields({"id", "text"})
    (('chosen', 'rejected'), None)
    """
    if TEXT in names or CANDIDATES in names:
        return None
    if CHOSEN in names or REJECTED in names:
        return _PAIR
    return _ARENA if any(all(name in names for name in form) for form in PAIRS[1:]) else None


def find_named_form(names: Collection[str]) -> Fields | None:
    """Return the fields of the form of preferences of which some are named; None if none is.

    >>> find_named_form({"response_a", "response_b"}), find_named_form({"id"})
    (('response_a', 'response_b', 'winner'), None)
    """
    return next((form for form in PAIRS if not set(names).isdisjoint(form)), None)


class Winners:
    """The labels of winners in a file, which are all of one pair.

    Args:
        settings: names of fields in the file that are others in the rows, by these.

    >>> winners = Winners({"response_a": "left_text", "response_b": "right_text"})
    >>> winners.find("B", []), winners.find("tie", []), winners.find("left_text", [])
    ({1}, {None}, set())
    """

    def __init__(self, settings: Mapping[str, str]):
        named = ((RESPONSE_A, RESPONSE_B), (MODEL_A, MODEL_B))
        self._columns = [tuple(settings.get(name, name) for name in pair) for pair in named]
        self._possible = set(range(len(_LABELS) + len(named) + 1))  # pairs that have all labels
        self._found: dict[str, None] = {}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the labels of rows, for messages."""
        labels = (row.get(WINNER) for row in rows)
        self._found |= {abbreviate(one): None for one in labels if one not in (None, "")}

    @property
    def found(self) -> str:
        """The labels, the first ones of many."""
        return list_names(self._found, _LABELS_SHOWN)

    def find(self, winner: Any, models: Sequence[str]) -> set[int | None]:
        """Return the places of the answers that a label may name: None is a tie.

        Nothing is left where it is of another pair than the labels before.

        Args:
            winner: the label.
            models: their names in the row; none if it has none.
        """
        is_number = type(winner) in (int, float) and winner in (1, 2)
        label = str(int(winner)) if is_number else winner
        if not isinstance(label, str):
            return set()
        word = re.sub("[ -]", "_", label.lower())
        pairs: list[tuple[str, Sequence[str]]] = [(word, pair) for pair in _LABELS]
        pairs += [(label, pair) for pair in (*self._columns, tuple(models))]
        fits = [
            (number, place)
            for number, (one, pair) in enumerate(pairs)
            for place, of in enumerate(pair)
            if of == one
        ]
        if fits:
            self._possible &= {number for number, _ in fits}
        places: set[int | None] = {place for _, place in fits} if self._possible else set()
        return places | {None} if word in _TIE_LABELS else places


class _Row:
    """A row of preferences, and the errors about it.

    Args:
        record: the row.
        error: makes an error of a message.
        settings: names of fields in the file that are others in the row, by these.
        winners: the labels of the file.
    """

    def __init__(
        self,
        record: Mapping[str, Any],
        error: _Error,
        settings: Mapping[str, str],
        winners: Winners,
    ):
        self.record, self.error, self._settings = record, error, settings
        self._winners = winners

    def name(self, field: str) -> str:
        """Return the name of a field in the file."""
        return self._settings.get(field, field)

    def value(self, field: str) -> Any:
        """Return the value of a field without which the row has no judgement or no answer."""
        if field not in self.record:
            fields = quote(", ".join(map(self.name, self.record)), _CHARACTERS_SHOWN)
            named = Remedy(
                "name it in the format", settings={field: COLUMN}, columns=list(self.record)
            )
            raise self.error(
                f"no field {self.name(field)} (the fields are {fields})",
                parameter="format",
                code="missing-column",
                remedies=["rename one", named, RECIPES],
            )
        if (value := self.record[field]) in (None, ""):
            problem = f"{self.name(field)} is {abbreviate(value)}"
            drop = Remedy("drop such rows", DROP.arguments)
            raise self.error(problem, parameter="bad", remedies=["correct it", drop])
        return value

    def turns(self, field: str, value: list[Any]) -> list[dict[str, str]]:
        """Return a conversation, of which each turn has a role and a content, both texts."""
        for turn in value:
            fields = turn if isinstance(turn, dict) else {}
            fields = {name: of for name, of in fields.items() if of is not None}
            if fields.keys() != {_ROLE, _CONTENT} or {*map(type, fields.values())} != {str}:
                problem = f"{self.name(field)} has {abbreviate(turn)}, not a turn with a text as "
                raise self.error(f"{problem}its {_ROLE} and its {_CONTENT} alone: {RECIPES}")
        if not value:
            raise self.error(f"{self.name(field)} has no turns: write at least one")
        return value

    def answer(self, field: str) -> tuple[dict[str, Any], list[dict[str, str]]]:
        """Return an answer as a candidate, and the turns before it."""
        value = self.value(field) if self.record.get(field) != "" else ""
        if isinstance(value, str):
            return {TEXT: value}, []
        if isinstance(value, dict) and isinstance(value.get(TEXT), str):
            return value, []
        if isinstance(value, list) and value and {str}.issuperset(map(type, value)):
            problem = f"{self.name(field)} is a list of texts, not one answer"
            raise self.error(f"{problem}: {RECIPES}")
        if not isinstance(value, list):
            problem = f"{self.name(field)} is {abbreviate(value)}: write a text, an object with a "
            raise self.error(f"{problem}{TEXT}, or turns with a {_ROLE} and a {_CONTENT}")
        *turns, last = self.turns(field, value)
        if last[_ROLE] != _ASSISTANT:
            problem = f"the last turn of {self.name(field)} is of {quote(last[_ROLE])}"
            raise self.error(f"{problem}: end conversations with the answer of the {_ASSISTANT}")
        return {TEXT: last[_CONTENT]}, turns

    def source(self, turns: list[dict[str, str]]) -> str | None:
        """Return the prompt; without any the last turn before the answers, if there is one."""
        prompt = self.record.get(PROMPT)
        if prompt is None:
            return turns[-1][_CONTENT] if turns else None
        if isinstance(prompt, list):
            return self.turns(PROMPT, prompt)[-1][_CONTENT]
        if not isinstance(prompt, str):
            problem = f"{self.name(PROMPT)} is {abbreviate(prompt)}: write a text or turns"
            raise self.error(problem)
        return prompt

    def preferred(self, models: list[str]) -> int | None:
        """Return the place of the answer that won; None for a tie.

        Args:
            models: their names; none if the row has none.
        """
        winner = self.value(WINNER)
        places = self._winners.find(winner, models)
        if len(places) != 1:
            name, found = self.name(WINNER), self._winners.found
            problem = f"{name} is {abbreviate(winner)}, and the labels of {name} ({found}) are not "
            problem += "those of one pair, such as A and B, that says which answer won"
            remedy = f"write {RESPONSE_A}, {RESPONSE_B} or {_TIE_LABELS[0]} in their place"
            raise self.error(f"{problem}: {remedy}")
        return places.pop()

    def sides(self, fields: Fields) -> dict[str, tuple[str, str]]:
        """Return the fields of both answers, as `score_a` and `score_b`, by their common names."""
        first, second = ("_a", "_b") if fields == _ARENA else (CHOSEN, REJECTED)
        pairs = {}
        for name in filter(lambda name: first in name, map(str, self.record)):
            start, _, end = name.rpartition(first)
            common = "_".join(filter(None, (part.strip("_-.") for part in (start, end))))
            other = f"{start}{second}{end}"
            is_side = not end if fields == _ARENA else common not in (ID, TEXT)
            if common and is_side and other in self.record and name != RESPONSE_A:
                pairs[_SYSTEM if common == _MODEL else common] = name, other
        return pairs


def parse_pair(
    record: Mapping[str, Any],
    fields: Fields,
    error: _Error,
    line: int,
    settings: Mapping[str, str],
    winners: Winners,
) -> dict[str, Any]:
    """Return a row as a sentence with its answers as candidates.

    Args:
        record: the row.
        fields: as from `find_answer_fields`.
        error: makes an error of a message, the line, and a code.
        line: of the row.
        settings: names of fields in the file that are others in the row, by these.
        winners: the labels of the file.

    Raises:
        DataError: if it is not such a row; its parameter is "bad" if the row can be dropped, since
            it has no judgement or no answer.

    >>> row = {"prompt": "Un chat", "chosen": "a cat", "rejected": "cat"}
    >>> parse_pair(row, find_answer_fields(row), DataError, 1, {}, Winners({}))["source"]
    'Un chat'
    >>> row = {"model_a": "X", "model_b": "Y", "winner": "Y", "response_a": "a", "response_b": "b"}
    >>> pair = parse_pair(row, find_answer_fields(row), DataError, 1, {}, Winners({}))
    >>> pair["candidates"], pair["preferences"]
    ([{'text': 'a', 'system': 'X'}, {'text': 'b', 'system': 'Y'}], [[1, 0]])
    """
    row = _Row(record, partial(error, line=line, code="bad-line"), settings, winners)
    conflicting = [*JUDGEMENTS, *([SOURCE] if PROMPT in record else [])]
    conflicting += [WINNER] if fields == _PAIR else []
    if conflict := next((name for name in conflicting if name in record), None):
        both = " and ".join(map(row.name, fields[:2]))
        problem = f"a field {conflict} next to {row.name(PROMPT) if conflict == SOURCE else both}"
        raise error(f"{problem}: leave out one, or rename it", line=line, code="bad-name")
    used = {*fields, PROMPT}
    (better, turns), (worse, other_turns) = map(row.answer, fields[:2])
    if turns != other_turns:
        names = " and ".join(map(row.name, fields[:2]))
        raise row.error(f"the turns before the last ones of {names} differ: {RECIPES}")
    judgement: dict[str, Any] = {PREFERENCES: [[0, 1]]}
    if fields == _ARENA:
        named = MODEL_A in record or MODEL_B in record
        models = [row.value(MODEL_A), row.value(MODEL_B)] if named else []
        if not {str}.issuperset(map(type, models)):
            raise row.error(f"a model is {abbreviate(models)}: write names of models as texts")
        place = row.preferred(models)
        judgement[PREFERENCES] = [] if place is None else [[place, 1 - place]]
        judgement[TIES] = [[0, 1]] if place is None else []
    for name, (first, second) in row.sides(fields).items():
        better, worse = better | {name: record[first]}, worse | {name: record[second]}
        used |= {first, second}
    if (source := row.source(turns)) is not None:
        judgement[SOURCE] = source
    others_of_row = {name: value for name, value in record.items() if name not in used}
    return {**others_of_row, **judgement, CANDIDATES: [better, worse]}

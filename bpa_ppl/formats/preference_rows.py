"""Rows of preference data sets and of arenas: a prompt, and answers of which some are preferred.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "lm": -1.5}, "rejected": {"text": "cat", "lm": -2}}
    {"prompt": "…", "chosen": ["a cat"], "rejected": ["cat", "dog", "cow"]}
    {"model_a": "X", "model_b": "Y", "winner": "model_a", "conversation_a": […], "score_a": 1.5, …}

Each row becomes a list of candidates, `chosen` or the first model first, with the prompt as its
source and `preferences` [[0, 1]]; of an arena the column `system` has the models, and `ties` has
what is a tie. An answer is a text, an object with a `text` (or `content`) and numbers, which become
features, or a conversation: a list of such objects with a `role`, of which the last one by the
assistant is the answer; later turns are left out, and so are those after the number in `turn`. The
source is the last turn of a user in the prompt. Without a prompt it is the last one before the
answers, if both conversations have the same ones.

Other lists are several answers: each one in `chosen` is preferred to all in `rejected`, which is a
pair for each, or a ranking such as [0, [1, 2, 3]] if several are rejected.

Turns may be those of ShareGPT, `{"from": "human", "value": "…"}`, in which an assistant is `gpt`.
The content of a turn may be a list of parts, whose texts are joined.

A conversation may be a text: `Human: …` and `Assistant: …` after blank lines; or JSON, as in tables
of text: a list of turns. If the prompt and both answers are lists of texts of one length, or JSON
of them, they are the turns of each side.

The answers of an arena may end in other marks (`output_1`, `output_2`), and the names of answers
and winner may be settings of the format. The winner is the name of a model or of an answer, its
mark (`A`, `left`), a number (0 or 1; 1 or 2 where the names of the answers end in these), a tie,
or an order such as `A>>B`; in double brackets also after its reasons: `… [[A]]`. Known columns in
place of `winner` are those of `_WINNERS`.

Numbers and texts called `score_chosen` and `score_rejected`, or `score_a` and `score_b`, are the
column `score`; so are `score.chosen` and `score.rejected` in an object, and the members of lists
with a value for each answer. All other fields of a row become extras of the sentence.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from bpa_ppl._runtime.messages import format_count
from bpa_ppl.errors import DataError
from bpa_ppl.formats.block import (
    CANDIDATES,
    ID,
    JUDGEMENTS,
    PREFERENCES,
    RANKINGS,
    SOURCE,
    TEXT,
    TIES,
)
from bpa_ppl.formats.values import NUMBER, OBJECT, abbreviate, kind_of, looks_numeric, number_or_inf

PROMPT, CHOSEN, REJECTED = "prompt", "chosen", "rejected"
MODEL_A, MODEL_B, WINNER = "model_a", "model_b", "winner"
#: Fields that may have other names in a file.
SETTINGS = (CHOSEN, REJECTED, WINNER)
#: The fields that show such rows.
PAIRS = ((CHOSEN, REJECTED), (MODEL_A, MODEL_B, WINNER))
#: Columns of an arena that are 1 for the answer that won.
_WINS = (f"{WINNER}_{MODEL_A}", f"{WINNER}_{MODEL_B}", f"{WINNER}_tie")
_SYSTEM = "system"
# Other names of the prompt, if it is a text or a conversation.
_PROMPTS = (PROMPT, "instruction", "history", "question", "input", "context", "conversations")
# Who speaks in a turn, and its text: as usual, in ShareGPT, and the parts of a text in Gemini.
_ROLE, _CONTENT, _FROM, _VALUE, _PARTS = "role", "content", "from", "value", "parts"
# Who else speaks; turns without a role are answers.
_USERS = ("user", "human")
_OTHERS = (*_USERS, "system", "developer", "tool", "function")
# Forms of turns: the usual one, and those of ShareGPT and Gemini.
_FORMS = ((_ROLE, _CONTENT), (_FROM, _VALUE), (_ROLE, _PARTS))
# Forms of conversations as JSON texts, which are not answers themselves.
_SPEAKERS = (_ROLE, _FROM)
_ASSISTANTS = ("assistant", "model", "gpt")
_CONTENTS = (_CONTENT, TEXT, _PARTS, _VALUE, "tool_calls")
#: What arenas call the answers; without any of them there are only the names of the models.
ANSWERS = (
    *("conversation", "messages", "response", "answer", "output", "completion", "generation"),
    *("assistant", "reply", "text", "translation", "summary", "candidate", "option", "model"),
)
#: Fields of texts, some of which may look like numbers, as may the answers.
TEXTS = {PROMPT, MODEL_A, MODEL_B, *SETTINGS}
# The marks at the ends of the names of the first and of the second answer.
_MARKS = (("_a", "_b"), ("_A", "_B"), ("_0", "_1"), ("_1", "_2"), ("_left", "_right"), ("1", "2"))
# The winners of data sets that call them otherwise: AlpacaEval, SHP, PKU-SafeRLHF and HelpSteer.
_WINNERS = {
    ("output_1", "output_2"): "preference",
    ("human_ref_A", "human_ref_B"): "labels",
    ("response_0", "response_1"): "better_response_id",
    ("response1", "response2"): "overall_preference",
    ("response_1", "response_2"): "preference_strength",
}
# Other names of the winner, which hold something else in some files.
_JUDGED = ("label", "preference", "preferred", "verdict", "choice", "better", "decision", "labels")
# Numbers below 0 for the first answer, and above 0 for the second one.
_SIGNED = ("overall_preference", "preference_strength")
# Columns whose values name an answer.
_MODELS = (_SYSTEM, "model", "generator", "sys")
_PLACES = {"a": 0, "b": 1, "left": 0, "right": 1, "first": 0, "second": 1}
_TIE = ("tie", "draw", "equal", "same", "both", "neither")
_TIED = 2
_KIND_OF_ANSWER = re.compile(rf"({'|'.join(ANSWERS)})[\s_-]*(?=.)")
# A verdict at the end of its reasons; C is a tie in the prompts of MT-Bench.
_VERDICT = re.compile(r"\[\[\s*(.+?)\s*\]\]")
# A verdict such as A>>B or A=B.
_ORDER = re.compile(r"([^<>=]+?)\s*(>+|<+|=+)\s*([^<>=]+)")
# A list of texts as NumPy prints it.
_PRINTED = re.compile(r"(?=.*\]\s*\Z)\s*\[\s*(['\"]).*\1\s+['\"].*", re.DOTALL)
_BEGUN = re.compile(r"\s*\[\s*\{\s*['\"](role|content|from|value)['\"]\s*:")
_TURN = re.compile(r"(?:^|\n\n)(Human|Assistant): ?")
_Error = Callable[..., DataError]
_Names = Mapping[str, str]
#: The fields of two answers, and of the winner.
Fields = tuple[str, str, str]


def find_answer_fields(names: Collection[str], settings: _Names) -> Fields | None:
    """Return the fields of the two answers of a row, and that of the winner; None for other rows.

    Args:
        names: of the fields of the row.
        settings: names of fields in the file that are others in `names`, by these.

    Returns:
        the field of the winner, or of what is in its place, is empty if the names say which answer
        is preferred.

    >>> find_answer_fields({"prompt", "chosen", "rejected"}, {}), find_answer_fields({"id"}, {})
    (('chosen', 'rejected', ''), None)
    >>> find_answer_fields({"winner", "response_1", "response_2"}, {})
    ('response_1', 'response_2', 'winner')
    """
    if TEXT in names or CANDIDATES in names:
        return None
    if CHOSEN in names or REJECTED in names:
        answers = settings.get(CHOSEN, CHOSEN), settings.get(REJECTED, REJECTED)
        winner = _WINNERS.get(answers, "")
        if WINNER in names and not settings.keys().isdisjoint(SETTINGS):
            winner = WINNER
        return CHOSEN, REJECTED, winner if winner in names else ""
    if (WINNER in names or _WINS[0] in names) and (pair := find_named_answers(names, least=1)):
        return *pair, WINNER
    for pair, winner in _WINNERS.items():
        if all(name in names for name in (*pair, winner)):
            return *pair, winner
    return None


def find_named_answers(names: Collection[str], least: int = 2) -> tuple[str, str] | None:
    """Return the fields of two answers whose names end in marks, as in arenas; None without them.

    Args:
        names: of the fields of a row.
        least: how many of the two must be there.

    >>> find_named_answers(["question", "answer1", "answer2"])
    ('answer1', 'answer2')
    """
    for answer in ANSWERS:
        pairs = [(answer + first, answer + second) for first, second in _MARKS]
        pairs += [(f"model{one}_{answer}", f"model{other}_{answer}") for one, other in _MARKS]
        pair = max(pairs, key=lambda pair: sum(name in names for name in pair))
        if sum(name in names for name in pair) >= least:
            return pair
    return None


def find_third(name: str) -> str:
    """Return the name of a third answer by that of the second one.

    >>> find_third("response_b"), find_third("answer2")
    ('response_c', 'answer3')
    """
    return name[:-1] + chr(ord(name[-1]) + 1)


class _Row:
    """A row with two fields of answers.

    Args:
        record: the row.
        fields: of the two answers and of the winner.
        wrong: makes an error of a message.
        settings: names of fields in the file that are others in the row, by these.

    Attributes:
        judged: the field of the winner; empty if the names say which answer is preferred.
        names: of the fields of the answers in the file.
        judge: that of the winner.
        marks: the parts by which the names of the answers differ.
        places: of the answers, by what a winner may be called.
    """

    def __init__(self, record: Mapping[str, Any], fields: Fields, wrong: _Error, settings: _Names):
        self.record, self.fields, self.judged, self.wrong = record, fields[:2], fields[2], wrong
        *self.names, self.judge = (settings.get(name, name) for name in fields)
        self.marks = _find_marks(*self.names)
        labels = [*enumerate(self.names), *enumerate(self.marks)]
        self.places = _PLACES | {label.lower(): place for place, label in labels}

    def unusable(self, problem: str, advice: str = "correct it", **details: str) -> DataError:
        """Return the error of a row that can be dropped."""
        message = f"{problem}: {advice}, or drop such rows (bad: drop)"
        return self.wrong(message, parameter="bad", **details)


def parse_pair(
    record: Mapping[str, Any], fields: Fields, error: _Error, line: int, settings: _Names
) -> dict[str, Any]:
    """Return a row as a sentence with its answers as candidates.

    Args:
        record: the row.
        fields: of the two answers and of the winner, as from `find_answer_fields`.
        error: makes an error of a message, the line, and a code.
        line: of the row.
        settings: names of fields in the file that are others in the row, by these.

    Raises:
        DataError: if it is not such a row; its parameter is "bad" if the row can be dropped, since
            it has no judgement or no answer.

    >>> row = {"prompt": "Un chat", "chosen": ["a"], "rejected": ["b", "c"]}
    >>> pair = parse_pair(row, find_answer_fields(row, {}), DataError, 1, {})
    >>> pair["source"], pair["rankings"]
    ('Un chat', [[0, [1, 2]]])
    >>> row = {"model_a": "X", "model_b": "Y", "winner": "tie", "score_a": 2, "score_b": 1}
    >>> parse_pair(row, find_answer_fields(row, {}), DataError, 1, {})["candidates"]
    [{'text': 'X', 'system': 'X', 'score': 2}, {'text': 'Y', 'system': 'Y', 'score': 1}]
    """
    row = _Row(record, fields, partial(error, line=line, code="bad-line"), settings)
    models = [MODEL_A, MODEL_B] if row.judged and {MODEL_A, MODEL_B} & record.keys() else []
    _check_names(row, models, settings)
    prompts = (SOURCE if SOURCE in settings else PROMPT, PROMPT)
    texts = (n for n in _PROMPTS[1:] if isinstance(v := record.get(n), str) or _is_conversation(v))
    prompt_field = next((n for n in prompts if n in record), next(texts, PROMPT))
    prompt, sides = _answers_in(row, record.get(prompt_field))
    columns = [{_SYSTEM: record[n]} for n in models] or [{} for side in sides for _ in side]
    used = {*row.fields, *models, prompt_field, *([WINNER] if row.judged == WINNER else [])}
    others = {name: value for name, value in record.items() if name not in used}
    _move_columns(others, columns, list(map(len, sides)), row)
    better, worse = range(len(sides[0])), list(range(len(sides[0]), len(columns)))
    kind, rest = (RANKINGS, worse) if len(worse) > 1 else (PREFERENCES, worse[0])
    judgement: dict[str, Any] = {kind: [[place, rest] for place in better]}
    if row.judged:
        judgement = _judgement(row, columns)
    if prompt is not None:
        judgement[SOURCE] = _answer(_up_to_user(prompt), prompt_field, row)[TEXT]
    elif (source := _find_source([*chain(*sides)])) is not None:
        judgement[SOURCE] = source
    named = [(name, of) for name, side in zip(row.names, sides, strict=True) for of in side]
    answers = zip([_answer(answer, name, row) for name, answer in named], columns, strict=True)
    return {**others, **judgement, CANDIDATES: [answer | column for answer, column in answers]}


def _check_names(row: _Row, models: Sequence[str], settings: _Names) -> None:
    """Check the names of the fields of a row."""
    both = " and ".join(row.names)
    for name in (*row.fields, *models):
        if name not in row.record:
            raise row.unusable(f"no field {settings.get(name, name)}", code="missing-column")
    for name in (*JUDGEMENTS, *([] if SOURCE in settings else [SOURCE])):
        if name in row.record:
            remedy = "rename it"
            if name == SOURCE and PROMPT in row.record:
                remedy += f", or name the prompt in the format: {SOURCE}={PROMPT}"
            elif name == SOURCE:
                remedy += f", or leave it out: exclude={SOURCE} in the format"
            raise row.wrong(f"a field {name} next to {both}: {remedy}", code="bad-name")
    third = find_third(row.names[1])
    if row.judged and third in row.record:
        problem = f"a third answer, {third}, next to {both}: write all as {CANDIDATES}, with "
        raise row.wrong(f"{problem}{PREFERENCES} or {RANKINGS}", code="bad-name")
    _check_labels(row)
    if not row.judged and row.marks[0].lower() in (*_PLACES, "0", "1"):
        problem = f"{both} do not say which is preferred: name the column that does in the format"
        raise row.wrong(f"{problem}, {WINNER}=NAME", code="missing-column", parameter="format")


def _check_labels(row: _Row) -> None:
    """Check that preferred and other answers are texts, not names of answers in other fields."""
    pair = None if row.judged else _find_other_answers(tuple(row.record), row.fields)
    labels = [row.record[name] for name in row.fields]
    if pair is None or not all(isinstance(label, str) for label in labels):
        return
    texts, models = ([row.record.get(n) for n in of] for of in (pair, (MODEL_A, MODEL_B)))
    places = _Row(row.record, (*pair, ""), row.wrong, {}).places
    are_places = {_find_label(label.lower(), places) for label in labels} == {0, 1}
    if (are_places or labels in (models, models[::-1])) and labels not in (texts, texts[::-1]):
        problem = f"{row.names[0]} is {abbreviate(labels[0])}, the name of an answer: name the "
        problem += f"answers in the format, {CHOSEN}={pair[0]},{REJECTED}={pair[1]},{WINNER}="
        raise row.wrong(f"{problem}{row.names[0]}", parameter="format")


@lru_cache
def _find_other_answers(names: tuple[str, ...], fields: tuple[str, str]) -> tuple[str, str] | None:
    """Return the fields of two more answers of a row; None if it has none."""
    return find_named_answers([n for n in names if n not in (*fields, MODEL_A, MODEL_B)])


@lru_cache
def _find_marks(one: str, other: str) -> tuple[str, str]:
    """Return the parts of the names of two answers by which they differ.

    >>> _find_marks("human_ref_A", "human_ref_B"), _find_marks("chosen_text", "rejected_text")
    (('A', 'B'), ('chosen', 'rejected'))
    """
    if one[:-1] == other[:-1]:
        return one[-1], other[-1]
    first, second = re.split("[_-]", one), re.split("[_-]", other)
    mark = "_".join(word for word in first if word not in second)
    return mark or one, "_".join(word for word in second if word not in first) or other


def _move_columns(
    others: dict[str, Any], columns: list[dict[str, Any]], sizes: list[int], row: _Row
) -> None:
    """Move fields with a value for each answer from the other fields of a row to its answers."""
    for name in [n for n, v in others.items() if isinstance(v, dict) and v.keys() == {*row.marks}]:
        others |= {f"{name}_{mark}": value for mark, value in others.pop(name).items()}
    for name in list(others):
        column, other = _column(name, row.marks)
        column = _SYSTEM if row.judged and column == "model" else column
        values = others.get(name)
        if other in others and column not in columns[0]:
            several = [isinstance(row.record[field], list) for field in row.fields]
            both = zip((values, others[other]), several, sizes, strict=True)
            lists = [v if of_each and isinstance(v, list) else [v] * n for v, of_each, n in both]
            values = [*lists[0], *lists[1]]
        elif sum(sizes) == 2 or not isinstance(values, list):
            continue
        elif {kind_of(_only(value)) for value in values} == {NUMBER}:  # of all answers
            column, other, values = name, "", list(map(_only, values))
        is_plain = all(map(_is_plain, values))
        if column and len(values) == len(columns) and is_plain:
            for candidate, value in zip(columns, values, strict=True):
                candidate[column] = value
            others.pop(name)
            others.pop(other, None)


def _only(value: Any) -> Any:
    """Return the only member of a list of one, and any other value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _is_plain(value: Any) -> bool:
    """Return whether a value can be that of a candidate, or is an object of numbers."""
    if isinstance(value, dict):
        return {kind_of(of) for of in value.values() if of is not None} == {NUMBER}
    return value is None or isinstance(value, bool) or kind_of(value) != OBJECT


@lru_cache
def _column(name: str, marks: tuple[str, str]) -> tuple[str, str]:
    """Return the column of a field of the first answer, and the same field of the second one."""
    first, second = marks
    for mark in ("_", "-", *([""] if first.isdigit() or first.isupper() else [])):
        column = name.removesuffix(mark + first)
        if column not in (name, TEXT, ID) and not column.startswith(WINNER):
            return column, column + mark + second
        column = name.removeprefix(first + mark) if len(first) > 1 and mark else name
        if column not in (name, TEXT, ID):
            return column, second + mark + column
    return "", ""


def _judgement(row: _Row, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return which of two answers is preferred, or that none is."""
    winner = row.record.get(row.judged)
    if row.judged not in row.record:  # a column for each answer
        won = [name for name in _WINS if str(row.record.get(name)) in ("1", "1.0", "True")]
        winner = won[0].removeprefix(f"{WINNER}_") if len(won) == 1 else None
    place = _place(winner, row, columns)
    if place is not None:
        preferences = [[place, 1 - place]] if place != _TIED else []
        return {PREFERENCES: preferences, TIES: [] if preferences else [[0, 1]]}
    labels = (MODEL_A, MODEL_B) if MODEL_A in row.record else row.names
    problem, advice = f"{row.judge} is {abbreviate(winner)}", f"write {', '.join(labels)} or tie"
    if isinstance(winner, bool) or math.isfinite(_number(winner)):
        raise row.wrong(f"{problem}: {advice}")
    raise row.unusable(problem, advice)


def _place(winner: Any, row: _Row, columns: list[dict[str, Any]]) -> int | None:
    """Return the place of the preferred answer, 2 for a tie, or None if it is not known."""
    winner = _only(winner)
    winner = winner.get("selected") if isinstance(winner, dict) else winner  # of Label Studio
    if isinstance(winner, str):
        named = [winner in map(of.get, _MODELS) for of in columns]
        if any(named):
            return None if all(named) else named.index(True)
        verdicts = {*_VERDICT.findall(winner)}
        label = verdicts.pop() if len(verdicts) == 1 else winner.strip(" \n[]()*")
        place = _TIED if label == "C" != winner else _find_label(label.lower(), row.places)
        if place is not None:
            return place
        winner = label
    if row.judge in _SIGNED and math.isfinite(number := _number(winner)):
        return _TIED if number == 0 else int(number > 0)
    low = int(row.marks == ("1", "2"))
    number = _number(winner) - low
    if number == 0.5 or (number == -1 and row.names == ["output_1", "output_2"]):
        return _TIED
    if low and 0 < number < 1:  # an expected preference
        return int(number > 0.5)
    number = 1 - number if row.judge == "labels" else number  # of SHP: 1 is the first answer
    return int(number) if number in (0, 1) else None


def _find_label(label: str, places: Mapping[str, int]) -> int | None:
    """Return the place of an answer by its mark or name, or by an order of both, such as a>b."""
    mark = label if label in places else _KIND_OF_ANSWER.sub("", label, count=1)
    if mark in places or label.startswith(_TIE):
        return places.get(mark, _TIED)
    if order := _ORDER.fullmatch(label):
        one, other = (_find_label(order[group], places) for group in (1, 3))
        if {one, other} == {0, 1}:
            return _TIED if "=" in order[2] else one if ">" in order[2] else other
    return None


def _number(value: Any) -> float:
    """Return a number, also one that a text prints; infinity for anything else."""
    number = float(value) if isinstance(value, str) and looks_numeric(value) else value
    return number_or_inf(number)


def _answers_in(row: _Row, prompt: Any) -> tuple[Any, list[list[Any]]]:
    """Return the prompt, and the answers in each of the two fields, without later turns."""
    values = [row.record[name] for name in row.fields]
    lists = lists_in([prompt, *values])
    if lists is not None and len(set(map(len, lists))) == 1:
        (prompt,), *sides = [[[{_CONTENT: text} for text in texts]] for texts in lists]
        prompt = _up_to_answer(prompt, PROMPT, row)
    else:
        prompt = _conversation(prompt, row)
        answers = [[value] if _is_answer(value) else value for value in values]
        sides = [[_conversation(answer, row) for answer in side] for side in answers]
    for name, value, side in zip(row.names, values, sides, strict=True):
        if row.judged and len(side) > 1:
            problem = (
                f"{name} is {abbreviate(value)}, {len(side)} answers: write one text, or turns "
            )
            raise row.wrong(f"{problem}with a {_ROLE} and a {_CONTENT}")
        if not side:
            raise row.unusable(f"{name} is [], no answer")
        side[:] = [_up_to_answer(answer, name, row) for answer in side]
    return prompt, sides


def _is_answer(turns: Any) -> bool:
    """Return whether a value is one answer: no list, turns with roles, or the parts of a text."""
    if not isinstance(turns, list):
        return True
    fields: list[Collection[str]] = [turn if isinstance(turn, dict) else () for turn in turns]
    parts = bool(fields) and all("type" in of for of in fields)
    return parts or any(not set(_SPEAKERS).isdisjoint(of) for of in fields)


def _conversation(answer: Any, row: _Row) -> Any:
    """Return an answer, or a prompt, in which a text of several turns is a conversation."""
    if isinstance(answer, dict) and isinstance(answer.get("messages"), list):
        numbers = {name: of for name, of in answer.items() if kind_of(of) == NUMBER}
        answer = [{**numbers, **of} if isinstance(of, dict) else of for of in answer["messages"]]
    if isinstance(answer, list):
        turns = list(map(_turn, answer))
        with_roles = any(isinstance(turn, dict) and _ROLE in turn for turn in turns)
        return turns if with_roles or not _is_answer(turns) else _join(answer)
    if not isinstance(answer, str):
        return _turn(answer)
    if answer.lstrip()[:1] in {"[", "{"}:
        parsed = _parse(answer) if any(key in answer for key in _SPEAKERS) else None
        if _is_conversation(parsed):
            return _conversation(parsed, row)
        names = any(of in answer and text in answer for of, text in _FORMS)
        if (names and _BEGUN.match(answer)) or _PRINTED.fullmatch(answer):
            what = f"a {'conversation' if names else 'list of texts'}, {abbreviate(answer)}"
            raise row.wrong(f"{what}, that is not JSON: write it by json.dumps")
    if re.match(r'\s*"\[\s*\{\s*""', answer):
        problem = "a conversation in a cell that is quoted: read the file as tsv:quoted=true"
        raise row.wrong(problem, parameter="format")
    before, *parts = _TURN.split(answer)
    if len(parts) < 4 or before.strip() or "Assistant" not in parts[::2]:
        return answer
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [{_ROLE: who.lower(), _CONTENT: text} for who, text in pairs]


def _turn(turn: Any) -> Any:
    """Return a turn of a conversation with the usual names of its fields, and any other value."""
    if not isinstance(turn, dict):
        return turn
    for form in _FORMS:
        if _CONTENT not in turn and {*form} <= turn.keys():
            names = dict(zip(form, (_ROLE, _CONTENT), strict=True))
            turn = {names.get(name, name): value for name, value in turn.items()}
    if isinstance(turn.get(_CONTENT), list):
        turn = turn | {_CONTENT: _join(turn[_CONTENT])}
    return turn | {_ROLE: turn[_ROLE].lower()} if isinstance(turn.get(_ROLE), str) else turn


def _join(parts: list[Any]) -> str | None:
    """Return the texts of the parts of a text as one, or None if no part has a text."""
    values = [part.get(TEXT) if isinstance(part, dict) else part for part in parts]
    texts = [value for value in values if isinstance(value, str)]
    return "".join(texts) if texts else None


def _parse(text: str) -> Any:
    """Return the value of a JSON text or a Python literal; None for other texts."""
    for parse in () if _PRINTED.fullmatch(text) else (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return parse(text)
    return None


def lists_in(texts: Sequence[Any]) -> list[list[str | None]] | None:
    """Return lists of texts, or those that texts print; None unless all are such lists.

    >>> lists_in(["['a']", '["b", "c"]']), lists_in(["['a']", "b"])
    ([['a'], ['b', 'c']], None)
    """
    if not all(t.lstrip()[:1] == "[" if isinstance(t, str) else isinstance(t, list) for t in texts):
        return None
    lists = [_parse(text) if isinstance(text, str) else text for text in texts]
    usual = {str, type(None)}
    are_lists = all(isinstance(of, list) and of and usual.issuperset(map(type, of)) for of in lists)
    return lists if are_lists else None


def _is_conversation(turns: Any) -> bool:
    """Return whether a value is a list of turns, in any of their forms, or an object with one."""
    if isinstance(turns, dict):
        return _speaker(turns) in _ASSISTANTS or _is_conversation(turns.get("messages"))
    return _has_turns(turns) and all({_ROLE, _CONTENT} <= t.keys() or _speaker(t) for t in turns)


def _speaker(turn: Mapping[str, Any]) -> str | None:
    """Return who speaks in a turn; None if it has no such field, or nobody who is known."""
    names = [turn[key] for key in _SPEAKERS if isinstance(turn.get(key), str)]
    is_turn = bool(names) and not turn.keys().isdisjoint(_CONTENTS)
    return names[0].lower() if is_turn and names[0].lower() in (*_OTHERS, *_ASSISTANTS) else None


def _up_to_answer(answer: Any, name: str, row: _Row) -> Any:
    """Return a conversation without the turns after the answer: of the judged turn, or the last."""
    if not _has_turns(answer):
        return answer
    places = [n for n, turn in enumerate(answer) if turn.get(_ROLE) not in _OTHERS]
    if not places:
        problem = f"{name} has no turn of the assistant, which is the answer: leave out the row"
        raise row.wrong(problem)
    turn = _number(row.record.get("turn"))
    if math.isfinite(turn) and turn not in range(1, len(places) + 1):
        problem = f"turn is {turn:g}, but {name} has {format_count(len(places), 'answer')}: count "
        raise row.wrong(f"{problem}turns from 1, or leave it out: exclude=turn in the format")
    return answer[: places[int(turn) - 1 if math.isfinite(turn) else -1] + 1]


def _up_to_user(prompt: Any) -> Any:
    """Return a prompt without the turns after the last one of a user, if it has any."""
    if not _has_turns(prompt):
        return prompt
    places = [n for n, turn in enumerate(prompt, 1) if turn.get(_ROLE) in _USERS]
    return prompt[: places[-1]] if places else prompt


def _has_turns(answer: Any) -> bool:
    return isinstance(answer, list) and {*map(type, answer)} == {dict}


def _find_source(answers: list[Any]) -> str | None:
    """Return the last message before the answers, if both conversations have the same ones."""
    before = [turns[:-1] for turns in answers if _has_turns(turns)]
    given = [[t.get(_CONTENT) for t in of if t.get(_ROLE) in (None, *_OTHERS)] for of in before]
    if len(given) < 2 or any(of != given[0] for of in given):
        return None
    texts = [turn.get(_CONTENT) for turn in before[0] if turn.get(_ROLE) in (None, *_USERS)]
    return texts[-1] if texts and isinstance(texts[-1], str) else None


def _answer(answer: Any, name: str, row: _Row) -> dict[str, Any]:
    """Return an answer as a candidate: its text, and its other fields."""
    is_one = isinstance(answer, list) and len(answer) == 1
    last = answer[-1] if is_one or _has_turns(answer) else answer
    if isinstance(last, str):
        return {TEXT: last}
    fields: Mapping[str, Any] = last if isinstance(last, dict) else {}
    key = TEXT if TEXT in fields else _CONTENT
    if not isinstance(fields.get(key), str):
        rule = f"not a text, or an object with a {TEXT} or {_CONTENT}: write turns with a {_ROLE} "
        if last is None or fields.get(key, "") is None:
            raise row.unusable(f"{name} is {abbreviate(answer)}, no answer")
        raise row.wrong(f"{name} is {abbreviate(answer)}, {rule}and a {_CONTENT}")
    return {TEXT: fields[key], **{n: v for n, v in fields.items() if n not in (key, _ROLE)}}

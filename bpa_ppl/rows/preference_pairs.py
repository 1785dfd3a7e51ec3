"""Rows of preference data sets and of arenas: a prompt, and two answers of which one is preferred.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "lm": -1.5}, "rejected": {"text": "cat", "lm": -2}}
    {"model_a": "X", "model_b": "Y", "winner": "model_a", "conversation_a": […], "score_a": 1.5, …}

Each row becomes a list of two candidates, `chosen` or the first model first, with the prompt as its
source and `preferences` [[0, 1]]; of an arena the column `system` has the models, and `ties` has
what is a tie. An answer is a text, an object with a `text` (or `content`) and numbers, which become
features, or a conversation: a list of such objects, of which the last is the answer. The source is
the last turn of the prompt. Without a prompt it is the last turn of others, if both conversations
have the same ones; texts may have turns too, as `Human: …` and `Assistant: …` after blank lines.

Numbers and texts called `score_chosen` and `score_rejected`, or `score_a` and `score_b`, are the
column `score`. All other fields of a row become extras of the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bpa_ppl.errors import DataError
from bpa_ppl.rows.names import CANDIDATES, ID, SOURCE, TEXT
from bpa_ppl.rows.schema import OBJECT, kind_of, shown

PROMPT, CHOSEN, REJECTED = "prompt", "chosen", "rejected"
MODEL_A, MODEL_B, WINNER = "model_a", "model_b", "winner"
_PREFERENCES, _TIES, _SYSTEM = "preferences", "ties", "system"
#: What conversations call the text of a turn, and who speaks.
_CONTENT, _ROLE, _ASSISTANT = "content", "role", "assistant"
#: What arenas call the answers; without any of them there are only the names of the models.
ANSWERS = ("conversation", "response", "answer", "output", "completion", "model")
#: Suffixes and prefixes of the fields of the first and of the second answer.
_ENDINGS = (("_chosen", "_rejected"), ("-chosen", "-rejected"))
_BEGINNINGS = (("chosen_", "rejected_"), ("chosen-", "rejected-"))
_TURN = re.compile(r"(?:^|\n\n)(Human|Assistant): ?")
_Error = Callable[..., DataError]


def is_pair(names: Collection[str]) -> bool:
    """Return whether a row with these fields has two answers.

    >>> is_pair({"prompt", "chosen"}), is_pair({"id", "text"})
    (True, False)
    """
    arena = WINNER in names and (MODEL_A in names or MODEL_B in names)
    pair = CHOSEN in names or REJECTED in names or arena
    return pair and TEXT not in names and CANDIDATES not in names


def pair_of(record: Mapping[str, Any], error: _Error, line: int) -> dict[str, Any]:
    """Return a row as a sentence with two candidates.

    Args:
        record: the row.
        error: makes an error of a message, the line, and a code.
        line: of the row.

    Raises:
        DataError: if it is not such a pair.

    >>> pair_of({"prompt": "Un chat", "chosen": "a cat", "rejected": "cat"}, DataError, 1)["source"]
    'Un chat'
    >>> row = {"model_a": "X", "model_b": "Y", "winner": "tie", "score_a": 2, "score_b": 1}
    >>> pair_of(row, DataError, 1)["candidates"]
    [{'text': 'X', 'system': 'X', 'score': 2}, {'text': 'Y', 'system': 'Y', 'score': 1}]
    """
    arena = WINNER in record and CHOSEN not in record
    fields = {name: value for name, value in record.items() if name != PROMPT}
    names = [CHOSEN, REJECTED]
    if arena:
        name = next((name for name in ANSWERS if f"{name}_a" in record), ANSWERS[-1])
        names = [f"{name}_a", f"{name}_b"]
    for name in (*names, MODEL_A, MODEL_B) if arena else names:
        if name not in record:
            raise error(f"no field {name}", line, code="missing-column")
    for name in (SOURCE, _PREFERENCES, *([_TIES] if arena else ())):
        if name in record:
            problem = f"a field {name} next to {' and '.join(names)}: rename it"
            raise error(problem, line, code="bad-name")
    judgement: dict[str, Any] = {_PREFERENCES: [[0, 1]]}
    candidates: list[dict[str, Any]] = [{}, {}]
    if arena:
        judgement = _judgement(fields.pop(WINNER), error, line)
        candidates = [{_SYSTEM: fields[name]} for name in (MODEL_A, MODEL_B)]
    answers = [_conversation(record[name]) for name in names]
    used = {*names, MODEL_A, MODEL_B} if arena else set(names)
    fields = {name: value for name, value in fields.items() if name not in used}
    for name in list(fields):
        column, other = _column(name, arena)
        if other in fields and all(_is_plain(fields[one]) for one in (name, other)):
            for candidate, one in zip(candidates, (name, other), strict=True):
                candidate[column] = fields.pop(one)
    if record.get(PROMPT) is not None:
        judgement[SOURCE] = _answer(record[PROMPT], PROMPT, error, line)[TEXT]
    elif (source := _shared_source(answers)) is not None:
        judgement[SOURCE] = source
    for place, name in enumerate(names):
        candidates[place] = _answer(answers[place], name, error, line) | candidates[place]
    return {**fields, **judgement, CANDIDATES: candidates}


def _column(name: str, arena: bool) -> tuple[str, str]:
    """Return the column of a field of the first answer, and the same field of the second one."""
    for first, second in (("_a", "_b"),) if arena else _ENDINGS:
        column = name.removesuffix(first)
        if column != name and not column.startswith(WINNER) and column not in (TEXT, ID, _SYSTEM):
            return column, column + second
    for first, second in () if arena else _BEGINNINGS:
        column = name.removeprefix(first)
        if column not in (name, TEXT, ID):
            return column, second + column
    return "", ""


def _is_plain(value: Any) -> bool:
    return value is None or kind_of(value) != OBJECT


def _judgement(winner: Any, error: _Error, line: int) -> dict[str, Any]:
    """Return which answer of an arena is preferred, or that none is."""
    if winner in (MODEL_A, MODEL_B):
        return {_PREFERENCES: [[0, 1] if winner == MODEL_A else [1, 0]], _TIES: []}
    if isinstance(winner, str) and winner.split()[:1] in (["tie"], ["both_bad"], ["bothbad"]):
        return {_PREFERENCES: [], _TIES: [[0, 1]]}
    problem = f"{WINNER} is {shown(winner)}, not {MODEL_A}, {MODEL_B} or tie: correct it"
    raise error(problem, line, code="bad-line")


def _conversation(answer: Any) -> Any:
    """Return an answer, in which a text with turns of both sides is a conversation."""
    parts = _TURN.split(answer) if isinstance(answer, str) else ()
    if len(parts) < 5 or parts[0].strip() or parts[-2] != "Assistant":
        return answer
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [
        {_ROLE: "user" if who == "Human" else _ASSISTANT, _CONTENT: text} for who, text in pairs
    ]


def _shared_source(answers: list[Any]) -> str | None:
    """Return the last message before the answers, if both conversations have the same ones."""
    messages = [
        [turn.get(_CONTENT) for turn in turns[:-1] if turn.get(_ROLE) != _ASSISTANT]
        for turns in answers
        if isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns)
    ]
    shared = len(messages) == 2 and messages[0] == messages[1] and messages[0]
    return messages[0][-1] if shared and isinstance(messages[0][-1], str) else None


def _answer(answer: Any, name: str, error: _Error, line: int) -> dict[str, Any]:
    """Return an answer as a candidate: its text, and its other fields."""
    last = answer[-1] if isinstance(answer, list) and answer else answer
    if isinstance(last, str):
        return {TEXT: last}
    fields: Mapping[str, Any] = last if isinstance(last, dict) else {}
    key = TEXT if TEXT in fields else _CONTENT
    if not isinstance(fields.get(key), str):
        rule = f"not a text, or an object with a {TEXT} or {_CONTENT}"
        raise error(f"{name} is {shown(answer)}, {rule}", line, code="bad-line")
    return {TEXT: fields[key], **{n: v for n, v in fields.items() if n not in (key, _ROLE)}}

"""Rows of preference data sets and of arenas: a prompt, and two answers of which one is preferred.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "lm": -1.5}, "rejected": {"text": "cat", "lm": -2}}
    {"model_a": "X", "model_b": "Y", "winner": "model_a", "conversation_a": […], "score_a": 1.5, …}

Each row becomes a list of two candidates, `chosen` or the first model first, with the prompt as its
source and `preferences` [[0, 1]]; of an arena the column `system` has the models, and `ties` has
what is a tie. An answer is a text, an object with a `text` (or `content`) and numbers, which become
features, or a conversation: a list of such objects, of which the last one by the assistant is the
answer; later turns are left out. The source is the last turn of a user in the prompt. Without a
prompt it is the last one before the answers, if both conversations have the same ones.

Turns may be those of ShareGPT, `{"from": "human", "value": "…"}`, in which an assistant is `gpt`.

A conversation may be a text: `Human: …` and `Assistant: …` after blank lines; or JSON, as in tables
of text: a list of turns; or lists of texts, if the prompt and both answers are such lists of one
length, as the turns of each side. Conversations of other forms (`parts`, `messages`) are
refused, never a candidate.

Numbers and texts called `score_chosen` and `score_rejected`, or `score_a` and `score_b`, are the
column `score`. All other fields of a row become extras of the sentence.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bpa_ppl.errors import DataError
from bpa_ppl.formats.block import CANDIDATES, ID, SOURCE, TEXT
from bpa_ppl.formats.values import OBJECT, kind_of, shown

PROMPT, CHOSEN, REJECTED = "prompt", "chosen", "rejected"
MODEL_A, MODEL_B, WINNER = "model_a", "model_b", "winner"
_PREFERENCES, _TIES, _SYSTEM = "preferences", "ties", "system"
#: What conversations call the text of a turn, and who speaks.
_CONTENT, _ROLE, _ASSISTANT = "content", "role", "assistant"
# The same in ShareGPT.
_VALUE, _FROM = "value", "from"
# Who else speaks; turns without a role are answers.
_OTHERS = ("user", "human", "system", "developer", "tool", "function")
_USERS = ("user", "human")
# Forms of conversations as texts of JSON, which are no answers themselves.
_SPEAKERS = (_ROLE, _FROM)
_ASSISTANTS = (_ASSISTANT, "model", "gpt")
_CONTENTS = (_CONTENT, TEXT, "parts", _VALUE, "tool_calls")
#: What arenas call the answers; without any of them there are only the names of the models.
ANSWERS = ("conversation", "response", "answer", "output", "completion", "model")
#: Suffixes and prefixes of the fields of the first and of the second answer.
_ENDINGS = (("_chosen", "_rejected"), ("-chosen", "-rejected"))
_BEGINNINGS = (("chosen_", "rejected_"), ("chosen-", "rejected-"))
_NAMES = ((_ROLE, _CONTENT), (_FROM, _VALUE))
_BEGUN = re.compile(r"\s*\[\s*\{\s*['\"](role|content|from|value)['\"]\s*:")
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
    texts = [record.get(PROMPT), *(record[name] for name in names)]
    if (lists := _lists_of_texts(texts)) is None:
        prompt, *answers = (_conversation(one, error, line) for one in texts)
    else:
        prompt, *answers = lists
    used = {*names, MODEL_A, MODEL_B} if arena else set(names)
    fields = {name: value for name, value in fields.items() if name not in used}
    for name in list(fields):
        column, other = _column(name, arena)
        if other in fields and all(_is_plain(fields[one]) for one in (name, other)):
            for candidate, one in zip(candidates, (name, other), strict=True):
                candidate[column] = fields.pop(one)
    answers = [_up_to_answer(of, n, error, line) for of, n in zip(answers, names, strict=True)]
    if prompt is not None:
        judgement[SOURCE] = _answer(_up_to_user(prompt), PROMPT, error, line)[TEXT]
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


def _conversation(answer: Any, error: _Error, line: int) -> Any:
    """Return an answer, or a prompt, in which a text of several turns is a conversation."""
    if not isinstance(answer, str):
        return list(map(_turn, answer)) if isinstance(answer, list) else _turn(answer)
    if answer.lstrip()[:1] in ("[", "{") and any(key in answer for key in _SPEAKERS):
        parsed = _parsed(answer)
        turns = list(map(_turn, parsed)) if isinstance(parsed, list) else _turn(parsed)
        if _is_conversation(turns):
            return turns
        names = any(of in answer and text in answer for of, text in _NAMES)
        if names and _BEGUN.match(answer):
            problem = f"a conversation, {shown(answer)}, that is not JSON: write it by json.dumps"
            raise error(problem, line, code="bad-line")
    if re.match(r'\s*"\[\s*\{\s*""', answer):
        problem = "a conversation in a cell that is quoted: read the file as tsv:quoted=true"
        raise error(problem, line, code="bad-line", parameter="format")
    parts = _TURN.split(answer)
    if len(parts) < 5 or parts[0].strip() or "Assistant" not in parts[1::2]:
        return answer
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return [
        {_ROLE: "user" if who == "Human" else _ASSISTANT, _CONTENT: text} for who, text in pairs
    ]


def _turn(turn: Any) -> Any:
    """Return a turn of ShareGPT with the usual names of its fields, and any other value."""
    if not isinstance(turn, dict) or not {_FROM, _VALUE} <= turn.keys() or _CONTENT in turn:
        return turn
    others = {name: value for name, value in turn.items() if name not in (_FROM, _VALUE)}
    return {_ROLE: turn[_FROM], _CONTENT: turn[_VALUE], **others}


def _parsed(text: str) -> Any:
    """Return the value that a text of JSON, or a literal of Python, has; None for other texts."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


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


def _lists_of_texts(texts: Sequence[Any]) -> list[list[str]] | None:
    """Return the turns of each side, if a prompt and both answers are such lists as JSON."""
    if not all(isinstance(text, str) and text.lstrip()[:1] == "[" for text in texts):
        return None
    lists = list(map(_parsed, texts))
    if not all(isinstance(turns, list) and turns for turns in lists):
        return None
    kinds = {type(turn) for turns in lists for turn in turns}
    return lists if len(set(map(len, lists))) == 1 and kinds <= {str, type(None)} else None


def _up_to_answer(answer: Any, name: str, error: _Error, line: int) -> Any:
    """Return a conversation without the turns after the last one by the assistant."""
    if not _has_turns(answer):
        return answer
    places = [n for n, turn in enumerate(answer) if _role(turn) not in _OTHERS]
    if not places:
        problem = f"{name} has no turn of the assistant, which is the answer: leave out the row"
        raise error(problem, line, code="bad-line")
    return answer[: places[-1] + 1]


def _up_to_user(prompt: Any) -> Any:
    """Return a prompt without the turns after the last one of a user, if it has any."""
    places = [n for n, t in enumerate(prompt) if _role(t) in _USERS] if _has_turns(prompt) else []
    return prompt[: places[-1] + 1] if places else prompt


def _role(turn: Mapping[str, Any]) -> str | None:
    role = turn.get(_ROLE)
    return role.lower() if isinstance(role, str) else None


def _has_turns(answer: Any) -> bool:
    is_list = isinstance(answer, list) and len(answer) > 0
    return is_list and all(isinstance(turn, dict) for turn in answer)


def _shared_source(answers: list[Any]) -> str | None:
    """Return the last message before the answers, if both conversations have the same ones."""
    before = [turns[:-1] for turns in answers if _has_turns(turns)]
    messages = [
        [turn.get(_CONTENT) for turn in turns if _role(turn) in (None, *_OTHERS)]
        for turns in before
    ]
    if len(messages) < 2 or messages[0] != messages[1]:
        return None
    texts = [turn.get(_CONTENT) for turn in before[0] if _role(turn) in (None, *_USERS)]
    return texts[-1] if texts and isinstance(texts[-1], str) else None


def _answer(answer: Any, name: str, error: _Error, line: int) -> dict[str, Any]:
    """Return an answer as a candidate: its text, and its other fields."""
    last = answer[-1] if isinstance(answer, list) and answer else answer
    if isinstance(last, str):
        return {TEXT: last}
    fields: Mapping[str, Any] = last if isinstance(last, dict) else {}
    key = TEXT if TEXT in fields else _CONTENT
    if not isinstance(fields.get(key), str):
        rule = f"not a text, or an object with a {TEXT} or {_CONTENT}: write turns with a {_ROLE} "
        rule += f"and a {_CONTENT}"
        raise error(f"{name} is {shown(answer)}, {rule}", line, code="bad-line")
    return {TEXT: fields[key], **{n: v for n, v in fields.items() if n not in (key, _ROLE)}}

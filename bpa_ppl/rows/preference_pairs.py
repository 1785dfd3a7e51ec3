"""Rows of preference data sets: a prompt, the chosen answer and the rejected one.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "lm": -1.5}, "rejected": {"text": "cat", "lm": -2}}

Each row becomes a list of two candidates, `chosen` first, with the prompt as its source and
`preferences` [[0, 1]]. An answer is a text, an object with a `text` (or `content`) and numbers,
which become features, or a conversation: a list of such objects, of which the last is the answer;
the turns before it, if both conversations have the same, are the prompt of a row without one. The
last turn of a prompt is the source. All other fields of a row become extras of the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bpa_ppl.errors import DataError
from bpa_ppl.rows.names import CANDIDATES, SOURCE, TEXT
from bpa_ppl.rows.schema import shown

PROMPT, CHOSEN, REJECTED = "prompt", "chosen", "rejected"
_PREFERENCES = "preferences"
#: What conversations call the text of a turn, and who speaks.
_CONTENT, _ROLE = "content", "role"
_Error = Callable[..., DataError]


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
    """
    for name in (CHOSEN, REJECTED):
        if name not in record:
            raise error(f"no field {name}", line, code="missing-column")
    for name in (SOURCE, _PREFERENCES):
        if name in record:
            problem = f"a field {name} next to {CHOSEN} and {REJECTED}: rename it"
            raise error(problem, line, code="bad-name")
    more = {n: v for n, v in record.items() if n not in (PROMPT, CHOSEN, REJECTED)}
    prompt, chosen, rejected = record.get(PROMPT), record[CHOSEN], record[REJECTED]
    conversations = isinstance(chosen, list) and isinstance(rejected, list)
    if prompt is None and conversations and chosen[:-1] == rejected[:-1]:
        prompt = chosen[:-1] or None
    if prompt is not None:
        more[SOURCE] = _answer(prompt, PROMPT, error, line)[TEXT]
    answers = [_answer(record[name], name, error, line) for name in (CHOSEN, REJECTED)]
    return {**more, _PREFERENCES: [[0, 1]], CANDIDATES: answers}


def _answer(given: Any, name: str, error: _Error, line: int) -> dict[str, Any]:
    """Return an answer as a candidate: its text, and its other fields."""
    last = given[-1] if isinstance(given, list) and given else given
    if isinstance(last, str):
        return {TEXT: last}
    fields: Mapping[str, Any] = last if isinstance(last, dict) else {}
    key = TEXT if TEXT in fields else _CONTENT
    if not isinstance(fields.get(key), str):
        rule = f"not a text, or an object with a {TEXT} or {_CONTENT}"
        raise error(f"{name} is {shown(given)}, {rule}", line, code="bad-line")
    return {TEXT: fields[key], **{n: v for n, v in fields.items() if n not in (key, _ROLE)}}

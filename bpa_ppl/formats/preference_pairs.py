"""JSON lines of preference data sets: a prompt, the chosen answer and the rejected one.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "lm": -1.5}, "rejected": {"text": "cat", "lm": -2}}

Each line becomes a list of two candidates, `chosen` first, with the prompt as its source and
`preferences` [[0, 1]]. An answer is a text, an object with a `text` (or `content`) and numbers,
which become features, or a conversation: a list of such objects, of which the last is the answer.
All other fields of a line become extras of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, TextIO

from bpa_ppl.errors import UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.jsonl import json_keys, json_rows
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import CANDIDATES, SOURCE, TEXT
from bpa_ppl.rows.schema import shown

_PROMPT, _CHOSEN, _REJECTED = "prompt", "chosen", "rejected"
_PREFERENCES = "preferences"
#: What conversations call the text of a turn, and who speaks.
_CONTENT, _ROLE = "content", "role"


class PreferencePairs(NBestFormat, frozen=True):
    """Pairs of a chosen and a rejected answer."""

    forms: ClassVar[tuple[tuple[str, ...], ...]] = ((_CHOSEN, _REJECTED),)

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line is an object with a chosen and a rejected answer.

        >>> PreferencePairs().detect(b'{"prompt": "hi", "chosen": "hello", "rejected": "no"}')
        True
        >>> PreferencePairs().detect(b'{"id": 0, "candidates": []}')
        False
        """
        return {_CHOSEN, _REJECTED} <= json_keys(first_line)

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file, line and field, if a line is not such a pair.

        >>> line = b'{"chosen": {"text": "a", "lm": 2}, "rejected": {"text": "b", "lm": 1}}\n'
        >>> rows = next(PreferencePairs().parse([line], ReadOptions("pairs.jsonl")))
        >>> rows.strings, rows.names, rows.features.tolist()
        (['a', 'b'], ('lm',), [[2.0], [1.0]])
        """
        return json_rows(blocks, options, lambda record, line: _sentence(record, options, line))

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Raise an error: lists of other sizes do not fit into pairs.

        Raises:
            UsageError: always.
        """
        problem = "lists cannot be written as preference pairs: write jsonl"
        raise UsageError(problem, parameter="format", code="not-supported")


def _sentence(record: Any, options: ReadOptions, line: int) -> dict[str, Any]:
    """Return a line as a sentence with two candidates."""
    if not isinstance(record, dict):
        raise options.error(f"{shown(record)} is not an object with fields", line)
    for name in (_CHOSEN, _REJECTED):
        if name not in record:
            raise options.error(f"no field {name}", line, "missing-column")
    for name in (SOURCE, CANDIDATES, _PREFERENCES):
        if name in record:
            problem = f"a field {name} next to {_CHOSEN} and {_REJECTED}: rename it"
            raise options.error(problem, line, "bad-name")
    more = {n: v for n, v in record.items() if n not in (_PROMPT, _CHOSEN, _REJECTED)}
    if _PROMPT in record:
        more[SOURCE] = _answer(record[_PROMPT], _PROMPT, options, line)[TEXT]
    answers = [_answer(record[name], name, options, line) for name in (_CHOSEN, _REJECTED)]
    return {**more, _PREFERENCES: [[0, 1]], CANDIDATES: answers}


def _answer(given: Any, name: str, options: ReadOptions, line: int) -> dict[str, Any]:
    """Return an answer as a candidate: its text, and its other fields."""
    last = given[-1] if isinstance(given, list) and given else given
    if isinstance(last, str):
        return {TEXT: last}
    fields: Mapping[str, Any] = last if isinstance(last, dict) else {}
    key = TEXT if TEXT in fields else _CONTENT
    if not isinstance(fields.get(key), str):
        rule = f"not a text, or an object with a {TEXT} or {_CONTENT}"
        raise options.error(f"{name} is {shown(given)}, {rule}", line)
    return {TEXT: fields[key], **{n: v for n, v in fields.items() if n not in (key, _ROLE)}}

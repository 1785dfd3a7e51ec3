"""JSON lines of preference data sets: a prompt, the answer that was chosen, the one rejected.

    {"prompt": "…", "chosen": "a cat", "rejected": "cat"}
    {"prompt": "…", "chosen": {"text": "a cat", "lm": -1.5}, "rejected": {"text": "cat", "lm": -2}}

Each line becomes a list of two candidates, `chosen` first, with the prompt as its source and
`preferences` [[0, 1]]. An answer is a text, an object with a `text` (or `content`) and numbers,
which become features, or a conversation, a list of such objects, of which the last one counts. All
other fields of a line are kept as extras of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

import msgspec

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.json_blocks import strict_json
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import CANDIDATES, SOURCE, TEXT
from bpa_ppl.rows.records import RecordReader, shown

_PROMPT, _CHOSEN, _REJECTED = "prompt", "chosen", "rejected"
_PREFERENCES = "preferences"
#: What conversations call the text of a turn, and who speaks.
_CONTENT, _ROLE = "content", "role"


class PreferencePairs(NBestFormat, frozen=True):
    """Pairs of answers, of which one was chosen."""

    def detect(self, first_line: bytes) -> bool:
        """Say whether the first line is an object with an answer chosen and one rejected.

        >>> PreferencePairs().detect(b'{"prompt": "hi", "chosen": "hello", "rejected": "no"}')
        True
        >>> PreferencePairs().detect(b'{"id": 0, "candidates": []}')
        False
        """
        if not first_line.lstrip().startswith(b"{"):
            return False
        try:
            keys = msgspec.json.decode(first_line, type=dict[str, msgspec.Raw]).keys()
        except (ValueError, RecursionError):
            return b'"chosen"' in first_line and b'"rejected"' in first_line
        return {_CHOSEN, _REJECTED} <= keys

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file, line and field, if a line is not as the first one is, or not as
                it should be.

        >>> line = b'{"chosen": {"text": "a", "lm": 2}, "rejected": {"text": "b", "lm": 1}}\n'
        >>> rows = next(PreferencePairs().parse([line], ReadOptions("pairs.jsonl")))
        >>> rows.strings, rows.names, rows.features.tolist()
        (('a', 'b'), ('lm',), [[2.0], [1.0]])
        """
        reader = RecordReader(options.origin, options.bad, options.first_id)
        first = 1
        for block in blocks:
            lines = block[:-1].split(b"\n")
            for number, line in enumerate(lines, first):
                if line.strip():
                    record = strict_json(line, options.origin, number)
                    reader.add(_sentence(record, reader, number), number)
            if reader.layout is not None:
                yield reader.rows()
            first += len(lines)
        if reader.layout is None:
            raise DataError("empty: there are no preferences in it", options.origin)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Refuse to write: a line has no place for a longer list.

        Raises:
            UsageError: always.
        """
        raise UsageError("lists are not written as preference pairs: choose jsonl, which keeps all")


def _sentence(record: Any, reader: RecordReader, line: int) -> dict[str, Any]:
    """Return a line as a sentence with two candidates."""
    if not isinstance(record, dict):
        raise reader.error(f"{shown(record)} is not an object with fields", line)
    for name in (_CHOSEN, _REJECTED):
        if name not in record:
            raise reader.error(f"no field {name}", line)
    for name in (SOURCE, CANDIDATES, _PREFERENCES):
        if name in record:
            raise reader.error(f"a field {name} next to {_CHOSEN} and {_REJECTED}: rename it", line)
    more = {n: v for n, v in record.items() if n not in (_PROMPT, _CHOSEN, _REJECTED)}
    if _PROMPT in record:
        more[SOURCE] = _answer(record[_PROMPT], _PROMPT, reader, line)[TEXT]
    answers = [_answer(record[name], name, reader, line) for name in (_CHOSEN, _REJECTED)]
    return {**more, _PREFERENCES: [[0, 1]], CANDIDATES: answers}


def _answer(given: Any, name: str, reader: RecordReader, line: int) -> dict[str, Any]:
    """Return an answer as a candidate: its text, and its other fields."""
    last = given[-1] if isinstance(given, list) and given else given
    if isinstance(last, str):
        return {TEXT: last}
    fields: Mapping[str, Any] = last if isinstance(last, dict) else {}
    key = TEXT if TEXT in fields else _CONTENT
    if not isinstance(fields.get(key), str):
        raise reader.error(
            f"{name} is {shown(given)}, not a text, or an object with a {TEXT} or {_CONTENT}", line
        )
    return {TEXT: fields[key], **{n: v for n, v in fields.items() if n not in (key, _ROLE)}}

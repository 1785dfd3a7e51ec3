"""The lines to type in messages: what they say to Python, and whether they read a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, permutations
from typing import Any

from bpa_ppl import BpaError

_LINE = re.compile(r"; in Python (\w+)=")
_COLUMNS = re.compile(r"\(the (?:columns|fields) are (.*?)\)")
_MOST_TRIED = 3000


def find_lines(message: str) -> list[dict[str, Any]]:
    """Return the keyword arguments that a message names.

    >>> find_lines("lm is nan: drop it (--bad drop; in Python bad='drop')")
    [{'bad': 'drop'}]
    """
    lines = []
    for match in _LINE.finditer(message):
        rest = message[match.end() :]
        ends = (place for place, mark in enumerate(rest) if mark == ")")
        for end in ends:
            with suppress(ValueError, SyntaxError):
                lines.append({match[1]: ast.literal_eval(rest[:end].replace("VALUE", "0.0"))})
                break
        else:
            raise AssertionError(f"no value of Python: {rest}")
    return lines


def helps(line: Mapping[str, Any], read: Callable[..., object], message: str) -> bool:
    """Return whether a file is read with the arguments that a message names.

    Args:
        line: from `find_lines`. COLUMN stands for any of the columns that the message shows.
        read: reads the file with keyword arguments that change.
        message: of the error.
    """
    for arguments in islice(_choose_columns(line, message), _MOST_TRIED):
        with suppress(BpaError):
            read(**arguments)
            return True
    return False


def _choose_columns(line: Mapping[str, Any], message: str) -> Iterator[dict[str, Any]]:
    text = line.get("format", "")
    parts = text.split("COLUMN")
    if len(parts) == 1:
        yield dict(line)
        return
    shown = _COLUMNS.search(message)
    assert shown is not None
    columns = [name.strip() for name in ast.literal_eval(shown[1]).split(",")]
    for chosen in permutations(columns, len(parts) - 1):
        names = (*chosen, "")
        yield {"format": "".join(part + name for part, name in zip(parts, names, strict=True))}

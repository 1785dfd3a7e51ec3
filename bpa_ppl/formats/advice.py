"""Lines to type, in messages: each was tried on the first lists of the same data.

An error names what may help (`bpa_ppl.errors.Remedy`); the function that reads the data, and has
all its arguments, tries each and writes those that read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, permutations
from typing import Any

import msgspec

from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.components import write_settings
from bpa_ppl.errors import COLUMN, VALUE, BpaError, DataError, Remedy, write_option
from bpa_ppl.formats.block import CANDIDATES, ID, TEXT
from bpa_ppl.formats.format import NBEST_FORMATS, NBestFormat

_MOST_TRIED = 300  # choices of columns

#: Reads the first lists with arguments that change, and yields tables of them.
ReadAgain = Callable[[Mapping[str, Any]], Iterator[Any]]


def advise(
    error: DataError,
    read_again: ReadAgain,
    whole: bool = True,
    reader: NBestFormat | None = None,
) -> DataError:
    """Return an error with those of its remedies that read the lists.

    Args:
        error: of the reader.
        read_again: reads the beginning of the same data.
        whole: whether that is all of it; otherwise a later error may come from where it ends.
        reader: the format that was used; None for data without one.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["lm"])
    >>> error = DataError("lm is nan", remedies=[Remedy("drop it", {"bad": "drop"})])
    >>> print(error, "|", advise(error, lambda changes: iter([lists])))
    lm is nan | lm is nan: drop it (--bad drop; in Python bad='drop')
    """
    written: dict[str, str] = {}
    is_known = False  # whether a format helps of which nothing is left to choose
    for number, remedy in enumerate(error.remedies):
        if isinstance(remedy, str):
            written[str(number)] = remedy
        elif remedy.words not in written and not (remedy.columns and is_known):
            reads = partial(_reads, read_again, reader, None if whole else error.line)
            if any(map(reads, islice(_fill(remedy), _MOST_TRIED))):
                changes = _list_changes(remedy, reader)
                written[remedy.words] = f"{remedy.words} ({_write(changes)})"
                is_known = is_known or ("format" in changes and not remedy.columns)
    return DataError(
        error.problem,
        error.path,
        error.line,
        parameter=error.parameter,
        code=error.code,
        remedies=list(written.values()),
    )


def choose_format(reader: NBestFormat, settings: Mapping[str, Any]) -> str:
    """Return a format with some settings that change, and all others, as text; None takes one away.

    >>> from bpa_ppl.formats.format import resolve_format
    >>> choose_format(resolve_format("csv:id=segment,text=output"), {"first_id": 1, "text": None})
    'csv:id=segment,first_id=1'
    """
    defaults = msgspec.structs.asdict(type(reader)())
    own = {n: v for n, v in reader.settings().items() if v != defaults[n] and n != "names"}
    name = NBEST_FORMATS.name_of(reader)
    own = {n: v for n, v in own.items() if n != "server" or v != name}
    changed = {**dict(reader.names), **own, **settings}
    return write_settings(name, {n: v for n, v in changed.items() if v is not None})


def _list_changes(remedy: Remedy, reader: NBestFormat | None) -> dict[str, Any]:
    """Return the arguments of the reader that a remedy changes."""
    changes = dict(remedy.arguments or {})
    if remedy.settings and reader is not None:
        changes["format"] = choose_format(reader, remedy.settings)
    return changes | (dict(remedy.settings) if remedy.settings and reader is None else {})


def _fill(remedy: Remedy) -> Iterator[Remedy]:
    """Yield a remedy with columns and numbers in place of what the user chooses."""
    arguments, settings = dict(remedy.arguments or {}), dict(remedy.settings or {})
    if "missing" in arguments:
        arguments["missing"] = dict.fromkeys(arguments["missing"], 0.0)
    if {"features", "gain"} & arguments.keys():
        for column in remedy.columns:
            filled = {n: [column] if of == [COLUMN] else column for n, of in arguments.items()}
            yield remedy._replace(arguments=filled)
        return
    chosen = [name for name, value in settings.items() if value == COLUMN]
    for columns in permutations(remedy.columns, len(chosen)):
        named = settings | dict(zip(chosen, columns, strict=True))
        yield remedy._replace(arguments=arguments, settings=named)


def _reads(
    read_again: ReadAgain, reader: NBestFormat | None, line: int | None, remedy: Remedy
) -> bool:
    """Return whether lists are read with the arguments of a remedy.

    Where these name the candidates of a list, there are several lists; where they name an id, a
    list has several candidates.
    """
    tables = list[Any]()
    with capture_notes():
        try:
            tables.extend(read_again(_list_changes(remedy, reader)))
        except BpaError as error:
            later: int | None = getattr(error, "line", None)
            if line is None or later is None or later <= line:
                return False
    named = (remedy.settings or {}).keys()
    several = not named >= {ID, TEXT} or any((of.sizes > 1).any() for of in tables)
    return several and sum(map(len, tables)) > (CANDIDATES in named)


def _write(changes: Mapping[str, Any]) -> str:
    """Return arguments as options and as Python writes them."""
    lines = []
    for name, value in changes.items():
        if isinstance(value, Mapping):
            lines.append(write_option(name, value, number=VALUE))
        elif isinstance(value, int):
            lines.append(f"{name}={value}")
        else:
            lines.append(write_option(name, value))
    return "; ".join(lines)

"""The files that a command reads and writes: no output is also an input, or another output.

A parameter that names an output has `Written` in its annotated type. The texts of all other
parameters may name inputs, except where the type has `WORD`.
"""

from __future__ import annotations

import inspect
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, Unpack, cast, get_args, get_origin, get_type_hints

import msgspec

from bpa_ppl.errors import UsageError
from bpa_ppl.features.recipe import recorded_files
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.formats.streams import STANDARD, AnyPath, is_standard, resolve_output
from bpa_ppl.posterior.record import Record


class Written(NamedTuple):
    """Marks a parameter that names a file to be written, or a folder of such files.

    Attributes:
        files: returns the files that are written, given the value of the parameter.
    """

    files: Callable[[Any], Iterable[AnyPath]] = lambda path: (path,)


#: Marks a parameter whose text is not the name of a file.
WORD: Final = "a word"


def check_outputs(command: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the parameters of a command, with `/dev/stdout` as `-` among outputs.

    Args:
        command: with `Written` in the types of its outputs.
        values: those that were given, by parameter.

    Raises:
        UsageError: if an output is also an input or another output, under any name.

    >>> from typing import Annotated
    >>> def copy(*, output: Annotated[str, Written()], log: Annotated[str, Written()]): ...
    >>> check_outputs(copy, {"output": "new.txt", "log": "./new.txt"})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: ./new.txt is also another file of this command: choose another name
    """
    values, inputs, outputs = dict(values), set[str](), dict[str, tuple[AnyPath, ...]]()
    hints = read_hints(command)
    for name, hint in hints.items():
        for mark in [mark for mark in list_marks(hint) if isinstance(mark, Written)][-1:]:
            value = values.get(name, inspect.signature(command).parameters[name].default)
            if value is not None and is_standard(value):
                values[name] = type(value)(STANDARD)
                outputs[name] = (STANDARD,)
            elif value is not None:
                outputs[name] = (*mark.files(value),)
    for name, value, marks in iter_options(hints, values):
        if name not in outputs and WORD not in marks:
            names = expand_patterns(_texts(msgspec.to_builtins(value, enc_hook=str)))
            inputs.update(chain(names, *map(_files_of_lists, names)))
    require_distinct(outputs, inputs)
    return values


def _files_of_lists(path: str) -> Iterator[str]:
    """Yield the files in a folder of n-best lists, such as that of ESPnet."""
    if os.path.isdir(path):
        folder = Path(path)
        if any(kind().detect_folder(folder) for _, kind in NBEST_FORMATS.load()):
            yield from map(str, folder.rglob("*"))


def read_hints(command: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotated type of each parameter of a command.

    There are none of a method of Cyclopts, such as one that prints help.
    """
    return get_type_hints(command, include_extras=True) if inspect.isfunction(command) else {}


def list_marks(hint: object) -> Iterator[object]:
    """Yield the metadata of an annotated type, and of the members of a union.

    >>> from typing import Annotated
    >>> list(list_marks(Annotated[str, WORD] | None))
    ['a word']
    """
    yield from getattr(hint, "__metadata__", ())
    for member in get_args(hint):
        yield from list_marks(member)


def iter_options(
    hints: Mapping[str, Any], values: Mapping[str, Any], marks: tuple[object, ...] = ()
) -> Iterator[tuple[str, Any, tuple[object, ...]]]:
    """Yield name, value and marks of each option that was given.

    Those of a group come one by one, and have its marks, too. A group is an unpacked TypedDict, or
    a dataclass, of which only the values other than the defaults are given.

    Args:
        hints: the annotated type of each parameter.
        values: those that were given, by parameter.
        marks: of the group.
    """
    for name, value in values.items() if hints else ():
        own, group = (*marks, *list_marks(hints[name])), cast("Any", type(value))
        if get_origin(hints[name]) is Unpack:
            group, options = get_args(hints[name])[0], value
        elif is_dataclass(value):
            default = vars(group())
            options = {option: one for option, one in vars(value).items() if one != default[option]}
        else:
            yield name, value, own
            continue
        yield from iter_options(get_type_hints(group, include_extras=True), options, own)


def require_distinct(outputs: Mapping[str, Iterable[AnyPath]], inputs: Iterable[AnyPath]) -> None:
    """Refuse outputs that are inputs, or one another, by name, link or number of the open file.

    Args:
        outputs: the files that are written, by parameter.
        inputs: the files that are read; those that do not exist are ignored.

    Raises:
        UsageError: naming an output.

    >>> require_distinct({"output": ["/dev/null"]}, ["/dev/null"])
    """
    used = {one for path in inputs for one in _identities(path, "stdin")}
    for name, paths in outputs.items():
        of_paths = {path: {*_identities(path, "stdout"), *_new_identities(path)} for path in paths}
        for path, of_path in of_paths.items():
            if of_path & used:
                problem = f"{path} is also another file of this command: choose another name"
                raise UsageError(problem, parameter=name, code="conflict")
        used = used.union(*of_paths.values())


def keep_recorded_files(record: Record, *more: str, **outputs: AnyPath | None) -> None:
    """Refuse outputs, by parameter, that are files from which a posterior computes features."""
    written = {name: [path] for name, path in outputs.items() if path is not None}
    require_distinct(written, [*recorded_files(record), *more])


def _identities(path: AnyPath, standard: str) -> Iterator[Hashable]:
    """Yield what all names of an existing file or pipe have in common.

    Args:
        path: of the file.
        standard: the stream that `-` names.
    """
    stream = getattr(sys, standard) if str(path) == STANDARD else None
    if str(path) == STANDARD and stream is None:  # it is closed
        return
    # It does not exist, cannot be a name, or is a stream in memory.
    with suppress(OSError, ValueError):
        status = os.stat(path) if stream is None else os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode):
            yield status.st_dev, status.st_ino


def _new_identities(path: AnyPath) -> Iterator[Hashable]:
    """Yield what all names of an output that does not exist yet have in common.

    Case and Unicode form of its name make no difference, as on some file systems.
    """
    if str(path) == STANDARD:
        yield STANDARD
    elif not os.path.exists(path):
        with suppress(OSError, ValueError):  # writing it fails, too
            target = resolve_output(path)
            folder = os.stat(target.parent)
            name = unicodedata.normalize("NFC", target.name).casefold()
            yield folder.st_dev, folder.st_ino, name


def _natural_order(text: str) -> list[Any]:
    """Return a key that sorts texts by the numbers in them.

    >>> sorted(["d10", "d2", "d1"], key=_natural_order)
    ['d1', 'd2', 'd10']
    """
    parts = re.split(r"0*([0-9]+)", text)
    # Longer numbers are larger. Python does not convert thousands of digits.
    return [(len(part), part) if place % 2 else part for place, part in enumerate(parts)]


def expand_patterns(paths: Iterable[str]) -> list[str]:
    """Return the files that patterns with `*`, `?` or `[…]` match, where no shell has done so.

    >>> expand_patterns(["-", "none-of-these-*.jsonl"])
    ['-', 'none-of-these-*.jsonl']
    """
    files: list[str] = []
    for path in paths:
        is_file = os.path.exists(path)
        files += [path] if is_file else sorted(glob(path), key=_natural_order) or [path]
    return files


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, and their parts where they are lists or have settings."""
    if isinstance(value, str):
        parts = value.split(",")
        yield from {value, *parts}
        yield from (re.split("[=:]", part)[-1] for part in parts)  # without names of settings
        yield os.path.expanduser(value.rpartition(":")[0])  # FILE.py:function
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)

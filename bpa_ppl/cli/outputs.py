"""The files that a command reads and writes: no output is also an input, or another output."""

from __future__ import annotations

import inspect
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from bpa_ppl._runtime.streams import STANDARD, AnyPath, is_standard, resolve_output
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.cli.options import expand_patterns, given_options
from bpa_ppl.errors import UsageError
from bpa_ppl.features.recipe import recorded_files
from bpa_ppl.formats.format import NBEST_FORMATS

#: The parameters of commands that name files to be written, or folders of them.
OUTPUTS: Final = ("output", "details", "probabilities", "ask")
#: The files of such folders.
IN_FOLDERS: Final = ("index.html", "comparison.json")
#: The parameters whose texts name columns of lists, and fields of files to convert.
_COLUMNS = ("features", "exclude", "categorical", "domain")
_FIELDS = ("prompt_id", "extract", "baseline", "question", "first", "second")
#: The parameters whose texts do not name files; those of all others may name inputs.
WORDS: Final = (*_COLUMNS, *_FIELDS, "point", "rater", "kind")
#: The parameter whose text begins with the name of a format, which is no file; its settings may
#: name some.
_FORMAT = "format"


def check_outputs(bound: inspect.BoundArguments) -> None:
    """Refuse outputs of a command that are also inputs or other outputs, under any name.

    Outputs that are `/dev/stdout` become `-`.

    Raises:
        UsageError: naming an output.

    >>> def copy(source, *, output): ...
    >>> check_outputs(inspect.signature(copy).bind("new.txt", output="./new.txt"))
    >>> _ = Path("new.txt").write_text("a text")
    >>> check_outputs(inspect.signature(copy).bind("new.txt", output="./new.txt"))
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: ./new.txt is also another file of this command: choose another name
    """
    inputs, outputs = set[str](), dict[str, list[AnyPath]]()
    options = given_options(**bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        value = options.get(name, parameter.default)
        if parameter.kind is parameter.VAR_KEYWORD:
            options |= options.pop(name, {})
        elif name in OUTPUTS and value is not None and is_standard(value):
            bound.arguments[name], outputs[name] = type(value)(STANDARD), [STANDARD]
        elif name in OUTPUTS and value is not None:
            outputs[name] = [value, *(Path(value, file) for file in IN_FOLDERS)]
            if options.get("html"):  # a page next to the figure
                outputs[name] += [Path(value).parent / f"{Path(value).stem}.html"]
    for name, value in options.items():
        if name not in (*OUTPUTS, *WORDS):
            plain = msgspec.to_builtins(value, enc_hook=str)
            several = plain if isinstance(plain, dict) else {name: plain}
            if isinstance(text := several.get(_FORMAT), str):
                several = {**several, _FORMAT: text.partition(":")[2]}
            names = expand_patterns(list(_texts(several)))
            inputs.update(chain(names, *map(_files_of_lists, names)))
    require_distinct(outputs, inputs)


def _files_of_lists(path: str) -> Iterator[str]:
    """Yield the files in a folder of n-best lists, such as that of ESPnet."""
    if os.path.isdir(path):
        folder = Path(path)
        if any(kind().detect_folder(folder) for _, kind in NBEST_FORMATS.load()):
            yield from map(str, folder.rglob("*"))


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


def keep_recorded_files(record: AdaptationRecord, *more: str, **outputs: AnyPath | None) -> None:
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

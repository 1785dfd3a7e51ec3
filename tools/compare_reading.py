"""Compare what two versions of the package read from the same inputs: lists and messages.

    python tools/compare_reading.py record     # the inputs of the tests, and damaged files
    python tools/compare_reading.py store      # before a change
    python tools/compare_reading.py compare    # after it

Every input that the tests give to a reader or to `from_records`, the files of the demo and 20,000
damaged files are kept in `build/reading`. Of each the digest of the lists is stored, read at once
and as a stream, or the error, and all warnings. The third command prints every input whose lists or
messages differ, and ends with exit code 1 if any does.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import gzip
import hashlib
import importlib
import inspect
import io
import json
import os
import pickle  # noqa: TID251 - the files are its own
import random
import re
import subprocess  # noqa: TID251 - runs the tests
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "reading"
DAMAGED = 20_000
_LARGEST = 4 << 20  # bytes of an input that is kept
#: Functions whose arguments are kept, with their modules.
RECORDED = {
    "iter_nbest": "bpa_ppl.formats.reading",
    "from_records": "bpa_ppl.formats.in_memory",
    "from_samples": "bpa_ppl.formats.in_memory",
    "read_references": "bpa_ppl.formats.references",
    "read_weights": "bpa_ppl.formats.weight_files",
}


def _function(name: str) -> tuple[Any, Any]:
    module = importlib.import_module(RECORDED[name])
    return module, getattr(module, name)


def _formats() -> Any:
    return importlib.import_module("bpa_ppl.formats.format").NBEST_FORMATS


# Inputs


def _kept(value: Any) -> tuple[str, Any]:
    """Return a value as it can be pickled: the content of a file for its path."""
    if isinstance(value, str | Path) and os.path.isdir(value):
        files = {
            str(path.relative_to(value)): path.read_bytes()
            for path in sorted(Path(value).rglob("*"))
            if path.is_file()
        }
        if sum(map(len, files.values())) > _LARGEST:
            raise ValueError("large")
        return "folder", (Path(value).name, files)
    if isinstance(value, str | Path) and os.path.isfile(value):
        if os.path.getsize(value) > _LARGEST:
            raise ValueError("large")
        return "file", (Path(value).name, Path(value).read_bytes())
    if isinstance(value, msgspec.Struct):  # a format with its settings
        if (name := _formats().name_of(value)) not in _formats():
            raise ValueError("a format of a test")
        settings = {field: getattr(value, field) for field in value.__struct_fields__}
        return "format", (name, settings | dict(settings.pop("names")))
    paths = isinstance(value, list | tuple) and all(isinstance(v, str | Path) for v in value)
    if paths and any(map(os.path.isfile, value)):
        return "files", [_kept(one) for one in value]
    if len(pickle.dumps(value)) > _LARGEST:
        raise ValueError("large")
    return "value", value


def _placed(kept: tuple[str, Any], folder: Path) -> Any:
    kind, value = kept
    if kind == "value":
        return value
    if kind == "format":
        return _formats().resolve(*value)
    if kind == "files":
        return [_placed(one, folder) for one in value]
    name, content = value
    path = folder / name
    if kind == "file":
        path.write_bytes(content)
        return path
    for inner, data in content.items():
        (path / inner).parent.mkdir(parents=True, exist_ok=True)
        (path / inner).write_bytes(data)
    return path


def _wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        first, *others = args
        if isinstance(first, io.IOBase):
            content = first.read()
            first = io.BytesIO(content) if isinstance(content, bytes) else io.StringIO(content)
            kept_first: Any = content if isinstance(content, bytes) else content.encode()
        elif inspect.isgenerator(first):
            kept_first = first = list(first)
        else:
            kept_first = first
        try:
            entry = (name, [_kept(a) for a in (kept_first, *others)], _kept_options(options))
            line = pickle.dumps(entry)
            if str(first) != "-":
                with open(FOLDER / f"inputs-{os.getpid()}.pickles", "ab") as file:
                    file.write(len(line).to_bytes(8, "big") + line)
        except Exception:
            pass
        return function(first, *others, **options)

    return call


def _kept_options(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _kept(value) for name, value in options.items() if name != "empty"}


def pytest_configure() -> None:
    """Keep the inputs of all tests of a run with `-p compare_reading`."""
    for name in RECORDED:
        module, function = _function(name)
        setattr(module, name, _wrapped(name, function))


def record() -> None:
    """Run the tests, and keep the inputs of readers."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("inputs*"):
        old.unlink()
    paths = f"{ROOT / 'tools'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    folders = ["formats", "cli", "decoding", "extras/judging", "soak"]
    tests = [f"tests/{name}" for name in folders]
    tests += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/test_*.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "compare_reading", "-n", "2", *tests]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, check=False)
    found: dict[str, bytes] = {}
    for path in sorted(FOLDER.glob("inputs-*.pickles")):
        with open(path, "rb") as file:
            while size := file.read(8):
                line = file.read(int.from_bytes(size, "big"))
                try:
                    pickle.loads(line)
                except (ImportError, AttributeError):  # of a class of a test
                    continue
                found.setdefault(hashlib.sha256(line).hexdigest(), line)
        path.unlink()
    recorded = len(found)
    for entry in _damaged():
        line = pickle.dumps(entry)
        found.setdefault(hashlib.sha256(line).hexdigest(), line)
    for path in sorted((ROOT / "examples" / "demo_data").glob("*nbest*")):
        entry = ("iter_nbest", [_kept(path)], {})
        found.setdefault(str(path), pickle.dumps(entry))
    with gzip.open(FOLDER / "inputs.pickles.gz", "wb", 1) as file:
        file.writelines(found[key] for key in sorted(found))
    print(f"{recorded} inputs of the tests, {len(found)} in all")


def _damaged() -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    sys.path.insert(0, str(ROOT / "tests"))
    damage: Any = importlib.import_module("support.damage")
    rng = random.Random(20)
    for number in range(DAMAGED):
        name = damage.FORMATS[number % len(damage.FORMATS)]
        content = damage.edited(rng.choice(damage.samples(name)), damage.random_edits(rng))
        options = {"format": ("value", "plain:list_size=2" if name == "plain" else name)}
        options["bad"] = ("value", "drop" if number % 5 == 0 else "error")
        yield "iter_nbest", [("file", ("lists", content))], options


# Results


def _digest(lists: Any, folder: Path) -> str:
    whole = hashlib.sha256()
    texts = [lists.strings[i] for i in lists.string_index.tolist()]
    for field in dataclasses.fields(lists):
        value = getattr(lists, field.name)
        if field.name == "origin":
            value = value.replace(str(folder), "FOLDER")
        if field.name in ("strings", "string_index"):
            value = texts if field.name == "strings" else None
        whole.update(f"{field.name}: {_shown(value)}\n".encode("utf-8", "surrogatepass"))
    return whole.hexdigest()[:16]


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        data = value.tobytes().hex() if value.dtype.kind != "O" else repr(value.tolist())
        return f"{value.dtype} {value.shape} {data}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{n!r}: {_shown(v)}" for n, v in value.items()) + "}"
    return repr(sorted(value) if isinstance(value, frozenset) else value)


def _outcome(work: Callable[[], Any], folder: Path) -> list[str]:
    from bpa_ppl._runtime.messages import capture_notes
    from bpa_ppl.errors import BpaError

    with capture_notes() as notes:
        try:
            result = work()
            if isinstance(result, list) and all(dataclasses.is_dataclass(one) for one in result):
                lines = [_digest(one, folder) for one in result]
            elif dataclasses.is_dataclass(result):
                lines = [_digest(result, folder)]
            else:
                lines = [_shown(dict(result) if isinstance(result, Mapping) else result)[:2000]]
        except BpaError as error:
            lines = [f"{type(error).__name__}: {error} [{error.code}, {error.parameter}]"]
        except Exception as error:
            lines = [f"TRACEBACK {type(error).__name__}: {error}"]
    lines += [f"{note.level}: {note.message}" for note in notes]
    return [line.replace(str(folder), "FOLDER") for line in lines]


def results() -> dict[str, list[str]]:
    """Return what each input gives."""
    found: dict[str, list[str]] = {}
    with gzip.open(FOLDER / "inputs.pickles.gz", "rb") as file:
        number = 0
        while True:
            try:
                name, args, options = pickle.load(file)
            except EOFError:
                return found
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                _, function = _function(name)
                try:
                    given = [_placed(one, folder) for one in args]
                    named = {n: _placed(one, folder) for n, one in options.items()}
                except ValueError:  # a format that was registered by a test
                    continue
                if name == "iter_nbest":
                    chunks = {sys.maxsize, named.pop("chunk", sys.maxsize), 1}
                    lines = []
                    for chunk in sorted(chunks):
                        work = lambda c=chunk: list(function(*given, chunk=c, **named))  # noqa: B023, E731
                        lines += [f"chunk {chunk}", *_outcome(work, folder)]
                else:
                    lines = _outcome(lambda: function(*given, **named), folder)  # noqa: B023
            shown = re.sub("x[0-9a-f]{8,}", "", f"{name} {str(args)[:300]} {options}")
            found[f"{number} {shown}"] = [re.sub("x[0-9a-f]{8,}", "", line) for line in lines]
            number += 1


def main() -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["record", "store", "compare"])
    command = parser.parse_args().command
    if command == "record":
        record()
        return 0
    if not (FOLDER / "inputs.pickles.gz").exists():
        record()
    found = results()
    path = FOLDER / "results.json.gz"
    if command == "store":
        with gzip.open(path, "wt") as file:
            json.dump(found, file)
        kinds = Counter("error" if "Error" in lines[-1] else "read" for lines in found.values())
        print(f"stored {len(found)} results: {dict(kinds)}")
        return 0
    with gzip.open(path, "rt") as file:
        before: dict[str, list[str]] = json.load(file)
    different = [key for key in before if before[key] != found.get(key)]
    for key in different:
        print(key)
        for line in before[key]:
            if line not in found[key]:
                print(f"    - {line}")
        for line in found[key]:
            if line not in before[key]:
                print(f"    + {line}")
    print(f"{len(different)} of {len(before)} inputs differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())

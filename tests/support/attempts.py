"""What the areas of `fuzz.py` share: their registry, odd values, and what must hold.

An area is a function that makes one damaged input from a random generator and uses it. The input is
accepted if the function ends, and refused if it ends in one of our errors or returns `REFUSED`; all
else is a failure. The generator depends only on seed, area and the number of the input, so each
input can be made again.

    @area("priors of files", 100, names_file=True)
    def priors_of_files(rng: random.Random, folder: Path) -> None:
        (folder / "prior.json").write_bytes(damaged(rng, b'{"mean": [0.5]}'))
        Prior.read(folder / "prior.json")
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.errors import BpaError
from support.fuzzing import ACCEPTED, REFUSED, Failure, outcome

SECONDS = 10.0  # of CPU time for one input
FIRST_SECONDS = 60.0  # for the first inputs of a process, which also import and compile
MEMORY = 1 << 30  # bytes that one input may add to the peak


class Area(NamedTuple):
    """One kind of input.

    Attributes:
        attempt: makes and uses an input in an empty folder.
        share: how many of 100,000 inputs are of the area; some take seconds for each.
        names_file: whether our errors must name a file in the folder.
    """

    attempt: Callable[[random.Random, Path], str | None]
    share: int
    names_file: bool = False


AREAS: dict[str, Area] = {}
_done: Counter[str] = Counter()


def area(name: str, share: int, *, names_file: bool = False) -> Callable[..., Any]:
    """Return a decorator that registers the function of an area; see `Area`."""

    def register(attempt: Callable[[random.Random, Path], Any]) -> Callable[..., Any]:
        AREAS[name] = Area(attempt, share, names_file)
        return attempt

    return register


def verdict(work: Callable[[], Any], folder: Path | None = None) -> str:
    """Return whether some work accepts its input; see `fuzzing.outcome`."""
    return REFUSED if isinstance(outcome(lambda: (work(),), folder), str) else ACCEPTED


@contextmanager
def must_accept() -> Iterator[None]:
    """Turn one of our own errors into a failure: what is used here is right."""
    try:
        yield
    except BpaError as error:
        raise Failure(f"refused: {error}") from error


def attempt(name: str, seed: int, number: int, folder: Path) -> str:
    """Make and use one input of an area in a folder, which is emptied.

    Raises:
        Failure: if it is not accepted or refused in the allowed time and memory.
    """
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    rng = random.Random(f"{seed} {name} {number}")
    before, start = _peak(), time.process_time()
    chosen = AREAS[name]

    def use() -> str:
        return REFUSED if chosen.attempt(rng, folder) == REFUSED else ACCEPTED

    ending = outcome(use, folder if chosen.names_file else None)
    result = ACCEPTED if ending == ACCEPTED else REFUSED
    seconds, added = time.process_time() - start, _peak() - before
    _done[name] += 1
    if seconds > (SECONDS if _done[name] > 50 else FIRST_SECONDS):
        raise Failure(f"{result} after {seconds:.0f} s")
    if added > MEMORY:
        raise Failure(f"{result} with {added >> 20} MiB more memory")
    return result


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


# --- odd values ----------------------------------------------------------------------------------

TEXTS = [
    *("", " ", "a cat", "\0", "a\0b", "\n", "\r\n", "\u2028", "\ud800", "\x1b[2J", "é", "日本"),
    *("nan", "inf", "-1", "1e400", "1" * 400, "/", ".", "../..", "%s{0}", "=", "a b"),
    *("a" * 5000, "\ufeff", "\u0301" * 50, "|||", '"', "'", "\\", "none", "equal", "auto"),
]
INTEGERS = [0, 1, -1, 2, 3, 1000, 2**31, 2**53 + 1, 2**63, -(2**63), 10**30, 10**400, True, False]
FLOATS = [0.0, -0.0, 0.5, -1.5, 1e-320, 1e38, 1e39, 1e308, *map(float, ("nan", "inf", "-inf"))]
NUMBERS: list[Any] = [*INTEGERS, *FLOATS]


def odd_value(rng: random.Random, depth: int = 2) -> Any:
    """Return a value of any type that Python programs pass around."""
    kind = rng.randrange(14 if depth else 8)
    if kind < 3:
        return rng.choice(TEXTS)
    if kind < 6:
        return rng.choice([*NUMBERS, 1 + 2j])
    if kind < 8:
        return rng.choice([None, None, b"", b"a\xff", object(), int, Path("x"), range(3), ...])
    inner = [odd_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind < 11:
        return rng.choice([iter, list, tuple])(inner)
    if kind == 11:
        return {rng.choice([*TEXTS[:8], "id", "text", "lm", 3, None]): value for value in inner}
    return odd_array(rng)


def odd_array(rng: random.Random) -> Any:
    """Return an array of any type and shape."""
    shape = rng.choice([(), (0,), (1,), (2,), (3,), (2, 2), (3, 2), (2, 1), (1, 2, 2), (0, 2)])
    kind = rng.choice(["f8", "f4", "f2", "i8", "u1", "?", "c16", "U3", "S3", "O", "M8[D]", "m8[s]"])
    values = np.zeros(shape, kind)
    if values.size and kind[0] in "fc":
        values.reshape(-1)[rng.randrange(values.size)] = rng.choice([np.nan, np.inf, 3e4, -1, 0.5])
    return values


def odd_json(rng: random.Random, depth: int = 3) -> Any:
    """Return a value that JSON can hold, though Python's reader takes more."""
    kind = rng.randrange(10 if depth else 6)
    if kind < 2:
        return rng.choice([text for text in TEXTS if "\ud800" not in text])
    if kind < 6:
        return rng.choice([*NUMBERS, *NUMBERS, None, True, False])
    inner = [odd_json(rng, depth - 1) for _ in range(rng.randrange(4))]
    return inner if kind < 8 else {rng.choice(TEXTS[:12]): value for value in inner}


def changed(value: Any, rng: random.Random, odd: Callable[[random.Random], Any]) -> Any:
    """Return plain data with one value, at any depth, replaced, removed or repeated."""
    if not isinstance(value, dict | list | tuple) or not value or rng.random() < 0.2:
        return odd(rng)
    what = rng.randrange(8)
    if isinstance(value, dict):
        name, result = rng.choice(list(value)), dict(value)
        if what == 0:
            del result[name]
        elif what == 1:
            result[rng.choice(TEXTS[2:6])] = result[name]
        else:
            result[name] = changed(value[name], rng, odd)
        return result
    place, items = rng.randrange(len(value)), list(value)
    if what == 0:
        del items[place]
    elif what == 1:
        items.append(items[place])
    else:
        items[place] = changed(items[place], rng, odd)
    return type(value)(items)


def odd_path(rng: random.Random, folder: Path, endless: bool = True) -> str:
    """Return the name of something that a careless program would open.

    Args:
        rng: the generator.
        folder: for a pipe and a link.
        endless: whether to include what can be read, or waited for, without end.
    """
    fifo, loop = folder / "fifo", folder / "loop"
    if not fifo.exists():
        os.mkfifo(fifo)
    if not loop.is_symlink():
        loop.symlink_to(loop)
    names = ["/dev/null", "/proc/self/mem", "/etc/shadow", str(loop), str(folder), f"{folder}/none"]
    names += ["", "\0", "a\0b", "a" * 5000, "..", "~", "\ud800", "file:///dev/zero", "http://x"]
    return rng.choice(names + ["/dev/zero", "/dev/full", "/dev/stdin", "-", str(fifo)] * endless)

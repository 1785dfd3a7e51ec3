"""Damaged files for every reader: small sound files, what is done to them, and what must hold.

Each registered reader of files is tested with what it writes, and with those files of `golden/`
that it detects. Whatever is done to them, reading ends within a time limit in a table, or in our
own error that names the file. In a table, each number is printed in the file, and reading the file
as a stream, or in other blocks, gives the same.
"""

from __future__ import annotations

import io
import json
import random
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from bpa_ppl import NBest, concatenate, from_lists, iter_nbest, read_nbest, read_weights
from bpa_ppl.errors import BpaError, BpaWarning, DataError
from bpa_ppl.formats import moses
from bpa_ppl.formats.block import ReadOptions
from bpa_ppl.formats.build import _join
from bpa_ppl.formats.format import NBEST_FORMATS, WEIGHT_FORMATS, NBestFormat
from bpa_ppl.formats.ids import SentenceIds
from bpa_ppl.formats.reading import options_of
from bpa_ppl.formats.roles import make_roles
from bpa_ppl.formats.schema import Schema
from support.table_content import bits, table_content

GOLDEN = Path(__file__).parent.parent / "formats" / "golden"
ANSWERS = GOLDEN / "answers.jsonl"
ACCEPTED, REFUSED = "accepted", "refused"
LIMIT = 60.0  # seconds for one input, most of which take milliseconds
#: Features of these are computed from what is printed.
SERVERS = ("anthropic", "bedrock", "cohere", "gemini", "llamacpp", "ollama", "responses")
DERIVED = {"fairseq", "openai", *SERVERS}
#: The first line names the columns.
HEADED = {"csv", "tsv"}

_TOKENS = [
    *(b" ||| ", b"|||", b" ", b"  ", b"\t", b"\n", b"\n\n", b"\r\n", b"\r", b"\x00", b"\xff"),
    *(b'"', b"'", b'""', b",", b";", b":", b"=", b"{", b"}", b"[", b"]", b"#", b"\\", b"\\u0000"),
    *(b"nan", b"-inf", b"NaN", b"Infinity", b"1e400", b"1e-400", b"1_0", b"--1", b"0x1p3", b"1e"),
    *(b"null", b"true", b"0", b"-1", b"1" * 30, b"9223372036854775808", b"-0.0", b".5", b"+3"),
    *(b"0-0", b"0-1=0-1", b"LM0= 1", b"LM0=1", b"x=", b"=1", b"WordScores= 1 2", b"_", b"\xc2\xa0"),
    *(b"S-0\t", b"H-0\t-1\ta", b"D-0\t", b"P-1\t-1", b"T-0\t", b"id", b"text", b"score"),
    *(b'"id": 1, ', b'"text": "a", ', b'{"a": 1}', b"[1, 2]", b"\xef\xbb\xbf", b"\xe2\x80\xa8"),
    *(b"[weight]\n", b"- 1", b"1:2:3", b"\x1f\x8b", b"PAR1"),
    *(b"NA", b"\tNA\t", b",NA,", b"0,5", b"1.234", b"15%", b"\xe2\x88\x921.5", b"1.234,5"),
    *(b'\t"', b'"\t', b'\t"""Yes"" b"\t', b'"\n', b'"chosen": "a", ', b'"rejected": "b", '),
]
_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_BETWEEN = re.compile(rb"""[\s=,;:"'|{}\[\]()]+|\xc2\xa0""")
_BETWEEN_WEIGHTS = re.compile(r"""[\s=,;:"'{}\[\]#]+""")


class Failure(AssertionError):
    """A reader did what none may do."""


class Hung(BaseException):
    """A reader took too long; no reader catches this."""


class Edit(NamedTuple):
    """One thing done to a file; places are taken modulo its length."""

    kind: str
    place: int
    other: int
    token: bytes


_KALDI = "u-1 -1.5 un café\nu-2 -2 a cat\nv-w-1 0.25 ok\n".encode()
_PLAIN = "un café\na cat\na cat\nthe|dog = 3\n\n日本 ok\n".encode()


# --- what is done to files -----------------------------------------------------------------------


def _of_lines(change: Callable[[list[bytes], int, int], None]) -> Callable[..., bytes]:
    """Return what changes the list of the lines, given two places in it."""

    def changed(data: bytes, at: int, edit: Edit) -> bytes:
        lines = data.splitlines(keepends=True) or [b""]
        change(lines, edit.place % len(lines), edit.other % len(lines))
        return b"".join(lines)

    return changed


#: What is done at a place, by name.
KINDS: dict[str, Callable[[bytes, int, Edit], bytes]] = {
    "insert": lambda data, at, edit: data[:at] + edit.token + data[at:],
    "replace": lambda data, at, edit: data[:at] + edit.token + data[at + len(edit.token) :],
    "byte": lambda data, at, edit: data[:at] + bytes([edit.other % 256]) + data[at + 1 :],
    "delete": lambda data, at, edit: data[:at] + data[at + 1 + edit.other % 12 :],
    "cut": lambda data, at, edit: data[:at],
    "copy": lambda data, at, edit: data[:at] + data[at // 2 :][: edit.other % 41] + data[at:],
    "repeat line": _of_lines(lambda lines, one, two: lines.insert(two, lines[one])),
    "double line": _of_lines(lambda lines, one, two: lines.insert(one, lines[one])),
    "drop line": _of_lines(lambda lines, one, two: lines.__delitem__(one)),
}


def edited(data: bytes, edits: list[Edit]) -> bytes:
    """Return what is left of a file."""
    for edit in edits:
        data = KINDS[edit.kind](data, edit.place % (len(data) + 1), edit)
    return data


def random_edits(rng: random.Random) -> list[Edit]:
    """Return one to four edits."""
    kinds = list(KINDS)
    return [
        Edit(rng.choice(kinds), rng.randrange(1 << 20), rng.randrange(1 << 20), rng.choice(_TOKENS))
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4)))
    ]


# --- sound files ---------------------------------------------------------------------------------


def _table(names: list[str], totals: bool, known: bool) -> NBest:
    rng = np.random.default_rng(5)
    texts = [["un café noir", "a cat", "a cat"], ["the|dog = 3", "日本 ok"], ['"last", one']]
    return from_lists(
        texts,
        [rng.normal(-3, 9, size=(len(t), len(names))) for t in texts],
        names,
        references=[("ref one", "other"), ("ref two", "b"), ("ref three", "c")] if known else None,
        sources=["une", "deux", "trois"] if known else None,
        totals=[rng.normal(size=len(t)) for t in texts] if totals else None,
    )


def _written(format: NBestFormat, folder: Path) -> list[bytes]:
    """Return what a format writes of small tables, as far as it can."""
    many, one = ["LM0", "TM0[0]", "TM0[1]", "W"], ["score"]
    found: dict[bytes, None] = {}
    for names, totals, known in ((many, True, True), (many, False, False), (one, False, False)):
        path = folder / "written"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BpaWarning)
                format.write_file(_table(names, totals, known), path)
        except (BpaError, NotImplementedError):
            continue
        found[path.read_bytes()] = None
    return list(found)


def _golden(name: str) -> list[bytes]:
    """Return the golden files in a format."""
    files = {
        "fairseq": ("generate-test.txt", "interactive.txt"),
        "openai": ("openai-batch.jsonl", "openai-completions.jsonl"),
        "moses": ("moses-positions.nbest",),
        "marian": ("marian.nbest", "marian-soft.nbest"),
        "jsonl": ("preference-pairs.jsonl",),
        "csv": ("arena.csv",),
    }
    shown = map(json.loads, ANSWERS.read_text("utf-8").splitlines() if name in SERVERS else ())
    bodies = [of["body"] for of in shown if of["kind"] == name]
    wrapped = ({"custom_id": f"r-{k}", "response": body} for k, body in enumerate(bodies))
    files_of_answers = (map(json.dumps, rows) for rows in (bodies, wrapped) if bodies)
    answers = ["".join(f"{line}\n" for line in lines).encode() for lines in files_of_answers]
    return [*((GOLDEN / file).read_bytes() for file in files.get(name, ())), *answers]


class Subject(NamedTuple):
    """What is tried.

    Attributes:
        name: the format.
        format: with its settings.
        samples: small sound files.
    """

    name: str
    format: NBestFormat
    samples: list[bytes]


def names() -> list[str]:
    """Return the names of all formats whose lists are files."""
    return [name for name in NBEST_FORMATS if name not in ("auto", "espnet")]


@cache
def subject(name: str, folder: Path) -> Subject:
    """Return what is tried under a name, with its files in a folder."""
    format = NBEST_FORMATS.resolve(name, {"list_size": 2} if name == "plain" else {})
    own = {"kaldi": [_KALDI], "plain": [_PLAIN]}
    found = own[name] if name in own else [*_written(format, folder), *_golden(name)]
    assert found, f"no sample of {name}: let it write, or put a small file into {GOLDEN}"
    return Subject(name, format, found)


@cache
def weight_samples(name: str) -> list[bytes]:
    """Return small sound files of a format of weights."""
    format = WEIGHT_FORMATS.resolve(name)
    found = []
    for names in (["LM0", "TM0[0]", "TM0[1]", "W"], ["café"]):
        text = io.StringIO()
        format.write({name: 0.25 - i for i, name in enumerate(names)}, text)
        found.append(text.getvalue().encode())
    return found


# --- what must hold ------------------------------------------------------------------------------


def examine(tried: Subject, sample: bytes, content: bytes, folder: Path) -> str:
    """Read a file in every way, and return whether it is accepted or refused.

    Args:
        tried: the reader.
        sample: a sound file.
        content: of the file, which was that one.
        folder: where to put it.

    Raises:
        Failure: if a reader fails.
    """
    path = folder / "lists"
    path.write_bytes(content)
    # Those that the file declares, or all columns of numbers.
    options: Any = {"format": tried.format, "features": (None, "*")[len(content) % 2]}
    whole = outcome(lambda: _content([read_nbest(path, **options)]), folder)
    stream = partial(iter_nbest, path, chunk=1, **options)
    parts = outcome(lambda: _content(list(stream())), folder)
    # Only a table that is read at once may have its rows in any order.
    other = isinstance(parts, str) and "sort the rows by id" in parts
    if isinstance(whole, str) or not other:
        _same("as a stream", parts, "at once", whole)
    of_lines = tried.name != "parquet"
    if of_lines:
        _same_in_blocks(options, sample, content, path)
    if isinstance(whole, str):
        return REFUSED
    if of_lines and tried.name not in DERIVED:
        _all_printed(content, np.frombuffer(whole["features"][2]))
    return ACCEPTED


def examine_weights(name: str, content: bytes, path: Path) -> str:
    """Read a file of weights, and say whether it is accepted or refused.

    Raises:
        Failure: if the reader fails.
    """
    path.write_bytes(content)
    found = outcome(lambda: dict(read_weights(path, format=name)), path.parent)
    if isinstance(found, str):
        return REFUSED
    values = np.array(list(found.values()))
    if not np.isfinite(values).all():
        raise Failure(f"a weight is not finite: {found}")
    tokens = _BETWEEN_WEIGHTS.split(content.decode("utf-8-sig"))
    printed = _numbers_in([token.encode() for token in tokens])
    if not set(values.tolist()) <= printed:
        raise Failure(f"a weight is not printed in the file: {found}")
    return ACCEPTED


@contextmanager
def _time_limit() -> Iterator[None]:
    def hang(number: int, frame: Any) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(work: Callable[[], Any], folder: Path | None = None) -> Any:
    """Return what some work returns, or the text of our own error.

    Args:
        work: what is done.
        folder: where the error must say that the file is; None where any of our errors will do.

    Raises:
        Failure: if the work ends in another way.
    """
    try:
        with _time_limit(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", BpaWarning)
            return work()
    except BpaError as error:
        named = isinstance(error, DataError) and str(error).startswith(f"{folder}/")
        if folder is not None and not named:
            raise Failure(f"an error without the file: {error}") from error
        if "\n" in error.message or "\r" in error.message:
            raise Failure(f"an error of several lines: {error.message!r}") from error
        return str(error)
    except Failure:
        raise
    except Hung as error:
        raise Failure(f"not finished in {LIMIT} s") from error
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error}") from error


def _content(tables: list[NBest]) -> dict[str, Any]:
    """Return all that some tables hold, as it can be compared."""
    lists = concatenate(tables, fill_missing=True)
    texts = [lists.text(row) for row in range(len(lists.features))]
    return {**table_content(lists, "strings", "string_index"), "texts": texts}


def _same_in_blocks(options: Any, start: bytes, content: bytes, path: Path) -> None:
    """Hold a sound file with a damaged one behind it in one block against the same in two.

    What a reader knows of its first block may let it read others in another, faster way.
    """
    text = content.removeprefix(b"\xef\xbb\xbf")
    if NBEST_FORMATS.name_of(options["format"]) in HEADED:
        text = text[text.find(b"\n") + 1 :]
    if not text:
        return
    text = text if text.endswith(b"\n") else text + b"\n"
    one = outcome(lambda: _rows([start + text], path, **options), path.parent)
    # Arrow reads short blocks of Moses too, as otherwise only long ones.
    with mock.patch.object(moses, "_ARROW_FROM", 0):
        two = outcome(lambda: _rows([start, text], path, **options), path.parent)
    _same("in one block", one, "in two", two)


def _rows(
    blocks: list[bytes], path: Path, format: NBestFormat, features: str | None
) -> dict[str, Any]:
    read_as = options_of(format, ReadOptions(str(path), roles=make_roles(features)))
    schema = Schema(read_as, SentenceIds(read_as))
    file: Any = SimpleNamespace(chunks=lambda size=None: iter(blocks))
    blocks_of_file = [schema.check(of) for of in format.blocks(file, schema.options)]
    columns = _join(blocks_of_file, schema.numbers)._asdict()
    groups = [columns.pop(name) for name in ("candidates", "sentences")]
    columns |= {f"{k} {n}": of[n] for k, of in enumerate(groups) for n in of}
    return {name: repr(bits(column)) for name, column in columns.items()}


def _all_printed(content: bytes, values: np.ndarray) -> None:
    printed = _numbers_in(_BETWEEN.split(content))
    strange = {value for value in values.tolist() if value not in printed and -value not in printed}
    if strange:
        raise Failure(f"the numbers {strange} are not printed in the file")


def _numbers_in(tokens: list[bytes]) -> set[float]:
    return {float(token) for token in tokens if _NUMBER.fullmatch(token)}


def _same(how: str, one: Any, other_way: str, two: Any) -> None:
    """Hold two outcomes against each other; of several faults either may be reported first."""
    if isinstance(one, str) and isinstance(two, str):
        return
    if isinstance(one, str) or isinstance(two, str):
        shown = [repr(it[:300]) if isinstance(it, str) else "a table" for it in (one, two)]
        raise Failure(f"{how} it gives {shown[0]}, and {other_way} {shown[1]}")
    odd = [name for name in {**one, **two} if one.get(name) != two.get(name)]
    if odd:
        shown = [repr(it.get(odd[0]))[:200] for it in (one, two)]
        raise Failure(f"{how} {odd[0]} is {shown[0]}, and {other_way} {shown[1]}")

"""Small sound files of every format, and damage: bytes, tokens and lines added, moved or removed.

The samples of a format are what it writes, and those files of `formats/golden` that are in it.
`strategies.py` chooses edits by Hypothesis, `tools/compare_reading.py` by a generator of numbers.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl import NBest, from_lists
from bpa_ppl.errors import BpaError, BpaWarning
from bpa_ppl.formats.format import NBEST_FORMATS, WEIGHT_FORMATS

GOLDEN = Path(__file__).parent.parent / "formats" / "golden"
#: The formats whose lists are files.
FORMATS = [name for name in NBEST_FORMATS if name not in ("auto", "espnet")]
#: Those whose samples are answers of servers.
SERVERS = ("anthropic", "bedrock", "cohere", "gemini", "llamacpp", "ollama", "responses")

TOKENS = [
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


class Edit(NamedTuple):
    """One change of a file; places are taken modulo its length."""

    kind: str
    place: int
    other: int
    token: bytes


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
    """Return a file after some edits."""
    for edit in edits:
        data = KINDS[edit.kind](data, edit.place % (len(data) + 1), edit)
    return data


def random_edits(rng: random.Random) -> list[Edit]:
    """Return one to four edits."""
    kinds = list(KINDS)
    return [
        Edit(rng.choice(kinds), rng.randrange(1 << 20), rng.randrange(1 << 20), rng.choice(TOKENS))
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4)))
    ]


@cache
def samples(name: str) -> list[bytes]:
    """Return small sound files in a format of lists."""
    if name == "kaldi":
        return ["u-1 -1.5 un café\nu-2 -2 a cat\nv-w-1 0.25 ok\n".encode()]
    if name == "plain":
        return ["un café\na cat\na cat\nthe|dog = 3\n\n日本 ok\n".encode()]
    result = [*_written(name), *_golden(name)]
    assert result, f"no sample of {name}: let it write, or put a small file into {GOLDEN}"
    return result


@cache
def weight_samples(name: str) -> list[bytes]:
    """Return small sound files in a format of weights."""
    result = []
    for names in (["LM0", "TM0[0]", "TM0[1]", "W"], ["café"]):
        text = io.StringIO()
        WEIGHT_FORMATS.resolve(name).write({n: 0.25 - i for i, n in enumerate(names)}, text)
        result.append(text.getvalue().encode())
    return result


def _written(name: str) -> list[bytes]:
    """Return what a format writes of small tables, as far as it can."""
    many, one = ["LM0", "TM0[0]", "TM0[1]", "W"], ["score"]
    result: dict[bytes, None] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", BpaWarning)
        path = Path(folder) / "written"
        for names, totals, known in ((many, True, True), (many, False, False), (one, False, False)):
            try:
                NBEST_FORMATS.resolve(name).write_file(_table(names, totals, known), path)
            except (BpaError, NotImplementedError):
                continue
            result[path.read_bytes()] = None
    return list(result)


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
    lines = (GOLDEN / "answers.jsonl").read_text("utf-8").splitlines() if name in SERVERS else ()
    bodies = [answer["body"] for answer in map(json.loads, lines) if answer["kind"] == name]
    wrapped = [{"custom_id": f"r-{k}", "response": body} for k, body in enumerate(bodies)]
    answers = ["".join(f"{json.dumps(row)}\n" for row in rows) for rows in (bodies, wrapped)]
    return [
        *((GOLDEN / file).read_bytes() for file in files.get(name, ())),
        *(text.encode() for text in answers if text),
    ]


#: In place of fields, and of bytes, of a journal.
_VALUES: list[Any] = [None, True, -1, 0, 2.5, 99, 2**70, "", "x", "first", "tie", "skip"]
_VALUES += [[], [0], [0, 1], [1, 1], [5, 1], [[0], 1], {}, {"a": 1}]
_BYTES = [b"", b"\n", b"{", b'"', b"\0", b"\xff", b"NaN", b"1e999", b"[" * 5000]


def damage_journal(content: bytes, rng: random.Random) -> bytes:
    """Return a journal with a change in one line, or in its bytes."""
    if rng.random() < 0.4:
        start = rng.randrange(len(content))
        return content[:start] + rng.choice(_BYTES) + content[start + rng.randrange(3) :]
    lines = content.splitlines(keepends=True)
    number, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    record = {"undo": rng.choice(_VALUES)} if rng.random() < 0.2 else json.loads(lines[number])
    record[rng.choice([*record, "ratings", "correction"])] = rng.choice(_VALUES)
    lines[number] = json.dumps(rng.choice([record, rng.choice(_VALUES)])).encode() + b"\n"
    lines[other : other + rng.randrange(2)] = [lines[rng.randrange(len(lines))]] * rng.randrange(3)
    return b"".join(lines)

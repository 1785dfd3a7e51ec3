"""What `bpa lists` prints is what `bpa adapt` uses, in every registered format.

Each format has a file here that is not written by the package, so that ids, texts, features,
references, sources and gains are compared with what was written, and not with another reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import run, succeed

from bpa_ppl import NBest, adapting, describe, from_lists, gains
from bpa_ppl.errors import UsageError
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.metrics.gains import resolve
from bpa_ppl.sampling.observations import Compared, Scored

#: The candidates of two lists with their scores, multiples of ¼ below 0; ids, sources, references.
TEXTS = [['the "no" cat', "a,b = 12", "café -1.5"], ["日本 NA x=1", "the cat", "0"]]
VALUES = [[(-0.5, -1.0), (-3.25, -0.25), (-1.0, -2.0)], [(-0.75, -1.5), (-9.0, -4.0), (-2.5, -0.5)]]
IDS, SOURCES, REFERENCES = [1, 4], ["le chat", "日本"], ["the café 12", "the NA cat"]
ROWS = [
    {
        "id": IDS[s],
        "reference": REFERENCES[s],
        "source": SOURCES[s],
        "text": TEXTS[s][n],
        "LM0": VALUES[s][n][0],
        "W0": VALUES[s][n][1],
    }
    for s in range(2)
    for n in range(3)
]
RANKS = [1, 2, 3] * 2


class File(NamedTuple):
    """How a file is read.

    Attributes:
        format: by which the file is read; "auto" if it is detected.
        names: of the features.
        values: of the features of a candidate, from its two scores.
        whole: whether the file has sources and references.
        named: whether the ids are texts, `u` and the integer.
    """

    format: str = "auto"
    names: tuple[str, ...] = ("LM0", "W0")
    values: Callable[[float, float], tuple[float, ...]] = lambda a, b: (a, b)
    whole: bool = False
    named: bool = False


TOKENS = ("logprob.sum", "logprob.mean", "logprob.min", "length")
FILES = {
    "fairseq": File(
        "fairseq",
        ("score", *TOKENS),
        lambda a, b: ((a + b) / 2, a + b, (a + b) / 2, min(a, b), 2.0),
        whole=True,
    ),
    "openai": File(
        names=(*TOKENS, "count"),
        values=lambda a, b: (a + b, (a + b) / 2, min(a, b), 2.0, 1.0),
        named=True,
    ),
    "jsonl": File(whole=True, named=True),
    "tsv": File(whole=True),
    "csv": File(whole=True),
    "parquet": File(whole=True),
    "plain": File("plain:list_size=3,scores=scores"),
    "kaldi": File("kaldi:score=true,scores=W0", ("score", "W0"), named=True),
    "espnet": File(names=("score", "tokens"), values=lambda a, b: (a, -4 * b), named=True),
    "marian": File(names=("F0", "F1")),
    "moses": File(),
}
#: A line of each candidate, where a format has one.
LINES = {
    "moses": "{id} ||| {text} ||| LM0= {LM0} W0= {W0} ||| {total}",
    "marian": "{id} ||| {text} ||| F0= {LM0} F1= {W0} ||| {LM0}",
    "tsv": "{id}\t{reference}\t{source}\t{text}\t{LM0}\t{W0}",
    "plain": "{text}",
    "kaldi": "u{id}-{rank} {LM0} {text}",
    "fairseq": "H-{id}\t{mean}\tsub@@ {text}\nD-{id}\t{mean}\t{text}\nP-{id}\t{LM0} {W0}",
}
HEADERS = {
    "tsv": ["\t".join(ROWS[0])],
    "fairseq": [
        *("INFO | log", *(f"S-{i}\t{text}" for i, text in zip(IDS, SOURCES, strict=True))),
        *(f"T-{i}\t{text}" for i, text in zip(IDS, REFERENCES, strict=True)),
    ],
}


def write_lines(path: str | Path, lines: list[str]) -> None:
    Path(path).write_text("\n".join([*lines, ""]))


def write_lists(name: str) -> None:
    """Write the lists in a format to `lists`, and scores apart where it has them there."""
    if name == "csv":
        table = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
        quoted = [[str(value).replace('"', '""') for value in row] for row in table]
        text = "".join('"' + '","'.join(row) + '"\r\n' for row in quoted)
        Path("lists").write_bytes(b"\xef\xbb\xbf" + text.encode())
    elif name == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), "lists", row_group_size=2)
    elif name == "espnet":
        for row, rank in zip(ROWS, RANKS, strict=True):
            folder = Path("lists", f"{rank}best_recog")
            folder.mkdir(parents=True, exist_ok=True)
            tokens = " ".join(["t"] * int(-4 * row["W0"]))
            cells = {"text": row["text"], "score": f"tensor({row['LM0']})", "token": tokens}
            for file, cell in cells.items():
                with (folder / file).open("a") as stream:
                    print(f"u{row['id']}", cell, file=stream)
    elif name in ("jsonl", "openai"):
        write_lines("lists", [json.dumps(record_of(name, s)) for s in range(2)])
    else:
        lines = [
            LINES[name].format(
                **row, rank=rank, total=row["LM0"] + row["W0"], mean=(row["LM0"] + row["W0"]) / 2
            )
            for row, rank in zip(ROWS, RANKS, strict=True)
        ]
        write_lines("lists", HEADERS.get(name, []) + lines)
        write_lines("scores", ["LM0 W0", *(f"{row['LM0']} {row['W0']}" for row in ROWS)])
        scores = [f"u{row['id']}-{n} {row['W0']}" for row, n in zip(ROWS, RANKS, strict=True)]
        write_lines("W0", scores[::-1])


def record_of(name: str, s: int) -> dict[str, Any]:
    """Return a list as a record of JSON lines, or as a response to a request."""
    pairs = list(zip(TEXTS[s], VALUES[s], strict=True))
    if name == "jsonl":
        candidates = [{"text": text, "LM0": a, "W0": b} for text, (a, b) in pairs]
        texts = {"source": SOURCES[s], "references": [REFERENCES[s]]}
        return {"id": f"u{IDS[s]}", **texts, "candidates": candidates}
    choices = [
        {
            "finish_reason": "stop",
            "message": {"content": text},
            "logprobs": {"content": [{"token": "t", "logprob": v} for v in values]},
        }
        for text, values in pairs
    ]
    response = {"status_code": 200, "body": {"model": "m", "choices": choices}}
    return {"custom_id": f"u{IDS[s]}", "response": response}


class Captured(UsageError):
    """Ends `adapt` when the lists are observed."""


def observed_by_adapt(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Scored | Compared:
    """Return what `bpa adapt` tabulates."""
    found: list[Scored | Compared] = []
    observe = adapting.observe

    def capture(*args: Any, **named: Any) -> Scored | Compared:
        found.append(observe(*args, **named))
        raise Captured("observed")

    with monkeypatch.context() as patch:
        patch.setattr(adapting, "observe", capture)
        done = run("adapt", *arguments, "-w", "none", "-o", "p.nc", "--sampler", "map", "-q")
    assert len(found) == 1, done.err
    return found[0]


def test_every_format_has_a_file() -> None:
    assert set(FILES) == set(NBEST_FORMATS)


@pytest.mark.parametrize("name", FILES)
def test_what_is_printed_is_what_is_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With references as lines, as lines with ids, as objects, or in the file of the lists."""
    monkeypatch.chdir(tmp_path)
    write_lists(name)
    file = FILES[name]
    ids = [0, 1] if name == "plain" else IDS
    labels = [f"u{i}" if file.named else f"{i}" for i in ids]
    expected = from_lists(
        TEXTS,
        [[file.values(*pair) for pair in pairs] for pairs in VALUES],
        file.names,
        references=REFERENCES,
        sources=SOURCES if file.whole else None,
        sentence_ids=None if file.named else ids,
        sentence_extras={"id": labels} if file.named else None,
    )
    if not file.named or name == "openai":  # the numbers in the ids are those of lines
        lines = ["filler"] * (ids[-1] + 1)
        lines[ids[0]], lines[ids[1]] = REFERENCES
        write_lines("lines", lines)
    else:
        write_lines("lines", REFERENCES)
    own = list(zip(labels, REFERENCES, strict=True))[::-1]
    write_lines("ids", [f"{i}\t{text}" for i, text in own])
    write_lines("objects", [json.dumps({"id": i, "reference": text}) for i, text in own])
    for references, gain in {"lines": "ter", "ids": "chrf", "objects": file.names[-1]}.items():
        assert_read(monkeypatch, name, expected, gain, "-r", references)
    if file.whole:
        assert_read(monkeypatch, name, expected, "ter")


def assert_read(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: NBest, gain: str, *references: str
) -> None:
    """Assert that `bpa lists` describes, and `bpa adapt` uses, the expected lists."""
    arguments = ("lists", "--format", FILES[name].format, *references, "--gain", gain)
    printed = json.loads(succeed("lists", *arguments, "--json").out)
    described = json.loads(json.dumps(describe(expected, gain).as_dict()))
    assert printed.pop("formats") == [name]
    different = ("origin", "plan", "warnings", "of_sentences", "missing_ids", "texts")
    # Totals, which not every format has, decide between equal oracles.
    for field in printed.keys() - set(different):
        assert printed[field] == described[field], field

    used = observed_by_adapt(monkeypatch, *arguments)
    lists = used.lists
    features = [name for name in expected.feature_names if name != gain]
    assert [c["name"] for c in printed["columns"] if c["kind"] == "feature"] == features
    assert lists.feature_names == tuple(features)
    assert lists.ids == expected.ids
    assert [lists.texts(s) for s in range(len(lists))] == TEXTS
    columns = [expected.feature_names.index(feature) for feature in features]
    assert lists.features.tolist() == expected.features[:, columns].tolist()
    assert lists.references == expected.references
    assert lists.sources == expected.sources
    assert used.gain is not None
    assert used.gain.key == resolve(gain, expected).key == printed["plan"]["gain"]
    assert len(lists) == printed["plan"]["judged"]
    known = gains(expected, gain)
    assert used.gains is None or used.gains.tolist() == known.tolist()
    first = expected.offsets[:-1]
    assert known[first + used.oracles.index].tolist() == np.maximum.reduceat(known, first).tolist()

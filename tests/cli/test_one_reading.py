"""What `bpa lists` prints is what `bpa adapt` uses, compared with what was written to the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import run, succeed

from bpa_ppl import NBest, UsageError, describe, from_lists
from bpa_ppl.adapting import adapt as adapting
from bpa_ppl.extending import Observed, gains
from bpa_ppl.gains.gains import resolve

#: The candidates of two lists with their scores, multiples of ¼ below 0; ids, sources, references.
TEXTS = [['the "no" cat', "a,b = 12", "café -1.5"], ["日本 NA x=1", "the cat", "0"]]
VALUES = [[(-0.5, -1.0), (-3.25, -0.25), (-1.0, -2.0)], [(-0.75, -1.5), (-9.0, -4.0), (-2.5, -0.5)]]
IDS, SOURCES, REFERENCES = [1, 4], ["le chat", "日本"], ["the café 12", "the NA cat"]
LISTS = [
    (IDS[s], SOURCES[s], REFERENCES[s], list(zip(TEXTS[s], VALUES[s], strict=True)))
    for s in range(2)
]


def write_lines(path: str, lines: list[str]) -> None:
    Path(path).write_text("\n".join([*lines, ""]), "utf-8")


def write_csv() -> None:
    """Write everything, with quoted cells as spreadsheets write them."""
    rows: list[tuple[Any, ...]] = [("id", "reference", "source", "text", "LM0", "W0")]
    rows += [
        (f"{i}", ref, source, text, *of) for i, source, ref, pairs in LISTS for text, of in pairs
    ]
    quoted = [[str(cell).replace('"', '""') for cell in row] for row in rows]
    text = "".join('"' + '","'.join(row) + '"\r\n' for row in quoted)
    Path("lists").write_bytes(b"\xef\xbb\xbf" + text.encode())


def write_jsonl() -> None:
    """Write everything; the ids are texts."""
    records = [
        {"id": f"u{i}", "source": source, "references": [ref]}
        | {"candidates": [{"text": text, "LM0": a, "W0": b} for text, (a, b) in pairs]}
        for i, source, ref, pairs in LISTS
    ]
    write_lines("lists", [json.dumps(record) for record in records])


def write_kaldi() -> None:
    """Write words after one score, and the other score to a file, in another order."""
    rows = [
        (f"u{i}-{n}", text, *values)
        for i, _, _, pairs in LISTS
        for n, (text, values) in enumerate(pairs, 1)
    ]
    write_lines("lists", [f"{key} {a} {text}" for key, text, a, _ in rows])
    write_lines("W0", [f"{key} {b}" for key, _, _, b in rows[::-1]])


#: What writes `lists`, the settings to read it, the names of its two features, and whether it has
#: sources and references, and ids that are texts.
FILES: dict[str, tuple[Callable[[], None], str, tuple[str, str], bool, bool]] = {
    "csv": (write_csv, "auto", ("LM0", "W0"), True, False),
    "jsonl": (write_jsonl, "auto", ("LM0", "W0"), True, True),
    "kaldi": (write_kaldi, "kaldi:score=true,scores=W0", ("score", "W0"), False, True),
}


class Captured(UsageError):
    """Ends `adapt` when the lists are observed."""


def observed_by_adapt(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Observed:
    """Return what `bpa adapt` tabulates."""
    found: list[Observed] = []
    observe = adapting.observe

    def capture(*args: Any, **named: Any) -> Observed:
        found.append(observe(*args, **named))
        raise Captured("observed")

    with monkeypatch.context() as patch:
        patch.setattr(adapting, "observe", capture)
        done = run("adapt", *arguments, "-w", "none", "-o", "p.nc", "--sampler", "map", "-q")
    assert len(found) == 1, done.err
    return found[0]


@pytest.mark.parametrize("name", FILES)
def test_what_is_printed_is_what_is_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With references as lines, as lines with ids, as objects, or in the file of the lists."""
    monkeypatch.chdir(tmp_path)
    write, format, features, whole, named = FILES[name]
    write()
    labels = [f"u{i}" if named else f"{i}" for i in IDS]
    expected = from_lists(
        TEXTS,
        VALUES,
        features,
        references=REFERENCES,
        sources=SOURCES if whole else None,
        sentence_ids=None if named else IDS,
        sentence_extras={"id": labels} if named else None,
    )
    declared = ("--features", *features) if whole else ()
    filled = ["filler", REFERENCES[0], "filler", "filler", REFERENCES[1]]
    write_lines("lines", REFERENCES if named else filled)
    own = list(zip(labels, REFERENCES, strict=True))[::-1]
    write_lines("ids.tsv", ["id\treference", *(f"{i}\t{text}" for i, text in own)])
    write_lines("objects.jsonl", [json.dumps({"id": i, "reference": text}) for i, text in own])
    for references, gain in {"lines": "ter", "ids.tsv": "chrf", "objects.jsonl": "W0"}.items():
        arguments = ("lists", *declared, "--format", format, "--gain", gain)
        assert_read(monkeypatch, name, expected, gain, *arguments, "-r", references)
    if whole:
        assert_read(monkeypatch, name, expected, "ter", "lists", *declared, "--gain", "ter")


def assert_read(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: NBest, gain: str, *arguments: str
) -> None:
    """Assert that `bpa lists` describes, and `bpa adapt` uses, the expected lists."""
    printed = json.loads(succeed("lists", *arguments, "--json").out)
    described = json.loads(json.dumps(describe(expected, gain).as_dict()))
    assert printed.pop("formats") == [name]
    assert printed.pop("command").startswith(f"bpa adapt {arguments[0]} ")
    for field in printed.keys() - {"origin", "warnings", "facts"}:
        assert printed[field] == described[field], field

    used = observed_by_adapt(monkeypatch, *arguments)
    lists = used.lists
    features = [name for name in expected.feature_names if name != gain]
    assert [c["name"] for c in printed["columns"] if c["kind"] == "feature"] == features
    assert lists.feature_names == tuple(features)
    assert (lists.ids, lists.sources) == (expected.ids, expected.sources)
    assert [lists.texts(s) for s in range(len(lists))] == TEXTS
    columns = [expected.feature_names.index(feature) for feature in features]
    assert lists.features.tolist() == expected.features[:, columns].tolist()
    assert lists.references == expected.references
    assert used.gain is not None
    assert used.gain.key == resolve(gain, expected).key == printed["gain"]
    assert f"{printed['gain']} is known in {len(lists)} of" in printed["facts"][-1]
    known = gains(expected, gain)
    assert used.gains is None or used.gains.tolist() == known.tolist()
    first = expected.offsets[:-1]
    assert known[first + used.oracles.index].tolist() == np.maximum.reduceat(known, first).tolist()

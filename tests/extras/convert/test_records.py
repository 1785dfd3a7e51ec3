"""Records in files: where they begin, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.extras.convert import lmeval
from bpa_ppl.extras.convert.records import read_json

ROWS = [{"id": 0, "text": "a\n[é]"}, {"id": 1, "of": [1, {"x": 2}]}]


def places(path: Path) -> list[tuple[object, int | None]]:
    return [(record.value, record.line) for record in read_json(path)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n".join(map(json.dumps, ROWS)), (1, 2)),
        ("\n\n".join(map(json.dumps, ROWS)) + "\n", (1, 3)),
        (json.dumps(ROWS), (1, 1)),
        (json.dumps(ROWS, indent=1), (None, None)),
        ("[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n", (None, None)),
        ("\n".join(json.dumps([row]) for row in ROWS), (1, 2)),
    ],
)
def test_records_and_their_lines(
    tmp_path: Path, text: str, lines: tuple[int | None, int | None]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, "utf-8")
    expected = list(zip(ROWS, lines, strict=True))
    assert places(path) == expected


@pytest.mark.parametrize(
    ("text", "line", "code", "shown"),
    [
        ('{"a": 1}\n{"a": ', 2, "bad-line", "not JSON"),
        ('{"a": 1}\nx', 2, "bad-line", "not JSON"),
        ('{"a": NaN}', 1, "bad-number", "NaN"),
        ('{"a": 1}\n{"a": -Infinity}', 2, "bad-number", "-Infinity"),
        ('{"a": 1e999}', 1, "bad-number", "1e999"),
        ('{"a": "\\ud800"}', 1, "bad-encoding", "surrogate"),
        ('[{"a": 1}\n{"a": 2}]', 2, "bad-line", "not JSON: Expecting ','"),
        ('[{"a": 1},\n]', 2, "bad-line", "not JSON"),
        ('[{"a": 1},\n', 1, "bad-line", "not JSON"),
        ('{\n "a": 1\n}\n{\n "a": 2\n}', 4, "bad-line", "not JSON: Extra data"),
        ('{"a":\n 1\n x}', 3, "bad-line", "not JSON"),
        ("[" * 100_000, 1, "bad-line", "nest too deeply"),
        ("1" * 5000, 1, "bad-line", "digits"),
    ],
)
def test_text_that_is_not_json(tmp_path: Path, text: str, line: int, code: str, shown: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with raises(DataError, code, line=line, match=shown) as caught:
        places(path)
    assert caught.value.path == str(path)


def test_there_must_be_records() -> None:
    with raises(DataError, "no-data", parameter="records"):
        lmeval([])

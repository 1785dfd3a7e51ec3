"""Every line that a message tells the user to type reads the file."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.advice import find_lines, helps
from support.damage import FORMATS, edited, random_edits, samples

from bpa_ppl import BpaError, DataError, from_records, read_nbest

FIELD = Path(__file__).resolve().parent / "field"
FILES = sorted(path for path in FIELD.rglob("*") if path.is_file())
PAIRS = [{"q": "a", "good": "b", "bad": "c", "won": winner} for winner in ("model_a", "tie")]
ROWS = [{"seg": n // 2, "hyp": f"t{n}", "lm": n} for n in range(4)]
#: Records, how they are read, and the arguments that the message names.
NAMED: list[tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]] = [
    (
        ROWS,
        {},
        [
            {"format": "jsonl:id=COLUMN,text=COLUMN"},
        ],
    ),
    (
        [{"id": n // 2, "text": "a", "lm": "x" if n == 3 else n} for n in range(4)],
        {"features": "lm"},
        [{"exclude": ["lm"]}, {"bad": "drop"}],
    ),
    (
        [{"id": n // 2, "text": "a", "lm": None if n else 1, "qe": n} for n in range(4)],
        {"features": ["lm", "qe"]},
        [{"missing": {"lm": 0.0}}, {"exclude": ["lm"]}],
    ),
    (
        [{"id": n // 2, "text": "a", "lm": "x", "qe": 2e80} for n in range(4)],
        {"features": ["lm", "qe"]},
        [],
    ),
    (
        [{"id": n, "text": ["a", "b"]} for n in range(2)],
        {},
        [{"format": "jsonl:candidates=text"}],
    ),
    (
        [
            {"prompt": "q", "request_id": f"r{n}", "out": [{"text": "a"}, {"text": "b"}]}
            for n in (0, 1)
        ],
        {},
        [{"format": "jsonl:candidates=out,source=prompt,id=request_id"}],
    ),
    (
        [{"prompt": "q", "run_id": "one", "out": [{"text": "a"}, {"text": "b"}]} for n in (0, 1)],
        {},
        [{"format": "jsonl:candidates=out,source=prompt"}],
    ),
    ([{"messages": [{"role": "user", "content": "a"}]}] * 2, {}, []),
    ([{"data": [{"id": 0, "text": "a"}, {"id": 0, "text": "b"}]}], {}, []),
    (
        PAIRS,
        {"format": "jsonl:response_a=good,response_b=bad"},
        [{"format": "jsonl:response_a=good,response_b=bad,winner=COLUMN"}],
    ),
    (
        [{"id": n, "candidates": [{"text": "a", "lm": 1.0}]} for n in range(2)],
        {"format": "jsonl:first_id=1"},
        [{"format": "jsonl:first_id=0"}],
    ),
]


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.parametrize(("rows", "options", "expected"), NAMED)
def test_what_a_message_names(
    rows: list[dict[str, Any]], options: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    read = partial(read_nbest, list(map(json.dumps, rows)))
    with pytest.raises(DataError) as caught:
        read(**options)
    lines = find_lines(caught.value.message)
    assert [
        line for line in lines if line != {"format": "jsonl:chosen=COLUMN,rejected=COLUMN"}
    ] == (expected)
    for line in lines:
        assert helps(line, partial(_read, read, options), caught.value.message)


def _read(read: Callable[..., object], options: dict[str, Any], **changes: Any) -> object:
    """Read with other arguments, of which those that exclude columns are added."""
    return read(**{**options, **changes})


def _find_void(read: Callable[..., object]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the lines that a message of a reader names, and the message if one does not help."""
    try:
        read()
    except BpaError as error:
        message = error.message
        lines = find_lines(message)
        return lines, [message for line in lines if not helps(line, read, message)]
    return [], []


def test_records_in_memory() -> None:
    rows = [{"id": n // 2, "text": "a", "lm": "x" if n == 3 else n} for n in range(4)]
    with pytest.raises(DataError) as caught:
        from_records(rows, features="lm")
    assert find_lines(caught.value.message) == [{"exclude": ["lm"]}, {"bad": "drop"}]
    with pytest.raises(DataError, match=r"counted from 0 \(first_id=0\)"):
        from_records(rows, first_id=1)


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FIELD)))
def test_files_of_users(path: Path) -> None:
    for features in (None, "*"):
        assert not _find_void(partial(read_nbest, path, features=features))[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_damaged_files() -> None:
    """Of damaged files of every format, most of which cannot be read by any option."""
    rng, tried = random.Random(20), Counter[str]()
    for number in range(4000):
        name = FORMATS[number % len(FORMATS)]
        content = edited(rng.choice(samples(name)), random_edits(rng))
        format = "plain:list_size=2" if name == "plain" else name
        for options in ({"format": format}, {}):
            lines, void = _find_void(partial(_read, partial(read_nbest, content), options))
            assert not void
            tried.update(name for line in lines for name in line)
    assert tried["bad"] > 50
    assert tried["format"] > 20

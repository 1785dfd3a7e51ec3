"""Files that are read: their format, their libraries, real lists, and notes on references."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl import from_records, iter_nbest, read_nbest
from bpa_ppl.errors import DataError
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.formats.reading import find_nearest_format

# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("0 ||| a ||| F0= -1 F1= -2 ||| -3", "marian"),
        ("0 ||| a ||| 0-0 ||| F0= -1 ||| -3\r", "marian"),
        ("0 ||| a ||| F1= -1 F0= -2 ||| -3", "moses"),
        (f"0 ||| a ||| F{'1' * 5000}= -1 ||| -3", "moses"),
        ("0 ||| a ||| Glue=1 ||| -1 ||| 0-0", "moses"),
        ("a-1 -1 THE CAT", "kaldi"),
        ('{"object": "response", "output": []}', "openai"),
        ('{"custom_id": "1", "error": {}}', "openai"),
        ('{"custom_id": "1", "body": {"messages": []}}', "openai"),
        ('{"a": ' * 9999, None),
        ('{"chosen": "a", "rejected": "b"}', "jsonl"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_first_line_shows_the_format(line: str, name: str | None) -> None:
    detects = (n for n, kind in NBEST_FORMATS.items() if kind().detect(line.encode()))
    assert next(detects, None) == name


@pytest.mark.parametrize(
    ("name", "first", "nearest", "named"),
    [
        ("a.csv", b"segment,text,lm", "csv", "id"),
        ("a.txt", b"id\thypothesis\tlm", "tsv", "text"),
        ("a.jsonl", b'{"model": "m", "hypotheses": ["a"]}', "jsonl", "candidates"),
        ("a.jsonl", b'{"custom_id": "1", "output": []}', "openai", "response"),
        ("a.jsonl", b'data: {"choices": [{"delta": {}}]}', "openai", "stream"),
        ("a.json", b"{", "jsonl", "jq -c ."),
        ("words", b"utt-1 a cat", "kaldi", "no scores"),
        ("a.nbest", b"0 | a cat | LM0= -1 | -1", "moses", "` ||| `"),
        ("a.txt", b"a cat sat, at last.", "plain", "list_size"),
    ],
)
def test_the_nearest_format_of_an_unknown_file_is_named(
    tmp_path: Path, name: str, first: bytes, nearest: str, named: str
) -> None:
    found, problem = find_nearest_format(first, Path(name).suffix)
    assert found == nearest
    assert named in problem.partition("(")[0]
    (tmp_path / name).write_bytes(first + b"\n")
    with raises(DataError, "unknown-format", parameter="format", line=1, match=re.escape(problem)):
        read_nbest(tmp_path / name)


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("fairseq", "2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model(s)"),
        ("csv", "id,text,lm"),
        ("csv", "model_a,model_b,winner"),
    ],
)
def test_a_file_without_lists(format: str, content: str) -> None:
    with raises(DataError, "no-data"):
        read_nbest([content], format=format)


# --- lists ---------------------------------------------------------------------------------------


def line(identifier: int, text: str = "a cat", value: float = -1.5) -> str:
    return f"{identifier} ||| {text} ||| LM0= {value} ||| {value}"


def test_reading_and_metrics_need_no_large_library(demo_data: Path, tmp_path: Path) -> None:
    csv, plain, scores = (tmp_path / name for name in ("lists.csv", "lists", "scores"))
    csv.write_text("id,text,lm\n" + "0,a cat,-1.5\n" * 100)
    plain.write_text("a cat\n" * 100)
    scores.write_text("lm\n" + "-1.5\n" * 100)
    code = (
        "import sys, bpa_ppl as bpa, bpa_ppl.experiments.tuning.tuner\n"
        "bpa.TER(), bpa.BLEU(), bpa.CHRF(), bpa.read_nbest(sys.argv[1])\n"
        "print('joblib' in sys.modules)\n"
        f"lists = bpa.read_nbest({str(csv)!r})\n"
        f"other = bpa.read_nbest({str(plain)!r}, format='plain:list_size=100,scores={scores}')\n"
        "assert (lists.features == other.features).all() and lists.strings == other.strings\n"
        "large = 'jax', 'arviz', 'numba', 'matplotlib', 'scipy', 'pandas', 'sacrebleu'\n"
        "print([name for name in large if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, demo_data / "leaflet.nbest100.gz"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "False\n[]\n"


@pytest.mark.parametrize("line", ["{n} ||| text {n} ||| lm= 1", '{{"id":{n},"text":"text {n}"}}'])
def test_parts_of_a_stream_have_their_own_texts_alone(line: str) -> None:
    parts = list(iter_nbest([line.format(n=n) for n in range(4)], chunk=2))
    assert [part.strings for part in parts] == [("text 0", "text 1"), ("text 2", "text 3")]


# --- messages about records in memory ------------------------------------------------------------


def test_a_text_among_numbers_is_named_with_a_number() -> None:
    """Either of them may be the wrong one; data in memory have records, and no file."""
    candidates = [{"text": "a", "lm": "high"}, {"text": "b", "lm": 2}]
    records = [{"id": 0, "candidates": candidates[1:]}, {"id": 1, "candidates": candidates}]
    match = r"^record 2: candidates\[0\].lm is 'high'"
    with raises(DataError, "bad-data", parameter="bad", line=2, match=match):
        from_records(records)
    match = r"^record 1: candidates\[1\].lm is 2.* candidates\[0\].lm of record 1 is 'high'"
    with raises(DataError, "bad-data", line=1, match=match):
        from_records(records[1:])

"""Files that are read: their format, their libraries, real lists, and notes on references."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.raising import raises
from support.user_files import write_frame

from bpa_ppl import iter_nbest, read_nbest
from bpa_ppl.errors import DataError, UsageError, escape_controls
from bpa_ppl.formats.format import NBEST_FORMATS

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
        ('{"object": "response", "output": []}', None),
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


#: Files that no format detects: the name, the first line, and what the error shows.
UNKNOWN = [
    ("a.txt", "a cat sat, at last.", "the first line, 'a cat sat, at last.', is of no known"),
    ("a.txt", "id\thypothesis\tlm", "is of no known format (fairseq, openai, jsonl: an object on"),
    ("a.nbest", "0 | a cat | LM0= -1 | -1", "name the format if it is one of these (--format NAME"),
    ("a.jsonl", '{"model": "m", "hypotheses": []}', "(the fields are 'model, hypotheses'): name "),
    ("a.json", '{"a": {"b": 1}}', "(the fields are 'a.b'): name them in the format, jsonl:cand"),
    (
        "a.jsonl",
        '{"text": "a"}',
        "jsonl:id=NAME,text=NAME, jsonl:chosen=NAME,rejected=NAME or jsonl:response_a=",
    ),
]


@pytest.mark.parametrize(("name", "first", "shown"), UNKNOWN)
def test_the_error_of_an_unknown_file(tmp_path: Path, name: str, first: str, shown: str) -> None:
    (tmp_path / name).write_text(first + "\n")
    with raises(DataError, "unknown-format", parameter="format", line=1, match=re.escape(shown)):
        read_nbest(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("names", [("segment", "output"), ("id", "hyp"), ("seg", "text")])
def test_the_setting_that_names_missing_columns(
    tmp_path: Path, ending: str, names: tuple[str, str]
) -> None:
    """What the error says, with the names of the columns in place of NAME, reads the file."""
    table = pd.DataFrame({names[0]: ["x", "x"], names[1]: ["a", "b"], "lm": [1.5, 2.5]})
    write_frame(table, path := tmp_path / f"lists.{ending}")
    with pytest.raises(DataError, match=re.escape(f"'{', '.join(table)}'")) as caught:
        read_nbest(path)
    error = caught.value
    assert (error.parameter, error.line) == ("format", 1)
    setting = re.findall(rf"{ending}:[\w=,]*(?:id|text)=NAME", error.message)[0]
    for role, name in zip(("id", "text"), names, strict=True):
        setting = setting.replace(f"{role}=NAME", f"{role}={name}")
    lists = read_nbest(path, format=setting)
    assert (lists.ids, lists.texts(0)) == (("x",), ["a", "b"])
    for wrong in (f"{ending}:id=no", f"{ending}:id=seg,text=no"):
        with pytest.raises(DataError, match=r"no columns? .*no"):
            read_nbest(path, format=wrong)


def test_an_ending_names_the_format_of_a_table(tmp_path: Path) -> None:
    """Its first line may be blank, or have one column, which cannot be detected."""
    (tmp_path / "a.csv").write_text("\nid,text,lm\n0,a,1\n")
    assert len(read_nbest(tmp_path / "a.csv")) == 1
    (tmp_path / "b.csv").write_text("text\na\n")
    with raises(DataError, "missing-column", parameter="format", line=1, match="csv:id=NAME"):
        read_nbest(tmp_path / "b.csv")


# --- lists ---------------------------------------------------------------------------------------


def line(identifier: int, text: str = "a cat", value: float = -1.5) -> str:
    return f"{identifier} ||| {text} ||| LM0= {value} ||| {value}"


def test_reading_and_metrics_need_no_large_library(demo_data: Path, tmp_path: Path) -> None:
    tuners = "bpa_ppl.extras.studies.tuning.tuner"
    pytest.importorskip(tuners)
    csv, plain, scores = (tmp_path / name for name in ("lists.csv", "lists", "scores"))
    csv.write_text("id,text,lm,by\n" + "0,a cat,-1.5,x\n0,a cat,-1.5,\n" * 50)
    plain.write_text("a cat\n" * 100)
    scores.write_text("lm\n" + "-1.5\n" * 100)
    code = (
        f"import sys, bpa_ppl as bpa, {tuners}\n"
        "from bpa_ppl.gains.metric import GAINS\n"
        "[GAINS.resolve(name) for name in ('ter', 'bleu', 'chrf')], bpa.read_nbest(sys.argv[1])\n"
        "print('joblib' in sys.modules)\n"
        f"lists = bpa.read_nbest({str(csv)!r}, features='lm')\n"
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


def test_errors_name_the_input(tmp_path: Path) -> None:
    with raises(DataError, "missing-file", match="nowhere"):
        read_nbest(tmp_path / "nowhere")
    with raises(DataError, "cannot-read", match="folder"):
        read_nbest(tmp_path)
    for source, name in ((io.StringIO("0 ||| a\n"), "<file object>"), (["0 ||| a"], "<lines>")):
        with raises(DataError, "bad-line", line=1, match=name):
            read_nbest(source, format="moses")
    with raises(DataError, "bad-encoding", line=1):
        read_nbest(["0 ||| \ud800 ||| LM0= 1"])
    for odd in (3, [None]):
        with raises(UsageError, "wrong-type", parameter="path"):
            read_nbest(odd)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("bad", "ignore"), ("chunk", 0)])
def test_options_are_checked_at_once(name: str, value: Any) -> None:
    with raises(UsageError, "unknown-name" if name == "bad" else None, parameter=name):
        iter_nbest(["0 ||| a ||| LM0= 1"], **{name: value})


# --- input that no decoder means ------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "0 ||| a ||| LM= 1." + "0" * 200_000 + " ||| 1",
        "0 ||| a ||| " + "a=" * 100_000,
        "S-" + "1" * 200_000 + "\ta",
        "[1," * 100_000,
    ],
    ids=["Moses", "names", "fairseq", "JSON"],
)
def test_detection_takes_linear_time(line: str) -> None:
    """In quadratic time one of these lines would take minutes."""
    with suppress(DataError):
        assert len(read_nbest([line]).features) == 1


@pytest.mark.parametrize(
    "line",
    [
        "0 ||| a ||| LM0= {} ||| -1",
        "{} ||| a ||| LM0= 1 ||| -1",
        "0 ||| a ||| LM0= 1 {}= 1 ||| -1",
        "0 ||| a ||| LM0= 1 ||| {}",
    ],
    ids=["value", "id", "label", "total"],
)
def test_a_message_repeats_little_of_a_huge_token(line: str, tmp_path: Path) -> None:
    path = tmp_path / "nbest"
    path.write_text("0 ||| a ||| LM0= 1 ||| -1\n" + line.format("x1" * 500_000) + "\n")
    with pytest.raises(DataError) as refused:
        read_nbest(path)
    assert len(str(refused.value)) < len(str(path)) + 250
    assert "x1" * 41 not in str(refused.value)


def test_a_message_is_one_line_whatever_it_repeats() -> None:
    message = str(DataError("no \x1b[2J\n\r\x00 name " + "x" * 50_000 + "y " * 50_000))
    assert escape_controls(message) == message
    assert len(message) < 2100
    assert "\\x1b[2J\\n" in message
    assert "\\n" in str(DataError("wrong", "a\nb", 3))

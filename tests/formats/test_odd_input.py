"""Input that no decoder means: refused with file and line, or told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from raising import raises

from bpa_ppl import BpaWarning, DataError, read_nbest

LINE = "{} ||| {} ||| LM0= -1.5 ||| -1.5\n"
TELLING = pytest.mark.filterwarnings("error::bpa_ppl.errors.BpaWarning")


def moses(path: Path, *rows: tuple[int, str]) -> Path:
    path.write_text("".join(LINE.format(*row) for row in rows), newline="")
    return path


@TELLING
def test_references_of_which_all_are_blank_are_refused_and_some_are_told(tmp_path: Path) -> None:
    path = moses(tmp_path / "nbest", (0, "a"), (1, "b"))
    (tmp_path / "ref").write_text("\n \n")
    with raises(DataError, "missing-references", parameter="references"):
        read_nbest(path, references=tmp_path / "ref")
    (tmp_path / "ref").write_text("\nb\n")
    with pytest.warns(BpaWarning, match="1 sentence with a blank reference, the first of id 0"):
        read_nbest(path, references=tmp_path / "ref")


DEEP = "[" * 100_000 + "]" * 100_000
ODD = {"deep": DEEP, "digits": "1" + "0" * 5000, "infinite": "Infinity", "overflow": "1e999"}


@pytest.mark.parametrize("text", ["{}", '{{"id": 0, "text": "a", "lm": {}}}'], ids=["all", "value"])
@pytest.mark.parametrize("odd", ODD)
def test_odd_values_of_json_lists(tmp_path: Path, odd: str, text: str) -> None:
    for before in ("", '{"id": 0, "text": "b", "lm": 1}\n'):
        (tmp_path / "lists").write_text(before + text.format(ODD[odd]) + "\n")
        with pytest.raises(DataError) as refused:
            read_nbest(tmp_path / "lists", format="jsonl")
        message = str(refused.value).removeprefix(str(tmp_path / "lists"))
        assert message.startswith(f":{1 + bool(before)}: ")
        assert len(message) < 200
        assert "sys.set" not in message


@pytest.mark.parametrize(
    "line",
    [
        "0 ||| a ||| LM= 1." + "0" * 200_000 + " ||| 1",
        "0 ||| a ||| LM=" + "1" * 200_000 + "e",
        "0 ||| a ||| " + "a=" * 100_000,
        "S-" + "1" * 200_000 + "\ta",
        "0\t" * 100_000,
        "[1," * 100_000,
    ],
    ids=["Moses", "no fields", "names", "fairseq", "tabs", "JSON"],
)
def test_detection_takes_linear_time(line: str) -> None:
    """In quadratic time one of these lines would take minutes."""
    with suppress(DataError):
        assert len(read_nbest([line]).features) == 1

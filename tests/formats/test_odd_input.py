"""Input that no decoder means: refused with file and line, or told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl import BpaWarning, DataError, read_nbest
from bpa_ppl.errors import escape_controls

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

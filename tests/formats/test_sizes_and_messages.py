"""What has many names is read and written; messages stay short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import DataError, NBest, read_nbest, write_nbest
from bpa_ppl.errors import BpaError, UsageError, printable
from bpa_ppl.formats import NBEST_FORMATS

MANY = 2_000
OTHERS = ("plain", "fairseq", "openai", "kaldi", "espnet")
TEXT_FORMATS = [name for name in NBEST_FORMATS if name not in OTHERS]


@pytest.fixture(scope="module")
def wide() -> NBest:
    names = [f"f{i}.x" for i in range(MANY)]
    return NBest.from_lists([["a b", "a"]], [np.ones((2, MANY))], names, totals=[[2.0, 1.0]])


@pytest.mark.parametrize("format", TEXT_FORMATS)
def test_many_features_are_written_and_read(wide: NBest, format: str, tmp_path: Path) -> None:
    write_nbest(wide, tmp_path / "wide", format=format)
    again = read_nbest(tmp_path / "wide", format=format)
    assert set(again.feature_names) == set(wide.feature_names)


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


@pytest.mark.parametrize("kind", [DataError, UsageError])
def test_a_message_is_one_line_whatever_it_repeats(kind: type[BpaError]) -> None:
    message = str(kind("no \x1b[2J\n\r\x00 name " + "x" * 50_000 + "y " * 50_000))
    assert printable(message) == message
    assert len(message) < 2100
    assert "\\x1b[2J\\n" in message
    assert "\\n" in str(DataError("wrong", "a\nb", 3))

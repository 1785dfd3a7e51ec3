"""Moses lists with segmentations and alignments: read, and written so that they read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_content import table_content

from bpa_ppl import NBest, read_nbest, write_nbest
from bpa_ppl.errors import DataError, UsageError

GOLDEN = Path(__file__).parent / "golden"


def lists(**extras: Any) -> NBest:
    texts = [["a", "b"], [""]]
    return NBest.from_lists(
        texts, [[[1.0], [2.0]], [[3.0]]], ["LM0"], totals=[[-1, -2], [-3]], extras=extras
    )


def test_the_golden_file(tmp_path: Path) -> None:
    nbest = read_nbest(GOLDEN / "moses-positions.nbest", strict=True)
    assert nbest.sentence_ids.tolist() == [0, 1, 3]
    assert nbest.strings == ("the black cat", "the cat , black |||  of course", "", "3=3 0-0")
    assert nbest.extras == {
        "segmentation": ("0=0 1-2=1-2", "0=0 2=1 1=2-7", "", "0-1=0-1"),
        "alignment": ("0-0 1-2 2-1", "0-0 2-1 1-3", "", "0-0 1-1"),
    }
    assert nbest.feature_names[-1] == "TranslationModel0[1]"
    assert nbest.features[1].tolist()[-3:] == [-8, -1, -3.5]
    write_nbest(nbest, tmp_path / "again")
    assert table_content(read_nbest(tmp_path / "again")) == table_content(nbest)


@pytest.mark.parametrize(
    "extras",
    [
        {"segmentation": [["0=0", ""], ["1-2=0-3 5=4"]]},
        {"alignment": [["0-0", "1-1"], [""]]},
        {"alignment": [["0-0", "1-1"], [""]], "segmentation": [["", "3=3"], [""]]},
    ],
)
@pytest.mark.parametrize("totals", [True, False])
def test_they_read_back(tmp_path: Path, extras: dict[str, Any], totals: bool) -> None:
    nbest = lists(**extras) if totals else replace(lists(**extras), totals=None)
    if not totals and "segmentation" in extras and not extras["segmentation"][0][0]:
        with pytest.raises(UsageError, match=r"without totals an empty segmentation .* weights"):
            write_nbest(nbest, tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        return
    write_nbest(nbest, tmp_path / "out")
    assert table_content(read_nbest(tmp_path / "out")) == table_content(nbest)


@pytest.mark.parametrize("bad", ["0", "0=0", "0-0 ", "x", "0-0\n", 7, "0-0 ||| 1-1"])
def test_positions_that_would_not_read_back(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(DataError, match=r"the alignment .* of sentence 1 cannot be written"):
        write_nbest(lists(alignment=[["0-0", ""], [bad]]), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_other_extras_are_not_written(tmp_path: Path) -> None:
    write_nbest(lists(system=[["x", "y"], ["x"]]), tmp_path / "out")
    assert read_nbest(tmp_path / "out").extras == {}


def test_a_stream_of_blocks_keeps_them(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpa_ppl.formats.streams._BLOCK", 300)
    monkeypatch.setattr("bpa_ppl.formats.streams._CHUNK", 200)
    path = write(*(f"{i // 4} ||| a ||| LM0= 1 ||| 2 ||| {i}-{i + 1}={i}" for i in range(40)))
    assert read_nbest(path).extras["segmentation"] == tuple(f"{i}-{i + 1}={i}" for i in range(40))

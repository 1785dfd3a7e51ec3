"""Marian's lists: told from Moses', totals that nobody holds λ·h against, alignments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.table_content import table_content

from bpa_ppl import from_lists, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning
from bpa_ppl.formats.moses import Marian
from bpa_ppl.weights import check_totals

GOLDEN = Path(__file__).parent / "golden"
Write = Callable[..., Path]


def test_the_golden_file() -> None:
    with pytest.warns(BpaWarning, match="between the text and the features left out") as caught:
        nbest = read_nbest(GOLDEN / "marian.nbest")
    assert len(caught) == 1
    assert nbest.strings == ("der Hund schläft", "ein Hund ||| b", "")
    assert nbest.feature_names == ("F0", "F1")
    assert (
        nbest.features.tolist()
        == np.float32([[-0.36125, -0.402], [-2.375, -1.9e-05], [-4, -7]]).tolist()
    )
    assert nbest.extras["alignment"] == ("0-0 1-1 2-2 3-3", "0-0 1-1 3-4", "0-0")
    assert nbest.totals_normalised
    soft = read_nbest(GOLDEN / "marian-soft.nbest")
    assert soft.extras["alignment"][1] == "0.5,0.5,0 0,0,1"


def test_totals_are_not_held_against_the_weights(write: Write) -> None:
    path = write("0 ||| a b ||| F0= -4 F1= -2 ||| -2", "0 ||| a ||| F0= -3 F1= -3 ||| -3")
    with warnings.catch_warnings(action="error"):
        check_totals(read_nbest(path), [1.0, 1.0])
    for nbest in (
        read_nbest(path, format="moses"),
        read_nbest(path, format=Marian(normalised=False)),
    ):
        assert not nbest.totals_normalised
        with pytest.warns(BpaWarning, match="do not reproduce the totals"):
            check_totals(nbest, [1.0, 1.0])


def test_alignments_and_the_mark_read_back_until_totals_are_new(tmp_path: Path) -> None:
    nbest = from_lists(
        [["a b", "c ||| d"], [""]],
        [np.float32([[0.1, -0.0], [1e-30, 3]]), np.float32([[7, 1e30]])],
        ["F0", "F1"],
        totals=[[-0.1, 2], [3]],
        extras={"alignment": [["0-0", "0.5,0.5 1,0"], [""]]},
    )
    write_nbest(nbest, tmp_path / "out", format="marian")
    again = read_nbest(tmp_path / "out")
    assert table_content(again, "totals_normalised") == table_content(nbest, "totals_normalised")
    assert all(part.totals_normalised for part in iter_nbest(tmp_path / "out", chunk=1))
    write_nbest(again, tmp_path / "new", {"F0": 1, "F1": 0}, format="marian")
    assert (tmp_path / "new").read_text().endswith(" ||| 7\n")

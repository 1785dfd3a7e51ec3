"""The commands `bpa experiment` and `bpa figures`."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from bpa_ppl.cli import main


def bpa(*arguments: object) -> int:
    """Run a command in this process and return its exit code."""
    with patch.object(sys, "argv", ["bpa", *map(str, arguments)]), pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_study_figures_and_page(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = study_file.read_text("utf-8").replace('"heuristic", "map", ', "")
    study_file.write_text(text[: text.index("[sweeps")], "utf-8")
    folder = study_file.parent / "results"
    assert bpa("experiment", study_file, "-o", folder) == 0
    assert f"wrote {folder / 'results.parquet'}: run `bpa figures " in capsys.readouterr().err
    assert bpa("figures", folder, "--kind", "pdf", "-q") == 0
    assert capsys.readouterr() == ("", "")
    assert (folder / "index.html").is_file()
    assert (folder / "ter.pdf").is_file()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"mira"', '"mirra"', "'mirra'"),
        ('"nbest"', '"lists"', "lists;"),
        ("sizes = [4, 8]", "sizes = [4, 15]\nreplacement = false", "draw 15"),
    ],
)
def test_mistakes_are_reported_before_the_study(
    study_file: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, named: str
) -> None:
    study_file.write_text(study_file.read_text("utf-8").replace(old, new), "utf-8")
    folder = study_file.parent / "results"
    assert bpa("experiment", study_file, "-o", folder) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert named in output.err
    assert output.err.count("\n") == 1
    assert not folder.exists()

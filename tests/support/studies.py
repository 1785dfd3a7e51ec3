"""Studies of the small demo that are changed, run, and repeated with the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bpa_ppl import NBest
from bpa_ppl.extras.studies.results import read_results
from bpa_ppl.extras.studies.running import Material, read_material, run_study
from bpa_ppl.extras.studies.study import Cell, Study, choose_seed, draw_sentences, read_study

#: Of a study: the lists of the domain as those of another one.
DEVELOPMENT = '[development]\nnbest = "nbest"\nreferences = ["ref"]\n'


def edit_study(path: Path, *changes: tuple[str, str]) -> Study:
    """Replace the first of each text in a study file by another one, and read it."""
    text = path.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    return read_study(path)


def run_rows(study: Study, folder: Path) -> list[dict[str, Any]]:
    """Run a study, and return the rows of its results."""
    rows: list[dict[str, Any]] = read_results(run_study(study, folder).parent)[0].to_pylist()
    return rows


def draw_lists(study: Study, draw: int = 0) -> tuple[Material, NBest, int]:
    """Return the lists of the domain, the four that a draw adapts to, and its seed."""
    lists = read_material(study, study.domains[0])
    cell = Cell("leaflet", 4, draw, "", "")
    drawn = lists.adapt.select(draw_sentences(study, cell, len(lists.adapt)))
    return lists, drawn, choose_seed(study, cell)

"""The cells of a study and the samples of A."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bpa_ppl.experiments import read_study
from bpa_ppl.experiments.study import Cell, draw_sentences, seed_of, tasks

CELL = Cell("leaflet", 8, 0, "map", "")


def test_cells_are_unique_and_ordered(study_file: Path) -> None:
    cells = [task.cell for task in tasks(read_study(study_file))]
    assert len(set(cells)) == len(cells) == 3 * (5 + 2) + 3 * 5
    assert [cell[:3] for cell in cells] == sorted(cell[:3] for cell in cells)
    assert len({cell.name for cell in cells}) == len(cells)
    settings = {task.cell.setting: task.method for task in tasks(read_study(study_file))}
    assert set(settings) == {"", "prior_variance=0.01", "prior_variance=1"}
    assert settings["prior_variance=0.01"].prior_variance == 0.01


def test_samples_are_equal_for_all_methods(study_file: Path) -> None:
    study = read_study(study_file)
    drawn = draw_sentences(study, CELL, 14)
    other = CELL._replace(method="mira", setting="prior_variance=1")
    assert np.array_equal(drawn, draw_sentences(study, other, 14))
    assert seed_of(study, CELL) == seed_of(study, other)
    fewer = replace(study, methods=study.methods[:1], sizes=(8,), sweeps=())
    assert np.array_equal(drawn, draw_sentences(fewer, CELL, 14))


def test_samples_differ(study_file: Path) -> None:
    study = read_study(study_file)
    others = [CELL._replace(draw=1), CELL._replace(domain="captions")]
    drawn = [draw_sentences(study, cell, 14).tolist() for cell in (CELL, *others)]
    drawn += [draw_sentences(replace(study, seed=6), CELL, 14).tolist()]
    assert len({tuple(each) for each in drawn}) == 4
    assert len({seed_of(study, cell) for cell in (CELL, *others)}) == 3


def test_samples_are_uniform_with_replacement(study_file: Path) -> None:
    study = read_study(study_file)
    cell = CELL._replace(size=14)
    assert len(set(draw_sentences(study, cell, 14).tolist())) < 14
    cells = [CELL._replace(draw=draw) for draw in range(2000)]
    counts = np.bincount(np.concatenate([draw_sentences(study, c, 14) for c in cells]))
    expected = 2000 * 8 / 14
    # Chi-squared with 13 degrees of freedom exceeds 34.5 with probability 0.001.
    assert ((counts - expected) ** 2 / expected).sum() < 34.5

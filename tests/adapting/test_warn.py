"""Warnings about the lists of an adaptation, and lists that teach nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, NBest, from_lists
from bpa_ppl.adapting.warn import describe_totals


def test_lists_that_teach_little_are_warned_about_and_those_that_teach_nothing_refused() -> None:
    gains = {"extras": {"gain": [[1.0, 2.0]] * 3}}
    same = from_lists([["a", "b"]] * 3, [[[k], [k]] for k in (0.1, 0.2, 0.3)], ["lm"], **gains)
    with raises(DataError, "no-data", parameter="lists", match="no feature differs between the"):
        bpa.adapt(same, gain="gain", sampler="map")
    vary = from_lists([["a", "b"]] * 3, [[[0.1], [k]] for k in (0.1, 0.2, 0.3)], ["lm"], **gains)
    with pytest.warns(bpa.BpaWarning, match="one judged list teaches little"):
        bpa.adapt(vary[1:2], gain="gain", sampler="map")
    bpa.adapt(vary, gain="gain", sampler="map")


def test_totals_are_compared_within_lists(toy: NBest) -> None:
    weights = (0.5, -1.0, 0.25)
    totals = np.array([float(f"{score:.6g}") for score in toy.scores(weights)], np.float32)
    shift = np.repeat([5, -7, 0], toy.sizes).astype(np.float32)
    assert describe_totals(toy, weights) == ""  # no totals to check
    assert describe_totals(replace(toy, totals=totals + shift), weights) == ""
    wrong = describe_totals(replace(toy, totals=totals), (0.5, -1.0, 0.5))
    assert re.search(r"do not reproduce the totals of \d\d%", wrong)


def test_totals_of_marian_are_not_compared_with_the_weights() -> None:
    lines = "0 ||| a b ||| F0= -4 F1= -2 ||| -2", "0 ||| a ||| F0= -3 F1= -3 ||| -3"
    assert describe_totals(bpa.read_nbest(lines), [1.0, 1.0]) == ""
    for format in ("moses", "marian:normalised=false"):
        nbest = bpa.read_nbest(lines, format=format)
        assert not nbest.totals_normalised
        assert "do not reproduce the totals" in describe_totals(nbest, [1.0, 1.0])

"""Values that decide the spread of a column within lists."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import capture_notes, raises

import bpa_ppl as bpa
from bpa_ppl import DataError, NBest, from_lists
from bpa_ppl.gains.problems import describe_outliers

LISTS, SIZE = 40, 5
RNG = np.random.default_rng(0)
GOOD = RNG.normal(size=(LISTS * SIZE, 2))


def made(columns: np.ndarray, sizes: Any = (SIZE,) * LISTS) -> NBest:
    """Return lists with some columns as features."""
    parts = np.split(columns.reshape(sum(sizes), -1), np.cumsum(sizes)[:-1])
    names = list("ab")[: parts[0].shape[1]]
    return from_lists([["text"] * size for size in sizes], [p.tolist() for p in parts], names)


def spread(values: np.ndarray) -> float:
    """Return the standard deviation within lists of equal size; missing values do not count."""
    frame = pd.DataFrame({"list": np.repeat(np.arange(LISTS), SIZE), "value": values})
    return float(
        np.sqrt((frame.groupby("list")["value"].transform(lambda x: x - x.mean()) ** 2).mean())
    )


@pytest.mark.parametrize(
    ("value", "rows"),
    [(100, [87]), (1e4, [87]), (-1e9, [87]), (-100, [3, 87]), (1e9, [3, 87])],
)
def test_outliers_are_named_with_their_list_and_value(value: float, rows: list[int]) -> None:
    column = GOOD[:, 0].copy()
    column[rows] = value
    note = describe_outliers(made(column), "a")
    cleaned = column.copy()
    cleaned[rows] = np.nan
    found = re.match(r"the spread of a within lists is (\S+), but (\S+) without (\d+) ", note)
    assert found is not None
    numbers = [float(number) for number in found.groups()]
    assert numbers == pytest.approx([spread(column), spread(cleaned), len(rows)], rel=0.005)
    places = [f"{value:g} of candidates[{row % SIZE}] of list {row // SIZE}" for row in rows]
    assert any(place in note for place in places)


SIZES = np.tile([2, 30, 500], 20)
COLUMNS = {
    "normal": RNG.normal(size=SIZES.sum()),
    "heavy tails": RNG.standard_t(2.5, size=SIZES.sum()),
    "lists of another scale": np.repeat(np.tile([0.2, 1, 5], 20), SIZES)
    * RNG.normal(size=SIZES.sum()),
    "one candidate of a list": np.concatenate([np.eye(n)[0] for n in SIZES]),
    "some lists": np.concatenate([(k % 7 == 0) * np.eye(n)[0] for k, n in enumerate(SIZES)]),
    "counts": RNG.poisson(0.02, size=SIZES.sum()).astype(float),
    "constant": np.full(SIZES.sum(), -99.0),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_usual_columns_have_none(name: str) -> None:
    assert not describe_outliers(made(COLUMNS[name], SIZES), "a")


def test_adapt_and_describe_warn_of_features_and_gains() -> None:
    features, gain = GOOD.copy(), GOOD @ [1.0, 0.5]
    features[87, 0] = 1e4
    lists = made(features).with_extras(quality=np.where(np.arange(len(gain)) == 11, 1e6, gain))
    problems = [
        r"the spread of a within lists is 632, .* \(10000 of candidates\[2\] of list 17\)",
        r"the spread of quality within lists is 6.32e\+04, .* \(1e\+06 of candidates\[1\] of list ",
    ]
    with capture_notes() as notes:
        bpa.adapt(lists, gain="quality", sampler="map", prior="isotropic:variance=1.0,mean=0")
    adapted = [note.message for note in notes if "within lists is" in note.message]
    described = [n for n in bpa.describe(lists, "quality").warnings if "within lists is" in n]
    for found in (adapted, described):
        assert len(found) == len(problems)
        assert all(re.search(p, note) for p, note in zip(problems, found, strict=True))
    missing = lists.with_extras(quality=[None if k == 11 else v for k, v in enumerate(gain)])
    assert not describe_outliers(missing, "quality")


def test_lists_that_teach_little_are_warned_about_and_those_that_teach_nothing_refused() -> None:
    gains = {"extras": {"gain": [[1.0, 2.0]] * 3}}
    same = from_lists([["a", "b"]] * 3, [[[k], [k]] for k in (0.1, 0.2, 0.3)], ["lm"], **gains)
    with raises(DataError, "no-data", parameter="lists", match="no feature differs between the"):
        bpa.adapt(same, gain="gain", sampler="map")
    vary = from_lists([["a", "b"]] * 3, [[[0.1], [k]] for k in (0.1, 0.2, 0.3)], ["lm"], **gains)
    with pytest.warns(bpa.BpaWarning, match="one judged list teaches little"):
        bpa.adapt(vary[1:2], gain="gain", sampler="map")
    bpa.adapt(vary, gain="gain", sampler="map")

"""References that belong to other lists, and values that decide the spread of a column."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.raising import capture_notes, raises

import bpa_ppl as bpa
from bpa_ppl import DataError, NBest, from_lists
from bpa_ppl.extending import Metric
from bpa_ppl.gains.gains import resolve
from bpa_ppl.gains.problems import describe_misplaced, describe_outliers, describe_totals

TER = resolve("ter")


def misplace(lists: NBest, how: str) -> NBest:
    """Return the lists with the references of other ones."""
    references = lists.references or ()
    count = len(references)
    order = {
        "next": np.roll(np.arange(count), -1),
        "previous": np.roll(np.arange(count), 1),
        "later": np.roll(np.arange(count), -count // 2),
        "reversed": np.arange(count)[::-1],
        "second half": np.r_[: count // 2, count // 2 + 1 : count, 0],
    }
    return lists.with_references([references[place] for place in order[how]])


@pytest.mark.slow
def test_real_references_belong_to_their_lists_and_others_do_not(leaflet: NBest) -> None:
    lists = leaflet
    rng = np.random.default_rng(1)
    assert describe_misplaced(lists, TER) == ""
    for count in (10, 20, 50, 100):
        start = int(rng.integers(0, len(lists) - count + 1))
        part = lists[start : start + count]
        assert describe_misplaced(part, TER) == ""
        found = [bool(describe_misplaced(misplace(part, how), TER)) for how in ("next", "later")]
        assert all(found) or count == 10
        if count >= 50:
            assert describe_misplaced(misplace(part, "reversed"), TER)
            assert describe_misplaced(misplace(part, "second half"), TER)


@pytest.mark.parametrize("how", ["next", "previous"])
def test_a_missing_line_is_recognised(how: str, leaflet: NBest) -> None:
    """Given the references of the next list, those of the previous one fit."""
    fitting = {"next": "previous", "previous": "next"}[how]
    message = describe_misplaced(misplace(leaflet[:50], how), TER)
    assert message.startswith("the references seem to be those of other lists: in 0% of 50 lists")
    assert f"than to that of the {fitting} list" in message


def test_several_references_and_lists_without_one(leaflet: NBest) -> None:
    lists = leaflet[:30]
    own = [of_list[0] for of_list in lists.references or ()]
    others = [*own[1:], own[0]]
    several = lists.with_references(list(zip(others, own, strict=True)))
    assert describe_misplaced(several, TER) == ""
    few = lists.with_references([text if k < 9 else () for k, text in enumerate(others)])
    assert describe_misplaced(few, TER) == ""  # too few to say anything
    most = lists.with_references([() if k < 9 else text for k, text in enumerate(others)])
    assert "of 21 lists" in describe_misplaced(most, TER)


def test_one_reference_for_all_lists_is_a_mistake(leaflet: NBest) -> None:
    """Lists of one sentence share their reference; one reference for all is a mistake."""
    lists = leaflet[:30]
    own = [of_list[0] for of_list in lists.references or ()]
    twice = lists.select(np.repeat(np.arange(15), 2))
    assert describe_misplaced(twice, TER) == ""
    same = describe_misplaced(lists.with_references(own[:1] * 30), TER)
    assert same == "all 30 lists have the same reference: give each list its own"
    assert describe_misplaced(lists.select(np.zeros(30, int)), TER) == ""
    padded = lists.with_references([*own[:12], *own[11:12] * 18])  # the last line, repeated
    assert describe_misplaced(padded, TER)


@pytest.mark.parametrize("gain", [resolve(lambda texts, references: [0.0] * len(texts)), None])
def test_other_gains_need_no_similar_texts(gain: Metric | None) -> None:
    words = [f"answer {k}" for k in range(20)]
    lists = from_lists([[word] for word in words], [[[1.0]]] * 20, ["lm"], references=words)
    wrong = misplace(lists, "reversed")
    assert describe_misplaced(wrong, TER)
    assert describe_misplaced(wrong, resolve("lm", lists) if gain is None else gain) == ""


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

"""Warnings of `adapt` about its choices from the adaptation sentences."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from support.judged_lists import judged_lists

from bpa_ppl import NBest, adapt, describe
from bpa_ppl._runtime.messages import capture_notes

OPTIONS: dict[str, Any] = {"gain": "comet", "sampler": "map", "prior": "isotropic:variance=1.0"}


def single_system(lists: NBest, **options: Any) -> list[str]:
    """Adapt, and return the warnings about choices of a single system."""
    with capture_notes() as notes:
        adapt(lists, None, **OPTIONS, **options)
    return [note.message for note in notes if note.message.startswith("all choices from")]


def test_choices_of_a_single_system_are_reported() -> None:
    (message,) = single_system(judged_lists(20), categorical="system", likelihood="risk")
    assert message == (
        "all choices from 20 adaptation lists with several systems are those of system eve: take "
        "its candidates alone, or, to let others be chosen, leave out categorical system or judge "
        "more lists"
    )


@pytest.mark.parametrize(("marked", "count"), [(20, 1), (19, 0)])
def test_a_feature_may_stand_for_a_system(marked: int, count: int) -> None:
    """The weight of `mark` is positive, and one list may have it on another system."""
    lists = judged_lists(20)
    mark = np.tile([0.0, 0.0, 9.0], (20, 1))
    mark[marked:] = [9.0, 0.0, 0.0]
    lists = lists.without("logprob").with_features("mark", mark.ravel())
    messages = single_system(lists)
    assert len(messages) == count
    assert all("add features or judge more lists" in message for message in messages)


def test_lists_that_say_nothing_on_systems() -> None:
    lists = judged_lists(20)
    assert not single_system(lists)  # logprob is no system
    assert not single_system(lists[:4], categorical="system")
    assert not single_system(lists.without("system"))
    alone = lists.with_extras(system=["eve"] * 48 + ["ann", "bob", "eve"] * 4)
    assert not single_system(alone)  # four lists have several systems


def test_canonical_weights_and_references_are_checked_too() -> None:
    lists = judged_lists(20).without("logprob", "comet")
    lists = lists.with_features("mark", np.tile([0.0, 0.0, 1.0], 20))
    lists = lists.with_references([f"{s} eve" for s in range(20)])
    with capture_notes() as notes:
        adapt(lists, {"mark": 1.0}, sampler="map")
    assert any("are those of system eve" in note.message for note in notes)


@pytest.mark.parametrize("missing", [False, True])
def test_a_column_of_judgements_is_named_before_references_are_taken(missing: bool) -> None:
    """With the words of `describe`, unless an option names the column."""
    lists = judged_lists(6)
    rating = lists.features[:, 1].astype(float)
    if missing:
        lists = lists.with_extras(rating=np.where(np.arange(18) == 4, np.nan, rating))
    else:
        lists = lists.with_features(["rating"], rating[:, None])
    lists = lists.with_references([lists.texts(s)[2] for s in range(6)])
    (expected,) = [w for w in describe(lists).warnings if "people judged so" in w]
    for options, count in (
        ({}, 1),
        ({"exclude": ["rating"]}, 0),
        ({"features": ["comet"]}, 0),
        ({"gain": "rating"}, 0),
        ({"likelihood": "none"}, 0),
    ):
        with capture_notes() as notes:
            adapt(lists, None, sampler="map", prior="isotropic:variance=1.0", **options)
        found = [n for n in notes if "if people judged so" in n.message]
        assert [n.message for n in found] == [expected] * count
        assert all(n.level == logging.WARNING for n in found)

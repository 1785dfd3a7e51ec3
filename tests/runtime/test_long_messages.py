"""Messages that name thousands of things stay short."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from bpa_ppl import Draws, NBest, Reranker, WeightDraws, adapt, check, from_lists, rerank
from bpa_ppl._runtime.messages import capture_notes, warn_user
from bpa_ppl.errors import BpaError, list_names, unknown_name

NAMES = [f"feature_{k}" for k in range(5000)]
_LONGEST = 2100  # characters


def lists_of(names: list[str]) -> NBest:
    """Two lists of two candidates with some features."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2, 2, len(names)))
    return from_lists([["a", "b"]] * 2, features, names, references=["a"] * 2)


def test_a_few_names_are_listed_and_the_others_counted() -> None:
    assert list_names(NAMES) == f"{', '.join(NAMES[:5])} and 4,995 more"
    assert list_names(NAMES[:5]) == ", ".join(NAMES[:5])
    choices = unknown_name("column", "x", NAMES).message
    assert f"{', '.join(NAMES[:40])} and 4,960 more" in choices


def test_warnings_are_short() -> None:
    with capture_notes() as notes:
        warn_user(", ".join(NAMES))
    assert len(notes[0].message) < _LONGEST
    assert notes[0].message.endswith(NAMES[-1])


def test_errors_about_thousands_of_features_are_short() -> None:
    lists = lists_of(["LM0"])
    coords, weights = {"feature": NAMES}, {"weights": np.zeros((1, 4, 5000))}
    draws = WeightDraws(
        Draws(weights, main=("weights",), dims={"weights": ("feature",)}, coords=coords)
    )
    calls = (
        partial(adapt, lists, dict.fromkeys(NAMES, 1.0), sampler="map"),
        partial(rerank, lists, draws, unchecked=True),
        partial(Reranker(draws, unchecked=True).choose, ["a"], {"LM0": [1.0]}),
        partial(Reranker(draws, unchecked=True).reward, ["LM0", *NAMES, "x"]),
    )
    for call in calls:
        with capture_notes() as notes, pytest.raises(BpaError) as caught:
            call()
        assert len(str(caught.value)) < _LONGEST
        assert all(len(note.message) < _LONGEST for note in notes)


def test_notes_on_thousands_of_variables_are_short() -> None:
    values = {name: np.zeros((2, 20), int) for name in NAMES[:300]}
    report = check({**values, "x": np.random.default_rng(0).normal(size=(2, 20))})
    assert report.left_out
    assert all(len(sentence) < _LONGEST for sentence in report.left_out)
    with pytest.raises(BpaError) as caught:
        Draws({"x": np.zeros((1, 4))}).reordered(NAMES)
    assert len(str(caught.value)) < _LONGEST

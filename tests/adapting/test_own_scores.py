"""Adapting to scores that the lists bring along, and the warnings about its choices."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.judged_lists import judged_lists
from support.posteriors import GainColumn
from support.raising import Note, capture_notes, raises

import bpa_ppl as bpa
from bpa_ppl import DataError, NBest, UsageError, adapt, as_weight_draws, rerank
from bpa_ppl.extending import oracles

pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
CANONICAL = {"logprob": 0.1}
LISTS = judged_lists(40)
OTHERS = judged_lists(60, seed=2)


@pytest.fixture(scope="module")
def noted() -> tuple[Any, list[Note]]:
    """The posterior of the lists, and the messages of its adaptation."""
    with capture_notes() as notes:
        options = {"gain": "comet", "categorical": ["system"], "sampler": "map"}
        return adapt(LISTS, CANONICAL, **options), notes


@pytest.fixture
def posterior(noted: tuple[Any, list[Note]]) -> Any:
    return noted[0]


def chosen_systems(lists: NBest, choice: np.ndarray) -> list[str]:
    return [lists.extras["system"][row] for row in lists.offsets[:-1] + choice]


def test_the_criterion_is_not_a_feature_and_needs_no_references(posterior: Any) -> None:
    draws = as_weight_draws(posterior)
    assert draws.features == ("logprob", "system=ann", "system=bob", "system=eve")
    assert draws.adaptation.observed.gain == "comet"
    assert draws.adaptation.recipe.gain == GainColumn("comet", negative=False)
    expected = oracles(LISTS, "comet")
    assert draws.draws.observed["oracle"].tolist() == expected.index.tolist()
    weights = bpa.point_weights(posterior)
    assert weights["system=eve"] > 1 > 0 > weights["system=ann"]


def test_reranking_adds_and_removes_the_same_columns(posterior: Any, tmp_path: Path) -> None:
    bpa.write_posterior(posterior, tmp_path / "p.nc")
    again = bpa.read_posterior(tmp_path / "p.nc")
    printed = rerank(OTHERS, again)
    assert set(chosen_systems(OTHERS, printed.choice)) == {"eve"}
    bare = OTHERS.without("comet")
    assert rerank(bare, again).choice.tolist() == printed.choice.tolist()
    with raises(DataError, "missing-system", parameter="system"):
        rerank(OTHERS.without("system"), posterior)
    streamed = rerank(iter([OTHERS[:7], OTHERS[7:]]), posterior)
    assert streamed.choice.tolist() == printed.choice.tolist()
    np.testing.assert_array_equal(streamed.probability, printed.probability)


def test_a_scaled_prior_is_logged_and_recorded(noted: tuple[Any, list[Note]]) -> None:
    found, notes = as_weight_draws(noted[0]), noted[1]
    prior, spread = found.adaptation.prior, np.sqrt(2) / 3
    (said,) = [n.message for n in notes if n.message.startswith("no canonical weight")]
    assert "system=ann, system=bob, system=eve" in said
    assert f"{prior.scale:.3g}" in said
    assert prior.scale_learned
    np.testing.assert_allclose(
        found.draws.constants["prior_variance"],
        [0.1, *[(prior.scale / spread) ** 2] * 3],
        rtol=1e-6,
    )
    assert prior.spread == pytest.approx(dict.fromkeys(found.features[1:], spread))
    assert found.draws.constants["prior_mean"].tolist() == [0.1, 0, 0, 0]


def test_without_any_weights() -> None:
    with capture_notes() as notes:
        found = adapt(LISTS, None, gain="comet", categorical="system", sampler="map")
    assert any(re.search(r"except logprob \(0\.\d+\), and standard", n.message) for n in notes)
    draws = as_weight_draws(found)
    mean, variance = draws.draws.constants["prior_mean"], draws.draws.constants["prior_variance"]
    variances = LISTS.features[:, 0].astype(float).reshape(-1, 3).var(axis=1)
    assert mean[0] == pytest.approx(variances.mean() ** -0.5, rel=1e-5)
    assert variance[0] == pytest.approx((draws.adaptation.prior.scale * mean[0]) ** 2)
    assert mean[1:].tolist() == [0, 0, 0]
    assert set(chosen_systems(OTHERS, rerank(OTHERS, found).choice)) == {"eve"}


def test_a_column_of_which_oracles_are_given_is_no_feature() -> None:
    best = oracles(LISTS, "comet")
    target = bpa.log_density(LISTS, CANONICAL, gain=best, likelihood="oracle")
    assert target.features == ("logprob",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("lists", "dev.nbest"), ("weights", "moses.ini"), ("prior", np.ones(2))),
        *(("likelihood", []), ("gain", 7), ("categorical", 7), ("model", "m")),
    ],
)
def test_rejects_values_of_another_type(name: str, value: Any) -> None:
    with pytest.raises(UsageError):
        adapt(**{"lists": LISTS, "weights": CANONICAL, "gain": "comet", name: value})


def test_totals_are_compared_only_with_weights_that_were_given(
    recwarn: pytest.WarningsRecorder,
) -> None:
    totals = np.arange(len(LISTS.features))
    lists = replace(LISTS, totals=totals.astype(np.float32))
    warned = []
    for weights in (None, CANONICAL):
        adapt(lists, weights, gain="comet", sampler="map")
        warned.append("do not reproduce the totals" in str([str(w.message) for w in recwarn.list]))
    assert warned == [False, True]


OPTIONS: dict[str, Any] = {
    "gain": "comet",
    "sampler": "map",
    "prior": "isotropic:variance=1.0,mean=0",
}


def single_system(lists: NBest, **options: Any) -> list[str]:
    """Adapt, and return the warnings about choices of a single system."""
    with capture_notes() as notes:
        adapt(lists, None, **OPTIONS, **options)
    return [note.message for note in notes if note.message.startswith("all choices from")]


def test_choices_of_a_single_system_are_reported() -> None:
    (message,) = single_system(LISTS, categorical="system", likelihood="risk")
    assert message == (
        "all choices from 40 adaptation lists with several systems come from system eve: use only "
        "its candidates, or, to let others be chosen, leave out categorical system or judge more "
        "lists"
    )


@pytest.mark.parametrize(("marked", "count"), [(40, 1), (39, 0)])
def test_a_feature_may_stand_for_a_system(marked: int, count: int) -> None:
    """The weight of `mark` is positive, and one list may have it on another system."""
    mark = np.tile([0.0, 0.0, 9.0], (40, 1))
    mark[marked:] = [9.0, 0.0, 0.0]
    lists = LISTS.without("logprob").with_features("mark", mark.ravel())
    messages = single_system(lists)
    assert len(messages) == count
    assert all("add features or judge more lists" in message for message in messages)


def test_lists_that_say_nothing_on_systems() -> None:
    assert not single_system(LISTS)  # logprob is no system
    assert not single_system(LISTS.without("system"))
    alone = LISTS.with_extras(system=["eve"] * 108 + ["ann", "bob", "eve"] * 4)
    assert not single_system(alone)  # four lists have several systems


def test_canonical_weights_and_references_are_checked_too() -> None:
    lists = LISTS.without("logprob", "comet")
    lists = lists.with_features("mark", np.tile([0.0, 0.0, 1.0], 40))
    lists = lists.with_references([f"{s} eve" for s in range(40)])
    with capture_notes() as notes:
        adapt(lists, {"mark": 1.0}, sampler="map")
    assert any("come from system eve" in note.message for note in notes)

"""reestimate: weights by name, what is fixed, and bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.raising import raises

from bpa_ppl import DataError, NBest, UsageError, Weights, corpus_score
from bpa_ppl.experiments.tuning.mert import Mert
from bpa_ppl.experiments.tuning.reestimation import reestimate
from bpa_ppl.experiments.tuning.tuner import TUNERS
from bpa_ppl.metrics.ter import TER

CANONICAL = Weights({"LM0": 0.5, "TM0[0]": -0.2, "TM0[1]": 0.3})


def reranked(lists: NBest, weights: Weights, metric: str) -> float:
    """Return sacreBLEU's corpus score of the lists reranked."""
    scores = lists.scores([weights[name] for name in lists.feature_names])
    return corpus_score(lists.chosen(lists.best(scores)), lists.references or (), metric).value


@pytest.mark.parametrize("metric", ["bleu", "ter"])
@pytest.mark.parametrize("tuner", TUNERS)
def test_scores_are_those_of_sacrebleu(toy: NBest, tuner: str, metric: str) -> None:
    result = reestimate(toy, CANONICAL, tuner=tuner, gain=metric)
    scored = (CANONICAL, result.scores.before), (result.weights, result.scores.after)
    for weights, scores in scored:
        assert scores[0].metric == metric
        assert {s.metric: s.value for s in scores} == pytest.approx(
            {name: reranked(toy, weights, name) for name in ("ter", "bleu")}
        )
    assert result.weights.names == toy.feature_names
    values = [scores[0].value for _, scores in scored]
    assert [result.before, result.after] == pytest.approx(values)


def test_equivalent_arguments_give_equal_weights(toy: NBest) -> None:
    few = {"gain": "TER", "restarts": 3}
    named = reestimate(toy, CANONICAL, tuner="mert", **few)
    by_object = reestimate(toy, CANONICAL, tuner=Mert(restarts=3), gain=TER())
    backwards = reestimate(toy, Weights(reversed(list(CANONICAL.items()))), **few)
    two = Weights({"LM0": 0.5, "TM0[0]": -0.2})
    by_default = reestimate(toy, two, defaults={"TM0[1]": 0.3}, **few)
    for result in (by_object, backwards, by_default):
        assert (result.weights, result.scores.after[0].metric) == (named.weights, "ter")


def test_fixed_weights_stay_and_count(toy: NBest) -> None:
    partly = replace(toy, feature_names=("UnknownWordPenalty0", "TM0[0]", "TM0[1]"))
    weights = Weights({"UnknownWordPenalty0": 5.0, "TM0[0]": -0.2, "TM0[1]": 0.3})
    result = reestimate(partly, weights, gain="ter")
    assert result.weights["UnknownWordPenalty0"] == 5.0
    assert (result.visited[:, 0] == 5.0).all()
    assert result.weights["TM0[0]"] != -0.2
    assert result.after == pytest.approx(reranked(partly, result.weights, "ter"))
    freed = reestimate(partly, weights, gain="ter", fixed=[])
    assert freed.weights["UnknownWordPenalty0"] != 5.0
    one = reestimate(partly, weights, gain="ter", fixed=["TM0"]).weights
    assert (one["TM0[0]"], one["TM0[1]"]) == (-0.2, 0.3)


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({"tuner": "powell"}, "unknown-name", "tuner"),
        ({"gain": "unbabel"}, "unknown-name", "gain"),
        ({"tuner": "pro", "epochs": 3}, "unknown-setting", "epochs"),
        ({"restarts": 0}, "invalid-setting", "restarts"),
    ],
)
def test_invalid_arguments_are_refused(
    toy: NBest, arguments: dict[str, Any], code: str, parameter: str
) -> None:
    with raises(UsageError, code, parameter=parameter):
        reestimate(toy, CANONICAL, **arguments)


def test_lists_that_cannot_be_used_are_refused(toy: NBest) -> None:
    with raises(DataError, "missing-references", parameter="references"):
        reestimate(replace(toy, references=None), CANONICAL)
    with raises(DataError, "missing-weight", parameter="defaults", match="TM0"):
        reestimate(toy, Weights({"LM0": 1.0}))
    with raises(DataError, "no-data"):
        reestimate(toy.select([]), CANONICAL)

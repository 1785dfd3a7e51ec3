"""Custom metrics: required methods, and comparison of metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from bpa_ppl import NBest, adapt, corpus_score, from_lists, oracles
from bpa_ppl.components import Count
from bpa_ppl.experiments.tuning.reestimation import reestimate
from bpa_ppl.metrics.gains import count_statistics, gains, reported_metrics
from bpa_ppl.metrics.metric import METRICS, Averaged, Metric
from bpa_ppl.metrics.oracles import headroom


def each(lists: Any, others: Any, score: Callable[[str, Any], Any]) -> np.ndarray:
    """Return the score of each candidate with what belongs to its sentence."""
    pairs = zip(lists, others, strict=True)
    return np.array([score(text, other) for texts, other in pairs for text in texts], float)


class Overlap(Averaged, frozen=True):
    """The share of the words of the first reference that are in a candidate, in percent."""

    key: ClassVar[str] = "overlap"

    def sentences(self, lists: Any, references: Any) -> np.ndarray:
        """Return one score per candidate."""
        words = [set(refs[0].split()) for refs in references]
        return each(lists, words, lambda text, ref: 100 * len({*text.split()} & ref) / len(ref))


class Lengths(Metric, frozen=True):
    """The relative length difference to the first reference, from summed counts."""

    key: ClassVar[str] = "lengths"
    lower_is_better: ClassVar[bool] = True
    weight: Count = 1

    def counts(self, lists: Any, references: Any) -> np.ndarray:
        """Return length differences and reference lengths in words (candidates, 2)."""
        lengths = [len(refs[0].split()) for refs in references]
        return each(lists, lengths, lambda text, ref: (abs(len(text.split()) - ref), ref))

    def value(self, sums: np.ndarray) -> np.ndarray:
        """Return the rate in percent."""
        return 100 * self.weight * sums[..., 0] / sums[..., 1]


def lists_of(texts: list[list[str]], references: list[str]) -> NBest:
    tables = [np.arange(len(row), dtype=float)[:, None] for row in texts]
    return from_lists(texts, tables, ["LM0"], references=[[r] for r in references])


LISTS = lists_of([["a b", "a b c d", "x"], ["a", "b c"]], ["a b c", "a"])


def test_sentence_scores_are_enough_for_oracles_headroom_and_gains() -> None:
    metric = Overlap()
    result = oracles(LISTS, metric)
    assert (result.index.tolist(), result.gain) == ([1, 0], "overlap")
    assert result.signature == "overlap|nrefs:1"
    room = headroom(LISTS, gain=metric)
    assert (room.oracle.value, room.anti_oracle.value) == (100.0, 0.0)
    assert corpus_score(["a b", "a"], [["a b c"], ["a"]], metric).value == pytest.approx(250 / 3)
    np.testing.assert_allclose(gains(LISTS, metric), [200 / 3, 100, 0, 100, 0])
    mean = count_statistics(LISTS, metric)[[0, 3]].mean(axis=0)
    assert mean == pytest.approx([(200 / 3 + 100) / 2, 1])
    assert reestimate(LISTS, {"LM0": 1.0}, gain=metric).after > 80
    posterior = adapt(LISTS, {"LM0": 1.0}, gain=metric, sampler="laplace")
    assert posterior.attrs["oracle_metric"] == "overlap"
    # The second of three, then the first of two: λ is too large.
    assert float(posterior["posterior"]["weights"].mean()) < 1


@pytest.mark.parametrize(
    ("tuner", "settings"),
    [
        ("mert", {"restarts": 2}),
        ("mira", {"step": 1.0}),
        ("pro", {"interpolation": 1.0, "iterations": 2}),
    ],
)
def test_counts_and_value_are_enough_to_tune(
    tuner: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METRICS, "registered", {})
    METRICS.register("lengths", Lengths)
    worse = lists_of([["a b c", "a b", "x"], ["a", "b c"]], ["a b c", "a"])
    result = reestimate(worse, {"LM0": 1.0}, gain="lengths", tuner=tuner, **settings)
    assert (result.before, result.after) == (75.0, 0.0)
    assert reported_metrics() == ("ter", "bleu", "lengths")
    assert count_statistics(LISTS, Lengths()).tolist() == [[1, 3], [1, 3], [2, 3], [0, 1], [1, 1]]
    assert corpus_score(LISTS.chosen([0, 1]), LISTS.references, Lengths(weight=2)).value == 100.0
    assert Lengths(weight=2).signature([("a",)]) == "lengths|nrefs:1|weight:2"

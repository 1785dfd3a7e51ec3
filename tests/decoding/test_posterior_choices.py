"""The choices by several posteriors: those that differ from a reference, and their scores."""

from __future__ import annotations

import numpy as np
import pytest
from support.posteriors import name_weights

from bpa_ppl import NBest, WeightDraws, corpus_score, from_lists
from bpa_ppl.decoding.posterior_choices import compare_posterior_choices


def lists() -> NBest:
    """Return lists of two, whose second candidate has a low LM0; of every third it is wrong."""
    texts = [[f"a b c {k}", f"a b c d {k}"] for k in range(12)]
    references = [pair[k % 3 != 0] for k, pair in enumerate(texts)]
    return from_lists(texts, [[[1.0], [0.0]]] * 12, ["LM0"], references=references)


def draws(sign: float) -> WeightDraws:
    values = sign + 0.01 * np.random.default_rng(0).normal(size=(4, 300, 1))
    return name_weights(values, ("LM0",))


def test_choices_are_scored_and_changes_counted() -> None:
    pool = lists()
    boards = compare_posterior_choices({"low": draws(-1.0), "same": draws(2.0)}, draws(1.0), pool)
    assert {name: board.changed for name, board in boards.items()} == {"low": 12, "same": 0}
    before, after = (pool.chosen(np.full(12, k)) for k in (0, 1))
    assert [change.after.metric for change in boards["low"].changes] == ["ter", "bleu", "length"]
    for change in boards["low"].changes[:2]:
        scores = [
            corpus_score(one, pool.references, change.after.metric) for one in (before, after)
        ]
        assert change.before.value == pytest.approx(scores[0].value)
        assert change.difference == pytest.approx(scores[1].value - scores[0].value)
        assert change.low < change.difference < change.high
    assert "12 of 12 choices changed from reference to low" in str(boards["low"])
    assert "0 of 12 choices changed from reference to same" in str(boards["same"])


def test_the_seed_decides_on_the_intervals() -> None:
    first, again, other = (
        compare_posterior_choices({"low": draws(-1.0)}, draws(1.0), lists(), seed=seed)["low"]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert [one.high for one in first.changes] != [one.high for one in other.changes]


def test_without_references_choices_are_counted_alone() -> None:
    pool = lists().without("references")
    (board,) = compare_posterior_choices({"low": draws(-1.0)}, draws(1.0), pool).values()
    assert (board.changed, board.changes) == (12, ())
    assert str(board).startswith("12 of 12 choices changed from reference to low")

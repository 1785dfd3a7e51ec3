"""Explanations of choices by the features, and shares of systems, by brute force and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from support.posteriors import name_weights
from support.raising import raises

from bpa_ppl import DataError, Draws, NBest, UsageError, Weights, from_lists
from bpa_ppl.diagnostics.ways.explanations import (
    explain_choices,
    render_explanations,
    system_shares,
)

NAMES = ("lm", "tm", "constant", "fixed")


def random_lists() -> NBest:
    rng = np.random.default_rng(1)
    sizes = rng.integers(2, 6, 30)
    features = [np.round(rng.normal(size=(n, 4)), 1) for n in sizes]
    for table in features:
        table[:, 2] = 7.0
    texts = [[f"{s} {k}" for k in range(n)] for s, n in enumerate(sizes)]
    return from_lists(texts, features, NAMES)


def random_draws(kind: str = "chains") -> Draws:
    rng = np.random.default_rng(2)
    shape = (1, 1) if kind == "point" else (2, 150)
    return name_weights(
        rng.normal([0.5, -0.2, 1.0], 0.5, (*shape, 3)),
        NAMES[:3],
        kind=kind,
        log_weight=rng.normal(size=shape) if kind == "weighted" else None,
        fixed=Weights({"fixed": 0.3}),
    )


@pytest.mark.parametrize("kind", ["chains", "weighted", "point"])
def test_contributions_add_up_to_the_difference_of_the_scores(kind: str) -> None:
    lists, draws = random_lists(), random_draws(kind)
    rng = np.random.default_rng(3)
    chosen, other = rng.integers(0, lists.sizes), rng.integers(0, lists.sizes)
    explained = explain_choices(lists, draws, chosen, other)
    assert [e.sentence for e in explained] == np.flatnonzero(chosen != other).tolist()
    importance = draws.importance
    scores = np.array(
        [lists.scores({**dict(zip(NAMES, w, strict=False)), "fixed": 0.3}) for w in draws.flat]
    )
    for e in explained:
        first = lists.offsets[e.sentence]
        by_draw = scores[:, first + e.chosen] - scores[:, first + e.other]
        assert e.difference == pytest.approx(importance @ by_draw, abs=1e-6)
        assert sum(term.contribution for term in e.terms) == pytest.approx(e.difference)
        assert e.probability == pytest.approx(importance[by_draw > 0].sum())
        sizes = [abs(term.contribution) for term in e.terms]
        assert sizes == sorted(sizes, reverse=True)
        for term in e.terms:
            assert term.contribution == pytest.approx(term.weight * term.difference)
            if term.feature == "constant":
                assert (term.contribution, term.weight) == (0, pytest.approx(draws.mean[2]))
        if kind == "point":
            assert np.isnan([e.low, e.high, *(x for t in e.terms for x in t[4:])]).all()
        else:
            ends = np.quantile(by_draw, [0.025, 0.975], weights=importance, method="inverted_cdf")
            assert [e.low, e.high] == pytest.approx(ends, abs=1e-6)


def test_intervals_of_contributions_are_those_of_the_draws() -> None:
    lists, draws = random_lists(), random_draws()
    for e in explain_choices(lists, draws, np.ones(30, int), np.zeros(30, int)):
        first = lists.offsets[e.sentence]
        difference = lists.features[first + 1] - lists.features[first]
        for term in e.terms:
            column = NAMES.index(term.feature)
            if term.feature in ("lm", "tm") and term.difference:
                by_draw = draws.flat[:, column] * difference[column]
                below, above = np.mean(by_draw < term.low), np.mean(by_draw > term.high)
                assert [below, above] == pytest.approx([0.025, 0.025], abs=0.005)
            if term.feature == "fixed":
                assert [term.low, term.high] == pytest.approx([term.contribution] * 2)


def test_deciding_features_by_removing_each() -> None:
    lists, draws = random_lists(), random_draws()
    mean = {**dict(zip(NAMES, draws.mean.tolist(), strict=False)), "fixed": 0.3}
    choice = lists.best(lists.scores(mean))
    other = np.where(choice == 0, 1, 0)
    found = {}
    for e in explain_choices(lists, draws, choice, other):
        rows = lists.offsets[e.sentence] + np.array([e.chosen, e.other])
        turned = []
        for name in NAMES:
            chosen_score, other_score = lists.scores({**mean, name: 0.0})[rows]
            turned += [name] if chosen_score <= other_score + 1e-9 else []
        assert sorted(e.deciding) == sorted(turned)
        found.setdefault(len(turned), e)
    assert set(found) >= {0, 1, 2}
    assert found[0].summary.startswith("No single feature decided")
    assert found[1].summary.startswith(f"{found[1].deciding[0]} decided: without it")
    assert found[2].summary.startswith(" and ".join(found[2].deciding))


def test_choices_that_the_mean_does_not_explain() -> None:
    lists = from_lists([["a", "b"], ["c", "d"]], [[[1.0], [0.0]], [[1.0], [1.0]]], ["lm"])
    draws = name_weights([[[1.0], [3.0]]], ("lm",))
    against, equal = explain_choices(lists, draws, [1, 1], [0, 0])
    assert (against.difference, against.deciding, against.probability) == (-2.0, (), 0.0)
    assert "the other candidate scores at least as high" in against.summary
    assert "are equal" in equal.summary
    assert (equal.probability, len(render_explanations(equal))) == (0, 1)


def test_shares_of_systems_by_hand() -> None:
    lists = from_lists(
        [["a", "b", "a"], ["c", "d", "e"], ["f", "g"], ["h", "h", "i"]],
        [[[0.0]] * n for n in (3, 3, 2, 3)],
        ["lm"],
    ).with_extras(system=["X", "Y", "Z", "X", "Y", None, "X", "Y", "Y", "Y", "X"])
    rows = system_shares(lists, [0, 2, 0, 1], [1, 1, 1, 2])
    # "a" is of X and Z; "e" is of nobody; "h" is twice of Y.
    expected = {"Y": (1 / 4, 3 / 4), "X": (1.5 / 4, 1 / 4), "": (1 / 4, 0.0), "Z": (0.5 / 4, 0.0)}
    assert rows == [(name, *shares) for name, shares in expected.items()]
    assert system_shares(lists.without("system"), [0] * 4, [0] * 4) == []
    with raises(DataError, "missing-column", parameter="column"):
        system_shares(lists, [0] * 4, [0] * 4, column="engine")


@pytest.mark.parametrize(
    "odd", [[0] * 7, [0] * 7 + [9], [-1] + [0] * 7, [0.0] * 8, [[0], [0, 1]]], ids=str
)
def test_choices_that_are_no_positions(odd: object) -> None:
    with raises(UsageError, "wrong-type", parameter="choice"):
        explain_choices(random_lists()[:8], random_draws(), odd, [0] * 8)
    with raises(UsageError, "wrong-type", parameter="after"):
        system_shares(random_lists()[:8], [0] * 8, odd)

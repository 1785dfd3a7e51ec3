"""Likelihoods by name against SciPy."""

from __future__ import annotations

import numpy as np
import plain
import pytest
from scipy.special import logsumexp

from bpa_ppl import NBest, UsageError, adapt
from bpa_ppl.models import Margin, Oracle, tabulate
from bpa_ppl.posterior import as_draws
from bpa_ppl.quality import gains, oracles
from bpa_ppl.weights import match

NAMES = ("LM0", "WP0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2}


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists with equal derivations, and with equal features under other words."""
    rng = np.random.default_rng(14)
    words = ["a", "b", "c", "d", "e"]
    texts = [
        [" ".join(rng.choice(words, size=rng.integers(1, 6))) for _ in range(n)] for n in (6, 1, 9)
    ]
    features = [rng.normal(size=(len(t), 2)).round(1) for t in texts]
    texts[2][4], features[2][4] = texts[2][3], features[2][3]
    features[2][6] = features[2][5]
    references = [("a b c",), ("d",), ("e d c b",)]
    return NBest.from_lists(texts, features, NAMES, references=references)


def log_p(lists: NBest, weights: plain.Array, gamma: float) -> plain.Array:
    """Log of the softmax-margin of each sentence, from edits."""
    worth, best = (
        gains(lists, "ter", cache=False),
        oracles(lists, preference=lists.scores([0.4, -0.2]), cache=False).index,
    )
    found = []
    for sentence in range(len(lists)):
        rows = lists.rows(sentence)
        own, scores = worth[rows], lists.features[rows].astype(np.float64) @ weights
        at = best[sentence]
        found.append(scores[at] - logsumexp(scores + gamma * (own[at] - own)))
    return np.array(found)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 4.0])
def test_the_margin_is_that_of_scipy(lists: NBest, gamma: float) -> None:
    posterior = as_draws(
        adapt(lists, CANONICAL, likelihood=Margin(gamma=gamma), sampler="imh", draws=10)
    )
    assert posterior.pointwise is not None
    for draw in (0, 9):
        expected = log_p(lists, posterior.weights[1, draw], gamma)
        np.testing.assert_allclose(posterior.pointwise[1, draw], expected, rtol=1e-5, atol=1e-5)
    assert posterior.attrs["likelihood"] == {"name": "margin", "gamma": gamma}


def test_without_a_margin_it_is_the_published_likelihood(lists: NBest) -> None:
    published = as_draws(adapt(lists, CANONICAL, likelihood="oracle", sampler="map"))
    flat = as_draws(adapt(lists, CANONICAL, likelihood=Margin(gamma=0.0), sampler="map"))
    np.testing.assert_allclose(flat.mean, published.mean, atol=1e-5)
    assert published.attrs["likelihood"] == {"name": "oracle"}


def test_a_margin_moves_the_mode(lists: NBest) -> None:
    published = as_draws(adapt(lists, CANONICAL, likelihood="oracle", sampler="map"))
    wide = as_draws(adapt(lists, CANONICAL, likelihood="margin", sampler="map"))
    assert np.abs(wide.mean - published.mean).max() > 0.01


def test_equal_features_of_another_worth_have_rows_of_their_own(lists: NBest) -> None:
    matched, worth = match(CANONICAL, lists), gains(lists, "ter", cache=False)
    blind = tabulate(lists, matched, [0, 0, 0])
    seeing = tabulate(lists, matched, [0, 0, 0], gains=worth)
    rows = [sum(int((b.hypothesis >= 0).sum()) for b in found.buckets) for found in (blind, seeing)]
    assert rows == [14, 15]


def test_another_margin_is_not_another_program(lists: NBest) -> None:
    matched, worth = match(CANONICAL, lists), gains(lists, "ter", cache=False)
    table = tabulate(lists, matched, [0, 0, 0], gains=worth)
    assert Margin(gamma=1.0).prepare(table)[1] == Margin(gamma=3.0).prepare(table)[1] == Oracle()


@pytest.mark.parametrize("gamma", [-1.0, float("nan"), float("inf"), "2"])
def test_a_margin_is_a_number_from_zero_on(gamma: object) -> None:
    with pytest.raises(UsageError, match="gamma must be a number from 0 on"):
        Margin.configured("likelihood margin", {"gamma": gamma})

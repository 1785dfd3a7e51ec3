"""The margin likelihood, compared with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import reference_model
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
    """Lists with equal derivations, and with equal features of different texts."""
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


def log_p(lists: NBest, weights: reference_model.Array, gamma: float) -> reference_model.Array:
    """Return the softmax-margin log-likelihood of each sentence, with TER edits as gains."""
    gain_values, best = (
        gains(lists, "ter", cache=False),
        oracles(lists, preference=lists.scores([0.4, -0.2]), cache=False).index,
    )
    result = []
    for sentence in range(len(lists)):
        rows = lists.rows(sentence)
        list_gains, scores = gain_values[rows], lists.features[rows].astype(np.float64) @ weights
        at = best[sentence]
        result.append(scores[at] - logsumexp(scores + gamma * (list_gains[at] - list_gains)))
    return np.array(result)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 4.0])
def test_margin_agrees_with_scipy(lists: NBest, gamma: float) -> None:
    posterior = as_draws(
        adapt(lists, CANONICAL, likelihood=Margin(gamma=gamma), sampler="imh", draws=10)
    )
    assert posterior.pointwise is not None
    for draw in (0, 9):
        expected = log_p(lists, posterior.weights[1, draw], gamma)
        np.testing.assert_allclose(posterior.pointwise[1, draw], expected, rtol=1e-5, atol=1e-5)
    assert posterior.attrs["likelihood"] == {"name": "margin", "gamma": gamma}


def test_zero_margin_equals_oracle_likelihood(lists: NBest) -> None:
    published = as_draws(adapt(lists, CANONICAL, likelihood="oracle", sampler="map"))
    flat = as_draws(adapt(lists, CANONICAL, likelihood=Margin(gamma=0.0), sampler="map"))
    np.testing.assert_allclose(flat.mean, published.mean, atol=1e-5)
    assert published.attrs["likelihood"] == {"name": "oracle"}


def test_margin_changes_the_mode(lists: NBest) -> None:
    published = as_draws(adapt(lists, CANONICAL, likelihood="oracle", sampler="map"))
    wide = as_draws(adapt(lists, CANONICAL, likelihood="margin", sampler="map"))
    assert np.abs(wide.mean - published.mean).max() > 0.01


def test_hypotheses_with_different_gains_are_not_merged(lists: NBest) -> None:
    matched, gain_values = match(CANONICAL, lists), gains(lists, "ter", cache=False)
    without_gains = tabulate(lists, matched, [0, 0, 0])
    with_gains = tabulate(lists, matched, [0, 0, 0], gains=gain_values)
    rows = [
        sum(int((b.hypothesis >= 0).sum()) for b in result.buckets)
        for result in (without_gains, with_gains)
    ]
    assert rows == [14, 15]


def test_margins_share_one_compiled_program(lists: NBest) -> None:
    matched, gain_values = match(CANONICAL, lists), gains(lists, "ter", cache=False)
    table = tabulate(lists, matched, [0, 0, 0], gains=gain_values)
    assert Margin(gamma=1.0).prepare(table)[1] == Margin(gamma=3.0).prepare(table)[1] == Oracle()


@pytest.mark.parametrize("gamma", [-1.0, float("nan"), float("inf"), "2"])
def test_rejects_invalid_gamma(gamma: object) -> None:
    with pytest.raises(UsageError, match="gamma must be a number ≥ 0"):
        Margin.configured("likelihood margin", {"gamma": gamma})

"""Topics by LDA: the Gibbs sampler compared with enumeration, and recovery of planted topics."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from phrase_pairs import sentences_of
from planted import planted
from raising import raises
from sklearn.metrics import adjusted_rand_score

from bpa_ppl.errors import UsageError
from bpa_ppl.models.subdomains import LDASettings, configured, induce
from bpa_ppl.models.subdomains.topics import GibbsSampler
from bpa_ppl.phrases import NumberedText

TINY = NumberedText.of([["a", "b", "a"], ["b"], [], ["c", "a", "c"]])
ALPHA, BETA = 0.7, 0.3
SETTINGS = LDASettings(k=2, alpha=ALPHA, beta=BETA, seed=3)


def urn_probability(topics: tuple[int, ...], k: int) -> float:
    """Return p(words, topics) token by token: topics and words are drawn from Pólya's urns."""
    probability, token = 1.0, 0
    of_topic: list[list[str]] = [[] for _ in range(k)]
    for sentence in sentences_of(TINY):
        earlier: list[int] = []
        for word in sentence:
            z = topics[token]
            probability *= (earlier.count(z) + ALPHA) / (len(earlier) + k * ALPHA)
            words = of_topic[z]
            probability *= (words.count(word) + BETA) / (len(words) + len(TINY.words) * BETA)
            earlier.append(z)
            words.append(word)
            token += 1
    return probability


def test_log_density_and_shares_agree_with_urns() -> None:
    sampler = GibbsSampler(TINY, SETTINGS)
    for _ in range(5):
        sampler.step()
        topics = tuple(sampler.topics.tolist())
        assert sampler.log_density() == pytest.approx(np.log(urn_probability(topics, 2)))
        parts = [topics[:3], topics[3:4], (), topics[4:]]
        expected = [[(p.count(z) + ALPHA) / (len(p) + 2 * ALPHA) for z in (0, 1)] for p in parts]
        np.testing.assert_allclose(sampler.shares(), expected)


def test_gibbs_sampler_agrees_with_enumeration() -> None:
    states = list(product(range(2), repeat=len(TINY.numbers)))
    exact = np.array([urn_probability(state, 2) for state in states])
    exact /= exact.sum()
    # Functions that do not change if topics are renamed: which tokens share a topic.
    pairs = np.triu_indices(len(TINY.numbers), 1)
    together = np.array([np.equal.outer(state, state)[pairs] for state in np.array(states)])
    sampler, draws = GibbsSampler(TINY, SETTINGS), []
    for _ in range(20_000):
        sampler.step()
        draws.append(np.equal.outer(sampler.topics, sampler.topics)[pairs])
    batches = np.array(draws, float).reshape(50, -1, len(pairs[0])).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert error.max() < 0.01
    difference = batches.mean(axis=0) - exact @ together
    assert (abs(difference) < 5 * error).all(), difference / error
    assert np.ptp(exact @ together) > 0.1


@pytest.mark.parametrize("side", ["target", "both"])
def test_planted_topics_are_recovered(side: Any) -> None:
    source, target, truth = planted(3, 150, 0.9, words=100, length=15)
    result = induce(source, target, 3, induction="lda", side=side)
    assert adjusted_rand_score(truth, result.winners()) >= 0.9
    assert not result.hard
    assert result.settings["side"] == side
    assert (result.settings["alpha"], result.settings["beta"]) == (0.01, 0.01)
    np.testing.assert_allclose(result.weights, result.posteriors().mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("induction", "settings", "code", "parameter"),
    [
        ("lda", {"order": 2}, "conflict", "order"),
        ("em", {"alpha": 0.1}, "conflict", "alpha"),
        ("lda", {"alpha": 0.0}, "invalid-setting", "alpha"),
        ("gibbs", {}, "unknown-name", "induction"),
    ],
)
def test_rejects_invalid_settings(
    induction: str, settings: dict[str, Any], code: str, parameter: str
) -> None:
    with raises(UsageError, code, parameter=parameter):
        configured(induction, settings)
    with raises(UsageError, code, parameter=parameter):
        induce([["a"]] * 2, [["b"]] * 2, 2, induction=induction, **settings)  # type: ignore[arg-type]

"""The decision rules, compared with double loops over draws and hypotheses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference_model
from external_posterior import external_posterior

from bpa_ppl import NBest, Reranked, UsageError, rerank
from bpa_ppl.decoding.batches import _log_scores
from bpa_ppl.decoding.reranking import rerank_stream
from bpa_ppl.posterior import point_weights

NAMES = ("LM0", "TM0", "WP0")
DRAWS = 600  # more than one batch


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Twenty lists of 1 to 70 hypotheses, with derivations of equal strings."""
    rng = np.random.default_rng(4)
    sizes = [1, 2, 70, *rng.integers(1, 30, size=17)]
    texts = [[f"t{rng.integers(1 + n // 2)}" for _ in range(n)] for n in sizes]
    features = [rng.normal(-20, 4, size=(n, 3)) for n in sizes]
    return NBest.from_lists(texts, features, NAMES)


@pytest.fixture(scope="module")
def weights() -> reference_model.Array:
    return np.random.default_rng(6).normal([0.4, -0.2, 0.1], 0.8, size=(2, DRAWS // 2, 3))


@pytest.fixture(scope="module")
def log_joint() -> reference_model.Array:
    return np.random.default_rng(8).normal(-300, 2, size=(2, DRAWS // 2))


def assert_chosen(result: Reranked, expected: list[reference_model.Array]) -> None:
    """Assert that choices maximise p(e) of each list, except near ties, and their probabilities."""
    for sentence, p in enumerate(expected):
        assert p[result.choice[sentence]] == pytest.approx(p.max(), rel=1e-4)
        assert result.probability[sentence] == pytest.approx(p[result.choice[sentence]], rel=1e-4)


def test_markov_chains_use_eq_13(lists: NBest, weights: reference_model.Array) -> None:
    result = rerank(lists, external_posterior(weights, NAMES), unchecked=True)
    assert_chosen(result, reference_model.predictive(lists, weights.reshape(-1, 3)))


def test_large_scores_do_not_overflow(lists: NBest, weights: reference_model.Array) -> None:
    """With 40 times larger weights exp(score) overflows float32 for some draws."""
    centre = weights.mean(axis=(0, 1))
    broad = centre + 40 * (weights - centre)
    longest = lists.features[lists.rows(2)].astype(float)
    above = (longest - longest[np.argmax(longest @ centre)]) @ broad.reshape(-1, 3).T
    assert above.max() > np.log(np.finfo(np.float32).max)
    result = rerank(lists, external_posterior(broad, NAMES), unchecked=True)
    assert_chosen(result, reference_model.predictive(lists, broad.reshape(-1, 3)))


def test_program_is_compiled_once_per_size(lists: NBest, weights: reference_model.Array) -> None:
    rerank(lists, external_posterior(weights, NAMES), unchecked=True)
    known = _log_scores._cache_size()
    rerank(lists, external_posterior(weights[::-1] + 0.5, NAMES), unchecked=True)
    assert _log_scores._cache_size() == known


@pytest.mark.parametrize("delta", [1.0, 3.0])
def test_weighted_samples_use_eq_11(
    lists: NBest, weights: reference_model.Array, log_joint: reference_model.Array, delta: float
) -> None:
    posterior = external_posterior(weights, NAMES, log_weight=log_joint)
    posterior.attrs["likelihood_exponent"] = 1 / delta
    result = rerank(lists, posterior, unchecked=True)
    importance = np.exp(log_joint - log_joint.max()).reshape(-1)
    assert_chosen(
        result, reference_model.predictive(lists, weights.reshape(-1, 3), importance, 1 / delta)
    )


@pytest.mark.parametrize("name", ["lp", "log_weight"])
def test_viterbi_uses_the_best_pair(
    lists: NBest, weights: reference_model.Array, log_joint: reference_model.Array, name: str
) -> None:
    posterior = external_posterior(weights, NAMES, **{name: log_joint})
    result = rerank(lists, posterior, rule="viterbi", unchecked=True)
    for sentence in range(len(lists)):
        features = lists.features[lists.rows(sentence)]
        pairs = [
            reference_model.log_choice(features, vector) + joint
            for vector, joint in zip(weights.reshape(-1, 3), log_joint.reshape(-1), strict=True)
        ]
        best = np.max(pairs, axis=0)
        assert best[result.choice[sentence]] == pytest.approx(best.max(), abs=1e-4)


def test_mean_rule_uses_only_the_mean(lists: NBest, weights: reference_model.Array) -> None:
    result = rerank(lists, external_posterior(weights, NAMES), rule="mean", unchecked=True)
    assert_chosen(
        result, reference_model.predictive(lists, weights.reshape(-1, 3).mean(axis=0)[None])
    )


def test_summed_derivations_are_summed_over_equal_strings(
    lists: NBest, weights: reference_model.Array
) -> None:
    result = rerank(lists, external_posterior(weights, NAMES), derivations="summed", unchecked=True)
    separate = reference_model.predictive(lists, weights.reshape(-1, 3))
    for sentence, p in enumerate(separate):
        total: dict[str, float] = {}
        for text, share in zip(lists.texts(sentence), p, strict=True):
            total[text] = total.get(text, 0.0) + share
        chosen = result.texts[sentence]
        assert total[chosen] == pytest.approx(max(total.values()), rel=1e-4)
        assert result.probability[sentence] == pytest.approx(total[chosen], rel=1e-4)
        equals = [i for i, text in enumerate(lists.texts(sentence)) if text == chosen]
        assert p[result.choice[sentence]] == pytest.approx(p[equals].max(), rel=1e-4)


@pytest.mark.parametrize("rule", ["predictive", "viterbi", "mean"])
@pytest.mark.parametrize("derivations", ["separate", "summed"])
def test_first_hypothesis_wins_ties(rule: str, derivations: str) -> None:
    rows = [[0.0], [1.0], [1.0], [1.0]]
    pool = NBest.from_lists([["a", "b", "c", "b"], ["x", "y"]], [rows, [[2.0], [2.0]]], ["LM0"])
    posterior = external_posterior(np.ones((1, 4, 1)), ("LM0",), lp=np.zeros((1, 4)))
    result = rerank(pool, posterior, rule=rule, derivations=derivations, unchecked=True)
    assert result.choice.tolist() == [1, 0]


def test_single_hypothesis_has_probability_one(weights: reference_model.Array) -> None:
    pool = NBest.from_lists([["a"], ["b"]], [[[1.0, 2.0, 3.0]]] * 2, NAMES)
    result = rerank(pool, external_posterior(weights, NAMES), unchecked=True)
    assert result.choice.tolist() == [0, 0]
    assert result.probability.tolist() == [1.0, 1.0]


def test_probabilities_of_two_hypotheses_sum_to_one(weights: reference_model.Array) -> None:
    rng = np.random.default_rng(9)
    tables = rng.normal(size=(20, 2, 3))
    pool = NBest.from_lists([["a", "b"]] * 20, list(tables), NAMES)
    swapped = NBest.from_lists([["a", "b"]] * 20, list(tables[:, ::-1]), NAMES)
    ours, theirs = (
        rerank(lists, external_posterior(weights, NAMES), unchecked=True)
        for lists in (pool, swapped)
    )
    np.testing.assert_array_equal(ours.choice, 1 - theirs.choice)
    other = np.where(ours.choice == 0, ours.canonical_probability, 1 - ours.canonical_probability)
    np.testing.assert_allclose(ours.probability, other, rtol=1e-5)


@pytest.mark.parametrize("piece", [1, 7, 20])
def test_stream_agrees_with_table(lists: NBest, weights: reference_model.Array, piece: int) -> None:
    def stream() -> Iterator[NBest]:
        yield from lists.chunks(piece)

    whole = rerank(lists, external_posterior(weights, NAMES), unchecked=True)
    parts = rerank(stream(), external_posterior(weights, NAMES), unchecked=True)
    np.testing.assert_array_equal(parts.choice, whole.choice)
    np.testing.assert_allclose(parts.probability, whole.probability, rtol=1e-5)
    assert parts.texts == whole.texts
    np.testing.assert_array_equal(parts.sentence_ids, lists.sentence_ids)


def test_stream_is_processed_lazily(lists: NBest, weights: reference_model.Array) -> None:
    taken: list[int] = []

    def stream() -> Iterator[NBest]:
        for chunk in lists.chunks(4):
            taken.append(len(chunk))
            yield chunk

    first = next(rerank_stream(stream(), external_posterior(weights, NAMES), unchecked=True))
    assert len(first.choice) == 4
    assert len(taken) == 1


def test_features_are_matched_by_name(lists: NBest, weights: reference_model.Array) -> None:
    turned = external_posterior(weights[..., [2, 0, 1]], ("WP0", "LM0", "TM0"))
    whole = rerank(lists, external_posterior(weights, NAMES), unchecked=True)
    np.testing.assert_array_equal(rerank(lists, turned, unchecked=True).choice, whole.choice)


def test_single_draw_equals_log_linear_model(lists: NBest, weights: reference_model.Array) -> None:
    one = weights[:1, :1]
    posterior = external_posterior(one, NAMES)
    result = rerank(lists, posterior, unchecked=True)
    np.testing.assert_array_equal(result.choice, lists.best(lists.scores(one[0, 0])))
    assert point_weights(posterior).values_array.tolist() == one[0, 0].tolist()


def test_rejects_empty_input(lists: NBest, weights: reference_model.Array) -> None:
    with pytest.raises(UsageError, match="no list to rerank"):
        rerank([], external_posterior(weights, NAMES), unchecked=True)


@pytest.mark.parametrize("wrong", [{"rule": "majority"}, {"derivations": "merged"}])
def test_rejects_unknown_rules(
    lists: NBest, weights: reference_model.Array, wrong: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="choose one of"):
        rerank(lists, external_posterior(weights, NAMES), unchecked=True, **wrong)

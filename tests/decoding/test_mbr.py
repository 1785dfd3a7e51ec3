"""Minimum-risk decoding, compared with double loops using sacreBLEU, and rules that use texts."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import reference_model
from external_posterior import external_posterior
from sacrebleu.metrics import BLEU, CHRF, TER

from bpa_ppl import NBest, UsageError, rerank
from bpa_ppl.decoding import reranking
from bpa_ppl.decoding.batches import BatchDecider, DecisionSettings
from bpa_ppl.decoding.rules import Mbr, Predictive
from bpa_ppl.posterior import as_draws

NAMES = ("LM0", "TM0", "WP0")
WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat")
JUDGES: dict[str, Any] = {
    "ter": TER(),
    "bleu": BLEU(tokenize="none", effective_order=True, force=True),
    "chrf": CHRF(),
}


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Fifteen lists of 1 to 19 hypotheses, with several derivations of some strings."""
    rng = np.random.default_rng(4)
    sizes = [1, 16, *rng.integers(2, 20, size=13)]
    texts = []
    for n in sizes:
        strings = [" ".join(rng.choice(WORDS, size=rng.integers(2, 8))) for _ in range(1 + n // 2)]
        texts.append([str(rng.choice(strings)) for _ in range(n)])
    features = [rng.normal(-20, 2, size=(n, 3)) for n in sizes]
    return NBest.from_lists(texts, features, NAMES, references=["the cat"] * len(sizes))


@pytest.fixture(scope="module")
def weights() -> reference_model.Array:
    return np.random.default_rng(6).normal([0.4, -0.2, 0.1], 0.3, size=(1, 90, 3))


@pytest.mark.parametrize("gain", ["ter", "bleu", "chrf"])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_choices_agree_with_all_pairs(
    lists: NBest, weights: reference_model.Array, gain: str, temperature: float
) -> None:
    result = rerank(
        lists,
        external_posterior(weights, NAMES),
        rule=Mbr(gain=gain),
        temperature=temperature,
        unchecked=True,
    )
    sign = -1 if gain == "ter" else 1
    differs = 0
    for s, predicted in enumerate(reference_model.predictive(lists, weights[0])):
        texts, p = lists.texts(s), predicted ** (1 / temperature)
        p /= p.sum()
        score = {t: {r: JUDGES[gain].sentence_score(t, [r]).score for r in texts} for t in texts}
        risk = {
            t: sign * sum(q * score[t][r] for q, r in zip(p, texts, strict=True)) for t in texts
        }
        assert risk[result.texts[s]] == pytest.approx(max(risk.values()), abs=1e-4)
        own = [q for q, t in zip(p, texts, strict=True) if t == result.texts[s]]
        assert p[result.choice[s]] == pytest.approx(max(own))
        assert result.probability[s] == pytest.approx(p[result.choice[s]], rel=1e-4)
        differs += result.texts[s] != texts[int(np.argmax(p))]
    assert differs > 1


def test_derivations_affect_probabilities_only(
    lists: NBest, weights: reference_model.Array
) -> None:
    separate, summed = (
        rerank(
            lists, external_posterior(weights, NAMES), rule="mbr", derivations=how, unchecked=True
        )
        for how in ("separate", "summed")
    )
    np.testing.assert_array_equal(separate.choice, summed.choice)
    assert np.all(summed.probability >= separate.probability - 1e-12)
    assert np.any(summed.probability > separate.probability + 0.01)


def test_certain_posterior_has_no_risk(lists: NBest, weights: reference_model.Array) -> None:
    steep = external_posterior(100 * weights, NAMES)
    ours, theirs = (
        rerank(lists, steep, rule=rule, derivations="summed", unchecked=True, temperature=1e-3)
        for rule in ("mbr", "predictive")
    )
    assert ours.texts == theirs.texts


def test_pickled_rule_gives_the_same_choices(lists: NBest, weights: reference_model.Array) -> None:
    draws = as_draws(external_posterior(weights, NAMES))
    decider = BatchDecider.of(draws, lists, Mbr(), DecisionSettings(min_confidence=0.3))
    direct_result = decider.choose(lists)
    pickled_result = pickle.loads(pickle.dumps(decider)).choose(decider.stripped(lists))
    assert_same(direct_result, pickled_result)


def assert_same(ours: Any, theirs: Any) -> None:
    assert ours.choice.tobytes() == theirs.choice.tobytes()
    for name, values in vars(ours.confidence).items():
        assert (
            np.asarray(values).tobytes() == np.asarray(getattr(theirs.confidence, name)).tobytes()
        ), name


@pytest.mark.slow
def test_choices_do_not_depend_on_workers(
    lists: NBest, weights: reference_model.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"rule": Mbr(gain="chrf"), "unchecked": True, "min_confidence": 0.3}
    serial_result = rerank(lists, external_posterior(weights, NAMES), **asked)
    monkeypatch.setattr(reranking, "_SMALL", 1)
    parallel_result = rerank(lists, external_posterior(weights, NAMES), jobs=2, **asked)
    assert_same(serial_result, parallel_result)


class Longest(Predictive, frozen=True):
    """A rule that prefers long texts."""

    needs_texts = True

    def decide(self, lists: NBest, probabilities: Any) -> Any:
        assert lists.references is None
        sums = np.add.reduceat(probabilities, lists.offsets[:-1])
        np.testing.assert_allclose(sums, 1.0)
        return lists.best([len(lists.text(row)) for row in range(len(lists.features))])


def test_custom_rule_gets_texts_and_probabilities(
    lists: NBest, weights: reference_model.Array
) -> None:
    result = rerank(lists, external_posterior(weights, NAMES), rule=Longest(), unchecked=True)
    assert [len(t) for t in result.texts] == [
        max(map(len, lists.texts(s))) for s in range(len(lists))
    ]
    assert result.references == list(lists.references or ())


def test_rejects_unknown_gain() -> None:
    with pytest.raises(UsageError, match="gain must be one of"):
        Mbr(gain="comet")  # type: ignore[arg-type]

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu.metrics as sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises

import bpa_ppl
from bpa_ppl import NBest, add_features
from bpa_ppl.decoding.rules import Mbr
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.quality.pairs import pairs_of
from bpa_ppl.registry import FEATURES


def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
    """The n-grams of a text and how often each is there."""
    words = text.split()
    return Counter(tuple(words[j : j + n]) for j in range(len(words) - n + 1))


def plain(texts: list[str], probabilities: list[float], n: int, mean: bool) -> list[float]:
    """Every n-gram of every hypothesis against every hypothesis of its list."""
    result = []
    for text in texts:
        own = grams(text, n)
        total = sum(
            count
            * sum(p for p, other in zip(probabilities, texts, strict=True) if w in grams(other, n))
            for w, count in own.items()
        )
        result.append(total / max(sum(own.values()), 1) if mean else total)
    return result


sentence = st.lists(st.sampled_from("abc"), max_size=7).map(" ".join)
tables = st.lists(st.lists(sentence, min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(tables, st.booleans(), st.sampled_from([0.0, 0.7]), st.data())
def test_equals_brute_force(
    texts: list[list[str]], mean: bool, scale: float, data: st.DataObject
) -> None:
    rows = sum(map(len, texts))
    totals = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=rows, max_size=rows)))
    lists = replace(of_texts(texts), totals=totals)
    result = Consensus(mean=mean, scale=scale).columns(lists)
    assert list(result) == [f"consensus.{n}" for n in (1, 2, 3, 4)]
    for n, column in enumerate(result.values(), 1):
        expected: list[float] = []
        for s, own in enumerate(texts):
            weights = np.exp(scale * totals[lists.rows(s)])
            expected += plain(own, (weights / weights.sum()).tolist(), n, mean)
        assert np.asarray(column) == pytest.approx(expected, abs=1e-12)


def test_lists_are_independent(toy: NBest) -> None:
    whole = add_features(toy, Consensus())
    assert whole.feature_names[3:] == tuple(f"consensus.{n}" for n in (1, 2, 3, 4))
    parts = NBest.concatenate([add_features(one, "consensus") for one in toy])
    assert np.array_equal(whole.features, parts.features)


def test_a_high_scale_keeps_the_best_hypothesis_only() -> None:
    lists = NBest.from_lists(
        [["a b c", "a b", "c"]], [[[0.0]] * 3], ["LM0"], totals=[[1.0, 900.0, -900.0]]
    )
    result = np.asarray(Consensus(order=1, scale=50.0).columns(lists)["consensus.1"])
    assert result == pytest.approx([2, 2, 0])


def test_columns_can_have_another_name(toy: NBest) -> None:
    both = [Consensus(order=1), Consensus(order=2, mean=True, name="share")]
    assert add_features(toy, both).feature_names[3:] == ("consensus.1", "share.1", "share.2")
    shares = add_features(toy, both).features[:, 4:]
    assert ((shares >= 0) & (shares <= 1)).all()


def test_invalid_settings(toy: NBest) -> None:
    with raises(UsageError, "invalid-setting", parameter="order"):
        Consensus(order=0)
    with raises(UsageError, "invalid-setting", parameter="metric"):
        FEATURES.resolve("consensus", {"metric": "comet"})
    for counting in ({"order": 2}, {"scale": 0.1}, {"mean": True}):
        with raises(UsageError, "conflict", parameter="order"):
            Consensus(metric="chrf", **counting)
    with raises(DataError, "missing-column", parameter="scale"):
        add_features(toy, Consensus(scale=2.0))


def test_no_lists_at_all() -> None:
    lists = NBest.from_lists([["a"]], [[[0.0]]], ["LM0"], totals=[[1.0]])
    for source in (Consensus(), Consensus(scale=1.0)):
        assert add_features(lists[:0], source).features.shape == (0, 5)


THEIRS: dict[str, Callable[[], Any]] = {
    "ter": sacrebleu.TER,
    "bleu": lambda: sacrebleu.BLEU(tokenize="none", effective_order=True, force=True),
    "chrf": sacrebleu.CHRF,
}
TEXTS = [
    ["the cat sat", "The cat sat", "a cat sat down", "the cat sat", ""],
    ["alone"],
    ["one two three four five", "five four three two one"],
    ["same", "same"],
]


def of_texts(texts: list[list[str]]) -> NBest:
    return NBest.from_lists(texts, [np.zeros((len(own), 1)) for own in texts], ["LM0"])


@pytest.mark.parametrize("metric", THEIRS)
def test_the_mean_score_against_the_others_is_sacrebleus(metric: str) -> None:
    score, sign = THEIRS[metric]().sentence_score, -1 if metric == "ter" else 1
    expected = [
        sign * np.mean([score(text, [o]).score for j, o in enumerate(own) if j != i] or [0.0])
        for own in TEXTS
        for i, text in enumerate(own)
    ]
    result = Consensus(metric=metric, name="other").columns(of_texts(TEXTS))
    assert list(result) == [f"other.{metric}"]
    np.testing.assert_allclose(result[f"other.{metric}"], expected, atol=1e-9)
    assert len(set(np.round(expected, 6))) >= 5


@pytest.mark.parametrize("metric", THEIRS)
def test_the_mean_score_is_the_expected_gain_of_the_rule_mbr(metric: str) -> None:
    """With the same probability for all hypotheses, but for the own one."""
    texts = ["the cat sat", "the cat sat down", "a dog sat down", "the dog sat", "a cat"]
    lists, count = of_texts([texts]), len(texts)
    result = np.asarray(Consensus(metric=metric).columns(lists)[f"consensus.{metric}"])
    pairs, own = pairs_of(texts, metric), 0.0 if metric == "ter" else 100.0
    uniform = np.full(count, 1 / count)
    best, gain = pairs.best(uniform)
    assert [best] == Mbr(gain=metric).decide(lists, uniform).tolist() == [int(result.argmax())]
    assert gain == pytest.approx(((count - 1) * result[best] + own) / count)


def test_the_mean_chrf_is_that_computed_elsewhere(shared_data: Path) -> None:
    lists = bpa_ppl.read_nbest(shared_data / "judged/wmt23.en-de.jsonl.gz")
    expected = lists.features[:, lists.feature_names.index("consensus_chrf")]
    result = Consensus(metric="chrf").columns(lists)["consensus.chrf"]
    np.testing.assert_allclose(result, expected, atol=6e-4)  # rounded to three decimals

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sacrebleu.metrics as sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import NBest, UsageError, add_features, concatenate, from_lists
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.source import FEATURES

COLUMNS = (
    *("chrf3", "chrf5", "words", "weighted"),
    *("lone_words", "missed_words", "length_gap", "length"),
)


def test_lists_are_independent(toy: NBest) -> None:
    whole = add_features(toy, Consensus())
    assert whole.feature_names[3:] == tuple(f"consensus.{name}" for name in COLUMNS)
    parts = concatenate([add_features(one, "consensus") for one in toy])
    assert np.array_equal(whole.features, parts.features)
    assert add_features(toy[:0], Consensus()).features.shape == (0, 3 + 8)
    with raises(UsageError, "invalid-setting", parameter="metric"):
        FEATURES.resolve("consensus", {"metric": "comet"})


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
    return from_lists(texts, [np.zeros((len(own), 1)) for own in texts], ["LM0"])


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


def f1(a: str, b: str) -> float:
    """F1 of the bags of words, in percent."""
    one, other = Counter(a.split()), Counter(b.split())
    return 200 * (one & other).total() / max((one + other).total(), 1)


def agreement(texts: list[str]) -> list[tuple[float, ...]]:
    """All columns of each text of a list, by comparing all pairs with sacreBLEU."""
    if len(texts) == 1:
        return [(0.0,) * len(COLUMNS)]
    of_order = [sacrebleu.CHRF(char_order=n).sentence_score for n in (3, 5)]

    def chrf(k: int, i: int, j: int) -> float:
        return of_order[k](texts[i], [texts[j]]).score

    everyone = range(len(texts))
    first = [np.mean([chrf(1, i, j) for j in everyone if j != i]) for i in everyone]
    spread = np.std(first)
    weights = np.exp((first - np.mean(first)) / (spread if spread > 1e-7 else np.inf))
    words = [text.split() for text in texts]
    common = {w for own in words for w in own if sum(w in o for o in words) / len(words) >= 0.7}
    median = float(np.median([len(text) for text in texts]))
    result = []
    for i, text in enumerate(texts):
        others = [j for j in everyone if j != i]
        elsewhere = {w for j in others for w in words[j]}
        result.append(
            (
                np.mean([chrf(0, i, j) for j in others]),
                first[i],
                np.mean([f1(text, texts[j]) for j in others]),
                np.average([chrf(1, i, j) for j in others], weights=weights[others]),
                sum(w not in elsewhere for w in words[i]) / max(len(words[i]), 1),
                len(common - set(words[i])) / max(len(common), 1),
                abs(len(text) - median) / (median or 1),
                np.log((len(text) + 1) / (median + 1)),
            )
        )
    return result


def equals_brute_force(texts: list[list[str]]) -> np.ndarray:
    columns = Consensus(name="own").columns(of_texts(texts))
    assert list(columns) == [f"own.{name}" for name in COLUMNS]
    expected = np.array([row for own in texts for row in agreement(own)], np.float64)
    np.testing.assert_allclose(np.column_stack([*columns.values()]), expected, atol=1e-9)
    return expected


WORDS = ("Ab", "ab", "a\u00e9\u00e9", "\u307b\u3093\u3084", "\U0001f600", "hijklmnop", "c", ",")
wild = st.lists(st.sampled_from(WORDS) | st.text("ab\u00e9\u0e01", min_size=1), max_size=9)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(wild.map(" ".join), min_size=1, max_size=7), min_size=1, max_size=3))
def test_agreement_equals_sacrebleu_and_brute_force(texts: list[list[str]]) -> None:
    equals_brute_force(texts)


def test_agreement_where_every_column_has_several_values() -> None:
    texts = [
        *("the cat sat on the mat", "the cat sat on a mat", "the cat sat on the mat", ""),
        *("the cats sat on the mat , the dog", "the cat sat down", "the cat on the mat"),
    ]
    expected = equals_brute_force([texts, ["", ""], ["alone"], ["same", "same"], ["", "x"]])
    assert all(len(set(np.round(column[: len(texts)], 6))) >= 3 for column in expected.T)


def test_a_text_of_enormous_weight_does_not_hide_those_of_the_others() -> None:
    """One text shares a character with each of the others, which share none: exp(z) is 10^17."""
    signs = [chr(0x4E00 + n) for n in range(1600)]
    columns = Consensus().columns(of_texts([["".join(signs), *signs]]))
    assert columns["consensus.weighted"][0] == pytest.approx(columns["consensus.chrf5"][0])

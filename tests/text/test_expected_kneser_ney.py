"""Kneser–Ney on expected counts: against whole texts, and against all outcomes of all coins."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bpa_ppl.text.expected_kneser_ney import WeightedText, counted, extend
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.vocabulary import starts_of
from bpa_ppl.text.words import SPECIAL, Corpus


def sentences(count: int, seed: int = 0) -> list[list[str]]:
    """Return sentences of words as frequent as Zipf has them, some of them empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, count)
    return [[f"w{n}" for n in rng.zipf(1.5, length).clip(0, 40)] for length in lengths]


def weighed(text: list[list[str]], order: int) -> tuple[Corpus, WeightedText]:
    corpus = Corpus.of(text)
    words, starts = corpus.sentences
    numbers = words - np.int32(len(SPECIAL))
    return corpus, WeightedText.of((numbers, starts), len(corpus.words) - len(SPECIAL), order)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_whole_sentences_are_plain_kneser_ney(order: int) -> None:
    text = sentences(300)
    corpus, grams = weighed(text, order)
    kept = np.random.default_rng(1).random(len(text)) < 0.4
    own = [sentence for sentence, k in zip(text, kept, strict=True) if k]
    number = {word: n for n, word in enumerate(corpus.words)}
    numbers = np.array([number[word] for sentence in own for word in sentence], np.int32)
    # The vocabulary is that of all sentences: models of several parts can be compared.
    plain = NgramModel.of_corpus(Corpus(corpus.words, (numbers, starts_of(own)), "own"), order)
    found = grams.log_probabilities(kept.astype(float))
    np.testing.assert_allclose(found, plain.log_probabilities(text), rtol=1e-6)


def test_expectations_over_all_outcomes() -> None:
    text = [["a", "b"], ["b", "a", "b"], ["a"], ["b", "a"]]
    weights = np.array([0.3, 0.9, 0.5, 0.05])
    _, grams = weighed(text, 2)
    counts = counted(grams.longest, grams.starts, weights, int(grams.firsts[-1]))
    extend(counts, grams.suffix, grams.firsts)
    coins = np.repeat(weights, np.diff(grams.starts))
    expected = np.zeros_like(counts)
    for outcome in product((0, 1), repeat=len(coins)):
        heads = np.array(outcome)
        p = np.prod(np.where(heads == 1, coins, 1 - coins))
        pairs = np.bincount(grams.longest, heads, len(counts)).astype(int)
        there = (pairs > 0) & (np.arange(len(counts)) >= grams.firsts[1])
        words = np.bincount(grams.suffix[there], minlength=len(counts))
        for gram, count in enumerate(pairs + words):
            if count < 5:
                expected[gram, count] += p
            expected[gram, 5] += p * count
    np.testing.assert_allclose(counts, expected, atol=1e-12)


@pytest.mark.parametrize("smoothing", ["kneser-ney", "none"])
def test_probabilities_sum_to_one(smoothing: str) -> None:
    text = [[], *([f"w{n}"] for n in range(8))]
    _, grams = weighed(text, 1)
    weights = np.random.default_rng(2).random(len(text))
    weights[-1] = 0.0  # the last word is as probable as one that is in no sentence
    found = np.exp(grams.log_probabilities(weights, smoothing))  # type: ignore[arg-type]
    end, words = found[0], found[1:] / found[0]
    assert words.sum() + end + words[-1] == pytest.approx(1.0)
    assert (words[-1] == 0) == (smoothing == "none")


def test_a_sentence_that_is_left_out_is_judged_by_the_others() -> None:
    text = sentences(60, seed=3)
    _, grams = weighed(text, 3)
    weights = np.ones(len(text))
    weights[7] = 0.0
    alone = grams.log_probabilities(weights, chosen=np.arange(len(text)) == 7)
    assert alone[7] == grams.log_probabilities(weights)[7]
    assert alone[7] < grams.log_probabilities(np.ones(len(text)))[7]
    assert not alone[np.arange(len(text)) != 7].any()

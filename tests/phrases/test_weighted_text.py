"""Kneser–Ney on expected counts, compared with whole sentences and with enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bpa_ppl.phrases.subdomain_em import WeightedText, add_shorter_counts, count_ngrams
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import SPECIAL, NumberedText, find_starts, join_texts


def random_sentences(count: int, seed: int = 0) -> list[list[str]]:
    """Return sentences with Zipf-distributed words, some of them empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, count)
    return [[f"w{n}" for n in rng.zipf(1.5, length).clip(0, 40)] for length in lengths]


def weighted_text(text: list[list[str]], order: int) -> tuple[NumberedText, WeightedText]:
    corpus = join_texts([("text", [text])])
    numbers = corpus.numbers - np.int32(len(SPECIAL))
    return corpus, WeightedText.of(
        (numbers, corpus.starts), len(corpus.words) - len(SPECIAL), order
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_zero_one_weights_equal_kneser_ney_of_selection(order: int) -> None:
    text = random_sentences(300)
    corpus, grams = weighted_text(text, order)
    kept = np.random.default_rng(1).random(len(text)) < 0.4
    selected = [sentence for sentence, k in zip(text, kept, strict=True) if k]
    number = {word: n for n, word in enumerate(corpus.words)}
    numbers = np.array([number[word] for sentence in selected for word in sentence], np.int32)
    # The vocabulary is that of all sentences, so that models of different parts are comparable.
    plain = NgramModel.of_corpus(NumberedText(corpus.words, numbers, find_starts(selected)), order)
    result = grams.log_probabilities(kept.astype(float))
    np.testing.assert_allclose(result, plain.log_probabilities(text), rtol=1e-6)


def test_expected_counts_agree_with_enumeration() -> None:
    text = [["a", "b"], ["b", "a", "b"], ["a"], ["b", "a"]]
    weights = np.array([0.3, 0.9, 0.5, 0.05])
    _, grams = weighted_text(text, 2)
    counts = count_ngrams(grams.longest, grams.starts, weights, int(grams.firsts[-1]))
    add_shorter_counts(counts, grams.suffix, grams.firsts)
    coins = np.repeat(weights, np.diff(grams.starts))
    expected = np.zeros_like(counts)
    for outcome in product((0, 1), repeat=len(coins)):
        heads = np.array(outcome)
        p = np.prod(np.where(heads == 1, coins, 1 - coins))
        pairs = np.bincount(grams.longest, heads, len(counts)).astype(int)
        present = (pairs > 0) & (np.arange(len(counts)) >= grams.firsts[1])
        words = np.bincount(grams.suffix[present], minlength=len(counts))
        for gram, count in enumerate(pairs + words):
            if count < 5:
                expected[gram, count] += p
            expected[gram, 5] += p * count
    np.testing.assert_allclose(counts, expected, atol=1e-12)


@pytest.mark.parametrize("smoothing", ["kneser-ney", "none"])
def test_probabilities_sum_to_one(smoothing: str) -> None:
    text = [[], *([f"w{n}"] for n in range(8))]
    _, grams = weighted_text(text, 1)
    weights = np.random.default_rng(2).random(len(text))
    weights[-1] = 0.0  # the last word has the probability of an unknown word
    result = np.exp(grams.log_probabilities(weights, smoothing))  # type: ignore[arg-type]
    end, words = result[0], result[1:] / result[0]
    assert words.sum() + end + words[-1] == pytest.approx(1.0)
    assert (words[-1] == 0) == (smoothing == "none")


def test_left_out_sentence_is_scored_by_the_others() -> None:
    text = random_sentences(60, seed=3)
    _, grams = weighted_text(text, 3)
    weights = np.ones(len(text))
    weights[7] = 0.0
    left_out = grams.log_probabilities(weights, chosen=np.arange(len(text)) == 7)
    assert left_out[7] == grams.log_probabilities(weights)[7]
    assert left_out[7] < grams.log_probabilities(np.ones(len(text)))[7]
    assert not left_out[np.arange(len(text)) != 7].any()

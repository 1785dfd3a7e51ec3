"""Language models, compared with KenLM's lmplz and query and with plain Python.

`golden/harbour.txt` was written for these tests. KenLM created the ARPA files from it (`lmplz -o 3
--discount_fallback`, and `-o 5`), and the binary file from the first of them (`build_binary trie`).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.text.arpa import read_arpa
from bpa_ppl.text.gram_tables import numbers_of
from bpa_ppl.text.kneser_ney import discounts_of
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import SPECIAL, words_of

GOLDEN = Path(__file__).parent / "golden"
TEXT = GOLDEN / "harbour.txt"
TEST_SENTENCES = [
    "the ferry leaves the harbour at ten",
    "a whale waits at the gate",
    "",
    "the café sail",
    "10\u00a0000 dogs",
]
#: Of the lines above: the totals that query of KenLM printed.
TOTALS = {
    3: [-5.656879, -9.139996, -1.261344, -5.8737664, -5.6232133],
    5: [-3.4854538, -9.018486, -1.261344, -5.8272586, -5.5061173],
}
Grams = dict[tuple[str, ...], tuple[float, float]]


def arpa_ngrams(path: Path) -> Grams:
    """Return log10 p and log10 of the back-off weight of each n-gram of an ARPA file."""
    fields = [line.split("\t") for line in read_lines(path) if "\t" in line]
    return {
        tuple(words_of(gram)): (float(p), float(rest[0]) if rest else 0.0)
        for p, gram, *rest in fields
    }


def reference_score(table: Grams, context: tuple[str, ...], word: str) -> float:
    """Return log10 p by the definition of the format: the longest n-gram, otherwise back off."""
    if (*context, word) in table:
        return table[*context, word][0]
    if not context:
        return table["<unk>",][0]
    return table.get(context, (0.0, 0.0))[1] + reference_score(table, context[1:], word)


def reference_scores(table: Grams, order: int, words: list[str]) -> list[float]:
    history = [
        "<s>",
        *(w if (w,) in table and w not in SPECIAL else "<unk>" for w in words),
        "</s>",
    ]
    return [
        reference_score(table, tuple(history[max(0, i - order + 1) : i]), history[i])
        for i in range(1, len(history))
    ]


def model_ngrams(model: NgramModel) -> Grams:
    """Return the same for a model in memory."""
    result: Grams = {}
    names: list[list[tuple[str, ...]]] = []
    tables = model.tables
    for n in range(1, model.order + 1):
        rows = range(tables.firsts[n - 1], tables.firsts[n])
        pairs = [
            (int(tables.keys[g]) >> 32, model.words[int(tables.keys[g]) & 0xFFFF]) for g in rows
        ]
        names.append([(*(names[-1][context] if n > 1 else ()), word) for context, word in pairs])
        for gram, row in zip(names[-1], rows, strict=True):
            result[gram] = float(tables.log10[row]), float(tables.backoff[row])
    return result


@pytest.mark.parametrize("order", [3, 5])
def test_estimates_agree_with_lmplz(order: int) -> None:
    expected = arpa_ngrams(GOLDEN / f"harbour.o{order}.arpa.gz")
    model = NgramModel.train([TEXT], order)
    result = model_ngrams(model)
    assert result.keys() == expected.keys()
    difference = [np.subtract(result[gram], expected[gram]) for gram in expected]
    assert np.abs(difference).max() < 2e-6
    assert model.fallback == ((5,) if order == 5 else ())  # as lmplz reports


@pytest.mark.parametrize("order", [3, 5])
def test_scores_agree_with_kenlm_query(order: int) -> None:
    model = NgramModel.train([TEXT], order)
    sentences = list(map(words_of, TEST_SENTENCES))
    result = model.log_probabilities(sentences)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result / np.log(10), TOTALS[order], atol=3e-6)
    assert model.unknown(sentences).tolist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(("order", "key"), [(3, "order3"), (5, "order5")])
def test_real_text_agrees_with_kenlm(order: int, key: str, shared_data: Path) -> None:
    golden = json.loads((shared_data / "lm" / "golden.json").read_text("utf-8"))
    corpora = shared_data / "phrases" / "corpora"
    model = NgramModel.train([corpora / "captions.train.en.xz"], order)
    test = list(map(words_of, read_lines(corpora / "captions.test.en.xz")))
    result = model.log_probabilities(test) / np.log(10)
    np.testing.assert_allclose(result, golden[key]["per_sentence_log10"], atol=1e-4)
    assert model.perplexity(test) == pytest.approx(golden[key]["perplexity_with_oov"], abs=5e-3)
    assert model.unknown(test).sum() == 68
    if order == 5:
        assert model.counts == (10785, 87125, 192809, 271407, 303259)
        return
    truth = read_arpa(shared_data / "lm" / "captions.o3.arpa.gz")
    assert truth.counts == model.counts
    ours, theirs = model.tables, truth.tables
    assert set(model.words) == set(truth.words)
    number = {word: i for i, word in enumerate(model.words)}
    words = np.array([number[word] for word in truth.words])
    same = words  # our number of each of KenLM's n-grams
    for n in range(1, order + 1):
        rows = slice(theirs.firsts[n - 1], theirs.firsts[n])
        if n > 1:
            keys = ours.keys[ours.firsts[n - 1] : ours.firsts[n]]
            slots = ours.slots[ours.slot_firsts[n - 1] : ours.slot_firsts[n]]
            wanted = theirs.keys[rows]
            same = numbers_of(keys, slots, (same[wanted >> 32] << 32) | words[wanted & 0xFFFFFFFF])
            assert same.min() >= 0
        our_rows = ours.firsts[n - 1] + same
        assert np.abs(ours.log10[our_rows] - theirs.log10[rows]).max() < 1e-4
        assert np.abs(ours.backoff[our_rows] - theirs.backoff[rows]).max() < 1e-4


words = st.lists(st.sampled_from("abcd"), max_size=7)
texts = st.lists(words, min_size=1, max_size=15).filter(any)


@settings(max_examples=40, deadline=None)
@given(texts, st.integers(1, 5), st.lists(st.sampled_from([*"abcdx", "<s>"]), max_size=5))
def test_probabilities_sum_to_one(text: list, order: int, context: list[str]) -> None:
    model = NgramModel.estimate(text, order)
    table = model_ngrams(model)
    history = [
        "<s>",
        *(word if (word,) in table and word != "<s>" else "<unk>" for word in context),
    ]
    last = tuple(history[max(0, len(history) - order + 1) :]) if order > 1 else ()
    following = [word for word in model.words if word != "<s>"]
    logs = [reference_score(table, last, word) for word in following]
    assert np.sum(np.power(10.0, logs)) == pytest.approx(1, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    texts, st.integers(1, 5), st.lists(st.lists(st.sampled_from([*"abcdx", "</s>"])), max_size=4)
)
def test_scores_agree_with_back_off_rule(text: list, order: int, texts_to_score: list) -> None:
    model = NgramModel.estimate(text, order)
    table = model_ngrams(model)
    expected = [score for one in texts_to_score for score in reference_scores(table, order, one)]
    result = model.word_log_probabilities(texts_to_score)
    np.testing.assert_allclose(result / np.log(10), expected, atol=1e-9)
    known = {word for (word, *more) in table if not more} - set(SPECIAL)
    assert model.unknown_words(texts_to_score).tolist() == [
        w not in known for one in texts_to_score for w in one
    ]
    assert (
        len(model.log_probabilities(texts_to_score))
        == len(model.unknown(texts_to_score))
        == len(texts_to_score)
    )
    # A score does not depend on the other sentences, to the last bit.
    for one, score in zip(texts_to_score, model.log_probabilities(texts_to_score), strict=True):
        assert model.log_probabilities([one])[0] == score


def test_perplexity_with_and_without_unknown_words() -> None:
    model = NgramModel.train([TEXT], 3)
    sentences = list(map(words_of, TEST_SENTENCES))
    table = arpa_ngrams(GOLDEN / "harbour.o3.arpa.gz")
    scores = np.concatenate([reference_scores(table, 3, one) for one in sentences])
    assert model.perplexity(sentences) == pytest.approx(10 ** -scores.mean(), rel=1e-5)
    whale = len(sentences[0]) + 2  # after the end of the first sentence and `a`
    without = np.delete(scores, whale)
    assert model.perplexity(sentences, unknown=False) == pytest.approx(
        10 ** -without.mean(), rel=1e-5
    )
    with pytest.raises(DataError, match="no sentence"):
        model.perplexity([])


def test_several_files_are_concatenated(tmp_path: Path) -> None:
    lines = read_lines(TEXT)
    halves = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, part in zip(halves, (lines[:20], lines[20:]), strict=True):
        path.write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    assert model_ngrams(NgramModel.train(halves)) == model_ngrams(NgramModel.train([TEXT]))


def test_progress_is_reported() -> None:
    observed: list[tuple[int, int, str]] = []
    NgramModel.train([TEXT], 3, progress=lambda *step: observed.append(step))
    assert observed == [
        (0, 4, "41 lines"),
        (1, 4, "2-grams"),
        (2, 4, "3-grams"),
        (3, 4, "probabilities"),
    ]


@pytest.mark.parametrize("order", [0, 6])
def test_rejects_unsupported_orders(order: int) -> None:
    with pytest.raises(UsageError, match=f"must be 1 to 5, not {order}"):
        NgramModel.estimate([["a"]], order)


@pytest.mark.parametrize(
    ("counts", "fallback"),
    [
        ([8, 4, 2, 1], False),
        ([8, 4, 2, 0], False),
        ([8, 0, 2, 1], True),  # no n-gram has count 2
        ([8, 4, 40, 1], True),  # D_2 would be negative
    ],
)
def test_discounts_fall_back_for_unusual_counts(counts: list[int], fallback: bool) -> None:
    result, fell = discounts_of(np.repeat([1, 2, 3, 4], counts))
    assert fell is fallback
    assert result == (0.5, 1.0, 1.5) if fallback else result[0] == 0.5

"""Sufficient statistics, compared with sacreBLEU."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import pytest
from sacrebleu import metrics

from bpa_ppl import NBest, corpus_score
from bpa_ppl.quality import BLEU, CHRF, TER, Metric, gains, resolve
from bpa_ppl.quality.scoring import statistics


def sentence(rng: np.random.Generator, longest: int = 12) -> str:
    """Return a random sentence of five different words, possibly empty."""
    return " ".join(rng.choice(["a", "b,", "'c", "d", "e"], size=rng.integers(longest)))


@pytest.fixture(scope="module", params=range(2))
def lists(request: pytest.FixtureRequest) -> NBest:
    """Lists of random sentences, some repeated, with one to three references."""
    rng = np.random.default_rng(request.param)
    texts = [[sentence(rng) for _ in range(rng.integers(1, 9))] for _ in range(20)]
    texts[3] = [texts[3][0]] * 2 + ["", "a b c d e"]
    references = [[sentence(rng) + " a" for _ in range(rng.integers(1, 4))] for _ in texts]
    features = [np.zeros((len(t), 1)) for t in texts]
    return NBest.from_lists(texts, features, ["LM0"], references=references)


def test_counts_and_gains_of_bleu_agree_with_sacrebleu(lists: NBest) -> None:
    counts, result = statistics(lists, "bleu"), gains(lists, "bleu")
    scorer = metrics.BLEU(tokenize="none", force=True)
    for s, refs in enumerate(lists.references or ()):
        for row in range(*lists.rows(s).indices(len(result))):
            one = scorer.corpus_score([lists.text(row)], [[ref] for ref in refs])
            assert counts[row].tolist() == [*one.counts, *one.totals, one.ref_len]
            precisions = (np.array(one.counts) + 1) / (np.array(one.totals) + 1)
            brevity = np.exp(min(0, 1 - one.ref_len / max(one.sys_len, 1)))
            assert result[row] == pytest.approx(brevity * precisions.prod() ** 0.25 * one.ref_len)


COUNTED = [
    "bleu",
    "ter",
    TER(case_sensitive=True),
    *(BLEU(smoothing=smoothing) for smoothing in ("floor", "add-k", "none")),
    BLEU(tokenize="13a", lowercase=True),
    BLEU(tokenize="char"),
    "chrf",
    CHRF(char_order=4, word_order=2, beta=3),
]


@pytest.mark.parametrize("metric", COUNTED, ids=str)
def test_summed_counts_give_the_corpus_score(lists: NBest, metric: str | Metric) -> None:
    counts = statistics(lists, metric)
    assert counts.shape[1] == resolve(metric).width
    rng = np.random.default_rng(5)
    for _ in range(10):
        choice = rng.integers(lists.sizes)
        score = corpus_score(lists.chosen(choice), lists.references or (), metric)
        sums = counts[lists.offsets[:-1] + choice].sum(axis=0)
        assert resolve(metric).value(sums) == pytest.approx(score.value, rel=1e-12)


EDGES = [
    (["a b c d e"], ["a b x d y"]),  # no match of orders 3 and 4: smoothed
    (["a b"], ["a b c d"]),  # no four-gram
    (["x"], ["a"]),  # no match
    ([""], ["a"]),
    (["a"], [""]),
    (["", "a"], ["", "b"]),
]


@pytest.mark.parametrize("metric", COUNTED, ids=str)
def test_edge_cases(metric: str | Metric) -> None:
    for texts, references in EDGES:
        refs = [(reference,) for reference in references]
        features = [[[0.0]]] * len(texts)
        lists = NBest.from_lists([[t] for t in texts], features, ["F"], references=refs)
        value = resolve(metric).value(statistics(lists, metric).sum(axis=0))
        assert value == pytest.approx(corpus_score(texts, refs, metric).value, rel=1e-12)


def test_details_of_bleu_agree_with_sacrebleu(lists: NBest) -> None:
    references = lists.references or ()
    first = lists.chosen(np.zeros(len(lists), int))
    details = corpus_score(first, references, "bleu").details
    streams = list(map(list, zip_longest(*references)))
    plain = metrics.BLEU(tokenize="none", force=True, smooth_method="none")
    score = plain.corpus_score(first, streams)  # precisions in tables are not smoothed
    assert [details[f"precision_{n}"] for n in range(1, 5)] == pytest.approx(score.precisions)
    assert details["brevity_penalty"] == pytest.approx(score.bp)
    assert details["length_ratio"] == pytest.approx(score.ratio)


def test_gains_of_chrf_are_sentence_scores(toy: NBest) -> None:
    result = gains(toy, "chrf")
    scorer = metrics.CHRF()
    for s, refs in enumerate(toy.references or ()):
        scores = [scorer.sentence_score(text, list(refs)).score for text in toy.texts(s)]
        length = np.mean([len(ref.split()) for ref in refs])
        np.testing.assert_allclose(result[toy.rows(s)], np.array(scores) / 100 * length)

"""Details of scores, scores of choices, and their intervals by resampling of sentences."""

from __future__ import annotations

from itertools import zip_longest

import jiwer
import numpy as np
import pytest
from sacrebleu import metrics as sacre
from support.raising import raises

from bpa_ppl import DataError, NBest, corpus_score, from_lists
from bpa_ppl.extending import gains, oracles
from bpa_ppl.gains.gains import count_statistics, resolve, scores_and_gains, text_metrics
from bpa_ppl.gains.ter import TERAndBLEU

SENTENCE = sacre.BLEU(tokenize="none", force=True, effective_order=True)
PLUS_ONE = sacre.BLEU(tokenize="none", force=True, smooth_method="add-k", smooth_value=1)


def test_invalid_references_are_refused() -> None:
    for references, code in (([("a",), ("b",)], "wrong-length"), ([()], "missing-references")):
        with raises(DataError, code, parameter="references"):
            corpus_score(["a"], references)
    with raises(DataError, "no-data"):
        corpus_score([], [])
    assert corpus_score(["a"], ["a b"]) == corpus_score(["a"], [("a b",)])


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
    return from_lists(texts, features, ["LM0"], references=references)


def test_counts_and_gains_of_bleu_agree_with_sacrebleu(lists: NBest) -> None:
    counts, result = count_statistics(lists, "bleu"), gains(lists, "bleu")
    plain = sacre.BLEU(tokenize="none", force=True)
    for s, refs in enumerate(lists.references or ()):
        for row in range(*lists.rows(s).indices(len(result))):
            text, streams = [lists.text(row)], [[ref] for ref in refs]
            one = plain.corpus_score(text, streams)
            assert counts[row].tolist() == [*one.counts, *one.totals, one.ref_len]
            score = PLUS_ONE.corpus_score(text, streams).score
            assert result[row] == pytest.approx(score / 100 * one.ref_len)


@pytest.mark.parametrize("metric", text_metrics())
@pytest.mark.parametrize("reference", ["", "a", "a b", "a b c d e"])
def test_empty_and_short_texts_have_the_scores_of_sacrebleu_and_jiwer(
    metric: str, reference: str
) -> None:
    texts = ["", "x", "a", "a b", "a b c d e"]
    lists = from_lists([texts], [np.zeros((5, 1))], ["LM0"], references=[[reference]])
    scores, result = scores_and_gains(lists, resolve(metric))

    def sentence_score(text: str) -> float:
        if metric in {"wer", "cer"}:
            return 100 * float(getattr(jiwer, metric)(reference, text))
        scorers = {"ter": sacre.TER(), "chrf": sacre.CHRF(), "bleu": SENTENCE, "ter+bleu": PLUS_ONE}
        score = scorers[metric].sentence_score(text, [reference]).score
        if metric != "ter+bleu":
            return float(score)
        return float(100 - sacre.TER().sentence_score(text, [reference]).score + score) / 2

    assert scores.tolist() == pytest.approx(list(map(sentence_score, texts)))
    # The reference has the highest gain, and an empty text a lower one, unless both are empty.
    best = texts.index(reference)
    assert np.isfinite(result).all()
    assert result[best] == result.max()
    assert (result[0] < result[best]) == bool(reference)


def test_details_of_bleu_agree_with_sacrebleu(lists: NBest) -> None:
    references = lists.references or ()
    first = lists.chosen(np.zeros(len(lists), int))
    details = corpus_score(first, references, "bleu").details
    streams = list(map(list, zip_longest(*references)))
    plain = sacre.BLEU(tokenize="none", force=True, smooth_method="none")
    score = plain.corpus_score(first, streams)  # precisions in tables are not smoothed
    assert [details[f"precision_{n}"] for n in range(1, 5)] == pytest.approx(score.precisions)
    assert details["brevity_penalty"] == pytest.approx(score.bp)
    assert details["length_ratio"] == pytest.approx(score.ratio)


def test_the_mean_of_ter_and_bleu_is_that_of_sacrebleu(lists: NBest) -> None:
    lists = lists.with_references([refs[:1] for refs in lists.references or ()])
    choice = np.random.default_rng(1).integers(lists.sizes)
    texts, references = lists.chosen(choice), lists.references or ()
    streams = [[refs[0] for refs in references]]
    ter = sacre.TER().corpus_score(texts, streams).score
    bleu = sacre.BLEU(tokenize="none", force=True).corpus_score(texts, streams).score
    result = corpus_score(texts, references, "ter+bleu")
    assert result.value == pytest.approx((100 - ter + bleu) / 2, rel=1e-12)
    assert result.details == pytest.approx({"ter": ter, "bleu": bleu}, rel=1e-12)
    # With one reference, the oracle has the highest gain.
    gain, starts = gains(lists, "ter+bleu"), lists.offsets[:-1]
    for ties in ("canonical", "shared"):
        best = oracles(lists, "ter+bleu", ties=ties).index
        np.testing.assert_array_equal(gain[starts + best], np.maximum.reduceat(gain, starts))
    assert (oracles(lists, "ter").index != oracles(lists, "bleu").index).any()


def test_case_sensitivity_applies_to_ter_and_bleu() -> None:
    texts, references = ["a b c d e"], [("A b c d e",)]
    values = [corpus_score(texts, references, TERAndBLEU(case_sensitive=c)) for c in (False, True)]
    assert (values[0].value, values[1].value < 100.0) == (100.0, True)
    default = corpus_score(texts, references, "ter+bleu").details
    assert (default["ter"], default["bleu"] == 100.0) == (0.0, False)


def test_gains_of_chrf_are_sentence_scores(toy: NBest) -> None:
    result = gains(toy, "chrf")
    scorer = sacre.CHRF()
    for s, refs in enumerate(toy.references or ()):
        scores = [scorer.sentence_score(text, list(refs)).score for text in toy.texts(s)]
        length = np.mean([len(ref.split()) for ref in refs])
        np.testing.assert_allclose(result[toy.rows(s)], np.array(scores) / 100 * length)

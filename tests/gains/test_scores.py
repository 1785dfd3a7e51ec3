"""Details of scores, scores of choices, and their intervals by resampling of sentences."""

from __future__ import annotations

from itertools import zip_longest

import jiwer
import numpy as np
import pytest
from sacrebleu import metrics as sacre
from support.raising import raises

from bpa_ppl import DataError, NBest, corpus_score, from_lists
from bpa_ppl.diagnostics.ways.paired import (
    bootstrap_interval,
    compare_choices,
    draw_resamples,
    score_resamples,
)
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


TEXTS = [["a b c d e", "a b", "a b c d"], ["x y", "x y z w v"]]
REFERENCES = [("a b c d e",), ("x y z w",)]
LISTS = from_lists(
    TEXTS,
    [np.arange(3.0)[:, None], np.arange(2.0)[:, None]],
    ["LM0"],
    references=REFERENCES,
    extras={"comet": [[0.1, 0.2, 0.3], [0.4, 0.5]]},
)


@pytest.mark.parametrize("metric", ["ter", "bleu", "chrf", "comet"])
def test_scores_agree_with_sacrebleu(metric: str) -> None:
    board = compare_choices(LISTS, [1, 0], [2, 1], metric)
    befores, afters = ([getattr(one, of) for one in board.changes] for of in ("before", "after"))
    assert (board.changed, board.sentences, befores[0].metric) == (2, 2, metric)
    others = {"ter", "bleu"} - {metric}
    assert {score.metric for score in afters[1:]} == {*others, "length"}
    scorers = {"ter": sacre.TER(), "bleu": sacre.BLEU(tokenize="none", force=True)}
    streams = [[refs[0] for refs in REFERENCES]]
    for scores, texts in ((befores, ["a b", "x y"]), (afters, ["a b c d", "x y z w v"])):
        for score in scores:
            if score.metric in scorers:
                expected = scorers[score.metric].corpus_score(texts, streams).score
                assert score.value == pytest.approx(expected)
    assert str(board.changes[-1]) == "length 0.444 → 1.000 (+0.556)"
    names = [name if name == "comet" else name.upper() for name in (metric, *sorted(others)[::-1])]
    lines = str(board).splitlines()[2:]
    assert [line.split()[0] for line in lines[: len(names) + 1]] == [*names, "length"]


def test_only_requested_score_without_references() -> None:
    bare = LISTS.without("references")
    small = bare.with_extras(comet=1e-4 * np.asarray(bare.extras["comet"]))
    for lists, words in (
        (bare, "comet 0.2500 → 0.3500 (+0.1000)"),
        (small, "comet 0.000025 → 0.000035 (+0.000010)"),
    ):
        (change,) = compare_choices(lists, [0, 0], [1, 1], "comet").changes
        assert str(change) == words
    with raises(DataError, "missing-references", parameter="references"):
        compare_choices(bare, [0, 0], [1, 1], "ter")


@pytest.fixture
def counts() -> np.ndarray:
    """Counts of TER (draws, sentences, 2)."""
    rng = np.random.default_rng(4)
    edits = rng.integers(0, 9, size=(3, 40))
    return np.stack([edits, np.full_like(edits, 8)], axis=-1).astype(float)


def test_replicates_are_scores_of_resampled_sentences(counts: np.ndarray) -> None:
    new, draws = draw_resamples(50, sentences=40, draws=3, seed=2)
    both, of_sentences, of_draws = score_resamples(counts, "ter", (new, draws))
    value = resolve("ter").value
    for b in range(50):
        rows = np.repeat(np.arange(40), new[b].astype(int))
        each = [value(draw[rows].sum(axis=0)) for draw in counts]
        assert of_sentences[b] == pytest.approx(np.mean(each))
        assert both[b] == pytest.approx(np.mean([each[d] for d in draws[b]]))
        whole = [value(counts[d].sum(axis=0)) for d in draws[b]]
        assert of_draws[b] == pytest.approx(np.mean(whole))


def test_differences_are_paired(counts: np.ndarray) -> None:
    better = counts[0].copy()
    better[:, 0] = np.maximum(better[:, 0] - 1, 0)
    low, high = bootstrap_interval(np.stack([counts[0], better]), "ter", seed=3)
    assert low < (better - counts[0])[:, 0].sum() / counts[0, :, 1].sum() * 100 < high < 0
    unpaired = score_resamples(counts[:1], "ter", draw_resamples(1000, 40, 1))[1].std()
    assert high - low < unpaired
    assert bootstrap_interval(np.stack([counts[0]] * 2), "ter") == (0, 0)

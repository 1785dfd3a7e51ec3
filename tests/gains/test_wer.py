"""WER and CER, compared with the package JiWER."""

from __future__ import annotations

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import DataError, NBest, corpus_score, from_lists
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.gains.gains import count_statistics, gains, resolve
from bpa_ppl.gains.oracles import oracles
from bpa_ppl.gains.wer import CER, WER

jiwer = pytest.importorskip("jiwer", reason="JiWER is not installed")

GAINS = {"wer": jiwer.wer, "cer": jiwer.cer}
WORDS = ("Ab", "ab", "c", "a\tb", "gé", "ほん", "x\u00a0y", "e\u0301")
BLANKS = (" ", "  ", " \t", "\n\n")


def random_text(rng: np.random.Generator, longest: int = 9) -> str:
    """Return random words, or none, with different blanks between them and at the ends."""
    words = rng.choice(WORDS, size=rng.integers(longest))
    blanks = rng.choice(BLANKS, size=len(words) + 1, p=[0.85, 0.05, 0.05, 0.05])
    ends = rng.choice(["", " ", "\t"], size=2)
    return ends[0] + "".join(w + b for w, b in zip(words, blanks, strict=False)) + ends[1]


def random_lists(seed: int, count: int = 30) -> NBest:
    rng = np.random.default_rng(seed)
    texts = [[random_text(rng) for _ in range(rng.integers(1, 8))] for _ in range(count)]
    features = [rng.normal(size=(len(t), 1)) for t in texts]
    references = [(random_text(rng),) for _ in texts]
    return from_lists(texts, features, ["am"], references=references)


LISTS = random_lists(1)
FEW = from_lists(
    [["a b c d", "a x c d", "a b c"], ["e g", "e f", "E F"]],
    [[[3.0], [2.0], [1.0]], [[2.0], [1.0], [0.0]]],
    ["am"],
    references=[("a b c",), ("e f",)],
)


@pytest.mark.parametrize("name", GAINS)
def test_scores_agree_with_jiwer(name: str) -> None:
    counts, score = count_statistics(LISTS, name), GAINS[name]
    references = [refs[0] for refs in LISTS.references or ()]
    rng = np.random.default_rng(2)
    for _ in range(10):
        choice = rng.integers(LISTS.sizes)
        texts = LISTS.chosen(choice)
        expected = 100 * score(references, texts)
        result = corpus_score(texts, LISTS.references, name)
        assert result.value == pytest.approx(expected, rel=1e-12)
        assert result.details["edits"] == pytest.approx(
            expected / 100 * result.details["reference_length"]
        )
    # Single sentences, of which some have an empty reference or candidate.
    assert (counts[:, 1] == 0).any()
    for s, reference in enumerate(references):
        for row in range(*LISTS.rows(s).indices(len(counts))):
            expected = 100 * score(reference, LISTS.text(row))
            assert resolve(name).value(counts[row]) == pytest.approx(expected, rel=1e-12)
    assert gains(LISTS, name).tolist() == (-counts[:, 0]).tolist()


@pytest.mark.parametrize("name", GAINS)
def test_long_texts_agree_with_jiwer(name: str) -> None:
    """Distances are computed in blocks of 64 units: here of one to five, with a common end."""
    rng = np.random.default_rng(3)
    metric = resolve(name)
    for _ in range(20):
        end = random_text(rng, 60)
        reference, *texts = (f"{random_text(rng, 200)} {end}".strip() for _ in range(4))
        counts = metric.counts([texts], [(reference,)])
        expected = [100 * GAINS[name](reference, text) for text in texts]
        assert metric.value(counts) == pytest.approx(expected, rel=1e-12)


def test_case_counts_unless_it_is_ignored() -> None:
    texts, references = ["A b"], [("a B",)]
    assert corpus_score(texts, references, "wer").value == 100
    assert corpus_score(texts, references, WER(case_sensitive=False)).value == 0
    assert oracles(FEW, WER(case_sensitive=False)).tied.tolist() == [1, 2]
    assert corpus_score(texts, references, CER(case_sensitive=False)).value == 0


@pytest.mark.parametrize("metric", GAINS)
def test_several_references_are_refused(metric: str) -> None:
    several = FEW.with_references([("a", "b"), ("c", "d")])
    for function in (gains, oracles, count_statistics):
        with raises(DataError, "not-supported", parameter="references", match="2 references"):
            function(several, metric)


def test_consensus_by_wer() -> None:
    column = Consensus(metric="wer").columns(FEW)["consensus.wer"]
    expected = [-100 * (jiwer.wer("a x c d", "a b c d") + jiwer.wer("a b c", "a b c d")) / 2]
    assert column[0] == pytest.approx(expected[0])


@pytest.mark.parametrize("metric", [WER(), CER()])
def test_counts_have_edits_and_length(metric: WER) -> None:
    assert metric.counts([["a", "b"], []], [("a",), ("a",)]).tolist() == [[0, 1], [1, 1]]
    assert metric.counts([], []).shape == (0, metric.width)
    with raises(DataError, "not-supported", parameter="references", match="0 references"):
        metric.counts([["a"]], [()])

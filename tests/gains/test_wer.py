"""WER and CER: edits of sentences and long texts as in JiWER, case, and one reference."""

from __future__ import annotations

import numpy as np
import pytest
from support.raising import raises
from support.registries import FEATURES

from bpa_ppl import DataError, corpus_score, from_lists
from bpa_ppl.extending import gains, oracles
from bpa_ppl.gains.gains import count_statistics, resolve
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


FEW = from_lists(
    [["a b c d", "a x c d", "a b c"], ["e g", "e f", "E F"]],
    [[[3.0], [2.0], [1.0]], [[2.0], [1.0], [0.0]]],
    ["am"],
    references=[("a b c",), ("e f",)],
)


@pytest.mark.parametrize("name", GAINS)
def test_gains_are_edits_of_each_sentence(name: str) -> None:
    counts, score = count_statistics(FEW, name), GAINS[name]
    references = [refs[0] for refs in FEW.references or ()]
    assert gains(FEW, name).tolist() == (-counts[:, 0]).tolist()
    for s, reference in enumerate(references):
        for row in range(*FEW.rows(s).indices(len(counts))):
            expected = 100 * score(reference, FEW.text(row))
            assert resolve(name).value(counts[row]) == pytest.approx(expected, rel=1e-12)
    details = corpus_score(["a b c d", "e g"], references, name).details
    assert details["edits"] == counts[0, 0] + counts[3, 0]
    assert details["reference_length"] == counts[0, 1] + counts[3, 1]


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


def test_the_consensus_by_wer_is_that_of_jiwer() -> None:
    column = FEATURES["consensus"](metric="wer").columns(FEW)["consensus.wer"]
    expected = [-100 * (jiwer.wer("a x c d", "a b c d") + jiwer.wer("a b c", "a b c d")) / 2]
    assert column[0] == pytest.approx(expected[0])


@pytest.mark.parametrize("metric", [WER(), CER()])
def test_counts_have_edits_and_length(metric: WER) -> None:
    assert metric.counts([["a", "b"], []], [("a",), ("a",)]).tolist() == [[0, 1], [1, 1]]
    assert metric.counts([], []).shape == (0, metric.width)
    with raises(DataError, "not-supported", parameter="references", match="0 references"):
        metric.counts([["a"]], [()])

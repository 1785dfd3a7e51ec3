"""The mean of TER and BLEU, compared with sacreBLEU."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu.metrics as sacre

from bpa_ppl import NBest, corpus_score, oracles
from bpa_ppl.quality import gains
from bpa_ppl.quality.mixed import TERAndBLEU
from bpa_ppl.quality.scoring import statistics


def sentence(rng: np.random.Generator, shortest: int = 0) -> str:
    return " ".join(rng.choice(list("abcdeE"), size=rng.integers(shortest, 12)))


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Random sentences, some empty or repeated, with one reference each."""
    rng = np.random.default_rng(8)
    texts = [[sentence(rng) for _ in range(rng.integers(1, 9))] for _ in range(15)]
    texts[3] = [texts[3][0]] * 2 + ["", "a b c d e"]
    references = [(sentence(rng, 2),) for _ in texts]
    features = [rng.normal(size=(len(t), 2)) for t in texts]
    return NBest.from_lists(texts, features, ["LM0", "WP0"], references=references)


def test_corpus_score_is_mean_of_sacrebleu_scores(lists: NBest) -> None:
    rng = np.random.default_rng(1)
    choice = rng.integers(lists.sizes)
    texts, references = lists.chosen(choice), lists.references
    assert references is not None
    streams = [[refs[0] for refs in references]]
    ter = sacre.TER().corpus_score(texts, streams).score
    bleu = sacre.BLEU(tokenize="none", force=True).corpus_score(texts, streams).score
    result = corpus_score(texts, references, "ter+bleu")
    assert result.value == pytest.approx((100 - ter + bleu) / 2, rel=1e-12)
    assert result.details == pytest.approx({"ter": ter, "bleu": bleu}, rel=1e-12)
    sums = statistics(lists, "ter+bleu")[lists.offsets[:-1] + choice].sum(axis=0)
    assert TERAndBLEU().value(sums) == pytest.approx(result.value, rel=1e-12)


def test_oracle_has_the_highest_gain(lists: NBest) -> None:
    gain_values = gains(lists, "ter+bleu")
    best = np.maximum.reduceat(gain_values, lists.offsets[:-1])
    for ties in ("canonical", "shared"):
        result = oracles(lists, "ter+bleu", ties=ties)
        np.testing.assert_array_equal(gain_values[lists.offsets[:-1] + result.index], best)
    differs = oracles(lists, "ter").index != oracles(lists, "bleu").index
    assert differs.any()


def test_case_sensitivity_applies_to_both() -> None:
    references = [("A b c d e",)]
    for case in (False, True):
        value = corpus_score(["a b c d e"], references, TERAndBLEU(case_sensitive=case)).value
        assert (value == 100.0) is not case
    default = corpus_score(["a b c d e"], references, "ter+bleu").details
    assert default["ter"] == 0.0
    assert default["bleu"] < 100.0

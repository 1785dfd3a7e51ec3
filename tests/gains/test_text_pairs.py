"""Scores of pairs of texts, compared with sacreBLEU and JiWER."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from support.raising import raises

from bpa_ppl import UsageError, read_nbest
from bpa_ppl.gains.pairwise import TIE, make_pairs

jiwer = pytest.importorskip("jiwer", reason="JiWER is not installed")

BLEU4 = BLEU(tokenize="none", effective_order=True, force=True)
#: The score of a text with a reference; higher is better.
SCORES: dict[str, Callable[[str, str], float]] = {
    "ter": lambda text, ref: -TER().sentence_score(text, [ref]).score,
    "bleu": lambda text, ref: BLEU4.sentence_score(text, [ref]).score,
    "chrf": lambda text, ref: CHRF().sentence_score(text, [ref]).score,
    "wer": lambda text, ref: -100 * jiwer.wer(ref, text),
    "cer": lambda text, ref: -100 * jiwer.cer(ref, text),
}
WORDS = ("Ab", "ab", "c", "def", "gé", "ほん", "hij")


@pytest.fixture(scope="module")
def text_lists() -> list[list[str]]:
    """Random texts, one empty and some that differ only in case or order, and those of lists."""
    rng, alike = np.random.default_rng(1), ["", "ab c", "Ab c", "c Ab"]
    words = {" ".join(rng.choice(WORDS, size=rng.integers(1, 8))) for _ in range(22)}
    with as_file(files("bpa_ppl.demo_data")) as data:
        lists = read_nbest(data / "leaflet.nbest100.gz")[::120]
    return [alike + sorted(words - {*alike}), *(list(one.strings)[:18] for one in lists)]


@pytest.mark.parametrize("metric", SCORES)
def test_scores_and_best_texts(text_lists: list[list[str]], metric: str) -> None:
    rng = np.random.default_rng(7)
    for texts in text_lists:
        expected = np.array([[SCORES[metric](text, ref) for ref in texts] for text in texts])
        pairs = make_pairs(texts, metric)
        rows, columns = np.array([5, 0, 3, 1]), np.arange(len(texts))
        result = pairs.scores(rows, columns[::-1])
        np.testing.assert_allclose(result, expected[rows, ::-1], atol=1e-9)
        for concentration in np.repeat([0.02, 0.3, 5.0], 15):
            p = rng.dirichlet(np.full(len(texts), concentration))
            p[rng.uniform(size=len(p)) < 0.3] = 0.0
            p /= p.sum()
            best, score = pairs.best(p)
            assert score == pytest.approx((expected @ p).max(), abs=1e-8)
            assert (expected @ p)[best] >= (expected @ p).max() - TIE


@pytest.mark.parametrize("metric", SCORES)
def test_ties_are_broken_by_probability_then_position(metric: str) -> None:
    # A single probable text is the best; two mirrored texts are equally good.
    texts = ["x y", "a b", "b a", "z"]
    assert make_pairs(texts, metric).best(np.array([0.0, 0.5, 0.5, 0.0]))[0] == 1
    assert make_pairs(texts, metric).best(np.array([0.0, 0.25, 0.25, 0.5]))[0] == 3
    expected = (1, 50.0) if metric in ("bleu", "chrf") else (0, -50.0)
    assert make_pairs(["", "a"], metric).best(np.array([0.5, 0.5])) == expected


def test_rejects_unknown_metric() -> None:
    with raises(UsageError, "unknown-name", parameter="metric"):
        make_pairs(["a"], "comet")

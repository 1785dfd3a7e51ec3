"""Scores of pairs of texts, compared with sacreBLEU."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import pytest
from pair_checks import check_pairs
from raising import raises
from sacrebleu.metrics import BLEU, CHRF, TER

from bpa_ppl import UsageError, read_nbest
from bpa_ppl.quality.pairs import pairs_of

SACREBLEU = {
    "ter": lambda: TER(),
    "bleu": lambda: BLEU(tokenize="none", effective_order=True, force=True),
    "chrf": lambda: CHRF(),
}
WORDS = ("Ab", "ab", "c", "def", "gé", "ほん", "hij")


def score_table(texts: list[str], metric: str) -> np.ndarray:
    """Return the score of each text with each other text as reference; higher is better."""
    scorer = SACREBLEU[metric]()
    sign = -1 if metric == "ter" else 1
    return np.array(
        [[sign * scorer.sentence_score(text, [ref]).score for ref in texts] for text in texts]
    )


def random_texts(seed: int, count: int, longest: int) -> list[str]:
    """Return distinct texts, one empty and some that differ only in case or order."""
    rng = np.random.default_rng(seed)
    every = {" ".join(rng.choice(WORDS, size=rng.integers(1, longest))) for _ in range(count)}
    return ["", "ab c", "Ab c", "c Ab", *sorted(every - {"ab c", "Ab c", "c Ab"})]


@pytest.fixture(scope="module")
def text_lists() -> list[list[str]]:
    """Random texts, then those of real lists."""
    with as_file(files("bpa_ppl.demo_data")) as data:
        lists = read_nbest(data / "leaflet.nbest100.gz")[::120]
    return [random_texts(1, 22, 8), *(list(one.strings)[:18] for one in lists)]


@pytest.mark.parametrize("metric", SACREBLEU)
def test_scores_and_best_text_agree_with_sacrebleu(
    text_lists: list[list[str]], metric: str
) -> None:
    rng = np.random.default_rng(7)
    for texts in text_lists:
        expected, pairs = score_table(texts, metric), pairs_of(texts, metric)
        check_pairs(pairs, expected, rng, 15)


@pytest.mark.parametrize("metric", SACREBLEU)
def test_ties_are_broken_by_probability_then_position(metric: str) -> None:
    # A single probable text is the best; two mirrored texts are equally good.
    texts = ["x y", "a b", "b a", "z"]
    assert pairs_of(texts, metric).best(np.array([0.0, 0.5, 0.5, 0.0]))[0] == 1
    assert pairs_of(texts, metric).best(np.array([0.0, 0.25, 0.25, 0.5]))[0] == 3
    expected = (0, -50.0) if metric == "ter" else (1, 50.0)
    assert pairs_of(["", "a"], metric).best(np.array([0.5, 0.5])) == expected


def test_rejects_unknown_metric() -> None:
    with raises(UsageError, "unknown-name", parameter="metric"):
        pairs_of(["a"], "comet")

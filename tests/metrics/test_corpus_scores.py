"""Corpus scores, compared with sacreBLEU, and errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
import sacrebleu.metrics as sacre
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import NBest
from bpa_ppl.errors import DataError
from bpa_ppl.metrics.bleu import BLEU
from bpa_ppl.metrics.chrf import CHRF
from bpa_ppl.metrics.gains import corpus_score
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.ter import TER

CONFIGS = [
    TER(),
    TER(no_punct=True, case_sensitive=True),
    TER(normalized=True, asian_support=True),
    BLEU(),
    BLEU(tokenize="13a", lowercase=True),
    BLEU(tokenize="char"),
    BLEU(tokenize="intl"),
    CHRF(),
    CHRF(word_order=2, beta=3),
]


def scorer_of(config: Metric) -> Any:
    """Return sacreBLEU's metric with the same settings."""
    settings = config.settings()
    if isinstance(config, BLEU):
        return sacre.BLEU(force=True, **settings)
    return getattr(sacre, type(config).__name__)(**settings)


WORDS = ["the", "The", "cat,", "cat", "sat", ".", "mat", "'s", "on", "a"]
LINE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
EDGES = [
    [("a b c d e", ["a b x d y"])],  # no match of orders 3 and 4: smoothed
    [("a b", ["a b c d"])],  # no four-gram
    [("x", ["a"])],  # no match
    [("", ["a"])],
    [("a", [""])],
    [("", [""]), ("a", ["b"])],
]
CORPUS = st.lists(st.tuples(LINE, st.lists(LINE, min_size=1, max_size=3)), min_size=1, max_size=6)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@settings(max_examples=14, deadline=None)
@given(corpus=CORPUS | st.sampled_from(EDGES))
def test_scores_and_signatures_agree_with_sacrebleu(config: Metric, corpus: list) -> None:
    candidates, references = [h for h, _ in corpus], [r for _, r in corpus]
    reference = scorer_of(config)
    expected = reference.corpus_score(candidates, list(map(list, zip_longest(*references))))
    counts = config.counts([[text] for text in candidates], references)
    assert counts.shape == (len(candidates), config.width)
    assert config.value(counts.sum(axis=0)) == pytest.approx(expected.score, rel=1e-12)
    result = corpus_score(candidates, references, config)
    assert (result.value, result.name) == (expected.score, expected.name)
    assert result.signature == str(reference.get_signature())


@pytest.mark.parametrize(
    ("candidates", "references", "code"),
    [
        (["a"], [("a",), ("b",)], "wrong-length"),
        (["a"], [()], "missing-references"),
    ],
)
def test_invalid_references(candidates: list, references: list, code: str) -> None:
    with raises(DataError, code, parameter="references"):
        corpus_score(candidates, references)
    with raises(DataError, "no-data"):
        corpus_score([], [])
    assert corpus_score(["a"], ["a b"]) == corpus_score(["a"], [("a b",)])


# TER and BLEU from the command line of sacreBLEU.
FIRST_BEST = {
    "leaflet": (57.55, 19.77),
    "captions/adapt": (53.27, 20.12),
    "conversation/adapt": (48.44, 26.38),
}


@pytest.mark.parametrize("text", FIRST_BEST)
def test_first_best_of_real_lists(real_lists: Callable[[str], NBest], text: str) -> None:
    lists = real_lists(text)
    assert lists.references is not None
    first = lists.chosen(np.zeros(len(lists), dtype=int))
    values = [corpus_score(first, lists.references, metric).value for metric in ("ter", "bleu")]
    assert values == pytest.approx(FIRST_BEST[text], abs=0.005)

"""The paired bootstrap, compared with explicit resampling."""

from __future__ import annotations

import numpy as np
import pytest

from bpa_ppl.metrics.bootstrap import compare_scores, draw_resamples, score_resamples
from bpa_ppl.metrics.gains import resolve


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
    result = compare_scores(better, counts[0], "ter", seed=3)
    assert result.low < result.difference < result.high < 0
    unpaired = score_resamples(counts[:1], "ter", draw_resamples(1000, 40, 1))[1].std()
    assert result.high - result.low < unpaired
    same = compare_scores(counts[0], counts[0], "ter")
    assert (same.difference, same.low, same.high) == (0, 0, 0)

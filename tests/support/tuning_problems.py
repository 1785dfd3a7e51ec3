"""Problems for tuners: random ones, and simulated ones with known best weights."""

from __future__ import annotations

import numpy as np

from bpa_ppl.extras.tuning.tuner import TuningLists, TuningProblem
from bpa_ppl.gains.gains import resolve


def random_lists(
    seed: int, *, sentences: int = 12, features: int = 3, whole: bool = False
) -> TuningLists:
    """Lists of random features and TER counts; whole features make many equal slopes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, size=sentences)
    rows = int(sizes.sum())
    values = rng.integers(-3, 4, (rows, features)) if whole else rng.normal(size=(rows, features))
    counts = np.column_stack([rng.integers(0, 12, size=rows), np.full(rows, 10)])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return TuningLists(offsets, values.astype(float), rng.normal(size=rows), counts.astype(float))


def planted_lists(seed: int, true: np.ndarray, metric: str) -> TuningLists:
    """Lists whose candidates have better counts, the higher λ·h is for the true λ."""
    rng = np.random.default_rng(seed)
    sentences, size = 30, 20
    features = rng.normal(size=(sentences * size, len(true)))
    edits = np.clip(np.rint(10 - 4 * features @ true), 0, 20)[:, None]
    matches = np.clip(20 - edits - np.arange(4), 0, None)
    bleu = np.hstack([matches, np.tile([20.0, 19, 18, 17, 20], (len(edits), 1))])
    counts = np.hstack([edits, np.full_like(edits, 20)]) if metric == "ter" else bleu
    return TuningLists(np.arange(sentences + 1) * size, features, np.zeros(len(edits)), counts)


def problem_of(
    lists: TuningLists, start: np.ndarray, metric: str = "ter", seed: int = 0
) -> TuningProblem:
    """Return a problem without a report of progress."""
    return TuningProblem(lists, resolve(metric), start, seed, lambda done, total, note: None)

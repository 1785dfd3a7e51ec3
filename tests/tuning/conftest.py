"""The lists on which the original tools were run."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bpa_ppl.tuning.base import TuningLists


@pytest.fixture(scope="session")
def original(shared_data: Path) -> Callable[[str], TuningLists]:
    """The statistics that the extractor of Moses wrote, by metric."""
    return cache(lambda metric: _extracted(shared_data / "tools", metric))


def _extracted(folder: Path, metric: str) -> TuningLists:
    features = _blocks(folder / f"features-{metric}.txt.gz")
    scores = np.concatenate(_blocks(folder / f"scores-{metric}.txt.gz"))
    # BLEU: match, total, match, total, …, reference length. TER: hundredths of edits and words.
    counts = scores[:, [0, 2, 4, 6, 1, 3, 5, 7, 8]] if metric == "bleu" else scores[:, :2] / 100
    offsets = np.concatenate([[0], np.cumsum([len(block) for block in features])])
    return TuningLists(offsets, np.concatenate(features), np.zeros(len(counts)), counts)


def _blocks(path: Path) -> list[np.ndarray]:
    blocks: list[list[list[float]]] = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if "_TXT_BEGIN_" in line:
            blocks.append([])
        elif "_TXT_END_" not in line:
            blocks[-1].append([float(word) for word in line.split()])
    return [np.array(block) for block in blocks]

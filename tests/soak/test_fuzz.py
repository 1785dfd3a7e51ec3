"""Every reader on damaged files: see `fuzzing` for what must hold, and `fuzz.py` for many more."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support import fuzzing

from bpa_ppl.formats.format import WEIGHT_FORMATS

INPUTS = 40  # of each format


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", fuzzing.names())
def test_damaged_lists(name: str, folder: Path) -> None:
    rng, counts = random.Random(f"1 {name}"), Counter[str]()
    tried = fuzzing.subject(name, folder)
    for _ in range(INPUTS):
        sample = rng.choice(tried.samples)
        content = fuzzing.edited(sample, fuzzing.random_edits(rng))
        counts[fuzzing.examine(tried, sample, content, folder)] += 1
    # Hardly any edit keeps such a file whole.
    assert counts[fuzzing.ACCEPTED] or name in ("parquet", "responses")
    assert counts[fuzzing.REFUSED]


@pytest.mark.parametrize("name", WEIGHT_FORMATS)
def test_damaged_weights(name: str, folder: Path) -> None:
    rng, counts = random.Random(f"3 {name}"), Counter[str]()
    for _ in range(INPUTS):
        content = fuzzing.edited(
            rng.choice(fuzzing.weight_samples(name)), fuzzing.random_edits(rng)
        )
        counts[fuzzing.examine_weights(name, content, folder / "weights")] += 1
    assert counts[fuzzing.ACCEPTED]
    assert counts[fuzzing.REFUSED]

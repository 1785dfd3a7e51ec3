"""What every test may use: strict JAX, the real n-best lists where they are, and small tables."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from bpa_ppl import NBest

# Numbers are as wide as they are written, and no axis is added unasked.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real n-best lists that may not be committed."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the real n-best lists of {SHARED}, which are not here")
    return SHARED


@pytest.fixture
def toy() -> NBest:
    """Three lists with three features, of sizes 4, 2 and 3, with references."""
    rng = np.random.default_rng(7)
    texts = [
        ["the cat sat", "a cat sat", "the cat sat down", "cat"],
        ["hello world", "hello"],
        ["one two three", "one three two", "three"],
    ]
    features = [rng.normal(size=(len(t), 3)) for t in texts]
    references = [("the cat sat down",), ("hello world",), ("one two three",)]
    return NBest.from_lists(texts, features, ["LM0", "TM0[0]", "TM0[1]"], references=references)

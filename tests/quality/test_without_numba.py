"""TER where Numba is missing or cannot keep its machine code, and what an import costs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bpa_ppl
from bpa_ppl import NBest
from bpa_ppl.errors import BpaWarning
from bpa_ppl.quality import TER, corpus_score, oracles, ter, ter_edits


@pytest.fixture
def no_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if Numba were not installed."""
    ter._tercom.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "bpa_ppl.quality.tercom", raising=False)
    monkeypatch.delattr("bpa_ppl.quality.tercom", raising=False)
    yield
    ter._tercom.cache_clear()


def cases() -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(list("abcd"), size)) for size in rng.integers(0, 15, 40)]
    return texts, [texts[(i + 3) % 40 : (i + 3) % 40 + 1 + i % 2] or ["a"] for i in range(40)]


def test_sacrebleu_stands_in(no_numba: None, toy: NBest) -> None:
    hypotheses, references = cases()
    with pytest.warns(BpaWarning, match="Numba cannot be imported"):
        edits, lengths = ter_edits(hypotheses, references)
    found, score = oracles(toy), corpus_score(hypotheses, references)
    assert not TER().threads
    ter._tercom.cache_clear()
    sys.modules.pop("numba")
    compiled_edits, compiled_lengths = ter_edits(hypotheses, references)
    compiled = oracles(toy)
    assert TER().threads
    assert edits.tolist() == compiled_edits.tolist()
    assert lengths.tolist() == compiled_lengths.tolist()
    assert found.index.tolist() == compiled.index.tolist()
    assert found.tied.tolist() == compiled.tied.tolist()
    assert score == corpus_score(hypotheses, references)


def run(code: str, **environment: str) -> str:
    root = str(Path(bpa_ppl.__file__).parent.parent)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": root, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, bpa_ppl.quality as q; q.TER(), q.BLEU(), q.CHRF(); "
        "print([m for m in ('numba', 'sacrebleu', 'joblib', 'platformdirs', 'jax') "
        "if m in sys.modules])"
    )
    assert run(code) == "[]"


@pytest.mark.slow
def test_machine_code_is_kept_where_numba_is_told(tmp_path: Path) -> None:
    code = "from bpa_ppl.quality import ter_edits as t; print(t(['b a c'], [('a b c',)])[0][0])"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1"
    assert list(tmp_path.rglob("*.nbi"))


def test_runs_where_machine_code_cannot_be_kept() -> None:
    code = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "from bpa_ppl.quality import tercom\n"
        "print(tercom._cached(lambda x: x + 1)(1))"
    )
    assert run(code) == "2"

"""Compiled code: lazy imports and the folder of the machine code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bpa_ppl


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
        "import sys, bpa_ppl.quality as q, bpa_ppl.tuning as t; q.TER(), q.BLEU(), q.CHRF(); "
        "print([m for m in ('numba', 'sacrebleu', 'joblib', 'platformdirs', 'jax', 'scipy') "
        "if m in sys.modules])"
    )
    assert run(code) == "[]"


@pytest.mark.slow
def test_machine_code_is_stored_in_numba_cache_dir(tmp_path: Path) -> None:
    code = "from bpa_ppl.quality import ter_edits as t; print(t(['b a c'], [('a b c',)])[0][0])"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1"
    assert list(tmp_path.rglob("*.nbi"))

"""Compiled code: what an import costs, and where the machine code is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bpa_ppl
from bpa_ppl.compiled import compiled, inner


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
def test_machine_code_is_kept_where_numba_is_asked_to(tmp_path: Path) -> None:
    code = "from bpa_ppl.quality import ter_edits as t; print(t(['b a c'], [('a b c',)])[0][0])"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1"
    assert list(tmp_path.rglob("*.nbi"))


def test_runs_where_machine_code_cannot_be_kept() -> None:
    code = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "from bpa_ppl.compiled import compiled\n"
        "print(compiled(lambda x: x + 1)(1))"
    )
    assert run(code) == "2"


def test_what_compiled_functions_call_says_so_where_python_calls_it() -> None:
    @inner
    def half(x: float) -> float:
        return x / 2

    assert compiled(lambda x: half(x))(3.0) == 1.5
    with pytest.raises(TypeError, match="half can be called by compiled functions alone"):
        half(3.0)

"""Lazy imports of compiled code and sacreBLEU."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, bpa_ppl, bpa_ppl.experiments.tuning.tuner\n"
        "bpa_ppl.TER(), bpa_ppl.BLEU(), bpa_ppl.CHRF()\n"
        "print([m for m in ('numba', 'sacrebleu', 'joblib', 'jax', 'scipy') "
        "if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"

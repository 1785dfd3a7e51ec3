"""MERT+: MERT on the adaptation sentences and the out-of-domain development set together."""

from __future__ import annotations

from dataclasses import replace

from bpa_ppl.errors import UsageError
from bpa_ppl.tuning import mert
from bpa_ppl.tuning.mert import Settings
from bpa_ppl.tuning.problem import Problem, Tuned

__all__ = ["Settings", "tune"]


def tune(problem: Problem, settings: Settings) -> Tuned:
    """Return the weights that MERT finds on all sentences.

    Raises:
        UsageError: if there is no out-of-domain development set.
    """
    if problem.extra is None:
        raise UsageError("mert+ needs the lists of an out-of-domain development set too (extra)")
    both = replace(problem, pool=problem.pool.joined(problem.extra), extra=None)
    return mert.tune(both, settings)

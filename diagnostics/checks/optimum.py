"""The check of a mode: did its search converge?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpa_ppl.diagnostics.checks.report import Finding

if TYPE_CHECKING:
    from arviz import InferenceData

#: Squared length of the last Newton step in posterior standard deviations.
_DECREMENT = 1e-6


def findings(posterior: InferenceData) -> list[Finding]:
    """Return the finding on the last step of Newton's method."""
    decrement = float(posterior.attrs["newton_decrement"])
    return [
        Finding(
            "Newton decrement",
            decrement,
            "",
            f"≤ {_DECREMENT:g}",
            decrement <= _DECREMENT,
            "the search for the mode did not converge: is the model's density smooth?",
        )
    ]

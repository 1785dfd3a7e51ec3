"""Many tests at once: what their p-values are worth together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpa_ppl.nbest import Float64


def holm(p_values: npt.ArrayLike) -> Float64:
    """Return p-values adjusted by the step-down method of Holm (1979), in the same order.

    Rejecting where an adjusted value is at most α keeps the probability of any false alarm at most
    α, however the tests depend on each other.

    Args:
        p_values: (tests,) in [0, 1].

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted

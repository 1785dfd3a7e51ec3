"""The outer loop of re-estimation: tune, decode with the new weights, merge the lists, repeat."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from bpa_ppl.errors import BpaWarning, UsageError
from bpa_ppl.nbest import NBest
from bpa_ppl.tuning.merging import merge
from bpa_ppl.tuning.reestimation import Reestimation, reestimation
from bpa_ppl.weights import Weights

#: Turns weights into the n-best lists of the tuning sentences.
Decoder = Callable[[Weights], NBest]


def redecode(
    nbest: NBest,
    weights: Mapping[str, float],
    decode: Decoder,
    *,
    iterations: int = 25,
    report: Callable[[int, Reestimation, int], None] | None = None,
    **options: Any,
) -> Reestimation:
    """Re-estimate until decoding with the new weights brings no new hypothesis.

    Source: Och (2003), section 5. Each iteration starts from the weights of the one before, on
    the lists of all decodings so far.

    Args:
        nbest: the lists of a first decoding, with references.
        weights: those of that decoding.
        decode: what decodes the same sentences with other weights.
        iterations: stop after so many, with a warning.
        report: called after each with its number, what it found, and how many hypotheses the
            decoder added to the lists.
        options: of `reestimate`: `tuner`, `metric`, `seed`, …

    Raises:
        DataError: as `reestimate`, and if the decoder's lists do not fit the first ones.
        UsageError: as `reestimate`, and if there is no iteration.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]])
    >>> found = redecode(lists, {"LM0": 1.0}, lambda weights: lists, metric="ter")
    >>> found.weights["LM0"] < 0
    True
    """
    if iterations < 1:
        raise UsageError(f"iterations must be 1 or more, not {iterations}")
    pool = nbest
    for iteration in range(1, iterations + 1):
        found = reestimation(pool, weights, **options)
        weights = found.weights
        pool, added = merge(pool, decode(found.weights))
        if report is not None:
            report(iteration, found, added)
        if not added:
            return found
    warnings.warn(
        f"the decoder still finds new hypotheses after {iterations} iterations: allow more of them",
        BpaWarning,
        stacklevel=2,
    )
    return found

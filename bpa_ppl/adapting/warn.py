"""What looks wrong with the lists of an adaptation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import name_lists
from bpa_ppl.gains.misplaced import check_references
from bpa_ppl.lists.nbest import NBest, score_differences, subtract_first
from bpa_ppl.weights import CANONICAL

if TYPE_CHECKING:  # it loads JAX
    from bpa_ppl.adapting.prepare import Prepared


def warn_about(prepared: Prepared) -> None:
    """Warn of what looks wrong with the lists of an adaptation.

    These are totals of other weights, and references of other lists.

    Args:
        prepared: from `prepare`.

    Raises:
        DataError: if nearly all lists have the reference of a neighbour.
    """
    lists, match = prepared.lists, prepared.match
    if match.origin == CANONICAL and (note := describe_totals(lists, match.values)):
        warn_user(note)
    if prepared.oracles is None and prepared.likelihood.observes != "preferences":
        unchecked = prepared.settings.unchecked
        check_references(prepared.judged.lists, prepared.gain, unchecked=unchecked)


def describe_totals(lists: NBest, values: npt.ArrayLike, tolerance: float = 1e-3) -> str:
    """Return a note if λ·h does not reproduce the totals of the decoder, else an empty text.

    Only differences within a list are compared: terms that are constant over a list may be missing.

    Args:
        lists: lists; without totals, or with totals that may be divided by a length, nothing is
            checked.
        values: (features,) weights in the order of the columns.
        tolerance: allowed error, relative to the totals and their differences within a list.
    """
    if lists.totals is None or lists.totals_normalised or not len(lists):
        return ""
    totals = subtract_first(lists.totals, lists.sizes)
    error = np.abs(score_differences(lists, values) - totals)
    allowed = tolerance * (np.abs(totals) + np.abs(lists.totals)) + 1e-4
    wrong = float(np.mean(error > allowed))
    if wrong <= 0.05:
        return ""
    share = f"the totals of {100 * wrong:.0f}% of the candidates of {name_lists(lists.origin)}"
    return f"the weights do not reproduce {share}: check that the decoder run used them"

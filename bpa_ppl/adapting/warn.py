"""What looks wrong with the lists of an adaptation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import locate
from bpa_ppl.gains.problems import (
    describe_repeated,
    describe_totals,
    find_outliers,
    warn_of_misplaced,
)
from bpa_ppl.weights import CANONICAL

if TYPE_CHECKING:  # it loads JAX
    from bpa_ppl.adapting.prepare import Prepared


def warn_about(prepared: Prepared) -> None:
    """Warn of what looks wrong with the lists of an adaptation.

    Values of features or gains far from all others, totals of other weights, and references of
    other lists.

    Args:
        prepared: from `prepare`.
    """
    lists, match = prepared.lists, prepared.match
    if match.origin == CANONICAL and (note := describe_totals(lists, match.values)):
        warn_user(note)
    if prepared.oracles is None and prepared.likelihood.observes != "preferences":
        warn_of_misplaced(prepared.judged.lists, prepared.gain)
        if note := describe_repeated(lists, prepared.gain):
            warn_user(f"{locate(lists.origin)}{note}")
    for note in find_outliers(lists, (*lists.feature_names, *prepared.gain.columns)):
        warn_user(f"{locate(lists.origin)}{note}")

"""Selective use: what is risked where only the surest changes are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.tables import text_table

_SHOWN = (0.5, 0.7, 0.9)


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """What becomes of a text as more and more changes are made, the surest first.

    Attributes:
        better: (C,) the probability of each change that it makes the sentence better, descending.
        coverage: (C + 1,) the share of all C changes that is made, from 0 to 1.
        risk: (C + 1,) the share of those made that in truth make the sentence worse; 0 at first.
        ter: (C + 1,) TER of the whole text then, in percent.

    >>> found = risk_coverage([0.9, 0.4, 0.8], [3, 2, 4], [1, 4, 4], [10, 5, 5])
    >>> coverage, risk, ter = found.at(sure=0.5)
    >>> round(coverage, 2), risk, ter
    (0.67, 0.0, 35.0)
    """

    better: Float64
    coverage: Float64
    risk: Float64
    ter: Float64

    def at(self, sure: float) -> tuple[float, float, float]:
        """Return coverage, risk and TER where changes are made that are surer than this."""
        made = int(np.sum(self.better > sure))
        return float(self.coverage[made]), float(self.risk[made]), float(self.ter[made])

    def __str__(self) -> str:
        rows = [
            (name, *(f"{value:.3f}" for value in found[:2]), f"{found[2]:.2f}")
            for name, found in [
                ("never", self.at(1.0)),
                *((f"> {sure:g}", self.at(sure)) for sure in reversed(_SHOWN)),
                ("always", self.at(-1.0)),
            ]
        ]
        return text_table(rows, ("sure", "coverage", "risk", "TER"), align="rrrr", least=8)


def risk_coverage(
    better: npt.ArrayLike,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    lengths: npt.ArrayLike,
    changed: npt.ArrayLike | None = None,
) -> RiskCoverage:
    """Return the risk–coverage curve of changes (El-Yaniv & Wiener 2010).

    Args:
        better: (S,) the probability that the choice is better than the first-best.
        before: (S,) edits of the first-best, against the references.
        after: (S,) edits of the choice.
        lengths: (S,) of the references, in words.
        changed: (S,) bool, whether the choice is another translation; None where it may be.

    Raises:
        DataError: if they are not as long as one another, or there is no sentence.

    >>> found = risk_coverage([0.9, 0.4, 0.8], [3, 2, 4], [1, 4, 4], [10, 5, 5])
    >>> found.coverage.round(2).tolist(), found.risk.round(2).tolist(), found.ter.tolist()
    ([0.0, 0.33, 0.67, 1.0], [0.0, 0.0, 0.0, 0.33], [45.0, 35.0, 35.0, 45.0])
    >>> found.at(0.85)
    (0.3333333333333333, 0.0, 35.0)
    """
    given = [np.asarray(part, np.float64) for part in (better, before, after, lengths)]
    if len({part.shape for part in given}) != 1 or given[0].ndim != 1 or not len(given[0]):
        raise DataError("a curve needs a probability, edits and a length for each sentence")
    sure, old, new, words = given
    which = np.ones(len(sure), bool) if changed is None else np.asarray(changed, bool)
    order = np.flatnonzero(which)[np.argsort(-sure[which], kind="stable")]
    gained = np.concatenate([[0.0], np.cumsum((new - old)[order])])
    worse = np.concatenate([[0.0], np.cumsum((new > old)[order])])
    made = np.arange(len(order) + 1)
    return RiskCoverage(
        better=sure[order],
        coverage=made / max(len(order), 1),
        risk=worse / np.maximum(made, 1),
        ter=100 * (old.sum() + gained) / max(words.sum(), 1.0),
    )

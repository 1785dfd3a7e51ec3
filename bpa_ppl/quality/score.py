"""Score: one number of one metric, with what is needed to reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """A corpus score.

    Attributes:
        value: in the unit of the metric, percent for all of ours.
        metric: the name by which the metric is asked for: "ter", "bleu" or "chrf".
        name: the name under which it is published, such as "TER" or "chrF2++".
        signature: sacreBLEU's, with tokenisation, number of references and version.
        details: what the metric says beside its value, such as BLEU's precisions.
    """

    value: float
    metric: str
    name: str
    signature: str
    details: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} ({self.signature})"

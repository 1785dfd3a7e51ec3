"""The metrics by name."""

from __future__ import annotations

from bpa_ppl.errors import one_of
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.bleu import BLEU
from bpa_ppl.quality.chrf import CHRF
from bpa_ppl.quality.ter import TER

METRICS: dict[str, type[Metric]] = {kind.key: kind for kind in (TER, BLEU, CHRF)}


def resolve(metric: str | Metric) -> Metric:
    """Return a metric with its settings: the defaults, where only a name is given.

    Raises:
        UsageError: if no metric has that name.

    >>> resolve("bleu")
    BLEU(tokenize='none', lowercase=False, smoothing='exp')
    """
    if isinstance(metric, Metric):
        return metric
    return METRICS[one_of(metric, METRICS, "metric")]()

"""Translation quality: TER, BLEU, chrF and metrics of one's own, gains, and oracle derivations."""

from __future__ import annotations

from bpa_ppl.quality.base import Metric, Score, counted_metrics, resolve
from bpa_ppl.quality.bleu import BLEU
from bpa_ppl.quality.chrf import CHRF
from bpa_ppl.quality.oracle import Headroom, Oracles, headroom, oracles
from bpa_ppl.quality.scoring import corpus_score, gains, statistics
from bpa_ppl.quality.ter import TER, ter_edits

__all__ = [
    "BLEU",
    "CHRF",
    "TER",
    "Headroom",
    "Metric",
    "Oracles",
    "Score",
    "corpus_score",
    "counted_metrics",
    "gains",
    "headroom",
    "oracles",
    "resolve",
    "statistics",
    "ter_edits",
]

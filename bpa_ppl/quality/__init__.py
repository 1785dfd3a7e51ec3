"""Translation quality: TER, BLEU, chrF, WER and other metrics, gains, and oracle derivations."""

from __future__ import annotations

from bpa_ppl.quality.agreement import agreement
from bpa_ppl.quality.base import METRICS, Averaged, Metric, Score, resolve
from bpa_ppl.quality.bleu import BLEU
from bpa_ppl.quality.chrf import CHRF
from bpa_ppl.quality.column import Column
from bpa_ppl.quality.oracle import Oracles, headroom, oracles
from bpa_ppl.quality.scoreboard import compared
from bpa_ppl.quality.scoring import corpus_score, gains
from bpa_ppl.quality.ter import TER
from bpa_ppl.quality.wer import WER

__all__ = [
    "BLEU",
    "CHRF",
    "METRICS",
    "TER",
    "WER",
    "Averaged",
    "Column",
    "Metric",
    "Oracles",
    "Score",
    "agreement",
    "compared",
    "corpus_score",
    "gains",
    "headroom",
    "oracles",
    "resolve",
]

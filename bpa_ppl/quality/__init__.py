"""Translation quality: sentence and corpus TER, BLEU and chrF, and oracle derivations."""

from __future__ import annotations

from bpa_ppl.quality.bleu import BLEU
from bpa_ppl.quality.chrf import CHRF
from bpa_ppl.quality.corpus import corpus_score
from bpa_ppl.quality.oracle import Headroom, Oracles, headroom, oracles
from bpa_ppl.quality.score import Score
from bpa_ppl.quality.ter import TER, ter_edits

__all__ = [
    "BLEU",
    "CHRF",
    "TER",
    "Headroom",
    "Oracles",
    "Score",
    "corpus_score",
    "headroom",
    "oracles",
    "ter_edits",
]

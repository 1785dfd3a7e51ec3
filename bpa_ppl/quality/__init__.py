"""Translation quality: TER, BLEU, chrF, WER and other metrics, gains, and oracle derivations."""

from __future__ import annotations

from bpa_ppl.nbest import demote_to_extras
from bpa_ppl.quality.agreement import Agreement, agreement
from bpa_ppl.quality.base import Averaged, Metric, Score, counted_metrics, resolve
from bpa_ppl.quality.bleu import BLEU
from bpa_ppl.quality.chrf import CHRF
from bpa_ppl.quality.column import (
    Column,
    by_name,
    column_of,
    judged,
    judged_lists,
    numeric_columns,
    only_judged,
)
from bpa_ppl.quality.function import Function
from bpa_ppl.quality.mixed import Mixed
from bpa_ppl.quality.oracle import Headroom, Oracles, headroom, oracles
from bpa_ppl.quality.preferences import ChoiceSets, choice_sets, has_preferences
from bpa_ppl.quality.scoreboard import Scoreboard, compared
from bpa_ppl.quality.scoring import choice_score, corpus_score, gains, statistics
from bpa_ppl.quality.ter import TER, ter_edits
from bpa_ppl.quality.wer import CER, WER

__all__ = [
    "BLEU",
    "CER",
    "CHRF",
    "TER",
    "WER",
    "Agreement",
    "Averaged",
    "ChoiceSets",
    "Column",
    "Function",
    "Headroom",
    "Metric",
    "Mixed",
    "Oracles",
    "Score",
    "Scoreboard",
    "agreement",
    "by_name",
    "choice_score",
    "choice_sets",
    "column_of",
    "compared",
    "corpus_score",
    "counted_metrics",
    "demote_to_extras",
    "gains",
    "has_preferences",
    "headroom",
    "judged",
    "judged_lists",
    "numeric_columns",
    "only_judged",
    "oracles",
    "resolve",
    "statistics",
    "ter_edits",
]

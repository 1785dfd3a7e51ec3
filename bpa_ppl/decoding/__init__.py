"""Decision rules: from a posterior over weights to one choice from each list."""

from bpa_ppl.decoding.confidence import Confidence
from bpa_ppl.decoding.outputs import (
    AlignedWriter,
    Summary,
    rerank_to,
    scoreboard,
    write_details,
    write_texts,
)
from bpa_ppl.decoding.predictions import Candidate, Predictions
from bpa_ppl.decoding.reranking import Reranked, Reranker, rerank
from bpa_ppl.decoding.rules import RULES, Rule

__all__ = [
    "RULES",
    "AlignedWriter",
    "Candidate",
    "Confidence",
    "Predictions",
    "Reranked",
    "Reranker",
    "Rule",
    "Summary",
    "rerank",
    "rerank_to",
    "scoreboard",
    "write_details",
    "write_texts",
]

"""Decision rules: from a posterior over weights to one translation a sentence."""

from bpa_ppl.decoding.reranking import (
    DERIVATIONS,
    RULES,
    Reranked,
    refuse_unconverged,
    rerank,
    rerank_stream,
)
from bpa_ppl.decoding.results import Scoreboard, scoreboard, write_details, write_texts

__all__ = [
    "DERIVATIONS",
    "RULES",
    "Reranked",
    "Scoreboard",
    "refuse_unconverged",
    "rerank",
    "rerank_stream",
    "scoreboard",
    "write_details",
    "write_texts",
]

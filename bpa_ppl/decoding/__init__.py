"""Decision rules: from a posterior over weights to one translation a sentence."""

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.decoding.reranking import (
    DERIVATIONS,
    Reranked,
    refuse_unconverged,
    rerank,
    rerank_stream,
)
from bpa_ppl.decoding.results import Scoreboard, scoreboard, write_details, write_texts

__all__ = [
    "DERIVATIONS",
    "Reranked",
    "Rule",
    "Scoreboard",
    "Voters",
    "refuse_unconverged",
    "rerank",
    "rerank_stream",
    "scoreboard",
    "write_details",
    "write_texts",
]

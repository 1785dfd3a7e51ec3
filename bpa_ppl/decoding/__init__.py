"""Decision rules: from a posterior over weights to one translation a sentence."""

from bpa_ppl.decoding.asking import CRITERIA, Asked, next_sentences
from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.decoding.confidence import Confidence, Expected
from bpa_ppl.decoding.deciding import DERIVATIONS, Deciding
from bpa_ppl.decoding.outputs import Summary, rerank_to
from bpa_ppl.decoding.reranking import Reranked, refuse_unconverged, rerank, rerank_stream
from bpa_ppl.decoding.results import Scoreboard, scoreboard, write_details, write_texts

__all__ = [
    "CRITERIA",
    "DERIVATIONS",
    "Asked",
    "Confidence",
    "Deciding",
    "Expected",
    "Reranked",
    "Rule",
    "Scoreboard",
    "Summary",
    "Voters",
    "next_sentences",
    "refuse_unconverged",
    "rerank",
    "rerank_stream",
    "rerank_to",
    "scoreboard",
    "write_details",
    "write_texts",
]

"""Decision rules: from a posterior over weights to one choice from each list."""

from bpa_ppl.decoding.active_learning import SentenceRanking, next_sentences
from bpa_ppl.decoding.confidence import Confidence
from bpa_ppl.decoding.outputs import (
    GAPS,
    AlignedWriter,
    Summary,
    rerank_to,
    scoreboard,
    write_details,
    write_texts,
)
from bpa_ppl.decoding.predictions import Candidate, Predictions
from bpa_ppl.decoding.reranking import Reranked, Reranker, rerank
from bpa_ppl.decoding.rules import AlignedDraws, Rule
from bpa_ppl.options import RerankOptions

__all__ = [
    "GAPS",
    "AlignedDraws",
    "AlignedWriter",
    "Candidate",
    "Confidence",
    "Predictions",
    "RerankOptions",
    "Reranked",
    "Reranker",
    "Rule",
    "SentenceRanking",
    "Summary",
    "next_sentences",
    "rerank",
    "rerank_to",
    "scoreboard",
    "write_details",
    "write_texts",
]

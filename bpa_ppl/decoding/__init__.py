"""Decision rules: from a posterior over weights to one translation a sentence."""

from bpa_ppl.decoding.asking import CRITERIA, Asked, next_sentences
from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.decoding.confidence import Confidence, Expected
from bpa_ppl.decoding.deciding import DERIVATIONS, Deciding
from bpa_ppl.decoding.lines import GAPS, Lines
from bpa_ppl.decoding.outputs import Summary, rerank_to
from bpa_ppl.decoding.reranking import Reranked, rerank, rerank_stream
from bpa_ppl.decoding.results import scoreboard, write_details, write_texts
from bpa_ppl.decoding.selective import selective
from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.quality import Scoreboard

__all__ = [
    "CRITERIA",
    "DERIVATIONS",
    "GAPS",
    "Asked",
    "Confidence",
    "Deciding",
    "Expected",
    "Lines",
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
    "selective",
    "write_details",
    "write_texts",
]

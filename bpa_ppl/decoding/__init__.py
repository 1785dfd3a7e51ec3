"""Decision rules: from a posterior over weights to one translation a sentence."""

from bpa_ppl.decoding.rerank import DERIVATIONS, RULES, Reranked, rerank, rerank_stream

__all__ = ["DERIVATIONS", "RULES", "Reranked", "rerank", "rerank_stream"]

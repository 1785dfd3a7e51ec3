"""Comparisons of candidates by people: which pair to ask next, the posterior, files, the page."""

from bpa_ppl.judging.journal import Journal, Judgement, read_journal
from bpa_ppl.judging.merging import with_judgements
from bpa_ppl.judging.session import Session

__all__ = ["Journal", "Judgement", "Session", "read_journal", "with_judgements"]

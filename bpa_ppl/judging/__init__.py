"""Comparisons of candidates by people: which pair to ask next, the posterior, files, the page."""

from bpa_ppl.judging.journal import Journal, Judgement, read_journal
from bpa_ppl.judging.merging import with_judgements
from bpa_ppl.judging.outlook import Outlook
from bpa_ppl.judging.session import Question, Session
from bpa_ppl.judging.simulation import headroom, learning_curve

__all__ = [
    "Journal",
    "Judgement",
    "Outlook",
    "Question",
    "Session",
    "headroom",
    "learning_curve",
    "read_journal",
    "with_judgements",
]

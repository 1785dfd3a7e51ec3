"""Comparisons of candidates by people: which pair to ask next, the posterior, files, the page."""

from bpa_ppl.judging.journal import Judgement, read_journal
from bpa_ppl.judging.merging import with_judgements
from bpa_ppl.judging.outlook import Outlook
from bpa_ppl.judging.session import Question, Session

__all__ = ["Judgement", "Outlook", "Question", "Session", "read_journal", "with_judgements"]

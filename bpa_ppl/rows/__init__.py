"""Rows: hypotheses from anywhere, on their way to become the columns of lists."""

from __future__ import annotations

from bpa_ppl.rows.base import Identifiers, Rows, SentenceLines
from bpa_ppl.rows.gathering import Gatherer

__all__ = ["Gatherer", "Identifiers", "Rows", "SentenceLines"]

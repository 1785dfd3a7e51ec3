"""Rows of hypotheses, from records and tables, checked and gathered into lists."""

from __future__ import annotations

from bpa_ppl.rows.base import Rows, SentenceLines
from bpa_ppl.rows.gathering import Gatherer
from bpa_ppl.rows.schema import SchemaReader

__all__ = ["Gatherer", "Rows", "SchemaReader", "SentenceLines"]

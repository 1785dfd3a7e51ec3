"""Columns of hypotheses, from records and tables, checked and gathered into lists."""

from __future__ import annotations

from bpa_ppl.rows.base import Columns, ReadOptions

__all__ = ["Columns", "ReadOptions"]

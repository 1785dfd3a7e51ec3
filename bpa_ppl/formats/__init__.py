"""Files in and out: n-best lists, references and weights; one module for each format."""

from __future__ import annotations

from bpa_ppl.formats.base import NBestFormat, WeightFormat
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.rows import Columns, ReadOptions

__all__ = [
    "Columns",
    "NBestFormat",
    "ReadOptions",
    "WeightFormat",
    "atomic_writer",
]

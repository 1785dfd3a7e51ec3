"""Files in and out: n-best lists, references and weights; one module for each format."""

from __future__ import annotations

from bpa_ppl.formats.base import NBEST_FORMATS, WEIGHT_FORMATS, NBestFormat, WeightFormat
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.rows import Columns, ReadOptions

__all__ = [
    "NBEST_FORMATS",
    "WEIGHT_FORMATS",
    "Columns",
    "NBestFormat",
    "ReadOptions",
    "WeightFormat",
    "atomic_writer",
]

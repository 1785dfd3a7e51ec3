"""Files in and out: n-best lists, references and weights; one module for each format."""

from __future__ import annotations

from bpa_ppl.formats.base import NBestFormat, WeightFormat
from bpa_ppl.formats.nbest_files import iter_nbest, read_nbest, write_nbest
from bpa_ppl.formats.references import read_references
from bpa_ppl.formats.streams import atomic_path, atomic_writer
from bpa_ppl.formats.weight_files import read_weights, write_weights
from bpa_ppl.rows import Columns, ReadOptions

__all__ = [
    "Columns",
    "NBestFormat",
    "ReadOptions",
    "WeightFormat",
    "atomic_path",
    "atomic_writer",
    "iter_nbest",
    "read_nbest",
    "read_references",
    "read_weights",
    "write_nbest",
    "write_weights",
]

"""Phrase pairs: extraction from aligned text, tables of counts, mixtures of tables.

What is compiled has modules of its own: `extraction` counts the phrase pairs of aligned text, and
`tree` numbers phrases.
"""

from bpa_ppl.phrases.mixtures import Fit, held_out, mix
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains
from bpa_ppl.phrases.tables import (
    PhraseCounts,
    PhraseTable,
    aligned,
    read_counts,
    read_pairs,
    read_table,
    write_counts,
    write_table,
)

__all__ = [
    "Fit",
    "NumberedText",
    "PhraseCounts",
    "PhraseTable",
    "Subdomains",
    "aligned",
    "held_out",
    "mix",
    "read_counts",
    "read_pairs",
    "read_table",
    "write_counts",
    "write_table",
]

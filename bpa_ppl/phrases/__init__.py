"""Phrase pairs: extraction from aligned text, tables of counts, and mixtures of tables."""

from bpa_ppl.phrases.mixtures import FittedMixture, held_out, mix
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains
from bpa_ppl.phrases.table_files import (
    read_counts,
    read_pairs,
    read_table,
    write_counts,
    write_table,
)
from bpa_ppl.phrases.tables import PhraseCounts, PhraseTable, aligned

__all__ = [
    "FittedMixture",
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

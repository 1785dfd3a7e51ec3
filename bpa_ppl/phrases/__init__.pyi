"""Public names; `__init__.py` imports each from its module on first use."""

from .mixtures import FittedMixture as FittedMixture, mix as mix
from .subdomains import NumberedText as NumberedText, Subdomains as Subdomains
from .table_files import (
    read_counts as read_counts,
    read_table as read_table,
    write_counts as write_counts,
    write_table as write_table,
)
from .tables import PhraseCounts as PhraseCounts, PhraseTable as PhraseTable, aligned as aligned

"""Marian n-best lists: `id ||| text ||| F0= v F1= v ||| total`.

As `marian-decoder --n-best` prints them, with a label for each scorer of an ensemble, glued to
its value where there is one scorer (`F0=-1.2`). `--alignment` adds a field between text and
features, hard (`0-0 1-2`) or soft (a vector of the source positions for each word,
`0.9,0.1 0.2,0.8`), which becomes the extra `alignment`. `--word-scores` adds `WordScores=` with
a value for each word, which is left out with a warning.

The last field is the score by which Marian ranks: the weighted sum of the features, divided by a
power of the length with `--normalize`. A file does not show whether it is. The totals are therefore
marked as normalised, and λ·h is not compared with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TextIO

from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.moses import plain_labels, positions, read_blocks, write_lines
from bpa_ppl.formats.moses_lines import ALIGNMENT, SEPARATOR, WORD_SCORES, LineParser
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows

_SCORE = re.compile(rb"F(\d+)= ?[^\s=]+")


class Marian(NBestFormat, frozen=True):
    """The format of Marian.

    Attributes:
        normalised: whether the totals may be divided by a length, as with `--normalize`; otherwise
            λ·h is compared with them when weights are adapted.
    """

    normalised: bool = True

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has the labels F0, F1, …, or word scores, as only Marian prints.

        >>> Marian().detect(b"0 ||| a cat ||| F0= -1 F1= -2 ||| -0.75")
        True
        >>> Marian().detect(b"0 ||| a cat ||| LM0= -1 ||| -1")
        False
        """
        fields = SEPARATOR.split(first_line.rstrip(b"\r"))
        if len(fields) < 4:
            return False
        between = fields[2:-1] if len(fields) > 4 else []
        if any(field.lstrip(b" ").startswith(WORD_SCORES) for field in between):
            return True
        scores = fields[-2].strip()
        numbers = [int(number) for number in _SCORE.findall(scores)]
        rest = _SCORE.sub(b"", scores).strip()
        return not rest and bool(numbers) and numbers == list(range(len(numbers)))

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file and line, if a line does not have the columns of the first one,
                or cannot be read.

        >>> lines = b"0 ||| a cat ||| 0-0 1-1 ||| F0= -3 F1= -2 ||| -1.25\n"
        >>> rows = next(Marian().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.features.tolist(), dict(rows.extras), rows.totals_normalised
        (('F0', 'F1'), [[-3.0, -2.0]], {'alignment': ['0-0 1-1']}, True)
        """
        for rows in read_blocks(blocks, partial(LineParser, options, soft=True)):
            yield rows._replace(totals_normalised=self.normalised)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists as Marian does, with alignments and totals if they have any.

        Raises:
            DataError: if a name, a text or an alignment would be ambiguous in the format.

        >>> import sys
        >>> lists = NBest.from_lists([["a cat"]], [[[-3, -2]]], ["F0", "F1"], totals=[[-1.25]])
        >>> Marian().write(lists, sys.stdout)
        0 ||| a cat ||| F0= -3 F1= -2 ||| -1.25
        """
        alignments = [positions(nbest, ALIGNMENT, soft=True)] if ALIGNMENT in nbest.extras else []
        write_lines(nbest, file, plain_labels(nbest), alignments, [])

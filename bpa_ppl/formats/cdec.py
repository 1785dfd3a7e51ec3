"""N-best lists of cdec: `id ||| text ||| F=v G=v ||| score`, without the features that are zero.

The names of the features are those in the first 10,000 lines of the file, in order of appearance.
Another name further on is an error. Read the file as `moses` if all lines must have the same
features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TextIO

import numpy as np

from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.moses import broken_text, read_blocks
from bpa_ppl.formats.moses_lines import SEPARATOR, SHAPE, Layout, LineParser, split_lines
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.formats.streams import InputFile, decoded, line_count
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Columns, ReadOptions

_FIRST = 10_000  # lines that are searched for the names of features
_NAME = re.compile(r"[^\s|=]\S*")
_FEATURES = re.compile(rb"( +[^\s=]\S*=[^\s=]+)+ *")
# Features of cdec's own phrase and language models and grammars.
_OF_CDEC = re.compile(
    rb" (LanguageModel|KLanguageModel|EgivenF\w*|FgivenE\w*|MaxLex\w+|PhraseModel_\d+|"
    rb"SampleCountF|CountEF|IsSingletonFE?|Glue|PassThrough(_\d)?)="
)


class Cdec(NBestFormat, frozen=True):
    """The format of cdec, in which a feature that a line does not have is 0."""

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has four columns, with known features of cdec in the third.

        >>> Cdec().detect(b"0 ||| a cat ||| Glue=2 LanguageModel=-9 WordPenalty=-0.8 ||| -7.5")
        True
        >>> Cdec().detect(b"0 ||| a cat ||| lm=-9 w=-0.8 ||| -7.5")
        False
        """
        fields = SEPARATOR.split(first_line)
        is_sparse = len(fields) == 4 and _FEATURES.fullmatch(fields[2])
        return bool(is_sparse) and _OF_CDEC.search(fields[2]) is not None

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: with file and line, if a line is not as it should be, or has a feature that
                is not among those known.

        >>> file = InputFile(b"0 ||| a ||| lm=-3 ||| -1\n0 ||| b ||| lm=-4 unk=1 ||| -2")
        >>> columns = next(Cdec().columns(file, ReadOptions("dev")))
        >>> {name: values.tolist() for name, values in columns.hypotheses.items()}
        {'text': [0, 1], 'lm': [-3.0, -4.0], 'unk': [0.0, 1.0], 'total': [-1.0, -2.0]}
        """
        rest = file.blocks()
        begun: list[bytes] = []
        for block in rest:
            begun.append(block)
            if sum(map(line_count, begun)) >= _FIRST:
                break
        layout = self._layout(split_lines(b"".join(begun))[:_FIRST], options)
        return read_blocks(chain(begun, rest), lambda _: LineParser(options, layout))

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, without zeros but in the first line, which shows all names in order.

        Raises:
            DataError: if a name or a text does not fit the format.
            UsageError: if the lists have no totals, which the format must have.

        >>> import sys
        >>> values = [[-3, 0], [0, 1]]
        >>> lists = NBest.from_lists([["a", "b"]], [values], ["lm", "u"], totals=[[1, 2]])
        >>> Cdec().write(lists, sys.stdout)
        0 ||| a ||| lm=-3 u=0 ||| 1
        0 ||| b ||| u=1 ||| 2
        """
        bad = [name for name in nbest.feature_names if not _NAME.fullmatch(name)]
        if bad:
            problem = f"{quoted(bad[0])} cannot be written before a `=`: rename it"
            raise DataError(problem, nbest.origin, code="bad-name")
        if nbest.totals is None:
            problem = "each line of this format has a score, and the lists have no totals"
            raise UsageError(f"{problem}: write them with weights", parameter="weights")
        for s, identifier in enumerate(nbest.sentence_ids):
            for row in range(*nbest.rows(s).indices(len(nbest.features))):
                text, values = nbest.text(row), nbest.features[row]
                if "\n" in text:
                    raise broken_text(nbest, identifier)
                shown = values.view(np.int32) != 0  # only +0 is omitted
                features = " ".join(
                    f"{name}={shortest(value)}"
                    for name, value, show in zip(nbest.feature_names, values, shown, strict=True)
                    if show or row == 0
                )
                total = shortest(nbest.totals[row])
                file.write(f"{identifier} ||| {text} ||| {features} ||| {total}\n")

    def _layout(self, lines: list[bytes], options: ReadOptions) -> Layout:
        """Return the columns that some lines show."""
        first_lines: dict[bytes, int] = {}
        for number, line in enumerate(lines, 1):
            for token in line.rsplit(b" |||", 2)[-2].split() if b" |||" in line else ():
                if name := token.rpartition(b"=")[0]:
                    first_lines.setdefault(name, number)
        names = [decoded(name, options.origin, n) for name, n in first_lines.items()]
        if not names:
            raise options.error(f"no features: a line must read {SHAPE}", 1, "no-data")
        return Layout(tuple((name, 1) for name in names), has_total=True, sparse=True)

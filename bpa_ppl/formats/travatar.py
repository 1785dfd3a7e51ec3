"""N-best lists with sparse features: of Travatar, and of cdec.

    Travatar   id ||| text ||| score ||| F=v G=v
    cdec       id ||| text ||| F=v G=v ||| score

There are four columns; each format also reads files of the other, since the features are recognised
by their content. Both programs omit features that are zero: a feature that a line does not have is
0 there, not missing.

The names of the features must be known before the first rows are returned. They are the names in
the first 10,000 lines of the file (`first`), in order of appearance. Another name further on is an
error. Read the file as `moses` if all lines must have the
same features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import ClassVar, TextIO

import numpy as np

from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.moses import broken_text, read_blocks
from bpa_ppl.formats.moses_lines import SEPARATOR, Fields, Layout, LineParser
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.formats.streams import InputFile, decoded, line_count
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.schema import looks_numeric

_NAME = re.compile(r"[^\s|=]\S*")
# Features of cdec's own phrase and language models and grammars.
_CDEC = re.compile(
    rb"(?:^| )(?:LanguageModel|KLanguageModel|EgivenF\w*|FgivenE\w*|MaxLex\w+|PhraseModel_\d+|"
    rb"SampleCountF|CountEF|IsSingletonFE?|Glue|PassThrough(_\d)?)="
)


class Travatar(NBestFormat, frozen=True):
    """The format of Travatar: the score stands before the features.

    Attributes:
        first: the number of lines that are searched for the names of features.
    """

    first: Count = 10_000

    score_first: ClassVar[bool] = True

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has four columns, a number in the third and features in the last.

        >>> Travatar().detect(b"0 ||| a cat ||| -1.5 ||| lm=-3 egfl=-0.5")
        True
        >>> Travatar().detect(b"0 ||| a cat ||| lm=-3 egfl=-0.5 ||| -1.5")
        False
        """
        fields = SEPARATOR.split(first_line.rstrip(b"\r"))
        return len(fields) == 4 and looks_numeric(fields[2]) and _are_features(fields[3])

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: with file and line, if a line is not as it should be, or has a feature that
                is not among those known.

        >>> file = InputFile(b"0 ||| a ||| -1 ||| lm=-3\n0 ||| b ||| -2 ||| lm=-4 unk=1")
        >>> columns = next(Travatar().columns(file, ReadOptions("dev")))
        >>> {name: values.tolist() for name, values in columns.hypotheses.items()}
        {'text': [0, 1], 'lm': [-3.0, -4.0], 'unk': [0.0, 1.0], 'total': [-1.0, -2.0]}
        """
        rest = file.blocks()
        begun: list[bytes] = []
        for block in rest:
            begun.append(block)
            if sum(map(line_count, begun)) >= self.first:
                break
        lines = b"".join(begun)
        return read_blocks(chain(begun, rest), lambda _: _SparseParser(self, lines, options))

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, without zeros but in the first line, which shows all names in order.

        Raises:
            DataError: if a name or a text does not fit the format.
            UsageError: if the lists have no totals, which the format must have.

        >>> import sys
        >>> values = [[-3, 0], [0, 1]]
        >>> lists = NBest.from_lists([["a", "b"]], [values], ["lm", "u"], totals=[[1, 2]])
        >>> Travatar().write(lists, sys.stdout)
        0 ||| a ||| 1 ||| lm=-3 u=0
        0 ||| b ||| 2 ||| u=1
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
                last = [shortest(nbest.totals[row]), features]
                columns = last if self.score_first else last[::-1]
                file.write(" ||| ".join([str(identifier), text, *columns]) + "\n")


class Cdec(Travatar, frozen=True):
    """The format of cdec: the features stand before the score."""

    score_first: ClassVar[bool] = False

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has four columns, with known features of cdec in the third.

        >>> Cdec().detect(b"0 ||| a cat ||| Glue=2 LanguageModel=-9 WordPenalty=-0.8 ||| -7.5")
        True
        >>> Cdec().detect(b"0 ||| a cat ||| lm=-9 w=-0.8 ||| -7.5")
        False
        """
        fields = SEPARATOR.split(first_line.rstrip(b"\r"))
        if len(fields) != 4 or not looks_numeric(fields[3]) or not _are_features(fields[2]):
            return False
        return _CDEC.search(fields[2]) is not None


class _SparseParser(LineParser):
    """Reads lines of four columns with sparse features.

    Args:
        format: the settings.
        block: the first lines of the file, which show the names and the order of the columns.
        options: how to read.
    """

    def __init__(self, format: Travatar, block: bytes, options: ReadOptions):
        self._format = format
        self.names_from = f"in the first {format.first:,} lines"
        super().__init__(options, block)

    def _layout(self, lines: list[bytes]) -> Layout:
        lines = lines[: self._format.first]
        features_last = (
            _are_features(fields[-1])
            for fields in map(SEPARATOR.split, lines)
            if len(fields) > 3 and (_are_features(fields[-1]) or _are_features(fields[-2]))
        )
        self._score_first = next(features_last, self._format.score_first)
        last = ("score", "F=value …") if self._score_first else ("F=value …", "score")
        self.shape = f"`id ||| text ||| {last[0]} ||| {last[1]}`"
        names = self._names(lines)
        if not names:
            raise self.error(f"no features: a line must read {self.shape}", 1, "no-data")
        total = "before" if self._score_first else "after"
        return Layout(tuple((name, 1) for name in names), total, sparse=True)

    def _names(self, lines: list[bytes]) -> tuple[str, ...]:
        """Return the names of the features of some lines, in order of appearance."""
        first_lines: dict[bytes, int] = {}
        for number, line in enumerate(lines, 1):
            fields = line.rsplit(b" |||", 2)
            features = fields[-1 if self._score_first else len(fields) - 2]
            for token in features.split():
                if name := token.rpartition(b"=")[0]:
                    first_lines.setdefault(name, number)
        return tuple(decoded(name, self.options.origin, n) for name, n in first_lines.items())

    def _fields(self, line: bytes, number: int) -> Fields:
        """Cut a line: the id from the left, score and features from the right."""
        fields = SEPARATOR.split(line)
        if len(fields) < 4:
            problem = f"only {len(fields)} columns, but a line must read {self.shape}"
            raise self.error(problem, number)
        if self._score_first:
            return Fields(fields[0], fields[1:-1], fields[-1], [])
        return Fields(fields[0], fields[1:-2], fields[-2], fields[-1:])


def _are_features(field: bytes) -> bool:
    """Return whether a field has features, each with its value glued to it."""
    tokens = field.split()
    return bool(tokens) and all(all(token.rpartition(b"=")) for token in tokens)

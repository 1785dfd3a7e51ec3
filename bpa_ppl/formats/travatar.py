"""N-best lists with sparse features: of Travatar, and of cdec.

    Travatar   id ||| text ||| score ||| F=v G=v
    cdec       id ||| text ||| F=v G=v ||| score

Exactly four columns; which of the last two are the features is told by the content, so that each
format reads files of the other, too. Both programs leave out features that are zero: a feature
that a line does not have is 0 there, not missing.

All rows of a table have the same columns, so that their names must be known before the first rows
are handed on. They are the names that occur in the first 10,000 lines of the file (`first`), in
order of appearance; or exactly those that are set (`names`). Another name further on is an error
that tells how to go on. Where a missing feature is rather a damaged line, read the file as
`moses`, for which all lines have the same features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TextIO

import numpy as np

from bpa_ppl.columns import intern
from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.moses_lines import SEPARATOR
from bpa_ppl.formats.numbers import finite, shortest
from bpa_ppl.formats.streams import decoded
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import TOO_LARGE

if TYPE_CHECKING:
    from bpa_ppl.formats.sparse_blocks import SparseParser

_FEATURE = re.compile(rb"(\S+)=(\S*)")
_NAME = re.compile(r"[^\s|=]\S*")
# Files of up to so many blocks (of 1 MiB) are not worth loading the compiled parser.
_PLAIN_BLOCKS = 1
_LONGEST_ID = 18  # digits that surely fit 64 bits
# What cdec prints of its own: features of its phrase and language models and of its grammars.
_CDEC = re.compile(
    rb"(?:^| )(?:LanguageModel|KLanguageModel|EgivenF\w*|FgivenE\w*|MaxLex\w+|PhraseModel_\d+|"
    rb"SampleCountF|CountEF|IsSingletonFE?|Glue|PassThrough(_\d)?)="
)


class Travatar(NBestFormat, frozen=True):
    """The format of Travatar: the score stands before the features.

    Attributes:
        first: how many lines of a file show the names of its features.
        names: the names of the features, if they are known; then no line adds one.
    """

    first: Count = 10_000
    names: tuple[str, ...] = ()

    score_first: ClassVar[bool] = True

    def detect(self, first_line: bytes) -> bool:
        """Say whether a line has four columns, a number in the third and features in the last.

        >>> Travatar().detect(b"0 ||| a cat ||| -1.5 ||| lm=-3 egfl=-0.5")
        True
        >>> Travatar().detect(b"0 ||| a cat ||| lm=-3 egfl=-0.5 ||| -1.5")
        False
        """
        fields = SEPARATOR.split(first_line.rstrip(b"\r"))
        return len(fields) == 4 and _is_number(fields[2]) and _are_features(fields[3])

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file and line, if a line is not as it should be, or has a feature that
                is not among those known.

        >>> lines = b"0 ||| a ||| -1 ||| lm=-3\n0 ||| b ||| -2 ||| lm=-4 unk=1\n"
        >>> rows = next(Travatar().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.features.tolist(), rows.totals.tolist()
        (('lm', 'unk'), [[-3.0, 0.0], [-4.0, 1.0]], [-1.0, -2.0])
        """
        rest = iter(blocks)
        begun: list[bytes] = []
        while sum(block.count(b"\n") for block in begun) < self.first:
            block = next(rest, b"")
            if not block:
                break
            begun.append(block)
        reader = _Reader(self, begun, options)
        begun += islice(rest, max(0, _PLAIN_BLOCKS + 1 - len(begun)))
        compiled: SparseParser | None = None
        if len(begun) > _PLAIN_BLOCKS:
            from bpa_ppl.formats.sparse_blocks import SparseParser

            compiled = SparseParser(reader.names, reader.score_first)
        number = 1
        for block in chain(begun, rest):
            rows = None if compiled is None else compiled.rows(block, number)
            yield reader.rows(block[:-1].split(b"\n"), number) if rows is None else rows
            number += block.count(b"\n")

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
            raise DataError(
                f"{quoted(bad[0])} cannot be written before a `=`: rename it", nbest.origin
            )
        if nbest.totals is None:
            raise UsageError(
                "each line of this format has a score, and the lists have no totals: write them "
                "with weights, which gives them totals, or choose another format"
            )
        for s, identifier in enumerate(nbest.sentence_ids):
            for row in range(*nbest.rows(s).indices(len(nbest.features))):
                text, values = nbest.text(row), nbest.features[row]
                if "\n" in text:
                    raise DataError(
                        f"a text of sentence {identifier} has a line break", nbest.origin
                    )
                shown = values.view(np.int32) != 0  # −0 is none of the zeros to leave out
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
        """Say whether a line has four columns, and features in the third that cdec is known for.

        >>> Cdec().detect(b"0 ||| a cat ||| Glue=2 LanguageModel=-9 WordPenalty=-0.8 ||| -7.5")
        True
        >>> Cdec().detect(b"0 ||| a cat ||| lm=-9 w=-0.8 ||| -7.5")
        False
        """
        fields = SEPARATOR.split(first_line.rstrip(b"\r"))
        if len(fields) != 4 or not _is_number(fields[3]) or not _are_features(fields[2]):
            return False
        return _CDEC.search(fields[2]) is not None


class _Fields(NamedTuple):
    """One line: id, text, score, and the features with their printed values."""

    id: bytes
    text: bytes
    score: bytes
    features: list[tuple[bytes, bytes]]


class _Reader:
    """Reads the lines of one file.

    Args:
        format: the settings.
        begun: the first blocks of the file, which show the names and the order of the columns.
        options: how to read.
    """

    def __init__(self, format: Travatar, begun: list[bytes], options: ReadOptions):
        self._format = format
        self._options = options
        lines = list(chain.from_iterable(block[:-1].split(b"\n") for block in begun))
        lines = lines[: format.first]
        self.score_first = format.score_first
        for line in lines:
            fields = SEPARATOR.split(line.rstrip(b"\r"))
            if len(fields) > 3 and (_are_features(fields[-1]) or _are_features(fields[-2])):
                self.score_first = _are_features(fields[-1])
                break
        self._columns = self._known(lines)
        self.names = tuple(name.decode() for name in self._columns)

    def rows(self, lines: list[bytes], first: int) -> Rows:
        """Return the rows of some lines; the first of them has the number `first`."""
        dropped: list[int] = []
        numbers = np.arange(first, first + len(lines))
        fields = [self._fields(line, number) for number, line in enumerate(lines, first)]
        values = self._values(fields)
        if values is None:
            good = [self._is_good(f, number) for number, f in enumerate(fields, first)]
            dropped = [int(f.id) for f, kept in zip(fields, good, strict=True) if not kept]
            fields = [f for f, kept in zip(fields, good, strict=True) if kept]
            numbers = numbers[np.array(good, dtype=bool)]
            values = self._values(fields)
            assert values is not None  # what is left is good
        origin = self._options.origin
        texts = [decoded(f.text, origin, n) for f, n in zip(fields, numbers.tolist(), strict=True)]
        strings, index = intern(texts)
        table = values.astype(np.float32)
        return Rows(
            names=self.names,
            ids=np.array([int(f.id) for f in fields], dtype=np.int64),
            lines=numbers,
            features=table[:, 1:],
            totals=table[:, 0],
            strings=strings,
            string_index=index,
            dropped=tuple(dropped),
        )

    def _error(self, message: str, number: int) -> DataError:
        return DataError(message, self._options.origin, number)

    def _shape(self) -> str:
        last = ("score", "F=value …") if self.score_first else ("F=value …", "score")
        return f"`id ||| text ||| {last[0]} ||| {last[1]}`"

    def _known(self, lines: list[bytes]) -> dict[bytes, int]:
        """Return the column of each feature, the score being column 0."""
        for given in self._format.names:
            if not _NAME.fullmatch(given):
                raise UsageError(
                    f"{quoted(given)} is no name of a feature: it cannot stand before a `=`"
                )
        names = [name.encode() for name in self._format.names]
        if len(set(names)) < len(names):
            raise UsageError("two of the names that are set for features are the same: remove one")
        seen: dict[bytes, str] = {}
        for number, line in enumerate([] if names else lines, 1):
            for name, _ in self._fields(line, number).features:
                if name not in seen:
                    seen[name] = decoded(name, self._options.origin, number)
        if not names and not seen:
            raise self._error("no features: a line must read " + self._shape(), 1)
        return {name: column for column, name in enumerate(names or seen, 1)}

    def _fields(self, line: bytes, number: int) -> _Fields:
        """Cut a line: the id from the left, score and features from the right."""
        fields = SEPARATOR.split(line.rstrip(b"\r"))
        if len(fields) < 4:
            raise self._error(
                f"only {len(fields)} columns where a line must read {self._shape()}", number
            )
        score, features = fields[-2:] if self.score_first else fields[:-3:-1]
        identifier = fields[0].strip()
        if not identifier.isdigit() or len(identifier) > _LONGEST_ID:
            raise self._error(
                f"sentence id {quoted(identifier)} is not a whole number: a "
                f"line must read {self._shape()}",
                number,
            )
        found = _FEATURE.findall(features)
        if len(found) != len(features.split()):
            raise self._error(
                f"{quoted(features.strip())} where features belong, "
                f"`F=value …`: a line must read {self._shape()}",
                number,
            )
        text = fields[1] if len(fields) == 4 else b" |||".join(fields[1:-2])
        return _Fields(identifier, text.strip(b" "), score.strip(), found)

    def _values(self, fields: list[_Fields]) -> Float64 | None:
        """Return score and features, (rows, 1 + features); None where something is wrong."""
        counts = [len(f.features) for f in fields]
        pairs = list(chain.from_iterable(f.features for f in fields))
        printed = [f.score for f in fields] + [value for _, value in pairs]
        width = len(self._columns) + 1
        try:
            numbers = np.array(list(map(float, printed)), dtype=np.float64)
            columns = np.array([self._columns[name] for name, _ in pairs], dtype=np.int64)
        except (ValueError, KeyError):
            return None
        places = np.repeat(np.arange(len(fields)) * width, counts) + columns
        table = np.zeros(len(fields) * width)
        table[places] = 1.0
        twice = table.sum() < len(places)
        if twice or np.any(~(np.abs(numbers) < TOO_LARGE)) or b"_" in b"".join(printed):
            return None
        table[places] = numbers[len(fields) :]
        table[::width] = numbers[: len(fields)]
        return table.reshape(-1, width)

    def _is_good(self, fields: _Fields, number: int) -> bool:
        """Say whether all numbers of a line are good; raise what else is wrong with it."""
        seen: set[bytes] = set()
        for name, _ in fields.features:
            label = name.decode(errors="replace")
            if name not in self._columns:
                lines = f"in the first {self._format.first:,} lines"
                raise self._error(
                    f"the feature {label} is not among the {len(self._columns)} "
                    f"{'that are set' if self._format.names else lines}: have more lines looked "
                    "at first (`first`), or set all names (`names`)",
                    number,
                )
            if name in seen:
                raise self._error(f"{label} stands twice in the line: remove one", number)
            seen.add(name)
        try:
            for printed in (fields.score, *(value for _, value in fields.features)):
                finite(printed)
        except ValueError as error:
            if self._options.bad == "drop":
                return False
            raise self._error(
                f"{error}: correct it, or drop such hypotheses (bad: drop)", number
            ) from error
        return True


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field


def _are_features(field: bytes) -> bool:
    """Say whether a field has features, each with its value glued to it."""
    found = _FEATURE.findall(field)
    return bool(found) and len(found) == len(field.split()) and all(value for _, value in found)

"""The base classes of formats: components that detect, read and write files.

See `bpa_ppl.registry` for formats in other packages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple, TextIO

import msgspec

from bpa_ppl.component import Component
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.numbers import finite
from bpa_ppl.formats.streams import AnyPath, InputFile, atomic_writer
from bpa_ppl.labels import repeated
from bpa_ppl.nbest import NBest
from bpa_ppl.registry import WEIGHT_FORMATS
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import CANDIDATES, ID, REFERENCE, SOURCE, TEXT
from bpa_ppl.rows.names import ColumnNames

#: Instead of the name of a format: detect it from the content, or from the name of the file.
AUTO = "auto"


class ReadOptions(NamedTuple):
    """How to read one file.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is not a finite number.
        strict: whether to raise an error instead of a warning about fields that are left out.
        first_id: the id of the first sentence, for formats without ids.
    """

    origin: str
    bad: str = "error"
    strict: bool = False
    first_id: int = 0

    def error(
        self,
        message: str,
        line: int | None = None,
        code: str = "bad-line",
        parameter: str | None = None,
    ) -> DataError:
        """Return the error that names the file, and one of its lines."""
        return DataError(message, self.origin, line, parameter=parameter, code=code)

    def number(
        self, token: str | bytes, line: int, what: str = "", remedy: str = "correct it"
    ) -> float:
        """Return the number that a token prints; infinity for a bad one if `bad` is "drop".

        Args:
            token: as printed.
            line: the number of the line.
            what: words before the message of the error.
            remedy: words after it.

        Raises:
            DataError: with file and line, if it is not a finite number and `bad` is "error".

        >>> ReadOptions("dev", bad="drop").number("nan", 1)
        inf
        """
        try:
            return finite(token)
        except ValueError as error:
            if self.bad == "drop":
                return math.inf
            advice = f"{remedy}, or drop such hypotheses (bad: drop)"
            raise self.error(f"{what}{error}: {advice}", line, "bad-number", "bad") from error


class NBestFormat(Component, frozen=True):
    """A format of n-best lists; its fields are its settings, which all have defaults.

    A format of lines has `detect`, `parse` and `write`; one of bytes has `rows` and `write_file`
    instead of the last two.

    Attributes:
        suffixes: endings of files that are written in this format by default.
        required: the fields by which a first line shows this format; several are alternatives.

    >>> from bpa_ppl.registry import NBEST_FORMATS
    >>> line = b"0 ||| a cat ||| LM0= -1.5 ||| -0.75"
    >>> [name for name, kind in NBEST_FORMATS.items() if kind().detect(line)]
    ['moses']
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line of a file, without its end, looks like this format.

        By default it must have the required fields.
        """
        names = set(self.field_names(first_line))
        return any(names.issuperset(fields) for fields in self.required)

    def field_names(self, first_line: bytes) -> list[str]:
        """Return the names of the fields of a first line: by default, of an object of JSON.

        >>> NBestFormat().field_names(b'{"id": 0, "text": "a cat"}')
        ['id', 'text']
        """
        return json_keys(first_line)

    def detect_within(self, beginning: bytes) -> bool:
        """Return whether a file has lines of this format after others that no format detects.

        Some programs print their lists between the lines of a log.

        Args:
            beginning: the first lines, or more.
        """
        return False

    def detect_folder(self, folder: Path) -> bool:
        """Return whether a folder, which may not exist, holds lists of this format."""
        return False

    def rows(self, file: InputFile, options: ReadOptions) -> Iterator[Rows]:
        """Yield rows of the table; by default, those that `parse` makes of the blocks of lines.

        Raises:
            DataError: with the file, and the line where there is one, if it cannot be read.
        """
        return self.parse(file.blocks(), options)

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        """Yield rows of the table from blocks of whole lines, each ended by a newline.

        Raises:
            DataError: with file and line, if a line cannot be read.
        """
        raise NotImplementedError

    def write_file(self, nbest: NBest, path: AnyPath) -> None:
        """Write a file, which appears when it is complete.

        Raises:
            DataError: if it cannot be written, or the lists do not fit the format.
        """
        with atomic_writer(path) as file:
            self.write(nbest, file)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists as text, with their totals if they have any.

        Raises:
            DataError: if a name or a text does not fit the format.
        """
        raise NotImplementedError


class TableFormat(NBestFormat, frozen=True, repr_omit_defaults=True):
    """A format with named columns, which may have other names in a file that is read.

    Attributes:
        id: the column of the ids of the sentences.
        text: that of the candidates.
        source: that of the source texts.
        reference: that of the references.

    >>> from bpa_ppl import read_nbest
    >>> lines = ["segment,output,lm", "3,a cat,-1.5"]
    >>> lists = read_nbest(lines, format="csv:id=segment,text=output")
    >>> lists.ids, lists.texts(0), lists.feature_names
    ((3,), ['a cat'], ('lm',))
    """

    id: str = ID
    text: str = TEXT
    source: str = SOURCE
    reference: str = REFERENCE

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self._names()
        if "" in names.values() or repeated(names.values()):
            problem = f"the columns must have names that differ, not {', '.join(names.values())}"
            raise UsageError(problem, parameter="format", code="invalid-setting")

    def names(self, origin: str) -> ColumnNames:
        """Return the names of the columns of a file that differ from the usual ones."""
        names = {usual: name for usual, name in self._names().items() if name != usual}
        return ColumnNames(names, origin)

    def _names(self) -> dict[str, str]:
        fields = (ID, TEXT, SOURCE, REFERENCE, CANDIDATES)
        return {field: getattr(self, field) for field in fields if hasattr(self, field)}


def json_keys(line: bytes) -> list[str]:
    """Return the keys of a line that is an object of JSON; nothing for any other line.

    >>> json_keys(b'{"id": 0}'), json_keys(b"id,text")
    (['id'], [])
    """
    if not line.lstrip().startswith(b"{"):
        return []
    try:
        return list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (ValueError, RecursionError):
        return []


class WeightFormat(Component, frozen=True):
    """A format of weights.

    Attributes:
        suffixes: endings of files that are written in this format, such as `.json`.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()

    def detect(self, text: str) -> bool:
        """Return whether the content of a file looks like this format."""
        raise NotImplementedError

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the names and values in the content of a file; numbers alone have empty names.

        Raises:
            DataError: with file and line, if a line cannot be read.
        """
        raise NotImplementedError

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write names and values, in full precision."""
        raise NotImplementedError

    def renewed(self, template: str, weights: Mapping[str, float], origin: str) -> str:
        """Return the content of a file with new weights, and all else unchanged.

        Args:
            template: the content.
            weights: the new values; features without one keep theirs.
            origin: the name of the file, for messages.

        Raises:
            DataError: if the file has no weight of that name.
            UsageError: if the format takes no template.
        """
        name = WEIGHT_FORMATS.name_of(self)
        problem = f"a template is a moses.ini, so the format cannot be {name}"
        raise UsageError(problem, parameter="template", code="not-supported")

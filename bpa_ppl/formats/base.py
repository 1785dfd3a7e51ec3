"""What a format is: a component that knows its files, reads them and writes them.

A format of n-best lists hands on rows of the table; one of weights, names and values. See
`bpa_ppl.registry` for how another package offers one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TextIO

from bpa_ppl.columns import Column
from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float32, Int32, Int64, NBest
from bpa_ppl.registry import WEIGHT_FORMATS

#: Instead of the name of a format: tell it by the content, or by the name of the file.
AUTO = "auto"


class ReadOptions(NamedTuple):
    """How to read one file.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is no finite number.
        strict: whether fields that would be left out with a warning are an error.
    """

    origin: str
    bad: str = "error"
    strict: bool = False


class Rows(NamedTuple):
    """Consecutive hypotheses of a file; all rows of a file have the same columns.

    Attributes:
        names: one feature name a column.
        ids: (rows,) int64, the sentence ids as printed.
        lines: (rows,) int64, the 1-based lines of the file.
        features: (rows, features) float32.
        totals: (rows,) float32, or None where the file has none.
        strings: distinct hypothesis texts.
        string_index: (rows,) int32 into `strings`.
        dropped: the sentence ids of hypotheses left out for a bad value.
        extras: more columns by name, each with one value a row: arrays, or any sequences.
    """

    names: tuple[str, ...]
    ids: Int64
    lines: Int64
    features: Float32
    totals: Float32 | None
    strings: Sequence[str]
    string_index: Int32
    dropped: tuple[int, ...] = ()
    extras: Mapping[str, Sequence[Any]] = MappingProxyType({})

    def columns(self) -> dict[str, Column]:
        """Return the columns of ours that are there: ids, features and perhaps totals."""
        columns: dict[str, Column] = {"ids": self.ids, "features": self.features}
        return columns if self.totals is None else {**columns, "totals": self.totals}

    def part(self, start: int, stop: int | None = None) -> Rows:
        """Return some of the rows."""
        rows = slice(start, stop)
        columns: dict[str, Any] = {name: part[rows] for name, part in self.columns().items()}
        return self._replace(
            lines=self.lines[rows],
            string_index=self.string_index[rows],
            extras={name: values[rows] for name, values in self.extras.items()},
            **columns,
        )


class NBestFormat(Component, frozen=True):
    """A format of n-best lists; its fields are its settings, which all have defaults."""

    def detect(self, first_line: bytes) -> bool:
        """Say whether the first line of a file, without its end, looks like this format."""
        raise NotImplementedError

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        """Yield rows of the table from blocks of whole lines, each ended by a newline.

        Raises:
            DataError: with file and line, if a line is not as it should be.
        """
        raise NotImplementedError

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, with their totals where they have them.

        Raises:
            DataError: if a name or a text does not fit the format.
        """
        raise NotImplementedError


class WeightFormat(Component, frozen=True):
    """A format of weights.

    Attributes:
        suffixes: of the names of files that are written so, such as `.json`.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()

    def detect(self, text: str) -> bool:
        """Say whether the content of a file looks like this format."""
        raise NotImplementedError

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the names and values in the content of a file.

        Raises:
            DataError: with file and line, if a line is not as it should be.
        """
        raise NotImplementedError

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write names and values, in full precision."""
        raise NotImplementedError

    def renewed(self, template: str, weights: Mapping[str, float], origin: str) -> str:
        """Return the content of a file with new weights, and all else as it stands.

        Args:
            template: the content.
            weights: the new values; features without one keep theirs.
            origin: the name of the file, for messages.

        Raises:
            DataError: if the file has no weight of that name to renew.
            UsageError: if the format takes no template.
        """
        name = WEIGHT_FORMATS.name_of(self)
        raise UsageError(f"a template is a moses.ini, so the format cannot be {name}")

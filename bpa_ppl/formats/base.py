"""What a format is: a component that knows its files, reads them and writes them.

A format of n-best lists hands on rows of the table; one of weights, names and values. See
`bpa_ppl.registry` for how another package offers one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple, TextIO

from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.formats.streams import AnyPath, InputFile, atomic_writer
from bpa_ppl.nbest import NBest
from bpa_ppl.registry import WEIGHT_FORMATS
from bpa_ppl.rows import Rows

#: Instead of the name of a format: tell it by the content, or by the name of the file.
AUTO = "auto"


class ReadOptions(NamedTuple):
    """How to read one file.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is no finite number.
        strict: whether fields that would be left out with a warning are an error.
        first_id: the id of the first sentence, where the format counts them itself.
    """

    origin: str
    bad: str = "error"
    strict: bool = False
    first_id: int = 0


class NBestFormat(Component, frozen=True):
    """A format of n-best lists; its fields are its settings, which all have defaults.

    A format of lines has `detect`, `parse` and `write`; one of bytes has `rows` and `write_file`
    instead of the last two.

    Attributes:
        suffixes: of the names of files that are written so unless another format is named.

    >>> from bpa_ppl.registry import NBEST_FORMATS
    >>> line = b"0 ||| a cat ||| LM0= -1.5 ||| -0.75"
    >>> [name for name, kind in NBEST_FORMATS.items() if kind().detect(line)]
    ['moses']
    """

    suffixes: ClassVar[tuple[str, ...]] = ()

    def detect(self, first_line: bytes) -> bool:
        """Say whether the first line of a file, without its end, looks like this format."""
        raise NotImplementedError

    def detect_within(self, beginning: bytes) -> bool:
        """Say whether a file, of which no format knows the first line, has lines of this one.

        For programs that print their lists between the lines of a log.

        Args:
            beginning: the first lines, or more.
        """
        return False

    def rows(self, file: InputFile, options: ReadOptions) -> Iterator[Rows]:
        """Yield rows of the table; those of a file of lines are what `parse` makes of its blocks.

        Raises:
            DataError: with the file, and the line where there is one, if it is not as it should
                be.
        """
        return self.parse(file.blocks(), options)

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        """Yield rows of the table from blocks of whole lines, each ended by a newline.

        Raises:
            DataError: with file and line, if a line is not as it should be.
        """
        raise NotImplementedError

    def write_file(self, nbest: NBest, path: AnyPath) -> None:
        """Write a whole file, which appears when it is complete.

        Raises:
            DataError: if it cannot be written, or the lists do not fit the format.
        """
        with atomic_writer(path) as file:
            self.write(nbest, file)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists as text, with their totals where they have them.

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
        """Return the names and values in the content of a file; numbers alone have empty names.

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

"""The formats that can be read and written: a new one is a module and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TextIO

from bpa_ppl.errors import DataError, one_of
from bpa_ppl.formats import dense_weights, json_weights, moses, moses_ini
from bpa_ppl.formats.moses_lines import SHAPE
from bpa_ppl.formats.rows import ReadOptions, Rows


class NBestFormat(Protocol):
    """What a module exports to read n-best lists."""

    def detect(self, line: bytes, /) -> bool:
        """Say whether the first line of a file looks like this format."""

    def parse(self, blocks: Iterable[bytes], options: ReadOptions, /) -> Iterator[Rows]:
        """Yield rows of the table from blocks of whole lines."""


class WeightFormat(Protocol):
    """What a module exports to read and write weights."""

    def detect(self, text: str, /) -> bool:
        """Say whether the content of a file looks like this format."""

    def parse(self, text: str, source: str, /) -> list[tuple[str, float]]:
        """Return the names and values in the content of a file."""

    def write(self, weights: Mapping[str, float], file: TextIO, /) -> None:
        """Write names and values."""


NBEST_FORMATS: dict[str, NBestFormat] = {"moses": moses}
#: In the order in which they are tried: the last one takes any text.
WEIGHT_FORMATS: dict[str, WeightFormat] = {
    "json": json_weights,
    "moses.ini": moses_ini,
    "dense": dense_weights,
}
AUTO = "auto"


def nbest_format(name: str, first_line: bytes, source: str) -> NBestFormat:
    """Return the format of that name; "auto" tells it by the first line.

    Raises:
        DataError: if no format knows the line.
        UsageError: if the name is unknown.

    >>> nbest_format("auto", b"0 ||| a cat ||| LM0= -1 ||| -1", "dev.nbest").__name__
    'bpa_ppl.formats.moses'
    """
    if one_of(name, (AUTO, *NBEST_FORMATS), "format of n-best lists") != AUTO:
        return NBEST_FORMATS[name]
    for known in NBEST_FORMATS.values():
        if known.detect(first_line):
            return known
    raise DataError(
        f"not an n-best list in a known format ({', '.join(NBEST_FORMATS)}): a line of Moses "
        f"reads {SHAPE}",
        source,
        1,
    )


def weight_format(name: str, text: str) -> WeightFormat:
    """Return the format of that name; "auto" tells it by the content.

    Raises:
        UsageError: if the name is unknown.

    >>> weight_format("auto", '{"LM0": 0.5}').__name__
    'bpa_ppl.formats.json_weights'
    """
    if one_of(name, (AUTO, *WEIGHT_FORMATS), "format of weights") != AUTO:
        return WEIGHT_FORMATS[name]
    return next(known for known in WEIGHT_FORMATS.values() if known.detect(text))

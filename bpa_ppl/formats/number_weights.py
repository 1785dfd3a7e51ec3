"""Weights as numbers without names, in the order of the columns of the lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TextIO

from bpa_ppl.formats.base import WeightFormat
from bpa_ppl.formats.dense_weights import finite_weights
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.rows.schema import looks_numeric


class NumberWeights(WeightFormat, frozen=True):
    """Numbers separated by blanks or line breaks; `#` begins a comment."""

    suffixes: ClassVar[tuple[str, ...]] = (".numbers",)

    def detect(self, text: str) -> bool:
        r"""Return whether there are only numbers.

        >>> [NumberWeights().detect(text) for text in ("0.5 -1e-3", "0.5\n2 # two", "LM0 0.5", "")]
        [True, True, False, False]
        """
        tokens = [token for line in text.split("\n") for token in line.partition("#")[0].split()]
        return bool(tokens) and all(map(looks_numeric, tokens))

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the values, with empty names.

        Raises:
            DataError: with the line, if a token is not a finite number.

        >>> NumberWeights().parse("0.5 -1", "w")
        [('', 0.5), ('', -1.0)]
        """
        return [
            ("", value)
            for number, line in enumerate(text.split("\n"), 1)
            for value in finite_weights(line.partition("#")[0].split(), origin, number)
        ]

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write the values on one line, in full precision; the names are lost.

        >>> import sys
        >>> NumberWeights().write({"LM0": 0.5, "W0": -1.0}, sys.stdout)
        0.5 -1
        """
        file.write(" ".join(shortest(float(value)) for value in weights.values()) + "\n")

"""Dense weights files: `Name0= v v`, as in the [weight] section of moses.ini, or `name value`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, TextIO

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.base import WeightFormat
from bpa_ppl.formats.numbers import finite, shortest
from bpa_ppl.labels import expand, grouped, printed_labels

_LABELLED = re.compile(
    r"(?P<label>[^\s=]+)\s*=(?P<values>.*)|(?P<name>[^\s=]+)\s+(?P<value>[^\s=]+)"
)
_NAME = re.compile(r"[^\s=#\[][^\s=#]*")


class DenseWeights(WeightFormat, frozen=True):
    """The format of lines; blank lines and `#` comments are ignored."""

    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".weights", ".dense")

    def detect(self, text: str) -> bool:
        """Return True: any text may be in this format, and `parse` reports errors.

        >>> DenseWeights().detect("LM0= 0.5")
        True
        """
        return True

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the names and values of all lines.

        Raises:
            DataError: with the line, if it has no label, no value or a bad one.

        >>> DenseWeights().parse("LM0 0.5", "w"), DenseWeights().parse("TM0= 1 2  # tuned", "w")
        ([('LM0', 0.5)], [('TM0[0]', 1.0), ('TM0[1]', 2.0)])
        """
        return parse_lines(enumerate(text.split("\n"), 1), origin)

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write the weights, one label a line, in full precision.

        Raises:
            DataError: if a name cannot be read back.

        >>> import sys
        >>> DenseWeights().write({"LM0": 0.1, "TM0[0]": 1.0, "TM0[1]": 2.0}, sys.stdout)
        LM0= 0.1
        TM0= 1 2
        """
        names = list(weights)
        for name in names:
            if not _NAME.fullmatch(name):
                problem = f"the name {quoted(name)} has =, # or a space: write JSON or YAML"
                raise DataError(problem, code="bad-name")
        ordered = [names[i] for _, positions in grouped(names) for i in positions]
        values = iter([shortest(float(weights[name])) for name in ordered])
        for label, count in printed_labels(ordered):
            file.write(f"{label}= {' '.join(next(values) for _ in range(count))}\n")


def parse_lines(lines: Iterable[tuple[int, str]], origin: str) -> list[tuple[str, float]]:
    """Return the names and values of numbered lines.

    Raises:
        DataError: as `DenseWeights.parse`.

    >>> parse_lines([(7, "LM0= 0.5")], "moses.ini")
    [('LM0', 0.5)]
    """
    pairs: list[tuple[str, float]] = []
    for number, line in lines:
        label, tokens = split_line(line, origin, number)
        if label:
            values = finite_weights(tokens, origin, number)
            pairs += zip(expand(label, len(tokens)), values, strict=True)
    return pairs


def split_line(line: str, origin: str, number: int) -> tuple[str, list[str]]:
    """Return the label and the printed values of a line; both are empty for a blank line.

    Raises:
        DataError: if it has no label or no value.

    >>> split_line("TM0= 0.5 1", "moses.ini", 7)
    ('TM0', ['0.5', '1'])
    """
    code = line.partition("#")[0].strip()
    if not code:
        return "", []
    match = _LABELLED.fullmatch(code)
    label = "" if match is None else match["label"] or match["name"]
    tokens = [] if match is None else (match["values"] or match["value"] or "").split()
    if not label or not tokens:
        raise DataError(
            f"cannot read {quoted(code)}: a line reads `Name0= value …` or `name value`",
            origin,
            number,
            code="bad-line",
        )
    return label, tokens


def finite_weights(tokens: Iterable[str], origin: str, number: int) -> list[float]:
    """Return the numbers that the tokens of a line print.

    Raises:
        DataError: if one is not a finite number.

    >>> finite_weights(["0.5", "1e-3"], "weights", 1)
    [0.5, 0.001]
    """
    try:
        return [finite(token) for token in tokens]
    except ValueError as error:
        problem = f"{error}: correct the weight"
        raise DataError(problem, origin, number, code="bad-number") from error

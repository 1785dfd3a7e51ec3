"""The [weight] section of moses.ini: read, written, and updated in a copy of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, TextIO

from bpa_ppl.errors import DataError
from bpa_ppl.formats.base import WeightFormat
from bpa_ppl.formats.dense_weights import DenseWeights, parse_lines, split_line
from bpa_ppl.formats.numbers import finite, shortest
from bpa_ppl.labels import expand

_SECTION = re.compile(r"\s*\[(?P<name>[^\]]*)\]")
_TOKEN = re.compile(r"\S+")


class MosesIni(WeightFormat, frozen=True):
    """The format of moses.ini, of which only the [weight] section is read."""

    suffixes: ClassVar[tuple[str, ...]] = (".ini",)

    def detect(self, text: str) -> bool:
        """Return whether a file has sections.

        >>> MosesIni().detect("[weight]"), MosesIni().detect("LM0= 0.5")
        (True, False)
        """
        return any(_SECTION.match(line) for line in text.split("\n"))

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        r"""Return the names and values of the [weight] section.

        Raises:
            DataError: if there is no such section, or with the line, if one cannot be read.

        >>> MosesIni().parse("[weight]\nLM0= 0.5\n[threads]\n4", "moses.ini")
        [('LM0', 0.5)]
        """
        lines = [(number, line) for number, line, weighs in _lines(text) if weighs]
        if not lines:
            problem = "no [weight] section: give the moses.ini that the lists were decoded with"
            raise DataError(problem, origin, code="no-data")
        return parse_lines(lines, origin)

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write a [weight] section.

        >>> import sys
        >>> MosesIni().write({"LM0": 0.5}, sys.stdout)
        [weight]
        LM0= 0.5
        """
        file.write("[weight]\n")
        DenseWeights().write(weights, file)

    def renewed(self, template: str, weights: Mapping[str, float], origin: str) -> str:
        r"""Return a moses.ini with new weights, and everything else unchanged.

        Args:
            template: the content of the file.
            weights: the new values; features without one keep theirs.
            origin: the name of the file, for messages.

        Raises:
            DataError: as `parse`, and if the file has no weight of that name to renew.

        >>> old = "[weight]\nLM0= 0.5 # mine\nTM0= 1.0 2"
        >>> MosesIni().renewed(old, {"TM0[1]": 3}, "moses.ini")
        '[weight]\nLM0= 0.5 # mine\nTM0= 1.0 3'
        """
        known = {name for name, _ in self.parse(template, origin)}
        missing = [name for name in weights if name not in known]
        if missing:
            problem = f"no weight of {', '.join(missing)} to update"
            advice = "add it to the [weight] section"
            raise DataError(f"{problem}: {advice}", origin, code="missing-weight")
        return "\n".join(
            _renewed_line(line, weights, origin, number) if weighs else line
            for number, line, weighs in _lines(template)
        )


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield number and text of each line, and whether it is inside the [weight] section."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        section = _SECTION.match(line)
        if section:
            inside = section["name"].strip() == "weight"
        yield number, line, inside and not section


def _renewed_line(line: str, weights: Mapping[str, float], origin: str, number: int) -> str:
    label, tokens = split_line(line, origin, number)
    if not label:
        return line
    new = iter(
        token if weights.get(name, finite(token)) == finite(token) else shortest(weights[name])
        for name, token in zip(expand(label, len(tokens)), tokens, strict=True)
    )
    start = line.index(tokens[0], line.index(label) + len(label))
    end = line.index("#") if "#" in line else len(line)
    return line[:start] + _TOKEN.sub(lambda _: next(new), line[start:end]) + line[end:]

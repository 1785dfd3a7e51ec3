"""Weights in lines: `Name0= v v` or `name value`, or the same in a moses.ini."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TextIO

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.format import WeightFormat
from bpa_ppl.formats.values import finite, shortest
from bpa_ppl.names import expand, grouped, printed_labels

_LABELLED = re.compile(
    r"(?P<label>[^\s=]+)\s*=(?P<values>.*)|(?P<name>[^\s=]*[^\s=:])\s+(?P<value>[^\s=]+)"
)
_NAME = re.compile(r"[^\s=#\[][^\s=#]*")
_SECTION = re.compile(r"\s*\[(?P<name>[^\]]*)\]")
_TOKEN = re.compile(r"\S+")


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
                problem = f"the name {quoted(name)} has =, # or a space: write JSON"
                raise DataError(problem, code="bad-name")
        ordered = [names[i] for _, positions in grouped(names) for i in positions]
        values = iter([shortest(float(weights[name])) for name in ordered])
        for label, count in printed_labels(ordered):
            file.write(f"{label}= {' '.join(next(values) for _ in range(count))}\n")


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
        template_names = {name for name, _ in self.parse(template, origin)}
        missing = [name for name in weights if name not in template_names]
        if missing:
            problem = f"no weight of {', '.join(missing)} to update"
            advice = "add it to the [weight] section"
            raise DataError(f"{problem}: {advice}", origin, code="missing-weight")
        return "\n".join(
            _renewed_line(line, weights, origin, number) if weighs else line
            for number, line, weighs in _lines(template)
        )


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
            try:
                values = [finite(token) for token in tokens]
            except ValueError as error:
                problem = f"{error}: correct the weight"
                raise DataError(problem, origin, number, code="bad-number") from error
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
        problem = f"cannot read {quoted(code)}: a line reads `Name0= value …` or `name value`"
        raise DataError(problem, origin, number, code="bad-line")
    return label, tokens


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

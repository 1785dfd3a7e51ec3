"""Files of weights: JSON, lines of `Name0= v v` or `name value`, and moses.ini."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, TextIO

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import (
    AnyInput,
    AnyPath,
    atomic_writer,
    file_suffix,
    origin_name,
    read_text,
)
from bpa_ppl._runtime.values import check_escapes, format_shortest, parse_finite
from bpa_ppl.errors import DataError, UsageError, list_names, quote, unknown_name
from bpa_ppl.formats.format import AUTO, WEIGHT_FORMATS, WeightFormat
from bpa_ppl.lists.labels import count_by_label, expand, group_by_label
from bpa_ppl.weights import Weights, unnamed_weights

_ANY = "dense"  # read if no other format is detected, and written without an ending
_LABELLED = re.compile(
    r"(?P<label>[^\s=]+)\s*=(?P<values>.*)|(?P<name>[^\s=]*[^\s=:])\s+(?P<value>[^\s=]+)"
)
_NAME = re.compile(r"[^\s=#\[][^\s=#]*")
_SECTION = re.compile(r"\s*\[(?P<name>[^\]]*)\]")
_TOKEN = re.compile(r"\S+")


def read_weights(path: AnyInput, format: str | WeightFormat = AUTO) -> Weights:
    """Read the weights of a moses.ini, a dense-weights file, JSON or another format.

    A JSON list of numbers, without names, must be in the order of the columns of the lists.

    Args:
        path: the file, compressed or not; `-` is the standard input. Also an open file, the bytes
            of a file, or an iterable of its lines.
        format: the name of a format or the format itself; "auto" detects it from the content.

    Raises:
        DataError: if the file cannot be read; the message names the line and the remedy.
        UsageError: if the format is unknown.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"LM0= 0.5"), file.flush()
    ...     print(read_weights(file.name))
    Weights({'LM0': 0.5})
    """
    reader = _resolve(format)
    text, origin = read_text(path), origin_name(path)
    pairs = (reader or _detect(text)).parse(text, origin)
    if not pairs:
        raise DataError("no weight: write `Name0= value …` lines", origin, code="no-data")
    names, values = zip(*pairs, strict=True)
    if not any(names):
        return unnamed_weights(values, origin)
    for name in find_repeated(names):
        raise DataError(f"two weights of {name}: remove one", origin, code="duplicate")
    return Weights(pairs, origin)


def write_weights(
    weights: Mapping[str, float],
    path: AnyPath,
    *,
    template: AnyPath | None = None,
    format: str | WeightFormat = AUTO,
) -> None:
    """Write weights, in full precision.

    Args:
        weights: name and value of each feature.
        path: the file; it appears when it is complete. `-` is the standard output.
        template: a moses.ini to copy with new weights; everything else in it, and the weights of
            other features, remain unchanged.
        format: the name of a format or the format itself, such as "moses.ini" (without a template
            a bare [weight] section), "dense" or "json"; "auto" is moses.ini
            with a template, else what the suffix says, and dense where there is none.

    Raises:
        DataError: if the file cannot be written, a name does not fit the format, or the template
            has no weight of that name.
        UsageError: if the format or the suffix is unknown, or the format takes no template.

    >>> write_weights({"LM0": 0.5, "TM0[0]": 1, "TM0[1]": 2}, "-")
    LM0= 0.5
    TM0= 1 2
    """
    chosen = _resolve(format) or _for_file(path, template)
    text = ""
    if template is not None:
        if not isinstance(chosen, MosesIni):
            name = WEIGHT_FORMATS.name_of(chosen)
            message = f"a template is a moses.ini, not {name}: leave out the format"
            raise UsageError(message, parameter="template", code="not-supported")
        text = chosen.update_template(read_text(template), weights, origin_name(template))
    with atomic_writer(path) as file:
        if template is None:
            chosen.write(weights, file)
        file.write(text)


def _resolve(format: str | WeightFormat) -> WeightFormat | None:
    """Return a format; None for "auto"."""
    if isinstance(format, str):
        require_one_of(format, (AUTO, *WEIGHT_FORMATS), WEIGHT_FORMATS.kind, "format")
    return None if format == AUTO else WEIGHT_FORMATS.resolve(format)


def _detect(text: str) -> WeightFormat:
    """Return the first format that detects the content of a file, or that of lines."""
    formats = (kind() for name, kind in WEIGHT_FORMATS.load() if name != _ANY)
    detected = next((format for format in formats if format.detect(text)), None)
    return detected or WEIGHT_FORMATS.resolve(_ANY)


def _for_file(path: AnyPath, template: AnyPath | None) -> WeightFormat:
    suffix = file_suffix(path)
    if template is not None or not suffix:
        return WEIGHT_FORMATS.resolve(_ANY if template is None else "moses.ini")
    names = {end: name for name, kind in WEIGHT_FORMATS.load() for end in kind.suffixes}
    if suffix not in names:
        raise unknown_name("ending", suffix, names, "format", owner=path)
    return WEIGHT_FORMATS.resolve(names[suffix])


class JsonWeights(WeightFormat, frozen=True):
    """One JSON object, or one list of numbers in the order of the columns.

    The object may be in the field `weights` of another one, as `bpa weights` writes it.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".json",)

    def detect(self, text: str) -> bool:
        """Return whether a file looks like a JSON object, or like a list of numbers.

        >>> [JsonWeights().detect(text) for text in ('{"LM0": 0.5}', "[0.5, 1]", "[weight]")]
        [True, True, False]
        """
        return re.match(r"\s*(\{|\[\s*[-+.\d\[\]])", text) is not None

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the names and values of the object.

        >>> JsonWeights().parse('{"LM0": 0.5, "TM0": [1, 2]}', "w.json")
        [('LM0', 0.5), ('TM0[0]', 1.0), ('TM0[1]', 2.0)]
        """
        weights: list[tuple[str, float]] = []
        for name, value in _entries(text, origin):
            values = value if name and isinstance(value, list) and value else [value]
            try:
                if not all(isinstance(number, float) for number in values):
                    raise ValueError("it must be a number or a list of numbers")
                numbers = list(map(parse_finite, map(repr, values)))
            except ValueError as error:
                at = text.rfind(f'"{name}"')  # not found if the name is written with escapes
                line = None if at < 0 else text.count("\n", 0, at) + 1
                problem = f"the weight of {name}: {error}" if name else f"a weight: {error}"
                raise DataError(problem, origin, line, code="bad-number") from error
            weights += zip(expand(name, len(numbers)), numbers, strict=True)
        return weights

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write {name: value}, one per line, in full precision.

        >>> import sys
        >>> JsonWeights().write({"LM0": 0.5}, sys.stdout)
        {
          "LM0": 0.5
        }
        """
        values = {name: float(value) for name, value in weights.items()}
        file.write(json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def _entries(text: str, origin: str) -> list[tuple[str, Any]]:
    """Return names and values of the object, duplicates included; a list has no names."""
    code = "bad-line"
    line: int | None = 1
    try:
        content = json.loads(text, object_pairs_hook=tuple, parse_int=float)
        check_escapes(text, content)
        if isinstance(content, list):
            return [("", value) for value in content]
        if isinstance(content, tuple):
            inside = dict(content).get("weights")
            return list(inside if isinstance(inside, tuple) else content)
        problem = "not a JSON object: write {name: value}"
    except (json.JSONDecodeError, RecursionError) as error:
        problem = f"not JSON ({getattr(error, 'msg', error)}): correct it"
        line = getattr(error, "lineno", 1)
    except DataError as error:
        problem, line, code = error.message, None, error.code
    raise DataError(problem, origin, line, code=code)


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

        >>> DenseWeights().parse("LM0 0.5", "w"), DenseWeights().parse("TM0= 1 2  # tuned", "w")
        ([('LM0', 0.5)], [('TM0[0]', 1.0), ('TM0[1]', 2.0)])
        """
        return parse_lines(enumerate(text.split("\n"), 1), origin)

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write the weights, one label a line, in full precision.

        >>> import sys
        >>> DenseWeights().write({"LM0": 0.1, "TM0[0]": 1.0, "TM0[1]": 2.0}, sys.stdout)
        LM0= 0.1
        TM0= 1 2
        """
        names = list(weights)
        for name in names:
            if not _NAME.fullmatch(name):
                problem = f"the name {quote(name)} has =, # or a space: write JSON"
                raise DataError(problem, code="bad-name")
        ordered = [names[i] for _, positions in group_by_label(names) for i in positions]
        values = iter([format_shortest(float(weights[name])) for name in ordered])
        for label, count in count_by_label(ordered):
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

        >>> MosesIni().parse("[weight]\nLM0= 0.5\n[threads]\n4", "moses.ini")
        [('LM0', 0.5)]
        """
        lines = [(number, line) for number, line, weighs in _lines(text) if weighs]
        if not lines:
            message = "no [weight] section: give the moses.ini that the lists were decoded with"
            raise DataError(message, origin, code="no-data")
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

    def update_template(self, template: str, weights: Mapping[str, float], origin: str) -> str:
        r"""Return a moses.ini with new weights, and everything else unchanged.

        Args:
            template: the content of the file.
            weights: the new values; features without one keep theirs.
            origin: the name of the file, for messages.

        Raises:
            DataError: as `parse`, and if the file has no weight of that name to renew.

        >>> old = "[weight]\nLM0= 0.5 # mine\nTM0= 1.0 2"
        >>> MosesIni().update_template(old, {"TM0[1]": 3}, "moses.ini")
        '[weight]\nLM0= 0.5 # mine\nTM0= 1.0 3'
        """
        template_names = {name for name, _ in self.parse(template, origin)}
        missing = [name for name in weights if name not in template_names]
        if missing:
            message = f"no weight of {list_names(missing)} to update: add it to [weight]"
            raise DataError(message, origin, code="missing-weight")
        return "\n".join(
            _replace_in_line(line, weights, origin, number) if weighs else line
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
        label, tokens = _split_line(line, origin, number)
        if label:
            try:
                values = [parse_finite(token) for token in tokens]
            except ValueError as error:
                problem = f"{error}: correct the weight"
                raise DataError(problem, origin, number, code="bad-number") from error
            pairs += zip(expand(label, len(tokens)), values, strict=True)
    return pairs


def _split_line(line: str, origin: str, number: int) -> tuple[str, list[str]]:
    """Return the label and the printed values of a line; both are empty for a blank line.

    Raises:
        DataError: if it has no label or no value.

    >>> _split_line("TM0= 0.5 1", "moses.ini", 7)
    ('TM0', ['0.5', '1'])
    """
    code = line.partition("#")[0].strip()
    if not code:
        return "", []
    match = _LABELLED.fullmatch(code)
    label = "" if match is None else match["label"] or match["name"]
    tokens = [] if match is None else (match["values"] or match["value"] or "").split()
    if not label or not tokens:
        problem = f"cannot read {quote(code)}: a line reads `Name0= value …` or `name value`"
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


def _replace_in_line(line: str, weights: Mapping[str, float], origin: str, number: int) -> str:
    label, tokens = _split_line(line, origin, number)
    if not label:
        return line
    new = iter(
        token
        if weights.get(name, parse_finite(token)) == parse_finite(token)
        else format_shortest(weights[name])
        for name, token in zip(expand(label, len(tokens)), tokens, strict=True)
    )
    start = line.index(tokens[0], line.index(label) + len(label))
    end = line.index("#") if "#" in line else len(line)
    return line[:start] + _TOKEN.sub(lambda _: next(new), line[start:end]) + line[end:]

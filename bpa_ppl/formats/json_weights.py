"""Weights as a JSON object, {name: value} or {label: [values]}, or as a list of numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, TextIO

from bpa_ppl.errors import DataError
from bpa_ppl.formats.base import WeightFormat
from bpa_ppl.formats.numbers import finite
from bpa_ppl.labels import expand


class JsonWeights(WeightFormat, frozen=True):
    """One JSON object, or one list of numbers in the order of the columns."""

    suffixes: ClassVar[tuple[str, ...]] = (".json",)

    def detect(self, text: str) -> bool:
        """Return whether a file looks like a JSON object, or like a list of numbers.

        >>> [JsonWeights().detect(text) for text in ('{"LM0": 0.5}', "[0.5, 1]", "[weight]")]
        [True, True, False]
        """
        return re.match(r"\s*(\{|\[\s*[-+.\d\[\]])", text) is not None

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        """Return the names and values of the object.

        Raises:
            DataError: with the line, if the text is not a JSON object or list of finite numbers.

        >>> JsonWeights().parse('{"LM0": 0.5, "TM0": [1, 2]}', "w.json")
        [('LM0', 0.5), ('TM0[0]', 1.0), ('TM0[1]', 2.0)]
        """
        entries = _entries(text, origin)
        if isinstance(entries, list):
            return [("", _number(str(k), value, origin)) for k, value in enumerate(entries)]
        pairs: list[tuple[str, float]] = []
        for key, value in entries:
            values = value if isinstance(value, list) and value else [value]
            numbers = [_number(key, number, origin, text) for number in values]
            pairs += zip(expand(key, len(numbers)), numbers, strict=True)
        return pairs

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


def _entries(text: str, origin: str) -> tuple[tuple[str, Any], ...] | list[Any]:
    """Return the entries of the object, with repeated ones, or the list; numbers as printed."""
    line: int | None = 1
    code = "bad-line"
    try:
        content = json.loads(
            text,
            object_pairs_hook=tuple,
            parse_float=_Printed,
            parse_int=_Printed,
            parse_constant=_Printed,
        )
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()
        if isinstance(content, tuple | list):
            return content
        problem = "not a JSON object: write {name: value}"
    except json.JSONDecodeError as error:
        problem, line = f"not JSON ({error.msg}): correct it", error.lineno
    except RecursionError:
        problem = "nested too deeply: write {name: value}"
    except UnicodeEncodeError:
        problem, line = "a \\u escape is half a surrogate pair: write the text as UTF-8", None
        code = "bad-encoding"
    raise DataError(problem, origin, line, code=code)


class _Printed(str):
    """A number of the file as it is printed, as opposed to a string of the file."""


def _number(key: str, value: Any, origin: str, text: str = "") -> float:
    message = " must be a number or a list of numbers"
    if isinstance(value, _Printed):
        try:
            return finite(value)
        except ValueError as error:
            message = f": {error}"
    raise DataError(f"the weight of {key}{message}", origin, _line_of(key, text), code="bad-number")


def _line_of(key: str, text: str) -> int | None:
    """Return the line of a key; None if it is written with escapes."""
    at = text.rfind(f'"{key}"')
    return None if at < 0 else text.count("\n", 0, at) + 1

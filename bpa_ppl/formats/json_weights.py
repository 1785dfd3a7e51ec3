"""Weights as JSON: `name: value`, with lists of values for labels, or a list of numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, TextIO

from bpa_ppl.errors import DataError
from bpa_ppl.formats.format import WeightFormat
from bpa_ppl.formats.values import finite
from bpa_ppl.names import expand


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
        weights: list[tuple[str, float]] = []
        for name, value in _entries(text, origin):
            values = value if name and isinstance(value, list) and value else [value]
            try:
                if not all(isinstance(number, float) for number in values):
                    raise ValueError("it must be a number or a list of numbers")
                numbers = [finite(repr(number)) for number in values]
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
    """Return names and values of the object, with repeated ones; the values of a list alone."""
    code = "bad-line"
    line: int | None = 1
    try:
        content = json.loads(text, object_pairs_hook=tuple, parse_int=float)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()
        if isinstance(content, list):
            return [("", value) for value in content]
        if isinstance(content, tuple):
            return list(content)
        problem = "not a JSON object: write {name: value}"
    except (json.JSONDecodeError, RecursionError) as error:
        problem = f"not JSON ({getattr(error, 'msg', error)}): correct it"
        line = getattr(error, "lineno", 1)
    except UnicodeEncodeError:
        problem, line = "a \\u escape is half a surrogate pair: write the text as UTF-8", None
        code = "bad-encoding"
    raise DataError(problem, origin, line, code=code)

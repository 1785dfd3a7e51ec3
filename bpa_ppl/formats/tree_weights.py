"""Weights as JSON or YAML: `name: value`, with lists of values for labels, or a list of numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, TextIO

from bpa_ppl.errors import DataError, require_extra
from bpa_ppl.formats.base import WeightFormat
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.labels import expand
from bpa_ppl.rows.base import finite

_LINE = re.compile(r"""(?:[^\s#=:'"\[{][^#=:]*|"(?:[^"\\]|\\.)*"|'[^']*')\s*:(?:\s|$)|[-?]\s|---""")
_LONGEST = 1000  # characters of a name before a colon; YAML allows 1024, with quotes
#: Names that need no quotes.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\[\d+\])?")
_NOT_PLAIN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


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


class YamlWeights(WeightFormat, frozen=True):
    """One mapping, or one list of numbers in the order of the columns.

    `1e-5`, which is a string in YAML 1.1, is read as a number.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".yaml", ".yml")

    def detect(self, text: str) -> bool:
        """Return whether the first line with content looks like YAML.

        >>> [YamlWeights().detect(text) for text in ("LM0: 0.5", "- 0.5", "LM0= 0.5", "-1.5 2")]
        [True, True, False, False]
        """
        lines = (line.rstrip() for line in text.split("\n"))
        first = next((line for line in lines if line and not line.lstrip().startswith("#")), "")
        return _LINE.match(first) is not None

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        r"""Return the names and values of the mapping.

        Raises:
            DataError: with the line, if the text is not YAML with one mapping or list of finite
                numbers.
            UsageError: if PyYAML is not installed.

        >>> YamlWeights().parse("LM0: 5e-1\nTM0: [1, 2]", "w.yaml")
        [('LM0', 0.5), ('TM0[0]', 1.0), ('TM0[1]', 2.0)]
        """
        require_extra(f"{origin}: weights in YAML need PyYAML", "yaml", "yaml")
        import yaml

        root = _composed(text, origin)
        if root is None:
            return []
        if isinstance(root, yaml.SequenceNode):
            return [("", _yaml_number("a weight", node, origin)) for node in root.value]
        if not isinstance(root, yaml.MappingNode):
            raise _yaml_error("not a mapping: write `name: value` lines", root, origin)
        pairs: list[tuple[str, float]] = []
        for key, value in root.value:
            if not isinstance(key, yaml.ScalarNode) or not key.value:
                raise _yaml_error("a name must be a text: write `name: value`", key, origin)
            name = str(key.value)
            listed = isinstance(value, yaml.SequenceNode) and value.value
            nodes = value.value if listed else [value]
            numbers = [_yaml_number(f"the weight of {name}", node, origin) for node in nodes]
            pairs += zip(expand(name, len(numbers)), numbers, strict=True)
        return pairs

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        """Write `name: value`, one per line, in full precision.

        >>> import sys
        >>> YamlWeights().write({"LM0": 0.5, "system=A": 1.0}, sys.stdout)
        LM0: 0.5
        "system=A": 1
        """
        for name, value in weights.items():
            key = _quoted(name)
            key = f"? {key}\n" if len(key) > _LONGEST else key
            file.write(f"{key}: {shortest(float(value))}\n")


def _entries(text: str, origin: str) -> tuple[tuple[str, Any], ...] | list[Any]:
    """Return the entries of the object, with repeated ones, or the list."""
    code = "bad-line"
    line: int | None = 1
    try:
        content = json.loads(text, object_pairs_hook=tuple, parse_int=float)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()
        if isinstance(content, tuple | list):
            return content
        problem = "not a JSON object: write {name: value}"
    except (json.JSONDecodeError, RecursionError) as error:
        problem = f"not JSON ({getattr(error, 'msg', error)}): correct it"
        line = getattr(error, "lineno", 1)
    except UnicodeEncodeError:
        problem, line = "a \\u escape is half a surrogate pair: write the text as UTF-8", None
        code = "bad-encoding"
    raise DataError(problem, origin, line, code=code)


def _number(key: str, value: Any, origin: str, text: str = "") -> float:
    message = " must be a number or a list of numbers"
    if isinstance(value, float):
        try:
            return finite(repr(value))
        except ValueError as error:
            message = f": {error}"
    at = text.rfind(f'"{key}"')  # not found if the key is written with escapes
    line = None if at < 0 else text.count("\n", 0, at) + 1
    raise DataError(f"the weight of {key}{message}", origin, line, code="bad-number")


def _composed(text: str, origin: str) -> Any:
    """Return the tree of a document, with the position of each node; None if it is empty."""
    import yaml

    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        line = None if mark is None else mark.line + 1
        message = f"not YAML ({problem}): correct it"
        raise DataError(message, origin, line, code="bad-line") from error


def _yaml_error(message: str, node: Any, origin: str, code: str = "bad-line") -> DataError:
    return DataError(message, origin, int(node.start_mark.line) + 1, code=code)


def _yaml_number(what: str, node: Any, origin: str) -> float:
    import yaml

    # A quoted number is a string.
    if not isinstance(node, yaml.ScalarNode) or node.style in ("'", '"'):
        raise _yaml_error(
            f"{what} must be a number or a list of numbers", node, origin, "bad-number"
        )
    try:
        return finite(str(node.value))
    except ValueError as error:
        raise _yaml_error(f"{what}: {error}", node, origin, "bad-number") from error


def _quoted(name: str) -> str:
    """Return a name as a key of YAML, in quotes unless it is certainly read as a name."""
    plain = _PLAIN.fullmatch(name) and "[" not in name and name.lower() not in _NOT_PLAIN
    if plain:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    # Characters that break lines, or that no editor shows, are written as YAML's escapes.
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'

"""Weights as JSON or YAML: `name: value`, with lists of values for labels, or a list of numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
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
#: A name, the numbers as printed, or None for other values, and the line.
_Entry = tuple[str, list[str | None], int | None]
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
        content = _json(text, origin)
        if isinstance(content, list):
            return _weights([("", _tokens([value]), None) for value in content], origin)
        entries: list[_Entry] = []
        for name, value in content:
            at = text.rfind(f'"{name}"')  # not found if the name is written with escapes
            line = None if at < 0 else text.count("\n", 0, at) + 1
            values = value if isinstance(value, list) and value else [value]
            entries.append((name, _tokens(values), line))
        return _weights(entries, origin)

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

        try:
            root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or str(error).split("\n")[0]
            line = None if mark is None else mark.line + 1
            message = f"not YAML ({problem}): correct it"
            raise DataError(message, origin, line, code="bad-line") from error
        if root is None:
            return []
        if isinstance(root, yaml.SequenceNode):
            pairs = [(None, node) for node in root.value]
        elif isinstance(root, yaml.MappingNode):
            pairs = root.value
        else:
            problem = "not a mapping: write `name: value` lines"
            raise DataError(problem, origin, root.start_mark.line + 1, code="bad-line")
        entries: list[_Entry] = []
        for key, value in pairs:
            line = value.start_mark.line + 1
            if key is not None and not (isinstance(key, yaml.ScalarNode) and key.value):
                problem = "a name must be a text: write `name: value`"
                raise DataError(problem, origin, line, code="bad-line")
            listed = key is not None and isinstance(value, yaml.SequenceNode) and value.value
            tokens = [
                # A quoted number is a string.
                node.value if isinstance(node, yaml.ScalarNode) and node.style is None else None
                for node in (value.value if listed else [value])
            ]
            entries.append(("" if key is None else key.value, tokens, line))
        return _weights(entries, origin)

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


def _json(text: str, origin: str) -> tuple[tuple[str, Any], ...] | list[Any]:
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


def _tokens(values: list[Any]) -> list[str | None]:
    """Return numbers of JSON as they are printed, and None for any other value."""
    return [repr(value) if isinstance(value, float) else None for value in values]


def _weights(entries: Iterable[_Entry], origin: str) -> list[tuple[str, float]]:
    """Return the names and values of some entries; without a name, the values alone."""
    weights: list[tuple[str, float]] = []
    for name, tokens, line in entries:
        what = f"the weight of {name}" if name else "a weight"
        try:
            if None in tokens:
                raise ValueError("it must be a number or a list of numbers")
            numbers = [finite(token) for token in tokens if token is not None]
        except ValueError as error:
            raise DataError(f"{what}: {error}", origin, line, code="bad-number") from error
        names = expand(name, len(numbers)) if name else [""] * len(numbers)
        weights += zip(names, numbers, strict=True)
    return weights


def _quoted(name: str) -> str:
    """Return a name as a key of YAML, in quotes unless it is certainly read as a name."""
    plain = _PLAIN.fullmatch(name) and "[" not in name and name.lower() not in _NOT_PLAIN
    if plain:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    # Characters that break lines, or that no editor shows, are written as YAML's escapes.
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'

"""Reading TOML tables key by key: every wrong, missing or unknown key is an error with a place."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import read_text

T = TypeVar("T")
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}


class Table:
    """A table of a TOML file whose keys are taken one after the other.

    Args:
        values: the keys and values.
        name: of the table, for messages; empty for the whole file.
        path: of the file.
    """

    def __init__(self, values: dict[str, Any], name: str, path: Path):
        self._values, self.name, self.path = dict(values), name, path

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value; without a default it must be there.

        Raises:
            DataError: if it is missing or of another kind.

        >>> Table({"seed": 3}, "", Path("study.toml")).take("seed", int)
        3
        """
        if key not in self._values:
            if default is None:
                raise self.error(f"{key} is missing: add {key} = {_KINDS[kind]}")
            return default
        return self._checked(self._values.pop(key), kind, key)

    def take_list(self, key: str, kind: type[T], default: list[T] | None = None) -> tuple[T, ...]:
        """Return the values of a list that is not empty, each once.

        Raises:
            DataError: as `take`, and if a value is repeated.

        >>> Table({"sizes": [10, 20]}, "", Path("study.toml")).take_list("sizes", int)
        (10, 20)
        """
        given = self.take(key, list, default)
        values = tuple(self._checked(value, kind, key) for value in given)
        if len(set(values)) != len(values):
            raise self.error(f"{key} names a value twice: leave one out")
        if not values and default is None:
            raise self.error(f"{key} is empty: name at least one value")
        return values

    def take_tables(self, key: str) -> list[Table]:
        """Return the tables in a table, in the order of the file."""
        outer = self.take(key, dict, {})
        title = f"{self.name}.{key}" if self.name else key
        return [
            Table(self._checked(inner, dict, name), f"{title}.{name}", self.path)
            for name, inner in outer.items()
        ]

    def rest(self) -> dict[str, Any]:
        """Return the keys not taken so far, and take them."""
        values, self._values = self._values, {}
        return values

    def done(self) -> None:
        """Raise a DataError if a key has not been taken."""
        if self._values:
            raise self.error(f"unknown key {next(iter(self._values))!r}: correct or remove it")

    def error(self, message: str) -> DataError:
        """Return an error that says where it is."""
        return DataError(f"in [{self.name}]: {message}" if self.name else message, self.path)

    def _checked(self, value: Any, kind: type[T], key: str) -> T:
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(f"{key} must be {_KINDS[kind]}, not {value!r}")
        return value


def read_table(path: Path) -> Table:
    """Return a TOML file as a table.

    Raises:
        DataError: if it cannot be read, or is not TOML.
    """
    try:
        return Table(tomllib.loads(read_text(path)), "", path)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"not a TOML file: {error}", path) from error

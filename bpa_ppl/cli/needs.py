"""Options that need another one: given without it, they are an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bpa_ppl.cli.outputs import iter_options, read_hints
from bpa_ppl.errors import UsageError


class Needs(NamedTuple):
    """Marks a parameter that needs another one; on a group of options, it applies to each of them.

    Attributes:
        one_of: parameters, of which one must be given, as `test`; or with a value, `point=draw`.
    """

    one_of: tuple[str, ...]


def check_needs(
    command: Callable[..., Any],
    values: Mapping[str, Any],
    find_options: Callable[[], Mapping[str, str]],
) -> None:
    """Refuse options of a command that have no meaning without another one.

    Args:
        command: with `Needs` in the types of its parameters.
        values: those that were given, by parameter.
        find_options: returns what parameters are called on the command line.

    Raises:
        UsageError: naming both options.

    >>> from typing import Annotated
    >>> def plot(*, top: Annotated[int, Needs(("names",))] = 8, names: str = ""): ...
    >>> check_needs(plot, {"top": 2}, lambda: {"top": "--top", "names": "--names"})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: --top needs --names: give both, or leave it out
    """
    options = [*iter_options(read_hints(command), values)]
    given = {name: value for name, value, _ in options if value != ()}
    for name, _, marks in options:
        for one in (mark for mark in marks if isinstance(mark, Needs)):
            parts = [part.partition("=") for part in one.one_of]
            if not any(n in given and value in ("", str(given[n])) for n, _, value in parts):
                names = find_options()
                needed = " or ".join(f"{names.get(n, n)} {v}".rstrip() for n, _, v in parts)
                message = f"{names.get(name, name)} needs {needed}: give both, or leave it out"
                raise UsageError(message, parameter=name, code="conflict")

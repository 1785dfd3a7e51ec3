"""Options that need another one: given without it, they are an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, Unpack, get_origin, get_type_hints

from bpa_ppl.cli.outputs import list_marks, read_marks
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
    marked = dict[str, tuple[Any, list[Needs]]]()
    for name, (_, marks, kind) in read_marks(command).items():
        if name in values and get_origin(kind) is Unpack:  # a dictionary of options
            marked |= {option: (value, []) for option, value in values[name].items()}
        elif name in values:
            own = [mark for mark in marks if isinstance(mark, Needs)]
            marked.update(_given(name, values[name], own))
    given = {name: value for name, (value, _) in marked.items() if value != ()}
    for name, (_, conditions) in marked.items():
        for one in conditions:
            parts = [part.partition("=") for part in one.one_of]
            if not any(n in given and value in ("", str(given[n])) for n, _, value in parts):
                options = find_options()
                needed = " or ".join(f"{options.get(n, n)} {v}".rstrip() for n, _, v in parts)
                message = f"{options.get(name, name)} needs {needed}: give both, or leave it out"
                raise UsageError(message, parameter=name, code="conflict")


def _given(
    name: str, value: Any, above: list[Needs]
) -> Iterator[tuple[str, tuple[Any, list[Needs]]]]:
    """Yield a parameter that was given; of a group, its options that are not at their defaults."""
    if not is_dataclass(value):
        yield name, (value, above)
        return
    group: Any = type(value)
    hints, default = get_type_hints(group, include_extras=True), group()
    for field in fields(value):
        own = getattr(value, field.name)
        if own != getattr(default, field.name):
            marks = [mark for mark in list_marks(hints[field.name]) if isinstance(mark, Needs)]
            yield from _given(field.name, own, [*above, *marks])

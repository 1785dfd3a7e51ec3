"""Component: base class of named objects, such as samplers, metrics and file formats."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

import msgspec
from msgspec import Meta

from bpa_ppl._runtime.arguments import nearest
from bpa_ppl.errors import UsageError, quoted

#: Types of settings that occur in several components.
Count = Annotated[int, Meta(ge=1)]
CountOrNone = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, le=1)]


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A component with its settings: the fields are the settings, the methods do the work.

    Immutable, compared and hashed by its settings. Each value is validated against the type of its
    field, which may have bounds.

    Raises:
        UsageError: if a value is not of the type of its field, or not finite.

    >>> class Sampler(Component, frozen=True):
    ...     draws: Count = 1000
    >>> Sampler(draws=5)
    Sampler(draws=5)
    >>> Sampler(draws=0)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: draws must be an integer ≥ 1, not 0
    """

    #: The setting that is a part of the name of the component: `numpyro:BarkerMH`.
    variant: ClassVar[str] = ""
    #: The setting that may be written without its name: `lm=domain.txt`.
    main: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            # Settings of the type Any are validated by the component itself.
            valid = field.type is Any or not isinstance(value, float) or math.isfinite(value)
            try:
                msgspec.convert(value, field.type)
            except (msgspec.ValidationError, UnicodeEncodeError):  # of a lone surrogate
                valid = False
            if not valid:
                problem = f"{field.name} must be {_described(field.type)}, not {quoted(value)}"
                raise UsageError(problem, parameter=field.name, code="invalid-setting")

    @classmethod
    def configured(cls, title: str, settings: Mapping[str, Any]) -> Self:
        """Return the component with some settings, the others at their defaults.

        Args:
            title: the component in words, for messages: `sampler imh`.
            settings: by name; NumPy's numbers count as Python's.

        Raises:
            UsageError: if it has no such setting, lacks one, or a value makes no sense.
        """
        fields = {field.name: field for field in msgspec.structs.fields(cls)}
        for name in settings:
            if name not in fields:
                meant = nearest(name, fields) or f": it has {', '.join(fields) or 'none'}"
                problem = f"the {title} has no setting {name}{meant}"
                raise UsageError(problem, parameter=name, code="unknown-setting")
        for name, field in fields.items():
            if field.required and name not in settings:
                problem = f"the {title} needs {name}: give {_described(field.type)}"
                raise UsageError(problem, parameter=name, code="missing-setting")
        plain = {n: v.item() for n, v in settings.items() if getattr(v, "ndim", None) == 0}
        return cls(**{**settings, **plain})

    def settings(self) -> dict[str, Any]:
        """Return the settings by name."""
        return msgspec.structs.asdict(self)


def settings_in(text: str, title: str) -> dict[str, Any]:
    """Read settings as they are written after a name: `list_size=50,scores=lm.npy,tm.npy`.

    A value that looks like a number becomes one; several values of a setting make a tuple.

    Args:
        text: the settings, separated by commas; may be empty.
        title: what they belong to, for messages.

    Raises:
        UsageError: if a setting has no name.

    >>> settings_in("list_size=50,scores=lm.npy,tm.npy", "the format plain")
    {'list_size': 50, 'scores': ('lm.npy', 'tm.npy')}
    """
    values: dict[str, list[Any]] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals and values:
            values[list(values)[-1]].append(number_or_text(part))
        elif name and value:
            values[name] = [number_or_text(value)]
        else:
            problem = f"settings of {title} are written NAME=VALUE, not {quoted(part)}"
            raise UsageError(problem, code="invalid-setting")
    return {name: parts[0] if len(parts) == 1 else tuple(parts) for name, parts in values.items()}


def name_in(text: str) -> str:
    """Return the name of a component in a text that may have settings after it.

    >>> name_in("margin:gamma=2"), name_in("lm=domain.txt,order=5"), name_in("nuts")
    ('margin', 'lm', 'nuts')
    """
    return re.split("[:=]", text, maxsplit=1)[0]


def number_or_text(text: str) -> Any:
    """Return a boolean or a number where a text looks like one, else the text.

    >>> number_or_text("50"), number_or_text("2.5"), number_or_text("true"), number_or_text("lm")
    (50, 2.5, True, 'lm')
    """
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


_NAMES = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}


def _described(kind: Any) -> str:
    """Describe the values that a field takes.

    >>> _described(Share), _described(Count | None), _described(Literal["a", "b"])
    ('a number > 0 and ≤ 1', 'an integer ≥ 1 or nothing', 'one of a, b')
    >>> _described(tuple[str, ...] | str)
    'a list or a text'
    """
    if get_origin(kind) is Annotated:
        base, *metas = get_args(kind)
        bounds = [_bounds(meta) for meta in metas if isinstance(meta, Meta)]
        return " ".join([_described(base), *filter(None, bounds)])
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) is tuple:
        return "a list"
    choices = get_args(kind) if get_origin(kind) not in (list, tuple, dict) else ()
    if choices:
        return " or ".join("nothing" if c is type(None) else _described(c) for c in choices)
    return _NAMES.get(kind, str(kind).removeprefix("<class '").removesuffix("'>"))


def _bounds(meta: Meta) -> str:
    bounds = {">": meta.gt, "≥": meta.ge, "<": meta.lt, "≤": meta.le}
    return " and ".join(f"{sign} {value:g}" for sign, value in bounds.items() if value is not None)

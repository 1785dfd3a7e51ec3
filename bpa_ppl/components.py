"""Components: objects with settings that are chosen by name, such as samplers and metrics.

A component is a class derived from `Component`; its fields are its settings. All components of a
kind are in a `Registry`, by name, as texts `module:Class` that are imported on first use. One is
chosen by a text, in Python and on the command line: its name, with settings
after a colon, `nuts:warmup=500,chains=2`. A component with variants is named with one of them,
`numpyro:BarkerMH,step_size=0.5`; it is registered with a placeholder, `numpyro:NAME`, for help. The
main setting of a component may follow an equals sign, `lm=domain.txt,order=5`.

Another package can offer a component in its metadata,

    [project.entry-points."bpa_ppl.samplers"]
    mine = "my_package.sampler:Mine"

and a program can register one for its own process: `SAMPLERS.register("mine", Mine)`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from re import split
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import (
    DataError,
    UsageError,
    quote,
    suggest_name,
    unknown_name,
    wrong_type,
    wrong_value,
)

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
        for field in _list_fields(type(self)):
            value = getattr(self, field.name)
            # Settings of the type Any are validated by the component itself.
            valid = field.type is Any or not isinstance(value, float) or math.isfinite(value)
            try:
                msgspec.convert(value, field.type)
            except (msgspec.ValidationError, UnicodeEncodeError):  # of a lone surrogate
                valid = False
            if not valid:
                rule = f"{field.name} must be {_describe_field(field.type)}"
                raise wrong_value(rule, value, field.name, code="invalid-setting")

    @classmethod
    def configured(cls, title: str, settings: Mapping[str, Any]) -> Self:
        """Return the component with some settings, the others at their defaults.

        Args:
            title: the component in words, for messages: `sampler imh`.
            settings: by name; NumPy's numbers count as Python's.

        Raises:
            UsageError: if it has no such setting, lacks one, or a value makes no sense.
        """
        fields = {field.name: field for field in _list_fields(cls)}
        for name in settings:
            if name not in fields:
                raise unknown_name("setting", name, fields, name, owner=f"the {title}")
        for name, field in fields.items():
            if field.required and name not in settings:
                message = f"the {title} needs {name}: give {_describe_field(field.type)}"
                raise UsageError(message, parameter=name, code="missing-setting")
        plain = {n: v.item() for n, v in settings.items() if getattr(v, "ndim", None) == 0}
        return cls(**{**settings, **plain})

    def settings(self) -> dict[str, Any]:
        """Return the settings by name."""
        return msgspec.structs.asdict(self)


@cache
def _list_fields(kind: type[Component]) -> tuple[FieldInfo, ...]:
    """Return the settings of a class; reading their types takes longer than checking them."""
    return msgspec.structs.fields(kind)


def read_settings(text: str, title: str) -> dict[str, Any]:
    """Read settings as they are written after a name: `list_size=50,scores=lm.npy,tm.npy`.

    A value that looks like a number becomes one; several values of a setting make a tuple. A
    setting with a comma is quoted as in a row of CSV, and one entry of a setting that is a
    dictionary is written after a dot.

    Args:
        text: the settings, separated by commas; may be empty.
        title: what they belong to, for messages.

    Raises:
        UsageError: if a setting has no name.

    >>> read_settings("list_size=50,scores=lm.npy,tm.npy", "the format plain")
    {'list_size': 50, 'scores': ('lm.npy', 'tm.npy')}
    >>> read_settings('"extract=[a,b]",field=text', "the format openai")
    {'extract': '[a,b]', 'field': 'text'}
    >>> read_settings("variance=0.5,single.LM0=2", "the prior isotropic")
    {'variance': 0.5, 'single': {'LM0': 2}}
    """
    values: dict[str, list[Any]] = {}
    entries: dict[str, dict[str, Any]] = {}
    try:
        parts = list(chain.from_iterable(csv.reader([text])))
    except csv.Error as error:
        message = f"the settings of {title}, {quote(text)}, cannot be read ({error}): correct them"
        raise UsageError(message, code="invalid-setting") from error
    for part in filter(None, parts):
        name, equals, value = part.partition("=")
        setting, is_entry, entry = part.partition(".") if "." in name else ("", "", "")
        if not equals and values:
            values[list(values)[-1]].append(read_value(part))
        elif is_entry and setting:
            key, _, value = entry.rpartition("=")  # the name of a feature may have one
            entries.setdefault(setting, {})[key] = read_value(value)
        elif name and value:
            values[name] = [read_value(value)]
        else:
            rule = f"settings of {title} are written NAME=VALUE"
            raise wrong_value(rule, part, code="invalid-setting")
    return {n: v[0] if len(v) == 1 else tuple(v) for n, v in values.items()} | entries


def write_settings(name: str, settings: Mapping[str, Any]) -> str:
    """Return a component and its settings as text, which `read_settings` reads.

    >>> write_settings("csv", {"id": "segment, by document", "first_id": 1})
    'csv:"id=segment, by document",first_id=1'
    >>> write_settings("plain", {"scores": ("lm.npy", "tm.npy")}), write_settings("moses", {})
    ('plain:scores=lm.npy,tm.npy', 'moses')
    """
    parts = []
    for setting, value in settings.items():
        values = value if isinstance(value, tuple | list) else [value]
        texts = [str(of).lower() if isinstance(of, bool) else str(of) for of in values]
        parts += [f"{setting}={texts[0]}", *texts[1:]] if texts else []
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(parts)
    return f"{name}:{row.getvalue()}" if parts else name


def read_name(text: str) -> str:
    """Return the name of a component in a text that may have settings after it.

    >>> read_name("margin:gamma=2"), read_name("lm=domain.txt,order=5"), read_name("nuts")
    ('margin', 'lm', 'nuts')
    """
    return split("[:=]", text, maxsplit=1)[0]


def read_value(text: str) -> Any:
    """Return a boolean or a number where a text looks like one, else the text.

    >>> read_value("50"), read_value("2.5"), read_value("true"), read_value("lm")
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


def _describe_field(kind: Any) -> str:
    """Describe the values that a field takes.

    >>> _describe_field(Share), _describe_field(Count | None), _describe_field(Literal["a", "b"])
    ('a number > 0 and ≤ 1', 'an integer ≥ 1 or nothing', 'one of a, b')
    >>> _describe_field(Positive | Literal["all"])
    'a number > 0 or all'
    >>> _describe_field(tuple[str, ...] | str)
    'a list or a text'
    """
    if get_origin(kind) is Annotated:
        base, *metas = get_args(kind)
        bounds = [_describe_bounds(meta) for meta in metas if isinstance(meta, Meta)]
        return " ".join([_describe_field(base), *filter(None, bounds)])
    if get_origin(kind) is Literal:
        values = [str(value) for value in get_args(kind)]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    if get_origin(kind) is tuple:
        return "a list"
    if kind == dict[str, float]:
        return "numbers by name (SETTING.NAME=VALUE)"
    choices = get_args(kind) if get_origin(kind) not in (list, tuple, dict) else ()
    if choices:
        return " or ".join("nothing" if c is type(None) else _describe_field(c) for c in choices)
    return _NAMES.get(kind, str(kind).removeprefix("<class '").removesuffix("'>"))


def _describe_bounds(meta: Meta) -> str:
    bounds = {">": meta.gt, "≥": meta.ge, "<": meta.lt, "≤": meta.le}
    return " and ".join(f"{sign} {value:g}" for sign, value in bounds.items() if value is not None)


C = TypeVar("C", bound=Component)


class Registry(Mapping[str, type[C]], Generic[C]):
    """The components of one kind by name: built-in ones, those of plug-ins, and registered ones.

    Args:
        kind: a name of the kind, for messages: `sampler`.
        group: the group of entry points in which other packages offer theirs.
        base: the base class of all members.
        members: name -> `module:Class`. A name followed by a placeholder, `numpyro:NAME`, is that
            of a component with variants.
        fixed: name -> settings that belong to the name, where several members are of one class.

    >>> from bpa_ppl.samplers.sampler import SAMPLERS
    >>> sorted(SAMPLERS)[:3], SAMPLERS["imh"].__name__
    (['auto', 'blackjax', 'heuristic'], 'IndependenceMetropolis')
    """

    def __init__(
        self,
        kind: str,
        group: str,
        base: type[C],
        members: Mapping[str, str],
        fixed: Mapping[str, Mapping[str, Any]] | None = None,
    ):
        self.kind, self.group, self.base = kind, group, base
        self._fixed = fixed or {}
        self._listed = _group_by_name(EntryPoint(title, at, group) for title, at in members.items())
        #: Those registered in this process; worker processes need them registered again.
        self.registered: dict[str, type[C]] = {}
        self._left_out: set[str] = set()  # names of plug-ins that cannot be used

    def _members(self) -> dict[str, EntryPoint | type[C]]:
        """Return all members by name: those of this package come first, and replace plug-ins."""
        return {**self._listed, **find_plugins(self.group), **self._listed, **self.registered}

    def __getitem__(self, name: str) -> type[C]:
        """Return the class of that name.

        Raises:
            DataError: if it cannot be loaded, or is of another kind.
            UsageError: if there is none of that name; a `KeyError` would not name the others.
        """
        if name not in self:
            require_one_of(name, self.titles, self.kind)
        member = self._members()[name.partition(":")[0]]
        if isinstance(member, type):
            return member
        package = f" of the package {member.dist.name}" if member.dist else ""
        title = f"the {self.kind} {name}, {member.value}{package},"
        try:
            loaded = member.load()
        except Exception as error:  # any error of a third-party module on import
            raise DataError(f"{title} cannot be loaded: {error}", code="damaged") from error
        if problem := self._misfit(loaded):
            raise DataError(f"{title} {problem}", code="wrong-type")
        return cast("type[C]", loaded)

    def __contains__(self, name: object) -> bool:
        base, colon, _ = str(name).partition(":")
        return base in self._members() and (not colon or bool(self[base].variant))

    def __iter__(self) -> Iterator[str]:
        return iter(self._members())

    def __len__(self) -> int:
        return len(self._members())

    @property
    def titles(self) -> tuple[str, ...]:
        """The names as help shows them, such as `numpyro:NAME` for a component with variants."""
        members = self._members().items()
        return tuple(name if isinstance(one, type) else one.name for name, one in members)

    def version_of(self, name: str) -> str:
        """Return the version of the package that offers a component; empty if it has none."""
        package = getattr(self._members()[name], "dist", None)
        return str(package.version) if package else ""

    def load(self) -> Iterator[tuple[str, type[C]]]:
        """Yield names and classes, loading each of them.

        Entry points of other packages that cannot be used are left out, with one warning.

        Raises:
            DataError: if a member of this package cannot be loaded.

        >>> from bpa_ppl.gains.metric import GAINS
        >>> next(GAINS.load())[1].__name__
        'TER'
        """
        for name, member in self._members().items():
            try:
                yield name, self[name]
            except DataError as error:
                if not getattr(member, "dist", None):
                    raise
                if name not in self._left_out:
                    self._left_out.add(name)
                    warn_user(f"left out: {error}")

    def register(self, name: str, member: type[C]) -> None:
        """Add a component for this process.

        Raises:
            UsageError: if there is one of that name already, or it is of another kind.
        """
        if problem := self._misfit(member):
            raise UsageError(f"{name} {problem}", parameter="member", code="wrong-type")
        if name in self and self.registered.get(name) is not member:
            problem = f"there is a {self.kind} {name} already: choose another name"
            raise UsageError(problem, parameter="name", code="duplicate")
        self.registered[name] = member

    def resolve(self, chosen: Any, settings: Mapping[str, Any] | None = None) -> C:
        """Return a component with its settings.

        Args:
            chosen: its name, with settings after it or without, or the component itself.
            settings: of the component, if it is given by name; they replace those after the name.

        Raises:
            UsageError: if there is no such component, or a setting is invalid.

        >>> from bpa_ppl.gains.metric import GAINS
        >>> GAINS.resolve("ter", {"case_sensitive": True}).case_sensitive
        True
        >>> GAINS.resolve("chrf:word_order=2,beta=3")
        CHRF(char_order=6, word_order=2, beta=3)
        """
        if isinstance(chosen, str):
            name, written = self.parse(chosen)
            member, variant = self[name], name.partition(":")[2]
            fixed = {member.variant: variant} if variant else self._fixed.get(name, {})
            values = {**fixed, **written, **(settings or {})}
            if other := [n for n in fixed if values[n] != fixed[n]]:
                message = f"the {self.kind} {name} has {other[0]} {fixed[other[0]]}: leave it out"
                raise UsageError(message, parameter=other[0], code="conflict")
            return member.configured(f"{self.kind} {name}", values)
        if settings:
            name = next(iter(settings))
            message = f"the {self.kind} {chosen!r} has its settings already: leave out {name}"
            raise UsageError(message, parameter=name, code="conflict")
        if not isinstance(chosen, Component):
            names = ", ".join(self.titles)
            rule = f"a {self.kind} is a name ({names}) or a component with its settings"
            raise wrong_type(rule, chosen)
        return cast("C", chosen)

    def parse(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the name in a text, with that of a variant, and the settings after it.

        Raises:
            UsageError: if there is no such component, or the text has another form.

        >>> from bpa_ppl.features.source import FEATURES
        >>> FEATURES.parse("lm=domain.txt,order=5"), FEATURES.parse("length:ratio=true")
        (('lm', {'text': 'domain.txt', 'order': 5}), ('length', {'ratio': True}))
        """
        name = read_name(text)
        mark, written = text[len(name) : len(name) + 1], text[len(name) + 1 :]
        member = self[name]
        if mark == "=":
            if member.main is None:
                rule = f"settings of the {self.kind} {name} are written {name}:NAME=VALUE"
                raise wrong_value(rule, text, code="invalid-setting")
            written = f"{member.main}={written}"
        elif member.variant:
            variant, _, written = written.partition(",")
            name = f"{name}:{variant}" if variant else name
        return name, read_settings(written, f"the {self.kind} {name}")

    def restore(self, name: str, settings: Mapping[str, Any] | None = None) -> C:
        """Return a component that a posterior records, with its settings.

        Raises:
            UsageError: as `resolve`; for an unknown name it says how to register a component.

        >>> from bpa_ppl.gains.metric import GAINS
        >>> GAINS.restore("mine")
        Traceback (most recent call last):
        bpa_ppl.errors.UsageError: the posterior uses the metric mine, which is unknown here: ...
        """
        if name not in self:
            raise UsageError(
                f"the posterior uses the {self.kind} {name}, which is unknown here: install the "
                f"package that offers it (entry points {self.group}), or register its class "
                "before, with the method `register` of this registry",
                code="unknown-name",
            )
        return self.resolve(name, settings)

    def name_of(self, component: C) -> str:
        """Return the name under which a component is registered, else that of its class."""
        kind = type(component)
        value = f"{kind.__module__}:{kind.__qualname__}"
        for name, member in self._members().items():
            fixed = self._fixed.get(name, {})
            if any(getattr(component, n, None) != v for n, v in fixed.items()):
                continue
            if member is kind or getattr(member, "value", None) == value:
                return f"{name}:{getattr(component, kind.variant)}" if kind.variant else name
        return kind.__name__

    def _misfit(self, member: object) -> str | None:
        """Return why an object cannot be a member; None if it can."""
        if isinstance(member, type) and issubclass(member, self.base):
            return None
        return f"is {member!r}, not a subclass of {self.base.__module__}.{self.base.__name__}"


class Setting(NamedTuple):
    """What is known of a keyword argument apart from its type and its description.

    Attributes:
        box: the title of the box of options that has it; empty for the first one.
        registry: of the components that it names.
        several: whether it is a collection, and its option has several values.
        default: its value if it is left out.
        recorded: whether a posterior records it, since the draws depend on it.
        form: how the option's values are written, if they are not words or numbers.
        option: the name of its option, if it is another one; None if it has none.
    """

    box: str = ""
    registry: Registry[Any] | None = None
    several: bool = False
    default: Any = None
    recorded: bool = True
    form: str = ""
    option: str | None = ""


def declared_settings(structure: type) -> dict[str, Setting]:
    """Return what the annotations of a `TypedDict` declare of each argument, by name."""
    kinds = structure.__annotations__.items()
    return {name: annotation.__metadata__[0] for name, annotation in kinds}


def complete_settings(
    function: str, declared: Mapping[str, Setting], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return keyword arguments of a function together with the defaults of the others.

    Raises:
        TypeError: if the function has no such argument.

    >>> complete_settings("draw", {"seed": Setting(default=0)}, {"sed": 1})
    Traceback (most recent call last):
    TypeError: draw() got an unexpected keyword argument 'sed' (did you mean seed?)
    """
    for name in arguments:
        if name not in declared:
            problem = f"{function}() got an unexpected keyword argument {name!r}"
            raise TypeError(problem + suggest_name(name, declared))
    return {name: setting.default for name, setting in declared.items()} | {**arguments}


@cache
def find_plugins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of other packages by name; they are searched once."""
    return _group_by_name(entry_points(group=group))


def _group_by_name(points: Iterable[EntryPoint]) -> dict[str, EntryPoint]:
    """Return entry points by name, without the placeholder of a variant."""
    return {read_name(point.name): point for point in points}

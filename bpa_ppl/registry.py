"""Registries of everything that is chosen by name: samplers, metrics, formats, and so on.

A member is a class, a `Component` with settings, given as `module:Class` and imported on first use.
It is chosen by a text, in Python, on the command line and in study files alike: its name, with
settings after a colon, `nuts:warmup=500,chains=2`. A component with variants is named with one of
them, `numpyro:BarkerMH,step_size=0.5`; it is registered with a placeholder, `numpyro:NAME`, for
help. The main setting of a component may follow an equals sign, `lm=domain.txt,order=5`.
Another package can offer one in its metadata,

    [project.entry-points."bpa_ppl.samplers"]
    mine = "my_package.sampler:Mine"

and a program can register one for its own process: `SAMPLERS.register("mine", Mine)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from bpa_ppl._runtime.arguments import one_of
from bpa_ppl.component import Component, name_in, settings_in
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.notes import warn_user

C = TypeVar("C", bound=Component)


class Registry(Mapping[str, type[C]], Generic[C]):
    """The components of one kind by name: built-in ones, then those of plug-ins.

    Args:
        kind: a name of the kind, for messages: `sampler`.
        group: the group of entry points in which other packages offer theirs.
        base: the base class of all members.
        members: name -> `module:Class`. A name followed by a placeholder, `numpyro:NAME`, is that
            of a component with variants.

    >>> from bpa_ppl.sampling.base import SAMPLERS
    >>> sorted(SAMPLERS)[:3], SAMPLERS["imh"].__name__
    (['auto', 'blackjax', 'heuristic'], 'IndependenceMetropolis')
    """

    def __init__(self, kind: str, group: str, base: type[C], members: Mapping[str, str]):
        self.kind, self.group, self.base = kind, group, base
        #: The members as help names them: those with variants have a placeholder.
        self._titles = {title.partition(":")[0]: title for title in members}
        #: Those registered in this process; worker processes need them registered again.
        self.registered: dict[str, type[C]] = {}
        self._members: dict[str, EntryPoint | type[C]] = {
            name: EntryPoint(name, members[title], group) for name, title in self._titles.items()
        }
        self._left_out: set[str] = set()  # names of plug-ins that cannot be used
        self._searched = False

    def __getitem__(self, name: str) -> type[C]:
        """Return the class of that name.

        Raises:
            DataError: if it cannot be loaded, or is of another kind.
            UsageError: if there is none of that name; a `KeyError` would not name the others.
        """
        if name not in self:
            one_of(name, self.titles, self.kind)
        name = name if name in self._members else name_in(name)
        member = self._members[name]
        if not isinstance(member, type):
            package = f" of the package {member.dist.name}" if member.dist else ""
            title = f"the {self.kind} {name}, {member.value}{package},"
            try:
                loaded = member.load()
            except Exception as error:  # any error of a third-party module on import
                raise DataError(f"{title} cannot be loaded: {error}", code="damaged") from error
            if problem := self._misfit(loaded):
                raise DataError(f"{title} {problem}", code="wrong-type")
            member = self._members[name] = loaded
        return member

    def __contains__(self, name: object) -> bool:
        if name in self._members or name in tuple(self):
            return True
        base, colon, _ = str(name).partition(":")
        return bool(colon) and base in self._members and bool(self[base].variant)

    def __iter__(self) -> Iterator[str]:
        if not self._searched:
            self._searched = True
            for point in entry_points(group=self.group):
                name = point.name.partition(":")[0]
                if name not in self._members:  # members of this package stay
                    self._members[name], self._titles[name] = point, point.name
        return iter(self._members)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def titles(self) -> tuple[str, ...]:
        """The names as help shows them, such as `numpyro:NAME` for a component with variants."""
        return tuple(self._titles.get(name, name) for name in self)

    def loaded(self) -> Iterator[tuple[str, type[C]]]:
        """Yield names and classes, loading each of them.

        Entry points of other packages that cannot be used are left out, with one warning.

        Raises:
            DataError: if a member of this package cannot be loaded.

        >>> from bpa_ppl.quality.base import METRICS
        >>> next(METRICS.loaded())[1].__name__
        'TER'
        """
        for name in self:
            try:
                yield name, self[name]
            except DataError as error:
                if not getattr(self._members[name], "dist", None):
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
        if name in self and self._members.get(name) is not member:
            problem = f"there is a {self.kind} {name} already: choose another name"
            raise UsageError(problem, parameter="name", code="duplicate")
        self._members[name] = self.registered[name] = member

    def resolve(self, chosen: Any, settings: Mapping[str, Any] | None = None) -> C:
        """Return a component with its settings.

        Args:
            chosen: its name, with settings after it or without, or the component itself.
            settings: of the component, if it is given by name; they replace those after the name.

        Raises:
            UsageError: if there is no such component, or a setting is invalid.

        >>> from bpa_ppl.quality.base import METRICS
        >>> METRICS.resolve("ter", {"case_sensitive": True}).case_sensitive
        True
        >>> METRICS.resolve("chrf:word_order=2,beta=3")
        CHRF(char_order=6, word_order=2, beta=3)
        """
        if isinstance(chosen, str):
            name, written = self.parsed(chosen)
            member, variant = self[name], name.partition(":")[2]
            fixed = {member.variant: variant} if variant else {}
            values = {**written, **(settings or {}), **fixed}
            return member.configured(f"{self.kind} {name}", values)
        if settings:
            name = next(iter(settings))
            problem = f"the {self.kind} {chosen!r} has its settings already: leave {name} out"
            raise UsageError(problem, parameter=name, code="conflict")
        if not isinstance(chosen, Component):
            names = ", ".join(self.titles)
            rule = f"a {self.kind} is a name ({names}) or a component with its settings"
            raise UsageError(f"{rule}, not {chosen!r}", code="wrong-type")
        return cast("C", chosen)

    def parsed(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the name in a text, with that of a variant, and the settings after it.

        Raises:
            UsageError: if there is no such component, or the text has another form.

        >>> from bpa_ppl.features.base import FEATURES
        >>> FEATURES.parsed("lm=domain.txt,order=5"), FEATURES.parsed("length:ratio=true")
        (('lm', {'text': 'domain.txt', 'order': 5}), ('length', {'ratio': True}))
        """
        name = name_in(text)
        mark, written = text[len(name) : len(name) + 1], text[len(name) + 1 :]
        member = self[name]
        if mark == "=":
            if member.main is None:
                problem = f"settings of the {self.kind} {name} are written {name}:NAME=VALUE"
                raise UsageError(f"{problem}, not {quoted(text)}", code="invalid-setting")
            written = f"{member.main}={written}"
        elif member.variant:
            variant, _, written = written.partition(",")
            name = f"{name}:{variant}" if variant else name
        return name, settings_in(written, f"the {self.kind} {name}")

    def recorded(self, name: str, settings: Mapping[str, Any] | None = None) -> C:
        """Return a component that a posterior records, with its settings.

        Raises:
            UsageError: as `resolve`; for an unknown name it says how to register a component.

        >>> from bpa_ppl.quality.base import METRICS
        >>> METRICS.recorded("mine")
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
        # Entry points are searched, which takes time, only for components of other packages.
        for name in chain(tuple(self._members), self):
            member = self._members[name]
            if member is kind or getattr(member, "value", None) == value:
                return f"{name}:{getattr(component, kind.variant)}" if kind.variant else name
        return kind.__name__

    def _misfit(self, member: object) -> str | None:
        """Return why an object cannot be a member; None if it can."""
        if isinstance(member, type) and issubclass(member, self.base):
            return None
        return f"is {member!r}, not a subclass of {self.base.__module__}.{self.base.__name__}"

"""Roles of columns: which ones are features, as the user names them.

Decoder formats define their features themselves; a table or a record has those that are named, or
those in its object `features` (columns `features.NAME`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from bpa_ppl._runtime.arrays import is_number
from bpa_ppl.errors import DataError, quote, suggest_name, wrong_type
from bpa_ppl.lists.labels import matches, with_labels

#: The pattern of all columns of numbers that have no other role.
ALL = "*"
#: Prefix of the columns that the file itself declares as features.
OF_FEATURES = "features."
_WILD = re.compile(r"[*?]|\[[^\d\]]")  # TM0[1] is a name

#: A value in place of a missing one: of every feature, or by the name of each.
Missing = float | Mapping[str, float]


class Patterns(NamedTuple):
    """Names, labels and patterns of columns.

    Attributes:
        names: names and labels.
        wild: patterns with wildcards.

    >>> patterns = Patterns.of(["TM0", "judge_*"])
    >>> patterns.fit("TM0[1]"), patterns.fit("judge_a"), patterns.fit("lm")
    (True, True, False)
    """

    names: frozenset[str]
    wild: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Patterns:
        """Return the patterns that a user gave."""
        listed = list(patterns)
        return cls(frozenset(listed), tuple(filter(is_pattern, listed)))

    def fit(self, name: str) -> bool:
        """Return whether a column has one of the names, labels and patterns."""
        if self.names and matches(name, self.names):
            return True
        return any(fnmatchcase(name, pattern) for pattern in self.wild)


@dataclass(frozen=True)
class Roles:
    """The columns that the user named.

    Attributes:
        features: names, labels and patterns (`judge_*`) of the columns that are features; `*` is
            every column of numbers without another role. None keeps the features that the file, or
            its format, defines.
        exclude: names, labels and patterns of columns that are not features; `*` is all.
        numbers: further columns of numbers, such as the gain, which no pattern makes features.
        missing: a value in place of a missing one.
        optional: whether the features are those of a posterior: they are read besides those that
            the file defines, and may be absent.
        all_numbers: whether the format defines all columns of numbers as features.

    >>> roles = Roles(("lm", "judge_*"), exclude=("judge_b",))
    >>> [roles.is_feature(name) for name in ("lm", "judge_a", "judge_b", "year")]
    [True, True, False, False]
    """

    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    missing: Missing | None = None
    optional: bool = False
    all_numbers: bool = False

    def is_feature(self, column: str) -> bool | None:
        """Return whether a column is a feature; None if it is one as a column of numbers.

        >>> Roles(("*",)).is_feature("lm"), Roles().is_feature("features.lm")
        (None, True)
        >>> Roles(("*",), numbers=("human",)).is_feature("human")
        False
        """
        name = column.removeprefix(OF_FEATURES)
        if self._excluded.fit(name):
            return False
        chosen = self._chosen
        if chosen is None or (self.optional and not chosen.fit(name)):
            is_defined, of_all = name != column, self.all_numbers
        else:
            is_defined, of_all = chosen.fit(name), ALL in (self.features or ())
            if name in self.numbers:
                return False
        return True if is_defined else None if of_all else False

    def changed(
        self, exclude: Iterable[str] = (), missing: Mapping[str, float] | None = None
    ) -> Roles:
        """Return the same with more columns that are no features, or more values by name."""
        known = self.missing if isinstance(self.missing, Mapping) else {}
        values = {**known, **missing} if missing else self.missing
        return replace(self, exclude=(*self.exclude, *exclude), missing=values)

    @cached_property
    def _chosen(self) -> Patterns | None:
        names = self.features  # `*` is all columns of numbers
        return None if names is None else Patterns.of(name for name in names if name != ALL)

    @cached_property
    def _excluded(self) -> Patterns:
        return Patterns.of(self.exclude)


#: Names, labels and patterns of features; or all roles of columns, as commands give them.
AnyFeatures = str | Iterable[str] | Roles | None


def is_pattern(name: str) -> bool:
    """Return whether a name has wildcards.

    >>> is_pattern("judge_*"), is_pattern("TM0[1]")
    (True, False)
    """
    return _WILD.search(name) is not None


def require_columns(
    patterns: Iterable[str],
    columns: Mapping[str, Any],
    describe: Callable[[Mapping[str, Any]], str],
    origin: str | None,
    parameter: str,
) -> None:
    """Refuse names, labels and patterns of a parameter that fit none of some columns.

    Args:
        patterns: that the user gave.
        columns: by name.
        describe: returns the columns of numbers with their ranges, for the message.
        origin: the file of the columns.
        parameter: for the error.

    Raises:
        DataError: if one fits none; `*` may.

    >>> require_columns(["lm", "by_*"], {"lm": [1.0]}, lambda _: "there is lm", None, "features")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no column by_*: there is lm
    """
    names = {*with_labels(columns), ALL}
    for pattern in patterns:
        fits = pattern in names or any(fnmatchcase(name, pattern) for name in columns)
        if not fits:
            there = describe(columns)
            # A list of Python has one name in each text.
            shown = f"{quote(pattern)}, which is one name" if "," in pattern else pattern
            message = f"no column {shown}{suggest_name(pattern, columns)}: {there}"
            raise DataError(message, origin, parameter=parameter, code="missing-column")


def make_roles(
    features: AnyFeatures = None,
    exclude: str | Iterable[str] | None = None,
    missing: Missing | None = None,
) -> Roles:
    """Return roles as a user gives them.

    Args:
        features: as for `read_nbest`, like the others; `Roles` keep what the others leave open.
        exclude: columns that are not features.
        missing: a value, or one for each feature.

    Raises:
        UsageError: if a name is not a text, or a value not a number.

    >>> roles = make_roles("judge_*", missing=0.5)
    >>> roles.features, roles.exclude, roles.missing
    (('judge_*',), (), 0.5)
    """
    values = missing.values() if isinstance(missing, Mapping) else [missing]
    if missing is not None and not all(map(is_number, values)):
        raise wrong_type("missing must be a number, or one for each feature", missing, "missing")
    if isinstance(features, Roles):
        excluded = (*features.exclude, *to_patterns(exclude or (), "exclude"))
        missing = features.missing if missing is None else missing
        return replace(features, exclude=excluded, missing=missing)
    chosen = None if features is None else to_patterns(features, "features")
    return Roles(chosen, to_patterns(exclude or (), "exclude"), missing=missing)


def to_patterns(names: Any, parameter: str) -> tuple[str, ...]:
    """Return names of columns as a tuple; a single text is one name.

    Raises:
        UsageError: if they are anything else.

    >>> to_patterns("lm", "features"), to_patterns(["lm", "qe"], "features")
    (('lm',), ('lm', 'qe'))
    """
    values: Any = (names,) if isinstance(names, str) else names
    listed = tuple(values) if isinstance(values, Iterable) else (None,)
    if not all(isinstance(name, str) for name in listed):
        raise wrong_type(f"{parameter} is a list of names", names, parameter)
    return listed

"""Indicators: a column of categories, such as the system, as features of 0 and 1."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import is_missing
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, bad_value, list_names, locate, suggest_name
from bpa_ppl.features.source import Features, FeatureSource, missing_need
from bpa_ppl.lists.nbest import NBest, describe_candidate, find_feature


class Indicators(FeatureSource, frozen=True):
    """One feature per value, `column=value`: 1 if a candidate has the value, else 0.

    Attributes:
        column: a column of texts, integers, or true and false: an extra of the candidates, or a
            feature of integers.
        values: the values that get a feature; by default all values of the lists, sorted.
    """

    main: ClassVar[str | None] = "column"
    column: str
    values: tuple[str, ...] = ()

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({self.column})

    def fitted(self, lists: NBest) -> Indicators:
        """Return indicators of the values in adaptation lists.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"]], [[[0.0]] * 2], ["LM0"])
        >>> Indicators(column="system").fitted(lists.with_extras(system=["Y", "X"])).values
        ('X', 'Y')
        """
        return Indicators(
            column=self.column, values=tuple(sorted(set(self._read_categories(lists))))
        )

    def columns(self, lists: NBest) -> Features:
        """Return the features; a value without a feature has 0 in all of them, with a warning.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"]], [[[0.0]] * 2], ["LM0"])
        >>> columns = Indicators(column="system").columns(lists.with_extras(system=["Y", "X"]))
        >>> {name: column.tolist() for name, column in columns.items()}
        {'system=X': [0.0, 1.0], 'system=Y': [1.0, 0.0]}
        """
        texts = np.array(self._read_categories(lists), dtype=object)
        values = self.values or tuple(sorted(set(texts.tolist())))
        for value in sorted(set(texts.tolist()) - set(values)):
            absent = f"{self.column} {value} did not occur in the adaptation lists"
            warn_user(f"{locate(lists.origin)}{absent}: it has no weight of its own")
        return {f"{self.column}={value}": (texts == value).astype(np.float64) for value in values}

    def _read_categories(self, lists: NBest) -> list[str]:
        names = lists.feature_names
        if self.column not in (*lists.extras, *names):
            present = [*lists.extras, *names]
            message = (
                f"no column {self.column}{suggest_name(self.column, present)}: the columns are "
                f"{list_names(present) or 'none'}"
            )
            raise DataError(message, lists.origin, code="missing-column")
        values: Any = lists.extras.get(self.column)
        if values is None:
            values = find_feature(lists, self.column)
        texts = []
        for row, value in enumerate(values):
            if is_missing(value) or value != value:
                raise missing_need(lists, self, self.column, row)
            text = _to_category(value)
            if text is None:
                where = f"{self.column} of {describe_candidate(lists, row)}"
                kinds, code = "a text, an integer, true or false", "wrong-type"
                raise bad_value(where, value, kinds, lists.origin, remedy="write texts", code=code)
            texts.append(text)
        return texts


def _to_category(value: Any) -> str | None:
    """Return a category as a text; None for a value of another type."""
    if isinstance(value, np.floating) and value.is_integer():  # as features hold integers
        return str(int(value))
    return str(value) if isinstance(value, str | Integral | np.bool_) else None

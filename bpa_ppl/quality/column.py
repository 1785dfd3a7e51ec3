"""Column: a score that the lists bring along, such as COMET or a human judgement, as a metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.quality.base import Averaged, Lists, Metric, References
from bpa_ppl.registry import METRICS


class Column(Averaged, frozen=True):
    """A column of the lists: what a hypothesis is worth is the value that stands there.

    Args:
        column: the name of a feature, or of an extra of numbers.
        negative: whether less is better, as of TER.

    >>> Column(column="comet").key, Column(column="ter", negative=True).key
    ('comet', '-ter')
    """

    column: str
    negative: bool = False

    needs = frozenset({"columns"})
    kept = False

    @property
    def key(self) -> str:  # type: ignore[override]
        """The name by which the column is asked for."""
        return f"-{self.column}" if self.negative else self.column

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]
        """Whether less is better."""
        return self.negative

    @property
    def title(self) -> str:
        """The name of the column."""
        return self.column

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return that it is a column of the lists, and which."""
        return f"column:{self.column}|better:{'lower' if self.negative else 'higher'}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        only_best: bool,
        columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Float64:
        """Return the values of the column, one list after the other."""
        return np.asarray((columns or {})[self.column], np.float64)


def named_column(name: str, nbest: NBest | None = None) -> Metric:
    """Return the metric of a column by its name, or by `-NAME` where less is better.

    Args:
        name: of the column.
        nbest: the lists that have it; None has no columns.

    Raises:
        UsageError: if they do not; the message names metrics and columns.

    >>> lists = NBest.from_lists([["a", "b"]], [[[0.5], [0.7]]], ["comet"])
    >>> named_column("-comet", lists)
    Column(column='comet', negative=True)
    """
    there = () if nbest is None else numeric_columns(nbest)
    if name in there:
        return Column(column=name)
    if name.startswith("-") and name[1:] in there:
        return Column(column=name[1:], negative=True)
    known = ", ".join(metric for metric in METRICS if metric != "column")
    columns = f", or a column of the lists: {', '.join(there)}" if there else ""
    raise UsageError(f"unknown metric {name!r}: choose one of {known}{columns}")


def by_name(name: str) -> Metric:
    """Return a metric by its name, where no lists are at hand: what is not registered is a column.

    >>> by_name("-ter"), by_name("ter").key
    (Column(column='ter', negative=True), 'ter')
    """
    if name in METRICS:
        return METRICS.resolve(name)
    return Column(column=name.removeprefix("-"), negative=name.startswith("-"))


def numeric_columns(nbest: NBest) -> tuple[str, ...]:
    """Return the names of the features, then of the extras that hold one number a hypothesis.

    >>> lists = NBest.from_lists([["a"]], [[[1.0]]], ["LM0"], extras={"mqm": [[-5.0]]})
    >>> numeric_columns(lists.with_extras(system=["A"]))
    ('LM0', 'mqm')
    """
    extras = (name for name, values in nbest.extras.items() if _numbers(values) is not None)
    return (*nbest.feature_names, *extras)


def column_of(nbest: NBest, name: str) -> Float64:
    """Return the values of a feature or an extra, (hypotheses,).

    Raises:
        DataError: if there is no such column, or one of its values is no finite number.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0], [0.5]]], ["LM0"])
    >>> column_of(lists, "LM0").tolist()
    [1.0, 0.5]
    """
    if name in nbest.feature_names:
        return nbest.features[:, nbest.feature_names.index(name)].astype(np.float64)
    values = _numbers(nbest.extras[name]) if name in nbest.extras else None
    if values is None:
        there = ", ".join(numeric_columns(nbest)) or "none"
        raise DataError(
            f"the lists have no column of numbers {name}: they have {there}", nbest.origin
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        sentence = int(np.searchsorted(nbest.offsets, wrong[0], side="right")) - 1
        raise DataError(
            f"{name} of hypothesis {wrong[0] - nbest.offsets[sentence]} of sentence "
            f"{nbest.sentence_ids[sentence]} is {values[wrong[0]]}, not a finite number: give "
            "each hypothesis a value, or leave the sentence out",
            nbest.origin,
        )
    return values


def set_aside(nbest: NBest, columns: Iterable[str]) -> NBest:
    """Return the lists with some of their features as extras: known, but part of no score.

    What is not among the features stays as it is.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0, 0.5], [2.0, 0.7]]], ["LM0", "comet"])
    >>> apart = set_aside(lists, ["comet"])
    >>> apart.feature_names, apart.extras["comet"].tolist() == [0.5, np.float32(0.7)]
    (('LM0',), True)
    """
    out = [name for name in columns if name in nbest.feature_names]
    if not out:
        return nbest
    kept = [k for k, name in enumerate(nbest.feature_names) if name not in out]
    moved = {name: nbest.features[:, nbest.feature_names.index(name)] for name in out}
    return replace(
        nbest,
        features=nbest.features[:, kept],
        feature_names=tuple(nbest.feature_names[k] for k in kept),
        extras={**nbest.extras, **moved},
    )


def _numbers(values: Any) -> Float64 | None:
    """Return a column as numbers; None where it holds anything else."""
    if isinstance(values, np.ndarray):
        sound = values.ndim == 1 and values.dtype.kind in "iuf"
    else:
        sound = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return np.asarray(values, np.float64) if sound else None

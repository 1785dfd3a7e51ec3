"""Weights: the named λ of a log-linear model, matched to n-best lists by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.labels import matches
from bpa_ppl.nbest import Float64, NBest

#: Moses never tunes the penalty of unknown words: every tool of it leaves this weight alone.
UNTUNED = ("UnknownWordPenalty0",)


class Weights(Mapping[str, float]):
    """An immutable mapping from feature name to weight, in a fixed order.

    >>> canonical = Weights({"LM0": 0.5, "WordPenalty0": -1.5})
    >>> canonical["LM0"], canonical.normalised()["WordPenalty0"]
    (0.5, -0.75)
    """

    def __init__(
        self,
        values: Mapping[str, float] | Iterable[tuple[str, float]],
        origin: str = "<memory>",
    ):
        pairs = list(values.items() if isinstance(values, Mapping) else values)
        self._values = {name: float(value) for name, value in pairs}
        self.origin = origin
        if len(self._values) != len(pairs):
            raise DataError("two weights have the same name", origin)
        bad = [name for name, value in self._values.items() if not np.isfinite(value)]
        if bad:
            raise DataError(f"the weight of {bad[0]} is not a finite number", origin)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name!r}: {value:g}" for name, value in self.items())
        return f"Weights({{{inside}}})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order."""
        return tuple(self._values)

    @property
    def values_array(self) -> Float64:
        """(features,) float64, the weights in the order of `names`."""
        return np.array(list(self._values.values()), dtype=np.float64)

    def updated(self, values: Mapping[str, float]) -> Weights:
        """Return these weights with some values replaced or added."""
        return Weights({**self._values, **values}, self.origin)

    def normalised(self, names: Iterable[str] | None = None) -> Weights:
        """Return the weights divided by Σ|λ| over `names` (default: all); the others stay."""
        chosen = self.names if names is None else tuple(names)
        norm = sum(abs(self[name]) for name in chosen)
        if norm == 0:
            raise DataError("weights that are all zero cannot be normalised", self.origin)
        return self.updated({name: self[name] / norm for name in chosen})


class Match(NamedTuple):
    """Weights laid beside the columns of an n-best table.

    Attributes:
        names: the feature names of the table.
        values: (features,) float64, the weight of each column.
        free: (features,) bool, False where the weight is held at its canonical value.
    """

    names: tuple[str, ...]
    values: Float64
    free: npt.NDArray[np.bool_]

    @property
    def free_names(self) -> tuple[str, ...]:
        """The names of the features whose weights are adapted."""
        return tuple(n for n, free in zip(self.names, self.free, strict=True) if free)

    @property
    def fixed_names(self) -> tuple[str, ...]:
        """The names of the features held at their canonical weight."""
        return tuple(n for n, free in zip(self.names, self.free, strict=True) if not free)

    @property
    def free_values(self) -> Float64:
        """(free,) float64, the canonical weights of the free features."""
        return self.values[self.free]

    @property
    def fixed_values(self) -> Float64:
        """(fixed,) float64, the weights of the fixed features."""
        return self.values[~self.free]


def match(
    weights: Mapping[str, float],
    nbest: NBest,
    *,
    fixed: Iterable[str] | None = None,
    defaults: Mapping[str, float] | None = None,
) -> Match:
    """Lay weights beside the features of an n-best table, by name.

    A weight whose feature the lists do not print is left out with a warning.

    Args:
        weights: the canonical weights.
        nbest: the lists.
        fixed: names or labels of features held at their canonical weight; None holds
            `UnknownWordPenalty0`, as Moses does, and an empty sequence holds none.
        defaults: values for features that have no weight.

    Raises:
        DataError: if a feature has no weight, or a name in `fixed` is no feature.
    """
    origin = getattr(weights, "origin", "the weights")
    known = {**(defaults or {}), **weights}
    missing = [name for name in nbest.feature_names if name not in known]
    if missing:
        raise DataError(
            f"no weight for {', '.join(missing)}, which {nbest.origin} prints: add it to the "
            "weights, or give it a value (default weights)",
            origin,
        )
    hidden = [name for name in weights if name not in nbest.feature_names]
    if hidden:
        warnings.warn(
            f"{origin}: {', '.join(hidden)} left out, because {nbest.origin} does not print it",
            BpaWarning,
            stacklevel=2,
        )
    return Match(
        names=nbest.feature_names,
        values=np.array([known[name] for name in nbest.feature_names], dtype=np.float64),
        free=_free(nbest, fixed),
    )


def _free(nbest: NBest, fixed: Iterable[str] | None) -> npt.NDArray[np.bool_]:
    held = list(UNTUNED if fixed is None else fixed)
    for name in held if fixed is not None else ():
        if not any(matches(feature, [name]) for feature in nbest.feature_names):
            raise DataError(
                f"cannot hold {name}, which is no feature of the lists: they have "
                + ", ".join(nbest.feature_names),
                nbest.origin,
            )
    free = np.array([not matches(name, held) for name in nbest.feature_names], dtype=bool)
    if not free.any():
        raise DataError("every feature is held fixed: none is left to adapt", nbest.origin)
    return free


def check_totals(nbest: NBest, values: npt.ArrayLike, tolerance: float = 1e-3) -> None:
    """Warn if λ·h does not agree with the decoder's totals: the weights are then the wrong ones.

    Only differences within a list are compared, so that a term that is constant over a list and
    not printed does no harm.

    Args:
        nbest: lists, with totals or without (then nothing is checked).
        values: (features,) weights in the order of the columns.
        tolerance: allowed error, relative to the spread of the totals of a list plus their
            printed precision.
    """
    if nbest.totals is None or not len(nbest):
        return
    ours = nbest.scores(values)
    theirs = nbest.totals.astype(np.float64)
    first = np.repeat(nbest.offsets[:-1], nbest.sizes)
    error = np.abs((ours - ours[first]) - (theirs - theirs[first]))
    allowed = tolerance * (np.abs(theirs - theirs[first]) + np.abs(theirs)) + 1e-4
    wrong = float(np.mean(error > allowed))
    if wrong > 0.05:
        warnings.warn(
            f"the weights do not reproduce the totals of {100 * wrong:.0f}% of the hypotheses of "
            f"{nbest.origin}: are they the weights that it was decoded with?",
            BpaWarning,
            stacklevel=2,
        )

"""What a source of features is: a component that computes columns of n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.component import Component
from bpa_ppl.nbest import Float32, NBest
from bpa_ppl.registry import FEATURES

#: Columns by name, each (hypotheses,), or k names and a (hypotheses, k) array.
Features = Mapping[str, npt.ArrayLike] | tuple[Sequence[str], npt.ArrayLike]


class FeatureSource(Component, frozen=True):
    """Computes features of hypotheses; its fields are its settings.

    A new one is a subclass in a module of its own and a line in `bpa_ppl.registry.FEATURES`.
    """

    @property
    def needs(self) -> frozenset[str]:
        """The columns of the lists that it reads: `sources`, `references`, or names of extras."""
        return frozenset()

    def columns(self, nbest: NBest) -> Features:
        """Return the features of all hypotheses, which have what the source needs.

        What depends on the text alone is best computed with `of_each_string`.
        """
        raise NotImplementedError

    def made_from(self) -> dict[str, Any]:
        """Return all that is needed to compute the same features again: name and settings."""
        return {"source": FEATURES.name_of(self), **self.settings()}


def of_each_string(nbest: NBest, function: Callable[[str], float]) -> Float32:
    """Return a function of the text of each hypothesis, computed once for each distinct text.

    Returns:
        (hypotheses,) float32.

    >>> lists = NBest.from_lists([["a b", "a", "a b"]], [[[0.0]] * 3], ["LM0"])
    >>> of_each_string(lists, len).tolist()
    [3.0, 1.0, 3.0]
    """
    values = np.fromiter(map(function, nbest.strings), dtype=np.float32, count=len(nbest.strings))
    return values[nbest.string_index]

"""What a source of features is: a component that computes columns of n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from bpa_ppl import columns as cols
from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float32, NBest
from bpa_ppl.registry import FEATURES

#: What stands for a file where a source learns from the adaptation sentences themselves.
SELF = "self"
#: Columns by name, each (hypotheses,), or k names and a (hypotheses, k) array.
Features = Mapping[str, npt.ArrayLike] | tuple[Sequence[str], npt.ArrayLike]


class FeatureSource(Component, frozen=True):
    """Computes features of hypotheses; its fields are its settings.

    A new one is a subclass in a module of its own and a line in `bpa_ppl.registry.FEATURES`.

    Attributes:
        main: the setting that stands alone after the name: `--add lm=domain.txt`.
        paths: the settings that name files; what those hold is part of the recipe of a posterior.
        learned: the settings that hold what was learned, or texts that are carried along: `fitted`
            sets them, a posterior stores them, and then no file is read.

    >>> source = FEATURES.resolve("lm", {"text": "domain.txt", "order": 5})
    >>> source.label, source.files(), source.moved(["texts/domain.txt"]).files()
    ('lm', ('domain.txt',), ('texts/domain.txt',))
    """

    main: ClassVar[str | None] = None
    paths: ClassVar[tuple[str, ...]] = ()
    learned: ClassVar[tuple[str, ...]] = ()

    @property
    def needs(self) -> frozenset[str]:
        """The columns of the lists that it reads: `sources`, `references`, or names of extras."""
        return frozenset()

    def columns(self, nbest: NBest) -> Features:
        """Return the features of all hypotheses, which have what the source needs.

        What depends on the text alone is best computed with `of_each_string`.
        """
        raise NotImplementedError

    def opened(self) -> Callable[[NBest], Features]:
        """Return what computes the columns of one table after the other.

        A source that reads or trains something before it can begin does it here, once.
        """
        return self.columns

    def fitted(self, nbest: NBest) -> FeatureSource:
        """Return the source as it serves new lists, with what it learns from adaptation lists."""
        return self

    def cross_fitted_columns(self, nbest: NBest) -> Features:
        """Return the features of the very lists that it was `fitted` to.

        What was learned from a sentence must not judge that sentence: a source that learns leaves
        it out here (cross-fitting).
        """
        return self.columns(nbest)

    @property
    def label(self) -> str:
        """What it is called: the start of the names of its columns, or its name."""
        return str(getattr(self, "name", "")) or FEATURES.name_of(self)

    @property
    def holds(self) -> bool:
        """Whether it holds all that it has learned, so that it reads no file."""
        return any(getattr(self, name) for name in self.learned)

    @property
    def unlearned(self) -> bool:
        """Whether it learns from the adaptation sentences, and has not yet."""
        return self.main is not None and getattr(self, self.main) == SELF and not self.holds

    def files(self) -> tuple[str, ...]:
        """Return the paths of the files that it reads, in the order of its settings."""
        return () if self.holds else tuple(p for p in self._paths() if p != SELF)

    def moved(self, paths: Sequence[str]) -> FeatureSource:
        """Return the same source with its files at other places.

        Raises:
            UsageError: if there are not as many as it reads.
        """
        if len(paths) != len(self.files()):
            raise UsageError(
                f"{self.label} was made from {', '.join(self.files()) or 'no file'}: say where "
                f"{cols.counted(len(self.files()), 'file')} lies, not {', '.join(paths)}"
            )
        if self.holds:
            return self
        left = iter(paths)
        given = {name: getattr(self, name) for name in self.paths}
        there = {
            name: next(left) if isinstance(one, str) else tuple(next(left) for _ in one)
            for name, one in given.items()
            if one and one != SELF
        }
        return msgspec.structs.replace(self, **there)

    def recipe(self) -> dict[str, Any]:
        """Return all that is needed to compute the same features again: name and settings.

        What was learned is left out: a posterior stores it apart.
        """
        settings = {n: v for n, v in self.settings().items() if n not in self.learned}
        return {"source": FEATURES.name_of(self), **settings}

    def _paths(self) -> list[str]:
        found = (getattr(self, name) or () for name in self.paths)
        return [path for one in found for path in ((one,) if isinstance(one, str) else one)]


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

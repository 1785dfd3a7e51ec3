"""More features of n-best lists, each from a source of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.features.base import FeatureSource, of_each_string
from bpa_ppl.nbest import Float32, NBest
from bpa_ppl.registry import FEATURES

__all__ = ["FeatureSource", "add_features", "of_each_string"]

#: The name of a source, the source with its settings, or several of either.
AnySource = str | FeatureSource


def add_features(nbest: NBest, sources: AnySource | Iterable[AnySource]) -> NBest:
    """Return the same lists with more features, after those that are there.

    Args:
        nbest: the lists.
        sources: what computes the features: a name, such as `length`, or a component with its
            settings, or several of them.

    Raises:
        DataError: if the lists lack what a source needs, or have a feature of that name already.
        UsageError: if there is no such source.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
    >>> add_features(lists, "length").feature_names
    ('LM0', 'LengthWords')
    """
    single = isinstance(sources, str) or not isinstance(sources, Iterable)
    several: Any = [sources] if single else sources
    chosen = [FEATURES.resolve(source) for source in several]
    found = [_columns(nbest, source) for source in chosen]
    names = [name for own, _ in found for name in own]
    tables = [np.zeros((len(nbest.features), 0), np.float32), *(table for _, table in found)]
    return nbest.with_features(names, np.concatenate(tables, axis=1))


def _columns(nbest: NBest, source: FeatureSource) -> tuple[tuple[str, ...], Float32]:
    """Return the names and the (hypotheses, names) values of the features of one source."""
    name = FEATURES.name_of(source)
    for need in sorted(source.needs):
        there = need in nbest.extras or need in nbest.sentence_extras
        if not there and getattr(nbest, need, None) is None:
            raise DataError(
                f"the features {name} need {need}, which the lists do not have: add them",
                nbest.origin,
            )
    made = source.columns(nbest)
    if isinstance(made, Mapping):
        made = tuple(made), np.transpose([np.asarray(column) for column in made.values()])
    names, values = tuple(made[0]), np.asarray(made[1], dtype=np.float32)
    shape = (len(nbest.features), len(names))
    if names and values.shape != shape:
        raise DataError(f"the features {name} have the shape {values.shape}, not {shape}")
    return names, values.reshape(shape)

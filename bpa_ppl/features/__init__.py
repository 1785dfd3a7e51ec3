"""Feature sources: more features of n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import lazy_loader
import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.features.base import Features, FeatureSource, of_each_string
from bpa_ppl.labels import repeated
from bpa_ppl.nbest import Float32, NBest
from bpa_ppl.registry import FEATURES

if TYPE_CHECKING:
    from bpa_ppl.features.consensus import Consensus
    from bpa_ppl.features.indicators import Indicators
    from bpa_ppl.features.invariance import Invariance
    from bpa_ppl.features.length import Length
    from bpa_ppl.features.lexicon import Lexicon
    from bpa_ppl.features.lm import LanguageModel
    from bpa_ppl.features.phrases import PhraseMixture

__all__ = [
    "Added",
    "Consensus",
    "FeatureSource",
    "Indicators",
    "Invariance",
    "LanguageModel",
    "Length",
    "Lexicon",
    "PhraseMixture",
    "add_features",
    "feature_adder",
    "of_each_string",
    "resolve_sources",
]

#: The name of a source, the source with its settings, or several of either.
AnySource = str | FeatureSource


# Loaded on first use: some sources have compiled parts.
__getattr__, _, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "consensus": ["Consensus"],
        "indicators": ["Indicators"],
        "invariance": ["Invariance"],
        "length": ["Length"],
        "lexicon": ["Lexicon"],
        "lm": ["LanguageModel"],
        "phrases": ["PhraseMixture"],
    },
)


def add_features(nbest: NBest, sources: AnySource | Iterable[AnySource]) -> NBest:
    """Return the lists with more features, after the existing ones.

    Args:
        nbest: the lists.
        sources: the name of a source, such as `length`, or a source with its settings, or several
            of them. One that learns from adaptation sentences learns from these lists, and leaves
            each sentence out where it computes its features; `source.fitted(nbest)` is the source
            for new lists.

    Raises:
        DataError: if the lists lack what a source needs, or have a feature of that name already.
        UsageError: if there is no such source.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
    >>> add_features(lists, "length").feature_names
    ('LM0', 'LengthWords')
    """
    return feature_adder(resolve_sources(sources))(nbest).nbest


def resolve_sources(sources: AnySource | Iterable[AnySource]) -> tuple[FeatureSource, ...]:
    """Return sources with their settings, from any argument that `add_features` takes.

    Raises:
        UsageError: if there is no such source.

    >>> resolve_sources("length")
    (Length(words=True, characters=False, ratio=False),)
    """
    single = isinstance(sources, str) or not isinstance(sources, Iterable)
    several: Any = [sources] if single else sources
    return tuple(FEATURES.resolve(source) for source in several)


class Added(NamedTuple):
    """Lists with more features.

    Attributes:
        nbest: the lists.
        columns: the names of the columns of each source.
    """

    nbest: NBest
    columns: tuple[tuple[str, ...], ...]


def feature_adder(
    sources: Iterable[FeatureSource], cross_fit: bool = False
) -> Callable[[NBest], Added]:
    """Return a function that adds features to one table of lists after another.

    Sources are opened once, for the first table.

    Args:
        sources: with their settings.
        cross_fit: whether the lists are the adaptation sentences that the sources are fitted to.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
    >>> feature_adder(resolve_sources("length"))(lists).nbest.feature_names
    ('LM0', 'LengthWords')
    """
    chosen = tuple(sources)

    @cache
    def opened() -> list[Callable[[NBest], Features]]:
        return [s.cross_fitted_columns if cross_fit or s.unlearned else s.opened() for s in chosen]

    def add(nbest: NBest) -> Added:
        for source in chosen:  # before anything is read or trained
            _check_needs(nbest, source)
        pairs = zip(chosen, opened(), strict=True)
        tables = [_columns(nbest, source, compute) for source, compute in pairs]
        names = [name for columns, _ in tables for name in columns]
        if repeats := repeated([*nbest.feature_names, *names]):
            problem = f"there is a feature {repeats[0]} already: give the source another name"
            raise DataError(f"{problem}, as in lm=general.txt,name=general", code="duplicate")
        empty = np.zeros((len(nbest.features), 0), np.float32)
        values = np.concatenate([empty, *(table for _, table in tables)], axis=1)
        return Added(nbest.with_features(names, values), tuple(names for names, _ in tables))

    return add


def _check_needs(nbest: NBest, source: FeatureSource) -> None:
    for need in sorted(source.needs):
        is_extra = need in nbest.extras or need in nbest.sentence_extras
        if not is_extra and getattr(nbest, need, None) is None:
            name = FEATURES.name_of(source)
            problem = f"the features {name} need {need}, which the lists do not have"
            raise DataError(problem, nbest.origin, parameter=need, code=f"missing-{need}")


def _columns(
    nbest: NBest, source: FeatureSource, compute: Callable[[NBest], Features]
) -> tuple[tuple[str, ...], Float32]:
    """Return the names and the (hypotheses, names) values of the features of one source."""
    features = compute(nbest)
    if isinstance(features, Mapping):
        features = tuple(features), np.transpose([np.asarray(c) for c in features.values()])
    names, values = tuple(features[0]), np.asarray(features[1], dtype=np.float32)
    shape = (len(nbest.features), len(names))
    if names and values.shape != shape:
        name = FEATURES.name_of(source)
        problem = f"the features {name} have the shape {values.shape}, not {shape}"
        raise DataError(problem, code="wrong-length")
    return names, values.reshape(shape)

"""What is done to lists before their weights are adapted, and again to those that are reranked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.features import FeatureSource, add_features
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.nbest import NBest
from bpa_ppl.quality import Column, Metric, set_aside
from bpa_ppl.quality.column import numeric_columns
from bpa_ppl.registry import FEATURES


class Preparation(NamedTuple):
    """How the features of lists become those that weights are of.

    Attributes:
        gain: the column of the lists that is the criterion, and so no feature; or None.
        sources: what adds features.
    """

    gain: Column | None = None
    sources: tuple[FeatureSource, ...] = ()

    def __call__(self, nbest: NBest) -> NBest:
        """Return the lists with more features, and without the one that is the criterion.

        Raises:
            DataError: if they lack what a source needs.
        """
        apart = self.apart(nbest)
        return add_features(apart, self.sources) if self.sources else apart

    def apart(self, nbest: NBest) -> NBest:
        """Return the lists without the criterion among their features."""
        return nbest if self.gain is None else set_aside(nbest, self.gain.columns)

    def stream(self, nbest: Iterable[NBest]) -> Iterator[NBest]:
        """Prepare one table of lists after the other; what is told of them is told once."""
        told: set[str] = set()
        for lists in nbest:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", BpaWarning)
                made = self(lists)
            for warning in caught:
                if str(warning.message) not in told:
                    told.add(str(warning.message))
                    warnings.warn(warning.message, warning.category, stacklevel=2)
            yield made

    def criterion(self, nbest: NBest) -> Column | None:
        """Return the criterion where some lists have its column."""
        has = self.gain is not None and self.gain.column in numeric_columns(nbest)
        return self.gain if has else None

    def record(self) -> dict[str, Any]:
        """Return what a posterior records of it, as plain values; `recorded` reads it."""
        gain = {} if self.gain is None else {"gain_column": self.gain.settings()}
        made = [source.made_from() for source in self.sources]
        return {**gain, **({"feature_sources": made} if made else {})}

    @classmethod
    def recorded(cls, attrs: Mapping[str, Any]) -> Preparation:
        """Return the preparation that is recorded among the attributes of a posterior.

        Raises:
            DataError: if the record cannot be understood.

        >>> gain = Column(column="mqm")
        >>> Preparation.recorded(Preparation(gain).record()).gain == gain
        True
        """
        try:
            gain = attrs.get("gain_column")
            made = [dict(source) for source in attrs.get("feature_sources", ())]
            return cls(
                None if gain is None else Column(**gain),
                tuple(FEATURES.resolve(one.pop("source"), _tuples(one)) for one in made),
            )
        except (TypeError, ValueError, KeyError) as error:
            raise DataError(
                f"what the posterior says of the features it needs cannot be read ({error}): "
                "adapt again"
            ) from error


def preparation(
    nbest: NBest, metric: Metric, categorical: str | Iterable[str] | None = None
) -> Preparation:
    """Return how the lists of a job are prepared.

    Args:
        nbest: the adaptation lists, which say what values categories have.
        metric: the criterion.
        categorical: extras of texts that become features of 0 and 1.

    Raises:
        DataError: if there is no such extra.
        UsageError: if `categorical` is no list of names.
    """
    names = [categorical] if isinstance(categorical, str) else categorical or []
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"categorical columns are a list of names, not {categorical!r}")
    gain = metric if isinstance(metric, Column) else None
    return Preparation(gain, tuple(Indicators(column=name).fitted(nbest) for name in names))


def _tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they were before JSON: it has lists alone."""
    return {n: tuple(v) if isinstance(v, list) else v for n, v in settings.items()}

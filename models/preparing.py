"""What is done to lists before their weights are adapted, and again to those that are reranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bpa_ppl.errors import BpaError, DataError, UsageError
from bpa_ppl.features import Added, FeatureSource, adding, resolved
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.recipes import absolute, recorded, remade, stored
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import Note, held, tell_again
from bpa_ppl.quality import Column, Metric, counted_metrics, resolve, set_aside
from bpa_ppl.quality.column import numeric_columns

if TYPE_CHECKING:
    from bpa_ppl.features import AnySource
    from bpa_ppl.features.recipes import Where


@dataclass(frozen=True)
class Preparation:
    """How the features of lists become those that weights are of.

    Attributes:
        gain: the column of the lists that is the criterion, and so no feature; or None.
        sources: what adds features.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0, 0.8], [2.0, 0.6]]], ["LM0", "comet"])
    >>> prepared = Preparation(Column(column="comet"))
    >>> prepared.apart(lists).feature_names, prepared.criterion(lists).column
    (('LM0',), 'comet')
    >>> prepared.of_own(lists).nbest.feature_names, [len(part) for part in prepared.stream([lists])]
    (('LM0',), [1])
    >>> prepared.record(), prepared.stored()
    ({'gain_column': {'column': 'comet', 'negative': False}}, {})
    """

    gain: Column | None = None
    sources: tuple[FeatureSource, ...] = ()

    def __call__(self, nbest: NBest) -> NBest:
        """Return new lists with more features, and without the one that is the criterion.

        Raises:
            DataError: if they lack what a source needs.
        """
        return self._add(self.apart(nbest)).nbest

    def of_own(self, nbest: NBest) -> Added:
        """Return the adaptation lists, which the sources have learned from, in the same way.

        With them come the names of the columns of each source.

        Raises:
            DataError: as above.
        """
        return adding(self.sources, own=True)(self.apart(nbest))

    def apart(self, nbest: NBest) -> NBest:
        """Return the lists without the criterion among their features."""
        return nbest if self.gain is None else set_aside(nbest, self.gain.columns)

    @cached_property
    def _add(self) -> Callable[[NBest], Added]:
        return adding(self.sources)

    def stream(self, nbest: Iterable[NBest]) -> Iterator[NBest]:
        """Prepare one table of lists after the other; what is told of them is told once."""
        told: set[Note] = set()
        for lists in nbest:
            with held() as notes:
                made = self(lists)
            new = [note for note in dict.fromkeys(notes) if note not in told]
            told.update(new)
            tell_again(new)
            yield made

    def criterion(self, nbest: NBest) -> Column | None:
        """Return the criterion where some lists have its column."""
        has = self.gain is not None and self.gain.column in numeric_columns(nbest)
        return self.gain if has else None

    def record(self, columns: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
        """Return what a posterior records of it, as plain values; `recorded` reads it.

        Args:
            columns: the names of those of each source, for readers of the record.

        Raises:
            DataError: if a file that a source is made from cannot be read.
        """
        gain = {} if self.gain is None else {"gain_column": self.gain.settings()}
        made = recorded(self.sources, columns or [()] * len(self.sources))
        return {**gain, **({"feature_sources": made} if made else {})}

    def stored(self) -> dict[str, Any]:
        """Return what the sources have learned, for the constants of a posterior."""
        return stored(self.sources)

    @classmethod
    def recorded(
        cls,
        attrs: Mapping[str, Any],
        constants: Mapping[str, Any] | None = None,
        where: Where | None = None,
    ) -> Preparation:
        """Return the preparation that a posterior records.

        Args:
            attrs: the attributes of the posterior.
            constants: its constants, which hold what sources have learned.
            where: where files lie now that a source is made from and that have moved, by the label
                of the source: `{"lm": "texts/domain.txt"}`.

        Raises:
            DataError: if the record cannot be understood, or a file that a source is made from is
                missing or has changed.
            UsageError: if `where` names no source.

        >>> gain = Column(column="mqm")
        >>> Preparation.recorded(Preparation(gain).record()).gain == gain
        True
        """
        with _understood():
            sources = remade(attrs.get("feature_sources", ()), constants or {}, where)
        return cls(gain_of(attrs), sources)


def gain_of(attrs: Mapping[str, Any]) -> Column | None:
    """Return the column that a posterior records as its criterion, or None.

    Raises:
        DataError: if the record cannot be understood.
    """
    with _understood():
        gain = attrs.get("gain_column")
        return None if gain is None else Column(**gain)


def criterion_of(attrs: Mapping[str, Any]) -> Metric | None:
    """Return the criterion of a posterior, if corpus scores can tell it: a column, or a metric.

    None where the metric has no counts to sum, as chrF, or is not installed here.

    Raises:
        DataError: as `gain_of`.

    >>> criterion_of({"oracle_metric": "bleu"}).key, criterion_of({"oracle_metric": "chrf"})
    ('bleu', None)
    """
    column, name = gain_of(attrs), attrs.get("oracle_metric")
    return column or (resolve(name) if name in counted_metrics() else None)


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except BpaError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataError(
            f"what the posterior says of the features it needs cannot be read ({error}): "
            "adapt again"
        ) from error


def preparation(
    nbest: NBest,
    metric: Metric,
    categorical: str | Iterable[str] | None = None,
    add: AnySource | Iterable[AnySource] | None = None,
) -> Preparation:
    """Return how the lists of a job are prepared.

    Args:
        nbest: the adaptation lists, which sources learn from: what values categories have, say.
        metric: the criterion.
        categorical: extras of texts that become features of 0 and 1.
        add: further sources of features.

    Raises:
        DataError: if there is no such extra, or a source cannot be fitted.
        UsageError: if `categorical` is no list of names, or there is no such source.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0, 0.8], [2.0, 0.6]]], ["LM0", "comet"])
    >>> found = preparation(lists, Column(column="comet"), add=["length"])
    >>> found(lists).feature_names
    ('LM0', 'LengthWords')
    """
    names = [categorical] if isinstance(categorical, str) else categorical or []
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"categorical columns are a list of names, not {categorical!r}")
    gain = metric if isinstance(metric, Column) else None
    chosen = (*(Indicators(column=name) for name in names), *resolved(() if add is None else add))
    return Preparation(gain, tuple(absolute(source).fitted(nbest) for source in chosen))

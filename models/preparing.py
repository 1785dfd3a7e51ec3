"""What is done to lists before their weights are adapted, and again to those that are reranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bpa_ppl.errors import BpaError, DataError, UsageError
from bpa_ppl.features import Added, FeatureSource, feature_adder, resolve_sources
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.recipes import absolute, recorded, sources_from_records, stored
from bpa_ppl.labels import matches
from bpa_ppl.nbest import NBest, demote_to_extras
from bpa_ppl.notes import Note, capture_notes, replay, warn_user
from bpa_ppl.quality import Column, Metric, counted_metrics, resolve
from bpa_ppl.quality.column import numeric_columns

if TYPE_CHECKING:
    from bpa_ppl.features import AnySource
    from bpa_ppl.features.recipes import MovedFiles


@dataclass(frozen=True)
class Preparation:
    """How the features of lists become those that weights are of.

    Attributes:
        gain: the column of the lists that is the criterion, and so no feature; or None.
        sources: what adds features.
        features: the columns of the lists that are features, by name or label; the others become
            extras. None keeps all.
        exclude: columns of the lists that become extras, by name or label.
        free: the features of the posterior.
        fixed: further features of fixed weight. Columns of new lists that are neither become
            extras, with a note; None takes lists as they are.

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
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    fixed: tuple[str, ...] | None = None

    def __call__(self, nbest: NBest) -> NBest:
        """Return new lists with more features, and without those that are not to be features.

        Raises:
            DataError: if they lack what a source needs, or a feature of the posterior.
        """
        return self._of_posterior(self._add(self.apart(nbest)).nbest)

    def of_own(self, nbest: NBest) -> Added:
        """Return the adaptation lists, which the sources have learned from, in the same way.

        With them come the names of the columns of each source.

        Raises:
            DataError: as above.
        """
        made = feature_adder(self.sources, cross_fit=True)(self.apart(nbest))
        return made._replace(nbest=self._of_posterior(made.nbest))

    def apart(self, nbest: NBest) -> NBest:
        """Return the lists with the criterion, and columns that are excluded, as extras."""
        gain = () if self.gain is None else self.gain.columns
        kept = [name for name in nbest.feature_names if name not in gain and self._is_feature(name)]
        return demote_to_extras(nbest, [name for name in nbest.feature_names if name not in kept])

    def _of_posterior(self, nbest: NBest) -> NBest:
        """Return the lists with the features of the posterior alone."""
        if self.fixed is None:
            return nbest
        missing = [name for name in self.free if name not in nbest.feature_names]
        unknown = [n for n in nbest.feature_names if n not in self.free and n not in self.fixed]
        partly = [name for name in missing if name in nbest.extras]
        # One that no hypothesis has may be 0 throughout; beside others it may be of another name.
        if partly or (missing and unknown):
            why = f" ({', '.join(partly)}: missing for some candidates)" if partly else ""
            raise DataError(
                f"no {', '.join(missing)}{why}, which the posterior has weights for: the lists "
                f"have {', '.join(nbest.feature_names) or 'no features'}; give lists with the "
                "features that the weights were adapted with",
                nbest.origin,
            )
        if unknown:
            warn_user(
                f"{nbest.origin}: {', '.join(unknown)} not used: the posterior has no weight for "
                f"{'it' if len(unknown) == 1 else 'them'}: give a default weight to use it"
            )
        return demote_to_extras(nbest, unknown)

    def _is_feature(self, name: str) -> bool:
        chosen = self.features is None or matches(name, self.features)
        return chosen and not matches(name, self.exclude)

    @cached_property
    def _add(self) -> Callable[[NBest], Added]:
        return feature_adder(self.sources)

    def stream(self, nbest: Iterable[NBest]) -> Iterator[NBest]:
        """Prepare one table of lists after the other; what is told of them is told once."""
        told: set[Note] = set()
        for lists in nbest:
            with capture_notes() as notes:
                made = self(lists)
            new = [note for note in dict.fromkeys(notes) if note not in told]
            told.update(new)
            replay(new)
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
        chosen = {} if self.features is None else {"chosen_features": list(self.features)}
        left_out = {"excluded_features": list(self.exclude)} if self.exclude else {}
        return {**gain, **chosen, **left_out, **({"feature_sources": made} if made else {})}

    def stored(self) -> dict[str, Any]:
        """Return what the sources have learned, for the constants of a posterior."""
        return stored(self.sources)

    @classmethod
    def recorded(
        cls,
        attrs: Mapping[str, Any],
        constants: Mapping[str, Any] | None = None,
        moved_files: MovedFiles | None = None,
        free: Iterable[str] = (),
        fixed: Iterable[str] | None = None,
    ) -> Preparation:
        """Return the preparation that a posterior records.

        Args:
            attrs: the attributes of the posterior.
            constants: its constants, which hold what sources have learned.
            moved_files: new paths of files of sources that have moved, by the label of the source:
                `{"lm": "texts/domain.txt"}`.
            free: the features of the posterior.
            fixed: those with a fixed weight; None does not check the features of lists.

        Raises:
            DataError: if the record cannot be understood, or a file that a source is made from is
                missing or has changed.
            UsageError: if `where` names no source.

        >>> gain = Column(column="mqm")
        >>> Preparation.recorded(Preparation(gain).record()).gain == gain
        True
        """
        with _understood():
            sources = sources_from_records(
                attrs.get("feature_sources", ()), constants or {}, moved_files
            )
            features = attrs.get("chosen_features")
            chosen = None if features is None else tuple(features)
            exclude = tuple(attrs.get("excluded_features", ()))
        known = None if fixed is None else tuple(fixed)
        return cls(gain_of(attrs), sources, chosen, exclude, tuple(free), known)


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
    features: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
) -> Preparation:
    """Return how the lists of a job are prepared.

    Args:
        nbest: the adaptation lists, which sources learn from: what values categories have, say.
        metric: the criterion.
        categorical: extras of texts that become features of 0 and 1.
        add: further sources of features.
        features: names or labels of the columns of the lists that are features; None takes all.
        exclude: names or labels of columns that are no features.

    Raises:
        DataError: if there is no such column or extra, or a source cannot be fitted.
        UsageError: if `categorical`, `features` or `exclude` is no list of names, or there is no
            such source.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0, 0.8], [2.0, 0.6]]], ["LM0", "comet"])
    >>> found = preparation(lists, Column(column="comet"), add=["length"])
    >>> found(lists).feature_names
    ('LM0', 'LengthWords')
    >>> preparation(lists, Column(column="comet"), exclude=["LM0"])(lists).feature_names
    ()
    """
    gain = metric if isinstance(metric, Column) else None
    wanted = None if features is None else _columns(nbest, features, "features")
    left_out = _columns(nbest, exclude or (), "excluded features", nbest.extras)
    chosen = (
        *(Indicators(column=name) for name in _names(categorical or (), "categorical columns")),
        *resolve_sources(() if add is None else add),
    )
    sources = tuple(absolute(source).fitted(nbest) for source in chosen)
    return Preparation(gain, sources, wanted, left_out)


def _names(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    names: Any = (given,) if isinstance(given, str) else given
    listed = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(name, str) for name in listed):
        raise UsageError(f"{what} are a list of names, not {given!r}")
    return listed


def _columns(
    nbest: NBest, given: str | Iterable[str], what: str, others: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return names or labels, each of which is of a feature of the lists, or one of the others."""
    names = _names(given, what)
    for name in names:
        if name not in others and not any(matches(one, [name]) for one in nbest.feature_names):
            extra = name in nbest.extras
            why = " (it is no number, or missing for some candidates)" if extra else ""
            there = ", ".join(nbest.feature_names) or "none"
            raise DataError(
                f"{name} is no feature of the lists{why}: choose from {there}", nbest.origin
            )
    return names

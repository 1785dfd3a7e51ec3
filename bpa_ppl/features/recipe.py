"""Recipes: which columns of lists are features, the same for adapting and for choosing.

A posterior records the recipe with the sources of its features, the hashes of their files and what
they have learned, so that new lists get the same features.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import LARGEST, Float64, is_missing, is_number, read_number
from bpa_ppl._runtime.messages import Note, capture_notes, replay, warn_user
from bpa_ppl._runtime.progress import Reporter, inherit_progress
from bpa_ppl._runtime.values import abbreviate
from bpa_ppl.adaptation_record import AdaptationRecord, GainColumn, RecipeRecord, SourceRecord
from bpa_ppl.errors import (
    COLUMN,
    DataError,
    Remedy,
    UsageError,
    list_names,
    locate,
    unknown_name,
    write_option,
)
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.source import FEATURES, Added, FeatureSource, make_adder, resolve_sources
from bpa_ppl.formats.advice import advise
from bpa_ppl.formats.block import TOTAL
from bpa_ppl.formats.roles import ALL, Patterns, Roles, make_roles, require_columns, to_patterns
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import resolve_without_lists
from bpa_ppl.gains.metric import GAINS, Metric
from bpa_ppl.lists.candidate_columns import (
    describe_numbers,
    numeric_columns,
    read_column,
    read_extra,
)
from bpa_ppl.lists.labels import matches
from bpa_ppl.lists.nbest import (
    NBest,
    demote_to_extras,
    describe_candidate,
    missing_values,
    promote_to_features,
)

if TYPE_CHECKING:
    from bpa_ppl.features.source import AnySource
    from bpa_ppl.weight_draws import WeightDraws

#: Sources of features that need only texts.
OF_TEXTS = ("consensus", "length")
#: A file, or several, for each source that has moved: by its label, or by its name.
MovedFiles = Mapping[str, str | Path | Sequence[str | Path]]
#: Names, labels or patterns of columns.
Names = str | Iterable[str] | None
_STORED = "feature_source_{}"
_MAX_SIZE = 64 << 30  # bytes of a file that a posterior names


@dataclass(frozen=True)
class Recipe:
    """How the columns of lists become the features that have weights.

    A posterior records the first four attributes; the other three are of its weights, and select
    features of new lists.

    Attributes:
        gain: the column of the lists that is the gain, and so not a feature; or None.
        sources: of additional features.
        features: the columns of the lists that are features, by name, label or pattern; the others
            become extras. None keeps the features of the lists.
        exclude: columns of the lists that become extras, by name, label or pattern.
        free: the features of the posterior.
        fixed: further features with a fixed weight. Columns of new lists that are neither become
            extras, with a warning; None leaves lists as they are.
        absent: free features that are left out, since new lists lack them, by name or label.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a"]], [[[1.0, 0.8], [2.0, 0.6]]], ["LM0", "comet"])
    >>> recipe = Recipe(Column(column="comet"))
    >>> recipe.without_gain(lists).feature_names
    ('LM0',)
    >>> recipe.for_training(lists).lists.feature_names
    ('LM0',)
    >>> [len(part) for part in recipe.stream([lists])]
    [1]
    >>> recipe.record().gain
    GainColumn(column='comet', negative=False)
    """

    gain: Column | None = None
    sources: tuple[FeatureSource, ...] = ()
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    fixed: tuple[str, ...] | None = None
    absent: tuple[str, ...] = ()

    def apply(self, lists: NBest) -> NBest:
        """Return new lists with the features of the posterior.

        Raises:
            DataError: if they lack data that a source needs, or a feature of the posterior.
        """
        return self._apply(lists, {})

    def _apply(self, lists: NBest, first: dict[str, bool]) -> NBest:
        return self._select(self._add(self.without_gain(lists)).lists, first)

    def for_training(self, lists: NBest) -> Added:
        """Return the adaptation lists with the columns, and the names of those of each source."""
        added = make_adder(self.sources, cross_fit=True)(self.without_gain(lists))
        return added._replace(lists=self._select(added.lists, {}))

    def without_gain(self, lists: NBest) -> NBest:
        """Return the lists with the columns that are named as features, without the gain.

        Raises:
            DataError: if a column that is named has a value that is missing, or is not a number.
        """
        gain = () if self.gain is None else self.gain.columns
        features = (ALL,) if self.features is None else self.features
        roles = Roles(features, self.exclude, numbers=gain)
        left_out = {n for n in lists.feature_names if roles.is_feature(n) is False}
        # `_select` finds the features of a posterior.
        may_be_new = self.features is not None and self.fixed is None
        chosen = {n: roles.is_feature(n) for n in lists.extras if n not in gain and may_be_new}
        added = {
            n: _read_feature(lists, n)
            for n, is_feature in chosen.items()
            if is_feature or (is_feature is None and read_extra(lists, n) is not None)
        }
        return promote_to_features(demote_to_extras(lists, left_out), added)

    def _select(self, lists: NBest, first: dict[str, bool]) -> NBest:
        """Return the lists with the features of the posterior only.

        An extra with the name of a feature is one, if it is a number for each of these candidates.

        Args:
            lists: the lists.
            first: whether the first candidate of the text has each feature of a fixed weight;
                entered here.
        """
        if self.fixed is None:
            return lists
        absent = frozenset(self.absent)
        unused = {name for name in self.free if matches(name, absent)}
        if left_out := unused.intersection((*lists.feature_names, *lists.extras)):
            lists = lists.without(*left_out)
        free = [name for name in self.free if name not in unused]
        features, names = set(lists.feature_names), dict.fromkeys((*free, *self.fixed))
        extras = {n: _read_extra(lists, n) for n in names if n not in features}
        numbers = {name: np.isfinite(of) for name, of in extras.items()}
        _require_all(lists, {name: numbers[name] for name in free if name in numbers})
        if self.fixed and len(lists.features):
            _require_all_or_none(lists, self.fixed, numbers, first)
        columns = {name: extras[name] for name, of in numbers.items() if len(of) and of.all()}
        lists = promote_to_features(lists, columns)
        if unknown := [name for name in lists.feature_names if name not in names]:
            warn_user(locate(lists.origin) + describe_unused(unknown))
        return demote_to_extras(lists, unknown)

    @cached_property
    def _add(self) -> Callable[[NBest], Added]:
        return make_adder(self.sources)

    def without_indicators(
        self, columns: tuple[tuple[str, ...], ...]
    ) -> tuple[Recipe, tuple[tuple[str, ...], ...]]:
        """Return the recipe without the sources of indicators, and the columns of the others.

        Args:
            columns: the names of the columns of each source.
        """
        kept = [not isinstance(source, Indicators) for source in self.sources]
        sources = tuple(compress(self.sources, kept))
        return replace(self, sources=sources), tuple(compress(columns, kept))

    def stream(self, lists: Iterable[NBest], progress: bool | Reporter = False) -> Iterator[NBest]:
        """Prepare one table of lists after the other; the same warning is logged only once.

        Args:
            lists: tables of lists.
            progress: of slow sources.
        """
        logged: set[Note] = set()
        first: dict[str, bool] = {}
        for batch in lists:
            with capture_notes() as notes, inherit_progress(progress):
                prepared = self._apply(batch, first)
            unseen_notes = [note for note in dict.fromkeys(notes) if note not in logged]
            logged.update(unseen_notes)
            replay(unseen_notes)
            yield prepared

    def record(self, columns: Sequence[Sequence[str]] = ()) -> RecipeRecord:
        """Return the record of a posterior; `of` reads it.

        Args:
            columns: the names of the columns of each source, for readers of the record.

        Raises:
            DataError: if a file that a source reads cannot be read.
        """
        return RecipeRecord(
            gain=None if self.gain is None else GainColumn(self.gain.column, self.gain.negative),
            chosen=self.features,
            excluded=self.exclude,
            sources=record_sources(self.sources, columns or [()] * len(self.sources)),
        )

    def constants(self) -> dict[str, Any]:
        """Return what the sources have learned, as JSON texts by name, for a posterior to store."""
        learned = {
            _STORED.format(number): {name: getattr(source, name) for name in source.learned}
            for number, source in enumerate(self.sources)
            if source.holds
        }
        return {name: np.array([json.dumps(texts)]) for name, texts in learned.items()}

    @classmethod
    def of(cls, draws: WeightDraws, moved_files: MovedFiles | None = None) -> Recipe:
        """Return the recipe that a posterior records.

        Args:
            draws: of the posterior.
            moved_files: new paths of the files of sources, by the label of the source:
                `{"lm": "texts/domain.txt"}`.

        Raises:
            DataError: if the record is invalid, or a file that a source reads is missing or has
                changed.
            UsageError: if `moved_files` names a source that does not exist.

        >>> from bpa_ppl import Draws
        >>> record = AdaptationRecord(recipe=Recipe(Column(column="mqm")).record()).add_to()
        >>> from bpa_ppl.weight_draws import name_weights
        >>> draws = name_weights([[[0.5]]], ("LM0",), record=record)
        >>> Recipe.of(draws).gain.column, Recipe.of(draws).free
        ('mqm', ('LM0',))
        """
        recipe = draws.adaptation.recipe
        return cls(
            _read_gain_column(draws.adaptation),
            restore_sources(recipe.sources, draws.draws.constants, moved_files),
            recipe.chosen,
            recipe.excluded,
            draws.features,
            tuple(draws.fixed),
            recipe.absent,
        )


def roles_for(draws: WeightDraws) -> Roles:
    """Return the roles of the columns of new lists: the features of a posterior, and its gain.

    Args:
        draws: of the posterior.

    >>> from bpa_ppl import Draws
    >>> record = AdaptationRecord(recipe=Recipe(Column(column="mqm")).record()).add_to()
    >>> from bpa_ppl.weight_draws import name_weights
    >>> roles = roles_for(name_weights([[[0.5]]], ("LM0",), record=record))
    >>> roles.features, roles.numbers, roles.optional
    (('LM0',), ('mqm',), True)
    """
    recipe = draws.adaptation.recipe
    computed = {name for source in recipe.sources for name in source.feature_names}
    names = (name for name in (*draws.features, *draws.fixed) if name not in computed)
    column = _read_gain_column(draws.adaptation)
    return Roles(tuple(names), numbers=() if column is None else column.columns, optional=True)


def choose_roles(
    features: Names, exclude: Names, categorical: Names = None, gain: object = None
) -> Roles:
    """Return the roles of the columns of lists that are read for `adapt` with these settings.

    >>> roles = choose_roles(["judge_*"], ["judge_b"], "system", "-wer")
    >>> roles.features, roles.exclude, roles.numbers
    (('judge_*',), ('judge_b', 'system'), ('wer',))
    """
    columns = resolve_without_lists(gain).columns if isinstance(gain, str) else ()
    texts = to_patterns(categorical or (), "categorical")
    roles = make_roles(features, (*to_patterns(exclude or (), "exclude"), *texts))
    return replace(roles, numbers=columns)


def recipe_for(
    lists: NBest,
    gain: Metric,
    categorical: str | Iterable[str] | None = None,
    add: AnySource | Iterable[AnySource] | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
) -> Recipe:
    """Return the recipe of the features for an adaptation.

    Args:
        lists: the adaptation lists, which sources learn from.
        gain: a metric or a column.
        categorical: columns whose values become features of 0 and 1.
        add: further sources of features.
        features: names, labels or patterns of columns; None takes the features of the lists.
        exclude: names, labels or patterns of columns that are not features.

    Raises:
        DataError: if there is no such column or extra, or a source cannot be fitted.
        UsageError: if an option is not a list of names, or the gain is a category.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a"]], [[[1.0, 0.8], [2.0, 0.6]]], ["LM0", "comet"])
    >>> recipe = recipe_for(lists, Column(column="comet"), add=["length"])
    >>> recipe.apply(lists).feature_names
    ('LM0', 'LengthWords')
    >>> recipe_for(lists, Column(column="comet"), exclude=["LM0"]).apply(lists).feature_names
    ()
    """
    chosen = None if features is None else _find_columns(lists, features, "features")
    warn_of_gain(chosen or (), gain.columns)
    excluded = _find_columns(lists, exclude or (), "exclude")
    categories = to_patterns(categorical or (), "categorical")
    indicators = [Indicators(column=name) for name in categories]
    sources = (*indicators, *resolve_sources(() if add is None else add))
    # A numeric column is a category or a feature, not both.
    columns = [source.column for source in sources if isinstance(source, Indicators)]
    _refuse_gain(columns, gain.columns, "categorical")
    excluded += tuple(name for name in columns if name not in excluded)
    column = gain if isinstance(gain, Column) else None
    fitted = tuple(with_absolute_paths(source).fitted(lists) for source in sources)
    return Recipe(column, fitted, chosen, excluded)


def _find_columns(lists: NBest, columns: str | Iterable[str], parameter: str) -> tuple[str, ...]:
    """Return names, labels and patterns after checking that each fits a column.

    Raises:
        DataError: with the columns of numbers, if one fits none.
    """
    names = to_patterns(columns, parameter)
    present = {**dict.fromkeys(lists.feature_names), **lists.extras}
    require_columns(names, present, lambda _: describe_numbers(lists), lists.origin, parameter)
    return names


def warn_of_gain(features: Sequence[str], gain: Collection[str]) -> None:
    """Warn that the gain is not a feature, where it is named as one of several.

    >>> from bpa_ppl._runtime.messages import capture_notes
    >>> with capture_notes() as notes:
    ...     warn_of_gain(["lm", "comet"], ["comet"])
    >>> [note.message for note in notes]
    ['comet is the gain, and so not a feature: it is left out of the features']
    """
    if named := [name for name in features if name in gain and len(features) > 1]:
        warn_user(f"{named[0]} is the gain, and so not a feature: it is left out of the features")


def _refuse_gain(names: Iterable[str], gain: Collection[str], parameter: str) -> None:
    """Refuse the gain as one of the features that a parameter names.

    Raises:
        UsageError: if one of the names is the gain.

    >>> _refuse_gain(["lm", "human"], ["human"], "features")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: human is the gain, and cannot be a feature: leave it out of the ...
    """
    if named := [name for name in names if name in gain]:
        message = (
            f"{named[0]} is the gain, and cannot be a feature: leave it out of the {parameter} "
            f"(--{parameter}), or choose another gain (--gain)"
        )
        raise UsageError(message, parameter=parameter, code="conflict")


def require_features(
    lists: NBest,
    gain: Metric | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
) -> None:
    """Refuse lists of which no column is named as a feature.

    Args:
        lists: the lists.
        gain: a metric or a column, which is not proposed as a feature.
        features: names, labels and patterns that the user gave.
        exclude: names, labels and patterns of columns that are not features.

    Raises:
        DataError: with the columns of numbers, and the option to type.
        UsageError: if only the gain is named.

    >>> from bpa_ppl import from_lists
    >>> require_features(from_lists([["a"]], [[[]]], []).with_extras(lm=[-1.5]))
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no features are named: the columns of numbers are lm (-1.5 to -1.5)...
    """
    if lists.feature_names:
        return
    columns = () if gain is None else gain.columns
    _refuse_gain(features or (), columns, "features")
    numbers = [name for name in numeric_columns(lists) if name not in columns]
    excluded = list(filter(Patterns.of(exclude).fit, numbers))
    numbers = [name for name in numbers if name not in excluded]
    problem = f"no features are named: {describe_numbers(lists)}"
    words = "name those that new lists have, too"
    remedies: list[str | Remedy] = []
    if excluded and not numbers:
        problem = f"no features are left, because {list_names(excluded)} "
        problem += f"{'is' if len(excluded) == 1 else 'are'} excluded"
        remedies.append("exclude fewer columns")
    elif numbers:
        remedies.append(Remedy(words, {"features": [COLUMN]}, columns=numbers))
    else:
        remedies.append("give lists with columns of numbers")
    remedies.append(Remedy("add features that need only texts", {"add": OF_TEXTS}))

    def read_again(changes: Mapping[str, Any]) -> Iterator[NBest]:
        for name in changes.get("features", ()):
            read_column(lists, name)
        yield make_adder(resolve_sources(changes.get("add", ())))(lists.select([0])).lists

    details: Any = {"parameter": "features", "code": "missing-feature", "remedies": remedies}
    raise advise(DataError(problem, lists.origin, **details), read_again)


def describe_unused(names: Sequence[str]) -> str:
    """Return a note on features of lists that the posterior has no weight for.

    >>> describe_unused(["comet"])
    "comet not used: the posterior has no weight for it: give one to use it (--default comet=WEI..."
    """
    reason = f"the posterior has no weight for {'it' if len(names) == 1 else 'them'}"
    option = write_option("default", names[:1], number="WEIGHT", parameter="defaults")
    return f"{list_names(names)} not used: {reason}: give one to use it ({option})"


def _require_all(lists: NBest, numbers: Mapping[str, npt.NDArray[np.bool_]]) -> None:
    """Raise a DataError that names the first candidate without a feature of a free weight.

    It does not depend on how many lists are read at a time.

    Args:
        lists: the lists.
        numbers: (candidates,) for each column that is not a feature: whether it is a number.
    """
    rows = [int(np.argmin(of)) for of in numbers.values() if not of.all()]
    if not rows and (len(lists.features) or not numbers):
        return
    names, row = list(numbers), min(rows, default=None)
    if row is None:
        problem = f"no feature {list_names(names)}: there is no candidate"
    else:
        names = [name for name, of in numbers.items() if not of[row]]
        problem = _without_number(lists, names, row)
    named = "if these number the features, name them by assign_coords of xarray; else "
    raise DataError(
        f"{problem}; the posterior has weights for {list_names(names)}: "
        f"{named * all(map(str.isdigit, names))}give lists with the features that the weights "
        "were adapted with, or leave out their weights in reranking "
        f"({write_option('without', names)})",
        lists.origin,
        parameter="without",
        code="missing-feature",
    )


def _require_all_or_none(
    lists: NBest,
    names: Iterable[str],
    numbers: Mapping[str, npt.NDArray[np.bool_]],
    first: dict[str, bool],
) -> None:
    """Raise a DataError unless all candidates of a text have a feature of a fixed weight, or none.

    Args:
        lists: some lists of the text.
        names: the features.
        numbers: as for `_require_all`.
        first: whether the first candidate of the text has each one; entered here.
    """
    every = np.ones(len(lists.features), bool)
    different = []
    for name in names:
        present = numbers.get(name, every)
        expected = first.setdefault(name, bool(present[0]))
        different += [(int(np.argmax(of)), name) for of in [present != expected] if of.any()]
    if different:
        row, name = min(different)
        message = (
            f"{describe_candidate(lists, row)} has {'no' if first[name] else 'a'} {name}, a "
            f"feature with a fixed weight, which others {'have' if first[name] else 'lack'}: give "
            "it for all candidates or for none"
        )
        raise DataError(message, lists.origin, code="missing-feature")


def _read_feature(lists: NBest, name: str) -> Float64:
    """Return an extra that is named as a feature."""
    values = read_column(lists, name)
    if np.isnan(values).any():
        candidate = partial(describe_candidate, lists)
        raise missing_values({name: values}, candidate, lists.origin, parameter="features")
    return values


def _read_extra(lists: NBest, name: str) -> Float64:
    """Return an extra as numbers, NaN where it has no finite number."""
    values = lists.extras.get(name, ())
    numbers = [read_number(value, cells=name in lists.cells) for value in values]
    finite = [np.nan if of is None or not abs(of) <= LARGEST else of for of in numbers]
    return np.array(finite or [np.nan] * len(lists.features), np.float64)


def _without_number(lists: NBest, names: Sequence[str], row: int) -> str:
    """Return what a candidate has in place of a number, or the numbers that it has."""
    candidate, name = describe_candidate(lists, row), names[0]
    value = lists.extras[name][row] if name in lists.extras else None
    if not (is_missing(value) or is_number(value)):
        return f"{name} of {candidate} is {abbreviate(value)}, not a number"
    others = [n for n in lists.extras if n != TOTAL]
    extras = [n for n in others if np.isfinite(_read_extra(lists, n)[row])]
    present = list_names(sorted((*lists.feature_names, *extras))) or "no features"
    return f"{candidate} has no {list_names(names)}, it has {present}"


def read_gain(record: AdaptationRecord) -> Metric | None:
    """Return the gain that a posterior records: a column, or a metric with its defaults.

    None if it records none, such as a posterior of preferences, or one that is not installed here.

    >>> from bpa_ppl.adaptation_record import ObservedRecord
    >>> read_gain(AdaptationRecord(observed=ObservedRecord(gain="chrf"))).key
    'chrf'
    >>> read_gain(AdaptationRecord(observed=ObservedRecord(gain="my_function")))
    """
    if (column := _read_gain_column(record)) is not None:
        return column
    name = record.observed.gain
    return GAINS.resolve(name) if name is not None and name in GAINS else None


def _read_gain_column(record: AdaptationRecord) -> Column | None:
    """Return the column that a posterior records as its gain, or None."""
    gain = record.recipe.gain
    return None if gain is None else Column(column=gain.column, negative=gain.negative)


def with_absolute_paths(source: FeatureSource) -> FeatureSource:
    """Return a source with absolute paths of its files."""
    return source.moved([str(Path(path).absolute()) for path in source.files()])


def record_sources(
    sources: Iterable[FeatureSource], columns: Iterable[Sequence[str]]
) -> tuple[SourceRecord, ...]:
    """Return a record of each source: name, settings, hashes of files, names of columns.

    Raises:
        DataError: if a file cannot be read.
    """
    records = []
    for source, names in zip(sources, columns, strict=True):
        # What was learned is stored separately.
        settings = {n: v for n, v in source.settings().items() if n not in source.learned}
        records.append(
            SourceRecord(
                source=FEATURES.name_of(source),
                settings=settings,
                file_hashes=tuple(_hash(path, source) for path in source.files()),
                feature_names=tuple(names),
            )
        )
    return tuple(records)


def recorded_files(record: AdaptationRecord) -> list[str]:
    """Return the files that the features of a posterior were computed from.

    Raises:
        UsageError: if a source is not known.

    >>> source = SourceRecord(source="lm", settings={"text": "domain.txt"})
    >>> record = AdaptationRecord(recipe=RecipeRecord(sources=(source,)))
    >>> recorded_files(record)
    ['domain.txt']
    """
    files: list[str] = []
    for source in record.recipe.sources:
        settings = {name: with_tuples(value) for name, value in source.settings.items()}
        files += FEATURES.restore(source.source, settings).files()
    return files


def restore_sources(
    records: Sequence[SourceRecord],
    constants: Mapping[str, Any],
    moved_files: MovedFiles | None = None,
) -> tuple[FeatureSource, ...]:
    """Return the recorded sources, if their files have not changed.

    Args:
        records: from `record_sources`.
        constants: of the posterior, with those of its recipe.
        moved_files: new paths of files that have moved, by the label of their source.

    Raises:
        DataError: if a file is missing or has changed, or a record cannot be understood.
        UsageError: if `moved_files` names a source that the posterior does not have.
    """
    sources = []
    for number, record in enumerate(records):
        settings = {name: with_tuples(value) for name, value in record.settings.items()}
        learned = str(np.ravel(constants.get(_STORED.format(number), "{}"))[0])
        try:
            texts = dict(json.loads(learned))
        except (ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"not what a feature source learns, in number {number + 1} ({error}): adapt again",
                code="damaged",
            ) from error
        settings |= {name: with_tuples(value) for name, value in texts.items()}
        sources.append(FEATURES.restore(record.source, settings))
    moved = _with_moved_files(sources, moved_files or {})
    for source, record in zip(moved, records, strict=True):
        if len(source.files()) != len(record.file_hashes):
            message = f"no record of the files of {source.label} in the posterior: adapt again"
            raise DataError(message, code="damaged")
        for path, recorded_hash in zip(source.files(), record.file_hashes, strict=True):
            if _hash(path, source) != recorded_hash:
                problem = f"has changed since the weights of {source.label} were adapted: restore "
                problem += "the old file, give its new path if it has moved, or adapt again"
                raise DataError(problem, path, parameter="moved_files", code="mismatch")
    return tuple(moved)


def _hash(path: str, source: FeatureSource) -> str:
    """Return the hash of a file; devices and pipes, which may have no end, are not opened."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            reason = "it is not a file, but a folder, a device or a pipe"
        elif status.st_size > _MAX_SIZE:
            reason = f"it has {status.st_size / 2**30:,.0f} GiB, more than {_MAX_SIZE >> 30}"
        else:
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        cause = None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason, cause = getattr(error, "strerror", None) or str(error), error
    problem = f"cannot be read ({reason}), and the features {source.label} need it"
    problem += f": give the new path of {source.label} if it has moved"
    raise DataError(problem, path, parameter="moved_files", code="missing-file") from cause


def _with_moved_files(
    sources: Sequence[FeatureSource], moved_files: MovedFiles
) -> list[FeatureSource]:
    kinds = Counter(map(FEATURES.name_of, sources))
    moved, allowed = [], set[str]()
    for source in sources:
        name = FEATURES.name_of(source)
        keys = [source.label, name] if kinds[name] == 1 else [source.label]
        allowed.update(keys)
        files = next((moved_files[key] for key in keys if key in moved_files), None)
        if files is not None:
            paths = [files] if isinstance(files, str | Path) else files
            source = source.moved([str(path) for path in paths])
        moved.append(source)
    if unknown := moved_files.keys() - allowed:
        name, choices = min(unknown), sorted(allowed)
        raise unknown_name("feature source", name, choices, "moved_files", owner="this posterior")
    return moved


def with_tuples(value: Any) -> Any:
    """Return a setting with tuples in place of JSON arrays."""
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value

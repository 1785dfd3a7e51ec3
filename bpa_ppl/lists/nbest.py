"""NBest: an immutable table of the candidates of many sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import (
    FINITE,
    LARGEST,
    PLAIN,
    Float64,
    Int32,
    Int64,
    are_finite,
    as_array,
    make_freezer,
    slice_indices,
    to_array,
    to_floats,
    to_members,
    to_plain_value,
    to_positions,
    to_texts,
)
from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.named_columns import name_values, select_columns
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl.errors import (
    MEMORY,
    VALUE,
    DataError,
    Remedy,
    bad_value,
    escape_controls,
    list_names,
    wrong_shape,
    wrong_type,
    wrong_value,
)
from bpa_ppl.lists.ids import AnyReferences, find_references, to_references
from bpa_ppl.lists.labels import find_label

K = TypeVar("K", bound=Hashable)
#: An array whose first dimension is the rows, or a tuple of any objects, one per row.
Column: TypeAlias = npt.NDArray[Any] | tuple[Any, ...]
Extras: TypeAlias = Mapping[str, Column]
#: Which rows: a slice gives a view of an array, positions a copy.
Which: TypeAlias = slice | npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class NBest:
    """The n-best lists of a text: a ragged table of features, texts and other columns.

    The candidates of sentence `s` are the rows `offsets[s]` to `offsets[s + 1]`. Each distinct text
    is stored once: the text of row `h` is `strings[string_index[h]]`.

    Parts of a table are tables again: `lists[3]` and each step of a loop is the table of one list,
    `lists[2:5]`, `lists[mask]` and `lists[[4, 0]]` are tables of several. All columns are kept; a
    slice shares its arrays with the original.

    Attributes:
        offsets: (sentences + 1,) int64, the first row of each list, then the number of rows.
        features: (candidates, features) float64, the h of Σ λ·h.
        feature_names: one name per column.
        sentence_ids: (sentences,) int64, as printed in the file; they index the references.
        strings: the distinct candidate texts.
        string_index: (candidates,) int32 into `strings`.
        totals: (candidates,) float64, the total scores of the decoder, or None.
        references: a tuple of references for each sentence, or None.
        sources: the source text of each sentence, or None.
        extras: more columns by name, with one value per candidate: arrays, or tuples of any
            objects.
        sentence_extras: more columns by name, with one value per sentence.
        origin: where the lists came from, for messages.
        totals_normalised: whether the totals may be divided by a length, so that λ·h differs.
        cells: names of extras that are cells of a text file, in which texts may print numbers.

    Raises:
        DataError: if shapes disagree, a list is empty, or a feature or total is not finite.
        UsageError: if references, sources or extras are not as described.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat"], ["hello", "hi", "hey"]],
    ...     [[[1.0, 2.0], [3.0, 2.0]], [[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]]],
    ...     ["LM0", "Words"],
    ...     references=["the cat", "hi"],
    ... )
    >>> lists
    NBest(2 sentences, 5 candidates, 2 features, references)
    >>> lists.sizes.tolist(), lists.rows(1), lists.text(1), lists.texts(1)
    ([2, 3], slice(2, 5, None), 'the cat', ['hello', 'hi', 'hey'])
    >>> best = lists.best(lists.scores({"LM0": 1.0, "Words": 0.5}))
    >>> best.tolist(), lists.chosen(best)
    ([1, 1], ['the cat', 'hi'])
    >>> [part.texts(0) for part in lists.truncate(1)]
    [['a cat'], ['hello']]
    >>> [len(part) for part in lists.chunks(1)], lists.select([1, 0]).sentence_ids.tolist()
    ([1, 1], [1, 0])
    >>> more = lists.with_sources(["un chat", "salut"]).with_sentence_extras(domain=["a", "b"])
    >>> more[1].sources, more[1].sentence_extras["domain"]
    (('salut',), ('b',))
    >>> more.without("references", "domain", "Words")
    NBest(2 sentences, 5 candidates, 1 feature, sources)
    """

    # A new column needs an entry in `COLUMNS`, and no more: methods go through all columns.
    offsets: Int64
    features: Float64
    feature_names: tuple[str, ...]
    sentence_ids: Int64
    strings: tuple[str, ...]
    string_index: Int32
    totals: Float64 | None = None
    references: tuple[tuple[str, ...], ...] | None = None
    sources: tuple[str, ...] | None = None
    extras: Extras = field(default_factory=dict)
    sentence_extras: Extras = field(default_factory=dict)
    origin: str = MEMORY
    totals_normalised: bool = False
    cells: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _convert(self, vars(self))
        _check_values(self)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.sentence_ids)

    def __iter__(self) -> Iterator[NBest]:
        """Yield the table of each list."""
        return self.chunks(1)

    def __getitem__(self, key: Any) -> NBest:
        """Return some lists: by position (from the end if negative), slice, mask or positions."""
        if isinstance(key, slice):
            start, stop, step = slice_indices(key, len(self))
            return self._run(start, stop) if step == 1 else self.select(range(start, stop, step))
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            (position,) = to_positions(key, len(self))
            return self._run(position, position + 1)
        return self.select(key)

    def __repr__(self) -> str:
        counts = len(self), len(self.features), len(self.feature_names)
        facts = list(map(format_count, counts, ("sentence", "candidate", "feature")))
        facts += [name for name, _, _ in _list_optional(self)]
        facts += [f"from {self.origin}"] if self.origin != NBest.origin else []
        return f"NBest({', '.join(facts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings do not pickle; unpickling makes them read-only again.
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {n: dict(v) if isinstance(v, Mapping) else v for n, v in values.items()}
        return partial(NBest, **cast(Any, plain)), ()

    @cached_property
    def sizes(self) -> Int64:
        """(sentences,) int64: the number of candidates of each list."""
        sizes = np.diff(self.offsets)
        sizes.flags.writeable = False
        return sizes

    @property
    def ids(self) -> tuple[int | str, ...]:
        """The ids of the sentences as in the file: texts, or else integers.

        >>> from bpa_ppl import from_records
        >>> lists = from_records([{"id": "doc-7", "text": "a", "lm": 1}])
        >>> lists.ids, lists.sentence_ids.tolist()
        (('doc-7',), [0])
        """
        ids = self.sentence_extras.get("id", ())
        texts = len(ids) and all(isinstance(identifier, str) and identifier for identifier in ids)
        return tuple(ids) if texts else tuple(self.sentence_ids.tolist())

    def rows(self, sentence: int) -> slice:
        """Return the rows of one list."""
        return slice(int(self.offsets[sentence]), int(self.offsets[sentence + 1]))

    def text(self, row: int) -> str:
        """Return the text of the candidate in one row of the table."""
        result: str = self.strings[self.string_index[row]]
        return result

    def texts(self, sentence: int) -> list[str]:
        """Return the texts of one list, in its order."""
        return [self.strings[i] for i in self.string_index[self.rows(sentence)]]

    def chosen(self, choice: npt.ArrayLike) -> list[str]:
        """Return one text per sentence: that of candidate `choice[s]` of list s.

        Raises:
            UsageError: if a choice is not a position in each list.
        """
        return [self.text(row) for row in self.offsets[:-1] + to_choice(self, choice)]

    def select(self, sentences: npt.ArrayLike) -> NBest:
        """Return the lists at some positions, in that order, repeats allowed; or of a boolean mask.

        Raises:
            UsageError: if there is no such position, or a mask is not as long as the lists.
        """
        chosen = to_positions(sentences, len(self))
        sizes = self.sizes[chosen]
        return self.regroup(chosen, _expand_rows(self.offsets[chosen], sizes), sizes)

    def truncate(self, size: int) -> NBest:
        """Return the lists cut to their first `size` candidates, one or more."""
        _check_count(size, "size")
        sizes = np.minimum(self.sizes, min(size, len(self.features)))
        return self.regroup(slice(None), _expand_rows(self.offsets[:-1], sizes), sizes)

    def chunks(self, sentences: int) -> Iterator[NBest]:
        """Yield the lists in groups of at most `sentences`, one or more."""
        _check_count(sentences, "sentences")
        for start in range(0, len(self), sentences):
            yield self._run(start, min(start + sentences, len(self)))

    def regroup(self, sentences: Which, rows: Which, sizes: npt.ArrayLike) -> NBest:
        """Return lists of some of the candidates, with all their columns.

        Args:
            sentences: the sentences of the new lists.
            rows: their candidates, list after list.
            sizes: (sentences,) the number of rows in each list.

        Raises:
            DataError: if the sizes do not fit the rows.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[2.0]]], ["LM0"])
        >>> other = lists.regroup(np.array([1, 0]), np.array([2, 1]), [1, 1])
        >>> other.sentence_ids.tolist(), other.strings
        ([1, 0], ('b', 'c'))
        """
        selections = {"sentence": sentences, "candidate": rows}
        parts: dict[str, Any] = {
            name: take(getattr(self, name), selections[kind])
            for name, (kind, _) in COLUMNS.items()
            if kind in selections
        }
        index, strings = compact_strings(parts.pop("string_index"), self.strings)
        offsets = to_offsets(sizes)
        return _replace(self, offsets=offsets, string_index=index, strings=strings, **parts)

    def with_references(self, references: AnyReferences) -> NBest:
        """Return the same lists with other references: a tuple, or one text, for each, or by id.

        Raises:
            DataError: if there are not as many as sentences, or the ids are not those of the
                sentences.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a"], ["b"]], [[[1.0]], [[2.0]]], ["LM0"])
        >>> lists.with_references({1: "B", 0: ()}).references
        ((), ('B',))
        """
        if isinstance(references, Mapping):
            references = find_references(references, self.ids, self.origin)
        return _replace(self, references=to_references(references))

    def with_sources(self, sources: Iterable[str]) -> NBest:
        """Return the same lists with one source text for each sentence.

        Raises:
            DataError: if there are not as many as sentences.
        """
        return _replace(self, sources=to_texts(sources))

    def with_extras(self, **columns: Any) -> NBest:
        """Return the same lists with other columns: arrays, or sequences kept as tuples.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
        >>> lists.with_extras(gain=np.array([0.5, 1.0]))[0].extras["gain"]
        array([0.5, 1. ])
        """
        return _replace(
            self, extras={**self.extras, **columns}, cells=self.cells.difference(columns)
        )

    def with_sentence_extras(self, **columns: Any) -> NBest:
        """Return the same lists with other columns of one value per sentence.

        Raises:
            DataError: if there are not as many values as sentences.
        """
        return _replace(self, sentence_extras={**self.sentence_extras, **columns})

    def with_features(self, names: str | Sequence[str], columns: npt.ArrayLike) -> NBest:
        """Return the same lists with more features, after the existing ones.

        Args:
            names: one per column.
            columns: (candidates, names), or (candidates,) for a single name. A table with names of
                columns, such as a data frame, is read by name.

        Raises:
            DataError: if there is a feature of that name, or shapes disagree.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
        >>> lists.with_features("Words", [2, 1]).features.tolist()
        [[0.5, 2.0], [1.0, 1.0]]
        """
        added = to_names(names, "names")
        table = to_array(select_columns(columns, added, "columns"), np.float64, "columns")
        table = table[:, np.newaxis] if table.ndim == len(added) == 1 else table
        if table.shape != (shape := (len(self.features), len(added))):
            name = "columns"
            raise wrong_shape(name, table.shape, shape, self.origin, parameter=name)
        existing = set(self.feature_names)
        if repeats := [name for name in added if name in existing]:
            message = f"two features {repeats[0]}: rename one"
            raise DataError(message, self.origin, parameter="names", code="duplicate")
        features = np.concatenate([self.features, table], axis=1)
        extended = _replace(self, features=features, feature_names=(*self.feature_names, *added))
        _check_values(extended)
        return extended

    def without(self, *columns: str) -> NBest:
        """Return the same lists without some columns.

        Args:
            columns: features, by name or label, extras, `totals`, `references` or `sources`.

        Raises:
            UsageError: if there is no such column.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a"]], [[[1.0, 2.0]]], ["LM0", "Words"], references=["A"])
        >>> lists.without("Words", "references")
        NBest(1 sentence, 1 candidate, 1 feature)
        """
        labels = {name: find_label(name) for name in self.feature_names}
        names = [*CAN_LACK, *self.extras, *self.sentence_extras, *labels, *labels.values()]
        allowed = dict.fromkeys(names)
        for name in columns:
            require_one_of(name, allowed, "column", "columns")
        removed = frozenset(columns)
        changed: dict[str, Any] = {name: None for name in CAN_LACK if name in removed}
        for group in ("extras", "sentence_extras"):
            changed[group] = {n: c for n, c in getattr(self, group).items() if n not in removed}
        kept = [k for k, pair in enumerate(labels.items()) if removed.isdisjoint(pair)]
        return _replace(select_features(self, kept), **changed)

    def scores(self, weights: npt.ArrayLike | Mapping[str, float]) -> Float64:
        """Return λ·h, (candidates,), for weights by name, or in the order of the columns.

        Raises:
            DataError: if a feature has no weight, or a score overflows.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a cat", "cat"]], [[[1, 2], [3, 4]]], ["LM0", "Length"])
        >>> lists.scores({"Length": 1.0, "LM0": 0.5}).tolist()
        [2.5, 5.5]
        """
        weights = name_values(weights, "weights")
        if isinstance(weights, Mapping):
            lacking = [name for name in self.feature_names if name not in weights]
            if lacking:
                message = f"no weight for the feature {lacking[0]}: add it"
                raise DataError(message, self.origin, parameter="weights", code="missing-weight")
            weights = [weights[name] for name in self.feature_names]
        vector = to_floats(weights, "weights")
        if vector.shape != (shape := (len(self.feature_names),)):
            name = "weights"
            raise wrong_shape(name, vector.shape, shape, self.origin, parameter=name)
        if not np.isfinite(vector).all():
            k = int(np.argmin(np.isfinite(vector)))
            where, value = f"the weight of {self.feature_names[k]}", float(vector[k])
            raise bad_value(where, value, "a finite number", self.origin, parameter="weights")
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(self.features @ vector)
        if not np.isfinite(scores).all():
            problem = "λ·h overflows: divide the weights, or the features, by a constant"
            raise DataError(problem, self.origin, parameter="weights", code="bad-number")
        return scores

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.feature_names)}

    @cached_property
    def spread(self) -> Float64:
        """(features,) float64: the standard deviation of each feature within the lists.

        Raises:
            DataError: if one is so small that a weight and its square would be too large.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"], ["c"]], [[[1.0], [3.0]], [[9.0]]], ["LM0"])
        >>> round(float(lists.spread[0]) ** 2, 3)
        0.667
        """
        if not len(self):
            return np.zeros(len(self.feature_names))
        result = np.array([measure_deviation(self, column) for column in self.features.T])
        for k in np.flatnonzero((result > 0) & (result < 1 / LARGEST)).tolist():
            problem = f"{self.feature_names[k]} varies by only {result[k]:.1g} within the lists"
            problem += f", less than {1 / LARGEST:g}: multiply the column by a constant"
            raise DataError(problem, self.origin, code="bad-number")
        return result

    def best(self, scores: npt.ArrayLike) -> Int64:
        """Return for each sentence the position of its highest score; the first one of ties.

        Args:
            scores: (candidates,) one number per row of the table.
        """
        values = np.asarray(scores)
        best = [int(np.argmax(values[self.rows(s)])) for s in range(len(self))]
        return np.array(best, dtype=np.int64)

    def _run(self, start: int, stop: int) -> NBest:
        """Return consecutive lists, which share their arrays with these."""
        ends = self.offsets[start : max(start, stop) + 1]
        rows = slice(int(ends[0]), int(ends[-1]))
        return self.regroup(slice(start, stop), rows, np.diff(ends))


def to_names(names: Any, parameter: str = "feature_names") -> tuple[str, ...]:
    """Return the names of features; a single text is one name."""
    chosen = [names] if isinstance(names, str) else to_members(names, parameter)
    if not all(isinstance(name, str) for name in chosen):
        raise wrong_type("the names of features must be texts", names, parameter)
    return tuple(chosen)


def to_choice(lists: NBest, choice: npt.ArrayLike, name: str = "choice") -> Int64:
    """Return an argument that has the position of one candidate in each list.

    Raises:
        UsageError: if it is something else.

    >>> from bpa_ppl import from_lists
    >>> to_choice(from_lists([["a"]], [[[1.0]]], ["LM0"]), [1])
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: choice must be a position, from 0, in each of 1 list, not array([1])
    """
    positions = to_array(choice, None, name)
    if (
        positions.shape != (len(lists),)
        or positions.dtype.kind not in "iu"
        or not np.all((positions >= 0) & (positions < lists.sizes))
    ):
        each = format_count(len(lists), "list")
        raise wrong_type(f"{name} must be a position, from 0, in each of {each}", positions, name)
    return positions.astype(np.int64)


def _check_count(value: Any, name: str) -> None:
    """Raise a UsageError unless an argument is an integer of at least 1."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < 1:
        raise wrong_value(f"{name} must be an integer ≥ 1", value, name)


def content_hash(lists: NBest) -> str:
    """Return a hash of the ids and texts of lists.

    >>> from bpa_ppl import from_lists
    >>> content_hash(from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"]))
    '5730911cdc265d21'
    """
    content = hashlib.sha256(json.dumps([list(map(str, lists.ids)), lists.sizes.tolist()]).encode())
    content.update(json.dumps(lists.strings).encode())
    content.update(np.ascontiguousarray(lists.string_index, np.int64).tobytes())
    return content.hexdigest()[:16]


def centre(values: npt.NDArray[Any], sizes: Int64) -> Float64:
    """Return numbers of candidates minus their means in each list.

    Args:
        values: (candidates,) or (candidates, columns).
        sizes: (lists,) the number of candidates of each list.

    >>> centre(np.array([0.0, 4.0, 1.0]), np.array([2, 1])).tolist()
    [-2.0, 2.0, 0.0]
    """
    result = subtract_first(values, sizes)  # so that a large constant costs no digits
    means = np.add.reduceat(result, np.cumsum(sizes) - sizes, axis=0).T / sizes
    result -= np.repeat(means.T, sizes, axis=0)
    return result


def subtract_first(values: npt.NDArray[Any], sizes: Int64) -> Float64:
    """Return numbers, (candidates, …), minus those of the first candidate of their list.

    >>> subtract_first(np.array([1e12, 1e12 + 0.5, 3.0]), np.array([2, 1])).tolist()
    [0.0, 0.5, 0.0]
    """
    first = values[np.cumsum(sizes) - sizes].astype(np.float64)
    return np.asarray(values - np.repeat(first, sizes, axis=0))


def score_differences(lists: NBest, weights: npt.ArrayLike | Mapping[str, float]) -> Float64:
    """Return the scores of candidates minus that of the first of their list, (candidates,).

    They are λ·h without its rounding where a feature has a large constant in it.

    Raises:
        DataError: as `NBest.scores`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1e15], [1e15 + 0.125]]], ["LM0"])
    >>> score_differences(lists, {"LM0": 0.3}).tolist(), np.diff(lists.scores([0.3])).tolist()
    ([0.0, 0.0375], [0.0])
    """
    differences = subtract_first(lists.features, lists.sizes)
    return _replace(lists, features=differences).scores(weights)


def measure_deviation(lists: NBest, column: npt.NDArray[Any]) -> float:
    """Return the standard deviation within lists of one value per candidate, over all lists.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [3.0]]], ["LM0"])
    >>> measure_deviation(lists, np.array([0.0, 4.0]))
    2.0
    """
    return root_mean_square(centre(column, lists.sizes))


def standardise(lists: NBest, names: Sequence[str]) -> Float64:
    """Return features with the mean 0 in each list and the standard deviation 1 within the lists.

    Returns:
        (candidates, names) numbers.

    >>> from bpa_ppl import from_lists
    >>> standardise(from_lists([["a", "b"]], [[[5.0], [1.0]]], ["LM0"]), ["LM0"]).tolist()
    [[1.0], [-1.0]]
    """
    places = [lists._places[name] for name in names]  # noqa: SLF001
    return centre(lists.features[:, places], lists.sizes) / lists.spread[places]


def root_mean_square(values: Float64) -> float:
    """Return the root of the mean of the squares of numbers of any size.

    >>> root_mean_square(np.array([3e-200, 3e-200]))
    3e-200
    """
    # Divided by a power of two, which rounds nothing: squares of tiny numbers would be 0.
    unit = np.ldexp(1.0, np.frexp(np.abs(values).max(initial=0.0))[1])
    return float(unit * np.sqrt(np.mean((values / unit) ** 2)))


def find_feature(lists: NBest, name: str) -> Float64 | None:
    """Return the values of a feature, (candidates,); None if the lists have no such feature.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0, 2.0], [3.0, 4.0]]], ["LM0", "TM0"])
    >>> find_feature(lists, "TM0").tolist(), find_feature(lists, "WP0")
    ([2.0, 4.0], None)
    """
    place = lists._places.get(name)  # noqa: SLF001
    return None if place is None else lists.features[:, place]


def describe_candidate(lists: NBest, row: int) -> str:
    """Return what messages call the candidate in a row.

    >>> from bpa_ppl import from_lists
    >>> describe_candidate(from_lists([["a"], ["b", "c"]], [[[]], [[], []]], []), 2)
    'candidates[1] of list 1'
    """
    return name_candidate(lists.offsets, lists.ids, row)


def name_candidate(offsets: Int64, ids: Sequence[int | str], row: int) -> str:
    """Return what messages call the candidate in a row of lists with these offsets and ids.

    >>> name_candidate(np.array([0, 1, 3]), ["a", "b"], 2)
    'candidates[1] of list b'
    """
    s = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"candidates[{row - offsets[s]}] of list {ids[s]}"


def missing_values(
    columns: Mapping[str, Float64],
    candidate: Callable[[int], str],
    origin: str,
    lines: Int64 | None = None,
    *,
    parameter: str | None = None,
) -> DataError:
    """Return the error of features without a value for some candidates.

    Args:
        columns: the features, of which some values are NaN.
        candidate: names the candidate in a row.
        origin: where the lists are from.
        lines: of the candidates.
        parameter: that the error is about, where features are read by name.

    >>> lm = np.array([0.5, np.nan])
    >>> print(missing_values({"lm": lm}, "candidates[{}] of list 0".format, "dev.csv"))
    dev.csv: lm is missing for 1 of 2 candidates, the first is candidates[1] of list 0: give ...
    """
    lacking = {name: np.isnan(values) for name, values in columns.items()}
    first = int(np.argmax(np.logical_or.reduce(list(lacking.values()))))
    counts = [f"{n} for {np.count_nonzero(of):,}" for n, of in lacking.items()]
    problem = f"{list_names(counts).replace(' for', ' is missing for', 1)} of "
    problem += f"{format_count(len(lacking[next(iter(lacking))]), 'candidate')}, the first is "
    problem += candidate(first)
    remedies: Sequence[str | Remedy] = ["give each candidate a value"]
    if parameter is not None:
        remedies = fill_or_exclude(columns)
    line = None if lines is None else int(lines[first])
    code = "missing-feature"
    return DataError(problem, origin, line, parameter=parameter, code=code, remedies=remedies)


def fill_or_exclude(names: Collection[str]) -> list[str | Remedy]:
    """Return the remedies for missing values of features.

    >>> [getattr(remedy, "arguments", remedy) for remedy in fill_or_exclude(["lm"])]
    ['give each candidate a value', {'missing': {'lm': 'VALUE'}}, {'exclude': ['lm']}]
    """
    it = "them" if len(names) > 1 else "it"
    return [
        "give each candidate a value",
        Remedy("give a value in their place", {"missing": dict.fromkeys(names, VALUE)}),
        Remedy(f"leave {it} out", {"exclude": list(names)}),
    ]


def demote_to_extras(lists: NBest, columns: Iterable[str]) -> NBest:
    """Return the lists with some of their features as extras, which are not part of any score.

    Names of other columns are ignored.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0, 0.5], [2.0, 0.7]]], ["LM0", "comet"])
    >>> apart = demote_to_extras(lists, ["comet"])
    >>> apart.feature_names, apart.extras["comet"].tolist()
    (('LM0',), [0.5, 0.7])
    """
    features = {name: find_feature(lists, name) for name in columns}
    moved = {name: values for name, values in features.items() if values is not None}
    if not moved:
        return lists
    kept = [place for place, name in enumerate(lists.feature_names) if name not in moved]
    return _replace(select_features(lists, kept), extras={**lists.extras, **moved})


def promote_to_features(lists: NBest, columns: Mapping[str, Float64]) -> NBest:
    """Return the lists with extras, (candidates,) numbers each, as their last features.

    Raises:
        DataError: if a number is not finite, or beyond 1e60.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"]).with_extras(comet=[0.5, 0.7])
    >>> promote_to_features(lists, {"comet": np.array([0.5, 0.7])}).feature_names
    ('LM0', 'comet')
    """
    if not columns:
        return lists
    rest = {name: column for name, column in lists.extras.items() if name not in columns}
    return _replace(lists, extras=rest).with_features([*columns], np.stack([*columns.values()], 1))


def select_features(lists: NBest, places: list[int]) -> NBest:
    """Return the lists with the features at these places, in this order."""
    names = tuple(lists.feature_names[place] for place in places)
    if names == lists.feature_names:
        return lists
    features = np.ascontiguousarray(lists.features[:, places])
    return _replace(lists, features=features, feature_names=names)


def _list_optional(lists: NBest) -> list[tuple[str, str, Column]]:
    """Return (name, `candidate` or `sentence`, column) of the columns that a table may lack."""
    single = [(name, COLUMNS[name][0], getattr(lists, name)) for name in CAN_LACK]
    of_rows = [(name, "candidate", column) for name, column in lists.extras.items()]
    of_lists = [(name, "sentence", column) for name, column in lists.sentence_extras.items()]
    return [entry for entry in [*single, *of_rows, *of_lists] if entry[2] is not None]


def _replace(lists: NBest, **columns: Any) -> NBest:
    """Return a table with other columns; values of features and totals are not checked again."""
    table = object.__new__(NBest)
    values = {f.name: getattr(lists, f.name) for f in fields(lists)}  # not what is cached
    vars(table).update(values, **columns)
    _convert(table, columns)
    return table


def _convert(lists: NBest, names: Collection[str]) -> None:
    """Convert some columns to their types, and check that all columns fit together."""
    for name, (_, convert) in COLUMNS.items():
        if name in names and getattr(lists, name) is not None:
            object.__setattr__(lists, name, convert(getattr(lists, name)))
    _check_shapes(lists)


def _check_shapes(lists: NBest) -> None:
    if lists.sentence_ids.ndim != 1:
        shape = lists.sentence_ids.shape
        name = "sentence_ids"
        raise wrong_shape(name, shape, "(sentences,)", lists.origin, parameter=name)
    rows, sentences = len(lists.string_index), len(lists.sentence_ids)
    if lists.features.shape != (shape := (rows, len(lists.feature_names))):
        expected, name = f"{shape}, texts × names", "features"
        raise wrong_shape(name, lists.features.shape, expected, lists.origin, parameter=name)
    if len(lists.offsets) != sentences + 1 or lists.offsets[[0, -1]].tolist() != [0, rows]:
        there = f"{format_count(sentences, 'list')} and {format_count(rows, 'candidate')}"
        problem = f"{format_count(len(lists.offsets) - 1, 'size')} with the sum "
        problem += f"{lists.offsets[-1]}, but {there}: give the number of candidates of each list"
        raise DataError(problem, lists.origin, parameter="sizes", code="wrong-length")
    for name in find_repeated(lists.feature_names):
        raise DataError(f"two features {name}: rename one", lists.origin, code="duplicate")
    names = [*lists.feature_names, *lists.extras, *lists.sentence_extras]
    if escape_controls("".join(names)) != "".join(names):
        name = next(escape_controls(name) for name in names if escape_controls(name) != name)
        problem = f"the name of the column {name} has a control character: rename it"
        raise DataError(problem, lists.origin, code="bad-name")
    if np.any(lists.sizes < 1):
        empty = lists.sentence_ids[int(np.argmax(lists.sizes < 1))]
        message = f"no candidate of sentence {empty}: give each list at least one"
        raise DataError(message, lists.origin, code="no-data")
    if lists.totals is not None and lists.totals.shape != (rows,):
        name = "totals"
        raise wrong_shape(name, lists.totals.shape, (rows,), lists.origin, parameter=name)
    counts, seen = {"candidate": rows, "sentence": sentences}, set[str]()
    for name, kind, column in _list_optional(lists):
        if name in seen:
            message = f"two columns {name}: rename one"
            raise DataError(message, lists.origin, parameter=name, code="duplicate")
        seen.add(name)
        if len(column) != counts[kind]:
            message = f"{len(column)} values of {name}, but {format_count(counts[kind], kind)}"
            raise DataError(message, lists.origin, parameter=name, code="wrong-length")


def _check_values(lists: NBest) -> None:
    index = lists.string_index
    if len(index) and not 0 <= index.min() <= index.max() < len(lists.strings):
        raise DataError("a candidate has no text", lists.origin, code="mismatch")
    _check_sizes(lists, lists.features, lists.feature_names)
    if lists.totals is not None:
        _check_sizes(lists, lists.totals[:, None], ["the total"])


def _check_sizes(lists: NBest, table: Float64, names: Sequence[str]) -> None:
    """Raise a DataError unless all numbers of a table, (candidates, names), are sound."""
    if are_finite(table):
        return
    if (lacking := np.isnan(table).any(axis=0)).any():
        columns = {names[k]: table[:, k] for k in np.flatnonzero(lacking).tolist()}
        raise missing_values(columns, partial(describe_candidate, lists), lists.origin)
    row, column = np.argwhere(~(np.abs(table) <= LARGEST))[0]
    where = f"{names[column]} of {describe_candidate(lists, row)}"
    value = float(table[row, column])
    raise bad_value(
        where, value, FINITE, lists.origin, remedy="correct it, or divide by a constant"
    )


def _convert_columns(columns: Any, name: str = "extras") -> Mapping[str, Column]:
    """Return read-only columns by name: arrays of numbers remain arrays, all else becomes a tuple.

    Raises:
        UsageError: if they are not given by name, or one is not a sequence.

    >>> dict(_convert_columns({"domain": ["news", "web"]}))
    {'domain': ('news', 'web')}
    """
    if not isinstance(columns, Mapping):
        raise wrong_type(f"{name} must be columns by name, {{name: values}}", columns, name)
    return MappingProxyType({name: _to_column(name, values) for name, values in columns.items()})


def _to_column(name: str, values: Any) -> Column:
    if not isinstance(name, str):
        raise wrong_type("the name of a column must be a text", name, None)
    if hasattr(values, "__array__") and np.ndim(values):
        array = as_array(values)
        if array.ndim > 1 or array.dtype.kind not in "OUS":
            return make_freezer(None)(array)
        values = array.tolist()
    kept = to_members(values, name, f"the column {name} must be a sequence of values")
    return tuple(kept if PLAIN.issuperset(map(type, kept)) else map(to_plain_value, kept))


def take(part: Any, which: Which) -> Any:
    """Return some rows of a column, or of each of several; None if the column is None.

    >>> take(("a", "b", "c"), np.array([2, 0])), take({"n": np.arange(3)}, slice(1, 3))
    (('c', 'a'), {'n': array([1, 2])})
    """
    if part is None:
        return None
    if isinstance(part, Mapping):
        return {name: take(column, which) for name, column in part.items()}
    if isinstance(which, slice) or isinstance(part, np.ndarray):
        return part[which]
    return tuple(map(part.__getitem__, which.tolist()))


def _expand_rows(
    starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the row numbers of consecutive runs that begin at `starts`.

    >>> _expand_rows(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    result: npt.NDArray[np.int64] = np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
    return result


def to_offsets(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the first row of each list, then the number of rows.

    >>> to_offsets([2, 3]).tolist()
    [0, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def compact_strings(
    index: npt.NDArray[np.int32], strings: tuple[str, ...]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return an index without unused strings, and the strings that remain, in their order.

    >>> compact_strings(np.array([2, 0, 2], np.int32), ("a", "b", "c"))[1]
    ('a', 'c')
    """
    if not len(index):
        return index, ()
    first = int(index.min())
    present = np.zeros(int(index.max()) - first + 1, dtype=bool)
    present[index - first] = True
    kept = np.flatnonzero(present)
    if len(kept) == len(strings):
        return index, strings
    numbers = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return numbers[index - first], tuple(map(strings.__getitem__, (kept + first).tolist()))


#: Name of each column -> `candidate`, `sentence` or `table`, and what converts its values.
COLUMNS: dict[str, tuple[str, Any]] = {
    "offsets": ("table", make_freezer(np.int64, "offsets")),
    "feature_names": ("table", to_names),
    "features": ("candidate", make_freezer(np.float64, "features")),
    "sentence_ids": ("sentence", make_freezer(np.int64, "sentence_ids")),
    "string_index": ("candidate", make_freezer(np.int32, "string_index")),
    "totals": ("candidate", make_freezer(np.float64, "totals")),
    "references": ("sentence", to_references),
    "sources": ("sentence", to_texts),
    "extras": ("candidate", _convert_columns),
    "sentence_extras": ("sentence", partial(_convert_columns, name="sentence_extras")),
}
#: How what cannot be used is left out.
DROP = Remedy("drop such candidates", {"bad": "drop"})
#: The columns that may be None.
CAN_LACK = ("totals", "references", "sources")

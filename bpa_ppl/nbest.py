"""NBest: one immutable table of the hypotheses of many sentences, with columns of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from html import escape
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from bpa_ppl import columns as cols
from bpa_ppl.columns import Column, Which, intern, per
from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.labels import matches, places_of
from bpa_ppl.rows.constructors import Constructors

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Extras: TypeAlias = Mapping[str, Column]

_SINGLE = cols.frozen(np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class NBest(Constructors):
    """The n-best lists of a text: ragged, with features, texts and other columns side by side.

    The hypotheses of sentence `s` are the rows `offsets[s]` to `offsets[s + 1]`. Texts are stored
    once each: row `h` reads `strings[string_index[h]]`.

    A sequence whose parts are tables again, as parts of a text are texts: `lists[3]` and each step
    of a loop is the table of one list, `lists[2:5]`, `lists[mask]` and `lists[[4, 0]]` of several,
    and `a + b` of both. Every column goes along; a slice shares its arrays with the whole.

    Attributes:
        offsets: (sentences + 1,) int64, the first row of each list, then the number of rows.
        features: (hypotheses, features) float32, the h of Σ λ·h.
        feature_names: one name a column.
        sentence_ids: (sentences,) int64, as printed in the file; they index the references.
        strings: the distinct hypothesis texts.
        string_index: (hypotheses,) int32 into `strings`.
        totals: (hypotheses,) float32, the decoder's own total scores, where the file has them.
        references: for each sentence the tuple of its references, where they are known.
        sources: for each sentence its source text, where it is known.
        extras: more columns by name with one value a hypothesis: arrays, or tuples of any objects.
        sentence_extras: the same with one value a sentence.
        origin: where the lists came from, for messages.
        totals_normalised: whether the totals may be divided by a length: λ·h does not give them.

    Raises:
        DataError: if shapes disagree, a list is empty, or a feature or total is not finite.
        UsageError: if references, sources or extras are not as described.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat"], ["hello", "hi", "hey"]],
    ...     [[[1.0, 2.0], [3.0, 2.0]], [[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]]],
    ...     ["LM0", "Words"],
    ...     references=["the cat", "hi"],
    ... )
    >>> lists
    NBest(2 sentences, 5 hypotheses, 2 features, references)
    >>> lists.sizes.tolist(), lists.rows(1), lists.text(1), lists.texts(1)
    ([2, 3], slice(2, 5, None), 'the cat', ['hello', 'hi', 'hey'])
    >>> best = lists.best(lists.scores({"LM0": 1.0, "Words": 0.5}))
    >>> best.tolist(), lists.chosen(best)
    ([1, 1], ['the cat', 'hi'])
    >>> [part.texts(0) for part in lists.truncate(1)]
    [['a cat'], ['hello']]
    >>> [len(part) for part in lists.chunks(1)], lists.select([1, 0]).sentence_ids.tolist()
    ([1, 1], [1, 0])
    >>> known = lists.with_sources(["un chat", "salut"]).with_sentence_extras(domain=["a", "b"])
    >>> known[1].sources, known[1].sentence_extras["domain"]
    (('salut',), ('b',))
    >>> bare = known.without("references", "domain").without_features("Words")
    >>> bare
    NBest(2 sentences, 5 hypotheses, 1 feature, sources)
    >>> bare[1].with_sentences_of(lists).references, bare.with_references(["A", "B"])[0].references
    ((('hi',),), (('A',),))
    """

    # A new column is one field here: what is made of lists below goes through all of them alike.
    offsets: Int64
    features: Float32 = field(metadata=per("hypothesis", _SINGLE))
    feature_names: tuple[str, ...]
    sentence_ids: Int64 = field(metadata=per("sentence", cols.frozen(np.int64)))
    strings: tuple[str, ...]
    string_index: Int32 = field(metadata=per("hypothesis", cols.frozen(np.int32)))
    totals: Float32 | None = field(default=None, metadata=per("hypothesis", _SINGLE))
    references: tuple[tuple[str, ...], ...] | None = field(
        default=None, metadata=per("sentence", cols.references)
    )
    sources: tuple[str, ...] | None = field(default=None, metadata=per("sentence", cols.texts))
    extras: Extras = field(default_factory=dict, metadata=per("hypothesis", cols.named))
    sentence_extras: Extras = field(default_factory=dict, metadata=per("sentence", cols.named))
    origin: str = "<memory>"
    totals_normalised: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", cols.frozen(np.int64)(self.offsets))
        for name, (_, convert) in _COLUMNS.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, convert(getattr(self, name)))
        _check_shapes(self)
        counts = {"hypothesis": len(self.features), "sentence": len(self)}
        cols.check_counts(_optional(self), counts, self.origin)
        _check_features(self)
        if self.totals is not None and not np.isfinite(self.totals).all():
            raise DataError("a total score is not a finite number", self.origin)

    @classmethod
    def concatenate(cls, parts: Iterable[NBest], *, renumber: bool = False) -> NBest:
        """Return the lists of several tables, one after the other; `a + b` does it for two.

        Features are matched by name, and stand in the order of the first table. What is a feature
        of some tables and an extra of others becomes an extra.

        Args:
            parts: the tables; each has the same features and other columns.
            renumber: count the sentence ids anew, from 0 on.

        Raises:
            DataError: if a feature or another column is not in each of them, or if two tables
                have a sentence id in common and `renumber` is false.
            UsageError: if there is no table.

        >>> one = NBest.from_lists([["a"]], [[[1.0]]], ["LM0"])
        >>> NBest.concatenate([one, one], renumber=True).sentence_ids.tolist()
        [0, 1]
        """
        tables = list(parts)
        if not tables:
            raise UsageError("there is no table of lists to concatenate: give at least one")
        # What is missing for some hypotheses of one table is no feature of the others either.
        extras = {name for table in tables for name in table.extras}
        tables = [demote_to_extras(table, extras) for table in tables]
        tables = [_with_order(table, tables[0]) for table in tables]
        origins = [table.origin for table in tables]
        ids = [i for table in tables for i in np.unique(table.sentence_ids).tolist()]
        if len(set(ids)) < len(ids) and not renumber:
            raise DataError(
                f"{' and '.join(dict.fromkeys(origins))} have sentence ids in common: "
                "concatenate them with renumber=True, which counts the ids anew"
            )
        strings, numbers = intern(chain.from_iterable(table.strings for table in tables))
        starts = np.cumsum([0, *(len(table.strings) for table in tables)])
        joined: dict[str, Any] = {
            name: cols.joined(name, [getattr(table, name) for table in tables], origins)
            for name in _COLUMNS
        }
        joined["string_index"] = np.concatenate(
            [numbers[s + t.string_index] for s, t in zip(starts, tables, strict=False)]
        )
        if renumber:
            joined["sentence_ids"] = np.arange(len(joined["sentence_ids"]))
        return cls(
            offsets=cols.offsets_of(np.concatenate([table.sizes for table in tables])),
            feature_names=tables[0].feature_names,
            strings=strings,
            origin=" + ".join(dict.fromkeys(origins)),
            totals_normalised=any(table.totals_normalised for table in tables),
            **joined,
        )

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.sentence_ids)

    def __iter__(self) -> Iterator[NBest]:
        """Yield the table of each list."""
        return self.chunks(1)

    def __getitem__(self, key: Any) -> NBest:
        """Return some lists: by position (from the end if negative), slice, mask or positions."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self._run(start, stop) if step == 1 else self.select(range(start, stop, step))
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            (position,) = cols.positions_of(np.asarray([key]), len(self), negative=True)
            return self._run(position, position + 1)
        return self.select(cols.positions_of(np.asarray(key), len(self), negative=True))

    def __add__(self, other: NBest) -> NBest:
        return NBest.concatenate([self, other]) if isinstance(other, NBest) else NotImplemented

    def __repr__(self) -> str:
        return f"NBest({', '.join(_facts(self))})"

    def _repr_html_(self) -> str:
        """Return a short table for notebooks."""
        facts = [*_facts(self), ", ".join(self.feature_names)]
        rows = "".join(f"<tr><td>{escape(fact)}</td></tr>" for fact in facts)
        return f"<table><caption>NBest</caption>{rows}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings do not pickle; and what is built anew is read-only again.
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {n: dict(v) if isinstance(v, Mapping) else v for n, v in values.items()}
        return partial(NBest, **cast(Any, plain)), ()

    @property
    def sizes(self) -> Int64:
        """(sentences,) int64: the number of hypotheses of each list."""
        return np.diff(self.offsets)

    @property
    def ids(self) -> tuple[int | str, ...]:
        """The ids of the sentences as the user gave them: texts, or else whole numbers.

        >>> lists = NBest.from_records([{"id": "doc-7", "text": "a", "lm": 1}])
        >>> lists.ids, lists.sentence_ids.tolist()
        (('doc-7',), [0])
        """
        given = self.sentence_extras.get("id", ())
        texts = len(given) and all(isinstance(one, str) and one for one in given)
        return tuple(given) if texts else tuple(self.sentence_ids.tolist())

    def rows(self, sentence: int) -> slice:
        """Return the rows of one list."""
        return slice(int(self.offsets[sentence]), int(self.offsets[sentence + 1]))

    def text(self, row: int) -> str:
        """Return the text of the hypothesis in one row of the table."""
        result: str = self.strings[self.string_index[row]]
        return result

    def texts(self, sentence: int) -> list[str]:
        """Return the texts of one list, in its order."""
        return [self.strings[i] for i in self.string_index[self.rows(sentence)]]

    def chosen(self, choice: npt.ArrayLike) -> list[str]:
        """Return one text a sentence: that of hypothesis `choice[s]` of list s."""
        return [self.text(row) for row in self.offsets[:-1] + np.asarray(choice)]

    def select(self, sentences: npt.ArrayLike) -> NBest:
        """Return the lists of some sentences, in that order, repeats allowed.

        Args:
            sentences: (n,) positions in 0..len(self)-1; a boolean mask is accepted too.

        Raises:
            UsageError: if there is no such position, or a mask is not as long as the lists.
        """
        chosen = cols.positions_of(np.asarray(sentences), len(self))
        sizes = self.sizes[chosen]
        return self.regroup(chosen, cols.rows_of(self.offsets[chosen], sizes), sizes)

    def truncate(self, size: int) -> NBest:
        """Return the lists cut to their first `size` hypotheses, one or more."""
        if size < 1:
            raise UsageError(f"an n-best list needs at least one hypothesis, not {size}")
        sizes = np.minimum(self.sizes, size)
        return self.regroup(slice(None), cols.rows_of(self.offsets[:-1], sizes), sizes)

    def chunks(self, sentences: int) -> Iterator[NBest]:
        """Yield the lists in groups of at most `sentences`, one or more."""
        if sentences < 1:
            raise UsageError(f"a chunk needs at least one sentence, not {sentences}")
        for start in range(0, len(self), sentences):
            yield self._run(start, min(start + sentences, len(self)))

    def regroup(self, sentences: Which, rows: Which, sizes: npt.ArrayLike) -> NBest:
        """Return lists made of some of the hypotheses, with all that is known of them.

        Args:
            sentences: the sentences of the new lists.
            rows: their hypotheses, those of one list after those of the other.
            sizes: (sentences,) how many of the rows are in each list.

        Raises:
            DataError: if the sizes are not those of the rows.

        >>> lists = NBest.from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[2.0]]], ["LM0"])
        >>> other = lists.regroup(np.array([1, 0]), np.array([2, 1]), [1, 1])
        >>> other.sentence_ids.tolist(), other.strings
        ([1, 0], ('b', 'c'))
        """
        which = {"sentence": sentences, "hypothesis": rows}
        parts: dict[str, Any] = {
            name: cols.each(getattr(self, name), partial(cols.taken, which=which[of]))
            for name, (of, _) in _COLUMNS.items()
        }
        parts["string_index"], parts["strings"] = cols.used(parts["string_index"], self.strings)
        return replace(self, offsets=cols.offsets_of(sizes), **parts)

    def with_references(self, references: Iterable[str | Sequence[str]]) -> NBest:
        """Return the same lists with other references: a tuple, or one text, for each sentence.

        Raises:
            DataError: if there are not as many as sentences.
        """
        return replace(self, references=cols.references(references))

    def with_sources(self, sources: Iterable[str]) -> NBest:
        """Return the same lists with one source text for each sentence.

        Raises:
            DataError: if there are not as many as sentences.
        """
        return replace(self, sources=cols.texts(sources))

    def with_extras(self, **columns: Any) -> NBest:
        """Return the same lists with other columns: arrays, or sequences kept as tuples.

        >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
        >>> lists.with_extras(gain=np.array([0.5, 1.0]))[0].extras["gain"]
        array([0.5, 1. ])
        """
        return replace(self, extras={**self.extras, **columns})

    def with_sentence_extras(self, **columns: Any) -> NBest:
        """Return the same lists with other columns of one value a sentence.

        Raises:
            DataError: if there are not as many values as sentences.
        """
        return replace(self, sentence_extras={**self.sentence_extras, **columns})

    def with_sentences_of(self, other: NBest) -> NBest:
        """Return these lists with the references, sources and all else that others know of them.

        Args:
            other: lists of the same sentences, by their ids, and perhaps of more.

        Raises:
            DataError: if a sentence is not among the others.
        """
        places = {identifier: s for s, identifier in enumerate(other.sentence_ids.tolist())}
        try:
            which = np.array([places[i] for i in self.sentence_ids.tolist()], dtype=np.int64)
        except KeyError as error:
            raise DataError(
                f"sentence id {error} is not in {other.origin}: give lists of the same text",
                self.origin,
            ) from error
        known: dict[str, Any] = {
            name: cols.each(getattr(other, name), partial(cols.taken, which=which))
            for name, (of, _) in _COLUMNS.items()
            if of == "sentence"
        }
        return replace(self, **known)

    def with_features(self, names: str | Sequence[str], columns: npt.ArrayLike) -> NBest:
        """Return the same lists with more features, after those that are there.

        Args:
            names: one a column.
            columns: (hypotheses, names), or (hypotheses,) for one alone.

        Raises:
            DataError: if there is a feature of that name, or shapes disagree.

        >>> lists = NBest.from_lists([["a b", "a"]], [[[0.5], [1.0]]], ["LM0"])
        >>> lists.with_features("Words", [2, 1]).features.tolist()
        [[0.5, 2.0], [1.0, 1.0]]
        """
        added = (names,) if isinstance(names, str) else tuple(names)
        table = np.asarray(columns, dtype=np.float32)
        table = table[:, np.newaxis] if table.ndim == len(added) == 1 else table
        shape = (len(self.features), len(added))
        if table.shape != shape:
            raise DataError(f"new features need the shape {shape}, not {table.shape}", self.origin)
        for name in added:
            if name in self.feature_names:
                raise DataError(
                    f"there is a feature {name} already: use another name, or without_features",
                    self.origin,
                )
        return replace(
            self,
            features=np.concatenate([self.features, table], axis=1),
            feature_names=(*self.feature_names, *added),
        )

    def without_features(self, names: str | Iterable[str]) -> NBest:
        """Return the same lists without some features, named alone or by their label.

        Raises:
            DataError: if there is no such feature.
        """
        left_out = (names,) if isinstance(names, str) else tuple(names)
        for name in left_out:
            if not any(matches(feature, [name]) for feature in self.feature_names):
                there = ", ".join(self.feature_names)
                raise DataError(f"there is no feature {name}: there are {there}", self.origin)
        kept = [k for k, name in enumerate(self.feature_names) if not matches(name, left_out)]
        return replace(
            self,
            features=self.features[:, kept],
            feature_names=tuple(self.feature_names[k] for k in kept),
        )

    def without(self, *columns: str) -> NBest:
        """Return the same lists without some columns: totals, references, sources, or extras.

        Raises:
            UsageError: if there is no such column.
        """
        for name in columns:
            one_of(name, (*_CAN_LACK, *self.extras, *self.sentence_extras), "column")
        changed: dict[str, Any] = {name: None for name in columns if name in _CAN_LACK}
        for group in ("extras", "sentence_extras"):
            changed[group] = {n: c for n, c in getattr(self, group).items() if n not in columns}
        return replace(self, **changed)

    def scores(self, weights: npt.ArrayLike | Mapping[str, float]) -> Float64:
        """Return λ·h, (hypotheses,), for weights by name, or in the order of the columns.

        Raises:
            DataError: if a feature has no weight.

        >>> lists = NBest.from_lists([["a cat", "cat"]], [[[1, 2], [3, 4]]], ["LM0", "Length"])
        >>> lists.scores({"Length": 1.0, "LM0": 0.5}).tolist()
        [2.5, 5.5]
        """
        if isinstance(weights, Mapping):
            lacking = [name for name in self.feature_names if name not in weights]
            if lacking:
                raise DataError(f"no weight for the feature {lacking[0]}: give one", self.origin)
            weights = [weights[name] for name in self.feature_names]
        return np.asarray(self.features @ np.asarray(weights, dtype=np.float64))

    def best(self, scores: npt.ArrayLike) -> Int64:
        """Return for each sentence the position of its highest score; ties go to the first.

        Args:
            scores: (hypotheses,) one number a row of the table.
        """
        values = np.asarray(scores)
        best = [int(np.argmax(values[self.rows(s)])) for s in range(len(self))]
        return np.array(best, dtype=np.int64)

    def _run(self, start: int, stop: int) -> NBest:
        """Return consecutive lists, which share their arrays with these."""
        ends = self.offsets[start : max(start, stop) + 1]
        rows = slice(int(ends[0]), int(ends[-1]))
        return self.regroup(slice(start, stop), rows, np.diff(ends))


def demote_to_extras(nbest: NBest, columns: Iterable[str]) -> NBest:
    """Return the lists with some of their features as extras: kept, but part of no score.

    Names of other columns are ignored.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0, 0.5], [2.0, 0.7]]], ["LM0", "comet"])
    >>> apart = demote_to_extras(lists, ["comet"])
    >>> apart.feature_names, apart.extras["comet"].tolist() == [0.5, np.float32(0.7)]
    (('LM0',), True)
    """
    out = [name for name in columns if name in nbest.feature_names]
    if not out:
        return nbest
    moved = {name: nbest.features[:, nbest.feature_names.index(name)] for name in out}
    kept = [k for k, name in enumerate(nbest.feature_names) if name not in moved]
    return replace(
        nbest,
        features=nbest.features[:, kept],
        feature_names=tuple(nbest.feature_names[k] for k in kept),
        extras={**nbest.extras, **moved},
    )


#: Name of each column -> what has one value each, and how it is kept.
_COLUMNS: dict[str, tuple[str, Any]] = {
    f.name: (f.metadata["per"], f.metadata["convert"]) for f in fields(NBest) if f.metadata
}
_CAN_LACK = tuple(f.name for f in fields(NBest) if f.metadata and f.default is None)
_MANY = tuple(f.name for f in fields(NBest) if f.default_factory is not MISSING)


def _with_order(table: NBest, first: NBest) -> NBest:
    """Return a table with its features in the order of another."""
    if set(table.feature_names) != set(first.feature_names):
        odd = sorted(set(table.feature_names) ^ set(first.feature_names))
        raise DataError(
            f"{', '.join(odd)} is not a feature of both {first.origin} and these lists: leave it "
            "out with without_features, or give lists of the same decoder",
            table.origin,
        )
    if table.feature_names == first.feature_names:
        return table
    order = places_of(first.feature_names, table.feature_names)
    return replace(table, features=table.features[:, order], feature_names=first.feature_names)


def _facts(nbest: NBest) -> list[str]:
    """Return what the line that shows a table says of it."""
    facts = [
        cols.counted(len(nbest), "sentence"),
        cols.counted(len(nbest.features), "hypothesis"),
        cols.counted(len(nbest.feature_names), "feature"),
        *(name for name, _, _ in _optional(nbest)),
    ]
    return facts if nbest.origin == NBest.origin else [*facts, f"from {nbest.origin}"]


def _optional(nbest: NBest) -> list[tuple[str, str, Column]]:
    """Return (name, what has one value each, column) of those columns that a table may lack."""
    single = [(name, _COLUMNS[name][0], getattr(nbest, name)) for name in _CAN_LACK]
    several = [(n, _COLUMNS[g][0], c) for g in _MANY for n, c in getattr(nbest, g).items()]
    return [entry for entry in [*single, *several] if entry[2] is not None]


def _check_shapes(nbest: NBest) -> None:
    rows, sentences = len(nbest.features), len(nbest.sentence_ids)
    ragged = len(nbest.offsets) == sentences + 1 and nbest.offsets[[0, -1]].tolist() == [0, rows]
    named = nbest.features.ndim == 2 and nbest.features.shape[1] == len(nbest.feature_names)
    if not (ragged and named and len(nbest.string_index) == rows):
        raise DataError("the parts of an n-best table disagree in shape", nbest.origin)
    if rows and not 0 <= nbest.string_index.min() <= nbest.string_index.max() < len(nbest.strings):
        raise DataError("a hypothesis has no text", nbest.origin)
    if len(set(nbest.feature_names)) != len(nbest.feature_names):
        raise DataError("two features have the same name", nbest.origin)
    if np.any(nbest.sizes < 1):
        empty = int(np.argmax(nbest.sizes < 1))
        raise DataError(f"the list of sentence {nbest.sentence_ids[empty]} is empty", nbest.origin)


def _check_features(nbest: NBest) -> None:
    finite = np.isfinite(nbest.features)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        sentence = int(np.searchsorted(nbest.offsets, row, side="right")) - 1
        raise DataError(
            f"{nbest.feature_names[column]} of hypothesis {row - nbest.offsets[sentence]} of "
            f"sentence {nbest.sentence_ids[sentence]} is {nbest.features[row, column]}, "
            "not a finite number",
            nbest.origin,
        )

"""NBest: one immutable table of the hypotheses of many sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NBest:
    """The n-best lists of a text: ragged, with features and texts side by side.

    The hypotheses of sentence `s` are the rows `offsets[s]` to `offsets[s + 1]`. Texts are stored
    once each: row `h` reads `strings[string_index[h]]`.

    Attributes:
        offsets: (sentences + 1,) int64, the first row of each list, then the number of rows.
        features: (hypotheses, features) float32, the h of Σ λ·h.
        feature_names: one name a column.
        sentence_ids: (sentences,) int64, as printed in the file; they index the references.
        strings: the distinct hypothesis texts.
        string_index: (hypotheses,) int32 into `strings`.
        totals: (hypotheses,) float32, the decoder's own total scores, where the file has them.
        references: for each sentence the tuple of its references, where they are known.
        source: where the lists came from, for messages.

    Raises:
        DataError: if shapes disagree, a list is empty, or a feature or total is not finite.
    """

    offsets: Int64
    features: Float32
    feature_names: tuple[str, ...]
    sentence_ids: Int64
    strings: tuple[str, ...]
    string_index: Int32
    totals: Float32 | None = None
    references: tuple[tuple[str, ...], ...] | None = None
    source: str = "<memory>"

    def __post_init__(self) -> None:
        for name, kind in _ARRAYS.items():
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _frozen(value, kind))
        _check_shapes(self)
        _check_values(self)

    @classmethod
    def from_lists(
        cls,
        texts: Sequence[Sequence[str]],
        features: Sequence[npt.ArrayLike],
        feature_names: Sequence[str],
        *,
        references: Sequence[Sequence[str]] | None = None,
        totals: Sequence[npt.ArrayLike] | None = None,
    ) -> NBest:
        """Build an NBest from one list of texts and one (hypotheses × features) array a sentence.

        >>> pool = NBest.from_lists([["a b", "a"]], [[[1.0, 0.0], [0.5, 2.0]]], ["LM0", "WP0"])
        >>> len(pool), pool.sizes.tolist(), pool.texts(0)
        (1, [2], ['a b', 'a'])
        """
        tables = [np.asarray(table, dtype=np.float32) for table in features]
        if [len(t) for t in texts] != [len(t) for t in tables]:
            raise DataError("texts and features must have the same number of hypotheses")
        strings, index = intern(text for sentence in texts for text in sentence)
        names = tuple(feature_names)
        return cls(
            offsets=np.concatenate([[0], np.cumsum([len(t) for t in texts])]).astype(np.int64),
            features=np.concatenate(tables) if tables else np.zeros((0, len(names)), np.float32),
            feature_names=names,
            sentence_ids=np.arange(len(texts), dtype=np.int64),
            strings=strings,
            string_index=index,
            totals=None if totals is None else np.concatenate(totals).astype(np.float32),
            references=None if references is None else tuple(tuple(r) for r in references),
        )

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.sentence_ids)

    @property
    def sizes(self) -> Int64:
        """(sentences,) int64: the number of hypotheses of each list."""
        return np.diff(self.offsets)

    def rows(self, sentence: int) -> slice:
        """Return the rows of one list."""
        return slice(int(self.offsets[sentence]), int(self.offsets[sentence + 1]))

    def text(self, row: int) -> str:
        """Return the text of the hypothesis in one row of the table."""
        return self.strings[self.string_index[row]]

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
            UsageError: if there is no such position.
        """
        chosen = _positions(np.asarray(sentences), len(self))
        rows = _rows_of(self.offsets[chosen], self.sizes[chosen])
        return self._taking(chosen, rows, self.sizes[chosen])

    def truncate(self, size: int) -> NBest:
        """Return the lists cut to their first `size` hypotheses."""
        if size < 1:
            raise UsageError(f"an n-best list needs at least one hypothesis, not {size}")
        sizes = np.minimum(self.sizes, size)
        return self._taking(np.arange(len(self)), _rows_of(self.offsets[:-1], sizes), sizes)

    def with_references(self, references: Sequence[Sequence[str]]) -> NBest:
        """Return the same lists with one tuple of references for each sentence."""
        return replace(self, references=tuple(tuple(r) for r in references))

    def chunks(self, sentences: int) -> Iterator[NBest]:
        """Yield the lists in groups of at most `sentences`."""
        for start in range(0, len(self), sentences):
            yield self.select(np.arange(start, min(start + sentences, len(self))))

    def scores(self, weights: npt.ArrayLike) -> Float64:
        """Return λ·h, (hypotheses,), for weights in the order of the columns."""
        return np.asarray(self.features @ np.asarray(weights, dtype=np.float64))

    def best(self, scores: npt.ArrayLike) -> Int64:
        """Return for each sentence the position of its highest score; ties go to the first.

        Args:
            scores: (hypotheses,) one number a row of the table.
        """
        values = np.asarray(scores)
        return np.array(
            [int(np.argmax(values[self.rows(s)])) for s in range(len(self))], dtype=np.int64
        )

    def _taking(self, sentences: Int64, rows: Int64, sizes: Int64) -> NBest:
        return NBest(
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            features=self.features[rows],
            feature_names=self.feature_names,
            sentence_ids=self.sentence_ids[sentences],
            strings=self.strings,
            string_index=self.string_index[rows],
            totals=None if self.totals is None else self.totals[rows],
            references=None
            if self.references is None
            else tuple(self.references[s] for s in sentences),
            source=self.source,
        )


_ARRAYS: dict[str, type[np.generic]] = {
    "offsets": np.int64,
    "features": np.float32,
    "sentence_ids": np.int64,
    "string_index": np.int32,
    "totals": np.float32,
}


def _frozen(array: npt.ArrayLike, kind: type[np.generic]) -> np.ndarray:
    """Return a view that cannot be written to; the caller's own array stays as it is."""
    view = np.asarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view


def intern(texts: Iterator[str] | Sequence[str]) -> tuple[tuple[str, ...], Int32]:
    """Return the distinct texts, in order of first appearance, and the index of each into them.

    >>> strings, index = intern(["b", "a", "b"])
    >>> strings, index.tolist()
    (('b', 'a'), [0, 1, 0])
    """
    known: dict[str, int] = {}
    index = [known.setdefault(text, len(known)) for text in texts]
    return tuple(known), np.array(index, dtype=np.int32)


def _positions(wanted: np.ndarray, count: int) -> Int64:
    """Return positions as integers: an empty list arrives as floats, a mask as booleans."""
    if wanted.dtype == bool:
        return np.flatnonzero(wanted)
    positions = wanted.reshape(-1).astype(np.int64)
    outside = positions[(positions < 0) | (positions >= count)]
    if len(outside):
        raise UsageError(f"there is no sentence {outside[0]}: there are {count}, from 0 on")
    return positions


def _rows_of(starts: Int64, sizes: Int64) -> Int64:
    """Return the row numbers of the runs that begin at `starts`, one run after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - sizes), sizes)


def _check_shapes(nbest: NBest) -> None:
    rows, sentences = len(nbest.features), len(nbest.sentence_ids)
    ragged = len(nbest.offsets) == sentences + 1 and nbest.offsets[[0, -1]].tolist() == [0, rows]
    named = nbest.features.ndim == 2 and nbest.features.shape[1] == len(nbest.feature_names)
    if not (ragged and named and len(nbest.string_index) == rows):
        raise DataError("the parts of an n-best table disagree in shape", nbest.source)
    if rows and not 0 <= nbest.string_index.min() <= nbest.string_index.max() < len(nbest.strings):
        raise DataError("a hypothesis has no text", nbest.source)
    if len(set(nbest.feature_names)) != len(nbest.feature_names):
        raise DataError("two features have the same name", nbest.source)
    if nbest.totals is not None and len(nbest.totals) != rows:
        raise DataError("totals must have one value a hypothesis", nbest.source)
    if nbest.references is not None and len(nbest.references) != sentences:
        raise DataError(
            f"{len(nbest.references)} references for {sentences} sentences", nbest.source
        )
    if np.any(nbest.sizes < 1):
        empty = int(np.argmax(nbest.sizes < 1))
        raise DataError(f"the list of sentence {nbest.sentence_ids[empty]} is empty", nbest.source)


def _check_values(nbest: NBest) -> None:
    if not np.isfinite(nbest.features).all():
        row, column = np.argwhere(~np.isfinite(nbest.features))[0]
        sentence = int(np.searchsorted(nbest.offsets, row, side="right")) - 1
        raise DataError(
            f"{nbest.feature_names[column]} of hypothesis {row - nbest.offsets[sentence]} of "
            f"sentence {nbest.sentence_ids[sentence]} is {nbest.features[row, column]}, "
            "not a finite number",
            nbest.source,
        )
    if nbest.totals is not None and not np.isfinite(nbest.totals).all():
        raise DataError("a total score is not a finite number", nbest.source)

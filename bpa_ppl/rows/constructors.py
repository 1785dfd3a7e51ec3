"""Lists from what Python programs hold, and back: sequences, arrays, records, data frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bpa_ppl import columns as cols
from bpa_ppl.errors import DataError, UsageError, one_of, quoted
from bpa_ppl.notes import warn_user
from bpa_ppl.rows.base import REFERENCE, SOURCE, Rows, SentenceLines, missing_numbers
from bpa_ppl.rows.frames import FrameReader
from bpa_ppl.rows.gathering import Gatherer
from bpa_ppl.rows.records import RecordReader
from bpa_ppl.rows.writing import table_of

_MEMORY = "<memory>"
# What pandas calls an index that has no name; it is no feature.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


class Constructors:
    """How an `NBest` is made of other things than files."""

    @classmethod
    def from_lists(
        cls,
        texts: Sequence[Sequence[str]],
        features: Sequence[npt.ArrayLike],
        feature_names: Sequence[str],
        *,
        references: Iterable[str | Sequence[str]] | None = None,
        totals: Sequence[npt.ArrayLike] | None = None,
        sources: Iterable[str] | None = None,
        extras: Mapping[str, Sequence[Any]] | None = None,
        sentence_extras: Mapping[str, Iterable[Any]] | None = None,
        sentence_ids: npt.ArrayLike | None = None,
    ) -> Self:
        """Build an NBest from one list of texts and one (hypotheses × features) array a sentence.

        Args:
            texts: the hypotheses of each sentence.
            features: their features; a column with None or NaN, missing, becomes an extra.
            feature_names: one name a column.
            references: for each sentence a tuple of references, or one text.
            totals: the decoder's total scores, one sequence a sentence.
            sources: one source text a sentence.
            extras: by name, one sequence a sentence with one value a hypothesis.
            sentence_extras: by name, one value a sentence.
            sentence_ids: whole numbers; 0, 1, … if there are none.

        Raises:
            DataError: if numbers of hypotheses, features or sentences disagree.
            UsageError: if texts, references or sources are not as described.

        >>> from bpa_ppl import NBest
        >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0, 0.0], [0.5, 2.0]]], ["LM0", "WP0"])
        >>> len(lists), lists.sizes.tolist(), lists.texts(0)
        (1, [2], ['a b', 'a'])
        """
        if any(isinstance(list_, str) for list_ in texts):
            raise UsageError("texts are a list of hypotheses for each sentence, not one text")
        tables = [_numbers(table, "features") for table in features]
        if [len(t) for t in texts] != [len(t) if t.ndim else -1 for t in tables]:
            raise DataError("texts and features must have the same number of hypotheses")
        names = tuple(feature_names)
        if any(table.shape[1:] != (len(names),) for table in tables):
            raise DataError(f"each hypothesis needs {len(names)} features, one for each name")
        return cls.from_arrays(
            tuple(chain.from_iterable(texts)),
            np.concatenate(tables) if tables else np.zeros((0, len(names)), np.float32),
            names,
            [len(t) for t in texts],
            references=references,
            totals=None
            if totals is None
            else np.concatenate([_numbers(t, "totals") for t in totals]),
            sources=sources,
            extras={name: cols.flat(lists) for name, lists in (extras or {}).items()},
            sentence_extras=sentence_extras,
            sentence_ids=sentence_ids,
        )

    @classmethod
    def from_arrays(
        cls,
        texts: Sequence[str],
        features: npt.ArrayLike,
        feature_names: Sequence[str],
        sizes: int | npt.ArrayLike,
        *,
        references: Iterable[str | Sequence[str]] | None = None,
        totals: npt.ArrayLike | None = None,
        sources: Iterable[str] | None = None,
        extras: Mapping[str, Any] | None = None,
        sentence_extras: Mapping[str, Iterable[Any]] | None = None,
        sentence_ids: npt.ArrayLike | None = None,
    ) -> Self:
        """Build an NBest from arrays of all hypotheses, those of one sentence after the other's.

        Args:
            texts: (hypotheses,).
            features: (hypotheses, features); a column with None or NaN, missing, becomes an extra.
            feature_names: one name a column.
            sizes: (sentences,) how many hypotheses each has, or one number for all.
            references: for each sentence a tuple of references, or one text.
            totals: (hypotheses,) the decoder's total scores.
            sources: one source text a sentence.
            extras: by name, (hypotheses,) each.
            sentence_extras: by name, one value a sentence.
            sentence_ids: whole numbers; 0, 1, … if there are none.

        Raises:
            DataError: if numbers of hypotheses, features or sentences disagree.
            UsageError: if texts, references or sources are not as described.

        >>> from bpa_ppl import NBest
        >>> lists = NBest.from_arrays(["a b", "a", "c", "d"], np.ones((4, 1)), ["LM0"], 2)
        >>> lists.texts(1), lists.sizes.tolist()
        (['c', 'd'], [2, 2])
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise UsageError("texts are one text for each hypothesis")
        table = _numbers(features, "features")
        names = tuple(feature_names)
        if table.shape != (len(texts), len(names)):
            raise DataError(
                f"{len(texts)} texts and {len(names)} names need features of that shape, not "
                f"{table.shape}"
            )
        counts = _counts(sizes, len(texts))
        strings, index = cols.intern(texts)
        present = np.count_nonzero(~np.isnan(table), axis=0).tolist()
        for note in missing_numbers(dict(zip(names, present, strict=True)), len(texts)):
            warn_user(f"{_MEMORY}: {note}")
        whole = [k for k, found in enumerate(present) if found == len(texts)]
        missing = {n: table[:, k] for k, n in enumerate(names) if k not in whole}
        make: Any = cls
        result: Self = make(
            offsets=cols.offsets_of(counts),
            features=table[:, whole] if missing else table,
            feature_names=tuple(names[k] for k in whole),
            sentence_ids=np.arange(len(counts)) if sentence_ids is None else np.array(sentence_ids),
            strings=strings,
            string_index=index,
            totals=None if totals is None else _numbers(totals, "totals"),
            references=None if references is None else cols.references(references),
            sources=None if sources is None else cols.texts(sources),
            extras={**(extras or {}), **missing},
            sentence_extras={name: tuple(of) for name, of in (sentence_extras or {}).items()},
        )
        return result

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
        *,
        references: Iterable[str | Sequence[str]] | None = None,
        sources: Iterable[str] | None = None,
        bad: str = "error",
        first_id: int = 0,
    ) -> Self:
        """Build an NBest from dictionaries as lines of JSON would have them.

        A record is a sentence, `{"id", "source", "references", "candidates": [{"text", …}]}`, or a
        hypothesis, `{"id", "text", …}`. Numbers become features, all others extras; so do numbers
        that are missing for some hypotheses: absent, None, NaN or an empty text. A column of a
        Hugging Face data set works as well as a list of dictionaries.

        Args:
            records: one by one, or columns by name.
            references: to be used instead of those in the records: for each sentence, in the
                order of the ids, a tuple of references, or one text.
            sources: the same for sources.
            bad: "error", or "drop" to leave out hypotheses with a value that is no finite number.
            first_id: the id of the first sentence; ids that are texts are counted from here.

        Raises:
            DataError: naming the number of the record, from 1 on, if it is not as it should be.
            UsageError: if these are no records.

        >>> from bpa_ppl import NBest
        >>> lists = NBest.from_records([{"id": 0, "text": "a", "lm": -1, "system": "ours"}])
        >>> lists.feature_names, lists.extras["system"]
        (('lm',), ('ours',))
        """
        one_of(bad, ("error", "drop"), "policy")
        reader = RecordReader(_MEMORY, bad, first_id)
        for number, record in enumerate(_each_record(records), 1):
            reader.add(dict(record) if isinstance(record, Mapping) else record, number)
        if reader.layout is None:
            raise UsageError("there are no records: give at least one")
        return cls._gathered(reader.rows(), references, sources, first_id)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        *,
        references: Iterable[str | Sequence[str]] | None = None,
        sources: Iterable[str] | None = None,
        bad: str = "error",
        first_id: int = 0,
    ) -> Self:
        """Build an NBest from a data frame of pandas, polars, PyArrow, or any that Arrow can read.

        A row is a hypothesis: columns `id` and `text`, numbers, which become features, and all
        others, which become extras, as do numbers with missing values; `source`, `reference` and
        `sentence.NAME` belong to the sentence.

        Args:
            frame: the table.
            references: as for `from_records`, like all other arguments.
            sources: as above.
            bad: as above.
            first_id: as above.

        Raises:
            DataError: naming the row, from 1 on, if one is not as it should be.
            UsageError: if it is no data frame.

        >>> import pyarrow as pa
        >>> from bpa_ppl import NBest
        >>> frame = pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [-1.0, -2.0]})
        >>> NBest.from_dataframe(frame).features.tolist()
        [[-1.0], [-2.0]]
        """
        one_of(bad, ("error", "drop"), "policy")
        rows = FrameReader(_MEMORY, bad, first_id).rows(_arrow(frame))
        return cls._gathered(rows, references, sources, first_id)

    def to_dataframe(self) -> Any:
        """Return a data frame of pandas with a row for each hypothesis.

        Columns are `id`, `text`, what belongs to the sentence, the features and the extras. Other
        libraries take the lists as they are: `polars.DataFrame(lists)`, `pyarrow.table(lists)`.

        Raises:
            DataError: if a name is that of another of these columns.
            UsageError: if pandas is not installed.

        >>> from bpa_ppl import NBest
        >>> lists = NBest.from_lists([["a", "b"]], [[[-1.0], [-2.0]]], ["lm"])
        >>> lists.to_dataframe()["lm"].tolist()
        [-1.0, -2.0]
        """
        table = table_of(self, everything=True)
        try:
            return table.to_pandas()
        except ImportError as error:
            raise UsageError(
                "to_dataframe needs pandas: say `pip install pandas`, or hand the lists to another "
                "library, as polars.DataFrame(lists)"
            ) from error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return table_of(self, everything=True).__arrow_c_stream__(requested_schema)

    @classmethod
    def _gathered(
        cls,
        rows: Rows,
        references: Iterable[str | Sequence[str]] | None,
        sources: Iterable[str] | None,
        first_id: int,
    ) -> Self:
        lines: dict[str, SentenceLines] = {}
        if references is not None:
            lines[REFERENCE] = SentenceLines(cols.references(references), "the text")
        if sources is not None:
            lines[SOURCE] = SentenceLines(cols.texts(sources), "the text")
        make: Any = cls
        result: Self = next(Gatherer(make, _MEMORY, lines, first_id).tables([rows]))
        return result


def _numbers(values: npt.ArrayLike, what: str) -> npt.NDArray[np.float32]:
    """Return 32-bit floats.

    Raises:
        DataError: if these are no numbers, or rows of them differ in length.
    """
    try:
        with np.errstate(over="ignore"):  # what is infinite is told with its place
            return np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} are no table of numbers: {error}") from error


def _joined(parts: Sequence[npt.ArrayLike]) -> npt.NDArray[np.float32]:
    return np.concatenate([np.zeros(0, np.float32), *(_numbers(part, "totals") for part in parts)])


def _counts(sizes: int | npt.ArrayLike, hypotheses: int) -> npt.NDArray[np.int64]:
    """Return how many hypotheses each sentence has."""
    given = np.asarray(sizes)
    if given.dtype.kind not in "iu" and given.size:
        raise UsageError(f"sizes are whole numbers, not {quoted(sizes)}")
    if not given.ndim:
        if given < 1 or hypotheses % given:
            raise DataError(f"{hypotheses} hypotheses are no whole lists of {given}")
        return np.full(hypotheses // int(given), given)
    if given.sum() != hypotheses:
        raise DataError(f"sizes sum up to {given.sum()}, and there are {hypotheses} hypotheses")
    return given.astype(np.int64)


def _each_record(records: Any) -> Iterator[Any]:
    """Yield records, made from columns where these are given."""
    if isinstance(records, Mapping):
        columns = {name: _plain(values) for name, values in records.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise DataError("the columns of records differ in length: give each as many values")
        return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise UsageError(f"records are dictionaries, or columns by name, not {quoted(records)}")
    return iter(records)


def _plain(values: Any) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"a column of records is a sequence of values, not {quoted(values)}")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _arrow(frame: Any) -> Any:
    """Return a table of Arrow."""
    import pyarrow as pa
    from pyarrow import interchange

    try:
        if hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        elif hasattr(frame, "__dataframe__"):
            table = interchange.from_dataframe(frame)
        else:
            raise UsageError(
                f"a {type(frame).__name__} is no data frame: give one of pandas, polars or "
                "PyArrow, or use from_records"
            )
    except (pa.ArrowException, TypeError, RuntimeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"the data frame has a column that Arrow cannot read: {reason}") from error
    unnamed = [name for name in table.column_names if _UNNAMED_INDEX.fullmatch(name)]
    return table.drop_columns(unnamed) if unnamed else table

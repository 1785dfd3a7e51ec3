"""Lists from records and data frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bpa_ppl import columns as cols
from bpa_ppl.errors import DataError, UsageError, one_of, quoted
from bpa_ppl.nbest import NBest
from bpa_ppl.rows.base import REFERENCE, SOURCE, Rows, SentenceLines
from bpa_ppl.rows.frames import FrameReader
from bpa_ppl.rows.gathering import Gatherer
from bpa_ppl.rows.records import RecordReader
from bpa_ppl.rows.schema import SchemaReader

# What pandas calls an index without a name, which is not a column of the user's.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")

_References = Iterable[str | Sequence[str]] | None


def from_records(
    records: Iterable[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    references: _References,
    sources: Iterable[str] | None,
    bad: str,
    first_id: int,
) -> NBest:
    """Build an NBest as `NBest.from_records` does.

    >>> from_records([{"id": 0, "text": "a", "lm": -1}], None, None, "error", 0).feature_names
    ('lm',)
    """
    schema = _schema(bad, first_id)
    given = [dict(of) if isinstance(of, Mapping) else of for of in _each_record(records)]
    if not given:
        raise UsageError("there are no records: give at least one")
    rows = RecordReader(schema).rows(given, range(1, len(given) + 1))
    return _gathered(rows, references, sources, first_id)


def from_dataframe(
    frame: Any, references: _References, sources: Iterable[str] | None, bad: str, first_id: int
) -> NBest:
    """Build an NBest as `NBest.from_dataframe` does.

    >>> import pyarrow as pa
    >>> frame = pa.table({"id": [0], "text": ["a"], "lm": [-1.0]})
    >>> from_dataframe(frame, None, None, "error", 0).feature_names
    ('lm',)
    """
    rows = FrameReader(_schema(bad, first_id)).rows(_arrow(frame))
    return _gathered(rows, references, sources, first_id)


def _schema(bad: str, first_id: int) -> SchemaReader:
    return SchemaReader(NBest.origin, one_of(bad, ("error", "drop"), "policy"), first_id)


def _gathered(
    rows: Rows, references: _References, sources: Iterable[str] | None, first_id: int
) -> NBest:
    lines: dict[str, SentenceLines] = {}
    if references is not None:
        lines[REFERENCE] = SentenceLines(cols.references(references), "the text")
    if sources is not None:
        lines[SOURCE] = SentenceLines(cols.texts(sources), "the text")
    return next(Gatherer(NBest.origin, lines, first_id).tables([rows]))


def _each_record(records: Any) -> Iterator[Any]:
    """Yield records, made from columns where these are given."""
    if isinstance(records, Mapping):
        columns = {name: _listed(values) for name, values in records.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise DataError("the columns of records differ in length: give each as many values")
        return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise UsageError(f"records must be dictionaries, or columns by name, not {quoted(records)}")
    return iter(records)


def _listed(values: Any) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"a column of records must be a sequence, not {quoted(values)}")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _arrow(frame: Any) -> Any:
    """Return a data frame as a table of Arrow."""
    import pyarrow as pa
    from pyarrow import interchange

    try:
        if hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        elif hasattr(frame, "__dataframe__"):
            table = interchange.from_dataframe(frame)
        else:
            raise UsageError(
                f"a {type(frame).__name__} is not a data frame: give one of pandas, polars or "
                "PyArrow, or use from_records"
            )
    except (pa.ArrowException, TypeError, RuntimeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"Arrow cannot read a column of the data frame: {reason}") from error
    unnamed = [name for name in table.column_names if _UNNAMED_INDEX.fullmatch(name)]
    return table.drop_columns(unnamed) if unnamed else table

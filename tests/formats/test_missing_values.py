"""Values that are missing: in each format, wherever they are, and what is no missing value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from raising import raises
from table_content import table_content

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.parquet import Parquet

Write = Callable[..., Path]
Rows = list[tuple[int, dict[str, Any]]]
#: Sentence and fields of each candidate; None is a value that is missing.
PARTLY: Rows = [
    (0, {"text": "a", "lm": -1.0, "mqm": None, "by": "x"}),
    (0, {"text": "b", "lm": -2.5, "mqm": 0.0, "by": "y"}),
    (1, {"text": "c", "lm": -3.0, "mqm": None, "by": "x"}),
    (1, {"text": "d", "lm": 4.0, "mqm": None, "by": "z"}),
    (2, {"text": "e", "lm": 0.5, "mqm": -5.0, "by": "x"}),
    (2, {"text": "f", "lm": 0.25, "mqm": -1.0, "by": "y"}),
]
NOTE = "mqm is missing for 3 of 6 candidates: kept as a judgement .usable as the gain., not as a f"


def nested(rows: Rows, missing: Any) -> list[str]:
    """Return JSON lines with the candidates of each sentence; `missing` of `...` leaves out."""
    lists: dict[int, list[dict[str, Any]]] = {}
    for sentence, fields in rows:
        fields = {n: missing if v is None else v for n, v in fields.items()}
        lists.setdefault(sentence, []).append({n: v for n, v in fields.items() if v is not ...})
    return [json.dumps({"id": s, "candidates": candidates}) for s, candidates in lists.items()]


def table(rows: Rows, separator: str) -> list[str]:
    """Return a header and a line for each candidate, with empty cells."""
    names = list(rows[0][1])
    cells = [[s, *("" if of[n] is None else of[n] for n in names)] for s, of in rows]
    return [separator.join(map(str, line)) for line in [["id", *names], *cells]]


def columns(rows: Rows, missing: Any = None) -> dict[str, list[Any]]:
    found = {n: [missing if of[n] is None else of[n] for _, of in rows] for n in rows[0][1]}
    return {"id": [s for s, _ in rows], **found}


def partly(write: Write, way: str) -> NBest:
    """Return the lists, read in some way."""
    kind, _, missing = way.partition(" ")
    value = {"null": None, "empty": "", "absent": ..., "nan": float("nan"), "": None}[missing]
    if kind == "nested":
        return read_nbest(write(*nested(PARTLY, value)))
    if kind in ("csv", "tsv"):
        return read_nbest(write(*table(PARTLY, "," if kind == "csv" else "\t")))
    if kind == "parquet":
        path = write("")
        parquet.write_table(pa.table(columns(PARTLY, value)), path)
        return read_nbest(path)
    if kind == "pandas":
        return NBest.from_dataframe(pd.DataFrame(columns(PARTLY, value)))
    if kind == "records":
        return NBest.from_records(list(map(json.loads, nested(PARTLY, value))))
    features = [[of["lm"], value if of["mqm"] is None else of["mqm"]] for _, of in PARTLY]
    texts = [of["text"] for _, of in PARTLY]
    by: Any = [of["by"] for _, of in PARTLY]
    return NBest.from_arrays(texts, features, ["lm", "mqm"], 2, extras={"by": by})


WAYS = [
    *("nested null", "nested empty", "nested absent", "csv", "tsv"),
    *("parquet null", "parquet nan", "pandas null", "records nan", "arrays nan"),
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_is_missing_for_some_is_an_extra(write: Write, way: str) -> None:
    with pytest.warns(BpaWarning, match=NOTE) as notes:
        nbest = partly(write, way)
    assert len(notes) == 1
    assert nbest.feature_names == ("lm",)
    assert nbest.features[:, 0].tolist() == [of["lm"] for _, of in PARTLY]
    mqm = nbest.extras["mqm"]
    assert isinstance(mqm, np.ndarray)
    assert mqm.dtype == np.float32
    np.testing.assert_array_equal(mqm, [np.nan, 0, np.nan, np.nan, -5, -1])
    assert nbest.extras["by"] == ("x", "y", "x", "z", "x", "y")
    assert nbest.sizes.tolist() == [2, 2, 2]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("level", ["candidates", "sentences"])
@pytest.mark.parametrize("value", [1, "x"])
def test_a_control_character_in_the_name_of_a_column(
    write: Write, level: str, value: float | str
) -> None:
    odd = {"l\am": value}
    good = {"id": 0, "candidates": [{"text": "a", "lm": 1}]}
    inside = [{"text": "a", "lm": 1, **(odd if level == "candidates" else {})}]
    bad = {"id": 5, "candidates": inside, **(odd if level == "sentences" else {})}
    path = write(*map(json.dumps, [good, {**good, "id": 1}, bad, {**good, "id": 6}]))
    for read in (read_nbest, lambda path: list(iter_nbest(path, chunk=1))):
        with raises(DataError, "bad-name", match=r"the column l\\x07m has a control character"):
            read(path)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("value", "match"),
    [("x", "logprob is a field of the sen"), (-1, "1 number in logprob for 2 candidates: give")],
)
def test_a_field_of_sentences_and_of_candidates(
    write: Write, order: int, value: Any, match: str
) -> None:
    lines = [
        {"candidates": ["a", "b"], "logprob": [-1, -2]},
        {"candidates": ["a", "b"], "logprob": [value]},
    ][::order]
    path = write(*map(json.dumps, lines))
    for read in (read_nbest, lambda path: list(iter_nbest(path, chunk=1))):
        with raises(DataError, line=2 if order == 1 else 1, match=match):
            read(path)


def test_totals_and_sources_may_be_missing_for_some(tmp_path: Path) -> None:
    records = [
        {"id": 0, "source": None, "candidates": [{"text": "a", "lm": 1, "total": 2}]},
        {"id": 1, "source": "s", "candidates": [{"text": "b", "lm": 1}]},
    ]
    with pytest.warns(BpaWarning) as notes:
        nbest = NBest.from_records(records)
    assert [str(note.message) for note in notes] == [
        "<memory>: total is missing for 1 of 2 candidates: kept as a judgement (usable as the "
        "gain), not as a feature",
        "<memory>: no source for 1 of 2 sentences: the sources are kept as an extra of the "
        "sentences",
    ]
    assert (nbest.totals, nbest.sources) == (None, None)
    np.testing.assert_array_equal(nbest.extras["total"], [2, np.nan])
    assert nbest.sentence_extras["source"] == (None, "s")
    for name in ("lists.jsonl", "lists.parquet"):
        write_nbest(nbest, tmp_path / name)
        with pytest.warns(BpaWarning):
            assert table_content(read_nbest(tmp_path / name)) == table_content(nbest)


@pytest.mark.usefixtures("small_blocks")
def test_the_long_form_states_what_belongs_to_a_sentence_once(write: Write) -> None:
    lines = [
        {"id": 0, "text": "a", "lm": 1},
        {"id": 0, "text": "b", "lm": 2, "sentence.doc": "d", "reference": "r"},
        {"id": 0, "text": "c", "lm": 2},
        {"id": 1, "text": "d", "lm": 3},
    ]
    with pytest.warns(BpaWarning, match="no reference for 1 sentence, the first of id 1"):
        nbest = read_nbest(write(*map(json.dumps, lines)))
    assert nbest.sentence_extras["doc"] == ("d", None)
    assert nbest.references == (("r",), ())
    lines[2]["sentence.doc"] = "e"
    with pytest.raises(DataError, match=r":3: .*doc"):
        read_nbest(write(*map(json.dumps, lines)))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"lm": "3"}, "lm is '3'"),
        ({"mqm": "3"}, "mqm is '3'"),
        ({"mqm": "good"}, "mqm is 'good'"),
        ({"mqm": True}, "mqm is true"),
        ({"mqm": [3]}, r"mqm is \[3\]"),
        ({"mqm": float("nan")}, "mqm is nan"),
        ({"by": 3}, "by is 3"),
    ],
)
def test_values_of_another_type_are_refused(
    write: Write, place: int, fields: dict[str, Any], value: str
) -> None:
    """The error is in the line, or, in the first line, where the next one is of another type."""
    rows = [(s, {**of, **(fields if k == place else {})}) for k, (s, of) in enumerate(PARTLY)]
    where = rf":{place // 2 + 1}: candidates\[{place % 2}\]\.{value}"
    if place < 2:
        where += r"|:\d: candidates\[\d\]\.(mqm|by) is "
    with pytest.raises(DataError, match=where):
        read_nbest(write(*nested(rows, None)))


@st.composite
def lists(draw: st.DrawFn) -> NBest:
    """Lists with missing values in every kind of column."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    count = sum(sizes)
    number = st.floats(width=32, allow_nan=False, allow_infinity=False)
    some = st.lists(st.none() | number, min_size=count, max_size=count)
    text = st.none() | st.sampled_from(["x", "two words", "é"])
    words = st.lists(text, min_size=count, max_size=count)
    of_sentence = st.lists(text, min_size=len(sizes), max_size=len(sizes))
    references = st.lists(
        st.lists(st.sampled_from(["r", "another r"]), max_size=2).map(tuple),
        min_size=len(sizes),
        max_size=len(sizes),
    )
    mqm = np.array([np.nan, *draw(some)[1:]], np.float32)
    by, doc, known = draw(words), draw(of_sentence), draw(references)
    return NBest.from_arrays(
        [f"t {k}" for k in range(count)],
        np.arange(count)[:, None],
        ["lm"],
        sizes,
        references=known if any(known) else None,
        extras={"mqm": mqm, **({"by": by} if any(by) else {})},
        sentence_extras={"doc": doc} if any(doc) else {},
    )


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize("format", [Jsonl(), Jsonl(long=True), Parquet(), "csv"], ids=repr)
@settings(max_examples=40, deadline=None)
@given(nbest=lists())
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, format: Any, nbest: NBest
) -> None:
    if format == "csv":  # an empty cell among texts is an empty text
        odd = [n for n, of in [*nbest.extras.items(), *nbest.sentence_extras.items()] if None in of]
        nbest = nbest.without(*odd)
    path = tmp_path_factory.mktemp("lists") / "lists"
    write_nbest(nbest, path, format=format)
    assert table_content(read_nbest(path)) == table_content(nbest)

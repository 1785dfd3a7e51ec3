"""What holds in every format: lists read back, bad numbers are named or dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from table_content import table_content

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.moses import Marian
from bpa_ppl.formats.parquet import Parquet
from bpa_ppl.formats.separated import Tsv
from bpa_ppl.formats.sockeye import Sockeye

Write = Callable[..., Path]
Format = str | NBestFormat
#: Formats of lines with features and totals alone; Sockeye has no totals.
SCORED: list[Format] = ["moses", Marian(normalised=False), "travatar", "cdec"]
SOCKEYE: list[Format] = [Sockeye(), Sockeye(costs=False)]
#: Formats that keep everything.
TABLES: list[Format] = [Tsv(quoted=True), "csv"]
WHOLE: list[Format] = ["jsonl", Jsonl(long=True), *TABLES, Parquet(batch=1), "parquet"]


@pytest.mark.filterwarnings("ignore:.*costs:bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize("format", [*SCORED, *SOCKEYE, *WHOLE], ids=repr)
@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(
        st.lists(
            st.just(0.0) | st.floats(width=32, allow_nan=False, allow_infinity=False),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=5,
    ),
    text=st.text(st.characters(exclude_characters="\n\r|\0", exclude_categories=["Cs"])),
    identifier=st.integers(0, 10**12),
)
def test_any_texts_and_numbers_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    format: Format,
    values: list[list[float]],
    text: str,
    identifier: int,
) -> None:
    path = tmp_path_factory.mktemp("out") / "nbest"
    table = np.array(values, np.float32)
    nbest = NBest.from_lists(
        [[text.strip(" "), *(f"t{i}" for i in range(1, len(values)))]],
        [table[:, 1:]],
        ["score[0]", "score[1]"],
        totals=None if format in SOCKEYE else [table[:, 0]],
        sentence_ids=[identifier],
    )
    write_nbest(nbest, path, format=format)
    assert table_content(read_nbest(path, format=format)) == table_content(nbest)


@pytest.mark.parametrize("format", WHOLE, ids=repr)
def test_odd_texts_and_all_columns_read_back(tmp_path: Path, format: Format) -> None:
    nbest = NBest.from_lists(
        [['a "b"\n\t', "é,\\"], ["c\r"]],
        [[[0.1, -0.0], [1e-45, 3e38]], [[1, 2]]],
        ["lm", 'odd, "name"'],
        references=[("x", "y"), ("z", "\n")],
        sources=["s", "t"],
        totals=[[1, 2], [-0.0]],
        extras={"system": [["u", "5a"], ["w"]]},
        sentence_extras={"doc": ["d", "e"]},
        sentence_ids=[7, 3],
    )
    if format not in TABLES:
        spans = ([[1, 2], [3]], [], [[4]])
        nbest = nbest.with_extras(spans=spans).with_sentence_extras(n=[1, 2], share=[0.5, 0.25])
    path = tmp_path / "out.gz"
    write_nbest(nbest, path, format=format)
    reader = format if isinstance(format, Tsv) else "auto"
    for read in (read_nbest, lambda *a, **k: NBest.concatenate(iter_nbest(*a, **k, chunk=1))):
        with pytest.warns(BpaWarning, match="1 sentence with a blank reference, the first of id 3"):
            assert table_content(read(path, format=reader)) == table_content(nbest)


@pytest.mark.parametrize("format", SCORED, ids=repr)
def test_a_text_with_a_line_break_is_not_written(tmp_path: Path, format: Format) -> None:
    nbest = NBest.from_lists([["a\nb"]], [[[1]]], ["LM0"], totals=[[1]])
    with raises(DataError, "not-supported", match="sentence 0"):
        write_nbest(nbest, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["fairseq", "openai", "preference-pairs", "espnet"])
def test_formats_that_are_only_read(tmp_path: Path, toy: NBest, format: str) -> None:
    with raises(UsageError, "not-supported", parameter="format"):
        write_nbest(toy, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


#: Format, header, and a line with a text and a number.
NUMBERS = {
    "moses": ("moses", [], "0 ||| {text} ||| LM0= {value} TM0= 2 0 ||| 0"),
    "moses, total": ("moses", [], "0 ||| {text} ||| LM0= 1 TM0= 2 0 ||| {value}"),
    "marian": ("marian", [], "0 ||| {text} ||| 0-0 ||| F0= {value} ||| -2"),
    "travatar": ("travatar", [], "0 ||| {text} ||| -1 ||| lm={value}"),
    "travatar, score": ("travatar", [], "0 ||| {text} ||| {value} ||| lm=-1"),
    "cdec": ("cdec", [], "0 ||| {text} ||| lm={value} ||| -1"),
    "cdec, score": ("cdec", [], "0 ||| {text} ||| lm=-1 ||| {value}"),
    "fairseq": ("fairseq", ["log"], "H-0\t{value}\t{text}"),
    "kaldi": ("kaldi", [], "u-{rank} {value} {text}"),
    "tsv": ("tsv", ["id\ttext\tlm"], "0\t{text}\t{value}"),
    "csv": ("csv", ["id,text,lm"], '0,{text},"{value}"'),
}


@pytest.mark.parametrize("value", ["nan", "1e39", "1_0", "\u0661"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_bad_number_is_named_or_dropped(write: Write, kind: str, value: str) -> None:
    format, header, line = NUMBERS[kind]
    rows = [
        line.format(text=text, value=value if text == "b" else 1, rank=rank)
        for rank, text in enumerate("abca", 1)
    ]
    path = write(*header, *rows)
    number = len(header) + 2
    with raises(DataError, "bad-number", parameter="bad", line=number, match=f"'{value}'"):
        read_nbest(path, format=format)
    with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
        nbest = read_nbest(path, format=format, bad="drop")
    assert nbest.texts(0) == ["a", "c", "a"]
    assert np.isfinite(nbest.features).all()


RECORDS: dict[str, Callable[[Any], str]] = {
    "jsonl": '{{"id": 0, "text": "{text}", "lm": {value}}}'.format_map,
    "preference-pairs": '{{"chosen": {{"text": "{text}", "lm": {value}}}, "rejected": {{"text": '
    '"z", "lm": 1}}}}'.format_map,
    "sockeye": '{{"sentence_id": {id}, "translation": "z", "score": 1, "translations": '
    '["{text}", "z"], "scores": [{value}, 1]}}'.format_map,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*costs:bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e39"])
@pytest.mark.parametrize("format", RECORDS)
def test_records_with_a_bad_number_are_dropped(write: Write, format: str, value: str) -> None:
    values = {"a": 1, "b": value, "c": 2}
    rows = [{"id": n, "text": t, "value": v} for n, (t, v) in enumerate(values.items())]
    path = write(*map(RECORDS[format], rows))
    with pytest.raises(DataError, match=r"dev\.nbest:2: "):
        read_nbest(path, format=format)
    with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
        nbest = read_nbest(path, format=format, bad="drop")
    assert {"a", "c"} <= set(nbest.strings) <= {"a", "c", "z"}


def test_good_numbers_of_any_shape(write: Write) -> None:
    for format, header, line in NUMBERS.values():
        values = ["-1.5e-05", "-3", "0", "1E2", "+1", ".75"]
        rows = [line.format(text="t", value=v, rank=n) for n, v in enumerate(values, 1)]
        path = write(*header, *rows)
        with warnings.catch_warnings(action="error"):
            nbest = read_nbest(path, format=format)
        columns = [*nbest.features.T, nbest.totals]
        assert any(np.array_equal(c, np.float32(values)) for c in columns if c is not None)

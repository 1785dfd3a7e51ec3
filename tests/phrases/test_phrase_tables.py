"""Tables of phrase pairs: counts, files and invalid files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bpa_ppl import DataError, UsageError
from bpa_ppl.phrases.tables import (
    PhraseCounts,
    PhraseTable,
    aligned,
    read_counts,
    read_pairs,
    read_table,
    write_counts,
    write_table,
)

LINES = "la ||| the ||| 3\nla ||| it ||| 1\nle chat ||| the cat ||| 2\nle ||| the ||| 2.5\n"
EXTRACT = "la ||| the ||| 0-0\nle chat ||| the cat ||| 0-0 1-1\nla ||| the ||| 0-0\n"
MOSES = (
    "la ||| the ||| 0.5 0.1 0.75 0.2 ||| 0-0 ||| 6 4 3 ||| |||\n"
    "la ||| it ||| 1 0.1 0.25 1e-05 ||| 0-0 ||| 1 4 1 ||| |||\n"
)


def table() -> PhraseCounts:
    """Return the counts of `LINES`."""
    return PhraseCounts.of(
        ["la", "la", "le chat", "le"], ["the", "it", "the cat", "the"], [3, 1, 2, 2.5]
    )


def counts_by_pair(result: PhraseCounts) -> list[tuple[str, str, float]]:
    """Return the pairs and their counts."""
    sides = (result.texts("source").to_pylist(), result.texts("target").to_pylist())
    return list(zip(*sides, result.count.tolist(), strict=True))


def tables_equal(one: PhraseCounts, two: PhraseCounts) -> bool:
    """Return whether two tables have equal pairs, counts and marginals."""
    names = ("source", "target", "count", "source_count", "target_count")
    numbers = all(np.array_equal(getattr(one, n), getattr(two, n)) for n in names)
    return numbers and one.sources.equals(two.sources) and one.targets.equals(two.targets)


def test_counts_and_relative_frequencies() -> None:
    result = table()
    assert counts_by_pair(result) == [
        ("la", "it", 1),
        ("la", "the", 3),
        ("le", "the", 2.5),
        ("le chat", "the cat", 2),
    ]
    assert result.conditional("target").tolist() == [0.25, 0.75, 1, 1]
    np.testing.assert_allclose(result.conditional("source"), [1, 3 / 5.5, 2.5 / 5.5, 1])
    assert repr(result) == "PhraseCounts(4 pairs, 3 source phrases, 3 target phrases)"


def test_phrase_with_zero_count_has_zero_probability() -> None:
    assert PhraseCounts.of(["a", "b"], ["x", "x"], [0, 1]).conditional("target").tolist() == [0, 1]


def test_equal_pairs_are_summed() -> None:
    assert counts_by_pair(PhraseCounts.of(["b", "a", "b"], ["x", "x", "x"], [1, 2, 3])) == [
        ("a", "x", 2),
        ("b", "x", 4),
    ]


def test_spaces_are_normalised(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("  le  chat\t noir  ||| the\u00a0x ||| 1\nle ||| \u00a0 ||| 2 \n")
    assert counts_by_pair(read_counts(tmp_path / "t")) == [
        ("le", "\u00a0", 2),
        ("le chat noir", "the\u00a0x", 1),
    ]


def test_rows_of_finds_pairs_by_text() -> None:
    result = table().rows(["le", "la", "chat", "le", "le chat"], ["the", "the", "the", "x", "it"])
    assert result.tolist() == [2, 1, -1, -1, -1]
    assert PhraseCounts.of([], [], []).rows(["le"], ["the"]).tolist() == [-1]
    other = PhraseCounts.of(["zut", "le"], ["the", "the"], [1, 1])
    assert table().rows_of(other).tolist() == [2, -1]


def test_tables_are_aligned() -> None:
    other = PhraseCounts.of(["zut", "le", "a"], ["damn", "the", "to"], [7, 8, 9])
    one, two = aligned(table(), other)
    assert one.sources is two.sources
    assert one.sources.to_pylist() == ["a", "la", "le", "le chat", "zut"]
    assert (counts_by_pair(one), counts_by_pair(two)) == (
        counts_by_pair(table()),
        counts_by_pair(other),
    )
    assert one.source_count.tolist() == [0, 4, 2.5, 2, 0]
    assert two.target_count.tolist() == [7, 0, 8, 0, 9]
    assert one.rows_of(two).tolist() == [-1, 2, -1]


@pytest.mark.parametrize("name", ["t.parquet", "t.txt", "t.xz"])
def test_counts_round_trip(name: str, tmp_path: Path) -> None:
    write_counts(table(), tmp_path / name)
    assert tables_equal(read_counts(tmp_path / name), table())


def test_parquet_keeps_marginals_of_larger_table(tmp_path: Path) -> None:
    part = table().with_marginals(target=(["the cat", "x", "the", "it"], [2, 1, 9, 4]))
    assert part.target_count.tolist() == [4, 9, 2]
    assert part.conditional("source").tolist() == [1 / 4, 3 / 9, 2.5 / 9, 1]
    write_counts(part, tmp_path / "t.parquet")
    assert tables_equal(read_counts(tmp_path / "t.parquet"), part)


def test_files_of_marginals(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(LINES)
    (tmp_path / "src").write_text("la ||| 10\nle ||| 3\nle chat ||| 2\nx ||| 5\n")
    result = read_counts(tmp_path / "t", source_counts=tmp_path / "src")
    assert result.source_count.tolist() == [10, 3, 2]
    (tmp_path / "src").write_text("la ||| 10\nle ||| 2\nle chat ||| 2\n")
    with pytest.raises(DataError, match=r"'le' is 2, below the 2\.5 of its pairs"):
        read_counts(tmp_path / "t", source_counts=tmp_path / "src")
    (tmp_path / "src").write_text("la ||| 10\nle ||| ?\n")
    with pytest.raises(DataError, match=r"src:2: field 2 must be a number ≥ 0, not '\?'"):
        read_counts(tmp_path / "t", source_counts=tmp_path / "src")


def test_moses_formats(tmp_path: Path) -> None:
    (tmp_path / "extract").write_text(EXTRACT)
    assert counts_by_pair(read_counts(tmp_path / "extract")) == [
        ("la", "the", 2),
        ("le chat", "the cat", 1),
    ]
    (tmp_path / "table.gz").write_bytes(gzip.compress(MOSES.encode()))
    assert counts_by_pair(read_counts(tmp_path / "table.gz")) == [("la", "it", 1), ("la", "the", 3)]
    result = read_table(tmp_path / "table.gz")
    assert {name: values.tolist() for name, values in result.columns.items()} == {
        "inverse": [1, 0.5],
        "inverse_lexical": [0.1, 0.1],
        "direct": [0.25, 0.75],
        "direct_lexical": [1e-05, 0.2],
    }


@pytest.mark.parametrize("end", ["", " |||", " ||| |||", " ||| ||| {{Segment 1}}"])
def test_moses_line_endings(end: str, tmp_path: Path) -> None:
    line = "la ||| the ||| 0.5 0.1 0.75 0.2 ||| 0-0 ||| 6 4 3"
    (tmp_path / "t").write_text(f"{line}{end}\r\n")
    assert counts_by_pair(read_counts(tmp_path / "t")) == [("la", "the", 3)]
    assert read_table(tmp_path / "t").columns["direct"].tolist() == [0.75]


@pytest.mark.parametrize("name", ["p.parquet", "p.gz"])
def test_probabilities_round_trip(name: str, tmp_path: Path) -> None:
    columns = {"direct": np.array([0.1, 1 / 3, 1e-9, 1]), "inverse": np.array([1, 0, 0.5, 0.25])}
    created = PhraseTable.on(table(), columns)
    write_table(created, tmp_path / name)
    result = read_table(tmp_path / name)
    assert result.texts("source").equals(created.texts("source"))
    assert result.texts("target").equals(created.texts("target"))
    assert {k: v.tolist() for k, v in result.columns.items()} == {
        k: v.tolist() for k, v in created.columns.items()
    }


@pytest.mark.parametrize("name", ["t.parquet", "t", "extract", "table.gz", "p.parquet"])
def test_read_pairs_of_any_table(name: str, tmp_path: Path) -> None:
    write_counts(table(), tmp_path / "t.parquet")
    (tmp_path / "t").write_text(LINES)
    (tmp_path / "extract").write_text(EXTRACT)
    (tmp_path / "table.gz").write_bytes(gzip.compress(MOSES.encode()))
    columns = {"direct": table().conditional("target")}
    write_table(PhraseTable.on(table(), columns), tmp_path / "p.parquet")
    read = read_table if name in ("table.gz", "p.parquet") else read_counts
    result, expected = read_pairs(tmp_path / name), read(tmp_path / name)
    for side in ("source", "target"):
        assert result.texts(side).to_pylist() == expected.texts(side).to_pylist()


def test_moses_columns_begin_with_p_of_source_given_target(tmp_path: Path) -> None:
    columns = {"direct": np.array([0.5, 0.5, 1, 1]), "inverse": np.array([0.25, 0, 0, 0])}
    write_table(PhraseTable.on(table(), columns), tmp_path / "t")
    assert (tmp_path / "t").read_text().splitlines()[0] == "la ||| it ||| 0.25 0.5"


def test_rejects_writing_named_columns_as_text(tmp_path: Path) -> None:
    for columns in ({"direct": np.ones(4)}, {"direct.in": np.ones(4), "direct.out": np.ones(4)}):
        with pytest.raises(UsageError, match=r"a table of Moses cannot store .*\.parquet"):
            write_table(PhraseTable.on(table(), columns), tmp_path / "t.gz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("a cat\n", ":1: not a table of phrases"),
        ("la ||| the ||| x\n", ":1: not a table of phrases"),
        ("la |||  ||| 3\n", ":1: not a table of phrases"),
        (LINES + "la ||| the\n", ":5: 2 fields, but the first line has 3"),
        (LINES + "la ||| the ||| 1 ||| 2\n", ":5: 4 fields"),
        (LINES + "\n", ":5: 1 fields"),
        (LINES + " ||| the ||| 1\n", ":5: the phrase is empty"),
        (LINES + "la ||| it ||| x\n", ":5: field 3 must be a number ≥ 0, not 'x'"),
        (LINES + "la ||| it ||| -1\n", ":5: field 3 must be a number ≥ 0, not '-1'"),
        (LINES + "la ||| it ||| nan\n", ":5: field 3 must be"),
        (LINES + "la ||| it ||| 1 2\n", ":5: field 3 must be"),
        (LINES + "la\x1f ||| it ||| 1\n", r":5: the line has a control character \(U\+001F\)"),
        (EXTRACT + "la ||| the ||| 0-\n", ":4: alignment points must be like 0-0 1-2, not '0-'"),
        ("la ||| the ||| 0.5 0.5\n", ":1: the phrase table has scores but no counts"),
        (MOSES + "la ||| a ||| 1 1 1 1 ||| 0-0 ||| 1 ||| |||\n", ":3: field 5 must be 3 numbers"),
    ],
)
def test_rejects_invalid_counts(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text, "utf-8")
    with pytest.raises(DataError, match=f"t{message}" if message[0] == ":" else message):
        read_counts(tmp_path / "t")


def test_rejects_invalid_utf8(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(LINES.encode() + b"caf\xe9 ||| the ||| 1\n")
    with pytest.raises(DataError, match="t:5: byte 0xe9 is not UTF-8"):
        read_counts(tmp_path / "t")
    with pytest.raises(DataError, match="no such file"):
        read_counts(tmp_path / "absent")
    (tmp_path / "t.gz").write_bytes(gzip.compress(LINES.encode())[:-9])
    with pytest.raises(DataError, match=r"t\.gz: the gzip data end too early"):
        read_counts(tmp_path / "t.gz")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": ["a"], "count": [1.0]}, "no column target"),
        ({"source": ["a"], "target": [1], "count": [1.0]}, "no column target of texts"),
        ({"source": ["a"], "target": [None], "count": [1.0]}, "no column target of texts"),
        ({"source": ["a", None], "target": ["x", "y"]}, "the column source has empty rows"),
        ({"source": ["a"], "target": ["x"]}, "no column count"),
        ({"source": ["a"], "target": ["x"], "count": ["1"]}, "count must have a number"),
        ({"source": ["a", "b"], "target": ["x", "y"], "count": [1.0, -1]}, ":2: count must be"),
    ],
)
def test_rejects_invalid_parquet(columns: dict, message: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=message):
        read_counts(tmp_path / "t.parquet")


def test_rejects_truncated_parquet(tmp_path: Path) -> None:
    write_counts(table(), tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-20])
    with pytest.raises(DataError, match="not a valid Parquet file"):
        read_counts(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EXTRACT, "the file has extracted phrase pairs, not probabilities"),
        (
            "la ||| the ||| 0.5 1.5\n",
            ":1: scores of a phrase table must be probabilities, not 1.5",
        ),
        ("la ||| the ||| 0.5 1\nla ||| the ||| 0.5 1\n", "the pair la ||| the occurs twice"),
    ],
)
def test_rejects_invalid_probabilities(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(DataError, match=message.replace("|", r"\|")):
        read_table(tmp_path / "t")


def test_counts_are_not_read_as_probabilities(tmp_path: Path) -> None:
    write_counts(table(), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="counts, not probabilities"):
        read_table(tmp_path / "t.parquet")


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        write_counts(table(), tmp_path / "absent" / "t.parquet")
    with pytest.raises(DataError, match="not probabilities"):
        PhraseTable.on(table(), {"direct": np.full(4, 1.5)})
    with pytest.raises(DataError, match="3 values of direct for 4 pairs"):
        PhraseTable.on(table(), {"direct": np.ones(3)})

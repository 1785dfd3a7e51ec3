"""Tables of phrase pairs: counts, files and invalid files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from support.phrase_pairs import counts_by_pair, pairs_of, tables_equal
from support.raising import raises

from bpa_ppl import DataError, UsageError
from bpa_ppl.extras.phrases.table_files import read_counts, read_table, write_counts, write_table
from bpa_ppl.extras.phrases.tables import PhraseCounts, PhraseTable, align_phrases

LINES = "la ||| the ||| 3\nla ||| it ||| 1\nle chat ||| the cat ||| 2\nle ||| the ||| 2.5\n"
EXTRACT = "la ||| the ||| 0-0\nle chat ||| the cat ||| 0-0 1-1\nla ||| the ||| 0-0\n"
MOSES = (
    "la ||| the ||| 0.5 0.1 0.75 0.2 ||| 0-0 ||| 6 4 3 ||| |||\n"
    "la ||| it ||| 1 0.1 0.25 1e-05 ||| 0-0 ||| 1 4 1 ||| |||\n"
)
#: The counts of `LINES`.
TABLE = PhraseCounts.of(
    ["la", "la", "le chat", "le"], ["the", "it", "the cat", "the"], [3, 1, 2, 2.5]
)


def test_counts_and_relative_frequencies() -> None:
    pairs = {("la", "it"): 1, ("la", "the"): 3, ("le", "the"): 2.5, ("le chat", "the cat"): 2}
    assert list(counts_by_pair(TABLE).items()) == list(pairs.items())
    assert (TABLE.source_count.tolist(), TABLE.target_count.tolist()) == ([4, 2.5, 2], [1, 5.5, 2])


def test_spaces_are_normalised(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("  le  chat\t noir  ||| the\u00a0x ||| 1\nle ||| \u00a0 ||| 2 \n")
    assert counts_by_pair(read_counts(tmp_path / "t")) == {
        ("le", "\u00a0"): 2,
        ("le chat noir", "the\u00a0x"): 1,
    }


@pytest.mark.parametrize("count", [1, 2, 30])
def test_best_translations_of_each_source_phrase(count: int) -> None:
    rng = np.random.default_rng(3)
    names = [(f"s{n % 7}", f"t{n}") for n in range(60)]
    pairs = PhraseCounts.of(*zip(*names, strict=True), rng.integers(1, 9, 60))
    direct = rng.integers(1, 5, (2, 60)) / 8
    table = PhraseTable.from_pairs(pairs, {"direct.in": direct[0], "direct.out": direct[1]})
    expected = set()
    for source in range(7):
        rows = [row for row in range(60) if table.source[row] == source]
        expected |= set(sorted(rows, key=lambda row: -direct[:, row].sum())[:count])
    kept = table.best(count)
    assert pairs_of(kept) == [pairs_of(table)[row] for row in sorted(expected)]
    assert kept.columns["direct.in"].tolist() == direct[0, sorted(expected)].tolist()
    with raises(UsageError, parameter="best"):
        table.best(0)


def test_tables_are_aligned() -> None:
    other = PhraseCounts.of(["zut", "le", "a"], ["damn", "the", "to"], [7, 8, 9])
    assert TABLE.find_rows(other).tolist() == [-1, 2, -1]
    assert PhraseCounts.of([], [], []).find_rows(other).tolist() == [-1, -1, -1]
    one, two = align_phrases(TABLE, other)
    assert one.sources is two.sources
    assert one.sources.to_pylist() == ["a", "la", "le", "le chat", "zut"]
    assert counts_by_pair(one) == counts_by_pair(TABLE)
    assert counts_by_pair(two) == counts_by_pair(other)
    assert one.source_count.tolist() == [0, 4, 2.5, 2, 0]
    assert two.target_count.tolist() == [7, 0, 8, 0, 9]
    assert one.find_rows(two).tolist() == [-1, 2, -1]


@pytest.mark.parametrize("name", ["t.parquet", "t.txt", "t.xz"])
def test_counts_round_trip(name: str, tmp_path: Path) -> None:
    write_counts(TABLE, tmp_path / name)
    assert tables_equal(read_counts(tmp_path / name), TABLE)


def test_moses_formats(tmp_path: Path) -> None:
    (tmp_path / "extract").write_text(EXTRACT)
    counts = counts_by_pair(read_counts(tmp_path / "extract"))
    assert counts == {("la", "the"): 2, ("le chat", "the cat"): 1}
    (tmp_path / "table.gz").write_bytes(gzip.compress(MOSES.encode()))
    counts = counts_by_pair(read_counts(tmp_path / "table.gz"))
    assert counts == {("la", "it"): 1, ("la", "the"): 3}
    columns = {name: list(c) for name, c in read_table(tmp_path / "table.gz").columns.items()}
    assert columns == {"inverse": [1, 0.5], "direct": [0.25, 0.75]}


@pytest.mark.parametrize("name", ["p.parquet", "p.gz", "p"])
def test_probabilities_round_trip(name: str, tmp_path: Path) -> None:
    columns = {"direct": np.array([0.1, 1 / 3, 1e-9, 1]), "inverse": np.array([1, 0, 0.5, 0.25])}
    write_table(PhraseTable.from_pairs(TABLE, columns), tmp_path / name)
    result = read_table(tmp_path / name)
    assert pairs_of(result) == pairs_of(TABLE)
    assert set(result.columns) == set(columns)
    for column, values in columns.items():
        assert result.columns[column].tolist() == values.tolist()
    if name == "p":  # p(s|t) is the first column of Moses
        assert (tmp_path / name).read_text().startswith("la ||| it ||| 1 0.1\n")


@pytest.mark.parametrize(
    ("read", "text", "code", "line"),
    [
        (read_counts, "", "no-data", None),
        (read_counts, "la ||| the ||| x\n", "unknown-format", 1),
        (read_counts, f"{LINES}la ||| the\n", "bad-line", 5),
        (read_counts, f"{LINES} ||| the ||| 1\n", "bad-line", 5),
        (read_counts, f"{LINES}la ||| it ||| x\n", "bad-number", 5),
        (read_counts, f"{LINES}la ||| it ||| -1\n", "bad-number", 5),
        (read_counts, f"{LINES}la ||| it ||| nan\n", "bad-number", 5),
        (read_counts, f"{LINES}la ||| it ||| 1 2\n", "bad-number", 5),
        (read_counts, f"{EXTRACT}la ||| the ||| 0-\n", "bad-line", 4),
        (read_counts, "la ||| the ||| 0.5 0.5\n", "missing-column", 1),
        (read_counts, f"{MOSES}la ||| a ||| 1 1 1 1 ||| 0-0 ||| 1 ||| |||\n", "bad-number", 3),
        (read_table, EXTRACT, "unknown-format", 1),
        (read_table, "la ||| the ||| 0.5 0.5 0.5\n", "unknown-format", 1),
        (read_table, "la ||| the ||| 0.5 1.5\n", "bad-number", 1),
    ],
)
def test_rejects_invalid_text(
    read: Callable, text: str, code: str, line: int | None, tmp_path: Path
) -> None:
    (tmp_path / "t").write_text(text, "utf-8")
    with raises(DataError, code, line=line, match="/t:"):
        read(tmp_path / "t")


def test_rejects_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_counts(TABLE, path)
    with raises(DataError, "bad-number", line=2, match="count is"):  # no probabilities
        read_table(path)
    files = {
        "t": (LINES.encode() + b"caf\xe9 ||| the ||| 1\n", "bad-encoding", 5),
        "t.gz": (gzip.compress(LINES.encode())[:-9], "damaged", None),
        "t.parquet": (path.read_bytes()[:-20], "damaged", None),
    }
    for name, (content, code, line) in files.items():
        (tmp_path / name).write_bytes(content)
        with raises(DataError, code, line=line, match=f"{name}:"):
            read_counts(tmp_path / name)
    with raises(DataError, "missing-file", match="absent"):
        read_counts(tmp_path / "absent")


A, AB, XY = ["a"], ["a", "b"], ["x", "y"]


@pytest.mark.parametrize(
    ("columns", "code", "line"),
    [
        ({"source": A, "target": [1], "count": [1.0]}, "missing-column", None),
        ({"source": ["a", None], "target": XY}, "bad-line", None),
        ({"source": A, "target": A}, "missing-column", None),
        ({"source": A, "target": A, "count": ["1"]}, "bad-number", None),
        ({"source": AB, "target": XY, "count": [1.0, -1]}, "bad-number", 2),
    ],
)
def test_rejects_invalid_parquet(
    columns: dict[str, Any], code: str, line: int | None, tmp_path: Path
) -> None:
    marginals = dict.fromkeys(("source_count", "target_count"), [1.0] * len(columns["source"]))
    parquet.write_table(pa.table(columns | marginals), tmp_path / "t.parquet")
    with raises(DataError, code, line=line, match=r"t\.parquet"):
        read_counts(tmp_path / "t.parquet")


def test_rejects_tables_that_cannot_be_written(tmp_path: Path) -> None:
    with raises(DataError, "cannot-write", match="absent"):
        write_counts(TABLE, tmp_path / "absent" / "t.parquet")
    for columns in ({"direct": np.ones(4)}, {"direct.in": np.ones(4), "direct.out": np.ones(4)}):
        with raises(UsageError, "not-supported", parameter="path"):
            write_table(PhraseTable.from_pairs(TABLE, columns), tmp_path / "t.gz")
    assert not list(tmp_path.iterdir())

"""Tables of arenas: two models, and the winner."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from raising import raises
from table_content import table_content

from bpa_ppl import NBest, adapt, describe, point_weights, read_nbest, write_nbest
from bpa_ppl.errors import DataError

GOLDEN = Path(__file__).parent / "golden" / "arena.csv"
Write = Callable[..., Path]


def turns(*texts: str) -> list[dict[str, str]]:
    """Return a conversation of a user and an assistant."""
    return [
        {"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)
    ]


def battles() -> list[dict[str, Any]]:
    """Return rows of an arena with conversations, one of them of several turns."""
    common = {"judge": "ann", "turn": 1}
    return [
        {"question_id": "q1", "model_a": "X", "model_b": "Y", "winner": "model_b", **common}
        | {"conversation_a": turns("hi", "hello"), "conversation_b": turns("hi", "bye")}
        | {"rm_a": 0.5, "rm_b": 2},
        {"question_id": "q2", "model_a": "Z", "model_b": "X", "winner": "tie", **common}
        | {"conversation_a": turns("1?", "2", "so?", "yes")}
        | {"conversation_b": turns("1?", "3", "so?", "no"), "rm_a": 0.25, "rm_b": -1},
    ]


def test_the_golden_file() -> None:
    lists = read_nbest(GOLDEN, strict=True)
    assert lists.sources == ("Un chat", "Été", "1")
    expected = [["a cat, small", "cat"], ["summer", "summer\ntime"], ["2", "3"]]
    assert [lists.texts(s) for s in range(3)] == expected
    assert lists.extras["system"] == ("X", "Y", "Y", "Z", "Z", "X")
    assert lists.feature_names == ("reward",)
    assert lists.features[:, 0].tolist() == [1.5, -2, 0.25, 0.5, -1, 0]
    assert lists.sentence_extras["preferences"] == ([[0, 1]], [], [[1, 0]])
    assert lists.sentence_extras["ties"] == ([], [[0, 1]], [])
    assert lists.sentence_extras["judge"] == ("ann", "bob", "ann")


def test_conversations_in_every_way(write: Write, tmp_path: Path) -> None:
    rows = battles()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "arena.parquet")
    tables = [
        NBest.from_records(rows),
        NBest.from_records({name: [row[name] for row in rows] for name in rows[0]}),
        NBest.from_dataframe(pa.Table.from_pylist(rows)),
        read_nbest(tmp_path / "arena.parquet"),
        read_nbest(write(*map(json.dumps, rows))),
    ]
    for lists in tables:
        assert [lists.texts(s) for s in range(2)] == [["hello", "bye"], ["yes", "no"]]
        assert lists.sources == ("hi", "so?")
        assert lists.features.tolist() == [[0.5], [2], [0.25], [-1]]
        assert lists.sentence_extras["preferences"] == ([[1, 0]], [])
    assert "conversation_a" not in tables[0].sentence_extras


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_models_alone(write: Write, separator: str) -> None:
    lines = [("model_a", "model_b", "winner"), ("X", "Y", "model_a"), ("Y", "X", "model_b")]
    lists = read_nbest(write(*map(separator.join, lines)))
    assert [lists.texts(s) for s in range(2)] == [["X", "Y"], ["Y", "X"]]
    posterior = adapt(lists, None, categorical="system", likelihood="preference", sampler="map")
    weights = point_weights(posterior)
    assert weights["system=X"] > 0 > weights["system=Y"]


def test_the_winner_is_no_feature(write: Write) -> None:
    out = io.StringIO()
    rows = [{**row, "winner_model_a": 1, "winner_model_b": 0} for row in battles()]
    for row in rows:
        row["conversation_a"] = row["conversation_b"] = "text"
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    lists = read_nbest(write(out.getvalue().encode()))
    assert lists.feature_names == ("rm",)
    assert "preferences" in str(describe(lists))


def test_written_as_jsonl_they_read_back(tmp_path: Path) -> None:
    lists = read_nbest(GOLDEN)
    write_nbest(lists, tmp_path / "lists.jsonl")
    assert table_content(read_nbest(tmp_path / "lists.jsonl")) == table_content(lists)


def test_a_missing_score_is_an_extra(write: Write) -> None:
    lines = ["model_a,model_b,winner,rm_a,rm_b", "X,Y,tie,1,2", "Y,X,model_a,,3"]
    with pytest.warns(match="rm is missing for 1 of 4"):
        lists = read_nbest(write(*lines))
    assert (lists.feature_names, list(lists.extras)) == ((), ["system", "rm"])


@pytest.mark.parametrize(
    ("third", "code", "match"),
    [
        ("X,Y,X,1,2", "bad-line", "winner is 'X'"),
        ("X,Y,tie,1", "bad-line", "got 4"),
        ("X,Y,,1,2", "bad-line", "winner is ''"),
        ("X,,tie,1,2", None, None),
    ],
)
def test_a_bad_row_is_named(write: Write, third: str, code: str | None, match: str | None) -> None:
    lines = write("model_a,model_b,winner,rm_a,rm_b", "X,Y,model_a,1,2", third)
    if code is None:
        assert read_nbest(lines).texts(1) == ["X", ""]
        return
    with raises(DataError, code, line=3, match=match):
        read_nbest(lines)


def test_a_bad_line_of_json_is_named(write: Write) -> None:
    first, second = battles()
    for bad in ({**second, "winner": 1}, {**second, "conversation_b": []}):
        with raises(DataError, "bad-line", line=2):
            read_nbest(write(json.dumps(first), json.dumps(bad)))
    with raises(DataError, "missing-column", line=2, match="conversation_b"):
        second.pop("conversation_b")
        read_nbest(write(json.dumps(first), json.dumps(second)))
    with raises(DataError, "no-data"):
        read_nbest(write("model_a,model_b,winner"))

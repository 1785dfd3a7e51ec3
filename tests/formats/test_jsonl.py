"""JSON lines: both forms, what becomes of each field, and every way in which a line can be bad."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from support.raising import raises
from support.user_files import GOOD, Write

from bpa_ppl import concatenate, describe, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats.roles import Roles


def lines(*records: Any) -> list[str]:
    return [json.dumps(record) for record in records]


@pytest.mark.usefixtures("blocks")
def test_ids_that_are_texts_are_counted_and_kept(write: Write) -> None:
    path = write(*lines({**GOOD, "id": "doc:7"}, {**GOOD, "id": "doc:3"}))
    nbest = read_nbest(path, format="jsonl:first_id=1")
    assert nbest.sentence_ids.tolist() == [1, 2]
    assert nbest.sentence_extras["id"] == ("doc:7", "doc:3")
    write_nbest(nbest, path, format="jsonl")
    assert json.loads(path.read_text().splitlines()[1])["id"] == "doc:3"
    again = write(*lines(*({**GOOD, "id": name} for name in "aba")))
    with raises(DataError, "duplicate", match="sentence a;", line=3):
        read_nbest(again)
    (candidate, _) = GOOD["candidates"]  # type: ignore[misc]
    infinite = {**candidate, "total": "inf"}  # type: ignore[dict-item]
    bad = lines({**GOOD, "id": "a"}, {**GOOD, "id": "b", "candidates": [infinite]})
    with raises(DataError, "bad-number", match="every candidate of sentence b has"):
        read_nbest(write(*bad), bad="drop")
    empty = lines({**GOOD, "id": "a"}, {"id": "b", "candidates": []})
    with pytest.warns(BpaWarning, match="1 sentence without candidates, the first of id b"):
        read_nbest(write(*empty))
    one = lines({**GOOD, "id": "a"}, {**GOOD, "id": "b", "references": []})
    with pytest.warns(BpaWarning, match="no reference for 1 sentence, the first of id b"):
        read_nbest(write(*one))


def test_candidates_may_be_texts(write: Write) -> None:
    """Other lists of the record belong to the sentence, whatever their length."""
    more = {"source": "q", "lm": [1, 2], "tags": ["x"], "scores": {"rm": [0.5, 3]}}
    lists = read_nbest(write(*lines({"id": 7, "candidates": ["a", "b"], **more})))
    assert (lists.ids, lists.texts(0), lists.sources) == ((7,), ["a", "b"], ("q",))
    assert (lists.feature_names, lists.extras) == ((), {})
    del more["source"]
    assert {name: of for name, (of,) in lists.sentence_extras.items()} == more
    with raises(
        DataError, "bad-data", line=1, match="text is a list of texts: name it as the cand"
    ):
        read_nbest(write(*lines({"id": 7, "text": ["a", "b"]})))


def test_lists_of_numbers_beside_the_candidates_are_columns_if_they_are_named(write: Write) -> None:
    rows = [
        {"id": "u1", "text": ["a cat sat", "a cat sad"], "lm": [-1.5, -2], "judge": [5, 3]},
        {"id": "u2", "text": ["the dog"], "lm": [-0.5], "judge": None},
    ]
    path = write(*lines(*rows))
    options: dict[str, Any] = {"format": "jsonl:candidates=text"}
    assert set(read_nbest(path, **options).sentence_extras) == {"id", "lm", "judge"}
    assert describe(read_nbest(path, **options)).choices == ("lm", "judge")
    lists = read_nbest(path, features=Roles(("l*",), numbers=("judge",)), **options)
    assert (lists.feature_names, lists.features.tolist()) == (("lm",), [[-1.5], [-2], [-0.5]])
    assert lists.extras == {"judge": (5, 3, None)}
    stream = concatenate(iter_nbest(path, chunk=1, features="lm", **options), fill_missing=True)
    assert stream.features.tolist() == lists.features.tolist()
    rows[1]["lm"] = [1, 2]
    with raises(DataError, "bad-data", line=2, match="lm has 2 values, but there are 1 candidates"):
        read_nbest(write(*lines(*rows)), features="lm", **options)


def test_tables_by_columns_are_explained(write: Write) -> None:
    frame = pd.DataFrame({"id": ["q1", "q1"], "text": ["a", "b"], "score": [0.9, 0.2]})
    explained = r"write an object for each row, in pandas with frame.to_json\(PATH, orient='record"
    with raises(DataError, "bad-data", line=1, match=explained):
        read_nbest(write(frame.to_json()))
    with raises(DataError, "bad-line", line=1, match=explained):
        read_nbest(write(frame.rename(columns={"text": "out"}).to_json()))
    with raises(DataError, "bad-line", line=1, match=explained):
        read_nbest(write(*lines({"text": [["a", "b"], ["c"]], "lm": [[1, 2], [3]]})))
    frame.to_json(path := write("").parent / "rows.jsonl", orient="records", lines=True)
    assert read_nbest(path).texts(0) == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"hyps": ["a", "b"]}, "candidates=hyps,"),
        ({"hyps": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}, "candidates=hyps,"),
        ({"hyps": [{"hyp": "a", "lm": 1}, {"hyp": "b", "lm": 2}]}, "candidates=hyps,text=hyp,"),
        ({"candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}, ""),
        ({"candidates": ["a", "b"]}, ""),
    ],
)
def test_the_text_of_a_record_may_be_the_source(
    write: Write, row: dict[str, Any], names: str
) -> None:
    path = write(*lines({"id": 0, "text": "Q", **row}))
    lists = read_nbest(path, format=f"jsonl:{names}source=text", features="*")
    assert (lists.texts(0), lists.sources) == (["a", "b"], ("Q",))
    assert lists.features.tolist() in ([[1], [2]], [[], []])
    if "text=" not in names:
        plain = read_nbest(path, format=f"jsonl:{names}".rstrip(":,"))
        assert (plain.texts(0), plain.sentence_extras["text"]) == (["a", "b"], ("Q",))


def test_a_source_of_candidates_beside_that_of_sentences(write: Write) -> None:
    both = {**GOOD, "candidates": [{"text": "a", "lm": 1, "source": "gpt"}]}
    nbest = read_nbest(write(*lines(both)))
    assert (nbest.sources, nbest.extras["source"]) == (("un chat",), ("gpt",))
    without = {**both, "id": 7, "source": None}
    message = r":2: no source of sentence 7, .*: give each sentence its source, or rename"
    with pytest.raises(DataError, match=message):
        read_nbest(write(*lines(both, without)))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('{"text": "a", "lm": 1}', "id"),
        ('{"id": 0, "lm": 1}', "text"),
    ],
)
def test_bad_first_lines(write: Write, line: str, value: str) -> None:
    with pytest.raises(DataError, match=f"dev.nbest(:1)?: .*{value}"):
        read_nbest(write(line), format="jsonl")


def test_first_lines_that_are_detected_and_refused() -> None:
    with raises(DataError, "bad-line", parameter="format", line=1):
        read_nbest(['{"id": 0, "candidates": ['])
    line = '{"id": 0, "candidates": [{"lm": 1}], "text": "a source"}'
    with raises(DataError, "missing-column", parameter="format", line=1, match="no column text"):
        read_nbest([line])

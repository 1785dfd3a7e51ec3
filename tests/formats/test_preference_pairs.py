"""Preference data sets: a prompt, the answer that was chosen, the one that was rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_content import table_content

from bpa_ppl import NBest, read_nbest, write_nbest

GOLDEN = Path(__file__).parent / "golden" / "preference-pairs.jsonl"
Write = Callable[..., Path]


def line(chosen: Any, rejected: Any, **more: Any) -> str:
    return json.dumps({**more, "chosen": chosen, "rejected": rejected})


def test_the_golden_file() -> None:
    nbest = read_nbest(GOLDEN, strict=True)
    assert nbest.sizes.tolist() == [2, 2, 2]
    assert nbest.sources == ("Un chat", "Été", "")
    assert [nbest.texts(s) for s in range(3)] == [
        ["a cat", "cat a"],
        ["summer", ""],
        ['"yes"', "no"],
    ]
    assert nbest.feature_names == ("lm", "scores.kiwi")
    assert nbest.features[:2].tolist() == np.float32([[-1.5, 0.8], [-7.25, 0.31]]).tolist()
    assert nbest.sentence_extras == {"judge": ("ann", "bob", "ann"), "preferences": ([[0, 1]],) * 3}


def test_of_a_conversation_the_last_turn_is_the_answer(write: Write) -> None:
    hello = {"role": "user", "content": "hello"}
    turns = [[hello, {"role": "assistant", "content": text}] for text in ("hi", "no")]
    lists = read_nbest(write(line(*turns, prompt=[hello], score_chosen=5.0)))
    assert (lists.texts(0), lists.sources) == (["hi", "no"], ("hello",))
    assert lists.sentence_extras["score_chosen"] == (5.0,)


@pytest.mark.parametrize("other", [False, True])
def test_the_turns_before_both_answers_are_the_prompt(write: Write, other: bool) -> None:
    system, hello = {"role": "system", "content": "s"}, {"role": "user", "content": "hello"}
    chosen = [system, hello, {"role": "assistant", "content": "hi"}]
    rejected = [system, {**hello, "content": "bye"} if other else hello, {"content": "no"}]
    lists = read_nbest(write(line(chosen, rejected)))
    assert (lists.texts(0), lists.sources) == (["hi", "no"], None if other else ("hello",))


def test_in_memory_and_in_parquet(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Un chat"}]
    answer = {"role": "assistant", "content": "a cat"}
    rows = [{"prompt": turns, "chosen": [answer], "rejected": [{**answer, "content": "cat"}]}] * 3
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pairs.parquet")
    for lists in (
        NBest.from_records(rows),
        NBest.from_dataframe(pa.Table.from_pylist(rows)),
        read_nbest(tmp_path / "pairs.parquet"),
    ):
        assert (lists.sizes.tolist(), lists.sources) == ([2] * 3, ("Un chat",) * 3)
        assert lists.texts(2) == ["a cat", "cat"]
        assert lists.sentence_extras["preferences"] == ([[0, 1]],) * 3


def test_written_as_jsonl_they_read_back(write: Write, tmp_path: Path) -> None:
    lists = read_nbest(GOLDEN)
    write_nbest(lists, tmp_path / "lists.jsonl")
    assert table_content(read_nbest(tmp_path / "lists.jsonl")) == table_content(lists)


def test_columns_of_both_answers_are_columns_of_candidates(write: Write) -> None:
    more = {"score_chosen": 8.5, "score_rejected": 6, "chosen-model": "X", "rejected-model": "Y"}
    more |= {"chosen_ids": [1], "rejected_ids": [2], "length_chosen": 3}
    lists = read_nbest(write(line("a", "b", **more), line("c", "d", **more)))
    assert lists.feature_names == ("score",)
    assert lists.features[:, 0].tolist() == [8.5, 6, 8.5, 6]
    assert lists.extras["model"] == ("X", "Y", "X", "Y")
    left = {"chosen_ids", "rejected_ids", "length_chosen", "preferences"}
    assert set(lists.sentence_extras) == left


def test_turns_that_differ_in_other_fields_are_the_same_prompt(write: Write) -> None:
    chosen = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    rejected = [{"content": "hello", "role": "user", "name": None}, {"content": "no"}]
    assert read_nbest(write(line(chosen, rejected))).sources == ("hello",)


def test_a_text_with_turns_is_a_conversation(write: Write) -> None:
    before = "\n\nHuman: One?\n\nAssistant: Two.\n\nHuman: Why?\n\nAssistant: "
    lists = read_nbest(write(line(f"{before}Because.\n\nIt is.", f"{before}No.")))
    assert lists.texts(0) == ["Because.\n\nIt is.", "No."]
    assert lists.sources == ("Why?",)


def test_a_data_set_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    hello = {"role": "user", "content": "hello"}
    answers = {"chosen": "hi", "rejected": "no"}
    row: dict[str, Any] = {
        name: [hello, {"role": "assistant", "content": text}] for name, text in answers.items()
    }
    data = datasets.Dataset.from_list([{**row, "score_chosen": 2.0, "score_rejected": 1.0}] * 3)
    for lists in (NBest.from_records(data), NBest.from_dataframe(data.with_format("arrow")[:])):
        assert (lists.sources, lists.texts(1)) == (("hello",) * 3, ["hi", "no"])
        assert lists.features[:, 0].tolist() == [2, 1] * 3

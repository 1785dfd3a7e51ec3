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

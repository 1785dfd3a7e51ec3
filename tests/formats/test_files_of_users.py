"""Small files as users of other tools write them, of which a part was once lost or misread."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.raising import raises

from bpa_ppl import NBest, describe, read_nbest
from bpa_ppl.errors import BpaWarning, DataError


def read(*rows: dict[str, Any], format: str = "auto", bad: str = "error") -> NBest:
    """Read rows as JSON lines."""
    return read_nbest(list(map(json.dumps, rows)), format=format, bad=bad)


def respond(*answers: list[tuple[str, float]], text: str | None = None) -> dict[str, Any]:
    """Return a response with answers of tokens, each with its log-probability."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": text or "".join(t for t, _ in tokens)},
            "logprobs": {"content": [{"token": t, "logprob": value} for t, value in tokens]},
            "finish_reason": "stop",
        }
        for index, tokens in enumerate(answers)
    ]
    return {"model": "m", "choices": choices}


# --- responses -----------------------------------------------------------------------------------


def test_a_field_of_an_answer_that_is_no_text_is_named() -> None:
    with raises(
        DataError, "bad-response", parameter="bad", line=1, match="a text in the field 'n'"
    ):
        read(respond([('{"n": 4}', -1.0)]), format="openai:field=n")


# --- lists of numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("texts", ["candidates", "text"])
def test_parallel_numbers_in_an_object_are_those_of_the_candidates(texts: str) -> None:
    row = {"id": 0, texts: ["a", "b"], "scores": {"lm": [-1, -2], "rm": [0.5, 3]}}
    lists = read(row, {**row, "id": 1})
    assert lists.feature_names == ("scores.lm", "scores.rm")
    assert lists.features.tolist() == [[-1, 0.5], [-2, 3]] * 2
    assert "scores" not in lists.sentence_extras
    lists = read({**row, "scores": {"tags": ["x", "y"]}})
    assert lists.sentence_extras["scores"] == ({"tags": ["x", "y"]},)


# --- columns of numbers that are not written as numbers ------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *("$1.50", "1.50 USD", "1.50€", "<0.01", "~3", "(0.5)", "12 ms", "1/2", "0.5 ± 0.1"),
        *("tensor(0.5)", "tensor(0.5  device='cuda:0')", "np.float64(0.5)"),
        *("4 - good", "5 (very good)", "05-Jan"),
    ],
)
def test_a_column_of_texts_that_look_like_numbers_is_named(value: str) -> None:
    with pytest.warns(BpaWarning, match="rm is a column of texts") as notes:
        lists = read_nbest([f"id,text,rm\n0,a,{value}\n0,b,{value}1 x\n"])
    assert len(notes) == 1
    assert (lists.feature_names, lists.extras["rm"][0]) == ((), value)


@pytest.mark.parametrize(
    "value", ["sys1", "gpt-4", "2024-01-05", "00:01:30", "1.2.3", "(see 3)", "0-2=0-2", "3 cats, 2"]
)
def test_columns_of_other_texts_are_read_without_a_note(value: str) -> None:
    lists = read_nbest([f'id,text,by\n0,a,"{value}"\n0,b,x\n'])
    assert lists.extras["by"] == (value, "x")


@pytest.mark.parametrize("candidates", ["candidates", "text"])
def test_as_many_answers_as_candidates_are_answers(candidates: str) -> None:
    row = {"id": 0, candidates: ["a", "b", "c"], "preferences": [[0, 1], [1, 2], [0, 2]]}
    assert read(row, row | {"id": 1}).sentence_extras["preferences"][1] == row["preferences"]
    row |= {"preferences": None, "rankings": [[0, 1, 2]] * 3}
    assert describe(read(row, row | {"id": 1, "rankings": None})).plan is not None
    lists = read({"id": 0, candidates: ["a", "b"], "preferences": [1, 0]})
    assert (lists.feature_names, describe(lists).plan) == ((), None)


# --- names of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"hyps": ["a", "b"], "lm": [1, 2]}, "candidates=hyps,"),
        ({"hyps": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}, "candidates=hyps,"),
        ({"hyps": [{"hyp": "a", "lm": 1}, {"hyp": "b", "lm": 2}]}, "candidates=hyps,text=hyp,"),
        ({"hyps": {"hyp": ["a", "b"], "lm": [1, 2]}}, "candidates=hyps,text=hyp,"),
        ({"candidates": [{"text": "a", "lm": 1}, {"text": "b", "lm": 2}]}, ""),
        (
            {"better": {"text": "a", "lm": 1}, "bad": {"text": "b", "lm": 2}},
            "chosen=better,rejected=bad,",
        ),
    ],
)
def test_the_text_of_a_record_may_be_the_source(row: dict[str, Any], names: str) -> None:
    lists = read({"id": 0, "text": "Q", **row}, format=f"jsonl:{names}source=text")
    assert (lists.texts(0), lists.sources) == (["a", "b"], ("Q",))
    assert lists.features.tolist() == [[1], [2]]


def test_texts_of_candidates_may_be_next_to_a_text_of_the_record() -> None:
    lists = read({"id": 0, "text": "Q", "candidates": ["a", "b"], "lm": [1, 2]})
    assert (lists.texts(0), lists.sentence_extras["text"]) == (["a", "b"], ("Q",))


# --- hints ---------------------------------------------------------------------------------------

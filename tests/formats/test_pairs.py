"""Preference data sets and arenas: two answers, and the one that is preferred."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write, talk

from bpa_ppl import from_records, read_nbest, write_nbest
from bpa_ppl.errors import DataError

GOLDEN = Path(__file__).parent / "golden"
Turn = dict[str, Any]


def line(chosen: Any, rejected: Any, **more: Any) -> str:
    return json.dumps({**more, "chosen": chosen, "rejected": rejected})


def test_the_golden_file_of_pairs(tmp_path: Path) -> None:
    nbest = read_nbest(GOLDEN / "preference-pairs.jsonl")
    write_nbest(nbest, tmp_path / "lists.jsonl")
    assert table_content(read_nbest(tmp_path / "lists.jsonl")) == table_content(nbest)
    assert nbest.sources == ("Un chat", "Été", "")
    expected = [["a cat", "cat a"], ["summer", ""], ['"yes"', "no"]]
    assert [nbest.texts(s) for s in range(3)] == expected
    assert nbest.feature_names == ("lm", "scores.kiwi")
    assert nbest.features[:2].tolist() == [[-1.5, 0.8], [-7.25, 0.31]]
    assert nbest.sentence_extras == {"judge": ("ann", "bob", "ann"), "preferences": ([[0, 1]],) * 3}


def test_the_golden_file_of_an_arena() -> None:
    lists = read_nbest(GOLDEN / "arena.csv")
    assert lists.sources == ("Un chat", "Été", "1")
    expected = [["a cat, small", "cat"], ["summer", "summer\ntime"], ["2", "3"]]
    assert [lists.texts(s) for s in range(3)] == expected
    assert lists.extras["system"] == ("X", "Y", "Y", "Z", "Z", "X")
    assert lists.feature_names == ("reward",)
    assert lists.features[:, 0].tolist() == [1.5, -2, 0.25, 0.5, -1, 0]
    assert lists.sentence_extras["preferences"] == ([[0, 1]], [], [[1, 0]])
    assert lists.sentence_extras["ties"] == ([], [[0, 1]], [])
    assert lists.sentence_extras["judge"] == ("ann", "bob", "ann")


HELLO, SYSTEM = {"role": "user", "content": "hello"}, {"role": "system", "content": "s"}
BEFORE = "\n\nHuman: One?\n\nAssistant: Two.\n\nHuman: Why?\n\nAssistant: "


@pytest.mark.parametrize(
    ("chosen", "rejected", "source"),
    [
        ([SYSTEM, *talk("hello", "hi")], [SYSTEM, HELLO, {"content": "no"}], "hello"),
        ([SYSTEM, *talk("hello", "hi")], [SYSTEM, *talk("bye", "no")], None),
        (f"{BEFORE}hi", f"{BEFORE}no", "Why?"),
    ],
)
def test_the_turns_before_both_answers_are_the_prompt(
    write: Write, chosen: Any, rejected: Any, source: str | None
) -> None:
    lists = read_nbest(write(line(chosen, rejected)))
    assert (lists.texts(0), lists.sources) == (["hi", "no"], None if source is None else (source,))


def test_columns_of_both_answers_are_columns_of_candidates(write: Write) -> None:
    more = {"score_chosen": 8.5, "score_rejected": 6, "chosen-model": "X", "rejected-model": "Y"}
    more |= {"chosen_ids": [1], "rejected_ids": [2], "length_chosen": 3}
    lists = read_nbest(write(line("a", "b", **more), line("c", "d", **more)))
    assert lists.feature_names == ("score",)
    assert lists.features[:, 0].tolist() == [8.5, 6, 8.5, 6]
    assert lists.extras["model"] == ("X", "Y", "X", "Y")
    left = {"chosen_ids", "rejected_ids", "length_chosen", "preferences"}
    assert set(lists.sentence_extras) == left


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.filterwarnings("ignore:.*separated by")
def test_models_alone(write: Write, separator: str) -> None:
    lines = [("model_a", "model_b", "winner"), ("X", "Y", "model_a"), ("Y", "X", "model_b")]
    lists = read_nbest(write(*map(separator.join, lines)))
    assert [lists.texts(s) for s in range(2)] == [["X", "Y"], ["Y", "X"]]
    assert lists.sentence_extras["preferences"] == ([[0, 1]], [[1, 0]])


def test_the_answer_is_the_last_turn_of_the_assistant() -> None:
    lists = from_records([{"chosen": talk("q", "a", "thanks"), "rejected": talk("q", "b")}])
    assert (lists.texts(0), lists.sources) == (["a", "b"], ("q",))
    with raises(DataError, "bad-line", line=1, match="chosen"):
        from_records([{"chosen": talk("q"), "rejected": talk("q", "b")}])


CELL = "[{'role': 'user', 'content': 'q'}, {'role': 'assistant', 'content': %s}]"


def test_conversations_that_are_not_json_are_refused(write: Write) -> None:
    """Literals of Python are read; what is neither is no answer."""
    lists = from_records([{"chosen": CELL % "'a'", "rejected": CELL % "'b'"}])
    assert (lists.texts(0), lists.sources) == (["a", "b"], ("q",))
    for odd in (CELL % "nan", CELL[:40], json.dumps(talk("q", "b"))[:-1]):
        with raises(
            DataError, "bad-line", line=1, match="that is not JSON: write it by json.dumps"
        ):
            from_records([{"chosen": CELL % "'a'", "rejected": odd}])
    whole = json.dumps(talk("q", "b"))
    arena = {"model_a": "X", "model_b": "Y", "winner": "tie", "conversation_b": whole}
    with raises(DataError, "bad-line", line=2, match="that is not JSON"):
        first = json.dumps({**arena, "conversation_a": whole})
        read_nbest(write(first, json.dumps({**arena, "conversation_a": whole[:-3]})))


def test_conversations_in_quoted_cells_of_tsv(write: Write) -> None:
    row = {"model_a": "X", "model_b": "Y", "winner": "model_a"}
    row |= {f"conversation_{side}": json.dumps(talk("q", side)) for side in "ab"}
    cells = [
        '"' + cell.replace('"', '""') + '"' if cell[0] == "[" else cell for cell in row.values()
    ]
    path = write("\t".join(row), "\t".join(cells), name="arena.tsv")
    with (
        pytest.warns(match="a cell looks quoted"),
        raises(DataError, "bad-line", parameter="format", line=2, match="tsv:quoted=true"),
    ):
        read_nbest(path)
    assert read_nbest(path, format="tsv:quoted=true").texts(0) == ["a", "b"]
    assert read_nbest(write("\t".join(row), "\t".join(row.values()))).texts(0) == ["a", "b"]


def sharegpt(*texts: str) -> list[Turn]:
    """Return a conversation as ShareGPT has it."""
    return [{"from": ("human", "gpt")[n % 2], "value": text} for n, text in enumerate(texts)]


def test_turns_of_sharegpt() -> None:
    system = {"from": "system", "value": "s"}
    row: dict[str, Any] = {"chosen": [system, *sharegpt("1?", "2", "so?", "yes", "thanks")]}
    row |= {"rejected": [system, *sharegpt("1?", "2", "so?", "no")]}
    arena = {"model_a": "X", "model_b": "Y", "winner": "model_a"}
    arena |= {"conversation_a": row["chosen"], "conversation_b": row["rejected"]}
    texts = {name: json.dumps(value) for name, value in row.items()}
    answers = {"chosen": sharegpt("", "yes")[1], "rejected": sharegpt("", "no")[1]}
    prompt = {"prompt": [system, *sharegpt("1?", "2", "so?")], **answers}
    for one in (row, texts, arena, prompt):
        for records in ([one], pa.Table.from_pylist([one])):
            lists = from_records(records)
            assert (lists.texts(0), lists.sources) == (["yes", "no"], ("so?",))
    both = [row["chosen"], row["rejected"]]  # of different lengths
    assert from_records({"chosen": both, "rejected": both[::-1]}).texts(1) == ["no", "yes"]
    with raises(DataError, "bad-line", line=1, match="chosen has no turn of the assistant"):
        from_records([{"chosen": sharegpt("q"), "rejected": sharegpt("q", "b")}])


@pytest.mark.parametrize(
    ("form", "is_read"),
    [
        (lambda text: [{"role": "assistant", "text": text}], True),
        (lambda text: {"role": "assistant", "content": text}, True),
        (lambda text: [{"from": "human", "value": "q"}, {"from": "gpt", "value": text}], True),
        (lambda text: [{"role": "model", "parts": [{"text": text}]}], True),
        (lambda text: {"messages": talk("q", text)}, True),
        (lambda text: {"role": "assistant", "tool_calls": [{"name": text}]}, False),
    ],
)
def test_texts_of_json_are_read_like_the_values_in_them(
    form: Callable[[str], Any], is_read: bool
) -> None:
    for printed in (form, lambda text: json.dumps(form(text)), lambda text: str(form(text))):
        rows = [{"prompt": "q", "chosen": printed("yes"), "rejected": printed("no")}]
        if is_read:
            assert from_records(rows).texts(0) == ["yes", "no"]
        else:
            with raises(DataError, "bad-line", line=1, match="chosen is .* a role and a content"):
                from_records(rows)
    from_numpy = "[{'from': 'human', 'value': 'q'}\n {'from': 'gpt', 'value': 'yes'}]"
    with raises(DataError, "bad-line", line=1, match="not JSON"):
        from_records([{"prompt": "q", "chosen": from_numpy, "rejected": "no"}])


def test_answers_of_json_that_are_no_conversations_are_texts() -> None:
    for answer in (
        '[{"from": "A", "to": "B"}]',
        '{"role": "admin", "content": "x"}',
        '{"role": "model", "n": 1}',
    ):
        lists = from_records([{"prompt": "q", "chosen": answer, "rejected": "no"}])
        assert lists.texts(0) == [answer, "no"]

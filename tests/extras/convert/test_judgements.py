"""Judgements of benchmarks, and of people with annotation tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.raising import raises

from bpa_ppl import BpaWarning, DataError
from bpa_ppl.extras.convert import alpacaeval, arenahard, argilla, labelstudio, mtbench
from bpa_ppl.extras.convert.records import read_json

Row = dict[str, Any]
FIELD = Path(__file__).resolve().parents[2] / "formats" / "field" / "5"

ALPACA: Row = {"instruction": "Name a fruit", "output_1": "apple", "output_2": "a carrot"}
ALPACA |= {"generator_1": "base", "generator_2": "mine", "annotator": "judge", "dataset": "d"}


def test_annotations_of_alpaca_eval() -> None:
    preferences = [1.0000048889, 1.93, 1, 2, 1.5, 0, None]
    rows = [ALPACA | {"preference": preference} for preference in preferences]
    with raises(DataError, "bad-line", line=7, parameter="bad", match="null"):
        alpacaeval(rows)
    with pytest.warns(BpaWarning, match="left out: 1 judgement"):
        lists = alpacaeval(rows, bad="drop")
    assert [of.get("preferences", "tie") for of in lists] == [
        *([[0, 1]], [[1, 0]], [[0, 1]], [[1, 0]]),
        *("tie", "tie"),
    ]
    assert lists[4]["ties"] == [[0, 1]]
    assert lists[0] == {
        "id": 0,
        "source": "Name a fruit",
        "candidates": [{"text": "apple", "system": "base"}, {"text": "a carrot", "system": "mine"}],
        "preferences": [[0, 1]],
        "annotator": "judge",
        "dataset": "d",
    }


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"preference": 2.5}, "2.5"),
        ({"preference": -1}, "-1"),
        ({"preference": "1"}, "got `str`"),
        ({"output_2": None, "preference": 1}, "output_2"),
        ({}, "`preference`"),
    ],
)
def test_other_rows_are_no_annotations_of_alpaca_eval(change: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=1, match=shown):
        alpacaeval([ALPACA | change])


def games(*scores: str | None) -> list[Row]:
    return [{"score": score, "judgment": "…"} for score in scores]


def test_judgements_of_arena_hard() -> None:
    rows = [
        {"question_id": "q", "model": "m", "judge": "j", "games": games("A>>B", "B>A")},
        {"uid": "r", "model": "m", "games": games("B>A", "A=B")},
        {"uid": "s", "model": "m", "games": games("A>B", "A>>B")},
    ]
    lists = arenahard(rows, baseline="gpt")
    assert [of["id"] for of in lists] == ["q m", "r m", "s m"]
    systems = [{"text": "gpt", "system": "gpt"}, {"text": "m", "system": "m"}]
    assert [of["candidates"] for of in lists] == [systems] * 3
    # In the second game the baseline is B.
    assert [of["preferences"] for of in lists] == [[[0, 1], [0, 1]], [[1, 0]], [[0, 1], [1, 0]]]
    assert [of["ties"] for of in lists] == [[], [[0, 1]], []]


@pytest.mark.parametrize("failed", [games("A>B", None), [*games("A>B"), None]])
def test_games_without_a_score(failed: list[Any]) -> None:
    row = {"uid": "q", "model": "m", "games": failed}
    with raises(DataError, "bad-line", line=1, parameter="bad", match="game 2"):
        arenahard([row])
    with pytest.warns(BpaWarning, match="1 judgement"):
        assert arenahard([row], bad="drop")[0]["preferences"] == [[0, 1]]


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"uid": "q", "model": "m", "games": games("A>C")}, "'A>C'"),
        ({"uid": "q", "model": "m", "games": games(*["A>B"] * 3)}, "at most two"),
        ({"model": "m", "games": games("A>B")}, "uid"),
        ({"uid": "q", "games": []}, "`model`"),
    ],
)
def test_other_rows_are_no_judgements_of_arena_hard(row: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=1, match=shown):
        arenahard([row])


def test_baselines_of_arena_hard_are_those_of_the_field() -> None:
    rows = list(read_json(FIELD / "arenahard2.jsonl"))
    other = {**rows[0].value, "baseline": "gemini"}
    lists = arenahard([*(row.value for row in rows[:3]), other])
    assert [of["id"] for of in lists[::3]] == ["u0 o3-mini new", "u0 gemini new"]
    systems = [[one["system"] for one in of["candidates"]] for of in lists]
    assert systems == [["o3-mini", "new"]] * 3 + [["gemini", "new"]]
    assert (lists[0]["preferences"], "baseline" in lists[0]) == ([[0, 1], [0, 1]], False)
    with pytest.raises(DataError, match="its baseline is 'o3-mini', not 'gpt'"):
        arenahard(rows, baseline="gpt")
    assert len(arenahard(rows[:2], baseline="o3-mini")) == 2


PAIR: Row = {"question_id": 81, "turn": 1, "model_1": "x", "model_2": "y", "judge": ["j", "pair"]}
SINGLE: Row = {"question_id": 81, "turn": 1, "model": "x", "judgment": "[[9]]"}


def test_pairs_of_mt_bench() -> None:
    rows = [
        PAIR | {"g1_winner": "model_1", "g2_winner": "tie"},
        PAIR | {"g1_winner": "model_2", "turn": 2},
        PAIR | {"g1_winner": "error", "g2_winner": "model_2"},
    ]
    with raises(DataError, "bad-line", line=3, parameter="bad", match="'error'"):
        mtbench(rows)
    with pytest.warns(BpaWarning, match="1 judgement"):
        lists = mtbench(rows, bad="drop")
    assert [of["id"] for of in lists] == ["81 turn 1 x y", "81 turn 2 x y"]
    assert [of["preferences"] for of in lists] == [[[0, 1], [1, 0]], [[1, 0]]]
    assert [of["ties"] for of in lists] == [[[0, 1]], []]
    assert lists[0]["candidates"] == [{"text": "x", "system": "x"}, {"text": "y", "system": "y"}]


def test_scores_of_mt_bench() -> None:
    rows = [SINGLE | {"score": 9}, SINGLE | {"model": "y", "score": 7.5}, SINGLE | {"score": -1}]
    with raises(DataError, "bad-line", line=3, parameter="bad", match="-1"):
        mtbench(rows)
    with pytest.warns(BpaWarning, match="1 judgement"):
        lists = mtbench(rows, bad="drop")
    candidates = [
        {"text": "x", "system": "x", "score": 9, "judgment": "[[9]]"},
        {"text": "y", "system": "y", "score": 7.5, "judgment": "[[9]]"},
    ]
    assert lists == [{"id": "81 turn 1", "candidates": candidates}]


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (PAIR | {"g1_winner": "x"}, "'x'"),
        (PAIR | {"winner": "model_1"}, "`model`"),
        (SINGLE | {"score": "9"}, "score"),
        ({"question_id": 81, "model_a": "x", "model_b": "y", "winner": "model_a"}, "`turn`"),
    ],
)
def test_other_rows_are_no_judgements_of_mt_bench(row: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=1, match=shown):
        mtbench([row])


def annotation(side: str | None, rater: Any = 1, **more: Any) -> Row:
    comment = {"type": "textarea", "from_name": "comment", "value": {"text": ["shorter"]}}
    chosen = {"type": "pairwise", "from_name": "better", "value": {"selected": side}}
    result = [comment] if side is None else [chosen, comment]
    return {"id": 10, "completed_by": rater, "was_cancelled": False, "result": result} | more


DATA: Row = {"list": "s-7", "source": "q", "first": "a", "second": "b"}


def test_tasks_of_label_studio() -> None:
    annotations = [
        annotation("left"),
        annotation("right", {"email": "bob@x", "id": 2}),
        annotation("right", 3, was_cancelled=True),
        annotation(None, 4),
    ]
    tasks = [
        {"id": 1, "data": DATA, "annotations": annotations},
        {"id": 2, "data": {"left": "c", "right": "d"}, "annotations": []},
    ]
    assert labelstudio(tasks[:1]) == [
        {
            "id": "s-7",
            "source": "q",
            "candidates": [{"text": "a"}, {"text": "b"}],
            "preferences": [
                {"candidates": [0, 1], "rater": "1"},
                {"candidates": [1, 0], "rater": "bob@x"},
            ],
            "record.id": 1,
        }
    ]
    (of_list,) = labelstudio(tasks[1:], first="left", second="right")
    assert of_list == {
        "id": 0,
        "candidates": [{"text": "c"}, {"text": "d"}],
        "preferences": [],
        "record.id": 2,
    }


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (
            {"data": {"text": "a"}, "annotations": []},
            "no field first in its data .there are text",
        ),
        ({"data": DATA | {"first": 7}, "annotations": []}, "first in its data is 7, not a text"),
        ({"data": DATA, "annotations": [annotation("middle")]}, "'middle'"),
        ({"id": 1, "first": "a", "second": "b", "better": "left", "annotation_id": 10}, "`data`"),
        ({"data": DATA}, "`annotations`"),
    ],
)
def test_other_records_are_no_tasks_of_label_studio(row: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        labelstudio([{"data": DATA, "annotations": []}, row])


def test_records_of_argilla() -> None:
    answers = [("first", "ann"), ("second", "bob"), ("tie", "cem")]
    responses = [{"value": value, "user_id": user} for value, user in answers]
    fields = {"source": "q", "first": "a", "second": "b"}
    record: Row = {"id": "s-7", "fields": fields, "metadata": {}, "suggestions": {}}
    record |= {"responses": {"better": responses, "other": [{"value": 3, "user_id": "ann"}]}}
    expected = {
        "id": "s-7",
        "source": "q",
        "candidates": [{"text": "a"}, {"text": "b"}],
        "preferences": [
            {"candidates": [0, 1], "rater": "ann"},
            {"candidates": [1, 0], "rater": "bob"},
        ],
        "ties": [{"candidates": [0, 1], "rater": "cem"}],
        "other": [{"value": 3, "user_id": "ann"}],
    }
    assert argilla([record]) == [expected]
    other = {"fields": {"x": "a", "y": "b"}, "responses": {"which": [{"value": "y"}]}}
    (of_list,) = argilla([other], question="which", first="x", second="y")
    assert of_list["preferences"] == [{"candidates": [1, 0]}]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"responses": {"better": [{"value": "left"}]}}, "'left', not first, second or tie"),
        ({"fields": {"prompt": "q"}}, "there are prompt"),
        ({"responses": [{"question_name": "better", "value": "first"}]}, "responses"),
        ({"fields": None}, "fields"),
    ],
)
def test_other_records_are_none_of_argilla(change: Row, shown: str) -> None:
    good: Row = {"fields": {"first": "a", "second": "b"}, "responses": {}}
    with raises(DataError, "bad-line", line=2, match=shown):
        argilla([good, good | change])

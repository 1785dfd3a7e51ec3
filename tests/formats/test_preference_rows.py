"""Preference rows of other shapes: several answers, other names, winners, rows without a winner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.raising import raises
from support.user_files import Write, talk

from bpa_ppl import NBest, adapt, describe, from_records, read_nbest
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.metrics.preferences import select_compared

Row = dict[str, Any]


def read(*rows: Row, format: str = "auto", bad: str = "error") -> NBest:
    """Read rows as JSON lines."""
    return read_nbest(list(map(json.dumps, rows)), format=format, bad=bad)


def outcome(lists: NBest) -> list[Any]:
    """Return the preferred candidates of each list: [0], [1], or [] for a tie."""
    extras = lists.sentence_extras
    for preferences, ties in zip(extras["preferences"], extras["ties"], strict=True):
        assert (preferences == []) == (ties == [[0, 1]])
    return [[better for better, _ in of] for of in extras["preferences"]]


# --- several answers -----------------------------------------------------------------------------

REWARDBENCH = [
    {"id": "0", "prompt": "Name a fruit.", "chosen": ["Apple."], "total_completions": 4}
    | {"rejected": ["Carrot.", "Stone.", "Potato."], "models": ["m1", "m2", "m3", "m4"]},
    {"id": "1", "prompt": "Say hi.", "chosen": ["Hi!"], "total_completions": 4}
    | {"rejected": ["No.", "Bye.", "Why?"], "models": ["m2", "m1", "m4", "m3"]},
]


def test_one_chosen_and_three_rejected_are_a_ranking(write: Write, tmp_path: Path) -> None:
    frame = pa.Table.from_pylist(REWARDBENCH)
    pq.write_table(frame, tmp_path / "lists.parquet")
    cells = [[str(cell) for cell in row.values()] for row in REWARDBENCH]
    table = write(*("\t".join(line) for line in [list(REWARDBENCH[0]), *cells]), name="lists.tsv")
    for lists in (
        read(*REWARDBENCH),
        from_records(REWARDBENCH),
        from_records(frame),
        read_nbest(tmp_path / "lists.parquet"),
        read_nbest(table),
    ):
        assert lists.texts(0) == ["Apple.", "Carrot.", "Stone.", "Potato."]
        assert lists.texts(1) == ["Hi!", "No.", "Bye.", "Why?"]
        assert lists.sources == ("Name a fruit.", "Say hi.")
        assert lists.sentence_extras["rankings"] == ([[0, [1, 2, 3]]],) * 2
        assert "preferences" not in lists.sentence_extras
    assert select_compared(lists).worse.tolist() == [1, 2, 3, 5, 6, 7]


@pytest.mark.parametrize(
    ("chosen", "rejected", "texts", "judgement"),
    [
        (["a"], ["c"], "ac", {"preferences": [[0, 1]]}),
        ("a", ["c", "d"], "acd", {"rankings": [[0, [1, 2]]]}),
        (["a", "b"], "c", "abc", {"preferences": [[0, 2], [1, 2]]}),
        (["a", "b"], ["c", "d"], "abcd", {"rankings": [[0, [2, 3]], [1, [2, 3]]]}),
        ([{"text": "a"}], [{"text": "c"}, {"text": "d"}], "acd", {"rankings": [[0, [1, 2]]]}),
        (talk("q", "a"), [talk("q", "c"), talk("q", "d")], "acd", {"rankings": [[0, [1, 2]]]}),
    ],
)
def test_each_chosen_answer_is_preferred_to_all_rejected(
    chosen: Any, rejected: Any, texts: str, judgement: Row
) -> None:
    lists = read({"prompt": "q", "chosen": chosen, "rejected": rejected})
    assert lists.texts(0) == list(texts)
    assert {name: of[0] for name, of in lists.sentence_extras.items()} == judgement


def test_values_of_several_answers_are_columns() -> None:
    row = {"chosen": ["a"], "rejected": ["b", "c"], "reward_chosen": [0.5], "subset": "Math"}
    row |= {"reward_rejected": [1, 2], "scores": [3, 4, 5], "model_chosen": "x", "ids": [1, 2]}
    lists = read(row | {"model_rejected": ["y", "z"]})
    assert lists.features.tolist() == [[0.5, 3], [1, 4], [2, 5]]
    assert lists.feature_names == ("reward", "scores")
    assert lists.extras["model"] == ("x", "y", "z")
    assert lists.sentence_extras["ids"] == ([1, 2],)


PAIR: Row = {"prompt": "q", "chosen": "a", "rejected": "b"}
ARENA: Row = {"prompt": "q", "response_a": "a", "response_b": "b", "winner": "A"}


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (PAIR | {"rm": {"chosen": 0.5, "rejected": -1}}, {"rm": [0.5, -1]}),
        (ARENA | {"rm": {"a": 0.5, "b": -1}}, {"rm": [0.5, -1]}),
        (
            PAIR | {"chosen_rms": {"x": 1, "y": 2}, "rejected_rms": {"x": 3, "y": 4}},
            {"rms.x": [1, 3], "rms.y": [2, 4]},
        ),
        (ARENA | {"correct_a": True, "correct_b": False}, {"correct": [True, False]}),
        (
            {n: {"messages": talk("q", n), "rm": len(n)} for n in ("chosen", "rejected")},
            {"rm": [6, 8]},
        ),
        (
            {"chosen": ["a"], "rejected": ["b", "c"], "rm": [[0.5], [1], [2]]},
            {"rm": [0.5, 1, 2]},
        ),
    ],
)
def test_numbers_of_answers_are_not_lost(row: Row, columns: dict[str, list[Any]]) -> None:
    lists = read(row)
    found = dict(zip(lists.feature_names, lists.features.T.tolist(), strict=True))
    assert found | {name: list(of) for name, of in lists.extras.items()} == columns
    assert lists.sentence_extras.keys() <= {"preferences", "rankings", "ties"}


def test_an_answer_that_would_be_lost_is_refused() -> None:
    row = {"prompt": "q", "response_a": "x", "response_b": "y", "winner": "A"}
    for more, code, match in (
        ({"response_c": "z"}, "bad-name", "response_c"),
        ({"response_a": ["x", "z"]}, "bad-line", "2 answers"),
        ({"prompt": ["one", "two"]}, "bad-line", "prompt is"),
    ):
        with raises(DataError, code, line=1, match=match):
            read(row | more)
    with raises(DataError, "bad-line", line=1, match="json.dumps"):
        read({"prompt": "q", "chosen": "['x']", "rejected": "['y' 'z']"})


# --- turns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turn", "which"), [(1, 0), ("1", 0), (2, 1), ("2", 1), (None, 1), ("last", 1)]
)
def test_the_judged_turn_is_read(turn: int | str | None, which: int) -> None:
    row = {"question_id": 81, "model_a": "X", "model_b": "Y", "winner": "model_b", "turn": turn}
    row |= {f"conversation_{m}": talk("q1", f"{m}1", "q2", f"{m}2") for m in "ab"}
    sides = {"prompt": ["q1", "q2"], "response_a": ["a1", "a2"], "response_b": ["b1", "b2"]}
    for lists in (read(row), read(sides | {"winner": "B", "turn": turn})):
        assert lists.texts(0) == [["a1", "b1"], ["a2", "b2"]][which]
        assert lists.sources == (("q1", "q2")[which],)
        assert outcome(lists) == [[1]]


@pytest.mark.parametrize("name", ["messages", "assistant", "text", "candidate", "conversation"])
def test_the_answers_of_an_arena_are_not_the_names_of_its_models(name: str) -> None:
    row: Row = {"model_a": "X", "model_b": "Y", "winner": "Y"}
    for answer in (lambda text: text, lambda text: talk("q", text)):
        lists = read(row | {f"{name}_a": answer("one"), f"{name}_b": answer("two")})
        assert (lists.texts(0), outcome(lists)) == (["one", "two"], [[1]])
        assert lists.extras["system"] == ("X", "Y")


def test_numbers_of_candidates_may_be_called_like_answers(write: Write) -> None:
    lists = read_nbest(write("id,text,option_a,summary_a", "0,x,3,1", "0,y,4,2"))
    assert lists.feature_names == ("option_a", "summary_a")


@pytest.mark.parametrize("name", ["context", "conversations", "question", "input", "prompt"])
def test_other_names_of_the_prompt(name: str) -> None:
    row = {"response1": "x", "response2": "y", "overall_preference": -3}
    shared = [{"from": who, "value": text} for who, text in (("human", "1?"), ("gpt", "2"))]
    for prompt in (talk("1?", "2", "so?"), [*shared, {"from": "human", "value": "so?"}], "so?"):
        lists = read(row | {name: prompt})
        assert (lists.sources, lists.texts(0), outcome(lists)) == (("so?",), ["x", "y"], [[0]])
        assert name not in lists.sentence_extras
    assert read(row | {"context": {"city": "Rome"}, "prompt": "so?"}).sources == ("so?",)


def test_the_parts_of_a_content_are_one_text() -> None:
    def parts(*texts: str) -> list[Row]:
        image = {"type": "image_url", "text": None, "image": "x.png"}
        return [image, *({"type": "text", "text": text, "image": None} for text in texts)]

    row: Row = {"id": "a1", "model_a": "X", "model_b": "Y", "winner": "both_bad"}
    for model, answer in (("a", "apple"), ("b", "carrot")):
        user = {"role": "user", "content": parts("name ", "a fruit")}
        row[f"conversation_{model}"] = [user, {"role": "assistant", "content": parts(answer)}]
    for lists in (read(row), from_records(pa.Table.from_pylist([row]))):
        assert lists.texts(0) == ["apple", "carrot"]
        assert lists.sources == ("name a fruit",)
        assert outcome(lists) == [[]]
    lists = read({"prompt": "q", "chosen": parts("a", "b"), "rejected": parts("c")})
    assert lists.texts(0) == ["ab", "c"]


# --- winners -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("winner", "place"),
    [
        *((label, [0]) for label in ("A", "a", "model_a", "alpha", "left", "Assistant A", "[[A]]")),
        *((label, [0]) for label in (0, "0", 0.0, "first", "response_a", "Response A")),
        *((label, [1]) for label in ("B", "model_b", "beta", "right", "response-b", 1, "1")),
        *((label, []) for label in ("tie", "Tie", "tie (bothbad)", "both_bad", "both bad", 0.5)),
        *((label, [0]) for label in ("A>B", "A>>B", "[[A>>B]]", "b < a", "model_a>model_b", ["A"])),
        *((label, [1]) for label in ("B>A", "B>>A", "A<<B", "Because … [[B]]", "[[B]], so [[B]]")),
        *((label, []) for label in ("A=B", "[[A=B]]", "Both fail. My verdict is tie: [[C]]")),
        ([{"selected": "left"}], [0]),
    ],
)
def test_labels_of_the_winner(winner: Any, place: list[int]) -> None:
    models = {"model_a": "alpha", "model_b": "beta"}
    answers = {"prompt": "q", "response_a": "x", "response_b": "y", "winner": winner}
    assert outcome(read(models | answers)) == [place]
    renamed = {"q": "q", "x_a": "x", "x_b": "y", "best": winner} | models
    if winner not in ("response_a", "response-b", "Response A"):
        lists = read(renamed, format="jsonl:chosen=x_a,rejected=x_b,winner=best,source=q")
        assert (outcome(lists), lists.sources, lists.texts(0)) == ([place], ("q",), ["x", "y"])


@pytest.mark.parametrize(
    ("winner", "marks"), [(2, "ab"), (-1, "ab"), (True, "ab"), ("2", "ab"), (0, "12"), ("3", "12")]
)
def test_numbers_that_name_no_answer_are_refused(winner: Any, marks: str) -> None:
    """Counted from 0, too, where the answers are numbered from 1."""
    row = {f"response_{mark}": "x" for mark in marks} | {"prompt": "q", "winner": winner}
    for bad in ("error", "drop"):
        with raises(DataError, "bad-line", line=1, match="winner is"):
            read(row, bad=bad)


ALPACA = {"instruction": "Name a fruit", "output_1": "apple", "output_2": "a carrot"}


def test_annotations_of_alpaca_eval(write: Write) -> None:
    models = {"generator_1": "base", "generator_2": "mine", "annotator": "judge"}
    preferences = [1.0000048889, 1.93, 1, 2, 1.5, 0, None]
    rows = [ALPACA | models | {"preference": preference} for preference in preferences]
    with raises(DataError, "bad-line", line=7, parameter="bad", match="preference is null"):
        read(*rows)
    cells = [[str(v) if v is not None else "" for v in row.values()] for row in rows]
    table = write(*map(",".join, [list(rows[0]), *cells]), name="annotations.csv")
    for use in (lambda: read(*rows, bad="drop"), lambda: read_nbest(table, bad="drop")):
        with pytest.warns(BpaWarning, match=r"left out.* 1 \(row [78]: preference is"):
            lists = use()
        assert outcome(lists) == [[0], [1], [0], [1], [], []]
        assert lists.sources == ("Name a fruit",) * 6
        assert lists.extras["generator"] == ("base", "mine") * 6
    named = ALPACA | {"generator_1": "base", "generator_2": "mine", "winner": "mine"}
    assert outcome(read(named)) == [[1]]


def test_the_name_of_a_system_of_wmt_is_a_winner(write: Write) -> None:
    header, cells = "src,sysA,sysB,mtA,mtB,better", "ein Haus,ONLINE-A,Lan,a house,house,Lan"
    format = "csv:chosen=mtA,rejected=mtB,winner=better,source=src"
    lists = read_nbest(write(header, cells, cells[:-3] + "B"), format=format)
    assert outcome(lists) == [[1], [1]]


def test_labels_of_stanford_human_preferences() -> None:
    """In this data set 1 is the first answer; naming the columns does not exchange them."""
    rows = [
        {"history": "How to boil eggs?", "human_ref_A": "a timer", "human_ref_B": "guess"}
        | {"score_A": 340, "score_B": 166, "labels": label}
        for label in (1, 0)
    ]
    for format in (
        "auto",
        "jsonl:chosen=human_ref_A,rejected=human_ref_B",
        "jsonl:chosen=human_ref_A,rejected=human_ref_B,winner=labels",
    ):
        lists = read(*rows, format=format)
        assert outcome(lists) == [[0], [1]]
        assert lists.features[:2].tolist() == [[340], [166]]
        assert lists.sources == ("How to boil eggs?",) * 2


def test_winners_of_other_data_sets() -> None:
    safe = {"prompt": "q", "response_0": "x", "response_1": "y", "better_response_id": 1}
    assert outcome(read(safe | {"safer_response_id": 0})) == [[1]]
    safer = read(safe | {"safer_response_id": 0}, format="jsonl:winner=safer_response_id")
    assert outcome(safer) == [[0]]
    steps = [{"response1": "x", "response2": "y", "overall_preference": n} for n in (-3, 0, 1)]
    assert outcome(read(*steps)) == [[0], [], [1]]
    columns = {"winner_model_a": 0, "winner_model_b": 1, "winner_tie": 0}
    sides = {"prompt": '["1?", "so?"]', "response_a": '["2", "yes"]', "response_b": '["3", "no"]'}
    lists = read({"id": 7, "model_a": "X", "model_b": "Y"} | sides | columns)
    assert (outcome(lists), lists.texts(0), lists.sources) == ([[1]], ["yes", "no"], ("so?",))
    judged = [{"model_1": "X", "model_2": "Y", "g1_winner": w} for w in ("model_2", "tie")]
    assert outcome(read(*judged, format="jsonl:winner=g1_winner")) == [[1], []]


# --- other names ---------------------------------------------------------------------------------


def test_names_of_both_answers_in_the_format(write: Write) -> None:
    names, cells = ("src", "better", "worse", "ref"), ("ein Haus", "7", "8", "a house")
    for form, mark in (("csv", ","), ("tsv", "\t")):
        path = write(mark.join(names), mark.join(cells))
        format = f"{form}:chosen=better,rejected=worse,source=src,reference=ref"
        lists = read_nbest(path, format=format)
        assert (lists.texts(0), lists.sources) == (["7", "8"], ("ein Haus",))
        assert lists.references == (("a house",),)
        assert lists.sentence_extras["preferences"] == ([[0, 1]],)
        for wrong in ("rejected=worst", "rejected=worse,source=worst"):
            with raises(DataError, "missing-column", line=1, parameter="format", match="worst"):
                read_nbest(path, format=f"{form}:chosen=better,{wrong}")
    row = dict(zip(names, cells, strict=True))
    for setting in ("chosen=nope,rejected=worse", "chosen=better,rejected=worse,winner=nope"):
        with raises(DataError, "missing-column", line=1, parameter="format", match="nope"):
            read(row, format=f"jsonl:{setting}")
    table = from_records([{"chosen": "7", "rejected": "8"}])
    assert table.texts(0) == ["7", "8"]


def test_names_that_do_not_say_which_answer_is_preferred_need_a_winner() -> None:
    row = {"answer_a": "x", "answer_b": "y", "verdict": "B"}
    with raises(DataError, "missing-column", line=1, parameter="format", match="winner=NAME"):
        read(row, format="jsonl:chosen=answer_a,rejected=answer_b")
    lists = read(row, format="jsonl:chosen=answer_a,rejected=answer_b,winner=verdict")
    assert outcome(lists) == [[1]]


def test_a_source_without_a_prompt_is_left_out_by_the_format() -> None:
    row = {"source": "a data set", "chosen": talk("q", "x"), "rejected": talk("q", "y")}
    with raises(DataError, "bad-name", line=1, match="exclude=source"):
        read(row)
    assert read(row, format="jsonl:exclude=source").sources == ("q",)


def test_a_prompt_next_to_a_source_is_named_in_the_format() -> None:
    row = {"source": "a data set", "prompt": "q", "chosen": "x", "rejected": "y"}
    with raises(DataError, "bad-name", line=1, match="source=prompt"):
        read(row)
    with pytest.warns(BpaWarning, match="source is left out"):
        assert read(row, format="jsonl:source=prompt").sources == ("q",)


# --- rows without a judgement --------------------------------------------------------------------


NO_WINNERS = [None, "", "invalid", "error", "?", "nan", "C"]
NO_WINNERS += ["A>C", "A>=B", "A>A", "[[A]] or [[B]]", "A>B>A"]


@pytest.mark.parametrize("winner", NO_WINNERS)
def test_rows_without_a_winner_are_dropped_if_asked(winner: Any, write: Write) -> None:
    answers = {"prompt": "q", "response_a": "x", "response_b": "y", "lm_a": 1, "lm_b": 2}
    rows = [answers | {"id": n, "winner": "AB"[n % 2]} for n in range(4)]
    rows[1]["winner"] = winner
    with raises(DataError, "bad-line", line=2, parameter="bad", match="winner is"):
        read(*rows)
    shown = json.dumps(winner) if winner is None else repr(winner)
    path = write(*map(json.dumps, rows))
    for use in (lambda: read_nbest(path, bad="drop"), lambda: from_records(rows, bad="drop")):
        with pytest.warns(BpaWarning) as caught:
            lists = use()
        assert any(f"1 (row 2: winner is {shown})" in str(one.message) for one in caught)
        assert lists.ids == (0, 2, 3)
        assert outcome(lists) == [[0], [0], [1]]
        assert lists.feature_names == ("lm",)
    with (
        pytest.warns(BpaWarning, match="row 1: winner is"),
        raises(DataError, "no-data", match="winner is"),
    ):
        read(rows[1], bad="drop")


def test_a_row_without_the_field_of_the_winner_is_unjudged() -> None:
    row = {"prompt": "q", "response_a": "x", "response_b": "y"}
    rows = [row | {"winner": "A"}, row, row | {"winner": "B"}]
    with raises(DataError, "bad-line", line=2, parameter="bad", match="winner is null"):
        read(*rows)
    with pytest.warns(BpaWarning, match="row 2: winner is null"):
        assert outcome(read(*rows, bad="drop")) == [[0], [1]]


def test_preferences_are_left_out_where_a_candidate_is_dropped() -> None:
    """They name candidates by their places, which change."""
    candidates = [{"text": text, "lm": lm} for text, lm in zip("abc", (-1.5, 2, 3), strict=True)]
    odd = [{"text": "z", "lm": float("1e61")}, *candidates]
    rows = [{"preferences": [[2, 1]], "candidates": of} for of in (odd, candidates)]
    with pytest.warns(BpaWarning) as caught:
        lists = from_records(rows, bad="drop")
    assert "preferences are left out where a candidate" in str(caught[0].message)
    assert lists.sentence_extras["preferences"] == (None, [[2, 1]])
    assert lists.texts(0) == lists.texts(1) == ["a", "b", "c"]


@pytest.mark.parametrize("answer", [None, [], [None]])
def test_rows_without_an_answer_are_dropped_if_asked(answer: Any) -> None:
    rows = [{"prompt": "q", "chosen": "x", "rejected": "y"} for _ in range(3)]
    rows[2]["rejected"] = answer
    with raises(DataError, "bad-line", line=3, parameter="bad", match="rejected is"):
        read(*rows)
    with pytest.warns(BpaWarning, match="row 3: rejected is"):
        assert len(read(*rows, bad="drop")) == 2
    del rows[2]["rejected"]
    with raises(DataError, "missing-column", line=3, parameter="bad", match="no field rejected"):
        read(*rows)
    with pytest.warns(BpaWarning, match="row 3: no field rejected"):
        assert len(read(*rows, bad="drop")) == 2


def test_answers_that_could_not_be_generated_are_dropped_if_asked() -> None:
    """As in data sets of distilabel."""
    rows = [
        {"generations": ["a", "b"], "ratings": [5, 2]},
        {"generations": [None, "c"], "ratings": [None, 3]},
        {"generations": [None, None], "ratings": None},
    ]
    format = "jsonl:candidates=generations"
    with raises(DataError, "bad-data", line=2, match=r"candidates\[0\]\.text is missing"):
        read(*rows, format=format)
    with pytest.warns(BpaWarning, match=r"2 \(row 2: candidates has null, row 3: candidates has"):
        lists = read(*rows, format=format, bad="drop")
    assert [lists.texts(s) for s in range(2)] == [["a", "b"], ["c"]]
    assert lists.features.tolist() == [[5], [2], [3]]


@pytest.mark.parametrize("odd", [{"preferences": [[0, 5]]}, {"rankings": [[0, [1], 0]]}])
def test_what_adapt_refuses_is_described(odd: Row) -> None:
    candidates = [{"text": "a", "lm": 1.5}, {"text": "b", "lm": 0.25}]
    rows = [{"preferences": [[0, 1]], "candidates": candidates} for _ in range(3)]
    lists = read(*rows, {**odd, "candidates": candidates})
    assert any(str(next(iter(odd))) in warning for warning in describe(lists).warnings)
    assert not any("preferences" in warning for warning in describe(read(*rows)).warnings)
    with pytest.raises(DataError, match=next(iter(odd))):
        adapt(lists, None, sampler="map")

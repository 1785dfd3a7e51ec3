"""Rows of preferences: two answers and the preferred one, or two models and the winner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.raising import raises
from support.table_content import table_content
from support.user_files import Write, talk

from bpa_ppl import NBest, adapt, from_records, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, DataError

GOLDEN = Path(__file__).parent / "golden"
Row = dict[str, Any]
PAIR: Row = {"prompt": "q", "chosen": "a", "rejected": "b"}
ARENA: Row = {"model_a": "X", "model_b": "Y", "winner": "X", "prompt": "q"}
ARENA |= {"response_a": "a", "response_b": "b"}


def read(*rows: Row, **options: Any) -> NBest:
    """Read rows as JSON lines."""
    return read_nbest(list(map(json.dumps, rows)), **options)


def outcome(lists: NBest) -> list[Any]:
    """Return the preferred candidates of each list: [0], [1], or [] for a tie."""
    extras = lists.sentence_extras
    for preferences, ties in zip(extras["preferences"], extras["ties"], strict=True):
        assert (preferences == []) == (ties == [[0, 1]])
    return [[better for better, _ in of] for of in extras["preferences"]]


def test_the_golden_file_of_pairs(tmp_path: Path) -> None:
    nbest = read_nbest(GOLDEN / "preference-pairs.jsonl")
    write_nbest(nbest, tmp_path / "lists.jsonl")
    assert table_content(read_nbest(tmp_path / "lists.jsonl")) == table_content(nbest)
    assert nbest.sources == ("Un chat", "Été", "")
    expected = [["a cat", "cat a"], ["summer", ""], ['"yes"', "no"]]
    assert [nbest.texts(s) for s in range(3)] == expected
    assert nbest.extras["lm"][:2] == (-1.5, -7.25)
    named = read_nbest(GOLDEN / "preference-pairs.jsonl", features="*")
    assert named.feature_names == ("lm", "scores.kiwi")
    assert named.features[:2].tolist() == [[-1.5, 0.8], [-7.25, 0.31]]
    assert nbest.sentence_extras == {"judge": ("ann", "bob", "ann"), "preferences": ([[0, 1]],) * 3}


def test_the_golden_file_of_an_arena() -> None:
    lists = read_nbest(GOLDEN / "arena.csv")
    assert lists.sources == ("Un chat", "Été", "1")
    expected = [["a cat, small", "cat"], ["summer", "summer\ntime"], ["2", "3"]]
    assert [lists.texts(s) for s in range(3)] == expected
    assert lists.extras["system"] == ("X", "Y", "Y", "Z", "Z", "X")
    assert outcome(lists) == [[0], [], [1]]
    assert lists.sentence_extras["judge"] == ("ann", "bob", "ann")


# --- answers -------------------------------------------------------------------------------------


def test_fields_of_both_answers_are_columns_of_the_candidates() -> None:
    scores = {"score_chosen": 2, "score_rejected": 1, "chosen-rating": 5, "rejected-rating": 3}
    named = {"chosen_model": "x", "rejected_model": "y", "chosen_id": 7, "rejected_id": 8}
    lists = read(PAIR | scores | named)
    assert dict(lists.extras) == {"score": (2, 1), "rating": (5, 3), "system": ("x", "y")}
    assert lists.sentence_extras["rejected_id"] == (8,)


@pytest.mark.parametrize("names", [("chosen", "rejected"), ("response_a", "response_b")])
def test_answers_are_texts_turns_or_candidates(names: tuple[str, str]) -> None:
    row = PAIR if names[0] == "chosen" else ARENA
    forms: list[Any] = [
        str,
        lambda text: {"text": text},
        lambda text: [{"role": "assistant", "content": text}],
        lambda text: talk("so?", text),
        lambda text: talk("1?", "2", "so?", text),
    ]
    for form in forms:
        changed = row | dict(zip(names, map(form, "ab"), strict=True))
        for records in ([changed], pa.Table.from_pylist([changed])):
            lists = from_records(records)
            assert (lists.texts(0), lists.sources) == (["a", "b"], ("q",))
    lists = read(row | {name: {"text": name, "features": {"lm": len(name)}} for name in names})
    assert lists.feature_names == ("lm",)
    assert lists.features[:, 0].tolist() == [len(name) for name in names]
    for value in ("['x']", '[{"role": "assistant", "content": "x"}]', "", "7"):
        assert read(row | dict.fromkeys(names, value)).texts(0) == [value, value]


def test_the_source_is_the_prompt_or_the_turn_before() -> None:
    turns = [{"role": "system", "content": "s"}, *talk("1?", "2", "so?", "a")]
    row = {"chosen": turns, "rejected": [*turns[:-1], {**turns[-1], "content": "b"}]}
    prompts: tuple[Any, ...] = ("q", None, talk("1?", "2", "r"))
    lists = [read(row), *(read(row | {"prompt": prompt}) for prompt in prompts)]
    lists.append(read({"chosen": "a", "rejected": "b", "source": "s"}))
    assert [of.sources for of in lists] == [("so?",), ("q",), ("so?",), ("r",), ("s",)]
    alone = [{"role": "assistant", "content": "a"}]
    assert read({"chosen": alone, "rejected": "b"}).sources is None


@pytest.mark.parametrize(
    ("change", "code", "shown"),
    [
        ({"chosen": ["a"]}, "bad-line", "chosen is a list of texts"),
        ({"chosen": []}, "bad-line", "chosen has no turns"),
        ({"chosen": 7}, "bad-line", "chosen is 7"),
        ({"chosen": {"content": "a"}}, "bad-line", "chosen is {'content': 'a'}"),
        ({"chosen": {"text": None}}, "bad-line", "chosen is {'text': None}"),
        ({"chosen": talk("q", "a", "thanks")}, "bad-line", "the last turn of chosen is of 'user'"),
        ({"chosen": [{"from": "gpt", "value": "a"}]}, "bad-line", "not a turn"),
        ({"chosen": [{"role": "assistant", "content": ["a"]}]}, "bad-line", "not a turn"),
        ({"chosen": [{"role": "assistant", "content": "a", "lm": 1}]}, "bad-line", "not a turn"),
        ({"chosen": talk("q", "a"), "rejected": talk("r", "b")}, "bad-line", "differ"),
        ({"chosen": talk("q", "a")}, "bad-line", "differ"),
        ({"prompt": 7}, "bad-line", "prompt is 7"),
        ({"prompt": [{"role": "user"}]}, "bad-line", "prompt has "),
        ({"preferences": [[0, 1]]}, "bad-name", "preferences next to chosen and rejected"),
        ({"source": "s"}, "bad-name", "source next to prompt"),
    ],
)
def test_what_is_no_pair_is_one_error(change: Row, code: str, shown: str) -> None:
    for bad in ("error", "drop"):
        with raises(DataError, code, line=2, match=shown):
            read(PAIR, PAIR | change, bad=bad)


# --- winners -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("winner", "place"), [("X", [0]), ("Y", [1]), ("model_a", [0]), ("model_b", [1]), ("tie", [])]
)
def test_the_winner_is_a_model_or_a_tie(winner: str, place: list[int]) -> None:
    lists = read(ARENA | {"winner": winner})
    assert outcome(lists) == [place]
    assert lists.extras["system"] == ("X", "Y")
    renamed = {"a": "X", "b": "Y", "best": winner, "x": "1", "y": "2", "question": "q"}
    names = "model_a=a,model_b=b,response_a=x,response_b=y,winner=best,prompt=question"
    lists = read(renamed, format=f"jsonl:{names}")
    assert (outcome(lists), lists.texts(0), lists.sources) == ([place], ["1", "2"], ("q",))


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        *(({"winner": of}, "winner is") for of in ("A", "x", "both_bad", "TIE", "response_c")),
        *(({"winner": of}, "winner is") for of in (0, 1, True, ["X"], {"selected": "left"})),
        ({"model_b": "X"}, "winner is 'X'"),
        ({"model_a": "model_b", "winner": "model_b"}, "winner is 'model_b'"),
        ({"model_a": 7}, "a model is .7, 'Y'."),
    ],
)
def test_other_winners_are_errors(change: Row, shown: str) -> None:
    for bad in ("error", "drop"):
        with raises(DataError, "bad-line", line=2, match=shown):
            read(ARENA, ARENA | change, bad=bad)
    if change == {"model_b": "X"}:
        assert outcome(read(ARENA | change | {"winner": "model_b"})) == [[1]]


PLAIN = {"response_a": "house", "response_b": "home", "score_a": 0.3, "score_b": 0.1, "lang": "de"}


@pytest.mark.parametrize(
    ("winner", "expected"),
    [("model_a", [[0]]), ("response_b", [[1]]), ("model_b", [[1]]), ("tie", [[]])],
)
def test_names_of_models_are_optional(winner: str, expected: list[list[int]]) -> None:
    lists = read(PLAIN | {"winner": winner}, features="score")
    assert (outcome(lists), lists.texts(0)) == (expected, ["house", "home"])
    assert (lists.features.ravel().tolist(), lists.extras) == ([0.3, 0.1], {})
    assert lists.sentence_extras["lang"] == ("de",)
    renamed = {"id": 1, "item_1": "house", "item_2": "home", "choice": winner}
    names = "response_a=item_1,response_b=item_2,winner=choice"
    assert outcome(read(renamed, format=f"jsonl:{names}")) == expected
    settings = "jsonl:response_a=COLUMN,response_b=COLUMN,winner=COLUMN"
    with raises(DataError, "unknown-format", parameter="format", line=1, match=settings):
        read(renamed)
    with raises(DataError, "bad-line", line=1, match="winner is 'A': write one of model_a, model"):
        read(PLAIN | {"winner": "A"})
    with raises(DataError, "missing-column", parameter="format", line=1, match="field model_b"):
        read(PLAIN | {"winner": winner, "model_a": "X"})


def test_lists_of_texts_are_to_be_converted() -> None:
    row = {"query": "q", "pos": ["a"], "neg": ["b", "c"]}
    with raises(DataError, "bad-line", line=1, match="pos is a list of texts, not one answer"):
        read(row, format="jsonl:prompt=query,chosen=pos,rejected=neg")


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "mark"), [("csv", ","), ("tsv", "\t")])
def test_names_of_columns_in_the_format(write: Write, form: str, mark: str) -> None:
    names, cells = ("src", "better", "worse", "ref"), ("ein Haus", "7", "8", "a house")
    path = write(mark.join(names), mark.join(cells))
    lists = read_nbest(path, format=f"{form}:chosen=better,rejected=worse,prompt=src,reference=ref")
    assert (lists.texts(0), lists.sources) == (["7", "8"], ("ein Haus",))
    assert lists.references == (("a house",),)
    assert lists.sentence_extras["preferences"] == ([[0, 1]],)
    for wrong in ("rejected=worst", "rejected=worse,prompt=worst"):
        with raises(DataError, "missing-column", line=1, parameter="format", match="worst"):
            read_nbest(path, format=f"{form}:chosen=better,{wrong}")


# --- rows without a judgement or an answer -------------------------------------------------------


@pytest.mark.parametrize("winner", [None, ""])
def test_rows_without_a_winner_are_dropped_if_asked(winner: Any, write: Write) -> None:
    rows = [ARENA | {"id": n, "winner": "XY"[n % 2]} for n in range(4)]
    rows[1]["winner"] = winner
    with raises(DataError, "bad-line", line=2, parameter="bad", match="winner"):
        read(*rows)
    path = write(*map(json.dumps, rows))
    for use in (lambda: read_nbest(path, bad="drop"), lambda: from_records(rows, bad="drop")):
        with pytest.warns(BpaWarning, match=r"1 \(row 2: .*winner"):
            lists = use()
        assert lists.ids == (0, 2, 3)
        assert outcome(lists) == [[0], [0], [1]]
    with pytest.warns(BpaWarning, match="row 1: "), raises(DataError, "no-data", match="winner"):
        read_nbest([json.dumps(ARENA | {"winner": None})], bad="drop")


def test_rows_without_an_answer_are_dropped_if_asked() -> None:
    rows = [dict(PAIR) for _ in range(3)]
    rows[2]["rejected"] = None
    with raises(DataError, "bad-line", line=3, parameter="bad", match="rejected"):
        read(*rows)
    with pytest.warns(BpaWarning, match=r"row 3: .*rejected"):
        assert len(read(*rows, bad="drop")) == 2
    del rows[2]["rejected"]
    with raises(DataError, "missing-column", line=3, parameter="format", match="'prompt, chosen'"):
        read(*rows, bad="drop")


def test_preferences_are_left_out_where_a_candidate_is_dropped() -> None:
    """They name candidates by their places, which change."""
    candidates = [{"text": text, "lm": lm} for text, lm in zip("abc", (-1.5, 2, 3), strict=True)]
    odd = [{"text": "z", "lm": float("1e61")}, *candidates]
    rows = [{"preferences": [[2, 1]], "candidates": of} for of in (odd, candidates)]
    with pytest.warns(BpaWarning) as caught:
        lists = from_records(rows, bad="drop", features="lm")
    assert "preferences are left out where a candidate" in str(caught[0].message)
    assert lists.sentence_extras["preferences"] == (None, [[2, 1]])
    assert lists.texts(0) == lists.texts(1) == ["a", "b", "c"]


@pytest.mark.parametrize("odd", [{"preferences": [[0, 5]]}, {"rankings": [[0, [1], 0]]}])
def test_adapt_names_odd_answers(odd: Row) -> None:
    candidates = [{"text": "a", "lm": 1.5}, {"text": "b", "lm": 0.25}]
    rows = [{"preferences": [[0, 1]], "candidates": candidates} for _ in range(3)]
    lists = read(*rows, {**odd, "candidates": candidates}, features="lm")
    with pytest.raises(DataError, match=next(iter(odd))):
        adapt(lists, None, sampler="map")

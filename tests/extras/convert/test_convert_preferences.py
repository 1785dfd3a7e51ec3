"""Preference data in turns, with ratings, labels and ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.extras.convert import kto, ranked, sharegpt, ultrafeedback

Row = dict[str, Any]


def say(*texts: str) -> list[Row]:
    """Return a conversation as ShareGPT has it."""
    return [{"from": ("human", "gpt")[n % 2], "value": text} for n, text in enumerate(texts)]


def talk(*texts: str) -> list[Row]:
    return [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(texts)]


@pytest.mark.parametrize(
    "row",
    [
        {
            "conversations": say("1?", "2", "so?"),
            "chosen": say("", "yes")[1],
            "rejected": say("", "no")[1],
        },
        {"chosen": say("1?", "2", "so?", "yes"), "rejected": say("1?", "2", "so?", "no")},
    ],
)
def test_pairs_of_sharegpt(row: Row) -> None:
    expected = {"source": "so?", "candidates": [{"text": "yes"}, {"text": "no"}]}
    expected |= {"preferences": [[0, 1]]}
    assert sharegpt([row, row | {"id": "x"}]) == [{"id": 0, **expected}, {"id": "x", **expected}]


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"chosen": say("q", "a"), "rejected": say("r", "b")}, "before the answers differ"),
        ({"chosen": say("q"), "rejected": say("q")}, "of 'human'"),
        ({"chosen": [], "rejected": []}, "before the answers differ"),
        ({"chosen": talk("q", "a"), "rejected": talk("q", "b")}, "`from`"),
        ({"chosen": say("q", "a")}, "`rejected`"),
        ({"chosen": "a", "rejected": "b"}, "got `str`"),
    ],
)
def test_other_rows_are_no_pairs_of_sharegpt(row: Row, shown: str) -> None:
    good = {"chosen": say("q", "a"), "rejected": say("q", "b")}
    with raises(DataError, "bad-line", line=2, match=shown):
        sharegpt([good, row])


RATED: Row = {
    "source": "flan",
    "instruction": "Un chat",
    "models": ["m", "n"],
    "completions": [
        {
            "model": model,
            "response": text,
            "overall_score": 8.5,
            "fine-grained_score": 4.25,
            "critique": "…",
            "annotations": {
                "helpfulness": {"Rating": rating, "Rationale": "…", "Type": ["1"]},
                "honesty": {"Rating": "N/A", "Rationale": "…"},
            },
        }
        for model, text, rating in (("m", "a cat", "5"), ("n", "cat", "2"))
    ],
}


def test_rows_of_ultrafeedback() -> None:
    scores = {"honesty": None, "overall_score": 8.5, "fine-grained_score": 4.25, "critique": "…"}
    scores |= {f"{name}.Rationale": "…" for name in ("helpfulness", "honesty")}
    scores |= {"helpfulness.Type": ["1"]}
    candidates = [
        {"text": "a cat", "system": "m", "helpfulness": 5, **scores},
        {"text": "cat", "system": "n", "helpfulness": 2, **scores},
    ]
    (of_list,) = ultrafeedback([RATED])
    assert of_list["candidates"] == candidates
    assert (of_list["source"], of_list["record.source"]) == ("Un chat", "flan")


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (
            {"instruction": "q", "completions": [{**RATED["completions"][0], "response": None}]},
            "response",
        ),
        ({"instruction": "q", "generations": ["a"], "ratings": [5]}, "`completions`"),
        (
            {
                "instruction": "q",
                "completions": [
                    {"model": "m", "response": "a", "annotations": {"x": {"Rating": "6"}}}
                ],
            },
            "'6'",
        ),
        ({"prompt": "q", "chosen": "a", "rejected": "b"}, "`instruction`"),
    ],
)
def test_other_rows_are_none_of_ultrafeedback(row: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        ultrafeedback([RATED, row])


@pytest.mark.parametrize("form", [lambda *of: of[-1], talk])
def test_rows_of_kto(form: Callable[..., Any]) -> None:
    answers = [("q", "a", True), ("r", "b", True), ("q", "c", False)]
    rows = [
        {"prompt": form(prompt), "completion": form("", text), "label": label}
        for prompt, text, label in answers
    ]
    rows[1] |= {"id": "k7", "reward": 0.5, "source": "web"}
    others = {"id": "k7", "reward": 0.5, "record.source": "web"}
    assert kto(rows) == [
        {
            "id": 0,
            "source": "q",
            "candidates": [{"text": "a", "label": True}, {"text": "c", "label": False}],
        },
        {"id": 1, "source": "r", "candidates": [{**others, "text": "b", "label": True}]},
    ]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"label": "true"}, "`bool`"),
        ({"label": 1}, "`bool`"),
        ({"completion": None}, "completion"),
        ({"completion": []}, "no turns"),
        ({"prompt": [{"from": "human", "value": "q"}]}, "`role`"),
    ],
)
def test_other_rows_are_none_of_kto(change: Row, shown: str) -> None:
    good = {"prompt": "q", "completion": "a", "label": True}
    with raises(DataError, "bad-line", line=2, match=shown):
        kto([good, good | change])


@pytest.mark.parametrize(
    ("row", "texts", "judgement"),
    [
        ({"chosen": ["a"], "rejected": ["b", "c"]}, "abc", {"rankings": [[0, [1, 2]]]}),
        (
            {"chosen": ["a", "b"], "rejected": ["c"], "id": "x"},
            "abc",
            {"rankings": [[0, [2]], [1, [2]]]},
        ),
        (
            {"answers": [{"answer": t, "rank": n} for t, n in zip("bac", (2, 1, 3), strict=True)]},
            "bac",
            {"rankings": [[1, 0, 2]]},
        ),
        (
            {"answers": [{"answer": t, "rank": n} for t, n in zip("bac", (2, 1, 2), strict=True)]},
            "bac",
            {"preferences": [[1, 0], [1, 2]], "ties": [[0, 2]]},
        ),
        ({"answers": [{"answer": "a", "rank": 1, "model": "m"}]}, "a", {}),
    ],
)
def test_rows_of_ranked_answers(row: Row, texts: str, judgement: Row) -> None:
    (of_list,) = ranked([{"prompt": "q", "subset": "Math", **row}])
    candidates = of_list.pop("candidates")
    assert [one["text"] for one in candidates] == list(texts)
    assert of_list == {"id": row.get("id", 0), "source": "q", "subset": "Math", **judgement}
    assert candidates[0].get("system") == ("m" if texts == "a" else None)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"prompt": "q", "chosen": ["a"], "rejected": []}, "no answer"),
        ({"prompt": "q", "chosen": "a", "rejected": "b"}, "got `str`"),
        ({"prompt": "q", "answers": [{"answer": "a"}]}, "`rank`"),
        ({"prompt": "q", "answers": [{"answer": "a", "rank": "1"}]}, "rank"),
        ({"chosen": ["a"], "rejected": ["b"]}, "`prompt`"),
    ],
)
def test_other_rows_are_no_ranked_answers(row: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        ranked([{"prompt": "q", "chosen": ["a"], "rejected": ["b"]}, row])


def test_fields_of_ranked_answers_may_have_other_names() -> None:
    row = {"query": "how warm?", "pos": ["38.5"], "neg": ["Dogs bark.", "Cats"], "prompt": "Judge:"}
    (of_list,) = ranked([row], question="query", first="pos", second="neg")
    assert (of_list["source"], of_list["rankings"]) == ("how warm?", [[0, [1, 2]]])
    assert [one["text"] for one in of_list["candidates"]] == ["38.5", "Dogs bark.", "Cats"]

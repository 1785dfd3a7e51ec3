"""Results of lm-evaluation-harness, inspect_ai and promptfoo."""

from __future__ import annotations

from typing import Any

import pytest
from support.raising import raises

from bpa_ppl import BpaWarning, DataError
from bpa_ppl.extras.convert import inspect, lmeval, promptfoo

Row = dict[str, Any]

SAMPLE: Row = {
    "doc_id": 0,
    "doc": {"question": "6*7?", "answer": "42"},
    "target": "42",
    "arguments": {"gen_args_0": {"arg_0": "Q: 6*7?\nA:", "arg_1": {"until": ["\n"]}}},
    "resps": [["42", "41", "42"]],
    "filtered_resps": ["42"],
    "filter": "strict-match",
    "exact_match": 1.0,
}


def test_generated_answers_with_a_line_for_each_filter() -> None:
    other = {**SAMPLE, "doc_id": 1, "resps": [["2"]], "target": 2}
    flexible = {**SAMPLE, "filter": "flexible-extract", "filtered_resps": ["41"]}
    others = {name: SAMPLE[name] for name in ("doc", "filtered_resps", "filter", "exact_match")}
    candidates = [[{"text": text} for text in of] for of in (("42", "41", "42"), ("2",))]
    assert lmeval([SAMPLE, other, flexible]) == [
        {"id": 0, "references": ["42"], "candidates": candidates[0], **others},
        {"id": 1, "references": ["2"], "candidates": candidates[1], **others},
    ]


@pytest.mark.parametrize("target", ["1", 1, "blue"])
@pytest.mark.parametrize("named", [True, False])
def test_choices_with_log_likelihoods(target: str | int, named: bool) -> None:
    pairs = [["The sky is", " red"], ["The sky is", " blue"]]
    arguments: Any = {
        f"gen_args_{k}": {"arg_0": one, "arg_1": other} for k, (one, other) in enumerate(pairs)
    }
    sample = {"doc_id": 7, "target": target, "arguments": arguments if named else pairs}
    sample |= {"resps": [[["-4.5", "False"]], [[-1.25, True]]]}
    assert lmeval([sample]) == [
        {
            "id": 7,
            "candidates": [
                {"text": "red", "features": {"loglikelihood": -4.5}, "correct": False},
                {"text": "blue", "features": {"loglikelihood": -1.25}, "correct": True},
            ],
        }
    ]


CHOICES = {"a": {"arg_0": "q", "arg_1": " x"}, "b": {"arg_0": "q", "arg_1": " y"}}


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"resps": [["41"]]}, "other answers"),
        ({"doc_id": None}, "doc_id"),
        ({"doc_id": 1, "resps": "42"}, "resps"),
        ({"doc_id": 1, "resps": [["a"], ["b"]]}, "neither"),
        ({"doc_id": 1, "resps": [[[-1, True]]]}, "arguments"),
        ({"doc_id": 1, "resps": [[[-1, True]], [[-2, True]]], "arguments": CHOICES}, "'42'"),
        ({"doc_id": 1, "resps": [[[]], [[]]], "arguments": CHOICES, "target": "x"}, r"resps\[0\]"),
        (
            {"doc_id": 1, "resps": [[["x"]], [[-2]]], "arguments": CHOICES, "target": "x"},
            "log-likelihood",
        ),
    ],
)
def test_other_records_are_no_samples(change: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        lmeval([SAMPLE, SAMPLE | change])


def log(model: str, *samples: Row, **more: Any) -> Row:
    evaluation = {"task": "arithmetic", "model": model}
    return {"version": 2, "status": "success", "eval": evaluation, "samples": [*samples], **more}


def sample(answer: str, id: int | str = 1, epoch: int = 1, **scores: Any) -> Row:
    return {
        "id": id,
        "epoch": epoch,
        "input": "6 * 7?",
        "target": "42",
        "output": {"model": "m", "completion": answer, "choices": []},
        "scores": {name: {"value": value, "answer": answer} for name, value in scores.items()},
    }


def test_logs_of_inspect() -> None:
    logs = [
        log("m", sample("42", match="C"), sample("41", epoch=2, match="I")),
        log("n", sample("42.", match="P", judge={"clear": 3, "short": 0.5}), sample("6", "x")),
    ]
    lists = inspect(logs)
    assert [of["id"] for of in lists] == [1, "x"]
    assert {name: lists[0][name] for name in ("source", "references")} == {
        "source": "6 * 7?",
        "references": ["42"],
    }
    assert lists[0]["candidates"] == [
        {"text": "42", "system": "m", "match": 1, "match.answer": "42"},
        {"text": "41", "system": "m", "match": 0, "match.answer": "41"},
        {"text": "42.", "system": "n", "match": 0.5, "judge.clear": 3, "judge.short": 0.5}
        | {"match.answer": "42.", "judge.answer": "42."},
    ]


def test_conversations_and_several_targets_of_inspect() -> None:
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    one = {**sample("a"), "input": turns, "target": ["a", "b"]}
    (of_list,) = inspect([log("m", one)])
    assert (of_list["source"], of_list["references"]) == ("q", ["a", "b"])


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (log("m", {**sample("a"), "target": "43"}), "another sample '1'"),
        (log("m", sample("a", match=[1, 2])), "'match' is "),
        (log("m", {**sample("a"), "output": {}}), "`completion`"),
        ({"eval": {"model": "m"}}, "`samples`"),
        ({"results": []}, "`eval`"),
    ],
)
def test_other_records_are_no_logs(record: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        inspect([log("m", sample("42")), record])


def result(test: int, provider: str, output: Any, score: float = 1, **more: Any) -> Row:
    row: Row = {"testIdx": test, "promptIdx": 0, "vars": {"city": f"é{test}"}, "success": True}
    row |= {"provider": {"id": provider, "label": ""}, "score": score, "namedScores": {}}
    return {**row, "response": {"output": output}, **more}


RESULTS = [
    result(0, "m", "a"),
    result(1, "m", {"answer": "b"}, 0.5, namedScores={"tone": 0.25}),
    result(0, "n", "c", 0),
]


@pytest.mark.parametrize(
    "records",
    [
        RESULTS,
        [{"evalId": "e", "results": {"version": 3, "results": RESULTS, "prompts": []}}],
    ],
)
def test_results_of_promptfoo(records: list[Row]) -> None:
    assert promptfoo(records) == [
        {
            "id": 0,
            "source": '{"city": "é0"}',
            "candidates": [
                {"success": True, "text": "a", "system": "m", "prompt": 0, "score": 1},
                {"success": True, "text": "c", "system": "n", "prompt": 0, "score": 0},
            ],
        },
        {
            "id": 1,
            "source": '{"city": "é1"}',
            "candidates": [
                {
                    "text": '{"answer": "b"}',
                    "system": "m",
                    "prompt": 0,
                    "score": 0.5,
                    "success": True,
                    "tone": 0.25,
                }
            ],
        },
    ]


def test_results_without_an_output() -> None:
    failed = [result(0, "n", None, error="x"), {**result(0, "o", ""), "response": None}]
    for row in failed:
        with raises(DataError, "bad-line", line=4, parameter="bad"):
            promptfoo([*RESULTS, row])
    with pytest.warns(BpaWarning, match="left out: 2 results that failed"):
        assert promptfoo([*RESULTS, *failed], bad="drop") == promptfoo(RESULTS)


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"results": [1]}, "results"),
        ({"results": {"results": [{"vars": {}}]}}, "`testIdx`"),
        ({**RESULTS[0], "score": "1"}, "score"),
        ({**RESULTS[0], "provider": "m"}, "provider"),
    ],
)
def test_other_records_are_no_results(record: Row, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        promptfoo([RESULTS[0], record])

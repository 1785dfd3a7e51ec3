"""Answers of LLMs in the forms of their servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises

import bpa_ppl.extras.convert as convert
from bpa_ppl import BpaWarning, DataError, UsageError, from_records, read_nbest

GOLDEN = Path(__file__).parents[2] / "formats" / "golden"
#: The answer "a cat" of each server: its kind, its response, and the sum of its log-probabilities.
ANSWERS: dict[str, tuple[str, dict[str, Any], float | None]] = {
    of["name"]: (of["kind"], of["body"], of["logprob"])
    for of in map(json.loads, (GOLDEN / "answers.jsonl").read_text("utf-8").splitlines())
}
KINDS = ("anthropic", "bedrock", "cohere", "gemini", "llamacpp", "ollama", "responses")
#: The lines of the servers' batches, and ours for all of them.
WRAPPED: dict[str, Callable[[Any], Any]] = {
    "anthropic": lambda body: {
        "custom_id": "r-5",
        "result": {"type": "succeeded", "message": body},
    },
    "gemini": lambda body: {"key": "r-5", "response": body},
    "bedrock": lambda body: {"recordId": "r-5", "modelInput": {}, "modelOutput": body},
    "responses": lambda body: {
        "custom_id": "r-5",
        "response": {"status_code": 200, "request_id": "x", "body": body},
        "error": None,
    },
}


def wrap(body: Any, name: str = "r-5") -> dict[str, Any]:
    return {"custom_id": name, "response": body}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("wrapped", [None, "ours", "theirs"])
def test_one_answer_in_every_form(name: str, wrapped: str | None) -> None:
    kind, body, total = ANSWERS[name]
    record = body
    if wrapped is not None:
        record = WRAPPED.get(kind, wrap)(body) if wrapped == "theirs" else wrap(body)
    (of_list,) = convert.answers([record], kind)
    (candidate,) = of_list["candidates"]
    assert of_list["id"] == (0 if wrapped is None else "r-5")
    assert candidate["text"] == "a cat"
    assert candidate.get("model") == (None if kind == "bedrock" else "m")
    features = candidate["features"]
    assert features["count"] == 1
    if total is None:
        assert set(features) <= {"count"}
    else:
        assert features["logprob.sum"] == pytest.approx(total)
        assert features["logprob.mean"] == pytest.approx(total / features["length"])
        assert features["logprob.min"] <= features["logprob.mean"]
    assert of_list.get("source") == body.get("prompt")


@pytest.mark.parametrize("name", ANSWERS)
def test_several_lines_of_one_prompt(name: str) -> None:
    kind, body, _ = ANSWERS[name]
    lines = [wrap(body, f"q-{q}-s{s}") for q in (0, 1) for s in (0, 1, 2)]
    lists = convert.answers(lines, kind, prompt_id="(.*)-s")
    assert [of["id"] for of in lists] == ["q-0", "q-1"]
    assert [[c["features"]["count"] for c in of["candidates"]] for of in lists] == [[3], [3]]
    with raises(DataError, "mismatch", parameter="prompt_id", line=1, match="'q-0-s0'"):
        convert.answers(lines, kind, prompt_id="(.*)-x")


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_a_format_reads_what_the_converter_reads(name: str, tmp_path: Path) -> None:
    kind, body, _ = ANSWERS[name]
    records = [wrap(body, f"q-{q}-s{s}") for q in (7, 3) for s in (0, 1)]
    expected = from_records(convert.answers(records, kind, prompt_id="(.*)-s"))
    assert (expected.ids, expected.sentence_ids.tolist()) == (("q-7", "q-3"), [7, 3])
    requests = [
        {"custom_id": f"q-{q}", "params": {"messages": [{"role": "user", "content": f"is {q}?"}]}}
        for q in (3, 5, 7)
    ]
    write = (tmp_path / "requests.jsonl").write_text
    write("\n".join(map(json.dumps, requests)))
    for text in ("\n".join(map(json.dumps, records)), json.dumps(records, indent=1)):
        lists = read_nbest([text], format=f"{kind}:prompt_id=(.*)-s")
        assert (lists.ids, lists.sentence_ids.tolist()) == (("q-3", "q-7"), [3, 7])
        assert lists.texts(0) == expected.texts(1) == ["a cat"]
        assert lists.feature_names == expected.feature_names
        np.testing.assert_array_equal(lists.features, expected.features)
        options = f"prompt_id=(.*?)(?:-s.)?$,requests={tmp_path}/requests.jsonl,source=is (.)"
        lists = read_nbest([text], format=f"{kind}:{options}")
        assert (lists.ids, lists.sources) == (("q-3", "q-7"), ("3", "7"))
        assert lists.sentence_ids.tolist() == [0, 2]


def test_the_most_probable_of_equal_answers_is_kept() -> None:
    def answer(text: str, *logprobs: float) -> dict[str, Any]:
        logged = [{"token": "x", "logprob": value} for value in logprobs]
        return {"content": text, "stop": True, "stop_type": "eos"} | {
            "completion_probabilities": logged,
            "prompt": "q",
        }

    answers = [answer("a", -2, -2), answer(" a", -1), answer("b", -3), answer("a", -5)]
    (of_list,) = convert.answers(answers, "llamacpp")
    assert of_list == {
        "id": 0,
        "source": "q",
        "candidates": [
            {
                "text": "a",
                "features": {
                    "logprob.sum": -1,
                    "logprob.mean": -1,
                    "logprob.min": -1,
                    "length": 1,
                    "count": 3,
                },
            },
            {
                "text": "b",
                "features": {
                    "logprob.sum": -3,
                    "logprob.mean": -3,
                    "logprob.min": -3,
                    "length": 1,
                    "count": 1,
                },
            },
        ],
    }


def test_an_unknown_log_probability_makes_all_of_the_answer_unknown() -> None:
    tokens = [{"logprob": None}, {"logprob": -1.0}]
    answer = {"model": "m", "done": True, "done_reason": "stop", "response": "a"}
    answer |= {"logprobs": tokens}
    assert convert.answers([answer], "ollama")[0]["candidates"][0]["features"] == {"count": 1}


def test_the_mean_log_probability_of_gemini() -> None:
    one = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP", "avgLogprobs": -0.5}
    (of_list,) = convert.answers([{"candidates": [one]}], "gemini")
    assert of_list["candidates"][0]["features"] == {"logprob.mean": -0.5, "count": 1}


def test_requests_in_the_lines_of_vertex() -> None:
    def line(prompt: str, text: str) -> dict[str, Any]:
        request = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
        one = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
        return {"status": "", "request": request, "response": {"candidates": [one]}}

    lists = convert.answers([line("q", "a"), line("r", "b"), line("q", "c")], "gemini")
    assert [of["source"] for of in lists] == ["q", "r"]
    assert [[c["text"] for c in of["candidates"]] for of in lists] == [["a", "c"], ["b"]]


def test_chats_and_settings_of_formats() -> None:
    def chat(*texts: str, name: str) -> dict[str, Any]:
        choices = [{"message": {"content": f"= {text}"}} for text in texts]
        return {"custom_id": name, "response": {"body": {"choices": choices, "model": "m"}}}

    lines = [chat("a", "b", name="p-5-s1"), chat("b", name="p-5-s2")]
    lists = convert.answers(lines, "openai:prompt_id=(.*)-s", extract="= (.*)")
    a, b = ({"text": t, "features": {"count": n}, "model": "m"} for t, n in (("a", 1), ("b", 2)))
    assert lists == [{"id": "p-5", "id_number": 5, "candidates": [a, b]}]
    for server in ("moses", "plain:list_size=2", "x"):
        with raises(UsageError, "unknown-name", parameter="server", match="one of openai"):
            convert.answers(lines, server)


def test_a_pattern_finds_the_candidate() -> None:
    answer = {"model": "m", "done": True, "done_reason": "stop"}
    answer |= {"response": "<think>2?</think>\n 4"}
    for pattern in ("</think>(.*)", "[^>]*$"):
        (of_list,) = convert.answers([answer], "ollama", extract=pattern)
        assert of_list["candidates"][0]["text"] == "4"
    with raises(DataError, "bad-response", parameter="bad", line=1):
        convert.answers([answer], "ollama", extract="<t>(.*)</t>")
    with raises(UsageError, "invalid-setting", parameter="extract"):
        convert.answers([answer], "ollama", extract="(")


OUTPUT = ANSWERS["responses"][1]["output"]
#: Answers with fields that make them incomplete or none, and what the message says of them.
FAILED: list[tuple[str, dict[str, Any], str]] = [
    ("responses", {"status": "incomplete"}, "'incomplete'"),
    ("responses", {"status": "failed", "output": [], "error": {"message": "x"}}, "'x'"),
    ("responses", {"output": OUTPUT[:2]}, "without a text"),
    ("responses", {"output": [{"type": "message", "content": [{"type": "refusal"}]}]}, "refusal"),
    ("anthropic", {"stop_reason": "max_tokens"}, "'max_tokens'"),
    ("anthropic", {"stop_reason": "refusal"}, "'refusal'"),
    ("anthropic", {"content": [{"type": "tool_use"}]}, "without a text"),
    ("gemini", {"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]}, "'MAX_TOKENS'"),
    ("gemini", {"candidates": None, "promptFeedback": {"blockReason": "x"}}, "without answers"),
    ("ollama chat", {"done_reason": "length"}, "'length'"),
    ("llama.cpp", {"stop_type": "limit"}, "'limit'"),
    ("cohere", {"finish_reason": "MAX_TOKENS"}, "'MAX_TOKENS'"),
    ("converse", {"stopReason": "max_tokens"}, "'max_tokens'"),
    ("llama on bedrock", {"stop_reason": "length"}, "'length'"),
]


@pytest.mark.parametrize(("name", "fields", "shown"), FAILED)
def test_incomplete_answers_are_refused_or_dropped(
    name: str, fields: dict[str, Any], shown: str
) -> None:
    kind, body, _ = ANSWERS[name]
    records = [wrap(body, "r-1"), wrap(body | fields, "r-2"), wrap(body, "r-3")]
    with raises(DataError, "bad-response", parameter="bad", line=2, match=shown):
        convert.answers(records, kind)
    with pytest.warns(BpaWarning, match=f"left out: (?=.*{shown}).*: 1 .r-2."):
        lists = convert.answers(records, kind, bad="drop")
    assert [(of["id"], len(of["candidates"])) for of in lists] == [
        ("r-1", 1),
        ("r-2", 0),
        ("r-3", 1),
    ]
    with raises(UsageError, "unknown-name", parameter="bad"):
        convert.answers(records, kind, bad="ignore")


ERROR = {"type": "error", "error": {"type": "x", "message": "Bad input"}}


@pytest.mark.parametrize(
    ("kind", "record", "shown"),
    [
        ("anthropic", {"custom_id": "r", "result": {"type": "errored", "error": ERROR}}, "Bad"),
        ("anthropic", {"custom_id": "r", "result": {"type": "expired"}}, "'expired'"),
        ("anthropic", ERROR, "Bad input"),
        ("gemini", {"key": "r", "error": {"code": 3, "message": "Bad input"}}, "Bad input"),
        ("bedrock", {"recordId": "r", "modelInput": {}, "error": {"errorMessage": "Bad"}}, "Bad"),
        ("responses", wrap({"status_code": 429, "body": None}), "status 429"),
        ("responses", {"custom_id": "r", "response": None, "error": {"message": "x"}}, "'x'"),
    ],
)
def test_errors_of_servers(kind: str, record: dict[str, Any], shown: str) -> None:
    with raises(DataError, "bad-response", parameter="bad", line=1, match=shown):
        convert.answers([record], kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrapped", [lambda of: of, wrap])
def test_other_records_are_refused(kind: str, wrapped: Callable[[Any], Any]) -> None:
    chat = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "model": "m"}
    others: list[Any] = [{}, chat, "a cat", 7, None, [1], {"id": 0, "text": "a cat"}]
    same = {kind, "anthropic"} if kind == "bedrock" else {kind}
    others += [body for of, body, _ in ANSWERS.values() if of not in same]
    good = next(body for of, body, _ in ANSWERS.values() if of == kind)
    for other in others:
        with raises(DataError, "bad-line", line=2, match="not an? .*: "):
            convert.answers([wrapped(good), wrapped(other)], kind)
    with raises(DataError, "no-data", parameter="records"):
        convert.answers([], kind)


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("ollama", {"model": "m", "done": False, "response": "a"}),
        ("llamacpp", {"content": "a", "stop": False}),
    ],
)
def test_parts_of_streams_are_refused(kind: str, record: dict[str, Any]) -> None:
    with raises(DataError, "not-supported", line=1, match="streamed"):
        convert.answers([record], kind)


def test_probabilities_of_older_servers_are_refused() -> None:
    answer = {"content": "a", "stop": True, "stop_type": "eos"}
    answer |= {"completion_probabilities": [{"content": "a", "probs": []}]}
    with raises(DataError, "bad-line", line=1, match="`logprob`"):
        convert.answers([answer], "llamacpp")


@pytest.mark.parametrize("name", [1.5, ["r"], True, {}])
def test_names_of_prompts_are_texts_or_integers(name: Any) -> None:
    body = ANSWERS["ollama chat"][1]
    with raises(DataError, "bad-line", line=1, match="custom_id"):
        convert.answers([{"custom_id": name, "response": body}], "ollama")

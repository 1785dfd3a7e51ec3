"""Responses of other servers and batches, and the tokens that belong to the text of an answer."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.user_files import Write, run_shell

from bpa_ppl import NBest, from_samples, read_nbest
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.errors import DataError
from bpa_ppl.formats.openai import Openai
from bpa_ppl.formats.reading import format_name

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "llm-samples.md"


def line(**fields: Any) -> str:
    return json.dumps(fields)


def logged(*tokens: tuple[str, float | None]) -> list[dict[str, Any]]:
    """Return tokens with their log-probabilities, as chats have them."""
    return [{"token": t, "logprob": v, "bytes": list(t.encode())} for t, v in tokens]


def chat(*choices: tuple[dict[str, Any], Any], **more: Any) -> str:
    """Return a response of a chat: messages, and their tokens."""
    answers = [
        {"index": k, "message": m, "logprobs": t and {"content": t}, "finish_reason": "stop"}
        for k, (m, t) in enumerate(choices)
    ]
    return line(id="1", object="chat.completion", choices=answers, **more)


def completion(*answers: tuple[str, list[str], list[float | None]], **more: Any) -> str:
    """Return a response of completions: texts, their tokens and log-probabilities."""
    choices = [
        {
            "index": k,
            "text": text,
            "logprobs": {"tokens": tokens, "token_logprobs": values, "top_logprobs": None},
            "finish_reason": "stop",
        }
        for k, (text, tokens, values) in enumerate(answers)
    ]
    return line(id="1", object="text_completion", choices=choices, **more)


def read(*lines: str, **settings: Any) -> tuple[NBest, str]:
    """Return what is read, and the warnings and messages."""
    with capture_notes() as notes:
        lists = read_nbest(list(lines), **settings)
    return lists, "\n".join(note.message for note in notes)


def sums(lists: NBest) -> list[float]:
    """Return the log-probabilities of the candidates, as a feature or as an extra."""
    name = "logprob.sum"
    if name in lists.feature_names:
        return [float(v) for v in lists.features[:, lists.feature_names.index(name)]]
    return [float(v) for v in lists.extras.get(name, [np.nan] * len(lists.features))]


def texts(lists: NBest) -> list[list[str]]:
    return [list(lists.texts(s)) for s in range(len(lists))]


CAT = logged(("a", -0.1), (" cat", -0.2))
TOKEN = {"token": "hm", "logprob": -3.0}
MESSAGE = {"role": "assistant", "content": "a cat"}
#: The answer "a cat" of each server, and the sum of its log-probabilities, or None without any.
ANSWERS: dict[str, tuple[dict[str, Any], float | None]] = {
    of["name"]: (of["body"], of["logprob"])
    for of in map(json.loads, (GOLDEN / "answers.jsonl").read_text("utf-8").splitlines())
}
OUTPUT, ANTHROPIC, GEMINI = (ANSWERS[name][0] for name in ("responses", "anthropic", "gemini"))
OLLAMA = {"model": "m", "created_at": "2025", "done": True, "done_reason": "stop", "eval_count": 2}
LLAMA, SGLANG, TGI = (ANSWERS[name][0] for name in ("llama.cpp without", "sglang", "tgi"))
VLLM, CONVERSE = ANSWERS["vllm"][0], ANSWERS["converse"][0]
#: How the response to the request r-5 stands in the lines of batches.
WRAPPED = {
    "alone": "BODY",
    "openai": '{"id":"b","custom_id":"r-5","error":null,"response":{"status_code":200,'
    '"request_id":"x","body":BODY}}',
    "anthropic": '{"custom_id":"r-5","result":{"type":"succeeded","message":BODY}}',
    "gemini": '{"key":"r-5","response":BODY}',
    "vertex": '{"status":"","processed_time":"2025","request":{"contents":[{"role":"user","parts":'
    '[{"text":"eine Katze"}]}]},"response":BODY}',
    "bedrock": '{"recordId":"r-5","modelInput":{},"modelOutput":BODY}',
}


def wrap(name: str, body: dict[str, Any]) -> str:
    return WRAPPED[name].replace("BODY", line(**body))


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.filterwarnings("ignore:.*counted in the order")
def test_one_answer_in_every_form(name: str, wrapped: str) -> None:
    body, total = ANSWERS[name]
    content = wrap(wrapped, body)
    assert format_name([content]) == "openai"
    lists, _ = read(content)
    assert texts(lists) == [["a cat"]]
    assert lists.extras["model"] == ("m",)
    assert sums(lists) == [pytest.approx(total) if total else pytest.approx(np.nan, nan_ok=True)]
    assert lists.ids == ((5,) if wrapped not in ("alone", "vertex") else (0,)) or lists.ids == (
        "r-5",
    )
    if wrapped == "vertex" and "prompt" not in body:
        assert lists.sources == ("eine Katze",)


@pytest.mark.parametrize("name", ANSWERS)
def test_several_lines_of_one_prompt(name: str) -> None:
    body, _ = ANSWERS[name]
    lines = [line(custom_id=f"q-{q}-s{s}", response=body) for q in (0, 1) for s in (0, 1, 2)]
    lists, _ = read(*lines, format=Openai(prompt_id="(.*)-s"))
    assert texts(lists) == [["a cat"], ["a cat"]]
    assert lists.features[:, lists.feature_names.index("count")].tolist() == [3, 3]


#: Answers, the fields that make them incomplete or none, and what the message says of them.
FAILED: list[tuple[str, dict[str, Any], str]] = [
    ("responses", {"status": "incomplete", "incomplete_details": {"reason": "x"}}, "'x': 1"),
    ("responses", {"status": "failed", "output": [], "error": {"message": "x"}}, "errors .* 'x'"),
    ("responses", {"output": OUTPUT["output"][:2]}, "without a text: 1"),
    ("responses", {"output": [{"type": "message", "content": [{"refusal": "x"}]}]}, "refusals: 1"),
    ("anthropic", {"stop_reason": "max_tokens"}, "'max_tokens': 1"),
    ("anthropic", {"stop_reason": "refusal"}, "'refusal': 1"),
    ("gemini", {"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]}, "'MAX_TOKENS': 1"),
    ("gemini", {"candidates": None, "promptFeedback": {"blockReason": "x"}}, "without choices: 1"),
    ("ollama chat", {"message": {"content": "", "tool_calls": [{}]}}, "without a text: 1"),
    ("ollama chat", {"done_reason": "length"}, "'length': 1"),
    ("llama.cpp", {"stop_type": "limit"}, "'limit': 1"),
    ("older llama.cpp", {"stopped_limit": True}, "'limit': 1"),
    ("sglang", {"meta_info": {"finish_reason": {"type": "length", "length": 1}}}, "'length': 1"),
    ("tgi", {"details": {"finish_reason": "length"}}, "'length': 1"),
    ("vllm", {"outputs": [{"text": "a", "finish_reason": "length"}]}, "'length': 1"),
    ("cohere", {"finish_reason": "MAX_TOKENS"}, "'MAX_TOKENS': 1"),
    ("converse", {"stopReason": "max_tokens"}, "'max_tokens': 1"),
    ("chat", {"choices": [{"message": {"content": "", "tool_calls": [{}]}}]}, "without a text: 1"),
    ("chat", {"choices": [{"message": {"content": [{"refusal": "No."}]}}]}, "refusals: 1"),
    ("chat", {"choices": [{"message": {"content": None, "refusal": "No."}}]}, "refusals: 1"),
    ("chat", {"choices": [{**MESSAGE, "text": "a", "finish_reason": "length"}]}, "'length': 1"),
    ("chat", {"choices": [{"text": "a", "logprobs": {"token_logprobs": [-9e60]}}]}, "finite: 1"),
    ("chat", {"choices": []}, "without choices: 1"),
]


@pytest.mark.parametrize(("name", "fields", "shown"), FAILED)
@pytest.mark.parametrize("wrapped", ["openai", "gemini"])
def test_incomplete_answers_are_listed_or_dropped(
    name: str, fields: dict[str, Any], shown: str, wrapped: str
) -> None:
    body = ANSWERS[name][0] | fields
    good = [line(custom_id=f"r-{n}", response={"body": OUTPUT}) for n in (4, 6)]
    content = [good[0], wrap(wrapped, body), good[1]]
    with raises(DataError, "bad-response", parameter="bad", line=2, match=shown):
        read(*content)
    lists, notes = read(*content, bad="drop")
    assert lists.sentence_ids.tolist() == [4, 6]
    assert "left out: " in notes
    with raises(DataError, "no-data"):
        read(content[1], bad="drop")


BATCH_ERROR = {"type": "error", "error": {"type": "x", "message": "Bad input"}}


@pytest.mark.parametrize(
    ("failed", "shown"),
    [
        ({"custom_id": "r-5", "response": {"status_code": 0, "body": {}}}, "without choices"),
        ({"custom_id": "r-5", "response": None, "error": None}, "without choices"),
        ({"custom_id": "r-5", "response": {"status_code": 429, "body": None}}, "'status 429'"),
        ({"custom_id": "r-5", "response": {"status_code": 200, "body": None}}, "without choices"),
        ({"custom_id": "r-5", "response": {"body": {"error": {"code": 3}}}}, "'code': 3"),
        ({"custom_id": "r-5", "response": "Bad gateway", "error": None}, "'Bad gateway'"),
        (
            {"custom_id": "r-5", "response": {"status_code": 400}}
            | {"error": {"object": "error", "message": "too large", "code": 400}},
            "'too large'",
        ),
        ({"custom_id": "r-5", "result": {"type": "errored", "error": BATCH_ERROR}}, "'Bad input'"),
        ({"custom_id": "r-5", "result": {"type": "expired"}}, "'expired'"),
        ({"key": "r-5", "error": {"code": 3, "message": "Bad input"}}, "'Bad input'"),
        ({"recordId": "r-5", "modelInput": {}, "error": {"errorMessage": "Bad"}}, "says 'Bad'"),
    ],
)
def test_failed_lines_of_batches(failed: dict[str, Any], shown: str) -> None:
    good = [line(custom_id=f"r-{n}", response={"body": OUTPUT}) for n in (4, 6)]
    for place in range(3):
        content = [*good[:place], line(**failed), *good[place:]]
        with raises(DataError, "bad-response", parameter="bad", line=place + 1, match=shown):
            read(*content)
        lists, notes = read(*content, bad="drop")
        assert lists.sentence_ids.tolist() == [4, 6]
        assert "1 sentence without candidates, the first of id 5" in notes


@pytest.mark.parametrize(
    ("failed", "shown"),
    [
        ({"object": "error", "message": "too long", "code": 400}, "errors instead .*'too long'"),
        ({"error": {"message": "slow down"}}, r"errors .* 1 \(line .*'slow down'"),
        ({"status": "Bad Request", "request": {"contents": []}, "response": {}}, "'Bad Request'"),
    ],
)
def test_errors_of_servers_alone(failed: dict[str, Any], shown: str) -> None:
    """Of SGLang, of most others, and in the batches of Vertex AI."""
    for content in ([line(**failed), line(**OUTPUT)], [line(**OUTPUT), line(**failed)]):
        assert format_name(content) == "openai"
        number = content.index(line(**failed)) + 1
        with raises(DataError, "bad-response", parameter="bad", line=number, match=shown):
            read(*content)
        lists, _ = read(*content, bad="drop")
        assert (texts(lists), lists.sentence_ids.tolist()) == ([["a cat"]], [2 - number])


def chunks(object: str, *choices: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of two answers, one after the other at each step, and their usage."""
    fields = {"object": object, "model": "m"}
    steps = [{"choices": [{"index": 0, "finish_reason": None, **of}]} for of in choices]
    steps.append({"choices": [], "usage": {}})
    return [{"id": name, **fields, **step} for step in steps for name in "zy"]


def delta(text: str, token: dict[str, Any]) -> dict[str, Any]:
    return {"delta": {"content": text}, "logprobs": {"content": [token]}}


CHAT = "chat.completion.chunk"
STOP = {"finish_reason": "stop"}
THOUGHT_FIRST = {"delta": {"reasoning_content": "hm"}, "logprobs": {"content": [TOKEN]}}
EMPTY_MESSAGE = {**ANTHROPIC, "content": [], "stop_reason": None}
TEXT = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a cat"}}
#: Parts of the answer "a cat"; in the first four, of two answers at each step.
STREAMED: dict[str, list[dict[str, Any]]] = {
    "chat": chunks(CHAT, delta("a", CAT[0]), delta(" cat", CAT[1]), {"delta": {}, **STOP}),
    "reasoning": chunks(CHAT, THOUGHT_FIRST, delta("a", CAT[0]), delta(" cat", CAT[1]) | STOP),
    "completion": chunks("text_completion", {"text": " a"}, {"text": " cat"}, {"text": "", **STOP}),
    "completion with tokens": chunks(
        "text_completion",
        *(
            {"text": text, "logprobs": {"tokens": [text], "token_logprobs": [value]}}
            for text, value in ((" a", -0.1), (" cat", -0.2))
        ),
        {"text": "", "logprobs": None, **STOP},
    ),
    "ollama chat": [
        {"model": "m", "message": {"content": "a"}, "done": False, "logprobs": CAT[:1]},
        {**OLLAMA, "message": {"content": " cat"}, "logprobs": CAT[1:]},
    ],
    "ollama prompt": [
        {"model": "m", "response": "a", "done": False},
        {**OLLAMA, "response": " cat"},
    ],
    "llama.cpp": [
        {**LLAMA, "content": " a", "stop": False, "completion_probabilities": CAT[:1]},
        {**LLAMA, "content": " cat", "completion_probabilities": CAT[1:]},
    ],
    "gemini": [
        {**GEMINI, "candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": " cat"}]}, "finishReason": "STOP"}]},
    ],
    "anthropic": [
        {"type": "message_start", "message": EMPTY_MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        TEXT,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
    "responses": [
        {"type": "response.created", "response": {**OUTPUT, "output": []}},
        {"type": "response.output_text.delta", "delta": "a"},
        {"type": "response.completed", "response": OUTPUT},
    ],
    "sglang": [{"text": " a", "meta_info": {"id": "1", "finish_reason": None}}, SGLANG],
    "tgi": [{"token": {"id": 7}, "generated_text": None}, {"token": {}, "generated_text": "a cat"}],
}


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("events", [False, True])
def test_parts_of_answers_are_joined_by_the_command_of_the_page(
    name: str, events: bool, tmp_path: Path
) -> None:
    several = name.startswith(("chat", "reasoning", "completion"))
    parts = STREAMED[name] if several else 2 * STREAMED[name]
    path, page = tmp_path / "parts.jsonl", PAGE.read_text("utf-8")
    path.write_text("".join(f"{line(**part)}\n" for part in parts))
    if events:
        marked = [f"event: x\ndata: {line(**part)}\n\n" for part in parts]
        (tmp_path / "events").write_text("".join([*marked, "data: [DONE]\n"]))
        named = {"parameter": "format", "line": 1, "match": r"'event: x', is of no known format"}
        with raises(DataError, "unknown-format", **named):
            read_nbest(tmp_path / "events")
        run_shell(*re.findall("`(sed .*?)`", page), tmp_path)
    number = 3 if name.startswith("completion") else 1
    shown = r"streamed: .* as docs/how-to/llm-samples\.md shows for (.*)"
    with raises(DataError, "not-supported", line=number, match=shown) as caught:
        read_nbest(path)
    (server,) = re.findall(shown, caught.value.message)
    run_shell(*re.findall(rf"^# {server}.*\n((?:[^\n`]+\n)+)", page, re.MULTILINE), tmp_path)
    lists, _ = read(*(tmp_path / "answers.jsonl").read_text().splitlines())
    assert texts(lists) == [["a cat"]] * 2
    has_tokens = name not in ("completion", "ollama prompt", "gemini", "anthropic", "tgi")
    assert sums(lists) == pytest.approx([-0.3 if has_tokens else np.nan] * 2, nan_ok=True)


def test_reasoning_without_an_end_is_no_answer() -> None:
    content = chat(({"content": "<think>\n2?"}, None), ({"content": "2 <think>"}, None))
    with raises(DataError, "bad-response", parameter="bad", line=1, match="without a text: 1"):
        read(content)
    assert texts(read(content, bad="drop")[0]) == [["2 <think>"]]
    lists, _ = read(chat(({"content": "<|channel|>final<|message|>2"}, None)))
    assert texts(lists) == [["2"]]


def test_an_answer_that_was_cut_off_while_it_was_streamed() -> None:
    """The messages of Anthropic have no reason of their end until then."""
    with raises(DataError, "not-supported", line=1, match="that was streamed"):
        read(line(**{**ANTHROPIC, "stop_reason": None}))


ASKED = [{"role": "user", "content": [{"text": "eine Katze"}]}]


@pytest.mark.parametrize(
    "request_line",
    [
        {"custom_id": "r-5", "body": {"model": "m", "input": "eine Katze"}},
        {"custom_id": "r-5", "body": {"input": ASKED}},
        {"custom_id": "r-5", "params": {"messages": ASKED}},
        {"recordId": "r-5", "modelInput": {"messages": ASKED}},
        {"key": "r-5", "request": {"contents": [{"parts": [{"text": "eine Katze"}]}]}},
        {"custom_id": "r-5", "body": {"prompt": "eine Katze"}},
    ],
)
def test_requests_of_other_providers(write: Write, request_line: dict[str, Any]) -> None:
    requests = write(line(**request_line), name="requests.jsonl")
    lists, _ = read(wrap("gemini", GEMINI), format=Openai(requests=str(requests)))
    assert (lists.sources, texts(lists)) == (("eine Katze",), [["a cat"]])
    named = "a file of requests is named by the setting requests"
    with raises(DataError, "bad-line", parameter="format", line=1, match=named):
        read(line(**request_line), format="openai")
    answer = line(recordId="r-5", modelInput={"messages": ASKED}, modelOutput=CONVERSE)
    assert read(answer)[0].sources == ("eine Katze",)


# --- which tokens --------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_the_first_token_that_is_generated_is_not_certain(unknown: float | None) -> None:
    """In a chat, and in a completion whose prompt is not repeated."""
    first = [("a", -0.1), (" cat", -0.2)], [("the", unknown), (" cat", -0.2)]
    chats = chat(*(({"content": t}, logged(*f)) for t, f in zip(CATS, first, strict=True)))
    two = [[token for token, _ in f] for f in first], [[value for _, value in f] for f in first]
    of_chat = {"message": {"content": CATS[1]}, "finish_reason": "stop"}
    of_chat |= {"logprobs": {"tokens": two[0][1], "token_logprobs": two[1][1]}}
    of_text = zip(CATS, *two, strict=True)
    lines = [
        chats,
        completion(*of_text),
        completion((CATS[1], two[0][1], two[1][1])),
        line(choices=[of_chat]),
    ]
    for content in lines:
        lists, _ = read(content)
        known = dict(zip(texts(lists)[0], sums(lists), strict=True))
        assert math.isnan(known["the cat"])
        assert known.get("a cat", -0.3) == pytest.approx(-0.3)


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_an_unknown_token_of_a_sample(unknown: float | None) -> None:
    known = [-0.1, -0.2]
    with raises(DataError, "bad-number", parameter="logprobs", match="give None in place of those"):
        from_samples([CATS], [[known, [unknown, -0.2]]])
    with capture_notes():
        lists = from_samples([CATS], [[known, None]])
    np.testing.assert_allclose(sums(lists), [-0.3, np.nan], rtol=1e-6)


def test_a_mean_without_tokens() -> None:
    """Vertex AI writes it by default."""
    content = json.loads(json.dumps(GEMINI))
    del content["candidates"][0]["logprobsResult"]
    lists, notes = read(line(**content))
    assert lists.feature_names == ("logprob.mean", "count")
    np.testing.assert_allclose(lists.features, [[-0.15, 1]], rtol=1e-6)
    assert notes == ""
    content["candidates"].append({**content["candidates"][0], "avgLogprobs": 0.0})
    content["candidates"][1]["content"] = {"parts": [{"text": "the cat"}]}
    np.testing.assert_allclose(read(line(**content))[0].features, [[-0.15, 1], [0, 1]], rtol=1e-6)


def test_all_first_tokens_are_unknown() -> None:
    answers = [({"content": text}, logged((text, None))) for text in CATS]
    lists, notes = read(chat(*answers))
    assert lists.feature_names == ("count",)
    assert "a log-probability of 2 answers is unknown (null): all of theirs are missing" in notes


def test_probabilities_that_are_integers() -> None:
    tokens = [{"token": " a", "prob": 1}, {"token": " cat", "prob": 0.5}]
    lists, _ = read(line(**LLAMA, completion_probabilities=tokens))
    assert sums(lists) == [pytest.approx(math.log(0.5))]


CATS = ["a cat", "the cat"]
PROMPT = "eine Katze ="
USAGE = {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}
ECHOED = [
    (f"{PROMPT} a cat", ["eine", " Katze", " =", " a", " cat"], [None, -5, -3, -0.1, -0.2]),
    (f"{PROMPT} the cat", ["eine", " Katze", " =", " the", " cat"], [None, -5, -3, -0.4, -0.2]),
]


@pytest.mark.parametrize("known", ["usage", "prompt", "request", "requests", "with BOS"])
def test_a_prompt_that_is_repeated_is_cut(write: Write, known: str) -> None:
    answers, format = ECHOED, Openai()
    fields: dict[str, Any] = {
        "usage": {"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}},
        "with BOS": {"usage": {"prompt_tokens": 4, "completion_tokens": 4}},
        "prompt": {"prompt": PROMPT},
    }.get(known, {})
    if known == "with BOS":
        answers = [(text, ["<s>", *of], [None, -9, *v[1:]]) for text, of, v in ECHOED]
    content = completion(*answers, **fields)
    request = {"prompt": PROMPT, "echo": True, "n": 2}
    if known == "request":
        content = line(custom_id="r-1", response={"body": json.loads(content)}, request=request)
    if known == "requests":
        content = line(custom_id="r-1", response={"body": json.loads(content)})
        path = write(line(custom_id="r-1", body=request), name="requests.jsonl")
        format = Openai(requests=str(path))
    lists, notes = read(content, format=format)
    assert texts(lists) == [["a cat", "the cat"]]
    np.testing.assert_allclose(sums(lists), [-0.3, -0.6], rtol=1e-6)
    assert "a repeated prompt before 2 answers is left out" in notes


@pytest.mark.parametrize("known", [{"prompt": "Q:"}, {"usage": USAGE}])
@pytest.mark.parametrize("answer", [["\n", "cat"], [" cat", "\n"], [" \n", " cat"]])
def test_blanks_after_a_repeated_prompt_are_generated(answer: list[str], known: Any) -> None:
    lists, _ = read(
        completion(("".join(["Q:", *answer]), ["Q", ":", *answer], [None, -3, -0.5, -0.1]), **known)
    )
    assert (texts(lists), sums(lists)) == ([["cat"]], [pytest.approx(-0.6)])


def test_a_repeated_prompt_before_tokens_without_their_blanks() -> None:
    """SentencePiece leaves out the blank of a token that is decoded alone."""
    lists, _ = read(completion(("Q: cat", ["Q", ":", "cat"], [None, -3, -0.5]), prompt="Q:"))
    assert (texts(lists), sums(lists)) == ([["cat"]], [-0.5])


def test_a_prompt_that_is_repeated_but_unknown() -> None:
    lists, notes = read(completion(*ECHOED))
    assert np.isnan(sums(lists)).all()
    assert "the first log-probability of 2 answers is unknown" in notes


def test_an_answer_that_begins_with_its_prompt_is_kept() -> None:
    answer = ("a cat", ["a", " cat"], [-0.1, -0.2])
    lists, notes = read(completion(answer, prompt="a"))
    assert (texts(lists), notes) == ([["a cat"]], "")
    echo = {"prompt": "a", "echo": True}
    body = json.loads(completion(("a cat", [], [])))
    lists, _ = read(line(custom_id="r-1", response={"body": body}, request=echo))
    assert texts(lists) == [["cat"]]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("where", ["request", "requests"])
def test_several_prompts_in_one_completion(write: Write, n: int, where: str) -> None:
    prompts = ["eins", "zwei", "drei"]
    answers = [(f"{p}-{k}", [f"{p}-{k}"], [-1.0 - k]) for p in prompts for k in range(n)]
    body = json.loads(completion(*answers))
    body["choices"].reverse()
    request = {"prompt": prompts, "n": n}
    fields: dict[str, Any] = {"custom_id": "r-1", "response": {"body": body}}
    format = Openai()
    if where == "requests":
        path = write(line(custom_id="r-1", body=request), name="requests.jsonl")
        format = Openai(requests=str(path))
    else:
        fields["request"] = request
    with capture_notes():
        lists, _ = read(line(**fields), format=format)
    assert texts(lists) == [[f"{p}-{k}" for k in range(n)] for p in prompts]
    assert lists.sources == tuple(prompts)
    assert lists.ids == ("r-1[0]", "r-1[1]", "r-1[2]")
    body["choices"].pop()
    if n > 1:
        with raises(DataError, "bad-response", line=1, match="5 choices of 3 prompts"):
            read(line(**fields), format=format)


def test_choices_without_their_prompts() -> None:
    """One list, with a message: or an error if the prompts have different lengths."""
    answers = [(f" {text}", [f" {text}"], [-1.0]) for text in ("a", "b", "c", "d")]
    lists, notes = read(completion(*answers))
    assert texts(lists) == [["a", "b", "c", "d"]]
    assert "choices are read as answers to one prompt; if there were several, write" in notes
    assert read(completion(*answers, prompt="eins"))[1] == ""
    assert read(completion(answers[0]))[1] == ""
    body = json.loads(completion(*answers))
    for choice, start in zip(body["choices"], (5, 5, 9, 9), strict=True):
        choice["logprobs"]["text_offset"] = [start]
    several = "choices of several prompts: write"
    with raises(DataError, "bad-response", line=1, parameter="requests", match=several):
        read(line(**body))
    lists, notes = read(line(**body, prompt=["eins", "zwei"]))
    assert (texts(lists), notes) == ([["a", "b"], ["c", "d"]], "")
    assert lists.sources == ("eins", "zwei")
    for choice in body["choices"]:
        choice["logprobs"] = {"text_offset": [], "tokens": [], "token_logprobs": []}
    assert texts(read(line(**body))[0]) == [["a", "b", "c", "d"]]


def test_choices_that_are_missing_belong_to_unknown_prompts() -> None:
    answers = [(text, [text], [-1.0]) for text in ("a", "b", "c", "d")]
    body = json.loads(completion(*answers, prompt=["eins", "zwei"]))
    del body["choices"][:2]
    with raises(DataError, "bad-response", line=1, match="2 choices of 2 prompts: give the whole"):
        read(line(**body))


NATIVE = {
    "sglang": {**SGLANG, "model": None},
    "tgi": TGI,
    "pipeline": {"generated_text": "a cat"},
    "chats of the pipeline": {"generated_text": [{"role": "user", "content": "q"}, MESSAGE]},
    "llama.cpp": LLAMA,
    "vllm": VLLM,
}


@pytest.mark.parametrize("name", NATIVE)
def test_an_array_has_the_answers_to_one_prompt(name: str, tmp_path: Path) -> None:
    other = json.loads(json.dumps(NATIVE[name]).replace("a cat", "the cat"))
    array = json.dumps([NATIVE[name], other])
    assert format_name([array]) == "openai"
    lists, _ = read(array, array)
    assert texts(lists) == [["a cat", "the cat"]] * 2
    path = tmp_path / "one.json"
    path.write_text(array)
    named: dict[str, Any] = {"line": 1, "parameter": "format"}
    with raises(DataError, "bad-response", **named, match="an array of responses: ") as caught:
        read_nbest(path)
    commands = re.findall("`(jq.*?)`", str(caught.value))
    expected = [[["a cat"], ["the cat"]], [["a cat", "the cat"]]]
    for command, lists_of in zip(commands, expected, strict=True):
        run_shell(f"{command} one.json >lines", tmp_path)
        assert texts(read(*(tmp_path / "lines").read_text().splitlines())[0]) == lists_of


def test_an_array_of_one_answer() -> None:
    """The hub of Hugging Face writes it."""
    assert texts(read(json.dumps([{"generated_text": " a cat"}]))[0]) == [["a cat"]]


@pytest.mark.parametrize(
    "other",
    [
        {**LLAMA, "prompt": "ein Hund ="},
        {**SGLANG, "meta_info": {**SGLANG["meta_info"], "prompt_tokens": 6}},
    ],
)
def test_an_array_of_several_prompts_is_refused(other: dict[str, Any]) -> None:
    one = LLAMA if "prompt" in other else SGLANG
    array = json.dumps([one, other])
    with raises(DataError, "bad-response", line=1, parameter="format", match="one per line"):
        read(array, array)
    with raises(DataError, "bad-line", line=1):
        read("[]", format="openai")


def test_the_best_of_several_sequences_and_the_others() -> None:
    other = {"generated_text": "cat", "tokens": [{"text": "cat", "logprob": -0.3}]}
    best = {**TGI["details"], "best_of_sequences": [{**TGI["details"], **other}]}
    lists, _ = read(line(**{**TGI, "details": best}))
    assert texts(lists) == [["a cat", "cat"]]
    assert sums(lists) == [pytest.approx(-0.3)] * 2


def test_the_settings_of_the_text_of_a_response() -> None:
    """The Responses API repeats them in a field that is called like a text."""
    body = {**OUTPUT, "text": {"format": {"type": "text"}, "verbosity": "medium"}}
    content = line(**body)
    assert format_name([content]) == "openai"
    assert texts(read(content)[0]) == [["a cat"]]


def test_the_sum_of_tokens_that_are_not_written() -> None:
    output = {"text": " a cat", "token_ids": [7, 8, 2], "cumulative_logprob": -0.6}
    output |= {"index": 0, "finish_reason": "stop", "logprobs": None}
    lists, notes = read(line(outputs=[output]))
    assert lists.feature_names == ("logprob.sum", "logprob.mean", "length", "count")
    np.testing.assert_allclose(lists.features, [[-0.6, -0.2, 3, 1]], rtol=1e-6)
    assert notes == ""
    lists, notes = read(line(outputs=[{**output, "text": "<think>cat?</think>a cat"}]))
    assert texts(lists) == [["a cat"]]
    assert "the log-probabilities of 1 answer are also those of the reasoning" in notes


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a", "meta_info": {"finish_reason": {"type": "stop"}}},
        {"text": "a", "meta_info": {"x": 1}},
        {"text": "a", "generated_text": "b"},
        {"text": "a", "choices": ["x", "y"], "error": None},
        {"text": "a", "message": {"content": "b"}, "finish_reason": "stop", "usage": {"n": 2}},
        {"content": "a", "stop_reason": "end"},
        {"content": "a", "stop": True},
        {"message": {"content": "a", "role": "x"}, "finish_reason": "stop", "usage": {}},
        {"message": {"content": "a"}, "done": True},
        {"response": "a", "done": True},
        {"response": "a", "error": None},
        {"output": "a", "status": "ok"},
        {"output": "a", "object": "answer"},
    ],
)
def test_candidates_of_the_user_are_not_responses(row: dict[str, Any]) -> None:
    """Their scores would be lost."""
    rows = [line(id=0, **row, judge=0.5), line(id=0, **row, judge=0.25)]
    names: dict[str, str] = {}
    if "text" not in row:
        with raises(DataError, "unknown-format", line=1, parameter="format"):
            read(*rows)
        column = next(name for name in ("message", "content", "response", "output") if name in row)
        names["format"] = f"jsonl:text={column.replace('message', 'message.content')}"
    lists, _ = read(*rows, **names)
    assert texts(lists) == [["a", "a"]]
    assert lists.features[:, lists.feature_names.index("judge")].tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    "fields",
    [
        {"choices": ["x", "y"]},
        {"error": None},
        {"content": [{"type": "text", "text": "x"}], "stop_reason": "end"},
        {"output": [{"type": "message", "content": []}], "status": "done"},
        {"usageMetadata": {"tokens": 3}},
        {"custom_id": "r-1", "response": "x"},
    ],
)
@pytest.mark.parametrize(
    "row",
    [
        {"candidates": [{"text": "a", "judge": 0.5}, {"text": "b", "judge": 0.25}]},
        {"candidates": ["a", "b"], "judge": [0.5, 0.25]},
        {"chosen": "a", "rejected": "b", "judge_chosen": 0.5, "judge_rejected": 0.25},
        {"response_a": "a", "response_b": "b", "winner": "A", "judge_a": 0.5, "judge_b": 0.25},
    ],
)
def test_lists_of_the_user_are_not_responses(row: dict[str, Any], fields: dict[str, Any]) -> None:
    lists, _ = read(line(**row, **fields))
    assert (texts(lists), lists.feature_names) == ([["a", "b"]], ("judge",))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (chat((MESSAGE, None), judge=0.5, scores={"bleu": 0.25}), "judge, scores.bleu"),
        (line(choices=[{"message": {**MESSAGE, "judge": 1}}]), "choices.message.judge"),
        (line(choices=[{"index": 0, "text": "a", "judge": 0}]), "choices.judge"),
        (line(custom_id="r-1", response={"body": OUTPUT}, judge=0.5), "judge"),
        (line(custom_id="r-1", response={"body": {**OUTPUT, "judge": 0.5}}), "response.body.judge"),
        (line(**ANTHROPIC, judge=0.5), "judge"),
        (
            line(**{**GEMINI, "candidates": [{**GEMINI["candidates"][0], "judge": 1}]}),
            "candidates.judge",
        ),
        (line(**OLLAMA, response="a cat", judge=0.5), "judge"),
        (json.dumps([{**SGLANG, "judge": 0.5}]), "judge"),
        (line(**VLLM, judge=0.5), "judge"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*counted in the order")
def test_numbers_in_a_response_that_are_not_read_are_named(content: str, names: str) -> None:
    assert f"not read: the numbers {names}, since" in read(content)[1]
    assert f"not read: the numbers {names}, since" in read(line(**OUTPUT), content)[1]


def test_numbers_that_servers_write_are_not_named() -> None:
    servers = [
        chat((MESSAGE, CAT), created=1, usage={"prompt_tokens": 3}, timings={"predicted_ms": 4.5}),
        line(**{**OUTPUT, "created_at": 1, "temperature": 0.7, "max_output_tokens": 5, "top_p": 1}),
        line(**{**OLLAMA, "response": "a", "total_duration": 5, "prompt_eval_count": 4}),
        line(**{**LLAMA, "tokens_cached": 6, "id_slot": 0}),
        line(**{**CONVERSE, "usage": {"inputTokens": 3}}),
        chat((MESSAGE, CAT), model_info={"context_length": 4096}, spend=0.01),  # LM Studio, LiteLLM
        *(line(**body) for body, _ in ANSWERS.values()),
    ]
    assert "not read" not in read(*servers)[1]


def test_options_of_a_question_are_no_answers() -> None:
    options = [{"label": label, "text": label.lower()} for label in "AB"]
    with raises(DataError, "unknown-format", line=1, parameter="format"):
        read(line(id="q", question="?", choices=options, answerKey="A"))
    answers = [{"content": text, "finish_reason": "stop", "judge": 0.5} for text in "ab"]
    lists, _ = read(line(candidates=answers), format="jsonl:text=content")
    assert (texts(lists), lists.feature_names) == ([["a", "b"]], ("judge",))
    with raises(DataError, "missing-column", line=1, parameter="format", match="text=NAME"):
        read(line(candidates=answers))


def test_outputs_with_other_fields_are_not_responses() -> None:
    outputs = [{"text": t, "finish_reason": "stop", "score": 1} for t in "ab"]
    with raises(DataError, "unknown-format", line=1, parameter="format", match="outputs"):
        read(line(prompt="q", outputs=outputs))


def test_prompts_of_tokens() -> None:
    body = json.loads(completion(("a", ["a"], [-1]), ("b", ["b"], [-2])))
    for prompt, expected in (([5, 7], [["a", "b"]]), ([[5], [7]], [["a"], ["b"]])):
        fields = {"custom_id": "r-1", "response": {"body": body}, "request": {"prompt": prompt}}
        with capture_notes():
            assert texts(read(line(**fields))[0]) == expected


THOUGHT = [("let", -1.0), (" me", -1.0), (" think: 42?", -1.0), ("</think>", -0.5)]


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"content": "42", "reasoning_content": "let me think: 42?"}, THOUGHT),
        ({"content": "\n\n42", "reasoning": "let me think: 42?"}, [*THOUGHT, ("\n\n", -2.0)]),
        ({"content": "42", "thinking": "let me"}, THOUGHT),
        ({"content": "42"}, THOUGHT),
        ({"content": "<think>let me think: 42?</think>\n42"}, [("<think>", -3.0), *THOUGHT]),
        ({"content": "let me think: 42?</think>42"}, THOUGHT),
        ({"content": "[THINK]42?[/THINK]42"}, [("[THINK]42?", -1.0), ("[/THINK]", -1.0)]),
        ({"content": [{"thinking": [{"text": "let me"}]}, {"text": "42"}]}, THOUGHT),
    ],
)
def test_tokens_of_reasoning_are_left_out(message: Any, tokens: list[tuple[str, float]]) -> None:
    other = ({"content": "41", "reasoning_content": "guess"}, [("guess", -0.1), ("41", -2.5)])
    pairs = [(message, [*tokens, ("4", -0.1), ("2", -0.2), ("<|end|>", -0.05)]), other]
    lists, notes = read(chat(*((m, logged(*t)) for m, t in pairs)))
    assert texts(lists) == [["42", "41"]]
    np.testing.assert_allclose(sums(lists), [-0.35, -2.5], rtol=1e-6)
    assert "reasoning or a repeated prompt before 2 answers is left out" in notes


def test_blanks_before_an_answer_are_no_reasoning() -> None:
    lists, notes = read(chat(({"content": "42"}, logged(("\n\n", -0.5), ("42", -0.1)))))
    assert (sums(lists), notes) == ([pytest.approx(-0.6)], "")


def test_tokens_that_do_not_show_the_answer() -> None:
    message = {"content": "42", "reasoning_content": "let me"}
    blocks = {"content": "42", "thinking_blocks": [{"type": "thinking", "thinking": "let me"}]}
    for shown in (message, blocks, {"content": "42", "reasoning_details": [{"text": "let me"}]}):
        lists, notes = read(chat((shown, [{"logprob": -1.0}, {"logprob": -0.5}])))
        assert sums(lists) == [-1.5]
        assert "the log-probabilities of 1 answer are also those of the reasoning" in notes
    marked = [{"token": t, "logprob": -1.0} for t in ("let", "</think>", "\\xe2", "\\x82")]
    message = {"content": "€", "reasoning_content": "let"}
    lists, notes = read(chat((message, marked)))
    assert sums(lists) == [-2.0]


@pytest.mark.parametrize(
    ("answer", "end"), [("s", "</s>"), ("end", "<|im_end|>"), ("t", "<|eot|>")]
)
@pytest.mark.parametrize("thought", [[], THOUGHT])
def test_an_answer_that_is_a_part_of_the_last_token(
    answer: str, end: str, thought: list[tuple[str, float]]
) -> None:
    message = {"content": answer, "reasoning_content": "let" if thought else None}
    lists, _ = read(chat((message, logged(*thought, (answer, -0.1), (end, -0.25)))))
    assert sums(lists) == [pytest.approx(-0.35)]


def test_the_draft_of_an_answer_in_the_reasoning() -> None:
    tokens = logged(("é 42", -3.0), ("</think>", -1.0), ("bytes:\\xc3", -0.1), ("\\xa9", -0.2))
    lists, _ = read(
        chat(({"content": "é 42", "reasoning": "é 42"}, [*tokens, *logged((" 42", -1))]))
    )
    assert sums(lists) == [pytest.approx(-1.3)]


def test_numbers_of_tokens_do_not_show_the_answer() -> None:
    """Of vLLM on request (`return_tokens_as_token_ids`)."""
    tokens = logged(("token_id:1042", -1.0), ("token_id:7", -0.5), ("token_id:19", -0.25))
    lists, notes = read(chat(({"content": "42", "reasoning": "let"}, tokens)))
    assert sums(lists) == [-1.75]
    assert "the log-probabilities of 1 answer are also those of the reasoning" in notes
    tokens = logged(*((f"token_id:{n}", -0.25) for n in range(11)))  # of reasoning, too
    assert (
        "the log-probabilities of 1 answer are also" in read(chat(({"content": "42"}, tokens)))[1]
    )
    assert read(chat(({"content": "four bytes"}, tokens)))[1] == ""


def test_reasoning_that_the_server_leaves_out() -> None:
    """As vLLM does on request (`include_reasoning`)."""
    thought = [("so", -1.0), ("</think>", -1.0)]
    harmony = [("<|channel|>", -1.0), ("final", -1.0), ("<|message|>", -1.0)]
    answer = [("the answer is", -0.1), (" the number", -0.2), (" 42", -0.25)]
    for tokens in (thought, harmony):
        message = {"content": "the answer is the number 42", "reasoning": None}
        lists, notes = read(chat((message, logged(*tokens, *answer))))
        assert sums(lists) == [pytest.approx(-0.55)]
        assert "reasoning or a repeated prompt before 1 answer is left out" in notes


WORDS = [("the", -0.1), (" answer", -0.2), (" is", -0.25), (" certain", -0.5)]


@pytest.mark.parametrize(
    ("tokens", "expected", "note"),
    [
        ([("so", -1.0), (" final", -1.0), *WORDS], -1.05, "before 1 answer is left out"),
        ([*WORDS, ("\n", -1.0), ("Q", -2.0), (":", -3.0)], -4.05, "1 answer go on after"),
        ([*WORDS, ("<|end|>", -1.0)], -2.05, ""),
        ([*WORDS[:1]], -0.1, "the tokens of 1 answer are a part of their texts"),
        ([(token.replace(" ", "▁"), value) for token, value in WORDS], -1.05, ""),
        ([("token_id:7", -1.0)], -1.0, ""),
        ([("", -1.0), *WORDS], -2.05, ""),
    ],
)
def test_tokens_that_differ_from_the_text(
    tokens: list[tuple[str, float]], expected: float, note: str
) -> None:
    """Of reasoning without marks, of a stop sequence, or of a part of a stream alone."""
    lists, notes = read(chat(({"content": "the answer is certain"}, logged(*tokens))))
    assert sums(lists) == [pytest.approx(expected)]
    assert note in notes if note else notes == ""


def test_equal_answers_after_different_reasoning_are_counted() -> None:
    thoughts = ["<think>\nhm, two\n</think>\n\n2", "<think>two</think>2", "<think></think>3"]
    lists, notes = read(chat(*(({"content": text}, None) for text in thoughts)))
    assert texts(lists) == [["2", "3"]]
    assert lists.features[:, 0].tolist() == [2, 1]
    assert "before 3 answers is left out" in notes


def test_a_pattern_may_need_the_reasoning() -> None:
    content = chat(({"content": "<think>two</think>2"}, None))
    assert texts(read(content, format=Openai(extract="<think>(.*)</think>"))[0]) == [["two"]]
    assert texts(read(content, format=Openai(extract="[a-z0-9]+"))[0]) == [["2"]]

"""Responses of chat and completion APIs, and the requests that they answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import capture_notes, raises
from support.user_files import Write, run_shell

from bpa_ppl import NBest, read_nbest, write_nbest
from bpa_ppl.errors import DataError
from bpa_ppl.formats.answers import Answers

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "llm-samples.md"
STATISTICS = ("logprob.sum", "logprob.mean", "logprob.min", "length", "count")


def choice(text: str | None, *logprobs: float | None, **more: Any) -> dict[str, Any]:
    """Return a choice of a chat."""
    tokens = [{"token": "token_id:7", "logprob": value, "bytes": None} for value in logprobs]
    logged = {"content": tokens} if logprobs else None
    message = {"role": "assistant", "content": text, "refusal": more.pop("refusal", None)}
    return {"message": message, "logprobs": logged, "finish_reason": "stop", **more}


def live(*choices: Any, **more: Any) -> str:
    """Return a response."""
    return json.dumps({"id": "chatcmpl-1", "model": "m", "choices": choices, **more})


def batch(name: Any, *choices: Any, **more: Any) -> str:
    """Return a line of the output of a batch."""
    body = {"model": "m", "choices": choices, **more}
    response = {"status_code": 200, "body": body}
    return json.dumps({"id": "batch_1", "custom_id": name, "response": response, "error": None})


def request(name: str, prompt: Any, **more: Any) -> str:
    messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": prompt}]
    body = {"model": "m", "messages": messages, "n": 4, **more}
    return json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat", "body": body})


def notes_of(read: Callable[[], NBest]) -> tuple[NBest, str]:
    """Return what is read, and all warnings and messages."""
    with capture_notes() as notes:
        lists = read()
    return lists, "\n".join(note.message for note in notes)


def test_a_batch() -> None:
    lists = read_nbest(GOLDEN / "openai-batch.jsonl")
    assert lists.ids == ("request-1", "request-2", "request-10")
    assert lists.sentence_ids.tolist() == [1, 2, 10]
    texts = ['un "café"\n noir', "ok 日本", "a dog", "the dog", "last"]
    assert [lists.text(row) for row in range(5)] == texts
    assert lists.feature_names == STATISTICS
    tokens = [[-1e-05, -3, -0.0], [-2], [-0.25, -0.5], [-0.5, -1.0], [-7.5]]
    expected = [
        [np.sum(t), np.mean(t), np.min(t), len(t), count]
        for t, count in zip(tokens, [1, 1, 1, 2, 1], strict=True)
    ]
    assert np.array_equal(lists.features, expected)
    assert set(lists.extras["model"]) == {"gpt-4o-mini-2024-07-18"}


@pytest.mark.parametrize(
    ("names", "ids", "extra"),
    [
        (["7", "3", "12"], [3, 7, 12], None),
        (["doc2-7", "doc2-3", "doc2-12"], [3, 7, 12], ("doc2-3", "doc2-7", "doc2-12")),
        (["a-1", "b-2", "a-3"], [0, 1, 2], ("a-1", "b-2", "a-3")),
        ([5, 4, 3], [3, 4, 5], None),
    ],
)
def test_numbers_in_names_are_the_ids(
    write: Write, names: list[Any], ids: list[int], extra: Any
) -> None:
    path = write(*(batch(name, choice(f"{name}", -1)) for name in names))
    lists, notes = notes_of(lambda: read_nbest(path))
    assert lists.sentence_ids.tolist() == ids
    assert lists.sentence_extras.get("id") == extra
    assert ("order of the responses" in notes) is (ids == [0, 1, 2])


def test_requests_give_sources_and_order(write: Write) -> None:
    requests = write(
        request("uuid-b", "un chat"),
        request("uuid-c", [{"type": "text", "text": "deux "}, {"type": "text", "text": "mots"}]),
        request("uuid-a", "trois"),
        name="requests.jsonl",
    )
    path = write(batch("uuid-a", choice("three", -1)), batch("uuid-b", choice("a cat", -1)))
    lists, notes = notes_of(lambda: read_nbest(path, format=f"openai:requests={requests}"))
    assert lists.sources == ("un chat", "trois")
    assert (lists.sentence_ids.tolist(), lists.ids) == ([0, 2], ("uuid-b", "uuid-a"))
    assert "requests without a response: 1 (uuid-c)" in notes


def test_several_requests_of_one_prompt(write: Write) -> None:
    samples = ["d7-s1", "d8-s1", "d7-s2"]
    requests = write(*(request(name, f"Übersetze: {name[:2]}!") for name in samples), name="in")
    path = write(*(batch(name, choice(name, -1)) for name in samples[::-1]))
    format = Answers(prompt_id="(.*)-s", requests=str(requests), source=": (.*)!")
    lists = read_nbest(path, format=format)
    assert [lists.texts(s) for s in range(2)] == [["d7-s2", "d7-s1"], ["d8-s1"]]
    assert lists.sources == ("d7", "d8")
    with raises(DataError, "mismatch", parameter="prompt_id", line=1, match="'d7-s2'"):
        read_nbest(path, format="openai:prompt_id=(.*)-x")
    short = write(request("d8-s1", "?"), name="short")
    with raises(DataError, "mismatch", parameter="requests", line=1, match="'d7-s2'"):
        read_nbest(path, format=f"openai:requests={short}")


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"extract": "<t>(.*)</t>"}, "Gladly!\n<t> a\ncat </t> Bye."),
        ({"field": "t"}, json.dumps({"t": "a\ncat", "note": None})),
        ({"field": "t"}, '```json\n{"t": "a\\ncat"}\n```'),
        ({"field": "t", "extract": "A: (.*)"}, json.dumps({"t": "A: a\ncat"})),
    ],
)
def test_the_candidate_in_an_answer(write: Write, settings: dict[str, str], answer: str) -> None:
    path = write(batch("1", choice(answer, -1)))
    assert read_nbest(path, format=Answers(**settings)).texts(0) == ["a\ncat"]
    odd = ["no", "{", "[1]", '{"t": 1}', "[" * 100_000]
    path = write(batch("1", choice(answer, -1)), batch("2", *map(choice, odd)))
    with raises(DataError, "bad-response", parameter="bad", line=2, match=r"5 \(2\)"):
        read_nbest(path, format=Answers(**settings))


@pytest.mark.parametrize(
    ("logprobs", "note"),
    [
        ((0.5, 1.5), "the log-probabilities of 1 of 3 answers are positive"),
        ((-1, -9999.0), "1 of 3 answers have a token of log-probability -9999"),
        ((1e-6, 0.0), ""),
    ],
)
def test_positive_log_probabilities(write: Write, logprobs: tuple[float, ...], note: str) -> None:
    path = write(live(choice("a", *logprobs), choice("b", -1)), live(choice("c", -2)))
    _, notes = notes_of(lambda: read_nbest(path))
    assert note in notes
    assert bool(note) is bool(notes)


@pytest.mark.filterwarnings("ignore:.*no log-probabilities")
def test_answers_next_to_their_prompts() -> None:
    """As users of LiteLLM keep them; lines of one conversation are one prompt."""
    message = {"content": "a", "role": "assistant", "tool_calls": None, "function_call": None}
    message |= {"provider_specific_fields": {"refusal": None}}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    answer |= {"choices": [{"finish_reason": "stop", "index": 0, "message": message}]}
    answer |= {"usage": {"total_tokens": 2, "completion_tokens_details": None}}
    talk = [{"role": "system", "content": "s"}, {"role": "user", "content": "un chat"}]
    prompts: list[dict[str, Any]] = [
        *({"messages": talk}, {"request": {"model": "m", "messages": talk}}, {"request": talk}),
        *({"prompt": "un chat"}, {"request": "un chat"}),
    ]
    for prompt in prompts:
        row = {**prompt, "response": answer, "id": 7, "latency": 0.5}
        for format in ("openai", "auto"):
            lists = read_nbest([json.dumps(row)] * 2, format=format)
            assert (lists.texts(0), lists.sources) == (["a"], ("un chat",))
            assert lists.features.tolist() == [[2]]  # equal answers to one prompt are counted
    alone = [json.dumps({"response": answer})] * 2
    assert read_nbest(alone, format="openai").sizes.tolist() == [1, 1]
    others = [{"messages": [*talk[k:]], "response": answer} for k in (0, 1)]
    lists = read_nbest(list(map(json.dumps, others)), format="openai")
    assert (lists.sizes.tolist(), lists.sources) == ([1, 1], ("un chat", "un chat"))
    for lost, shown in ((None, "without answers"), ({"error": {"message": "slow"}}, "'slow'")):
        rows = [json.dumps({"messages": talk, "response": of}) for of in (lost, answer)]
        with raises(DataError, "bad-response", line=1, parameter="bad", match=shown):
            read_nbest(rows, format="openai")


def test_a_file_of_requests_that_is_not_one(write: Write) -> None:
    path = write(batch("1", choice("a", -1)))
    for line in (batch("1"), "{}", '{"custom_id": "1", "body": {"input": null}}', " "):
        with pytest.raises(DataError, match=r"requests\.jsonl") as caught:
            read_nbest(path, format=Answers(requests=str(write(line, name="requests.jsonl"))))
        assert caught.value.parameter == "requests"


@pytest.mark.filterwarnings("ignore:.*counted in the order")
def test_two_prompts_of_one_custom_id(write: Write) -> None:
    """Whether the prompts are in the file of requests, or in that of the responses."""
    lines = [request("p-1", prompt) for prompt in ("Un chat", "Un chat", "Un chien")]
    path = write(batch("p-1", choice("a", -1)), name="out.jsonl")
    for kept in (lines[:1], lines[:2]):
        requests = write(*kept, name="requests.jsonl")
        assert read_nbest(path, format=f"openai:requests={requests}").sources == ("Un chat",)
    requests = write(*lines, name="requests.jsonl")
    match = r"requests\.jsonl:3: a second prompt of the custom_id 'p-1'"
    with raises(DataError, "duplicate", line=3, match=match):
        read_nbest(path, format=f"openai:requests={requests}")
    asked = [json.loads(line)["body"] for line in lines]
    both = [
        json.dumps(json.loads(batch("p-1", choice(text, -1))) | {"request": body})
        for text, body in zip("abc", asked, strict=True)
    ]
    assert read_nbest(both[:2]).texts(0) == ["a", "b"]
    with raises(DataError, "duplicate", line=3, match="a second prompt of the custom_id 'p-1'"):
        read_nbest(both)
    assert len(read_nbest(both, format="openai:prompt_id=(p)")) == 1


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv", "tsv"])
@pytest.mark.filterwarnings("ignore:.*would not read back")
def test_ids_read_back(suffix: str, tmp_path: Path) -> None:
    """The integers at the ends of ids, by which references are paired, are written too."""
    lists = read_nbest([batch(name, choice("a", -1)) for name in ("r-7", "r-3")])
    write_nbest(lists, tmp_path / f"lists.{suffix}")
    again = read_nbest(tmp_path / f"lists.{suffix}")
    assert again.ids == lists.ids == ("r-3", "r-7")
    assert again.sentence_ids.tolist() == lists.sentence_ids.tolist() == [3, 7]
    assert again.sentence_extras.keys() == lists.sentence_extras.keys()


# --- forms of responses --------------------------------------------------------------------------


def texts(lists: NBest) -> list[list[str]]:
    return [lists.texts(s) for s in range(len(lists))]


def sums(lists: NBest) -> list[float]:
    """Return the log-probabilities of the candidates, as a feature or as an extra."""
    name = "logprob.sum"
    if name in lists.feature_names:
        return [float(v) for v in lists.features[:, lists.feature_names.index(name)]]
    return [float(v) for v in lists.extras.get(name, [np.nan] * len(lists.features))]


def completion(*answers: tuple[str, list[float | None]], **more: Any) -> str:
    """Return a response of completions: texts and the log-probabilities of their tokens."""
    choices: list[Any] = []
    for k, (text, values) in enumerate(answers):
        logged = {"tokens": ["x"] * len(values), "token_logprobs": values}
        choices.append({"index": k, "text": text, "logprobs": logged, "finish_reason": "stop"})
    return json.dumps({"object": "text_completion", "model": "m", "choices": choices, **more})


def test_chats_and_completions_one_by_one() -> None:
    path = GOLDEN / "openai-completions.jsonl"
    named = "logprob.sum is missing for 1, logprob.mean for 1, logprob.min for 1, length"
    with raises(DataError, "missing-feature", line=1, parameter="missing", match=named):
        notes_of(lambda: read_nbest(path))
    lists, _ = notes_of(lambda: read_nbest(path, missing=-99))
    assert texts(lists) == [["a cat", "cat"], ["le chat"], ["two parts"]]
    assert sums(lists) == pytest.approx([-99, -4, -0.75, -2.5])
    lists, _ = notes_of(lambda: read_nbest(path, exclude=["logprob.*", "length"]))
    assert "logprob.sum" not in lists.feature_names
    assert sums(lists) == pytest.approx([np.nan, -4, -0.75, -2.5], nan_ok=True)


def failed(**fields: Any) -> str:
    return json.dumps({"custom_id": "r-5", **fields})


#: Answers that are no candidates, and what the message says of them.
FAILED: list[tuple[str, str]] = [
    (batch("r-5", choice(None, refusal="No.")), "refusals: 1"),
    (batch("r-5", choice("a", finish_reason="length")), "'length': 1"),
    (batch("r-5", choice(None)), "without a text: 1"),
    (batch("r-5", {"message": {"content": "", "tool_calls": [{}]}}), "without a text: 1"),
    (batch("r-5", choice("a", -9e60)), "finite: 1"),
    (batch("r-5"), "without answers: 1"),
    (failed(response=None, error={"message": "slow"}), "'slow'"),
    (failed(response=None, error=None), "without answers"),
    (failed(response={"status_code": 429, "body": None}), "'status 429'"),
    (failed(response={"status_code": 0, "body": {}}), "'status 0'"),
    (failed(response={"status_code": 200, "body": {}}), "without answers"),
    (failed(response={"body": {"error": {"code": 3}}}), "'code': 3"),
    (failed(object="error", message="long"), "'long'"),
]


@pytest.mark.parametrize(("content", "shown"), FAILED)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_failed_answers_are_listed_or_dropped(content: str, shown: str, place: int) -> None:
    lines = [batch(f"r-{n}", choice("a cat", -1)) for n in (4, 6)]
    lines.insert(place, content)
    with raises(DataError, "bad-response", parameter="bad", line=place + 1, match=shown):
        read_nbest(lines)
    lists, notes = notes_of(lambda: read_nbest(lines, bad="drop"))
    assert lists.sentence_ids.tolist() == [4, 6]
    assert "1 sentence without candidates, the first of id 5" in notes


# --- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (0, "<think>is it 4?</think>\n\n4"),
        (0, "is it <think>?\n</think>4"),
        (1, "[THINK]4?[/THINK]4"),
        (2, "<|channel|>analysis<|message|>4?<|end|><|channel|>final<|message|>4<|return|>"),
        *((place, "4") for place in range(3)),
    ],
)
def test_the_expressions_of_the_page_leave_out_reasoning(place: int, text: str) -> None:
    section = PAGE.read_text("utf-8").partition("* **Reasoning**")[2].partition("\n* **")[0]
    pattern = re.findall("--format 'openai:extract=(.*?)'", section)[place]
    lists = read_nbest([live(choice(text, -1))], format=Answers(extract=pattern))
    assert texts(lists) == [["4"]]


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_an_unknown_token_makes_those_of_its_answer_missing(unknown: float | None) -> None:
    lines = [
        live(choice("a cat", -0.1, -0.2), choice("the cat", unknown, -0.2)),
        completion(("a cat", [-0.1, -0.2]), ("the cat", [unknown, -0.2])),
    ]
    for content in lines:
        with raises(DataError, "missing-feature", line=1, parameter="missing", match="logprob.sum"):
            read_nbest([content])
        lists, notes = notes_of(lambda content=content: read_nbest([content], missing=-99))
        assert sums(lists) == pytest.approx([-0.3, -99])
        assert "a log-probability of 1 answer is unknown" in notes


def test_answers_that_repeat_their_prompts_are_refused(write: Write) -> None:
    asked = {"custom_id": "r-1", "body": {"prompt": "Q:", "echo": True}}
    requests = write(json.dumps(asked), name="requests.jsonl")
    body = json.loads(completion(("Q: a", [None, -1])))
    answer = json.dumps({"custom_id": "r-1", "response": {"body": body}})
    with raises(DataError, "not-supported", line=1, match=r"requests\.jsonl:1: .* echo"):
        read_nbest([answer], format=f"openai:requests={requests}")
    with raises(DataError, "not-supported", line=1, match="echo"):
        read_nbest([completion(("Q: a", [None, -1]), prompt="Q:", echo=True)])


# --- prompts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["line", "request", "requests", "offsets"])
def test_several_prompts_in_one_completion_are_refused(write: Write, where: str) -> None:
    body = json.loads(completion(*((f" {text}", [-1.0]) for text in "abcd")))
    assert texts(read_nbest([json.dumps(body)])) == [["a", "b", "c", "d"]]
    fields: dict[str, Any] = {"custom_id": "r-1", "response": {"body": body}}
    format, request = Answers(), {"prompt": ["eins", "zwei"]}
    if where == "requests":
        path = write(json.dumps({"custom_id": "r-1", "body": request}), name="requests.jsonl")
        format = f"openai:requests={path}"
    elif where == "offsets":
        for one, start in zip(body["choices"], (5, 5, 9, 9), strict=True):
            one["logprobs"]["text_offset"] = [start]
    else:
        fields |= request if where == "line" else {"request": request}
    with raises(DataError, "bad-response", line=1, match="send a request for each prompt"):
        read_nbest([json.dumps(fields)], format=format)


# --- streams -------------------------------------------------------------------------------------


def chunks(object: str, *choices: dict[str, Any]) -> list[str]:
    """Return the parts of two answers, one after the other at each step, and their usage."""
    fields = {"object": object, "model": "m"}
    steps = [{"choices": [{"index": 0, "finish_reason": None, **of}]} for of in choices]
    steps.append({"choices": [], "usage": {}})
    return [json.dumps({"id": name, **fields, **step}) for step in steps for name in "zy"]


def delta(text: str, logprob: float) -> dict[str, Any]:
    logged = {"content": [{"token": text, "logprob": logprob}]}
    return {"delta": {"content": text}, "logprobs": logged}


CHAT = "chat.completion.chunk"
STOP = {"finish_reason": "stop"}
#: Parts of the answer "a cat", of two answers at each step.
STREAMED = {
    "chat": chunks(CHAT, delta("a", -0.1), delta(" cat", -0.2), {"delta": {}, **STOP}),
    "completion": chunks("text_completion", {"text": " a"}, {"text": " cat"}, {"text": "", **STOP}),
    "completion with tokens": chunks(
        "text_completion",
        *(
            {"text": text, "logprobs": {"tokens": [text], "token_logprobs": [value]}}
            for text, value in ((" a", -0.1), (" cat", -0.2))
        ),
        {"text": "", "logprobs": None, **STOP},
    ),
}


@pytest.mark.parametrize("name", STREAMED)
def test_parts_of_answers_are_joined_by_the_command_of_the_page(name: str, tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    (tmp_path / "parts.jsonl").write_text("\n".join(STREAMED[name]))
    marked = [f"event: x\ndata: {part}\n\n" for part in STREAMED[name]]
    (tmp_path / "events").write_text("".join([*marked, "data: [DONE]\n"]))
    number = 3 if name.startswith("completion") else 1
    with raises(DataError, "not-supported", line=number, match=r"as docs/how-to/llm-samples\.md"):
        read_nbest(tmp_path / "parts.jsonl")
    (tmp_path / "parts.jsonl").unlink()
    run_shell(*re.findall("`(sed .*?)`", page), tmp_path)
    (command,) = re.findall(r"^(jq -nc 'reduce (?:[^`]+\n)+?)```", page, re.MULTILINE)
    run_shell(command, tmp_path)
    lists, _ = notes_of(lambda: read_nbest(tmp_path / "answers.jsonl"))
    assert texts(lists) == [["a cat"]] * 2
    expected = np.nan if name == "completion" else -0.3
    assert sums(lists) == pytest.approx([expected] * 2, nan_ok=True)

"""Responses of chat and completion APIs, and the requests that they answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import NBest, read_nbest, write_nbest
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.formats.openai import Openai

GOLDEN = Path(__file__).parent / "golden"
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
def test_numbers_in_the_names_of_prompts_are_the_ids(
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
    lists, notes = notes_of(lambda: read_nbest(path, format=Openai(requests=str(requests))))
    assert lists.sources == ("un chat", "trois")
    assert (lists.sentence_ids.tolist(), lists.ids) == ([0, 2], ("uuid-b", "uuid-a"))
    assert "requests without a response: 1 (uuid-c)" in notes


def test_several_requests_of_one_prompt(write: Write) -> None:
    samples = ["d7-s1", "d8-s1", "d7-s2"]
    requests = write(*(request(name, f"Übersetze: {name[:2]}!") for name in samples), name="in")
    path = write(*(batch(name, choice(name, -1)) for name in samples[::-1]))
    format = Openai(prompt_id="(.*)-s", requests=str(requests), source=": (.*)!")
    lists = read_nbest(path, format=format)
    assert [lists.texts(s) for s in range(2)] == [["d7-s2", "d7-s1"], ["d8-s1"]]
    assert lists.sources == ("d7", "d8")
    with raises(DataError, "mismatch", parameter="prompt_id", line=1, match="'d7-s2'"):
        read_nbest(path, format=Openai(prompt_id="(.*)-x"))
    short = write(request("d8-s1", "?"), name="short")
    with raises(DataError, "mismatch", parameter="requests", line=1, match="'d7-s2'"):
        read_nbest(path, format=Openai(requests=str(short)))


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
    assert read_nbest(path, format=Openai(**settings)).texts(0) == ["a\ncat"]
    odd = ["no", "{", "[1]", '{"t": 1}', "[" * 100_000]
    path = write(batch("1", choice(answer, -1)), batch("2", *map(choice, odd)))
    with raises(DataError, "bad-response", parameter="bad", line=2, match=r"5 \(2\)"):
        read_nbest(path, format=Openai(**settings))


@pytest.mark.parametrize(
    ("logprobs", "note"),
    [
        ((0.5, 1.5), "the log-probabilities of 1 of 3 answers are positive"),
        ((-1, -9999.0), "1 of 3 answers have a token of log-probability -9999"),
        ((1e-6, 0.0), ""),
    ],
)
def test_log_probabilities_that_cannot_be(
    write: Write, logprobs: tuple[float, ...], note: str
) -> None:
    path = write(live(choice("a", *logprobs), choice("b", -1)), live(choice("c", -2)))
    _, notes = notes_of(lambda: read_nbest(path))
    assert note in notes
    assert bool(note) is bool(notes)


def test_a_file_of_requests_that_is_not_one(write: Write) -> None:
    path = write(batch("1", choice("a", -1)))
    for line in (batch("1"), "{}", '{"custom_id": "1", "body": {"input": null}}', " "):
        with pytest.raises(DataError, match=r"requests\.jsonl") as caught:
            read_nbest(path, format=Openai(requests=str(write(line, name="requests.jsonl"))))
        assert caught.value.parameter == "requests"


@pytest.mark.filterwarnings("ignore:.*counted in the order")
def test_two_prompts_of_one_custom_id(write: Write) -> None:
    """Whether the prompts are in the file of requests, or in that of the responses."""
    lines = [request("p-1", prompt) for prompt in ("Un chat", "Un chat", "Un chien")]
    path = write(batch("p-1", choice("a", -1)), name="out.jsonl")
    for kept in (lines[:1], lines[:2]):
        requests = write(*kept, name="requests.jsonl")
        assert read_nbest(path, format=Openai(requests=str(requests))).sources == ("Un chat",)
    requests = write(*lines, name="requests.jsonl")
    match = r"requests\.jsonl:3: a second prompt of the custom_id 'p-1'"
    with raises(DataError, "duplicate", line=3, match=match):
        read_nbest(path, format=Openai(requests=str(requests)))
    both = [
        json.dumps(json.loads(batch("p-1", choice(t, -1))) | {"request": of}) for t, of in PAIRS
    ]
    assert read_nbest(both[:2]).texts(0) == ["a", "b"]
    with raises(DataError, "duplicate", line=3, match="a second prompt of the custom_id 'p-1'"):
        read_nbest(both)
    assert len(read_nbest(both, format="openai:prompt_id=(p)")) == 1


PAIRS = [
    (text, {"messages": [{"role": "user", "content": prompt}]})
    for text, prompt in (("a", "Un chat"), ("b", "Un chat"), ("c", "Un chien"))
]


def test_settings_are_checked_at_once() -> None:
    with raises(UsageError, "invalid-setting", parameter="extract", match=r"'\('"):
        NBEST_FORMATS.resolve("openai", {"extract": "("})


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv", "tsv"])
@pytest.mark.filterwarnings("ignore:.*would not read back")
def test_ids_read_back(suffix: str, tmp_path: Path) -> None:
    """The integers at the ends of ids, by which references are paired, are written too."""
    choices = {"message": {"content": "a"}, "logprobs": {"content": [{"logprob": -1}]}}
    lists = read_nbest([batch("r-7", choices), batch("r-3", choices)])
    write_nbest(lists, tmp_path / f"lists.{suffix}")
    again = read_nbest(tmp_path / f"lists.{suffix}")
    assert again.ids == lists.ids == ("r-3", "r-7")
    assert again.sentence_ids.tolist() == lists.sentence_ids.tolist() == [3, 7]
    assert again.sentence_extras.keys() == lists.sentence_extras.keys()


#: A field of a response, and where it is written again, with another value.
TWICE = [
    '"custom_id": "p-2"',
    '"status_code": 200',
    '"choices": []',
    '"finish_reason": "stop"',
    '"content": "another answer"',
    '"logprob": -9.5',
    '"refusal": null',
]


@pytest.mark.parametrize("field", TWICE)
def test_a_key_that_occurs_twice_is_an_error(field: str, write: Write) -> None:
    good = batch("p-1", choice("a cat", -0.5, refusal=None), choice("the cat", -1.5))
    name = field.partition(":")[0]
    assert name in good
    bad = good.replace(f"{name}:", f"{field}, {name}:", 1)
    path = write(batch("p-0", choice("a", -0.5)), bad)
    with raises(DataError, "duplicate", line=2, match=f"the field '{name[1:-1]}' occurs twice"):
        read_nbest(path)
    bare = json.dumps(json.loads(good)["response"]["body"])
    if name in bare:
        path = write(live(choice("a")), bare.replace(f"{name}:", f"{field}, {name}:", 1))
        with raises(DataError, "duplicate", line=2):
            read_nbest(path)


def test_a_key_that_occurs_twice_in_a_request_or_an_answer(write: Write) -> None:
    asked = request("p-0", "a cat").replace('"n": 4', '"n": 4, "n": 5')
    requests = write(asked, name="requests")
    path = write(batch("p-0", choice("a")))
    with raises(DataError, "duplicate", line=1, match="'n' occurs twice"):
        read_nbest(path, format=f"openai:requests={requests}")
    answers = [choice(text) for text in ('{"best": "a"}', '{"best": "a", "best": "b"}')]
    path = write(batch("p-0", *answers))
    with raises(
        DataError, "bad-response", parameter="bad", line=1, match="in the field 'best': 1 "
    ):
        read_nbest(path, format="openai:field=best")

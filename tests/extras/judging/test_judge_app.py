"""The application of a session: questions, answers, and requests that are refused."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.judge_lists import TOKEN, judge_lists
from support.raising import raises

from bpa_ppl import NBest, UsageError
from bpa_ppl.extras.judging.app import advise, find_context, show_panel, split_candidates
from bpa_ppl.extras.judging.questions import Outlook
from bpa_ppl.extras.judging.session import Session

testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")
pytest.importorskip("uvicorn", reason="the extra `judge` is not installed")

ADDRESS = f"http://127.0.0.1:8000/{TOKEN}"
Open = Callable[..., Any]


@pytest.fixture
def open_session(tmp_path: Path) -> Iterator[Open]:
    """A function that starts a session with a journal, or resumes it, and returns a client."""
    from bpa_ppl.extras.judging.app import judging_application

    opened = ExitStack()

    def start(lists: NBest | None = None, rater: str | None = None, **options: Any) -> Any:
        session = Session(lists or judge_lists(), journal=tmp_path / "j.jsonl", rater=rater)
        app = judging_application(session, TOKEN, **options)
        client = opened.enter_context(testclient.TestClient(app, base_url=ADDRESS))
        client.session, client.path = session, tmp_path / "j.jsonl"
        client.written = lambda: Session(session.lists, journal=client.path).judgements
        return client

    with opened:
        yield start


def answer(client: Any, name: str = "first", **more: Any) -> Any:
    """Answer the current question."""
    number = client.get("question").json()["number"]
    return client.post("answer", json={"number": number, "answer": name, **more})


def shown(view: dict[str, Any]) -> tuple[str, ...]:
    """Return the texts of a question as the page shows them."""
    return tuple("".join(text for text, _ in parts) for parts in view["candidates"])


def test_every_request_needs_the_token(open_session: Open) -> None:
    client = open_session()
    for token in ("", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "ü", f"x/{TOKEN}"):
        for path in ("", "question"):
            assert client.get(f"http://127.0.0.1:8000/{token}/{path}").status_code == 403
        assert client.post(f"http://localhost/{token}/undo", json={}).status_code == 403
    assert client.get("nothing").status_code == 404


def test_other_names_of_the_server_are_refused(open_session: Open) -> None:
    client = open_session(hosts=["nbest.example"])
    names = {"localhost:9": 200, "127.0.0.1": 200, "LOCALHOST": 200, "NBest.example:80": 200}
    names |= dict.fromkeys(["evil.example", "127.0.0.1.example", "a@localhost", "["], 400)
    for host, status in names.items():
        assert client.get("question", headers={"Host": host}).status_code == status, host


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x"])
def test_what_pages_of_other_sites_can_send_is_refused(open_session: Open, kind: str) -> None:
    body = json.dumps({"number": 2, "answer": "first"})
    response = open_session().post("answer", content=body, headers={"Content-Type": kind})
    assert (response.status_code, response.json()["code"]) == (415, "bad-type")


def test_a_port_in_use_is_an_error() -> None:
    from bpa_ppl.extras.judging.web import listen

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with raises(UsageError, parameter="port", match=str(port)):
            listen("127.0.0.1", port)


def test_standard_output_may_be_closed(open_session: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from bpa_ppl.extras.judging.web import run

    started: list[object] = []
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: started.extend(sockets))
    run(open_session().app, "127.0.0.1", 0, started.append)
    assert len(started) == 2  # the address and the socket


@pytest.mark.parametrize("name", ["", "judge.js", "judge.css"])
def test_the_page_loads_nothing_from_elsewhere(open_session: Open, name: str) -> None:
    page = open_session().get(name)
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["cache-control"] == "no-store"
    assert "http" not in page.text.replace("http://www.w3.org/2000/svg", "")


def test_answers_are_those_of_the_session(open_session: Open) -> None:
    client = open_session()
    alone = Session(judge_lists())
    for name in ("first", "second", "tie", "skip", "first"):
        question = client.get("question").json()
        assert shown(question) == alone.next().texts
        assert question["source"] == alone.next().source
        reply = answer(client, name)
        alone.answer(name)
        assert (reply.status_code, reply.json()["number"]) == (200, alone.next().number)
        assert shown(reply.json()) == alone.next().texts
        assert client.written()[-1].answer == name
    assert client.get("state").json() == json.loads(json.dumps(show_panel(alone)))
    np.testing.assert_allclose(client.session.weights.mean, alone.weights.mean)


@pytest.mark.parametrize(
    ("rater", "chosen", "shown"),
    [(None, None, True), ("ann", None, False), ("ann", True, True), (None, False, False)],
)
def test_a_rater_with_a_name_does_not_see_the_state(
    open_session: Open, rater: str | None, chosen: bool | None, shown: bool
) -> None:
    client = open_session(rater=rater, state_shown=chosen)
    reply = answer(client).json()
    assert set(reply) == {"number", "answers", "last", "context", "source", "candidates"}
    state = client.get("state").json()
    assert state == (
        json.loads(json.dumps(show_panel(client.session))) if shown else {"hidden": True}
    )


def test_undo_asks_again(open_session: Open) -> None:
    client = open_session()
    first = client.get("question").json()
    assert client.post("undo", json={"number": first["number"]}).json()["code"] == "no-data"
    second = answer(client).json()
    assert second["last"] == "first"
    again = client.post("undo", json={"number": second["number"]}).json()
    assert (shown(again), again["last"], again["answers"]) == (shown(first), None, 0)
    assert len(client.written()) == 0


def test_a_question_is_answered_once(open_session: Open) -> None:
    client = open_session()
    number = client.get("question").json()["number"]
    body = {"number": number, "answer": "second"}
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: client.post("answer", json=body), range(16)))
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * 15
    assert len(client.written()) == 1
    current = client.get("question").json()
    for reply in replies:
        assert reply.json().get("question", reply.json()) == current
    assert client.post("undo", json={"number": number}).status_code == 409


def test_corrections(open_session: Open) -> None:
    client = open_session()
    answer(client, "second", correction="mine")
    answer(client, "first", correction=" \n")
    answer(client, "tie", correction="mine")
    answer(client, "first", correction=shown(client.get("question").json())[0])
    assert [judgement.correction for judgement in client.written()] == ["mine", None, "mine", None]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad-json"),
        ({"number": "2", "answer": "first"}, 400, "bad-json"),
        ({"number": 2, "answer": "third"}, 422, "unknown-name"),
        ({"number": 2, "answer": "first", "correction": "x" * 2**18}, 413, "too-large"),
        ({"number": 3, "answer": "first"}, 409, "stale"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_requests(open_session: Open, body: Any, status: int, code: str) -> None:
    client = open_session()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json; charset=utf-8"}
    response = client.post("answer", content=content, headers=headers)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert client.get("question").json()["answers"] == 0


def test_an_answer_that_cannot_be_kept(open_session: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, and if another program has changed the journal."""
    client = open_session()
    question = client.get("question").json()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        reply = answer(client)
    assert (reply.status_code, reply.json()["code"]) == (422, "cannot-write")
    assert "No space left" in reply.json()["error"]
    assert client.get("question").json() == question
    assert client.path.read_bytes() == b""
    question = answer(client).json()
    content = client.path.read_bytes() + b"more\n"
    client.path.write_bytes(content)
    for request in ("answer", "undo"):
        reply = client.post(request, json={"number": question["number"], "answer": "first"})
        assert (reply.status_code, reply.json()["code"]) == (422, "mismatch")
    assert client.get("question").json() == question
    assert client.path.read_bytes() == content


def test_context() -> None:
    lists = judge_lists()
    assert find_context(lists, 4) == []  # the first of its document
    assert find_context(lists, 5) == ["die Katze 4"]
    assert find_context(lists, 7) == ["die Katze 5", "die Katze 6"]
    given = lists.with_sentence_extras(context=["before", None, ["a", "b"], *[None] * 5])
    assert [find_context(given, s) for s in range(4)] == [["before"], [], ["a", "b"], []]


def test_very_long_texts_are_not_compared() -> None:
    word = f"{'long' * 25} "
    texts = [word * 49, word * 48]
    assert split_candidates(texts) == ([(word * 48, False), (word, True)], [(word * 48, False)])
    texts = [word * 50, word * 49]
    assert split_candidates(texts) == [[(text, False)] for text in texts]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"further": 0.03}, "continue"),
        ({}, "stop"),
        ({"answers": 9}, "continue"),  # the prior may be wrong
        ({"least": 0.5}, "continue"),  # choices are uncertain
        ({"predicted": 5.0, "predicted_before": 4.0, "random": 8}, "continue"),  # may be chance
        ({"predicted": 10.0}, "no-help"),
        ({"predicted_before": 15.0}, "no-help"),
    ],
)
def test_advice(changes: dict[str, Any], code: str) -> None:
    state = Outlook(40, 100, 10, 0.5, 0.9, 0.8, 0.0049, 15.0, 12.0, 20, 2, 2)
    assert advise(state._replace(**changes))[0] == code

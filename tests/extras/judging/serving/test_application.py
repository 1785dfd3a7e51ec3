"""The application: what it answers to good and bad requests."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.posteriors import RecipeRecord, Record, SourceRecord, name_weights, read_weight_draws
from support.raising import raises

from bpa_ppl import Reranker, UsageError, Weights, from_lists, rerank
from bpa_ppl.extras.judging.serving import app
from bpa_ppl.extras.judging.serving.app import application, select_fields
from bpa_ppl.extras.judging.serving.limits import Limits

testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")

GOOD = {
    "id": "news-1",
    "candidates": [{"text": "a cat", "lm": -1.5, "tm": 2}, {"text": "the cat", "lm": 0, "tm": 1}],
}
TYPE = {"Content-Type": "application/json"}


def client_of(posterior: Path, limits: Limits, **options: Any) -> Any:
    """Return a client that sends JSON to a service."""
    app = application(partial(Reranker, posterior), limits)
    return testclient.TestClient(app, "http://localhost", headers=TYPE, **options)


@pytest.fixture(scope="module")
def client(posterior: Path) -> Iterator[Any]:
    limits = Limits(max_body=20_000, max_candidates=100)
    with client_of(posterior, limits) as client:
        yield client


def test_one_list(client: Any, posterior: Path) -> None:
    answer = client.post("/rerank", json=GOOD).json()
    lists = from_lists([["a cat", "the cat"]], [[[-1.5, 2], [0, 1]]], ["lm", "tm"])
    expected = rerank(lists, read_weight_draws(posterior))
    assert answer["id"] == "news-1"
    assert answer["text"] == expected.texts[0] == "the cat"
    assert answer["choice"] == expected.choice[0]
    assert answer["probability"] == pytest.approx(expected.probability[0], rel=1e-7)
    assert sum(answer["probabilities"]) == pytest.approx(1)
    assert answer["notes"] == []
    candidates = [{**candidate, "comet": 0.5} for candidate in GOOD["candidates"]]
    noted = client.post("/rerank", json={"candidates": candidates}).json()
    assert noted["text"] == "the cat"
    assert [note.partition(":")[0] for note in noted["notes"]] == ["comet not used"]


def test_several_lists_as_json_and_as_lines(client: Any) -> None:
    """Ids may be equal, or missing."""
    without_id = {"candidates": GOOD["candidates"]}
    lists = [GOOD, GOOD, without_id]
    answers = client.post("/rerank", json=lists).json()
    assert [answer["id"] for answer in answers] == ["news-1", "news-1", None]
    assert {answer["text"] for answer in answers} == {"the cat"}
    headers = {"Content-Type": "application/x-ndjson"}
    body = "\n".join(map(json.dumps, lists))
    assert client.post("/rerank", content=body, headers=headers).json() == answers


def test_unknown_fields_of_lists_are_refused_and_those_of_candidates_noted(client: Any) -> None:
    for fields, named in (
        ({"rule": "mbr"}, "list 1 has the field 'rule'"),
        ({"sources": ["x"], "id": 3}, "'sources'"),
        ({"domain": "news"}, "'domain'"),  # the posterior has no weights for domains
        ({"lm": [0.5, 1.5]}, "'lm'"),  # which each candidate has
        ({"text": "a"}, "'text'"),
    ):
        for body in ({**GOOD, **fields}, [GOOD, {**GOOD, **fields}]):
            response = client.post("/rerank", json=body)
            answer = response.json()
            assert (response.status_code, answer["code"]) == (400, "unknown-field")
            place = 1 if isinstance(body, dict) else 2
            assert named.replace("list 1", f"list {place}") in answer["error"]
            assert "the fields of a list are candidates, id, source" in answer["error"]
    candidates = [{**one, "system": "x", "of": {"x": 1.5, "y": "z"}} for one in GOOD["candidates"]]
    (first, second) = client.post("/rerank", json={"candidates": candidates}).json()["notes"]
    assert first.startswith("of.x not used: the posterior has no weight")
    assert second == "system, of.y not used: the posterior needs no such field"
    declared = [
        {"text": text, "features": {"lm": lm, "tm": tm}}
        for text, lm, tm in (("a cat", -1.5, 2), ("the cat", 0, 1))
    ]
    assert client.post("/rerank", json={"candidates": declared}).json()["text"] == "the cat"


def test_lists_of_a_domain_are_reranked_by_its_weights() -> None:
    own = np.ones((4, 500, 2, 1))
    own[:, :, 1] = -1.0
    options = {"values": {"own": own}, "coords": {"domain": ("news", "talks")}}
    draws = name_weights(np.zeros((4, 500, 1)), ("lm",), sampled=("weights",), **options)
    service = application(lambda: Reranker(draws, unchecked=True))
    client = testclient.TestClient(service, "http://localhost")
    candidates = [{"text": "a", "lm": 0.0}, {"text": "b", "lm": 1.0}]
    lists = [{"domain": name, "candidates": candidates} for name in ("news", "talks")]
    assert [one["text"] for one in client.post("/rerank", json=lists).json()] == ["b", "a"]
    schema = client.get("/openapi.json").json()["components"]["schemas"]["list"]
    assert "domain" in schema["properties"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("own", [False, True])
def test_the_cost_of_unknown_columns_is_linear(posterior: Path, own: bool) -> None:
    """Candidates with 20,000 unknown columns, and 1,000 that have 40 columns each of their own."""
    fields = [{"text": str(k), "lm": k % 7, "tm": k % 3} for k in range(1000 if own else 2)]
    for place, one in enumerate(fields):
        names = range(40 * place, 40 * place + 40) if own else range(20_000)
        one.update((f"column{number}", 0.5) for number in names)
    (selected,), unused = select_fields([{"candidates": fields}], ["lm", "tm"])
    assert {*selected["candidates"][-1]} == {"text", "lm", "tm"}
    assert len(unused) == (40_000 if own else 20_000)
    with client_of(posterior, Limits()) as client:
        response = client.post("/rerank", json=[{"candidates": fields}, GOOD])
    assert response.status_code == 200
    assert len(response.content) < 100_000
    (note,) = response.json()[0]["notes"]
    assert len(note) < 200


ONE = {"text": "a", "lm": 0, "tm": 0}
HIGH, WITHOUT_TM = ONE | {"lm": "high"}, {"text": "a", "lm": 0}


def candidate(**changed: Any) -> dict[str, Any]:
    return {"candidates": [ONE | changed]}


def second(*candidates: dict[str, Any]) -> list[Any]:
    """Return two lists, the second with these candidates."""
    return [GOOD, {"candidates": list(candidates)}]


@pytest.mark.parametrize(
    ("body", "status", "code", "named"),
    [
        (b"{", 400, "bad-json", ""),
        (b"[" * 10_000, 400, "bad-json", ""),
        (b"x" * 20_001, 413, "too-large", "20,000"),
        ([], 422, "no-data", ""),
        ({"candidates": []}, 422, "no-data", "list 1"),
        ([GOOD, {"texts": []}], 422, "bad-list", "list 2"),
        ({"candidates": [3]}, 422, "bad-data", "candidates[0]"),
        (b'{"candidates": [{"text": "a", "lm": NaN, "tm": 0}]}', 400, "bad-json", ""),
        (candidate(lm="high"), 422, "bad-number", "lm"),
        (candidate(lm=1e61), 422, "bad-number", "lm"),
        (candidate(text="a\0"), 422, "bad-encoding", "NUL"),
        (candidate(text=3), 422, "bad-data", "candidates[0].text"),
        (candidate(lm=True), 422, "bad-number", "candidates[0].lm is true"),
        (candidate(total="x"), 422, "bad-number", "candidates[0].total"),
        (second(ONE, HIGH, ONE), 422, "bad-number", "list 2: candidates[1].lm is 'high'"),
        (second(HIGH, ONE), 422, "bad-number", "list 2: candidates[0].lm is 'high'"),
        (second(ONE, WITHOUT_TM, ONE), 422, "missing-feature", "candidates[1] of list 2 has no tm"),
        (second(WITHOUT_TM, ONE), 422, "missing-feature", "candidates[0] of list 2 has no tm"),
        ({"candidates": [{"text": "a", "LM": 0, "tm": 0}]}, 422, "missing-feature", "LM"),
        ({"candidates": candidate()["candidates"] * 101}, 413, "too-many-candidates", "101"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_requests(client: Any, body: Any, status: int, code: str, named: str) -> None:
    response = client.post("/rerank", **{"content" if isinstance(body, bytes) else "json": body})
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert named in response.json()["error"]
    assert "\n" not in response.json()["error"]
    assert "memory" not in response.json()["error"]


def test_other_methods_and_paths(client: Any) -> None:
    response = client.get("/rerank")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    error = {"error": "Method Not Allowed: use POST", "code": "method-not-allowed"}
    assert response.json() == {**error, "parameter": None}
    response = client.get("/nothing")
    assert (response.status_code, response.json()["code"]) == (404, "not-found")


def test_other_names_of_the_server_are_refused(client: Any, posterior: Path) -> None:
    names = {"localhost:9": 200, "127.0.0.1": 200, "LOCALHOST": 200, "evil.example": 400}
    for host, status in {**names, "127.0.0.1.example": 400, "a@localhost": 400, "[": 400}.items():
        response = client.post("/rerank", json=GOOD, headers={"Host": host})
        assert response.status_code == status, host
    for allowed, host in (("nbest.example", "NBest.example:80"), ("[::1]", "[::1]:1"), ("*", "a")):
        app = application(partial(Reranker, posterior), hosts=[allowed])
        assert testclient.TestClient(app).get("/health", headers={"Host": host}).is_success


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x"])
def test_what_pages_of_other_sites_can_send_is_refused(client: Any, kind: str) -> None:
    response = client.post("/rerank", content=json.dumps(GOOD), headers={"Content-Type": kind})
    assert (response.status_code, response.json()["code"]) == (415, "bad-type")


def test_failures_are_json(posterior: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = iter([MemoryError(), ValueError("a defect")])

    def answers(*_: object) -> None:
        raise next(errors)

    monkeypatch.setattr(app, "answer_records", answers)
    with client_of(posterior, Limits(), raise_server_exceptions=False) as client:
        responses = [client.post("/rerank", json=GOOD) for _ in range(2)]
    codes = [(response.status_code, response.json()["code"]) for response in responses]
    assert codes == [(503, "out-of-memory"), (500, "internal")]


def test_unfinished_bodies_are_bounded(posterior: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = application(partial(Reranker, posterior), Limits(max_body=2**27))

    async def status(size: int) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            await asyncio.sleep(0.01)
            return {"type": "http.request", "body": b"[]", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        headers += [(b"content-length", str(size).encode())]
        scope = {"type": "http", "method": "POST", "path": "/rerank", "headers": headers}
        await service(scope | {"query_string": b""}, receive, send)
        return int(sent[0]["status"])

    async def both() -> list[int]:
        return [*await asyncio.gather(status(2**27), status(1)), await status(1)]

    assert asyncio.run(both()) == [422, 503, 422]


def test_requests_are_answered_in_threads_which_stay_busy_after_a_timeout(
    posterior: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def slow(*arguments: object) -> None:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        calls.append(arguments)
        time.sleep(1)
        raise MemoryError

    monkeypatch.setattr(app, "answer_records", slow)
    with client_of(posterior, Limits(timeout=0.1)) as client:
        codes = [client.post("/rerank", json=GOOD).json()["code"] for _ in range(3)]
    assert (codes, len(calls)) == (["timeout"] * 3, 2)


def test_what_the_model_expects(client: Any) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    model = client.get("/model").json()
    assert (model["features"], model["needs"]) == (["lm", "tm"], [])
    assert (model["rule"], model["draws"], model["check"]) == ("predictive", 2000, "passed")
    assert "chains:4|draws:500" in model["signature"]
    description = client.get("/openapi.json").json()
    assert set(description["paths"]) == {"/rerank", "/health", "/model"}


def test_columns_of_texts_are_required() -> None:
    weights = np.random.default_rng(0).normal(size=(4, 500, 2))
    settings = {"column": "system", "values": ["X"]}
    source = SourceRecord(source="indicators", settings=settings, feature_names=("system=X",))
    record = Record(recipe=RecipeRecord(sources=(source,)))
    draws = name_weights(weights, ("lm", "system=X"), record=record)
    service = application(lambda: Reranker(draws))
    client = testclient.TestClient(service, "http://localhost")
    model = client.get("/model").json()
    assert (model["features"], model["needs"]) == (["lm"], ["system"])
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["candidate"]["required"] == ["text", "lm", "system"]
    candidates = [{"text": "a", "lm": 0, "system": "X"}, {"text": "b", "lm": 0, "system": "Y"}]
    assert client.post("/rerank", json={"candidates": candidates}).is_success
    del candidates[0]["system"], candidates[1]["system"]
    assert "system" in client.post("/rerank", json={"candidates": candidates}).json()["error"]


def test_the_page_loads_nothing_from_elsewhere(client: Any) -> None:
    page = client.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "http" not in page.text
    for name in ("page.js", "page.css"):
        assert name in page.text
        assert client.get(f"/{name}").status_code == 200


def test_logs_have_no_texts(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="bpa_ppl.serving"):
        client.post("/rerank", json=GOOD)
        client.post("/rerank", content=b'{"secret')
    first, second = (json.loads(record.message) for record in caplog.records)
    assert (first["status"], first["lists"], first["candidates"]) == (200, 1, 2)
    assert second["status"] == 400
    assert "cat" not in caplog.text
    assert "secret" not in caplog.text


def test_limits_that_refuse_every_request_are_errors() -> None:
    for seconds in (float("nan"), -1.0):
        with raises(UsageError, "bad-number", parameter="timeout"):
            Limits(timeout=seconds)
    with raises(UsageError, "bad-number", parameter="max_body"):
        Limits(max_body=-1)
    with raises(UsageError, "bad-number", parameter="max_candidates"):
        Limits(max_candidates=0)


def test_reloads_follow_one_another_and_the_newest_file_is_served(posterior: Path) -> None:
    """The first file takes long to load; four requests to reload arrive meanwhile."""
    newest, in_work, most, served = 0, 0, 0, Reranker(posterior)

    def load() -> Any:
        nonlocal in_work, most
        in_work, read = in_work + 1, newest
        most = max(most, in_work)
        time.sleep(0.2 if read == 1 else 0.0)
        in_work -= 1
        reranker: Any = copy(served)
        reranker.number = read
        return reranker

    async def hang_up() -> Any:
        nonlocal newest
        service, reloads = app.Service(load, Limits()), []
        for number in range(1, 6):
            newest = number
            reloads.append(asyncio.create_task(service.reload()))
            await asyncio.sleep(0.02)
        await asyncio.gather(*reloads)
        return service.reranker

    assert asyncio.run(hang_up()).number == 5
    assert most == 1


def reranker_of(*features: str, **details: Any) -> Reranker:
    weights = np.random.default_rng(0).normal(size=(2, 5, len(features)))
    return Reranker(name_weights(weights, features, **details), unchecked=True)


INDICATORS = SourceRecord(
    source="indicators", settings={"column": "by", "values": ["x"]}, feature_names=("by=x",)
)


@pytest.mark.parametrize(
    ("features", "details", "differing"),
    [
        (("tm", "lm"), {"record": Record(start="none")}, None),
        (("lm", "qe"), {}, "qe, tm"),
        (("lm",), {}, "tm"),
        (("lm", "tm", "qe"), {}, "qe"),
        (("lm",), {"fixed": Weights({"tm": 1.0})}, "tm"),
        (("lm", "tm"), {"fixed": Weights({"wp": 1.0})}, "wp"),
        (
            ("lm", "tm", "by=x"),
            {"record": Record(recipe=RecipeRecord(sources=(INDICATORS,)))},
            "by",
        ),
        (
            ("lm", "tm"),
            {"values": {"own": np.ones((2, 5, 1, 2))}, "coords": {"domain": ("news",)}},
            "domain",
        ),
    ],
)
def test_a_posterior_of_other_requests_is_not_served(
    features: tuple[str, ...],
    details: dict[str, Any],
    differing: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old, new = reranker_of("lm", "tm"), reranker_of(*features, **details)
    service = app.Service(partial([old, new].pop, 0), Limits())
    with caplog.at_level(logging.INFO, logger="bpa_ppl.serving"):
        asyncio.run(service.reload())
    (line,) = [json.loads(record.message) for record in caplog.records]
    served = new if differing is None else old
    assert (line["status"], service.reranker) == ("done" if served is new else "failed", served)
    assert differing is None or f"one in use: {differing}: start another" in line["error"]

"""The application: what it answers to good and bad requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import Draws, NBest, NotConverged, Reranker, rerank, write_posterior
from bpa_ppl.posterior import read_draws
from bpa_ppl.serving import Limits, application

testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")

GOOD = {
    "id": "news-1",
    "candidates": [{"text": "a cat", "lm": -1.5, "tm": 2}, {"text": "the cat", "lm": 0, "tm": 1}],
}


@pytest.fixture(scope="module")
def client(posterior: Path) -> Iterator[Any]:
    limits = Limits(body=20_000, candidates=100)
    with testclient.TestClient(application(partial(Reranker, posterior), limits)) as client:
        yield client


def test_one_list(client: Any, posterior: Path) -> None:
    answer = client.post("/rerank", json=GOOD).json()
    lists = NBest.from_lists([["a cat", "the cat"]], [[[-1.5, 2], [0, 1]]], ["lm", "tm"])
    expected = rerank(lists, read_draws(posterior))
    assert answer["id"] == "news-1"
    assert answer["text"] == expected.texts[0] == "the cat"
    assert answer["choice"] == expected.choice[0]
    assert answer["probability"] == pytest.approx(expected.probability[0], rel=1e-7)
    assert sum(answer["probabilities"]) == pytest.approx(1)
    assert answer["notes"] == []


def test_many_lists_with_equal_ids_or_none(client: Any) -> None:
    without_id = {"candidates": GOOD["candidates"]}
    answers = client.post("/rerank", json=[GOOD, GOOD, without_id]).json()
    assert [answer["id"] for answer in answers] == ["news-1", "news-1", None]
    assert {answer["text"] for answer in answers} == {"the cat"}


def test_json_lines(client: Any) -> None:
    body = "\n".join([json.dumps(GOOD)] * 3)
    headers = {"Content-Type": "application/x-ndjson"}
    assert len(client.post("/rerank", content=body, headers=headers).json()) == 3


def test_unknown_features_are_noted(client: Any) -> None:
    candidates = [{**candidate, "comet": 0.5} for candidate in GOOD["candidates"]]
    answer = client.post("/rerank", json={"candidates": candidates}).json()
    assert answer["text"] == "the cat"
    assert "comet" in answer["notes"][0]


def candidate(**changed: Any) -> dict[str, Any]:
    return {"candidates": [{"text": "a", "lm": 0, "tm": 0} | changed]}


@pytest.mark.parametrize(
    ("body", "status", "code", "named"),
    [
        (b"", 400, "bad-json", ""),
        (b"{", 400, "bad-json", ""),
        (b'"\xff"', 400, "bad-json", ""),
        (b"[" * 10_000, 400, "bad-json", ""),
        (b'{"candidates": [{"text": "a", "lm": NaN, "tm": 0}]}', 400, "bad-json", ""),
        (b'{"candidates": [{"text": "a", "lm": 1, "tm": 0, "lm": 2}]}', 422, "duplicate", "'lm'"),
        (b"x" * 20_001, 413, "too-large", "20,000"),
        ([], 422, "no-data", ""),
        ({"candidates": []}, 422, "no-data", "list 1"),
        ([GOOD, {"texts": []}], 422, "bad-list", "list 2"),
        ({"candidates": [3]}, 422, "bad-data", "candidates[0]"),
        ([GOOD, candidate(lm=None)], 422, "missing-feature", "lm of candidate 0 of list 2"),
        (candidate(lm="high"), 422, "missing-feature", "'high'"),
        (candidate(lm=True), 422, "missing-feature", "lm"),
        (candidate(lm=1e39), 422, "bad-data", "lm"),
        (candidate(text=3), 422, "bad-data", "candidates[0].text"),
        (
            {"candidates": [{"text": "a", "lm": 0, "tm": 0}] * 101},
            413,
            "too-many-candidates",
            "101",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_requests(client: Any, body: Any, status: int, code: str, named: str) -> None:
    response = client.post("/rerank", **{"content" if isinstance(body, bytes) else "json": body})
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert named in response.json()["error"]
    assert "\n" not in response.json()["error"]


def test_other_methods_and_paths(client: Any) -> None:
    assert client.get("/rerank").status_code == 405
    assert client.get("/nothing").status_code == 404


def test_what_the_model_expects(client: Any) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    model = client.get("/model").json()
    assert model["features"] == ["lm", "tm"]
    assert (model["rule"], model["draws"], model["check"]) == ("predictive", 2000, "passed")
    description = client.get("/openapi.json").json()
    assert set(description["paths"]) == {"/rerank", "/health", "/model"}


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


def test_slow_requests_and_full_queues_are_refused(posterior: Path) -> None:
    for limits, code in ((Limits(seconds=0), "timeout"), (Limits(waiting=0), "busy")):
        with testclient.TestClient(application(partial(Reranker, posterior), limits)) as client:
            response = client.post("/rerank", json=GOOD)
            assert (response.status_code, response.json()["code"]) == (503, code)


def test_a_posterior_that_fails_its_check_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "short.nc"
    write_posterior(Draws({"weights": np.random.default_rng(0).normal(size=(4, 9, 1))}, "l"), path)
    with pytest.raises(NotConverged):
        application(partial(Reranker, path))

"""A service that chooses over HTTP: a starting point for one of your own.

pip install starlette uvicorn
POSTERIOR=posterior.nc uvicorn --app-dir examples serve:app --port 8000

curl localhost:8000/choose -d \
        '{"texts": ["a cat", "the cat"], "features": {"lm": [-1.2, -0.7], "tm": [-3.0, -2.5]}}'
"""

import json
import os
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import bpa_ppl as bpa

reranker = bpa.Reranker(os.environ["POSTERIOR"])
columns = [name for name in reranker.needs if name != "sources"]


def reply(status: int, **content: Any) -> Response:
    """Return content as JSON."""
    return Response(json.dumps(content), status, media_type="application/json")


async def choose(request: Request) -> Response:
    """Choose from texts by their features."""
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        return reply(400, error="the body is not valid JSON")
    if not isinstance(body, dict) or not {"texts", "features"} <= body.keys():
        return reply(400, error="the body must be an object with texts and features")
    fields = ["texts", "features", "source", "domain", *columns]
    if unknown := [name for name in body if name not in fields]:
        return reply(400, error=f"{unknown[0]!r} is none of the fields {', '.join(fields)}")
    try:
        # In a thread, so that other requests do not wait.
        chosen = await run_in_threadpool(lambda: reranker.choose(**body))
    except bpa.BpaError as error:
        return reply(422, error=error.message)
    return reply(200, **chosen._asdict())


async def model(request: Request) -> Response:
    """Return what a request must have in addition to texts."""
    return reply(200, features=reranker.required_features, needs=reranker.needs)


app = Starlette(routes=[Route("/choose", choose, methods=["POST"]), Route("/model", model)])

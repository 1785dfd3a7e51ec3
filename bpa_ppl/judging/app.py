"""The web application of `bpa judge`: one question at a time, for one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from bpa_ppl.errors import DataError
from bpa_ppl.formats.values import require_unique_fields
from bpa_ppl.judging.session import Session
from bpa_ppl.judging.view import show_panel, show_question
from bpa_ppl.serving.web import Refused, read_body, static_routes, web_application

#: Bytes of the body of a request; corrections are the only long part.
_LIMIT = 2**18
#: The address is a secret: it is neither stored nor sent to other sites.
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: the question that it is about, and the answer to it."""

    number: int
    answer: str = ""
    correction: str | None = None


def application(
    session: Session, token: str, *, hosts: Sequence[str] = (), state_shown: bool | None = None
) -> Starlette:
    """Return the application of a session, for uvicorn or another ASGI server.

    Args:
        session: whose questions are answered. Requests wait for each other.
        token: the first part of the path of every address, of letters, digits, `-` and `_`.
        hosts: names of the server, besides 127.0.0.1 and localhost; requests to other names are
            refused.
        state_shown: whether the rater sees the weights and what the answers have changed, which may
            influence the next answers. None shows them to a rater without a name.
    """
    shown = session.rater is None if state_shown is None else state_shown
    lock = Lock()

    def reply(content: dict[str, Any], status: int = 200) -> Response:
        body = msgspec.json.encode(content)
        return Response(body, status, headers=_HEADERS, media_type="application/json")

    def question(request: Request) -> Response:
        with lock:
            return reply(show_question(session))

    def state(request: Request) -> Response:
        with lock:
            return reply(show_panel(session) if shown else {"hidden": True})

    def change(number: int, work: Callable[[], object]) -> Response:
        """Change the session if its question is still the one of a request."""
        with lock:
            if number == session.next().number:
                work()
                return reply(show_question(session))
            error = {"error": "the question was answered in another window", "code": "stale"}
            return reply({**error, "question": show_question(session)}, 409)

    async def answer(request: Request) -> Response:
        body = await _read(request)
        work = partial(session.answer, body.answer, correction=body.correction)
        return await run_in_threadpool(change, body.number, work)

    async def undo(request: Request) -> Response:
        body = await _read(request)
        return await run_in_threadpool(change, body.number, session.undo)

    def refuse(request: Request) -> Response:
        problem = "this address has no valid token: open the one that the server printed"
        raise Refused(403, problem, "bad-token")

    api = [
        Route("/question", question),
        Route("/state", state),
        Route("/answer", answer, methods=["POST"]),
        Route("/undo", undo, methods=["POST"]),
    ]
    pages = static_routes("bpa_ppl.judging", _HEADERS)
    other = Route("/{path:path}", refuse, methods=["GET", "POST"])
    return web_application([Mount(f"/{token}", routes=[*api, *pages]), other], hosts)


async def _read(request: Request) -> _Body:
    """Return the body of a request.

    Raises:
        Refused: if it is too large, or not JSON as expected.
        DataError: if it has a field twice.
    """
    _, body = await read_body(request, _LIMIT, "write a shorter correction")
    try:
        content = msgspec.json.decode(body)
        require_unique_fields(body, content)
        return msgspec.convert(content, _Body)
    except DataError:
        raise
    # Python reads no integers of thousands of digits.
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not as expected: {error}", "bad-json") from error

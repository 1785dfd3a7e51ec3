"""The web application of `bpa judge`: one question at a time, for one session."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Scope

from bpa_ppl.errors import DataError
from bpa_ppl.judging.journal import PLACES
from bpa_ppl.judging.session import Session
from bpa_ppl.judging.view import panel, question_view
from bpa_ppl.serving.web import (
    Refused,
    error_response,
    read_body,
    run,
    static_routes,
    web_application,
)

#: Bytes of the body of a request; corrections are the only long part.
_LIMIT = 2**18
#: The address is a secret: it is neither stored nor sent to other sites.
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: the question that it is about, and the answer to it."""

    number: int
    answer: str = ""
    correction: str | None = None


_Content = dict[str, Any]


def _check_token(token: str, scope: Scope) -> Response | None:
    """Refuse each request whose path does not begin with the token."""
    first = scope["path"].removeprefix("/").partition("/")[0]
    if secrets.compare_digest(first.encode(errors="replace"), token.encode()):
        return None
    message = "This address has no valid token: open the one that the server printed."
    return PlainTextResponse(message, 403)


def application(
    session: Session, token: str, *, files: Sequence[Path] = (), hosts: Sequence[str] = ()
) -> Starlette:
    """Return the application of a session, for uvicorn or another ASGI server.

    Args:
        session: whose questions are answered. Requests wait for each other.
        token: the first part of the path of every address, of letters, digits, `-` and `_`.
        files: of the lists; if one changes, answers are refused.
        hosts: names of the server, besides 127.0.0.1 and localhost; requests to other names are
            refused.
    """
    lock = Lock()
    states = {path: _file_state(path) for path in files}

    def changed(number: int, work: Callable[[], object]) -> tuple[int, _Content]:
        """Change the session if its question is still the one of a request."""
        for path, state in states.items():
            if _file_state(path) != state:
                problem = "the lists have changed since the session began: start again"
                raise DataError(problem, path, code="mismatch")
        if number != session.next().number:
            problem = "the question was answered in another window"
            return 409, {"error": problem, "code": "stale", "question": question_view(session)}
        work()
        return 200, question_view(session)

    def locked(work: Callable[[], tuple[int, _Content]]) -> tuple[int, _Content]:
        with lock:
            return work()

    async def reply(work: Callable[[], tuple[int, _Content]]) -> Response:
        status, content = await run_in_threadpool(locked, work)
        body = msgspec.json.encode(content)
        return Response(body, status, media_type="application/json", headers=_HEADERS)

    async def question(request: Request) -> Response:
        return await reply(lambda: (200, question_view(session)))

    async def state(request: Request) -> Response:
        return await reply(lambda: (200, panel(session)))

    async def answer(request: Request) -> Response:
        body = await _read(request)

        def work() -> None:
            correction = None
            if body.answer in PLACES:
                preferred = session.next().texts[PLACES.index(body.answer)]
                if (body.correction or "").strip() not in ("", preferred.strip()):
                    correction = body.correction
            session.answer(body.answer, correction=correction)

        return await reply(partial(changed, body.number, work))

    async def undo(request: Request) -> Response:
        body = await _read(request)
        return await reply(partial(changed, body.number, session.undo))

    api = [
        Route("/question", question),
        Route("/state", state),
        Route("/answer", answer, methods=["POST"]),
        Route("/undo", undo, methods=["POST"]),
    ]
    pages = static_routes("bpa_ppl.judging", _HEADERS)
    return web_application(
        [Mount(f"/{token}", routes=[*api, *pages])],
        hosts,
        partial(_check_token, token),
        handlers={DataError: _failed},
    )


def _file_state(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is written; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


async def _read(request: Request) -> _Body:
    """Return the body of a request.

    Raises:
        Refused: if it is too large, or not JSON as expected.
    """
    _, body = await read_body(request, _LIMIT, "write a shorter correction")
    try:
        return msgspec.json.decode(body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the body is not as expected: {error}", "bad-json") from error


async def _failed(request: Request, error: Exception) -> Response:
    """Return an error of the files of the session, which is not one of the request."""
    response = error_response(error)
    response.status_code = 500
    return response


def serve(
    session: Session,
    *,
    files: Sequence[Path] = (),
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the page of a session until the process is stopped.

    Args:
        session: whose questions are answered.
        files: of the lists; if one changes, answers are refused.
        host: the address to listen on; by default only this computer can connect. The browser must
            use this name, 127.0.0.1 or localhost.
        port: 0 chooses a free one.
        allowed_hosts: other names that the browser may use; `*` stands for any.
        ready: called with the URL when connections are accepted. It contains a random token,
            without which every request is refused.

    Raises:
        UsageError: if the address cannot be used.
    """
    token = secrets.token_urlsafe(24)
    app = application(session, token, files=files, hosts=[host, *allowed_hosts])
    run(app, host, port, ready, f"/{token}/")

"""What the applications of this package share: errors, bodies, static files, the server."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bpa_ppl.errors import BpaError, UsageError, quoted

#: A page loads its own script and style only, and talks to its own server only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
JSON = "application/json"
_PATIENCE = 30.0  # seconds for the headers of a request, for its body, and until the next one
# Connections at once, and those that are accepted before one of them is served: together fewer than
# the 1024 files that a process may usually open.
_CONNECTIONS, _BACKLOG = 512, 256
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


class Refused(Exception):
    """A request that is answered with an error.

    Args:
        status: of HTTP.
        message: what is wrong, in one sentence.
        code: a short name of the kind of error.
    """

    def __init__(self, status: int, message: str, code: str):
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


def error_response(error: Exception) -> JSONResponse:
    """Return an error as JSON, with its status.

    >>> error_response(Refused(413, "the body is too large", "too-large")).body
    b'{"error":"the body is too large","code":"too-large","parameter":null}'
    """
    parameter, headers = None, None
    if isinstance(error, Refused):
        status, message, code = error.status, error.message, error.code
    elif isinstance(error, BpaError):
        status, message, code, parameter = 422, error.message, error.code, error.parameter
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, error.headers
        allowed = (headers or {}).get("Allow")
        message = f"{error.detail}: use {allowed}" if allowed else error.detail
        code = error.detail.lower().replace(" ", "-")
    elif isinstance(error, ClientDisconnect):
        status, message, code = 499, "the client closed the connection", "closed"
    elif isinstance(error, MemoryError):
        message = "out of memory: send fewer or shorter candidates, or try again later"
        status, code = 503, "out-of-memory"
    else:
        status, message, code = 500, "internal error: see the log of the server", "internal"
    content = {"error": message, "code": code, "parameter": parameter}
    return JSONResponse(content, status, headers)


async def _answer(request: Request, error: Exception) -> Response:
    return error_response(error)


class _Guard:
    """Middleware that answers requests which a check refuses.

    Args:
        app: that answers the others.
        check: returns the response to a refused request, and None for others.
    """

    def __init__(self, app: ASGIApp, check: Callable[[Scope], Response | None]) -> None:
        self.app, self.check = app, check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self.check(scope)
        await (refusal or self.app)(scope, receive, send)


def _check_host(names: Collection[str], scope: Scope) -> Response | None:
    """Refuse requests to other names: a page of another site may have resolved its own to us."""
    host = Headers(scope=scope).get("host", "").lower()
    name = re.fullmatch(r"([^/?#@:]*|\[[^]]*\])(:\d+)?", host)
    if "*" in names or (name is not None and name[1] in names):
        return None
    problem = f"{quoted(host)} is not a name of this server: start it with --allowed-hosts"
    return error_response(Refused(400, problem, "bad-host"))


def web_application(
    routes: Sequence[BaseRoute],
    hosts: Sequence[str],
    *checks: Callable[[Scope], Response | None],
    handlers: Mapping[Any, Any] | None = None,
    **options: Any,
) -> Starlette:
    """Return an application that answers errors as JSON, and no requests to other names.

    Args:
        routes: what it answers.
        hosts: names of the server, besides 127.0.0.1 and localhost; `*` stands for any.
        checks: of requests, after that of the name; see `_Guard`.
        handlers: of exceptions that are not answered by `error_response`.
        options: of Starlette.
    """
    kinds = (HTTPException, Refused, BpaError, ClientDisconnect, MemoryError, Exception)
    names = {"127.0.0.1", "localhost", *map(str.lower, hosts)}
    first: Callable[[Scope], Response | None] = partial(_check_host, names)
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Guard, check) for check in (first, *checks)],
        exception_handlers={**dict.fromkeys(kinds, _answer), **(handlers or {})},
        **options,
    )


async def read_body(
    request: Request,
    limit: int,
    remedy: str,
    types: Collection[str] = (JSON,),
    hold: Callable[[int], None] = lambda size: None,
) -> tuple[str, bytes]:
    """Return the media type and the body of a request.

    Pages of other sites can send forms and plain text here, but not JSON.

    Args:
        request: with the body.
        limit: in bytes.
        remedy: what to do if it is larger.
        types: the media types that are accepted.
        hold: called with the size of each part of the body.

    Raises:
        Refused: if it has another media type, is larger, or does not arrive in time.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in types:
        raise Refused(415, f"send the Content-Type {' or '.join(types)}", "bad-type")
    body = bytearray()
    try:
        with anyio.fail_after(_PATIENCE):
            async for part in request.stream():
                if len(body) + len(part) > limit:
                    problem = f"the body is larger than {limit:,} bytes: {remedy}"
                    raise Refused(413, problem, "too-large")
                hold(len(part))
                body += part
    except TimeoutError as error:
        problem = f"the body did not arrive within {_PATIENCE:g} seconds: send a smaller one"
        raise Refused(408, problem, "timeout") from error
    return kind, bytes(body)


def static_routes(package: str, headers: Mapping[str, str] | None = None) -> list[Route]:
    """Return a route for each file in the folder `static` of a package; `index.html` is at `/`.

    Args:
        package: its dotted name.
        headers: of the responses, besides the content security policy.
    """
    contents = {
        file.name: file.read_text("utf-8") for file in files(package).joinpath("static").iterdir()
    }
    headers = {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        **(headers or {}),
    }

    async def page(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2] or "index.html"
        media_type = _TYPES[name.rpartition(".")[2]]
        return Response(contents[name], media_type=media_type, headers=headers)

    return [Route("/" if name == "index.html" else f"/{name}", page) for name in contents]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is a free one.

    Raises:
        UsageError: if the address cannot be used.
    """
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port} ({error}): choose another port, or 0 for a free one",
            parameter="port",
        ) from error


class _Connection(H11Protocol):
    """A connection that is closed if there are too many, or if headers do not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _CONNECTIONS:
            transport.abort()
        self._limit_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_headers()

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True  # it cannot answer any more: its body is no HTTP

    def _limit_headers(self) -> None:
        waiting = self.cycle is None or self.cycle.response_complete
        if waiting and self._deadline is None:
            self._deadline = self.loop.call_later(_PATIENCE, self.timeout_keep_alive_handler)
        elif not waiting and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return a server of an application, with limits of its connections."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_Connection,
            ws="none",
            backlog=_BACKLOG,
            log_level="warning",
            access_log=False,
            timeout_keep_alive=int(_PATIENCE),
        )
    )


def run(
    app: ASGIApp, host: str, port: int, ready: Callable[[str], None] | None, path: str = ""
) -> None:
    """Run an application until the process is stopped.

    Args:
        app: the application.
        host: the address to listen on.
        port: 0 chooses a free one.
        ready: called with the URL when connections are accepted.
        path: the end of this URL.

    Raises:
        UsageError: if the address cannot be used.
    """
    with listen(host, port) as listening:
        if ready is not None:
            ready(f"http://{host}:{listening.getsockname()[1]}{path}")
        server_of(app).run(sockets=[listening])

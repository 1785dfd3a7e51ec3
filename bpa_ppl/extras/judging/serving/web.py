"""What the applications of this package share: errors, bodies, static files, the server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bpa_ppl.errors import BpaError, UsageError

#: A page loads its own script and style only, and talks to its own server only.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
JSON = "application/json"
_PATIENCE = 30.0  # seconds for the head and the body of a request, and until the next one
_GRACE = 10.0  # seconds for the body of a request once the server is to end
_CONNECTIONS = 512  # at once, fewer than the 1024 files that a process may usually open
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


class Refused(HTTPException):
    """A request that is answered with an error.

    Args:
        status: of HTTP.
        message: what is wrong, in one sentence.
        code: a short name of the kind of error.
    """

    def __init__(self, status: int, message: str, code: str):
        super().__init__(status, message)
        self.code = code


def error_response(error: Exception) -> JSONResponse:
    """Return an error as JSON, with its status.

    >>> error_response(Refused(413, "the body is too large", "too-large")).body
    b'{"error":"the body is too large","code":"too-large","parameter":null}'
    """
    parameter, headers = None, None
    if isinstance(error, BpaError):
        status, message, code, parameter = 422, error.message, error.code, error.parameter
    elif isinstance(error, HTTPException):
        status, message, headers = error.status_code, error.detail, error.headers
        code = getattr(error, "code", message.lower().replace(" ", "-"))
        allowed = (headers or {}).get("Allow")
        message += f": use {allowed}" if allowed else ""
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


class _OneLength:
    """Refuses requests with two lengths of the body: Transfer-Encoding, and Content-Length.

    A server in between may read the other one, and take the rest of a body for a request. The
    connection is closed, since the start of the next request is unknown (RFC 9112, 6.1).
    """

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = {name.lower() for name, _ in scope.get("headers", ())}
        if not {b"content-length", b"transfer-encoding"} <= names:
            await self.app(scope, receive, send)
            return
        problem = "both Content-Length and Transfer-Encoding: send one of them"
        response = error_response(Refused(400, problem, "bad-length"))
        response.headers["Connection"] = "close"
        await response(scope, receive, send)


def web_application(routes: Sequence[BaseRoute], hosts: Sequence[str], **options: Any) -> Starlette:
    """Return an application that answers errors as JSON, and no requests to other names.

    A page of another site may have resolved its own name to this server. Requests with two lengths
    of the body are refused. `options` are those of Starlette.
    """
    kinds = (HTTPException, BpaError, ClientDisconnect, MemoryError, Exception)
    names = ["127.0.0.1", "localhost", *hosts]
    hosts_only = Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    handlers = dict.fromkeys(kinds, _answer)
    middleware = [Middleware(_OneLength), hosts_only]
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, **options)


async def read_body(
    request: Request, limit: int, remedy: str, types: Collection[str] = (JSON,)
) -> tuple[str, bytes]:
    """Return the media type and the body of a request.

    Pages of other sites can send forms and plain text here, but not JSON.

    Args:
        request: with the body.
        limit: in bytes.
        remedy: what to do if it is larger.
        types: the media types that are accepted.

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
                body += part
    except TimeoutError as error:
        problem = f"the body did not arrive within {_PATIENCE:g} seconds: send a smaller one"
        raise Refused(408, problem, "timeout") from error
    return kind, bytes(body)


def static_routes(package: str, headers: Mapping[str, str] | None = None) -> list[Route]:
    """Return a route for each file in the folder `static` of a package; `index.html` is at `/`.

    Args:
        package: its dotted name.
        headers: of the responses, in addition to the content security policy.
    """
    contents = {
        file.name: file.read_text("utf-8") for file in files(package).joinpath("static").iterdir()
    }
    headers = {
        "Content-Security-Policy": _POLICY,
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

    Answers are sent at once (TCP_NODELAY, which accepted connections inherit). Otherwise the body
    of an answer waits for the acknowledgement of its head, 40 ms on a connection that is kept.

    Raises:
        UsageError: if the address cannot be used.
    """
    try:
        listening = socket.create_server((host, port), backlog=_CONNECTIONS // 2)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port} ({error}): choose another port, or 0 for a free one",
            parameter="port",
        ) from error


class _Connection(H11Protocol):
    """A connection that keeps neither other clients nor the end of the server waiting.

    One without a request in progress is closed if the head of the next one does not arrive in time,
    or if there are too many connections. When the server is to end, only requests in work are
    finished.
    """

    _deadline: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is no request in progress."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request; drop another connection if there are too many."""
        super().connection_made(transport)
        self.made = self.loop.time()
        self._deadline = self.loop.call_later(_PATIENCE, self.timeout_keep_alive_handler)
        if len(self.connections) >= _CONNECTIONS:
            self._drop_another()

    def _drop_another(self) -> None:
        """Drop the oldest idle connection, rather one that has never sent a request."""
        others = [one for one in self.connections - {self} if isinstance(one, _Connection)]
        if idle := [one for one in others if one.is_idle]:
            oldest = min(idle, key=lambda one: (one.cycle is not None, one.made))
            self.connections.discard(oldest)  # now: its end is noticed later
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.is_idle:
            self._cancel()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_PATIENCE, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def shutdown(self) -> None:
        """Finish a request in work; what has not arrived or been received in time is given up."""
        super().shutdown()
        self.loop.call_later(_GRACE, self._give_up)

    def _give_up(self) -> None:
        if self.is_idle or self.cycle.more_body:
            self.transport.abort()
        else:
            self.loop.call_later(_GRACE, self._give_up)


def run(app: ASGIApp, host: str, port: int, ready: Callable[[str], None] | None) -> None:
    """Run an application until the process is stopped.

    Args:
        app: the application.
        host: the address to listen on.
        port: 0 chooses a free one.
        ready: called with the URL when connections are accepted.

    Raises:
        UsageError: if the address cannot be used.
    """
    with listen(host, port) as listening:
        if ready is not None:
            ready(f"http://{host}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            app,
            http=_Connection,
            ws="none",
            limit_concurrency=_CONNECTIONS,
            log_level="warning",
            access_log=False,
            use_colors=False,  # otherwise standard output must be open
            timeout_keep_alive=int(_PATIENCE),
        )
        uvicorn.Server(config).run(sockets=[listening])

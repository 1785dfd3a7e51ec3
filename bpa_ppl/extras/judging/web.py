"""What the page of `bpa judge` needs of a server: errors as JSON, bodies, static files, a port."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from bpa_ppl.errors import BpaError, UsageError

#: A page loads its own script and style only, and talks to its own server only.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GRACE = 10  # seconds for requests in work once the server is to end
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
    elif isinstance(error, ClientDisconnect):
        status, message, code = 499, "the client closed the connection", "closed"
    else:
        status, message, code = 500, "internal error: see the log of the server", "internal"
    content = {"error": message, "code": code, "parameter": parameter}
    return JSONResponse(content, status, headers)


async def _answer(request: Request, error: Exception) -> Response:
    return error_response(error)


def web_application(routes: Sequence[BaseRoute], hosts: Sequence[str]) -> Starlette:
    """Return an application that answers errors as JSON, and no requests to other names.

    A page of another site may have resolved its own name to this server.
    """
    names = ["127.0.0.1", "localhost", *hosts]
    hosts_only = Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)
    handlers = dict.fromkeys((HTTPException, BpaError, ClientDisconnect, Exception), _answer)
    return Starlette(routes=routes, middleware=[hosts_only], exception_handlers=handlers)


async def read_body(request: Request, limit: int, remedy: str) -> bytes:
    """Return the body of a request, which must be JSON.

    Pages of other sites can send forms and plain text here, but not JSON.

    Args:
        request: with the body.
        limit: in bytes.
        remedy: what to do if it is larger.

    Raises:
        Refused: if it has another media type or is larger.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "send the Content-Type application/json", "bad-type")
    body = bytearray()
    async for part in request.stream():
        if len(body) + len(part) > limit:
            problem = f"the body is larger than {limit:,} bytes: {remedy}"
            raise Refused(413, problem, "too-large")
        body += part
    return bytes(body)


def static_routes(package: str, headers: Mapping[str, str]) -> list[Route]:
    """Return a route for each file in the folder `static` of a package; `index.html` is at `/`.

    Args:
        package: its dotted name.
        headers: of the responses, in addition to the content security policy.
    """
    contents = {
        file.name: file.read_text("utf-8") for file in files(package).joinpath("static").iterdir()
    }
    secure = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", **headers}

    async def page(request: Request) -> Response:
        name = request.url.path.rpartition("/")[2] or "index.html"
        media_type = _TYPES[name.rpartition(".")[2]]
        return Response(contents[name], media_type=media_type, headers=secure)

    return [Route("/" if name == "index.html" else f"/{name}", page) for name in contents]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is a free one.

    Answers are sent at once (TCP_NODELAY, which accepted connections inherit). Otherwise the body
    of an answer waits for the acknowledgement of its head, 40 ms on a connection that is kept.

    Raises:
        UsageError: if the address cannot be used.
    """
    try:
        listening = socket.create_server((host, port))
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port} ({error}): choose another port, or 0 for a free one",
            parameter="port",
        ) from error


def run(app: ASGIApp, host: str, port: int, ready: Callable[[str], None]) -> None:
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
        ready(f"http://{host}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            app,
            ws="none",
            log_level="warning",
            access_log=False,
            use_colors=False,  # otherwise standard output must be open
            timeout_graceful_shutdown=_GRACE,
        )
        uvicorn.Server(config).run(sockets=[listening])

"""What the applications of this package share: errors, bodies, static files, the server."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bpa_ppl.errors import UsageError

#: A page loads its own script and style only, and talks to its own server only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
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


def error_response(
    status: int, message: str, code: str, parameter: str | None = None
) -> JSONResponse:
    """Return an error as JSON."""
    return JSONResponse({"error": message, "code": code, "parameter": parameter}, status)


async def read_body(request: Request, limit: int, remedy: str) -> bytes:
    """Return the body of a request.

    Args:
        request: with the body.
        limit: in bytes.
        remedy: what to do if it is larger.

    Raises:
        Refused: with the status 413, if it is larger.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise Refused(413, f"the body is larger than {limit:,} bytes: {remedy}", "too-large")
    return bytes(body)


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

    def endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
        media_type = _TYPES[name.rpartition(".")[2]]

        async def page(request: Request) -> Response:
            return Response(contents[name], media_type=media_type, headers=headers)

        return page

    return [
        Route("/" if name == "index.html" else f"/{name}", endpoint(name))
        for name in sorted(contents)
    ]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is a free one.

    Raises:
        UsageError: if the address cannot be used.
    """
    try:
        return socket.create_server((host, port), backlog=2048)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port} ({error}): choose another port, or 0 for a free one",
            parameter="port",
        ) from error


def run(app: ASGIApp, listening: socket.socket) -> None:
    """Run an application until the process is stopped, and close the socket."""
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=30)
    with listening:
        uvicorn.Server(config).run(sockets=[listening])

"""serve: run the application with uvicorn."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bpa_ppl.decoding import Reranker
from bpa_ppl.serving.app import LOGGER, Limits, Service, application
from bpa_ppl.serving.web import listen, run


def serve(
    path: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    limits: Limits | None = None,
    ready: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Serve a posterior over HTTP until the process is stopped.

    SIGTERM and Ctrl-C finish the requests in work; SIGHUP loads the file again.

    Args:
        path: the file of the posterior.
        host: the address to listen on; by default only this machine can connect.
        port: 0 chooses a free one.
        allowed_hosts: names that requests may use, besides the host, 127.0.0.1 and localhost; `*`
            stands for any.
        limits: what a request may take.
        ready: called with the URL when connections are accepted.
        options: of `Reranker`.

    Raises:
        NotConverged: if the posterior fails its check.
        DataError: if the posterior cannot be read.
        UsageError: if the address cannot be used.
    """

    def load() -> Reranker:
        return Reranker(path, **options)

    app = application(load, limits, hosts=[host, *allowed_hosts], started=_reload_on_hangup)
    listening = listen(host, port)
    if not LOGGER.handlers:
        LOGGER.addHandler(logging.StreamHandler())
        LOGGER.propagate = False
    LOGGER.setLevel(logging.INFO)
    if ready is not None:
        ready(f"http://{host}:{listening.getsockname()[1]}")
    run(app, listening)


def _reload_on_hangup(service: Service) -> None:
    if hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(service.reload()))

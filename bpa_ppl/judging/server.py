"""serve: the page of a session on this computer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from bpa_ppl.judging.app import application
from bpa_ppl.judging.session import Session
from bpa_ppl.serving.web import listen, run


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
    listening = listen(host, port)
    if ready is not None:
        ready(f"http://{host}:{listening.getsockname()[1]}/{token}/")
    run(app, listening)

"""`bpa serve`: a posterior as an HTTP service."""

from __future__ import annotations

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import require_extra


def serve(
    posterior: shared.PosteriorPath,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: shared.AllowedHosts = None,
    rule: str | None = None,
    derivations: str = "separate",
    draws: str | None = None,
    defaults: shared.Defaults = None,
    moved_files: shared.MovedFiles = None,
    without: shared.Without = None,
    max_body: int = 2**24,
    max_candidates: int = 100_000,
    timeout: float = 30.0,
    quiet: shared.Quiet = False,
) -> None:
    """Serve a posterior over HTTP: POST lists to /rerank.

    The page at / reranks a list that is pasted there, /model says what the model expects, and
    /openapi.json describes the service. A hangup signal loads the posterior again.

    Args:
        host: Address to listen on.
        port: Port; 0 chooses a free one.
        rule: predictive, viterbi, map, mean or mbr (default: the recorded one).
        derivations: separate, or summed: add up equal strings.
        draws: Number of draws to use, or all (default: 800 where the rule averages over draws).
        max_body: Largest body of a request, in bytes.
        max_candidates: Largest number of candidates of a request.
        timeout: Seconds until a request is given up.
    """
    require_extra("serving needs Starlette and uvicorn", "serve", "starlette", "uvicorn")
    from bpa_ppl.serving import serve
    from bpa_ppl.serving.app import Limits

    serve(
        posterior,
        host=host,
        port=port,
        allowed_hosts=allowed_hosts or (),
        limits=Limits(body=max_body, candidates=max_candidates, seconds=timeout),
        ready=lambda url: shared.echo_status(f"serving {posterior} at {url}", quiet),
        rule=rule,
        derivations=derivations,
        draws=draws,
        defaults=defaults,
        moved_files=moved_files,
        without=without,
    )

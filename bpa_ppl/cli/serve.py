"""`bpa serve`: a posterior as an HTTP service."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError
from bpa_ppl.registry import RULES


def serve(
    posterior: shared.PosteriorPath,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.")] = 8000,
    rule: Annotated[
        str | None,
        typer.Option(help=f"Decision rule: {shared.names_in(RULES)} (default: the recorded one)."),
    ] = None,
    derivations: Annotated[
        str, typer.Option(help="separate, or summed: add up equal strings.")
    ] = "separate",
    temperature: Annotated[
        float | None, typer.Option(help="Softmax temperature (default: the recorded one).")
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Number of draws that vote.")] = None,
    defaults: shared.Defaults = None,
    moved_files: shared.MovedFile = None,
    max_body: Annotated[int, typer.Option(help="Largest body of a request, in bytes.")] = 2**24,
    max_candidates: Annotated[int, typer.Option(help="Most candidates of a request.")] = 100_000,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.")] = 30.0,
    quiet: shared.Quiet = False,
) -> None:
    """Serve a posterior over HTTP: POST lists to /rerank.

    The page at / reranks a list that is pasted there, /model says what the model expects, and
    /openapi.json describes the service. Hangup signals load the posterior again.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise UsageError("serving needs Starlette and uvicorn: run `pip install 'bpa_ppl[serve]'`")
    from bpa_ppl.serving import Limits, serve

    serve(
        posterior,
        host=host,
        port=port,
        limits=Limits(body=max_body, candidates=max_candidates, seconds=timeout),
        ready=lambda url: shared.echo_status(f"serving {posterior} at {url}", quiet),
        rule=rule,
        derivations=derivations,
        temperature=temperature,
        draws=draws,
        defaults=shared.numbers(defaults, "--default"),
        moved_files=shared.moved_files(moved_files),
    )

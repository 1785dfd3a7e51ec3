"""`bpa judge`: compare candidates in the browser."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from cyclopts import Parameter

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError, require_extra


def judge(
    nbest: shared.NBestPath,
    /,
    *,
    output: shared.Output,
    weights: str = "none",
    prior: Annotated[str | None, Parameter(alias="-p")] = None,
    rater: str | None = None,
    sources: shared.Sources = None,
    features: list[str] | None = None,
    exclude: list[str] | None = None,
    categorical: list[str] | None = None,
    add: shared.Add = None,
    slip: float = 0.05,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: shared.AllowedHosts = None,
    seed: int = 0,
    quiet: shared.Quiet = False,
    reading: shared.Reading = shared.Reading(),
) -> None:
    """Compare candidates in the browser, two at a time, and watch the weights change.

    Each answer is in the output before the next question is shown; the same command goes on where
    it was stopped. `bpa adapt NBEST --judgements FILE` then adapts to the answers.

    Args:
        output: File of judgements (JSON lines).
        weights: none, to start at 0; equal, to start at the mean of the standardised features; or a
            file with the weights to start from.
        prior: Start from a prior (JSON) or a posterior (NetCDF) instead.
        rater: Name of the rater, for the file of judgements.
        features: Use only this column as a feature.
        exclude: Do not use this column as a feature.
        categorical: Make a feature of each value of this column, such as the system.
        slip: Probability of a random answer.
        host: Address to listen on.
        port: Port; 0 chooses a free one.
        seed: Seed of the questions.
    """
    if prior is not None and weights != "none":
        problem = "a prior says where the weights start: leave out the weights"
        raise UsageError(problem, parameter="weights", code="conflict")
    start: Any = shared.canonical(weights) if prior is None else shared.prior(prior)
    lists = reading.read(nbest, None, sources)
    options: dict[str, Any] = {"features": features, "exclude": exclude, "add": add}
    options |= {"categorical": categorical, "slip": slip}
    require_extra("judging needs Starlette and uvicorn", "serve", "starlette", "uvicorn")
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.judging import Session
    from bpa_ppl.judging.app import application
    from bpa_ppl.serving.web import run

    require_writable(output)
    session = Session(lists, start, journal=output, rater=rater, seed=seed, **options)
    token = secrets.token_urlsafe(24)
    app = application(session, token, hosts=[host, *(allowed_hosts or ())])

    def ready(url: str) -> None:
        shared.echo_status(f"compare candidates at {url}/{token}/", quiet)

    run(app, host, port, ready)

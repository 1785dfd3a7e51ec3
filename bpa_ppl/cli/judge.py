"""`bpa judge`: compare candidates in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

import bpa_ppl as bpa
from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError, require_extra
from bpa_ppl.progress import reporter
from bpa_ppl.tables import text_table

#: Numbers of simulated answers after which sessions are scored.
_ANSWERS = (0, 10, 20, 50)


def judge(
    nbest: shared.NBestPath,
    /,
    *,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    weights: str = "none",
    prior: Annotated[Path | None, Parameter(alias="-p")] = None,
    rater: str | None = None,
    sources: shared.Sources = None,
    features: list[str] | None = None,
    exclude: list[str] | None = None,
    categorical: list[str] | None = None,
    add: shared.Add = None,
    pairs: str = "mixed",
    slip: float = 0.05,
    simulate: str | None = None,
    sessions: int = 10,
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
        pairs: How pairs are chosen: mixed, information or random.
        slip: Probability of a random answer.
        simulate: Answer by this column of judgements instead of a rater, and print how much of the
            headroom is won on the other half of the lists.
        sessions: With --simulate: number of simulated sessions.
        host: Address to listen on.
        port: Port; 0 chooses a free one.
        seed: Seed of the questions.
    """
    lists = reading.read(nbest, None, sources)
    options: dict[str, Any] = {"features": features, "exclude": exclude, "add": add}
    options |= {"categorical": categorical, "slip": slip}
    start = _start(weights, prior)
    if simulate is not None:
        if output is not None:
            problem = "a simulation prints a table: leave out the output"
            raise UsageError(problem, parameter="output", code="conflict")
        print(_simulated(lists, start, simulate, options, sessions, quiet))
        return
    if output is None:
        raise UsageError("give a file for the judgements", parameter="output", code="missing")
    require_extra("judging needs Starlette and uvicorn", "serve", "starlette", "uvicorn")
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.judging import Session
    from bpa_ppl.judging.app import serve

    require_writable(output)
    session = Session(lists, start, journal=output, rater=rater, seed=seed, pairs=pairs, **options)
    serve(
        session,
        files=[Path(name) for name in (nbest, sources) if name is not None and name != "-"],
        host=host,
        port=port,
        allowed_hosts=allowed_hosts or (),
        ready=lambda url: shared.echo_status(f"compare candidates at {url}", quiet),
    )


def _start(weights: str, prior: Path | None) -> Any:
    """Return where the weights start."""
    if prior is None:
        return shared.canonical(weights)
    if weights != "none":
        problem = "a prior says where the weights start: leave out the weights"
        raise UsageError(problem, parameter="weights", code="conflict")
    if prior.suffix == ".json":
        return bpa.Prior.read(prior)
    return bpa.posterior.read_draws(prior)


def _simulated(
    lists: bpa.NBest,
    start: Any,
    column: str,
    options: dict[str, Any],
    sessions: int,
    quiet: bool,
) -> str:
    """Return a table of the headroom that simulated sessions win, by how pairs are chosen."""
    from bpa_ppl.judging import Session
    from bpa_ppl.judging.session import PAIRS
    from bpa_ppl.judging.simulation import learning_curve

    order = np.random.default_rng(5).permutation(len(lists))
    pool, test = (lists[np.sort(half)] for half in np.array_split(order, 2))
    options["exclude"] = [*(options["exclude"] or ()), column]
    session, rows = Session(pool, start, **options), []
    with reporter(not quiet, "judge") as report:
        for done, pairs in enumerate(PAIRS):
            curves = []
            for seed in range(sessions):
                run = session.restarted(seed, pairs)
                curves.append(learning_curve(run, test, column, _ANSWERS))
                report(done * sessions + seed + 1, len(PAIRS) * sessions, "sessions")
            mean, spread = np.mean(curves, axis=0), 2 * np.std(curves, axis=0)
            cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True)]
            rows.append([pairs, *cells])
    head = f"share of the headroom by {column}: mean ± two standard deviations of {sessions}"
    table = text_table(rows, ["pairs", *(f"{count} answers" for count in _ANSWERS)])
    return f"{head} sessions\n{table}"

"""`bpa subdomains`: induce the latent subdomains of a general corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import UsageError

if TYPE_CHECKING:
    from bpa_ppl.phrases.subdomains import Subdomains


def run(
    source: Annotated[
        str, typer.Argument(help="A sentence a line, words between spaces; plain, gzip, xz, zstd.")
    ],
    target: Annotated[str, typer.Argument(help="Its translations, line by line.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Parquet file.")],
    k: Annotated[int, typer.Option("-k", help="How many subdomains.")] = 12,
    soft: Annotated[
        bool, typer.Option("--soft", help="Soft EM: a pair belongs to each with its probability.")
    ] = False,
    induction: Annotated[str, typer.Option(help="em, or lda: topics of one side.")] = "em",
    side: Annotated[str, typer.Option(help="With lda: source or target.")] = "target",
    iterations: Annotated[
        int | None,
        typer.Option(help="Of the full model, after one of language models alone; else 3."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of EM: order, prior, folds, smoothing, start."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            help="Go on from OUTPUT.state, which a run of the same data and settings has left."
        ),
    ] = True,
    jobs: Annotated[int, typer.Option(help="Threads that work; -1 takes every core.")] = 1,
    backend: Annotated[str, typer.Option(help="local, or dask for an existing cluster.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of the Dask scheduler: tcp://host:8786.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the start.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Induce the latent subdomains of a parallel corpus, for features of domain invariance."""
    from pathlib import Path

    from bpa_ppl.formats.streams import STANDARD, require_writable
    from bpa_ppl.models.subdomains import induce

    given = _settings(setting, k, seed)
    if soft:
        given["em"] = "soft"
    if iterations is not None:
        given["iterations"] = iterations
    if output == STANDARD:
        raise UsageError("subdomains are written to a file: name one with --output")
    require_writable(output)
    state = Path(f"{output}.state")
    if not resume:
        state.unlink(missing_ok=True)
    found = induce(
        source,
        target,
        induction=induction,  # type: ignore[arg-type]
        side=side,  # type: ignore[arg-type]
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        state=state,
        progress=not quiet,
        **given,
    )
    found.save(output)
    state.unlink(missing_ok=True)
    options.say(_told(found), quiet)


def _settings(pairs: list[str] | None, k: int, seed: int) -> dict[str, Any]:
    """Return the settings of an induction that the command line names.

    Raises:
        UsageError: if --set names what is none, or what has an option of its own.
    """
    from bpa_ppl.models.subdomains import Settings

    given: dict[str, Any] = dict(options.assignments(pairs, "--set"))
    for name, option in {"k": "-k", "seed": "--seed", "iterations": "--iterations"}.items():
        if name in given:
            raise UsageError(f"--set {name} has an option of its own: {option}")
    Settings.configured("induction of subdomains", {"k": k, **given, "seed": seed})
    return {"k": k, "seed": seed, **given}


def _told(found: Subdomains) -> str:
    """Return in a line how large the subdomains are."""
    shares = ", ".join(f"{100 * share:.0f} %" for share in sorted(found.weights, reverse=True))
    return f"{len(found):,} sentence pairs in {found.k} subdomains: {shares}"

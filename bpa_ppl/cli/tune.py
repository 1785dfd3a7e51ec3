"""`bpa tune`: re-estimate weights by MERT, MIRA or PRO."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpa_ppl.cli import options as shared
from bpa_ppl.registry import TUNERS

if TYPE_CHECKING:
    from bpa_ppl.tuning import Reestimation


@dataclass(frozen=True)
class Loop:
    """The loop that decodes again with the new weights, if there is a decoder."""

    decoder: Annotated[
        str | None,
        typer.Option(
            help="Command that decodes the sentences again, with {weights} and {nbest} for files."
        ),
    ] = None
    iterations: Annotated[int, typer.Option(help="Maximum number of decoding runs.")] = 25
    returned: Annotated[
        str,
        typer.Option(
            "--return", help="Weights to return: best (on all lists of the loop) or last."
        ),
    ] = "best"
    folder: Annotated[
        Path | None,
        typer.Option(
            "--rounds",
            help="Folder that keeps the weights and lists of each iteration, so that the same "
            "command resumes after an interruption (default: OUTPUT.rounds, removed at the end).",
        ),
    ] = None


def tune(
    nbest: shared.NBestPath,
    weights: shared.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="Weight file; - for stdout.")],
    reading: shared.Reading,
    extra: shared.Extra,
    loop: Loop,
    references: shared.References = None,
    sources: shared.Sources = None,
    tuner: Annotated[str, typer.Option(help=f"{shared.names_in(TUNERS)}.")] = "mert",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "--gain",
            help="Metric to optimise: bleu, ter, or the mean of a numeric column of the lists, "
            "such as comet, or -ter if lower is better.",
        ),
    ] = "bleu",
    template: Annotated[
        Path | None, typer.Option(help="moses.ini to copy, with the new weights filled in.")
    ] = None,
    fixed: Annotated[list[str] | None, typer.Option(help=shared.FIXED)] = None,
    defaults: shared.Defaults = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the tuner, as NAME=VALUE: restarts, epochs, …"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Re-estimate the weights by MERT, MIRA or PRO, for comparison."""
    import bpa_ppl
    from bpa_ppl.formats.streams import STANDARD, require_writable
    from bpa_ppl.tuning import Command, redecode, reestimate

    # A mistake in the settings is found before any file is read.
    chosen = TUNERS.resolve(tuner, shared.assignments(setting, "--set"))
    arguments: dict[str, Any] = {
        "tuner": chosen,
        "metric": shared.metric(metric),
        "seed": seed,
        "fixed": [] if fixed == ["none"] else fixed,
        "defaults": shared.numbers(defaults, "--default"),
        "extra": extra.read(reading),
        "progress": not quiet,
    }
    read = partial(reading.read, references=references, sources=sources)
    lists, canonical = read(nbest), shared.canonical(weights)
    require_writable(output)
    folder = None if str(output) == STANDARD else Path(f"{output}.rounds")
    if loop.decoder is None:
        found = reestimate(lists, canonical, **arguments)
    else:
        found = redecode(
            lists,
            canonical,
            Command(loop.decoder, read, template),
            iterations=loop.iterations,
            returned=loop.returned,
            folder=loop.folder or folder,
            report=partial(_report_iteration, quiet),
            **arguments,
        )
    bpa_ppl.write_weights(found.weights, output, template=template)
    if loop.decoder is not None and loop.folder is None:
        shutil.rmtree(f"{output}.rounds", ignore_errors=True)
    shared.echo_status(found, quiet)


def _report_iteration(quiet: bool, iteration: int, found: Reestimation, added: int) -> None:
    status = f"iteration {iteration}: {found}, {added} new hypotheses"
    shared.echo_status(status, quiet)

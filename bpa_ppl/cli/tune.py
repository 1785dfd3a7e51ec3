"""`bpa tune`: n-best lists, references and canonical weights in, re-estimated weights out."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpa_ppl.cli import options
from bpa_ppl.formats.streams import STANDARD, require_writable
from bpa_ppl.registry import TUNERS

if TYPE_CHECKING:
    from bpa_ppl.tuning import Reestimation


def run(
    nbest: options.NBestPath,
    weights: options.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="The weights; - is stdout.")],
    reading: options.Reading,
    matching: options.Matching,
    development: options.Development,
    references: options.References = None,
    sources: options.Sources = None,
    tuner: Annotated[str, typer.Option(help=f"{options.names_in(TUNERS)}.")] = "mert",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "--gain",
            help="What to optimise: bleu, ter, or the mean of a column of numbers of the lists: "
            "comet, or -ter where less is better.",
        ),
    ] = "bleu",
    decoder: Annotated[
        str | None,
        typer.Option(
            help="Command that decodes the sentences anew, with {weights} and {nbest} for files."
        ),
    ] = None,
    iterations: Annotated[int, typer.Option(help="Decode at most so many times.")] = 25,
    returned: Annotated[
        str,
        typer.Option(
            "--return", help="Weights of the loop: best on all its lists, or those found last."
        ),
    ] = "best",
    rounds: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps weights and lists of each iteration: the same command goes on "
            "where it was killed. OUTPUT.rounds if not given, and removed at the end."
        ),
    ] = None,
    template: Annotated[
        Path | None, typer.Option(help="moses.ini to copy, with the new weights put in.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the tuner: restarts, epochs, pairs, …"),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Estimate the weights anew by MERT, MIRA or PRO, to compare with."""
    import bpa_ppl
    from bpa_ppl.tuning import Command, redecode, reestimate

    # A mistake in the settings is found before any file is read.
    chosen = TUNERS.resolve(tuner, options.assignments(setting, "--set"))
    goal = options.metric(metric)
    read_again = partial(reading.read, references=references, sources=sources)
    command = None if decoder is None else Command(decoder, read_again, template)
    wanted: dict[str, Any] = {
        "tuner": chosen,
        "metric": goal,
        "seed": seed,
        **matching.arguments(),
        "extra": development.read(reading),
        "progress": not quiet,
    }
    lists = options.with_needs(read_again(nbest), goal, "tune")
    canonical = options.canonical(weights)
    require_writable(output)
    passing = Path(f"{output}.rounds")  # removed when the weights are written
    if command is None:
        found = reestimate(lists, canonical, **wanted)
    else:
        found = redecode(
            lists,
            canonical,
            command,
            iterations=iterations,
            returned=returned,
            folder=rounds or (None if str(output) == STANDARD else passing),
            report=partial(_say_iteration, quiet),
            **wanted,
        )
    bpa_ppl.write_weights(found.weights, output, template=template)
    if command is not None and rounds is None:
        shutil.rmtree(passing, ignore_errors=True)
    options.say(found, quiet)


def _say_iteration(quiet: bool, iteration: int, found: Reestimation, added: int) -> None:
    """Report one turn of decoding."""
    options.say(f"iteration {iteration}: {found}, {added} new hypotheses", quiet)

"""`bpa tune`: n-best lists, references and canonical weights in, re-estimated weights out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpa_ppl.cli import options
from bpa_ppl.registry import TUNERS

if TYPE_CHECKING:
    from bpa_ppl.nbest import NBest
    from bpa_ppl.tuning import Command, Reestimation


@dataclass(frozen=True)
class Looping:
    """The loop that decodes anew, if there is a decoder."""

    decoder: Annotated[
        str | None,
        typer.Option(
            help="Command that decodes the sentences anew, with {weights} and {nbest} for files."
        ),
    ] = None
    iterations: Annotated[int, typer.Option(help="Decode at most so many times.")] = 25
    returned: Annotated[
        str,
        typer.Option(
            "--return", help="Weights of the loop: best on all its lists, or those found last."
        ),
    ] = "best"
    rounds: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps weights and lists of each iteration: the same command goes on "
            "where it was killed. OUTPUT.rounds if not given, and removed at the end."
        ),
    ] = None

    def command(self, read: Callable[[Path], NBest], template: Path | None) -> Command | None:
        """Return the decoder; None where there is none."""
        from bpa_ppl.tuning import Command

        return None if self.decoder is None else Command(self.decoder, read, template)

    def arguments(self, output: Path, quiet: bool) -> dict[str, Any]:
        """Return the arguments of `redecode` that are about the loop."""
        from bpa_ppl.formats.streams import STANDARD

        passing = None if str(output) == STANDARD else _passing(output)
        return {
            "iterations": self.iterations,
            "returned": self.returned,
            "folder": self.rounds or passing,
            "report": partial(_say_iteration, quiet),
        }

    def done(self, output: Path) -> None:
        """Remove the iterations, once the weights are written, unless they were asked for."""
        if self.decoder is not None and self.rounds is None:
            shutil.rmtree(_passing(output), ignore_errors=True)


def _passing(output: Path) -> Path:
    return Path(f"{output}.rounds")


def run(
    nbest: options.NBestPath,
    weights: options.Weights,
    output: Annotated[Path, typer.Option("--output", "-o", help="The weights; - is stdout.")],
    reading: options.Reading,
    matching: options.Matching,
    development: options.Development,
    looping: Looping,
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
    from bpa_ppl.formats.streams import require_writable
    from bpa_ppl.tuning import redecode, reestimate

    # A mistake in the settings is found before any file is read.
    chosen = TUNERS.resolve(tuner, options.assignments(setting, "--set"))
    goal = options.metric(metric)
    read_again = partial(reading.read, references=references, sources=sources)
    command = looping.command(read_again, template)
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
    if command is None:
        found = reestimate(lists, canonical, **wanted)
    else:
        found = redecode(lists, canonical, command, **looping.arguments(output, quiet), **wanted)
    bpa_ppl.write_weights(found.weights, output, template=template)
    looping.done(output)
    options.say(found, quiet)


def _say_iteration(quiet: bool, iteration: int, found: Reestimation, added: int) -> None:
    """Report one turn of decoding."""
    options.say(f"iteration {iteration}: {found}, {added} new hypotheses", quiet)

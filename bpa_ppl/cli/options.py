"""Options that several subcommands share, and how they are read."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.errors import UsageError

NBestPath = Annotated[
    str, typer.Argument(metavar="NBEST", help="n-best lists; plain, gzip, xz or zstd; - is stdin.")
]
PosteriorPath = Annotated[Path, typer.Argument(help="NetCDF file written by `bpa adapt`.")]
References = Annotated[
    list[Path] | None,
    typer.Option(
        "--references", "-r", help="Reference translations, one a line; repeat for several."
    ),
]
FirstId = Annotated[int, typer.Option(help="Id of the first sentence: 0, or 1 for some tools.")]
Bad = Annotated[
    str, typer.Option(help="A value that is no finite number: error, or drop the hypothesis.")
]
Sampler = Annotated[
    str,
    typer.Option(help="auto, heuristic, imh, laplace, map, nuts, rwm or rwm-isotropic."),
]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Use a posterior although it fails its check.")
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(help="Hold a feature at its canonical weight (`none` holds none)."),
]
Default = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE for a feature without a weight.")
]
Jobs = Annotated[int, typer.Option(help="Workers that score hypotheses; -1 takes every core.")]
Cache = Annotated[bool, typer.Option(help="Keep sentence scores on disk and reuse them.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Metric = Annotated[str, typer.Option(help="What makes an oracle: ter, bleu or chrf.")]
Ties = Annotated[str, typer.Option(help="How ties of oracles are broken: canonical or first.")]


def say(message: object, quiet: bool = False) -> None:
    """Write a message to standard error: standard output is for results."""
    if not quiet:
        print(message, file=sys.stderr)


def assignments(pairs: Iterable[str] | None, option: str) -> dict[str, float | str]:
    """Read `NAME=VALUE` options; values that look like numbers become numbers.

    >>> assignments(["draws=200", "delta=2.5", "start=mode"], "--set")
    {'draws': 200, 'delta': 2.5, 'start': 'mode'}
    """
    values: dict[str, float | str] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not (name and equals and text):
            raise UsageError(f"{option} takes NAME=VALUE, not {pair!r}")
        values[name] = _value(text)
    return values


def numbers(pairs: Iterable[str] | None, option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` options."""
    values = assignments(pairs, option)
    for name, value in values.items():
        if isinstance(value, str):
            raise UsageError(f"{option} {name} needs a number, not {value!r}")
    return {name: float(value) for name, value in values.items()}


def _value(text: str) -> float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

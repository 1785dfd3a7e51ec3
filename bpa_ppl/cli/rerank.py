"""`bpa rerank`: choose translations from new n-best lists with a posterior."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.columns import counted
from bpa_ppl.registry import RULES


def run(
    nbest: options.NBestPath,
    posterior: Annotated[Path, typer.Option("--posterior", "-p", help="From `bpa adapt`.")],
    reading: options.Reading,
    output: Annotated[str, typer.Option("--output", "-o", help="Translations; - is stdout.")] = "-",
    details: Annotated[
        Path | None,
        typer.Option(
            help="Also write choices, probabilities and expected scores: JSON lines if the name "
            "ends in .jsonl, else tab-separated."
        ),
    ] = None,
    references: options.References = None,
    sources: options.Sources = None,
    gaps: Annotated[
        str,
        typer.Option(
            help="A sentence without a list: error, or a line that is empty or its source."
        ),
    ] = "error",
    rule: Annotated[
        str | None,
        typer.Option(
            help=f"{options.names_in(RULES)}; mbr:gain=bleu with a setting. Unless given, what the "
            "posterior records: mean without canonical weights, else predictive."
        ),
    ] = None,
    derivations: Annotated[
        str, typer.Option(help="Equal strings: scored separate, as published, or summed.")
    ] = "separate",
    sure: Annotated[
        float | None,
        typer.Option(help="Change the first-best only where this sure that it gets better: 0.7."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Probabilities to the power of 1 / this; as recorded, else 1."),
    ] = None,
    default: options.Default = None,
    where: options.Places = None,
    jobs: Annotated[int, typer.Option(help="Processes that decide; -1 takes every core.")] = 1,
    backend: Annotated[str, typer.Option(help="local, or dask for an existing cluster.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of the Dask scheduler: tcp://host:8786.")
    ] = None,
    unchecked: options.Unchecked = False,
    quiet: options.Quiet = False,
) -> None:
    """Rerank n-best lists by the predictive distribution."""
    from bpa_ppl.decoding import Lines, rerank_to
    from bpa_ppl.formats.references import sources_of
    from bpa_ppl.posterior import read_draws

    known = None if sources is None else sources_of(sources).lines
    lines = Lines(gaps, known, reading.first_id)
    summary = rerank_to(
        reading.stream(nbest, references, sources),
        read_draws(posterior),
        output,
        details,
        lines=lines,
        rule=None if rule is None else options.component(RULES, rule, "--rule"),
        derivations=derivations,
        sure=sure,
        temperature=temperature,
        defaults=options.numbers(default, "--default"),
        where=options.places(where),
        unchecked=unchecked,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        progress=not quiet,
    )
    if lines.filled:
        options.say(f"note: {counted(lines.filled, 'sentence')} without a list: {gaps} line", quiet)
    file = sys.stderr if output == "-" else sys.stdout
    if summary.scores is not None:
        print(summary.scores, file=file)
    else:
        options.say(f"{summary.changed} of {summary.sentences} translations changed", quiet)
    if summary.baselines is not None:
        print(f"\n{summary.baselines}\n{summary.baselines.summary}", file=file)
    if summary.expected is not None:
        options.say(f"expected TER (within-list oracle): {summary.expected}", quiet)

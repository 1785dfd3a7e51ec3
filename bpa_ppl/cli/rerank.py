"""`bpa rerank`, `bpa weights` and `bpa next`: what a posterior is used for."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options as shared
from bpa_ppl.columns import counted
from bpa_ppl.options import RerankOptions
from bpa_ppl.registry import WEIGHT_FORMATS


def rerank(
    nbest: shared.NBestPath,
    posterior: Annotated[
        Path, typer.Option("--posterior", "-p", help="Posterior (NetCDF) from `bpa adapt`.")
    ],
    reading: shared.Reading,
    options: RerankOptions,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Translations, one per line; - for stdout.")
    ] = "-",
    details: Annotated[
        Path | None,
        typer.Option(
            help="Also write choices, probabilities and expected scores: JSON lines if the name "
            "ends in .jsonl, else tab-separated."
        ),
    ] = None,
    probabilities: Annotated[
        Path | None,
        typer.Option(help="Also write the probability of every candidate, as JSON lines."),
    ] = None,
    references: shared.References = None,
    sources: shared.Sources = None,
    gaps: Annotated[
        str,
        typer.Option(
            help="Missing sentences: fail (error), write an empty line (empty), or copy the source "
            "(source)."
        ),
    ] = "error",
    quiet: shared.Quiet = False,
) -> None:
    """Rerank n-best lists by the posterior predictive distribution."""
    from bpa_ppl.decoding import AlignedWriter, rerank_to
    from bpa_ppl.formats.references import sources_of
    from bpa_ppl.posterior import read_draws

    lines = None if sources is None else sources_of(sources).lines
    aligned = AlignedWriter(gaps, lines, reading.first_id)
    summary = rerank_to(
        reading.stream(nbest, references, sources),
        read_draws(posterior),
        output,
        details,
        probabilities=probabilities,
        aligned=aligned,
        options=replace(options, progress=not quiet),
    )
    if aligned.filled:
        missing = counted(aligned.filled, "sentence")
        shared.echo_status(f"note: {missing} without a list: {gaps} line", quiet)
    file = sys.stderr if output == "-" else sys.stdout
    if summary.scores is not None:
        print(summary.scores, file=file)
    else:
        changed = f"{summary.changed} of {summary.sentences} translations changed"
        shared.echo_status(changed, quiet)
    if summary.baselines is not None:
        print(f"\n{summary.baselines}\n{summary.baselines.summary}", file=file)
    if summary.expected is not None:
        shared.echo_status(f"expected TER (within-list oracle): {summary.expected}", quiet)


def weights(
    posterior: shared.PosteriorPath,
    output: Annotated[str, typer.Option("--output", "-o", help="Weight file; - for stdout.")],
    template: Annotated[
        Path | None, typer.Option(help="moses.ini to copy, with the adapted weights filled in.")
    ] = None,
    point: Annotated[str, typer.Option(help="mean, mode or draw.")] = "mean",
    draw: Annotated[int, typer.Option(help="With --point draw: the number of the draw.")] = 0,
    normalise: Annotated[
        bool, typer.Option(help="Divide the adapted weights by the sum of their absolute values.")
    ] = True,
    format: Annotated[
        str,
        typer.Option(
            help=f"Weight format: {shared.names_in(WEIGHT_FORMATS, 'auto')}; auto uses the suffix."
        ),
    ] = "auto",
    unchecked: shared.Unchecked = False,
) -> None:
    """Write the posterior mean, the mode or a draw as weights for the decoder."""
    import bpa_ppl
    from bpa_ppl.decoding import refuse_unconverged
    from bpa_ppl.posterior import read_draws

    draws = read_draws(posterior)
    if not unchecked:
        refuse_unconverged(draws)
    chosen = bpa_ppl.point_weights(draws, point, draw)
    if normalise:
        chosen = chosen.normalised(draws.features)
    bpa_ppl.write_weights(chosen, output, template=template, format=format)


def next_(
    posterior: shared.PosteriorPath,
    pool: Annotated[
        str,
        typer.Argument(
            metavar="POOL", help="N-best lists to choose from, without references; - for stdin."
        ),
    ],
    reading: shared.Reading,
    output: Annotated[str, typer.Option("--output", "-o", help="Table; - for stdout.")] = "-",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of sentences.")] = 10,
    sources: shared.Sources = None,
    criterion: Annotated[
        str,
        typer.Option(
            help="Rank by information (expected information gain on the weights) or entropy (of "
            "the prediction)."
        ),
    ] = "information",
    draws: Annotated[int, typer.Option(help="Number of posterior draws to use.")] = 500,
    defaults: shared.Defaults = None,
    moved_files: shared.MovedFile = None,
    unchecked: shared.Unchecked = False,
    quiet: shared.Quiet = False,
) -> None:
    """List the sentences whose references would be most informative.

    Prints a tab-separated table: rank, sentence id, expected information gain and entropy in nats,
    and the source, or else the first hypothesis. Take few sentences at a time, and run
    `bpa update` in between.
    """
    from bpa_ppl.decoding import next_sentences
    from bpa_ppl.formats import atomic_writer
    from bpa_ppl.posterior import read_draws

    lists = reading.read(pool, None, sources)
    ranked = next_sentences(
        lists,
        read_draws(posterior),
        criterion=criterion,
        draws=draws,
        defaults=shared.numbers(defaults, "--default"),
        moved_files=shared.moved_files(moved_files),
        unchecked=unchecked,
        progress=not quiet,
    )
    texts = lists.sources or lists.chosen([0] * len(lists))
    rows = ["rank\tsentence\tinformation\tentropy\ttext"]
    for rank, at in enumerate(ranked.ranking[:count].tolist(), 1):
        values = f"{ranked.information[at]:.4f}\t{ranked.entropy[at]:.4f}"
        rows.append(f"{rank}\t{ranked.ids[at]}\t{values}\t{' '.join(texts[at].split())}")
    with atomic_writer(output) as file:
        file.write("\n".join(rows) + "\n")

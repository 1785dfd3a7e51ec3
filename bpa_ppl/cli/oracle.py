"""`bpa oracle`: the best hypothesis of each list, and how much there is to gain."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    nbest: options.NBestPath,
    reading: options.Reading,
    references: options.References = None,
    sources: options.Sources = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Oracle texts, one a line; - is stdout.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", "-w", help="Canonical weights, to break ties.")
    ] = None,
    metric: options.Metric = "ter",
    ties: options.Ties = None,
    jobs: options.Jobs = 1,
    cache: options.Cache = True,
    quiet: options.Quiet = False,
) -> None:
    """Find oracles, and print the scores of first-best, oracle and anti-oracle.

    With a column of judgements as the metric, also those of simple ways to choose.
    """
    from bpa_ppl.formats.streams import atomic_writer
    from bpa_ppl.progress import reporter
    from bpa_ppl.quality import Column, demote_to_extras, headroom, resolve
    from bpa_ppl.weights import match

    goal = options.metric(metric)
    lists = options.with_needs(reading.read(nbest, references, sources), goal, "oracle")
    scores = None
    goal = resolve(goal, lists)
    if weights is not None:
        lists = demote_to_extras(lists, goal.columns)
        scores = lists.scores(match(options.canonical(weights), lists, fixed=()).values)
    if ties is None:
        ties = "shared" if scores is None and lists.totals is None else "canonical"
    with reporter(not quiet, "oracle") as report:
        room = headroom(lists, scores, goal, ties=ties, jobs=jobs, cache=cache, progress=report)
    if output is not None:
        with atomic_writer(output) as file:
            file.writelines(f"{text}\n" for text in lists.chosen(room.oracles.index))
    shown = sys.stderr if output == "-" else sys.stdout
    print(room, file=shown)
    if isinstance(goal, Column) and len(lists) > 1:
        from bpa_ppl.diagnostics import compare_baselines

        print(f"\n{compare_baselines(lists, metric=goal)}", file=shown)

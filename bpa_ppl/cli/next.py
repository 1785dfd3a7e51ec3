"""`bpa next`: which sentences to translate next, from lists without references."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    posterior: options.PosteriorPath,
    pool: Annotated[
        str,
        typer.Argument(
            metavar="POOL", help="n-best lists without references to choose from; - is stdin."
        ),
    ],
    reading: options.Reading,
    output: Annotated[str, typer.Option("--output", "-o", help="Table; - is stdout.")] = "-",
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="How many sentences to name.")
    ] = 10,
    sources: options.Sources = None,
    criterion: Annotated[
        str, typer.Option(help="information about the weights, or entropy of the prediction.")
    ] = "information",
    draws: Annotated[int, typer.Option(help="Draws that stand for the posterior.")] = 500,
    default: options.Default = None,
    where: options.Places = None,
    unchecked: options.Unchecked = False,
    quiet: options.Quiet = False,
) -> None:
    """Name the sentences of a pool whose references would tell most about the weights.

    A table, tab-separated: rank, sentence id, expected information gain and entropy in nats, and
    the source, or else the first hypothesis. Ask for few at a time, and `bpa update` between.
    """
    from bpa_ppl.decoding import next_sentences
    from bpa_ppl.formats import atomic_writer
    from bpa_ppl.posterior import read_draws

    lists = reading.read(pool, None, sources)
    asked = next_sentences(
        lists,
        read_draws(posterior),
        criterion=criterion,
        draws=draws,
        defaults=options.numbers(default, "--default"),
        where=options.places(where),
        unchecked=unchecked,
        progress=not quiet,
    )
    texts = lists.sources or lists.chosen([0] * len(lists))
    rows = ["rank\tsentence\tinformation\tentropy\ttext"]
    for rank, at in enumerate(asked.ranking[:count].tolist(), 1):
        numbers = f"{asked.information[at]:.4f}\t{asked.entropy[at]:.4f}"
        text = " ".join(texts[at].split())
        rows.append(f"{rank}\t{asked.sentence_ids[at]}\t{numbers}\t{text}")
    if output == "-":
        sys.stdout.write("\n".join(rows) + "\n")
    else:
        with atomic_writer(Path(output)) as file:
            file.write("\n".join(rows) + "\n")

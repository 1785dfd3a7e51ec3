"""`bpa features`: n-best lists in, the same lists with more features out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import UsageError


def run(
    nbest: options.NBestPath,
    reading: options.Reading,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The lists; .nbest, .jsonl, .csv, … say the format."),
    ],
    add: options.Add = None,
    references: options.References = None,
    sources: options.Sources = None,
    quiet: options.Quiet = False,
) -> None:
    """Add features to n-best lists, for tuners and programs that read lists.

    What is learned from the adaptation sentences (self) takes these for them. `bpa adapt --add`
    does not need this: the posterior remembers how to compute the features of new lists.
    """
    import bpa_ppl
    from bpa_ppl.formats.nbest_files import format_for

    if not add:
        raise UsageError("features needs --add: which features")
    chosen = [options.feature_source(text) for text in add]
    written_in = format_for(output)  # told before the work, not after it
    lists = reading.read(nbest, references, sources)
    made = bpa_ppl.add_features(lists, chosen)
    # Totals of the decoder are no longer Σ λ·h of all features.
    bpa_ppl.write_nbest(made, output, format=written_in)
    new = made.feature_names[len(lists.feature_names) :]
    options.say(f"added {', '.join(new)} to {len(made.features):,} hypotheses", quiet)

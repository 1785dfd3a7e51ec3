"""`bpa oracle`, `bpa features` and `bpa lm`: commands on lists and texts alone."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import bpa_ppl as bpa
from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError


def oracle(
    nbest: shared.NBestPath,
    reading: shared.Reading,
    references: shared.References = None,
    sources: shared.Sources = None,
    output: shared.OptionalOutput = None,
    weights: Annotated[str | None, typer.Option("--weights", "-w")] = None,
    metric: shared.Metric = "ter",
    ties: shared.Ties = None,
    jobs: shared.Jobs = 1,
    cache: shared.Cache = True,
    quiet: shared.Quiet = False,
) -> None:
    """Find oracles, and print the scores of first-best, oracle and anti-oracle.

    With a column of judgements as the metric, also print the scores of simple baselines.

    Args:
        output: Oracle texts, one per line; - for stdout.
        weights: Canonical weights, to break ties.
    """
    from bpa_ppl.formats.streams import atomic_writer
    from bpa_ppl.progress import reporter
    from bpa_ppl.weights import match

    lists = reading.read(nbest, references, sources)
    goal = bpa.quality.resolve(metric, lists)
    scores = None
    if weights is not None:
        lists = bpa.quality.demote_to_extras(lists, goal.columns)
        scores = lists.scores(match(shared.canonical(weights), lists, fixed=()).values)
    if ties is None:
        ties = "shared" if scores is None and lists.totals is None else "canonical"
    with reporter(not quiet, "oracle") as report:
        room = bpa.quality.headroom(
            lists, scores, goal, ties=ties, jobs=jobs, cache=cache, progress=report
        )
    if output is not None:
        with atomic_writer(output) as file:
            file.writelines(f"{text}\n" for text in lists.chosen(room.oracles.index))
    shown = sys.stderr if output == "-" else sys.stdout
    print(room, file=shown)
    if isinstance(goal, bpa.quality.Column) and len(lists) > 1:
        print(f"\n{bpa.compare_baselines(lists, metric=goal)}", file=shown)


def features(
    nbest: shared.NBestPath,
    reading: shared.Reading,
    output: shared.OutputPath,
    add: shared.Add = None,
    references: shared.References = None,
    sources: shared.Sources = None,
    quiet: shared.Quiet = False,
) -> None:
    """Add features to n-best lists, for tuners and programs that read lists.

    Features that are learned from the adaptation sentences (self) are learned from these lists.
    `bpa adapt --add` does not need this command: the posterior records how to compute the features
    of new lists.

    Args:
        output: N-best lists; the suffix gives the format: .jsonl …
    """
    from bpa_ppl.formats.nbest_files import format_for

    if not add:
        raise UsageError("name the features to add", parameter="add")
    format = format_for(output)  # an error comes before the work
    lists = reading.read(nbest, references, sources)
    extended = bpa.add_features(lists, add)
    # Totals of the decoder are no longer Σ λ·h of all features.
    bpa.write_nbest(extended, output, format=format)
    new = extended.feature_names[len(lists.feature_names) :]
    status = f"added {', '.join(new)} to {len(extended.features):,} hypotheses"
    shared.echo_status(status, quiet)


def lm(
    texts: Annotated[list[str], typer.Argument(metavar="TEXT")],
    order: int = 3,
    output: shared.OptionalOutput = None,
    test: list[str] | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Estimate a language model (modified Kneser–Ney), and print its size and perplexity.

    Args:
        texts: Text with one sentence per line, words separated by spaces; several files are one
            text; - for stdin. Or one language model: an ARPA file, or a binary file of KenLM.
        order: Length of the longest n-grams, 1 to 5.
        output: ARPA file; .gz, .xz and .zst are compressed.
        test: Text to compute the perplexity of.
    """
    from bpa_ppl.formats.streams import STANDARD, origin_name
    from bpa_ppl.text.arpa import write_arpa
    from bpa_ppl.text.language_model import NgramModel
    from bpa_ppl.text.model_files import evaluate_text, is_model, model_of

    finished = any(map(is_model, texts))
    if finished and output is not None:
        raise UsageError(
            f"{texts[0]} is a language model already: give a text",
            parameter="output",
            code="conflict",
        )
    model = model_of(texts, order, progress=not quiet)
    counts = (f"{count:,} {n}-grams" for n, count in enumerate(model.counts, 1))
    sizes = ", ".join(counts) or f"a model of order {model.order}"
    if model.fallback:
        orders = ", ".join(map(str, model.fallback))
        sizes += f"; too few n-grams of order {orders} to estimate discounts: 0.5, 1, 1.5 are used"
    lines = [] if quiet else [sizes]
    again = not finished and all(map(os.path.isfile, texts))  # a pipe is read once
    own = [texts] if again and not quiet else []
    for paths in [[path] for path in test] if test else own:
        found = evaluate_text(model, paths)
        what = ", ".join(map(origin_name, paths)) if test else "the training text itself"
        lines.append(
            f"{what}: perplexity {found.perplexity:.2f}, {found.known:.2f} without the "
            f"{found.unknown:,} unknown of {found.words:,} words"
        )
    if isinstance(model, NgramModel) and output is not None:
        write_arpa(model, output)
    for line in lines:
        print(line, file=sys.stderr if output == STANDARD else sys.stdout)

"""`bpa lm`: estimate a language model of a text, and judge texts by it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import UsageError

if TYPE_CHECKING:
    from bpa_ppl.text.language_model import TextModel


def run(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT",
            help="One sentence a line, words between spaces; several are read as one text, - is "
            "stdin. Or a finished model alone: an ARPA file, or a binary file of KenLM.",
        ),
    ],
    order: Annotated[int, typer.Option(help="Length of the longest n-grams, 1 to 5.")] = 3,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="ARPA file; .gz, .xz and .zst are compressed."),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(help="Text to judge instead of the model's own; repeat for several."),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Estimate a language model (modified Kneser–Ney), and print its size and perplexity."""
    from bpa_ppl.formats.streams import STANDARD, origin_name
    from bpa_ppl.text.arpa import write_arpa
    from bpa_ppl.text.language_model import NgramModel
    from bpa_ppl.text.model_files import evaluate_text, is_model, model_of

    finished = any(map(is_model, texts))
    if finished and output is not None:
        raise UsageError(f"{texts[0]} is a finished language model already: --output is for text")
    model = model_of(texts, order, progress=not quiet)
    lines = [] if quiet else [_sizes(model)]
    again = not finished and all(Path(path).is_file() for path in texts)  # a pipe is read once
    own = [texts] if again and not quiet else []
    for paths in [[path] for path in test] if test else own:
        found = evaluate_text(model, paths)
        what = ", ".join(map(origin_name, paths)) if test else "its own text, which it has seen"
        lines.append(
            f"{what}: perplexity {found.perplexity:.2f}, {found.known:.2f} without the "
            f"{found.unknown:,} unknown of {found.words:,} words"
        )
    if isinstance(model, NgramModel) and output is not None:
        write_arpa(model, output)
    for line in lines:
        print(line, file=sys.stderr if output == STANDARD else sys.stdout)


def _sizes(model: TextModel) -> str:
    counts = (f"{count:,} {n}-grams" for n, count in enumerate(model.counts, 1))
    told = ", ".join(counts) or f"a model of order {model.order}"
    if not model.fallback:
        return told
    orders = ", ".join(map(str, model.fallback))
    return f"{told}; too few to tell the discounts of order {orders}: 0.5, 1, 1.5"

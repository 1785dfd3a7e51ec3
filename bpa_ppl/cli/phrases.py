"""`bpa phrases`: extract phrase pairs from aligned text, and mix tables of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options, phrases_weigh
from bpa_ppl.cli.wording import Command
from bpa_ppl.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

app = typer.Typer(
    help="Phrase tables: extract phrase pairs from aligned text, and mix tables for a domain.",
    no_args_is_help=True,
)

_TABLE = "Counts: Parquet, `source ||| target ||| count`, or Moses' extract or phrase table."
_OUTPUT = typer.Option(
    "--output", "-o", help="NAME.parquet, or text as Moses has it; .gz, .xz, .zst are compressed."
)


@app.command(cls=Command)
def extract(
    source: Annotated[str, typer.Argument(help="A sentence a line, words between spaces.")],
    target: Annotated[str, typer.Argument(help="Its translations, line by line.")],
    alignment: Annotated[str, typer.Argument(help="Points 0-0 1-2 of each pair, a line each.")],
    output: Annotated[str, _OUTPUT],
    max_length: Annotated[int, typer.Option(help="The most words of a phrase.")] = 5,
    like: Annotated[
        str | None,
        typer.Option(help="Text or language model of the domain: keep the lines most like it."),
    ] = None,
    keep: Annotated[
        float | None, typer.Option(help="With --like: the share of the lines that is kept.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Count the phrase pairs that are consistent with the alignment of a corpus."""
    from bpa_ppl.phrases.extraction import extract_phrases
    from bpa_ppl.phrases.tables import write_counts

    table = extract_phrases(
        source,
        target,
        alignment,
        max_length=max_length,
        keep=_kept(target, like, keep),
        progress=not quiet,
    )
    write_counts(table, output)
    options.say(f"{len(table):,} phrase pairs, {table.total:,.0f} occurrences", quiet)


@app.command(cls=Command)
def mix(
    inner: Annotated[str, typer.Argument(metavar="IN", help=f"Of the domain. {_TABLE}")],
    outer: Annotated[str, typer.Argument(metavar="OUT", help="The general table, likewise.")],
    output: Annotated[str, _OUTPUT],
    dev: Annotated[
        str | None,
        typer.Option(help="Counts of other text of the domain, which the parameter is fitted to."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="concatenate, linear, map or log-linear; linear-known and map-known leave a "
            "phrase that one table alone has to that table."
        ),
    ] = "map",
    value: Annotated[
        float | None, typer.Option(help="Of the parameter (alpha, beta), instead of fitting it.")
    ] = None,
    out_source_counts: Annotated[
        str | None,
        typer.Option(help="`phrase ||| count` in all of OUT, where the table is a part of it."),
    ] = None,
    out_target_counts: Annotated[str | None, typer.Option(help="The same of targets.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Mix a phrase table of the domain with a general one: p(t|s) and p(s|t)."""
    from bpa_ppl.phrases.mixtures import mix as mixed
    from bpa_ppl.phrases.tables import read_counts, write_table

    general = read_counts(outer, source_counts=out_source_counts, target_counts=out_target_counts)
    judge = None if dev is None else read_counts(dev)
    table, fits = mixed(read_counts(inner), general, judge, method, value)
    write_table(table, output)
    for fit in fits:
        options.say(fit, quiet)
    options.say(f"{len(table):,} phrase pairs, with {', '.join(table.columns)}", quiet)


app.command("weigh", cls=Command)(phrases_weigh.weigh)


def _kept(path: str, like: str | None, keep: float | None) -> npt.NDArray[np.bool_] | None:
    """Return which lines of the target side are kept."""
    if (like is None) != (keep is None):
        raise UsageError("--like and --keep go together: give both or neither")
    if like is None or keep is None:
        return None
    from bpa_ppl.phrases.extraction import select_lines
    from bpa_ppl.text.model_files import model_of

    if path == "-":
        raise UsageError("--like reads the target side twice: give it as a file")
    return select_lines(model_of([like]), path, keep)

"""`bpa report`: a posterior, or latent subdomains, as a page to read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import DataError, UsageError

if TYPE_CHECKING:
    from bpa_ppl.diagnostics.subdomains import PhrasePairTexts
    from bpa_ppl.nbest import NBest


def run(
    posterior: Annotated[
        Path, typer.Argument(help="NetCDF of `bpa adapt`, or Parquet of `bpa subdomains`.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Page (HTML); - is stdout.")],
    reading: options.ReadingNew,
    lists: Annotated[
        str | None,
        typer.Option(
            "--nbest",
            "--lists",
            help="A file of new n-best lists, with --references: whether it helped, and what each "
            "added feature contributes. (How many hypotheses plain text has is --list-size.) Of "
            "subdomains: lists with segmentations, whose phrases are shown.",
        ),
    ] = None,
    references: options.References = None,
    sources: options.Sources = None,
    known: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="The lists that `bpa adapt` was given: their sentences are then shown by their "
            "texts.",
        ),
    ] = None,
    where: options.Places = None,
    phrases: Annotated[
        str | None, typer.Option(help="Of subdomains: a phrase table, whose phrases are shown.")
    ] = None,
    least: Annotated[
        int, typer.Option(help="Of subdomains: how often phrases occur at least that are shown.")
    ] = 50,
    shown: Annotated[
        int,
        typer.Option(
            help="How many weights, those that mix worst, have their chains drawn. Of subdomains: "
            "how many words, phrases and pairs of a kind are shown."
        ),
    ] = 8,
    quiet: options.Quiet = False,
) -> None:
    """Write a posterior, or latent subdomains, as one self-contained HTML page."""
    from bpa_ppl.diagnostics.pages.page import write_page

    new = None if lists is None else reading.read(lists, references, sources)
    if _holds_subdomains(posterior):
        if references or where or known:
            raise UsageError(
                "--references, --where and --with go with posteriors: these are subdomains"
            )
        html = _subdomains(posterior, _pairs(new, phrases), least, shown)
    else:
        if phrases is not None:
            raise UsageError(f"--phrases goes with subdomains, and {posterior} holds none")
        if new is None and references:
            raise UsageError("--references goes with --nbest: of which lists?")
        before = None if known is None else reading.read(known)
        html = _posterior(posterior, new, before, where, shown)
    write_page(html, output)
    options.say(f"wrote {output}", quiet or output == "-")


def _holds_subdomains(path: Path) -> bool:
    """Say whether a file may hold subdomains; what is wrong with it, its reader will tell."""
    from bpa_ppl.formats.streams import InputFile
    from bpa_ppl.phrases.table_files import is_parquet

    with suppress(DataError):
        return is_parquet(InputFile(path))
    return False


def _posterior(
    path: Path, new: NBest | None, known: NBest | None, where: list[str] | None, shown: int
) -> str:
    from bpa_ppl.decoding.report import report_page
    from bpa_ppl.posterior import read_draws

    return report_page(
        read_draws(path),
        new,
        known=known,
        where=options.places(where),
        title=f"Posterior {path.name}",
        shown=shown,
    )


def _subdomains(path: Path, pairs: PhrasePairTexts | None, least: int, shown: int) -> str:
    from bpa_ppl.diagnostics.subdomains import subdomains_page
    from bpa_ppl.phrases import Subdomains

    found = Subdomains.load(path)
    title = f"Subdomains {path.name}"
    return subdomains_page(found, title=title, pairs=pairs, least=least, shown=shown)


def _pairs(lists: NBest | None, table: str | None) -> PhrasePairTexts | None:
    """Return the phrase pairs of lists or of a table; None where neither is given."""
    from bpa_ppl.features.segmentations import phrase_pairs
    from bpa_ppl.phrases.tables import read_pairs

    if lists is not None and table is not None:
        raise UsageError("--nbest and --phrases both say which phrases are shown: give one")
    if table is not None:
        pairs = read_pairs(table)
        return pairs.texts("source").to_pylist(), pairs.texts("target").to_pylist()
    return None if lists is None else phrase_pairs(lists)

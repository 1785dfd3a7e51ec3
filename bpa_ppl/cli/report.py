"""`bpa report`: a posterior, or latent subdomains, as a page to read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import DataError, UsageError

if TYPE_CHECKING:
    from bpa_ppl.diagnostics.subdomains_page import Pairs
    from bpa_ppl.nbest import NBest


def run(
    posterior: Annotated[
        Path, typer.Argument(help="NetCDF of `bpa adapt`, or Parquet of `bpa subdomains`.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Page (HTML); - is stdout.")],
    reading: options.Reading,
    lists: Annotated[
        str | None,
        typer.Option(
            "--lists",
            help="New n-best lists: what each added feature contributes. Of subdomains: lists with "
            "segmentations, whose phrases are shown.",
        ),
    ] = None,
    references: options.References = None,
    sources: options.Sources = None,
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
        if references or where:
            raise UsageError("--references and --where go with posteriors: these are subdomains")
        html = _subdomains(posterior, _pairs(new, phrases), least, shown)
    else:
        if phrases is not None:
            raise UsageError(f"--phrases goes with subdomains, and {posterior} holds none")
        if new is None and references:
            raise UsageError("--references goes with --lists: of which lists?")
        html = _posterior(posterior, new, where, shown)
    write_page(html, output)
    options.say(f"wrote {output}", quiet or output == "-")


def _holds_subdomains(path: Path) -> bool:
    """Say whether a file may hold subdomains; what is wrong with it, its reader will tell."""
    from bpa_ppl.formats.streams import InputFile
    from bpa_ppl.phrases.parquet_tables import is_parquet

    with suppress(DataError):
        return is_parquet(InputFile(path))
    return False


def _posterior(path: Path, lists: NBest | None, where: list[str] | None, shown: int) -> str:
    import bpa_ppl
    from bpa_ppl.diagnostics.posterior_page.posterior_page import posterior_page

    data = bpa_ppl.as_draws(bpa_ppl.read_posterior(path))
    more = []
    if lists is not None:
        from bpa_ppl.decoding.contributions import contributions, contributions_section

        rows = contributions(lists, data, where=options.places(where))
        more = [contributions_section(rows, len(lists))]
    return posterior_page(data, title=f"Posterior {path.name}", shown=shown, more=more)


def _subdomains(path: Path, pairs: Pairs | None, least: int, shown: int) -> str:
    from bpa_ppl.diagnostics.subdomains_page import subdomains_page
    from bpa_ppl.phrases import Subdomains

    found = Subdomains.load(path)
    title = f"Subdomains {path.name}"
    return subdomains_page(found, title=title, pairs=pairs, least=least, shown=shown)


def _pairs(lists: NBest | None, table: str | None) -> Pairs | None:
    """Return the phrase pairs of lists or of a table; None where neither is given."""
    from bpa_ppl.features.segmentations import phrase_pairs
    from bpa_ppl.phrases.tables import read_pairs

    if lists is not None and table is not None:
        raise UsageError("--lists and --phrases both say which phrases are shown: give one")
    if table is not None:
        pairs = read_pairs(table)
        return pairs.texts("source").to_pylist(), pairs.texts("target").to_pylist()
    return None if lists is None else phrase_pairs(lists)

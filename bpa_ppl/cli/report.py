"""`bpa report`: a posterior as a page to read."""

from __future__ import annotations

from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import UsageError


def run(
    posterior: options.PosteriorPath,
    output: Annotated[str, typer.Option("--output", "-o", help="Page (HTML); - is stdout.")],
    reading: options.Reading,
    lists: Annotated[
        str | None,
        typer.Option("--lists", help="New n-best lists: what each added feature contributes."),
    ] = None,
    references: options.References = None,
    sources: options.Sources = None,
    where: options.Places = None,
    shown: Annotated[
        int, typer.Option(help="How many weights, those that mix worst, have their chains drawn.")
    ] = 8,
    quiet: options.Quiet = False,
) -> None:
    """Write a posterior as one self-contained HTML page: verdict, weights, chains, settings."""
    import bpa_ppl
    from bpa_ppl.decoding.contributions import contributions, contributions_section
    from bpa_ppl.diagnostics.pages.page import write_page
    from bpa_ppl.diagnostics.posterior_page.posterior_page import posterior_page

    data = bpa_ppl.as_draws(bpa_ppl.read_posterior(posterior))
    more = []
    if lists is not None:
        new = reading.read(lists, references, sources)
        rows = contributions(new, data, where=options.places(where))
        more = [contributions_section(rows, len(new))]
    elif references:
        raise UsageError("--references goes with --lists: of which lists?")
    title = f"Posterior {posterior.name}"
    write_page(posterior_page(data, title=title, shown=shown, more=more), output)
    options.say(f"wrote {output}", quiet or output == "-")

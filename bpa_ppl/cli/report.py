"""`bpa report`: a posterior as a page to read."""

from __future__ import annotations

from typing import Annotated

import typer

from bpa_ppl.cli import options


def run(
    posterior: options.PosteriorPath,
    output: Annotated[str, typer.Option("--output", "-o", help="Page (HTML); - is stdout.")],
    shown: Annotated[
        int, typer.Option(help="How many weights, those that mix worst, have their chains drawn.")
    ] = 8,
    quiet: options.Quiet = False,
) -> None:
    """Write a posterior as one self-contained HTML page: verdict, weights, chains, settings."""
    import bpa_ppl
    from bpa_ppl.diagnostics.pages.page import write_page
    from bpa_ppl.diagnostics.posterior_page.posterior_page import posterior_page

    data = bpa_ppl.read_posterior(posterior)
    write_page(posterior_page(data, title=f"Posterior {posterior.name}", shown=shown), output)
    options.say(f"wrote {output}", quiet or output == "-")

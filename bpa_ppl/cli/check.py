"""`bpa check`: is a posterior fit to be used?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.cli.wording import in_options
from bpa_ppl.errors import NotConverged


def run(
    posterior: options.PosteriorPath,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print the diagnostics of a posterior; exit with 3 if it did not converge."""
    import bpa_ppl
    from bpa_ppl.posterior import read_draws

    report = bpa_ppl.check(read_draws(posterior))
    print(json.dumps(report.as_dict(), indent=2) if as_json else in_options(str(report)))
    if not report:
        raise typer.Exit(NotConverged.exit_code)

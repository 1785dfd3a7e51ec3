"""`bpa judge`, which listens on a port, and `bpa judges`."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from bpa_ppl._runtime.arguments import require_extra
from bpa_ppl.cli import options as shared
from bpa_ppl.cli.outputs import keep_recorded_files
from bpa_ppl.cli.signals import restore_signals
from bpa_ppl.errors import UsageError, unknown_name
from bpa_ppl.features.recipe import choose_roles, roles_for
from bpa_ppl.weight_draws import read_weight_draws

#: The box of the commands in `bpa --help`.
HELP_BOX = "Judges"
#: A box of the help of a command.
_SERVER = Group("Server", sort_key=8)
_PICTURES = (".png", ".svg", ".pdf")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Address:
    """Where a server listens.

    Args:
        host: Address to listen on.
        port: Port; 0 chooses a free one.
        allowed_hosts: Names that requests may use in addition to the host; `*` stands for any.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: Annotated[list[str] | None, shared.make_names_parameter()] = None


def judge(
    nbest: shared.NBestPath,
    /,
    *,
    output: shared.Output,
    weights: str = "none",
    prior: Annotated[str | None, Parameter(alias="-p")] = None,
    rater: str | None = None,
    sources: shared.Sources = None,
    seed: int = 0,
    panel: Annotated[bool | None, Parameter(negative_bool="no-")] = None,
    unchecked: shared.Unchecked = False,
    quiet: shared.Quiet = False,
    columns: shared.FeatureFlags = shared.FeatureFlags(),
    address: Annotated[_Address, Parameter(group=_SERVER)] = _Address(),
    formats: shared.FormatFlags = shared.FormatFlags(),
) -> None:
    """Compare candidates in the browser, two at a time.

    Each answer is written before the next question is shown; the same command continues after an
    interruption. `bpa adapt NBEST --judgements FILE` then adapts to the answers.

    Example: `bpa judge lists.jsonl --rater anna --output anna.jsonl`

    Args:
        output: File of judgements (JSON lines).
        weights: none, to start at 0; equal, to start at the mean of the standardised features; or a
            file with the weights to start from.
        prior: Start from a prior (JSON) or a posterior (NetCDF) instead.
        rater: Name of the rater, for the file of judgements. A rater with a name does not see the
            panel.
        seed: Seed of the questions.
        panel: Show the weights and what the answers have changed, which may influence the rater
            (default: only to a rater without a name).
    """
    shared.require_with("--prior", prior, unchecked=unchecked)
    if prior is not None and weights != "none":
        message = "a prior says where the weights start: leave out the weights"
        raise UsageError(message, parameter="weights", code="conflict")
    start = shared.parse_start(weights)
    roles = choose_roles(columns.features, columns.exclude, columns.categorical)
    lists = formats.read(nbest, sources=sources, roles=roles)
    options = shared.given_options(columns=columns)
    options |= {} if prior is None else {"prior": shared.parse_prior(prior, unchecked=unchecked)}
    require_extra("judging needs Starlette and uvicorn", "judge", "starlette", "uvicorn")
    from bpa_ppl._runtime.streams import require_writable
    from bpa_ppl.extras.judging.app import judging_application
    from bpa_ppl.extras.judging.session import Session
    from bpa_ppl.extras.judging.web import run

    require_writable(output)
    session = Session(lists, start, journal=output, rater=rater, seed=seed, **options)
    token = secrets.token_urlsafe(24)
    app = judging_application(
        session, token, hosts=[address.host, *(address.allowed_hosts or ())], state_shown=panel
    )

    def ready(url: str) -> None:
        shared.echo_status(f"compare candidates at {url}/{token}/", quiet)

    restore_signals()
    run(app, address.host, address.port, ready)


def judges(
    posterior: shared.PosteriorPath,
    /,
    *nbest: Annotated[
        str, Parameter(help="Lists that it was adapted to (default: the file that it records).")
    ],
    output: shared.OutputPath | None = None,
    reading: shared.Reading = shared.Reading(),
    judgements: list[Path] | None = None,
    unchecked: shared.Unchecked = False,
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
) -> None:
    """Print what each judge, or other feature, is worth, and whether more labels would help.

    Example: `bpa judges posterior.nc judged.jsonl --output judges.png`

    Args:
        output: Picture (.png, .svg or .pdf).
        judgements: Answers that `bpa judge` wrote about these lists or one of their files, as given
            to `bpa adapt`.
    """
    from bpa_ppl.diagnostics.pages.figures import write_figure
    from bpa_ppl.extras.judging.juries import judges as value_judges

    if output is not None and output.suffix.lower() not in _PICTURES:
        raise unknown_name("ending", output.suffix, _PICTURES, "output", owner=output)
    draws = read_weight_draws(posterior)
    paths = list(nbest) or shared.recorded_lists(draws.adaptation)
    if not paths:
        message = "a posterior that does not record it needs the file of its lists: give it"
        raise UsageError(message, parameter="nbest", code="missing-argument")
    reading = reading.of_recorded(draws.adaptation, paths)
    keep_recorded_files(draws.adaptation, *paths, output=output)
    lists = reading.read_together(paths, judgements or (), roles=roles_for(draws))
    result = value_judges(draws, lists, unchecked=unchecked)
    print(json.dumps(result.as_dict(), indent=2) if as_json else result)
    if output is not None:
        write_figure(result.figure(), output, dpi=150)
        shared.echo_status(f"wrote {output}", quiet)

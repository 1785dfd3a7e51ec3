"""`bpa adapt` and `bpa learn-prior`: posteriors and priors from n-best lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Unpack

from cyclopts import Parameter

from bpa_ppl._runtime.workers import use_scheduler
from bpa_ppl.cli import options as shared
from bpa_ppl.cli.outputs import keep_recorded_files
from bpa_ppl.errors import UsageError
from bpa_ppl.features.recipe import choose_roles
from bpa_ppl.posterior.files import write_posterior
from bpa_ppl.weight_draws import read_weight_draws
from bpa_ppl.weights import split_arguments


def adapt(
    *nbest: shared.NBestPaths,
    output: shared.OutputPath,
    weights: shared.Weights | None = None,
    reading: shared.Reading = shared.Reading(),
    judgements: Annotated[list[Path] | None, Parameter(group=shared.OBSERVED)] = None,
    fixed: Annotated[shared.Fixed, Parameter(group=shared.PRIOR)] = None,
    like: Annotated[Path | None, Parameter(group=shared.OTHERS)] = None,
    scheduler: Annotated[shared.Scheduler, Parameter(group=shared.OTHERS)] = None,
    quiet: Annotated[shared.Quiet, Parameter(group=shared.OTHERS)] = False,
    **settings: Unpack[shared.AdaptOptions],
) -> None:
    """Adapt the weights to a few lists with judgements or references.

    Example: `bpa adapt dev.jsonl --weights none --gain comet --output posterior.nc`

    Args:
        output: Posterior file (NetCDF).
        like: A posterior whose weights and options are taken, except those given here. The same
            lists, with the same references, sources and judgements, give the same file.
        judgements: Answers that `bpa judge` wrote about these lists or one of their files; one file
            for each rater. They and the preferences of the lists alone are observed, unless you
            choose a likelihood or a metric for the rest.
    """
    from bpa_ppl._runtime.streams import require_writable
    from bpa_ppl.adaptation_record import AdaptationRecord
    from bpa_ppl.adapting.adapt import run_adaptation
    from bpa_ppl.adapting.settings import recorded_options, resolve_settings
    from bpa_ppl.evaluation.compare_ways import read_comparison
    from bpa_ppl.evaluation.provenance import describe_difference

    if not weights and like is None:
        message = "give canonical weights (a file, none or equal), or a posterior with --like"
        raise UsageError(message, parameter="weights", code="missing-argument")
    arguments: dict[str, Any] = {**settings, **shared.given_options(fixed=fixed)}
    arguments["progress"] = not quiet
    if isinstance(prior := settings.get("prior"), str):
        arguments["prior"] = shared.parse_prior(prior, unchecked=settings.get("unchecked", False))
    if weights:
        arguments["weights"] = shared.parse_start(weights)
    repeated = None if like is None else read_weight_draws(like)
    if repeated is None:
        start, arguments = split_arguments(arguments)
    else:
        keep_recorded_files(repeated.adaptation, output=output)
        start, arguments = recorded_options(repeated, **arguments)
        reading = reading.of_recorded(repeated.adaptation, nbest)
    # Mistakes are found before files are read.
    resolved = resolve_settings(answered=bool(judgements), **arguments)
    require_writable(output)  # before the sampling, which takes a while
    columns = resolved.features, resolved.exclude, resolved.categorical
    roles = choose_roles(*columns, gain=resolved.gain)
    lists = reading.read_together(nbest, judgements or (), roles=roles)
    flags = shared.given_options(formats=reading.formats)
    with use_scheduler(scheduler):
        posterior, report = run_adaptation(lists, start, resolved, reading=flags, quiet=quiet)
    write_posterior(posterior, output)
    comparison = read_comparison(AdaptationRecord.of(posterior.record))
    if report and comparison is not None:
        shared.echo_status(comparison, quiet)
    passed = f"{report.title} (bpa check {output} prints the diagnostics)"
    shared.echo_status(passed if report else report, quiet)
    if repeated is not None:
        shared.echo_status(describe_difference(posterior, repeated.draws, str(like)), quiet)


def learn_prior(
    *posteriors: Annotated[Path, Parameter(required=True)],
    output: shared.OutputPath,
    without: Annotated[list[str] | None, shared.make_names_parameter()] = None,
    unchecked: shared.Unchecked = False,
    quiet: shared.Quiet = False,
) -> None:
    """Learn a prior for a new domain from the posteriors of other domains.

    Example: `bpa learn-prior news.nc medical.nc legal.nc --output prior.json`

    Args:
        posteriors: Posteriors (NetCDF) written by `bpa adapt`, one for each domain.
        output: Prior file (JSON).
        without: Features, or labels of several, that the lists of the new domain lack: one or more
            names, after POSTERIORS. Their weights are set to 0.
    """
    from bpa_ppl.models.priors.learned import draws_by_label, learn_hierarchy

    draws = draws_by_label(posteriors)
    hierarchy = learn_hierarchy(draws, without=without or (), unchecked=unchecked)
    hierarchy.prior().write(output, hierarchy.record(draws))
    shared.echo_status(hierarchy.table(draws.values()), quiet)

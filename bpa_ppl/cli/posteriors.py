"""Commands on a posterior: `bpa check`, `trace`, `report`, `rerank` and `weights`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Unpack

from cyclopts import Parameter

from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.workers import use_scheduler
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.cli import options as shared
from bpa_ppl.cli.outputs import keep_recorded_files
from bpa_ppl.diagnostics.check.check import check_opened
from bpa_ppl.diagnostics.check.report import refuse_unconverged
from bpa_ppl.diagnostics.page import write_page
from bpa_ppl.errors import DataError, NotConverged, UsageError, list_names
from bpa_ppl.evaluation.provenance import signature
from bpa_ppl.evaluation.raters import compare_raters
from bpa_ppl.features.recipe import roles_for
from bpa_ppl.formats.advice import advise
from bpa_ppl.formats.format import AUTO, resolve_format
from bpa_ppl.formats.weight_files import write_weights
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.files import name_file
from bpa_ppl.posterior.opening import open_draws, open_to_show
from bpa_ppl.weight_draws import as_weight_draws, read_weight_draws, show_standardised


def check(
    posterior: shared.AnyPosterior,
    /,
    *,
    var_names: shared.VarNames = None,
    log_weights: shared.LogWeights = None,
    as_json: shared.AsJson = False,
) -> None:
    """Print the diagnostics of a posterior; exit with 3 if it has not converged.

    The posterior may be of any program. The diagnostics that it records are printed, if it has not
    changed since. Of other programs, variables that are discrete or not finite are left out, and
    named. For preferences, also the agreement and the slip rates of the raters.

    Example: `bpa check posterior.nc`
    """
    opened = open_draws(posterior, var_names=var_names, log_weights=log_weights)
    report, draws = check_opened(opened, var_names=var_names), opened.draws
    with name_file(posterior):
        raters, identity = compare_raters(draws), signature(draws)
    if as_json:
        of_raters = {} if raters is None else {"raters": raters.as_dict()}
        shown = {**report.as_dict(), **of_raters, "signature": identity}
        print(json.dumps(shown, indent=2))
    else:
        parts = [report, raters, identity]
        print(*(part for part in parts if part is not None), sep="\n")
    if not report:
        raise SystemExit(NotConverged.exit_code)


def report(
    posterior: shared.AnyPosterior,
    /,
    *,
    output: shared.Output,
    lists: str | None = None,
    reading: shared.Reading = shared.Reading(),
    moved_files: shared.MovedFiles = None,
    without: shared.Without = None,
    log_weights: shared.LogWeights = None,
    top: int = 8,
    unchecked: shared.UncheckedReferences = False,
    quiet: shared.Quiet = False,
) -> None:
    """Write a self-contained HTML page about a posterior.

    Example: `bpa report posterior.nc --lists new.jsonl --output report.html`

    Args:
        output: Page (HTML); - for stdout.
        lists: New n-best lists, to show which choices changed, and why. With references,
            judgements or preferences, the adaptation is evaluated on them.
        top: Number of weights or other variables whose chains are drawn: those that mix worst.
    """
    from bpa_ppl.decoding.improvement import report_page

    of_lists: dict[str, Any] = {
        "moved_files": moved_files,
        "without": without,
        "unchecked": unchecked,
    }
    shared.require_with("--lists", lists, reading=reading, **of_lists)
    draws = open_to_show(posterior, log_weights=log_weights)
    title = f"Posterior {Path(posterior).name}"
    with name_file(posterior):
        adaptation = AdaptationRecord.of(draws.record)
    keep_recorded_files(adaptation, output=output)
    new = None
    if lists is not None:
        roles = roles_for(as_weight_draws(draws))
        new = reading.of_recorded(adaptation, [lists]).read(lists, roles)
    html = report_page(draws, new, **of_lists, title=title, top=top)
    write_page(html, output)
    shared.echo_status(f"wrote {output}", quiet or output == "-")


def trace(
    posterior: shared.AnyPosterior,
    /,
    *,
    output: shared.OutputPath,
    html: bool = False,
    var_names: shared.VarNames = None,
    top: int | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Plot the traces of the chains, with the warm-up on grey, and the ranks of their draws.

    The posterior may be of any program. Weights are multiplied by the standard deviation of their
    feature within the adaptation lists, so that they can be compared. A page also has
    autocorrelations, effective draws as the run grows, energies and divergences.

    Example: `bpa trace posterior.nc --output trace.png`

    Args:
        output: Figure (.png, .svg or .pdf) or page (.html).
        html: Write the page next to the figure, too: trace.html for trace.png.
        top: Number of variables that are plotted, those that mix worst, without --var-names
            (default: 8).
    """
    from bpa_ppl.diagnostics.pages.traces import write_traces

    if var_names is not None and top is not None:
        raise UsageError("give --var-names or --top, not both", parameter="top", code="conflict")
    title, top = f"Traces of {Path(posterior).name}", 8 if top is None else top
    written = write_traces(
        posterior,
        output,
        var_names,
        top=top,
        title=title,
        html=html,
        show=show_standardised,
        describe=signature,
    )
    shared.echo_status(f"wrote {', '.join(map(str, written))}", quiet)


def rerank(
    nbest: shared.NBestPath,
    /,
    *,
    posterior: Annotated[shared.PosteriorPath, Parameter(alias="-p")],
    output: shared.Output = "-",
    details: Path | None = None,
    probabilities: Path | None = None,
    ask: Path | None = None,
    reading: shared.Reading = shared.Reading(),
    gaps: str = "error",
    scheduler: shared.Scheduler = None,
    quiet: shared.Quiet = False,
    **options: Unpack[shared.ChoiceOptions],
) -> None:
    """Rerank n-best lists by the posterior predictive distribution.

    Example: `bpa rerank test.nbest --posterior posterior.nc --output chosen.txt`

    Args:
        output: Chosen texts, one per line; or JSON lines if the name ends in .jsonl, which texts
            with line breaks need; - for stdout.
        details: Also write choices and probabilities: JSON lines if the name ends in .jsonl, else
            tab-separated.
        probabilities: Also write the predictive probability p(e | f) of every candidate, as JSON
            lines. Only of preferences it is the probability that a candidate is right.
        ask: Also write the lists whose choice is not sure (--ask-below, --agree), as JSON lines for
            `bpa judge`.
        gaps: For sentences without a list or without candidates: fail (error), write an empty line
            (empty), or copy the source (source) of --sources or of the lists. JSON lines have ids,
            so that without --sources nothing has to fail.
    """
    from bpa_ppl.decoding.reranker import Reranker
    from bpa_ppl.decoding.writing import AlignedTexts, has_ids, rerank_to
    from bpa_ppl.formats.references import load_sources

    draws = read_weight_draws(posterior)
    keep_recorded_files(
        draws.adaptation, output=output, details=details, probabilities=probabilities, ask=ask
    )
    arguments: dict[str, Any] = {**options, "progress": not quiet}
    reranker = Reranker(draws, **arguments)
    reading = reading.of_recorded(draws.adaptation, [nbest])
    lines = None if reading.sources is None else tuple(load_sources(reading.sources).lines)
    empty: dict[int, str | None] = {}
    first_id = resolve_format(reading.formats.format).first_id
    # The ids of JSON lines show which lists are missing.
    by_line = gaps != "error" or lines is not None or not has_ids(output)
    aligned = AlignedTexts(gaps, lines, first_id, empty) if by_line else None
    tables = reading.formats.tables(
        nbest, roles_for(draws), reading.references, reading.sources, empty=empty
    )
    files: dict[str, Any] = {"probabilities": probabilities, "ask": ask, "aligned": aligned}

    def read_again(changes: Mapping[str, Any]) -> Iterator[NBest]:
        again = replace(reading, formats=replace(reading.formats, format=changes["format"]))
        yield next(again.formats.tables(nbest, roles_for(draws)))

    try:
        with use_scheduler(scheduler):
            summary = rerank_to(tables, reranker, output, details, **files)
    except DataError as error:
        reader = resolve_format(reading.formats.format)
        raise advise(error, read_again, reader=reader) from error.__cause__
    if aligned is not None and aligned.filled:
        missing = format_count(aligned.filled, "sentence")
        shared.echo_status(f"note: {missing} without a list: {gaps} line", quiet)
    if quiet:
        return
    if summary.scores.changes or summary.baselines is not None:
        shared.print_result(summary, output)
    else:
        shared.echo_status(summary)
    if ask is not None and summary.unsure:
        command = f"bpa judge {ask} -p {posterior} -o answers.jsonl"
        shared.echo_status(f"ask about the others: {command}")


def weights(
    posterior: shared.PosteriorPath,
    /,
    *,
    output: shared.Output,
    template: Path | None = None,
    format: str = AUTO,
    domain: str | None = None,
    point: str = "mean",
    draw: int | None = None,
    unchecked: shared.Unchecked = False,
) -> None:
    """Write the posterior mean, the mode or a draw as weights for another program.

    The weights, fixed ones included, are divided by the sum of their absolute values.

    Example: `bpa weights posterior.nc --template moses.ini --output adapted.ini`

    Args:
        output: Weight file; - for stdout.
        template: moses.ini to copy, with the adapted weights filled in.
        format: dense, moses.ini or json; auto takes the ending of the file, or dense.
        domain: Of the model hierarchical: the domain of the weights (default: a new one).
        point: mean, mode or draw.
        draw: With --point draw: the number of the draw (default: 0).
    """
    shared.require_with("--point draw", point == "draw", draw=draw)
    draws = read_weight_draws(posterior)
    if not unchecked:
        refuse_unconverged(draws)
    if domain is not None:
        draws = draws.of_domain(domain)
    elif draws.domains:
        warn_user(f"these are weights of a new domain: name one of {list_names(draws.domains)}")
    chosen = draws.at_point(point, draw or 0).normalised()
    write_weights(chosen, output, template=template, format=format)

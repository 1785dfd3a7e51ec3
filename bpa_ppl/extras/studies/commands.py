"""Commands of studies: `sweep`, `tune`, `experiment`, `figures`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from bpa_ppl._runtime.workers import use_scheduler
from bpa_ppl.cli import options as shared
from bpa_ppl.cli.comparing import TestedProblem, echo_files
from bpa_ppl.components import read_value
from bpa_ppl.extras.studies.tuning.tuner import TUNERS

#: The box of the commands in `bpa --help`.
HELP_BOX = "Studies"
#: A box of the help of a command.
_DECODING = Group("Decoding again", sort_key=5)


def tune(
    nbest: shared.NBestPath,
    /,
    *,
    weights: shared.Weights,
    output: shared.OutputPath,
    reading: shared.Reading = shared.Reading(),
    columns: shared.ColumnFlags = shared.ColumnFlags(),
    tuner: Annotated[str, Parameter(help=f"{shared.format_names(TUNERS)}.")] = "mert",
    gain: Annotated[str, Parameter(allow_leading_hyphen=True)] = "bleu",
    template: Path | None = None,
    fixed: Annotated[shared.Fixed, Parameter(group=shared.PRIOR)] = None,
    defaults: Annotated[shared.Defaults, Parameter(group=shared.PRIOR)] = None,
    setting: shared.Settings = None,
    seed: int = 0,
    quiet: shared.Quiet = False,
    decoder: Annotated[str | None, Parameter(group=_DECODING)] = None,
    iterations: Annotated[int | None, Parameter(group=_DECODING)] = None,
    returned: Annotated[str | None, Parameter(name="--return", group=_DECODING)] = None,
    rounds: Annotated[Path | None, Parameter(group=_DECODING)] = None,
) -> None:
    """Re-estimate the weights by MERT, MIRA or PRO, for comparison.

    Example: `bpa tune dev.nbest -r dev.ref -w moses.ini --tuner mira -o tuned.ini`

    Args:
        output: Weight file; - for stdout.
        gain: Metric to optimise: bleu, ter, or the mean of a numeric column of the lists, such as
            comet, or -ter if lower is better.
        template: moses.ini to copy, with the new weights filled in.
        setting: Setting of the tuner, as NAME=VALUE: restarts, epochs, …
        seed: The same seed gives the same weights.
        decoder: Shell command that decodes the sentences again, with {weights} and {nbest} for
            files, and {sources} for one with the source texts.
        iterations: Maximum number of decoding runs (default: 25).
        returned: Weights to return: best (on all lists of the loop) or last (default: best).
        rounds: Folder that keeps the weights and lists of each iteration, so that the same command
            resumes after an interruption (default: OUTPUT.rounds, removed at the end).
    """
    from bpa_ppl.extras.studies.tuning.reestimation import reestimate
    from bpa_ppl.formats.streams import STANDARD, require_writable
    from bpa_ppl.formats.weight_files import write_weights
    from bpa_ppl.gains.gains import resolve
    from bpa_ppl.gains.misplaced import warn_of_misplaced

    of_loop = shared.given_options(iterations=iterations, returned=returned)
    shared.require_with("--decoder", decoder, rounds=rounds, **of_loop)
    arguments: dict[str, Any] = {
        "tuner": TUNERS.resolve(tuner, setting),  # a mistake is found before any file is read
        "gain": gain,
        "seed": seed,
        "fixed": fixed,
        "defaults": defaults,
        "progress": not quiet,
    }
    lists, canonical = reading.read(nbest, columns.roles(gain)), shared.parse_weights(weights)
    warn_of_misplaced(lists, resolve(gain, lists))
    require_writable(output)
    own_folder = None if str(output) == STANDARD else Path(f"{output}.rounds")
    if decoder is None:
        tuned = reestimate(lists, canonical, **arguments)
    else:
        from bpa_ppl.extras.studies.tuning.redecoding import Decoder, redecode

        tuned = redecode(
            lists,
            canonical,
            Decoder(decoder, template).function(lists.sources, reading.read),
            decoder=decoder,
            folder=rounds or own_folder,
            **of_loop,
            report=lambda iteration, tuned, added: shared.echo_status(
                f"iteration {iteration}: {tuned}, {added} new candidates", quiet
            ),
            **arguments,
        )
    write_weights(tuned.weights, output, template=template)
    if decoder is not None and rounds is None:
        shutil.rmtree(f"{output}.rounds", ignore_errors=True)
    shared.echo_status(tuned, quiet)


def experiment(
    study: Path,
    /,
    *,
    output: Annotated[shared.OutputPath, Parameter(metavar="FOLDER")],
    jobs: int = 1,
    scheduler: shared.Scheduler = None,
    quiet: shared.Quiet = False,
) -> None:
    """Compare methods over numbers of adaptation sentences (learning curves).

    Example: `bpa experiment study.toml --output results`

    Args:
        study: Study file (TOML). A shell runs its decoder command, if it has one.
        output: Folder of the results; an unfinished run resumes.
        jobs: Number of processes; -1 uses every core.
    """
    from bpa_ppl.extras.studies.running import run_study
    from bpa_ppl.extras.studies.study import read_study

    with use_scheduler(scheduler):
        written = run_study(read_study(study.absolute()), output, jobs=jobs, progress=not quiet)
    shared.echo_status(f"wrote {written}: run `bpa figures {output}` to plot it", quiet)


def _parse_grid(pairs: Iterable[str]) -> dict[str, list[float]]:
    """Read the values of settings, `NAME=VALUE,VALUE`.

    >>> _parse_grid(["proposal_variance=0.001,0.01", "warmup=0"])
    {'proposal_variance': [0.001, 0.01], 'warmup': [0]}

    Raises:
        UsageError: if one is not of this form.
    """
    parts = (pair.partition("=") for pair in pairs)
    return {
        name: [read_value(value) for value in values.split(",") if value]
        for name, _, values in parts
    }


def sweep(
    nbest: shared.NBestPath,
    /,
    *,
    weights: shared.Weights,
    output: Annotated[shared.OutputPath, Parameter(metavar="FOLDER")],
    values: Annotated[
        Any,
        shared.make_parameter(
            _parse_grid,
            "Values of a setting of the sampler, the likelihood or the prior, as "
            "NAME=VALUE,VALUE. The first setting is the x axis of the figure.",
            several=True,
            name="--vary",
            metavar="NAME=VALUE,VALUE...",
        ),
    ],
    problem: TestedProblem = TestedProblem(),
    sampler: str = "rwm-isotropic",
    runs: Annotated[int, Parameter(group=shared.SAMPLING)] = 4,
    setting: Annotated[shared.Settings, Parameter(group=shared.SAMPLING)] = None,
    jobs: Annotated[int, Parameter(group=shared.SAMPLING)] = 1,
    scheduler: Annotated[shared.Scheduler, Parameter(group=shared.SAMPLING)] = None,
    seed: Annotated[int, Parameter(group=shared.SAMPLING)] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Run a sampler over values of settings: R-hat, acceptance, ESS, and held-out scores.

    Example: `bpa sweep dev.nbest -r dev.ref -w moses.ini --vary draws=500,2000 -o sweep`

    Args:
        output: Folder of the table and the figure.
        sampler: Name of the sampler.
        runs: Runs of each combination of values, with different seeds.
        setting: Other setting of the sampler, as NAME=VALUE.
        jobs: Number of processes; -1 uses every core.
        seed: Seed of the first run.
    """
    from bpa_ppl.extras.studies import sweeps

    with use_scheduler(scheduler):
        result = sweeps.sweep(
            problem.read(nbest),
            shared.parse_weights(weights),
            sampler,
            values,
            runs=runs,
            seed=seed,
            jobs=jobs,
            settings=setting,
            progress=not quiet,
            test=problem.read_test(),
            **problem.arguments(),
        )
    print(result)
    written = sweeps.write_sweep(result, output)
    shared.echo_status(f"wrote {', '.join(map(str, written))}", quiet)


def figures(results: Path, /, *, kind: str = "png", quiet: shared.Quiet = False) -> None:
    """Plot learning curves: figures, tables, and a self-contained HTML page.

    Example: `bpa figures results --kind pdf`

    Args:
        results: Folder of results of `bpa experiment`.
        kind: Figure files: png, pdf or none.
    """
    from bpa_ppl.extras.studies.page import write_figures

    echo_files(write_figures(results, kind=kind), quiet)

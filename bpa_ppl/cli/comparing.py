"""`bpa compare` and `bpa calibrate`: samplers and posteriors, compared and tested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.workers import use_scheduler
from bpa_ppl.cli import options as shared
from bpa_ppl.errors import BpaError, NotConverged, UsageError, wrong_value
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS

#: Boxes of the help of a command.
_MODEL = Group("A NumPyro model", sort_key=0)
_TEST = Group("Lists to rerank", sort_key=5)


def _parse_names(samplers: Iterable[str]) -> list[str]:
    """Read names that are separated by commas, in one text or several.

    >>> _parse_names(["imh, nuts", "rwm"])
    ['imh', 'nuts', 'rwm']

    Raises:
        UsageError: if there is none.
    """
    names = [name.strip() for name in ",".join(samplers).split(",") if name.strip()]
    if not names:
        raise UsageError("give the names of one or more samplers, separated by commas")
    return names


def _parse_settings(pairs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read `SAMPLER.NAME=VALUE` options: the settings of each sampler.

    >>> _parse_settings(["rwm.draws=500", "rwm.warmup=0"])
    {'rwm': {'draws': 500, 'warmup': 0}}

    Raises:
        UsageError: if one is not of this form.
    """
    settings: dict[str, dict[str, Any]] = {}
    for key, value in shared.parse_assignments(pairs).items():
        sampler, dot, name = key.partition(".")
        if not (sampler and dot and name):
            raise wrong_value("expected SAMPLER.NAME=VALUE", key)
        settings.setdefault(sampler, {})[name] = value
    return settings


_SamplerSettings = Annotated[
    dict[str, Any] | None,
    shared.make_parameter(
        _parse_settings,
        "Setting of a sampler, as SAMPLER.NAME=VALUE: rwm.draws=500.",
        several=True,
        name="--set",
        group=shared.SAMPLING,
    ),
]


@Parameter(name="*", group=_MODEL)
@dataclass(frozen=True, kw_only=True)
class _Program:
    """A program and its data.

    Args:
        model: NumPyro program, as module:function or FILE.py:function; in `bpa compare`, a
            posterior that is given, too, is the reference in place of a long run.
        data: Arguments of the program: a JSON object, whose lists become arrays.
    """

    model: str | None = None
    data: Path | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Runs:
    """How samplers are run: arguments of `compare_samplers`, which has the defaults.

    Args:
        samplers: Names of samplers, separated by commas (default: heuristic, rwm-isotropic, rwm,
            imh, nuts, laplace on lists; rwm, imh, nuts, laplace on a model).
        runs: Runs of each sampler, with different seeds (default: 4).
        max_seconds: No run begins later; the runs that have ended are compared.
        reference: Sampler of the long reference run (default: nuts).
        reference_draws: Draws of each of the four chains of the reference run (default: 5000).
        others: Also compare a posterior of the same data, as NAME=FILE, or its runs, as
            NAME=FILE,FILE. An attribute sampling_time, in seconds, gives its cost.
    """

    samplers: Annotated[Any, shared.make_parameter(_parse_names, several=True)] = None
    others: Annotated[
        dict[str, Any] | None,
        shared.make_parameter(shared.parse_moved_files, several=True, name="--posterior"),
    ] = None
    runs: Annotated[int | None, Parameter(group=shared.SAMPLING)] = None
    max_seconds: Annotated[float | None, Parameter(group=shared.SAMPLING)] = None
    reference: Annotated[
        str | None, Parameter(name="--reference-sampler", group=shared.SAMPLING)
    ] = None
    reference_draws: Annotated[int | None, Parameter(group=shared.SAMPLING)] = None
    settings: _SamplerSettings = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Problem:
    """What samplers run on.

    Args:
        prior: Prior of the weights, as for `bpa adapt`.
    """

    references: shared.References = None
    prior: Annotated[str, Parameter(group=shared.PRIOR)] = "isotropic:variance=0.1"
    likelihood: Annotated[shared.Likelihood, Parameter(group=shared.OBSERVED)] = None
    gain: Annotated[shared.Gain, Parameter(group=shared.OBSERVED)] = None
    unchecked: Annotated[shared.Unchecked, Parameter(group=shared.PRIOR)] = False
    formats: shared.FormatFlags = shared.FormatFlags()
    columns: shared.ColumnFlags = shared.ColumnFlags()

    def read(self, nbest: str) -> NBest:
        """Return the lists."""
        return self.formats.read(nbest, self.references, roles=self.columns.roles(self.gain))

    def describe(self, weights: str | None) -> dict[str, str]:
        """Return the weights and the prior as they were given, for the provenance of a page."""
        return {"weights": str(weights), "prior": self.prior}

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments of `adapt`."""
        prior = shared.parse_prior(self.prior, unchecked=self.unchecked)
        return {"prior": prior, "likelihood": self.likelihood, "gain": self.gain}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TestedProblem(_Problem):
    """What samplers run on, and the lists that their posteriors rerank.

    Args:
        test: Lists to rerank with each posterior, for scores (default: in `bpa compare`, the
            adaptation lists).
        test_references: References of the --test lists.
    """

    test: Annotated[str | None, Parameter(group=_TEST)] = None
    test_references: Annotated[list[Path] | None, Parameter(group=_TEST)] = None

    def read_test(self) -> NBest | None:
        """Return the lists to rerank, if they are given."""
        shared.require_with("--test", self.test, test_references=self.test_references)
        if self.test is None:
            return None
        roles = self.columns.roles(self.gain)
        return self.formats.read(self.test, self.test_references, roles=roles)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _SimulatedProblem(_Problem):
    """What observations are simulated from.

    Args:
        likelihood: Likelihood that observations are simulated from, with its settings: oracle,
            preference for lists with preferences, or a registered one that is a distribution.
    """

    likelihood: Annotated[
        Any, shared.make_parameter(LIKELIHOODS.resolve, group=shared.OBSERVED)
    ] = "oracle"


def _label_posteriors(files: Iterable[str]) -> dict[str, str]:
    """Return files by the labels of `NAME=FILE`, or by their own names.

    >>> _label_posteriors(["stan=output_*.csv", "b.nc"])
    {'stan': 'output_*.csv', 'b.nc': 'b.nc'}

    Raises:
        UsageError: if two have the same name.
    """
    result: dict[str, str] = {}
    for file in files:
        name, equals, path = file.partition("=")
        name, path = (name, path) if equals and not Path(file).exists() else (file, file)
        if name in result:
            problem = f"two posteriors are called {name}: give them labels, NAME=FILE"
            raise UsageError(problem, parameter="posteriors", code="duplicate")
        result[name] = path
    return result


def _check_inputs(
    nbest: str | None, posteriors: Sequence[str], weights: str | None, model: str | None
) -> None:
    """Refuse what is neither posteriors, nor a model, nor lists with weights.

    Raises:
        UsageError: if too little is given, or what does not belong together.
    """
    if model is None and nbest is None:
        message = "give posteriors, or n-best lists with weights, or a --model"
        raise UsageError(message, code="missing-argument")
    if weights is not None and (posteriors or model is not None):
        message = "posteriors and models have no canonical weights: leave out the weights"
        raise UsageError(message, parameter="weights", code="conflict")
    if model is not None and posteriors:
        message = "a model has one reference: give the other posteriors as --posterior NAME=FILE"
        raise UsageError(message, parameter="model", code="conflict")
    if model is None and not posteriors and weights is None:
        message = f"{nbest} alone: give weights (or none) to n-best lists, or a second posterior"
        raise UsageError(message, parameter="weights")


def compare(
    nbest: Annotated[
        str | None,
        Parameter(help="N-best lists to run samplers on, or a posterior, as FILE or NAME=FILE."),
    ] = None,
    /,
    *posteriors: Annotated[
        str, Parameter(help="More posteriors of any program; the last one is the reference.")
    ],
    weights: shared.Weights | None = None,
    output: shared.OutputPath | None = None,
    program: _Program = _Program(),
    problem: TestedProblem = TestedProblem(),
    var_names: list[str] | None = None,
    log_weights: shared.LogWeights = None,
    bias: float = 0.1,
    no_reference: Annotated[bool, Parameter(negative=())] = False,
    running: _Runs = _Runs(),
    seed: Annotated[int, Parameter(group=shared.SAMPLING)] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Compare posteriors of any program, or samplers on a NumPyro model or on n-best lists.

    `bpa compare a.nc b.nc` says whether the draws of a.nc agree with those of b.nc, in all
    continuous variables. Files are NetCDF, CSV with the columns chain and draw, or CSV of Stan: a
    quoted pattern, such as stan='output_*.csv', names all chains of a run. Exit with 3 if they do
    not, or if only one has some of the variables and --var-names does not choose. With --model, or
    with lists, samplers are run, and compared with a long run: cost and errors, and choices from
    lists. A sampler that fails does not stop the others; exit with 2 if there is one. After Ctrl-C,
    the runs that have ended are compared.

    Example: `bpa compare --model schools:model --data schools.json -o comparison`

    Args:
        output: Folder of the page and the tables.
        var_names: Of posteriors and models, the variable to compare.
        no_reference: Compare each posterior with all others, pooled, without a reference.
        bias: Largest bias of a mean that agrees, in posterior sd, at most 0.1; a smaller one takes
            more draws, and the reason says how many.
        seed: Seed of the first run.
    """
    from bpa_ppl.diagnostics.samplers import comparison as comparing
    from bpa_ppl.diagnostics.samplers import from_files
    from bpa_ppl.diagnostics.samplers.comparison_page import write_comparison
    from bpa_ppl.formats.streams import output_folder

    shared.require_with("--model", program.model, data=program.data)
    shared.require_with("--weights", weights, problem=problem)
    shared.require_with("--weights or --model", weights or program.model, running=running)
    shared.require_with("POSTERIORS or --model", posteriors or program.model, var_names=var_names)
    of_posteriors = {"log_weights": log_weights, "no_reference": no_reference}
    shared.require_with("POSTERIORS", posteriors, **of_posteriors)
    _check_inputs(nbest, posteriors, weights, program.model)
    options: dict[str, Any] = {"bias": bias, "seed": seed}
    of_runs = {**options, **shared.given_options(running=running), "progress": not quiet}
    with nullcontext() if output is None else output_folder(output):
        if posteriors:
            files = _label_posteriors((str(nbest), *posteriors))
            chosen: dict[str, Any] = {"var_names": var_names, "log_weights": log_weights}
            comparison, provenance = from_files.compare_files(
                files, with_reference=not no_reference, **chosen, **options
            )
        elif program.model is not None:
            comparison, provenance = from_files.compare_program(
                program.model, program.data, reference_file=nbest, var_names=var_names, **of_runs
            )
        else:
            start = shared.parse_start(str(weights))
            test, lists = problem.read_test(), problem.read(str(nbest))
            comparison, provenance = from_files.compare_on_lists(
                lists, start, problem.arguments(), test=test, **of_runs
            )
            described = {"adaptation lists": str(nbest), **problem.describe(weights)}
            provenance = {**described, **provenance}
        print(comparison)
        if output is not None:
            command = shared.command_line()
            echo_files(
                write_comparison(comparison, output, provenance=provenance, command=command), quiet
            )
    verdicts = {result.verdict for result in comparison.samplers}
    if comparison.stopped.startswith("interrupted"):
        raise KeyboardInterrupt
    if comparing.FAILED in verdicts:
        raise SystemExit(BpaError.exit_code)
    if posteriors and verdicts != {comparing.AGREES}:
        raise SystemExit(NotConverged.exit_code)


def calibrate(
    nbest: shared.NBestPath | None = None,
    /,
    *,
    weights: shared.Weights | None = None,
    program: _Program = _Program(),
    problem: _SimulatedProblem = _SimulatedProblem(),
    samplers: Annotated[
        Any,
        shared.make_parameter(
            _parse_names, "Names of samplers, separated by commas.", several=True
        ),
        Parameter(show_default=",".join),
    ] = ("imh", "laplace", "nuts", "rwm"),
    output: shared.OutputPath | None = None,
    replications: int = 200,
    max_seconds: Annotated[float | None, Parameter(group=shared.SAMPLING)] = None,
    settings: _SamplerSettings = None,
    jobs: Annotated[int, Parameter(group=shared.SAMPLING)] = 1,
    scheduler: Annotated[shared.Scheduler, Parameter(group=shared.SAMPLING)] = None,
    seed: Annotated[int, Parameter(group=shared.SAMPLING)] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Simulation-based calibration of samplers; exit with 3 if one is not calibrated.

    Data are simulated from a NumPyro model (--model), or oracles or answers of n-best lists.

    Example: `bpa calibrate dev.nbest -w moses.ini --samplers imh,nuts -o calibration.html`

    Args:
        output: Page (HTML), or the numbers if it ends in .json.
        replications: Number of simulated data sets for each sampler.
        max_seconds: No replication begins later; those that have ended are ranked.
        jobs: Number of threads.
        seed: The same seed gives the same ranks.
    """
    from bpa_ppl.diagnostics.samplers import from_files
    from bpa_ppl.diagnostics.samplers.calibration import write_calibrations

    if (program.model is None) == (nbest is None):
        message = "give n-best lists with weights, or a --model with its --data"
        raise UsageError(message, parameter="model", code="conflict")
    shared.require_with("--model", program.model, data=program.data)
    shared.require_with("--weights", weights, problem=problem)
    options: dict[str, Any] = {"samplers": samplers, "settings": settings, "seed": seed}
    options |= {"replications": replications, "jobs": jobs, "progress": not quiet}
    options["max_seconds"] = max_seconds
    if program.model is not None:
        calibrations, provenance = from_files.calibrate_program(
            program.model, program.data, **options
        )
    elif weights is None:
        message = "give the canonical weights, or none, to start without"
        raise UsageError(message, parameter="weights", code="missing-argument")
    else:
        lists, start = problem.read(str(nbest)), shared.parse_start(weights)
        calibrations, provenance = from_files.calibrate_on_lists(
            lists, start, problem.arguments(), **options
        )
        provenance = {"lists": str(nbest), **problem.describe(weights), **provenance}
    results = []
    with use_scheduler(scheduler):
        for one in calibrations:
            print(one)
            results.append(one)
    if output is not None:
        write_calibrations(results, output, provenance=provenance, command=shared.command_line())
    if not all(results):
        raise SystemExit(NotConverged.exit_code)


def echo_files(written: list[Path], quiet: bool) -> None:
    """Log the name of the first written file, and the number of the others."""
    others = format_count(len(written) - 1, "more file")
    shared.echo_status(f"wrote {written[0]} and {others}", quiet)

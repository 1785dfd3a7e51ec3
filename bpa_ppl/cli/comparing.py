"""`bpa compare` and `bpa calibrate`: samplers and posteriors, compared and tested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.workers import use_scheduler
from bpa_ppl.cli import options as shared
from bpa_ppl.errors import BpaError, NotConverged, UsageError, wrong_value
from bpa_ppl.samplers.sampler import SAMPLERS

if TYPE_CHECKING:
    from bpa_ppl.diagnostics.samplers.comparison import Comparison

#: Boxes of the help of a command.
_MODEL = Group("A NumPyro model", sort_key=0)
#: The samplers that run by default.
_SAMPLERS = ("rwm", "imh", "nuts", "laplace")
#: Packages whose versions the results depend on, and those that may be installed.
_VERSIONS = ("bpa_ppl", "numpyro", "jax")
_OTHERS = ("arviz", "blackjax", "nutpie")


def _parse_settings(pairs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read `SAMPLER.NAME=VALUE` options: the settings of each sampler.

    >>> _parse_settings(["rwm.draws=500", "rwm.warmup=0"])
    {'rwm': {'draws': 500, 'warmup': 0}}

    Raises:
        UsageError: if one is not of this form.
    """
    settings: dict[str, dict[str, Any]] = {}
    for key, value in shared.parse_assignments(shared.split_names(pairs)).items():
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

    def read(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return the program and its keyword arguments."""
        from bpa_ppl.diagnostics.samplers.programs import read_program

        return read_program(str(self.model), self.data)

    def describe(self, seed: int, settings: Mapping[str, Any] | None) -> dict[str, str]:
        """Return the provenance of runs of samplers on the program, for a page."""
        packages = (*_VERSIONS, *filter(find_spec, _OTHERS))
        values = [f"{s}.{n}={x}" for s, of in (settings or {}).items() for n, x in of.items()]
        return {
            "model": str(self.model),
            "data": str(self.data or "none"),
            "seed": str(seed),
            "settings": ", ".join(values) or "the defaults",
            **{f"version of {name}": version(name) for name in packages},
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class _Runs:
    """How samplers are run: arguments of `compare_samplers`, which has the defaults.

    Args:
        samplers: Names of samplers, with settings as in nuts:warmup=500,draws=1000 (default: rwm,
            imh, nuts, laplace).
        runs: Runs of each sampler, with different seeds (default: 4).
        max_seconds: No run begins later; the runs that have ended are compared.
        reference: Sampler of the long reference run (default: nuts).
        reference_draws: Draws of each of the four chains of the reference run (default: 5000).
        others: Also compare a posterior of the same data, as NAME=FILE, or its runs, as
            NAME=FILE,FILE. An attribute sampling_time, in seconds, gives its cost.
    """

    samplers: Annotated[Any, shared.make_names_parameter(registry=SAMPLERS)] = None
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


def compare(
    *posteriors: Annotated[
        str, Parameter(help="Posteriors of any program, as FILE or NAME=FILE; the reference last.")
    ],
    output: shared.OutputPath | None = None,
    program: _Program = _Program(),
    var_names: Annotated[list[str] | None, shared.make_names_parameter()] = None,
    log_weights: shared.LogWeights = None,
    bias: float = 0.1,
    no_reference: Annotated[bool, Parameter(negative=())] = False,
    running: _Runs = _Runs(),
    seed: Annotated[int, Parameter(group=shared.SAMPLING)] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Compare posteriors of any program, or samplers on a NumPyro model.

    `bpa compare a.nc b.nc` says whether the draws of a.nc agree with those of b.nc, in all
    continuous variables. Files are NetCDF, CSV with the columns chain and draw, or CSV of Stan: a
    quoted pattern, such as stan='output_*.csv', names all chains of a run. Exit with 3 if they do
    not, or if only one has some of the variables and --var-names does not choose. With --model,
    samplers are run, and compared with a long run, or with a posterior that is given. A sampler
    that fails does not stop the others; exit with 2 if there is one. After Ctrl-C, the runs that
    have ended are compared.

    Example: `bpa compare --model schools:model --data schools.json -o comparison`

    Args:
        output: Folder of the page and the tables.
        var_names: Variables to compare: one or more names, after POSTERIORS.
        no_reference: Compare each posterior with all others, pooled, without a reference.
        bias: Largest bias of a mean that agrees, in posterior sd, at most 0.1; a smaller one takes
            more draws, and the reason says how many.
        seed: Seed of the first run.
    """
    from bpa_ppl._runtime.streams import output_folder
    from bpa_ppl.diagnostics.samplers import comparison as comparing
    from bpa_ppl.diagnostics.samplers.comparison_page import write_comparison

    shared.require_with("--model", program.model, data=program.data, running=running)
    if program.model is not None and (no_reference or log_weights is not None):
        message = "a model needs neither --no-reference nor --log-weights: leave them out"
        raise UsageError(message, parameter="model", code="conflict")
    options: dict[str, Any] = {"var_names": var_names, "bias": bias, "seed": seed}
    with nullcontext() if output is None else output_folder(output):
        if program.model is None:
            options |= {"log_weights": log_weights, "with_reference": not no_reference}
            comparison, provenance = _compare_files(posteriors, options)
        else:
            options |= {**shared.given_options(running=running), "progress": not quiet}
            comparison, provenance = _compare_samplers(program, posteriors, options)
        print(comparison)
        if output is not None:
            command = shared.command_line()
            written = write_comparison(comparison, output, provenance=provenance, command=command)
            others = format_count(len(written) - 1, "more file")
            shared.echo_status(f"wrote {written[0]} and {others}", quiet)
    verdicts = {result.verdict for result in comparison.samplers}
    if comparison.stopped.startswith("interrupted"):
        raise KeyboardInterrupt
    if comparing.FAILED in verdicts:
        raise SystemExit(BpaError.exit_code)
    if program.model is None and verdicts != {comparing.AGREES}:
        raise SystemExit(NotConverged.exit_code)


def _compare_files(
    posteriors: Sequence[str], options: dict[str, Any]
) -> tuple[Comparison, dict[str, str]]:
    """Compare posteriors in files; return the comparison, and its provenance for a page."""
    from bpa_ppl.diagnostics.samplers import comparison as comparing

    if len(posteriors) < 2:
        message = "give two or more posteriors, or a --model"
        raise UsageError(message, code="missing-argument")
    named = _label_posteriors(posteriors)
    reference = dict([named.popitem()]) if options.pop("with_reference") else None
    comparison = comparing.compare(named, reference, **options)
    last = "none" if reference is None else ", ".join(reference.values())
    paths = ", ".join(named.values())
    seed = str(options["seed"])
    return comparison, {"posteriors": paths, "reference file": last, "seed": seed}


def _compare_samplers(
    program: _Program, posteriors: Sequence[str], options: dict[str, Any]
) -> tuple[Comparison, dict[str, str]]:
    """Run samplers on a program and compare them; return as `_compare_files`."""
    from bpa_ppl.diagnostics.samplers.running import compare_samplers

    if len(posteriors) > 1:
        message = "a model has one reference: give the other posteriors as --posterior NAME=FILE"
        raise UsageError(message, parameter="model", code="conflict")
    for reference in posteriors:
        if not options.keys().isdisjoint(("reference", "reference_draws")):
            message = f"{reference} is the reference: leave out the options of a long run"
            raise UsageError(message, parameter="reference", code="conflict")
        options["reference"] = reference
    model, arguments = program.read()
    comparison = compare_samplers(model, (), arguments, **{"samplers": _SAMPLERS, **options})
    return comparison, program.describe(options["seed"], options.get("settings"))


def calibrate(
    *,
    program: _Program = _Program(),
    samplers: Annotated[
        Any,
        shared.make_names_parameter("Names of samplers.", SAMPLERS, show_default=",".join),
    ] = _SAMPLERS,
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

    Data are simulated from a NumPyro model.

    Example: `bpa calibrate --model schools:model --data schools.json --samplers imh,nuts`

    Args:
        output: Page (HTML), or the numbers if it ends in .json.
        replications: Number of simulated data sets for each sampler.
        max_seconds: No replication begins later; those that have ended are ranked.
        jobs: Number of threads.
        seed: The same seed gives the same ranks.
    """
    from bpa_ppl.diagnostics.samplers.calibration import (
        calibrate_each,
        make_program_simulation,
        write_calibrations,
    )
    from bpa_ppl.diagnostics.samplers.running import resolve_samplers

    if program.model is None:
        message = "give a NumPyro model, as module:function or FILE.py:function"
        raise UsageError(message, parameter="model", code="missing-argument")
    engines = resolve_samplers(samplers, settings)
    model, arguments = program.read()
    calibrations = calibrate_each(
        make_program_simulation(model, (), arguments),
        engines,
        replications=replications,
        seed=seed,
        jobs=jobs,
        max_seconds=max_seconds,
        progress=not quiet,
    )
    results = []
    with use_scheduler(scheduler):
        for one in calibrations:
            print(one)
            results.append(one)
    if output is not None:
        provenance = program.describe(seed, settings)
        write_calibrations(results, output, provenance=provenance, command=shared.command_line())
    if not all(results):
        raise SystemExit(NotConverged.exit_code)

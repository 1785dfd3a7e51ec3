"""`bpa compare` and `bpa calibrate`: samplers and posteriors, compared and tested."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from bpa_ppl._runtime.messages import format_count
from bpa_ppl.cli import options as shared
from bpa_ppl.cli.models import read_arguments, read_model
from bpa_ppl.cli.needs import Needs
from bpa_ppl.cli.outputs import Written
from bpa_ppl.errors import BpaError, NotConverged, UsageError
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.samplers.sampler import SAMPLERS

if TYPE_CHECKING:
    from bpa_ppl.densities.target import Target

#: Boxes of the help of a command.
_MODEL = Group("A NumPyro model", sort_key=0)
_TEST = Group("Lists to rerank", sort_key=5)
#: Marks options of lists, and of what samplers are run on; the others compare posteriors.
_OF_LISTS_ONLY, _OF_RUNS = Needs(("weights",)), Needs(("weights", "model"))
_OF_POSTERIORS = Needs(("posteriors",))
#: The samplers that are compared by default: on n-best lists, and on other models.
_OF_LISTS = ("heuristic", "rwm-isotropic", "rwm", "imh", "nuts", "laplace")
_OF_MODELS = ("rwm", "imh", "nuts", "laplace")
_LONG_RUN = ("nuts", 5000)  # the sampler, and draws of a chain, of the reference
#: Packages whose versions the results depend on.
_VERSIONS = ("bpa_ppl", "numpyro", "jax", "sacrebleu")
#: Packages of extras that may be installed.
_OTHERS = ("arviz", "blackjax", "nutpie")


def in_folder(*names: str) -> Written:
    """Return the mark of an output that is a folder with some files."""
    return Written(lambda folder: [folder / name for name in names])


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


def _split_settings(samplers: Iterable[str], values: dict[str, Any] | None) -> dict[str, Any]:
    """Divide the values of `SAMPLER.NAME=VALUE` options into the settings of each sampler.

    >>> _split_settings(["imh", "rwm"], {"rwm.draws": 500})
    {'imh': {}, 'rwm': {'draws': 500}}

    Raises:
        UsageError: if an option is not of this form, or its sampler is not among those that run.
    """
    settings: dict[str, dict[str, Any]] = {name: {} for name in samplers}
    for key, value in (values or {}).items():
        sampler, dot, name = key.partition(".")
        if not dot or sampler not in settings:
            names = ", ".join(settings)
            problem = f"expected SAMPLER.NAME=VALUE, with SAMPLER one of {names}, not {key!r}"
            raise UsageError(problem, parameter="setting")
        settings[sampler][name] = value
    return settings


Samplers = Annotated[Any, shared.make_parameter(_parse_names, several=True)]
_SamplerSettings = Annotated[
    dict[str, Any] | None,
    shared.make_parameter(
        shared.parse_assignments,
        "Setting of a sampler, as SAMPLER.NAME=VALUE: rwm.draws=500.",
        several=True,
        name="--set",
    ),
]


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
    test_references: Annotated[list[Path] | None, Parameter(group=_TEST), Needs(("test",))] = None

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments of `compare_samplers` and of `sweep`."""
        roles = self.columns.roles(self.gain)
        test = None
        if self.test is not None:
            test = self.formats.read(self.test, self.test_references, roles=roles)
        return {"test": test, **super().arguments()}


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
    nbest: str | None,
    posteriors: Sequence[str],
    weights: str | None,
    model: str | None,
) -> None:
    """Refuse what is neither posteriors, nor a model, nor lists with weights.

    Raises:
        UsageError: if too little is given, or what does not belong together.
    """
    if model is None and nbest is None:
        message = "give posteriors, or n-best lists with weights, or a --model"
        raise UsageError(message, code="missing-argument")
    if weights is not None and (posteriors or model is not None):
        problem = "posteriors and models have no canonical weights: leave the weights out"
        raise UsageError(problem, parameter="weights", code="conflict")
    if model is not None and posteriors:
        message = "a model has one reference: give the other posteriors as --posterior NAME=FILE"
        raise UsageError(message, parameter="model", code="conflict")
    if model is None and not posteriors and weights is None:
        message = f"{nbest} alone: give weights (none, to start without) if these are n-best lists"
        raise UsageError(f"{message}, or a second posterior", parameter="weights")


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
    output: Annotated[shared.OutputPath, in_folder("index.html", "comparison.json")] | None = None,
    model: Annotated[shared.Word | None, Parameter(group=_MODEL)] = None,
    data: Annotated[Path | None, Parameter(group=_MODEL), Needs(("model",))] = None,
    problem: Annotated[TestedProblem, _OF_LISTS_ONLY] = TestedProblem(),
    var_names: Annotated[list[str] | None, Needs(("posteriors", "model"))] = None,
    log_weights: Annotated[str | None, _OF_POSTERIORS] = None,
    bias: float = 0.1,
    no_reference: Annotated[bool, Parameter(negative=()), _OF_POSTERIORS] = False,
    samplers: Annotated[Samplers, _OF_RUNS] = None,
    runs: Annotated[int, Parameter(group=shared.SAMPLING), _OF_RUNS] = 4,
    reference_sampler: Annotated[str, Parameter(group=shared.SAMPLING), _OF_RUNS] = _LONG_RUN[0],
    reference_draws: Annotated[int, Parameter(group=shared.SAMPLING), _OF_RUNS] = _LONG_RUN[1],
    posterior: Annotated[
        dict[str, Any] | None,
        shared.make_parameter(shared.parse_moved_files, several=True),
        _OF_RUNS,
    ] = None,
    setting: Annotated[_SamplerSettings, Parameter(group=shared.SAMPLING), _OF_RUNS] = None,
    seed: Annotated[int, Parameter(group=shared.SAMPLING)] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Compare posteriors of any program, or samplers on a NumPyro model or on n-best lists.

    `bpa compare a.nc b.nc` says whether the draws of a.nc agree with those of b.nc, in all
    continuous variables. Files are NetCDF, or CSV of CmdStan: a quoted pattern, such as
    stan='output_*.csv', names all chains of a run. Exit with 3 if they do not, or if only one has
    some of the variables and --var-names does not choose. With --model, or with lists, samplers are
    run, and compared with a long run: cost and errors, and choices from lists. A sampler that fails
    does not stop the others; exit with 2 if there is one.

    Example: `bpa compare --model schools:model --data schools.json -o comparison`

    Args:
        output: Folder of the page and the tables.
        model: NumPyro program to run samplers on, as module:function; a posterior that is given,
            too, is the reference in place of a long run.
        data: Arguments of the program: a JSON object, whose lists become arrays.
        var_names: Of posteriors and models, the variable to compare.
        log_weights: Of posteriors, the variable with the logarithms of importance weights, or none.
        no_reference: Compare each posterior with all others, pooled, without a reference.
        bias: Largest bias of a mean that agrees, in posterior sd, at most 0.1; a smaller one takes
            more draws, and the reason says how many.
        samplers: Names of samplers, separated by commas (default: heuristic, rwm-isotropic, rwm,
            imh, nuts, laplace on lists; rwm, imh, nuts, laplace on a model).
        runs: Runs of each sampler, with different seeds.
        reference_sampler: Sampler of the long reference run.
        reference_draws: Draws of each of the four chains of the reference run.
        posterior: Also compare a posterior of the same data, as NAME=FILE, or its runs, as
            NAME=FILE,FILE. An attribute sampling_time, in seconds, gives its cost.
        seed: Seed of the first run.
    """
    from bpa_ppl.adapting.adapt import log_density
    from bpa_ppl.diagnostics.samplers import comparison as comparing
    from bpa_ppl.diagnostics.samplers.comparison_page import write_comparison
    from bpa_ppl.diagnostics.samplers.running import compare_samplers
    from bpa_ppl.formats.streams import output_folder
    from bpa_ppl.posterior.files import read_draws

    _check_inputs(nbest, posteriors, weights, model)
    chosen = samplers or (_OF_LISTS if model is None else _OF_MODELS)
    settings = _split_settings(chosen, setting)
    running: dict[str, Any] = {
        "runs": runs,
        "seed": seed,
        "reference": reference_sampler,
        "reference_draws": reference_draws,
        "settings": settings,
        "bias": bias,
        "progress": not quiet,
    }
    with nullcontext() if output is None else output_folder(output):
        if posteriors:
            named = _label_posteriors((str(nbest), *posteriors))
            reference = None if no_reference else dict([named.popitem()])
            comparison = comparing.compare(
                named, reference, var_names=var_names, log_weights=log_weights, bias=bias, seed=seed
            )
            last = "none" if reference is None else ", ".join(reference.values())
            files = ", ".join(named.values())
            made = {"posteriors": files, "reference file": last, "seed": str(seed)}
        elif model is not None:
            program = read_model(model)
            arguments = {} if data is None else read_arguments(data, program)
            if nbest is not None:
                if (reference_sampler, reference_draws) != _LONG_RUN:
                    message = f"{nbest} is the reference: leave out the options of a long run"
                    raise UsageError(message, parameter="reference_sampler", code="conflict")
                running["reference"] = nbest
            others = {name: list(paths) for name, paths in (posterior or {}).items()}
            running |= {"others": others, "var_names": var_names}
            comparison = compare_samplers(program, (), arguments, samplers=chosen, **running)
            made = {"model": model, "data": str(data or "none"), **_list_runs(seed, settings)}
        else:
            canonical, lists = str(weights), problem.read(str(nbest))
            options = problem.arguments()
            test = options.pop("test")
            target = log_density(
                lists, shared.parse_start(canonical), sampler=reference_sampler, **options
            )
            given = {
                name: list(map(read_draws, paths)) for name, paths in (posterior or {}).items()
            }
            running |= {"others": given, "test": lists if test is None else test}
            comparison = compare_samplers(target, samplers=chosen, **running)
            made = {
                "adaptation lists": str(nbest),
                "likelihood": _in_words(problem.likelihood, "the default for the metric"),
                "oracle metric": str(problem.gain or _default_gain(target)),
                **_provenance(canonical, problem.prior, seed, settings),
            }
        print(comparison)
        if output is not None:
            command = shared.command_line()
            echo_files(write_comparison(comparison, output, made=made, command=command), quiet)
    verdicts = {result.verdict for result in comparison.samplers}
    if comparing.FAILED in verdicts:
        raise SystemExit(BpaError.exit_code)
    if posteriors and verdicts != {comparing.AGREES}:
        raise SystemExit(NotConverged.exit_code)


def calibrate(
    nbest: shared.NBestPath | None = None,
    /,
    *,
    weights: shared.Weights | None = None,
    model: Annotated[shared.Word | None, Parameter(group=_MODEL)] = None,
    data: Annotated[Path | None, Parameter(group=_MODEL), Needs(("model",))] = None,
    problem: Annotated[_SimulatedProblem, _OF_LISTS_ONLY] = _SimulatedProblem(),
    samplers: Annotated[
        Samplers,
        Parameter(help="Names of samplers, separated by commas.", show_default=",".join),
    ] = ("imh", "laplace", "nuts", "rwm"),
    output: shared.OutputPath | None = None,
    replications: int = 200,
    setting: Annotated[_SamplerSettings, Parameter(group=shared.SAMPLING)] = None,
    jobs: Annotated[int, Parameter(group=shared.SAMPLING)] = 1,
    seed: Annotated[int, Parameter(group=shared.SAMPLING)] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Simulation-based calibration of samplers; exit with 3 if one is not calibrated.

    Data are simulated from a NumPyro model (--model), or oracles or answers of n-best lists.

    Example: `bpa calibrate dev.nbest -w moses.ini --samplers imh,nuts -o calibration.html`

    Args:
        model: NumPyro program, as module:function.
        data: Arguments of the program: a JSON object, whose lists become arrays.
        output: Page (HTML), or the numbers if it ends in .json.
        replications: Number of simulated data sets for each sampler.
        jobs: Number of threads.
        seed: The same seed gives the same ranks.
    """
    from bpa_ppl.densities.model_target import make_model_target
    from bpa_ppl.diagnostics.samplers.calibration import calibrate as calibrate_samplers
    from bpa_ppl.diagnostics.samplers.calibration import density_to_simulate, render_calibration
    from bpa_ppl.formats.streams import atomic_writer

    if (model is None) == (nbest is None):
        message = "give n-best lists with weights, or a --model with its --data"
        raise UsageError(message, parameter="model", code="conflict")
    settings = _split_settings(samplers, setting)
    engines = [SAMPLERS.resolve(name, values) for name, values in settings.items()]
    target: Target
    if model is not None:
        program = read_model(model)
        arguments = {} if data is None else read_arguments(data, program)
        target = make_model_target(program, (), arguments, seed=seed)
        made = {"model": model, "data": str(data or "none"), **_list_runs(seed, settings)}
    elif weights is None:
        message = "give the canonical weights, or none, to start without"
        raise UsageError(message, parameter="weights", code="missing-argument")
    else:
        lists, start = problem.read(str(nbest)), shared.parse_start(weights)
        target = density_to_simulate(lists, start, **problem.arguments())
        made = {"lists": str(nbest), "likelihood": _in_words(problem.likelihood, "oracle")}
        made |= _provenance(weights, problem.prior, seed, settings)
    results = []
    for engine in engines:
        results += calibrate_samplers(
            target,
            samplers=[engine],
            replications=replications,
            seed=seed,
            jobs=jobs,
            progress=not quiet,
        )
        print(results[-1])
    if output is not None:
        if output.suffix != ".json":
            text = render_calibration(results, made=made, command=shared.command_line())
        else:
            text = json.dumps([one.as_dict() for one in results], indent=1)
        with atomic_writer(output) as file:
            file.write(text)
    if not all(results):
        raise SystemExit(NotConverged.exit_code)


def _in_words(likelihood: Any, default: str) -> str:
    """Return the name and the settings of a likelihood of the command line, or the default."""
    from bpa_ppl.diagnostics.pages.provenance import in_words

    if likelihood is None:
        return default
    likelihood = LIKELIHOODS.resolve(likelihood)
    return in_words({"name": LIKELIHOODS.name_of(likelihood), **likelihood.settings()})


def _default_gain(target: Target) -> str:
    """Return the default gain of the lists of a target; none of preferences."""
    gain = None if target.adaptation is None else target.adaptation.record.observed.gain
    return "none" if gain is None else f"{gain}, the default"


def _provenance(weights: str, prior: str, seed: int, settings: dict[str, Any]) -> dict[str, str]:
    """Return the rows of the provenance of pages about lists."""
    return {"weights": weights, "prior": prior, **_list_runs(seed, settings)}


def _list_runs(seed: int, settings: dict[str, Any]) -> dict[str, str]:
    """Return the rows of the provenance that all pages have."""
    packages = (*_VERSIONS, *filter(find_spec, _OTHERS))
    versions = {f"version of {name}": version(name) for name in packages}
    given = [f"{s}.{name}={x}" for s, own in settings.items() for name, x in own.items()]
    return {"seed": str(seed), "settings": ", ".join(given) or "the defaults", **versions}


def echo_files(written: list[Path], quiet: bool) -> None:
    """Log the name of the first written file, and the number of the others."""
    others = format_count(len(written) - 1, "more file")
    shared.echo_status(f"wrote {written[0]} and {others}", quiet)

"""Comparisons and calibrations of what files hold: posteriors, programs with data, n-best lists.

Each function returns the result, and its provenance for a page: rows of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.build import require_adaptation
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.diagnostics.pages.provenance import in_words
from bpa_ppl.diagnostics.samplers.calibration import (
    Calibration,
    calibrate_each,
    density_to_simulate,
)
from bpa_ppl.diagnostics.samplers.comparison import Comparison, compare
from bpa_ppl.diagnostics.samplers.programs import read_program
from bpa_ppl.diagnostics.samplers.running import REFERENCE, compare_samplers, resolve_samplers
from bpa_ppl.errors import UsageError
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.posterior.files import read_weight_draws
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.densities.target import Target

#: The samplers that are compared by default: on n-best lists, and on other models.
OF_LISTS = ("heuristic", "rwm-isotropic", "rwm", "imh", "nuts", "laplace")
OF_PROGRAMS = ("rwm", "imh", "nuts", "laplace")
#: Packages whose versions the results depend on.
_VERSIONS = ("bpa_ppl", "numpyro", "jax", "sacrebleu")
#: Packages of extras that may be installed.
_OTHERS = ("arviz", "blackjax", "nutpie")

#: What a page says of the origin of its results.
Made = dict[str, str]
Settings = Mapping[str, Mapping[str, Any]]


def compare_files(
    files: Mapping[str, str], *, with_reference: bool = True, seed: int = 0, **options: Any
) -> tuple[Comparison, Made]:
    """Compare posteriors in files, as `compare`, by names for them; the last may be the reference.

    Raises:
        BpaError: as `compare`.
    """
    named = dict(files)
    reference = dict([named.popitem()]) if with_reference else None
    comparison = compare(named, reference, seed=seed, **options)
    last = "none" if reference is None else ", ".join(reference.values())
    paths = ", ".join(named.values())
    return comparison, {"posteriors": paths, "reference file": last, "seed": str(seed)}


def compare_program(
    model: str,
    data: str | Path | None = None,
    *,
    reference_file: str | None = None,
    samplers: Sequence[str] = OF_PROGRAMS,
    settings: Settings | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Comparison, Made]:
    """Run samplers on a program, `module:function` or `FILE.py:function`, and compare them.

    The arguments of the program are in a JSON file. `options` are those of `compare_samplers`.

    Raises:
        BpaError: as `compare_samplers`; or if the model or its data cannot be read.
    """
    if reference_file is not None:
        if not options.keys().isdisjoint(("reference", "reference_draws")):
            message = f"{reference_file} is the reference: leave out the options of a long run"
            raise UsageError(message, parameter="reference", code="conflict")
        options["reference"] = reference_file
    target, provenance = _read_target(model, data, settings, seed)
    options |= {"samplers": samplers, "settings": settings, "seed": seed}
    return compare_samplers(target, **options), provenance


def compare_on_lists(
    lists: NBest,
    weights: AnyStart,
    adapting: Mapping[str, Any],
    *,
    samplers: Sequence[str] = OF_LISTS,
    settings: Settings | None = None,
    reference: str = REFERENCE,
    others: Mapping[str, Sequence[str | Path]] | None = None,
    test: NBest | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Comparison, Made]:
    """Run samplers on n-best lists, and compare them with a long run, and their choices.

    `adapting` has the arguments likelihood, gain and prior of `adapt`; `others` are files of
    posteriors of the same data, by name; `test` are the lists to rerank, by default `lists`.
    `options` are those of `compare_samplers`.

    Raises:
        BpaError: as `adapt` and `compare_samplers`.
    """
    target = log_density(lists, weights, sampler=reference, **adapting)
    options |= {"samplers": samplers, "settings": settings, "reference": reference, "seed": seed}
    options["others"] = {name: [*map(read_weight_draws, of)] for name, of in (others or {}).items()}
    comparison = compare_samplers(target, test=lists if test is None else test, **options)
    metric = require_adaptation(target).observed.record().gain
    by_default = "none" if metric is None else f"{metric}, the default"
    chosen = adapting.get("likelihood")
    provenance = {
        "likelihood": "the default for the metric" if chosen is None else _in_words(chosen),
        "oracle metric": str(adapting.get("gain") or by_default),
        **_describe_runs(seed, settings),
    }
    return comparison, provenance


def calibrate_program(
    model: str,
    data: str | Path | None = None,
    *,
    samplers: Sequence[str],
    settings: Settings | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Iterator[Calibration], Made]:
    """Calibrate samplers on a NumPyro program: arguments as for `compare_program`.

    The calibration of each sampler is returned when it is done; `options` are keyword arguments of
    `calibrate`.
    """
    engines = resolve_samplers(samplers, settings)
    target, provenance = _read_target(model, data, settings, seed)
    return calibrate_each(target, engines, seed=seed, **options), provenance


def calibrate_on_lists(
    lists: NBest,
    weights: AnyStart,
    adapting: Mapping[str, Any],
    *,
    samplers: Sequence[str],
    settings: Settings | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Iterator[Calibration], Made]:
    """Calibrate samplers on n-best lists whose oracles or answers are simulated.

    The calibration of each sampler is returned when it is done; the arguments are those of
    `compare_on_lists`, of `density_to_simulate` in place of `adapt`, and of `calibrate`.
    """
    engines = resolve_samplers(samplers, settings)
    target = density_to_simulate(lists, weights, **adapting)
    provenance = {"likelihood": _in_words(adapting["likelihood"]), **_describe_runs(seed, settings)}
    return calibrate_each(target, engines, seed=seed, **options), provenance


def _read_target(
    model: str, data: str | Path | None, settings: Settings | None, seed: int
) -> tuple[Target, Made]:
    """Return the posterior of a program given its data, and its provenance."""
    program, arguments = read_program(model, data)
    provenance = {"model": model, "data": str(data or "none"), **_describe_runs(seed, settings)}
    return make_model_target(program, (), arguments), provenance


def _in_words(likelihood: str | Likelihood) -> str:
    """Return the name and the settings of a likelihood."""
    likelihood = LIKELIHOODS.resolve(likelihood)
    return in_words({"name": LIKELIHOODS.name_of(likelihood), **likelihood.settings()})


def _describe_runs(seed: int, settings: Settings | None) -> Made:
    """Return the rows that all pages of runs have."""
    packages = (*_VERSIONS, *filter(find_spec, _OTHERS))
    versions = {f"version of {name}": version(name) for name in packages}
    values = [
        f"{s}.{name}={x}"
        for s, of_sampler in (settings or {}).items()
        for name, x in of_sampler.items()
    ]
    return {"seed": str(seed), "settings": ", ".join(values) or "the defaults", **versions}

"""Run samplers on one posterior, and compare them with a long reference run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arguments import SEEDS, check_seed
from bpa_ppl._runtime.messages import LOGGER
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl.components import read_name
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.target import MOST_KEPT, Target
from bpa_ppl.diagnostics.check.check import check
from bpa_ppl.diagnostics.check.diagnostic import list_components
from bpa_ppl.diagnostics.samplers.comparison import (
    FAILED,
    MAX_BIAS,
    NOT_RUN,
    Comparison,
    SamplerResult,
    check_bias,
    compare,
    reference_problem,
)
from bpa_ppl.diagnostics.samplers.efficiency import COLUMNS
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs
from bpa_ppl.diagnostics.samplers.same_posterior import check_same_posterior
from bpa_ppl.errors import (
    BpaError,
    NotConverged,
    UsageError,
    escape_controls,
    find_interruption,
    list_names,
    unknown_name,
    wrong_type,
    wrong_value,
)
from bpa_ppl.posterior.draws import Draws, name_array
from bpa_ppl.posterior.opening import open_posterior
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.finish import draw_posterior
from bpa_ppl.sampling.run_sampler import time_compilation

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

#: The sampler of the reference run.
REFERENCE = "nuts"
#: The timed runs of a sampler, or why it failed.
_Timed = list[Draws] | Exception
#: Difference between the seeds of the reference run and of the first run.
_SEED_OFFSET = 1_000_000
#: Seconds of the statistics of a sampler, with 14 variables and as many draws as by default.
_STATISTICS_SECONDS = 1.0


def compare_samplers(
    model: Callable[..., Any] | Target,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    samplers: Sequence[str],
    runs: int = 4,
    seed: int = 0,
    reference: str | Posterior = REFERENCE,
    reference_draws: int = 5000,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    others: Mapping[str, Sequence[Posterior]] | None = None,
    var_names: Sequence[str] | None = None,
    bias: float = MAX_BIAS,
    max_seconds: float | None = None,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Run samplers on the same posterior, and compare them with a long reference run.

    A sampler that raises an error has the verdict `failed`, and the others go on; see
    `run_samplers` for the order of the runs. Ctrl-C ends the runs, and those that have ended are
    compared: a sampler without any has the verdict `not run`.

    Args:
        model: a NumPyro program, as for `sample`, or a density, such as `log_density` returns.
        args: the positional arguments of the program, as a tuple.
        kwargs: its keyword arguments.
        samplers: their names, with settings as in `rwm:thinning=20`.
        runs: the number of runs of each sampler, with different seeds.
        seed: of the first run.
        reference: the sampler of the reference run; or a posterior that was drawn before, of any
            program, or the path of its file.
        reference_draws: of each of the four chains of the reference run.
        settings: of each sampler, by its name.
        others: posteriors of the same data from elsewhere, by name.
        var_names: the variables to compare; None compares all that the posteriors have in common.
        bias: that every mean of a sampler that agrees is below, in posterior standard deviations,
            as for `compare`.
        max_seconds: no run begins later than so many seconds after the beginning of the reference
            run; the runs that have ended are compared. None has no limit.
        progress: True draws a bar on standard error.
        clock: returns the time in seconds.

    Raises:
        DataError: if one of `others` has other data, another model, or a `sampling_time` that is
            not a number of seconds.
        NotConverged: if the reference run did not converge.
        UsageError: if there is nothing to run, a setting is invalid, the program cannot be run or
            sampled, or no run has ended within `max_seconds`.

    >>> import jax.numpy as jnp
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def model(y):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    ...     numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
    >>> data = jnp.array([1.0, 2.0, 3.0])
    >>> options = {"runs": 2, "reference": "laplace"}
    >>> result = compare_samplers(model, (data,), samplers=["imh", "rwm"], **options)
    >>> [one.verdict in ("agrees", "inconclusive", "DIFFERS") for one in result.samplers]
    [True, True]
    """
    seed = check_seed(seed)
    check_bias(bias)
    if max_seconds is not None and not max_seconds > 0:
        raise wrong_value("the runs need a positive number of seconds", max_seconds, "max_seconds")
    begin = clock()
    if runs < 1:
        raise wrong_value("a comparison needs at least one run of each sampler", runs, "runs")
    engines = dict(zip(samplers, resolve_samplers(samplers, settings), strict=True))
    engine = _find_reference_sampler(reference, reference_draws)
    elsewhere: dict[str, Sequence[Any]] = dict(others or {})
    if twice := elsewhere.keys() & set(samplers):
        message = f"{min(twice)} is already the name of a sampler: choose another label"
        raise UsageError(message, parameter="others", code="duplicate")
    target = find_target(model, args, kwargs)
    if target is not model:
        target = replace(target, most_kept=MOST_KEPT)
    with reporter(progress, "compare", even=False) as report:
        truth: Any = reference
        if engine is not None:
            report(0, 1, f"reference {reference}")
            seeds = (seed + _SEED_OFFSET) % SEEDS
            truth = draw_posterior(target, engine, seed=seeds, progress=report)
            names, checked = list_components(truth)
            weights = {"kind": truth.kind, "log_weight": truth.log_weight}
            stacked = name_array(checked, names, **weights)
            if problem := reference_problem(stacked, "the reference", report=check(truth)):
                raise NotConverged(problem)
            for name, posteriors in elsewhere.items():  # before the runs, which take long
                for one in posteriors:
                    check_same_posterior(name, open_posterior(one, name).draws, truth)
        timed, stopped = run_samplers(
            target,
            engines,
            runs=runs,
            seed=seed,
            deadline=np.inf if max_seconds is None else begin + max_seconds,
            progress=report,
            clock=clock,
            then=_STATISTICS_SECONDS * len(engines),
        )
        drawn = {name: one for name, one in timed.items() if one and isinstance(one, list)}
        if not drawn and (errors := [one for one in timed.values() if isinstance(one, Exception)]):
            raise errors[0]
        if not drawn:
            raise UsageError(
                f"a comparison needs runs that end within {max_seconds:g} seconds, with the "
                "reference: raise max_seconds, or lower reference_draws",
                parameter="max_seconds",
                code="no-data",
            )
        report(0, 1, f"statistics, about {_STATISTICS_SECONDS * len(drawn):.0f} s left")
        comparison = compare(drawn | elsewhere, [truth], var_names=var_names, bias=bias, seed=seed)
    results = [
        comparison[name] if name in drawn else _describe_missing(name, one, stopped)
        for name, one in timed.items()
    ]
    samplers_and_others = (*results, *(comparison[name] for name in elsewhere))
    return replace(comparison, samplers=samplers_and_others, stopped=stopped)


def _describe_missing(name: str, timed: _Timed, stopped: str) -> SamplerResult:
    """Return the result of a sampler without draws: it failed, or was not run."""
    nothing: dict[str, Any] = dict.fromkeys(COLUMNS)
    if isinstance(timed, Exception):
        return SamplerResult(name, nothing, FAILED, _shorten(timed))
    return SamplerResult(name, nothing, NOT_RUN, stopped)


def resolve_samplers(
    samplers: Sequence[str | Sampler], settings: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Sampler]:
    """Return samplers with their settings.

    Args:
        samplers: names, with settings as in `nuts:warmup=200`, or samplers.
        settings: more settings of samplers that are named, by the name.

    Raises:
        UsageError: if there is no sampler, or one that has settings is not among them, or one name
            is given in place of a list.

    >>> resolve_samplers(["laplace"], {"laplace": {"draws": 500}})[0].settings()["draws"]
    500
    """
    if isinstance(samplers, str):
        remedy = f"write samplers=[{samplers!r}]"
        raise wrong_type("samplers are a list, even of one", samplers, "samplers", remedy=remedy)
    if not samplers:
        message = "a comparison needs at least one sampler"
        raise UsageError(message, parameter="samplers", code="no-data")
    by_sampler = settings or {}
    if unused := sorted(by_sampler.keys() - {one for one in samplers if isinstance(one, str)}):
        raise UsageError(
            f"{list_names(unused)} has settings and is not run: leave out the settings, or add it "
            "to the samplers",
            parameter="settings",
            code="conflict",
        )
    named = ((one, by_sampler.get(one) if isinstance(one, str) else None) for one in samplers)
    return [SAMPLERS.resolve(one, values) for one, values in named]


def _find_reference_sampler(reference: Any, draws: int) -> Sampler | None:
    """Return the sampler of the reference run, or None if a posterior is the reference."""
    if not isinstance(reference, str) or "*" in reference or Path(reference).exists():
        return None
    if read_name(reference) not in SAMPLERS:
        choices = [*SAMPLERS.titles, "a file or draws"]
        raise unknown_name("reference", str(reference), choices, "reference")
    return SAMPLERS.resolve(reference, {"draws": draws})


def find_target(model: Callable[..., Any] | Target, args: Any, kwargs: Any) -> Target:
    """Return the density of a program with its arguments, or the one that is given.

    Raises:
        UsageError: if a density has arguments, or the program cannot be run or sampled.
    """
    if not isinstance(model, Target):
        return make_model_target(model, args, kwargs)
    if args or kwargs:
        message = "a density has its data already: leave out args and kwargs"
        raise UsageError(message, parameter="args", code="conflict")
    return model


def _shorten(error: Exception) -> str:
    """Return the first line of an error, with its type if it is not one of ours."""
    if isinstance(error, BpaError):
        return error.message
    text = next(iter(str(error).strip().splitlines()), "")
    return escape_controls(": ".join(filter(None, (type(error).__name__, text))))


class Runs(NamedTuple):
    """The runs of several samplers.

    Attributes:
        timed: the runs of each sampler, by its name, or the error that it raised.
        stopped: why not all have been run; empty if they have.
    """

    timed: dict[str, _Timed]
    stopped: str = ""


def run_samplers(
    target: Target,
    samplers: Mapping[str, Sampler],
    *,
    runs: int = 4,
    seed: int = 0,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
    then: float = 0.0,
    deadline: float = np.inf,
) -> Runs:
    """Run each sampler on the same data from several seeds, in rounds, and time the runs.

    The attribute `sampling_time` of a run has the seconds of the sampler, as in PyMC, without
    compilation. Each sampler has one run first, which is kept only if there is no other. Then each
    round has a run of each sampler, in random order: a machine that becomes slower or faster
    affects all samplers equally.

    A sampler that raises an error is not run again, and the others go on. Ctrl-C ends the runs if
    one has ended before.

    Args:
        target: the posterior.
        samplers: by name.
        runs: the number of runs of each sampler, with different seeds.
        seed: of the first run, and of the order of the runs.
        progress: True draws a bar on standard error.
        clock: returns the time in seconds.
        then: seconds of the work that follows, for the remaining time that is reported.
        deadline: the time of the clock after which no run begins.
    """
    seed = check_seed(seed)
    result: dict[str, _Timed] = {name: [] for name in samplers}
    first, stopped = dict[str, Draws](), ""
    seconds: dict[str, list[float]] = {name: [] for name in samplers}
    rng = np.random.default_rng(seed)
    names = list(samplers)
    # Round 0 is not timed.
    tasks = [(turn, names[k]) for turn in range(runs + 1) for k in rng.permutation(len(names))]
    with reporter(progress, "run", even=False) as report:
        for done, (turn, name) in enumerate(tasks):
            kept = result[name]
            if isinstance(kept, Exception):
                continue
            if clock() > deadline:
                stopped = f"the time was over after {done} of {len(tasks)} runs"
                break
            left = [of for _, of in tasks[done:] if not isinstance(result[of], Exception)]
            note = f"round {turn} of {runs}" if turn else "first run"
            remaining = describe_remaining(left, seconds, then)
            report(done, len(tasks), f"{name}, {note}{remaining}")
            number = (seed + max(turn - 1, 0)) % SEEDS
            start = clock()
            try:
                with time_compilation(clock) as compiled:
                    run = draw_posterior(target, samplers[name], seed=number, clock=clock)
                concatenate_runs([*kept, run])  # refuses draws that cannot be compared
            except (Exception, KeyboardInterrupt) as error:  # of another package: any error
                interruption = find_interruption(error)
                if interruption is not None or not isinstance(error, Exception):
                    # Not of another signal, which is to end the program.
                    if not first or type(interruption) is not KeyboardInterrupt:
                        raise
                    stopped = f"interrupted after {done} of {len(tasks)} runs"
                    break
                LOGGER.debug("%s failed", name, exc_info=error)
                result[name] = error
                continue
            seconds[name].append(max(clock() - start - compiled(), 0.0))
            if turn:
                kept.append(run)
            else:
                first[name] = run
    for name, run in first.items():
        result[name] = result[name] or [run]
    return Runs(result, stopped)


def describe_remaining(
    left: Sequence[str], seconds: Mapping[str, Sequence[float]], then: float = 0.0
) -> str:
    """Return how long runs and the work after them will take, for the end of a note.

    Nothing is known of a sampler before its first run, which takes longer than the others even
    without compilation by JAX: it is not counted from the second run on.

    >>> describe_remaining(["nuts", "imh"], {"nuts": [6.0], "imh": []})
    ''
    >>> describe_remaining(["nuts", "imh"], {"nuts": [6.0], "imh": [3.0, 1.0]}, then=2.0)
    ', about 9 s left'
    >>> describe_remaining(["nuts", "imh"] * 20, {"nuts": [6.0, 4.0], "imh": [3.0, 1.0]}, then=2.0)
    ', about 2 min left'
    """
    if not all(seconds[name] for name in left):
        return ""
    total = then + sum(float(np.mean(seconds[name][1:] or seconds[name])) for name in left)
    return f", about {f'{total:.0f} s' if total < 100 else f'{total / 60:.0f} min'} left"

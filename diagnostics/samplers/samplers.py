"""Compare samplers with a long reference run, and calibrate them on simulated data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from bpa_ppl._runtime.arguments import SEEDS, check_seed
from bpa_ppl._runtime.messages import LOGGER
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.draw import draw, draw_posterior, require_adaptation
from bpa_ppl.adapting.observations import Compared
from bpa_ppl.components import read_name
from bpa_ppl.densities.model_target import make_model_target, require_simulated
from bpa_ppl.densities.own_models import Simulated
from bpa_ppl.densities.target import (
    NUMPYRO_LOCK,
    Target,
    constrain,
    constrain_draws,
    evaluate,
    inspect_model,
)
from bpa_ppl.densities.weights_target import Model
from bpa_ppl.diagnostics.samplers.calibration import Calibration, Replication, run_calibration
from bpa_ppl.diagnostics.samplers.comparison import (
    FAILED,
    MAX_BIAS,
    Comparison,
    SamplerResult,
    check_bias,
    check_same_posterior,
    compare,
    reference_problem,
)
from bpa_ppl.diagnostics.samplers.efficiency import COLUMNS
from bpa_ppl.diagnostics.samplers.estimates import concatenate_runs
from bpa_ppl.diagnostics.samplers.variables import stack_sites
from bpa_ppl.errors import (
    BpaError,
    NotConverged,
    UsageError,
    escape_controls,
    find_interruption,
    list_names,
)
from bpa_ppl.gains.gains import AnyGain, resolve
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import WEIGHTS, Draws, total
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.models.priors.prior import Prior, PriorFamily
    from bpa_ppl.posterior.adapter import Posterior

#: The timed runs of a sampler, or why it failed.
Runs = list[Draws] | Exception
#: Difference between the seeds of the reference run and of the first run.
_SEED_OFFSET = 1_000_000
#: Seconds of the statistics of a sampler, with 14 weights and as many draws as by default.
_STATISTICS_SECONDS = 1.0
#: How the names of JAX's events begin that trace, lower and compile a function.
_COMPILATION = "/jax/core/compile/"


def compare_samplers(
    model: Callable[..., Any] | Target,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    samplers: Sequence[str],
    runs: int = 4,
    seed: int = 0,
    reference: str | Posterior = "nuts",
    reference_draws: int = 5000,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    others: Mapping[str, Sequence[Posterior]] | None = None,
    var_names: Sequence[str] | None = None,
    test: NBest | None = None,
    bias: float = MAX_BIAS,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Run samplers on the same posterior, and compare them with a long reference run.

    A sampler that raises an error has the verdict `failed`, and the others go on; see
    `run_samplers` for the order of the runs.

    Args:
        model: a NumPyro program, as for `sample`, or what `log_density` returns for n-best lists.
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
        test: lists to be reranked with each posterior of weights.
        bias: that every mean of a sampler that agrees is below, in posterior standard deviations,
            as for `compare`.
        progress: True draws a bar on standard error.
        clock: returns the time in seconds.

    Raises:
        DataError: if one of `others` has other data, another model, or a `sampling_time` that is
            not a number of seconds.
        NotConverged: if the reference run did not converge.
        UsageError: if there is nothing to run, a setting is invalid, or the program cannot be run
            or sampled.

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
    _check_samplers(samplers)
    if runs < 1:
        message = f"a comparison needs at least one run of each sampler, not {runs}"
        raise UsageError(message, parameter="runs")
    if unused := sorted({*(settings or {})}.difference(samplers)):
        problem = f"{list_names(unused)} has settings and is not run: add it to the samplers"
        raise UsageError(problem, parameter="settings", code="conflict")
    engines = {name: SAMPLERS.resolve(name, (settings or {}).get(name)) for name in samplers}
    engine = _find_reference_sampler(reference, reference_draws)
    elsewhere: dict[str, Sequence[Any]] = dict(others or {})
    if twice := elsewhere.keys() & set(samplers):
        message = f"{min(twice)} is already the name of a sampler: choose another label"
        raise UsageError(message, parameter="others", code="duplicate")
    target = _find_target(model, args, kwargs, seed)
    if test is not None and not target.has_lists:
        message = "test lists are reranked with weights, which only a density of log_density has"
        raise UsageError(f"{message}: leave test out", parameter="test", code="conflict")
    if elsewhere and target.has_lists:
        # Runs on other data are refused before the long computation.
        elsewhere = {name: [as_draws(one) for one in given] for name, given in elsewhere.items()}
        quick = draw_posterior(target, "map")
        for name, given in elsewhere.items():
            for one in given:
                check_same_posterior(name, one, quick)
    with reporter(progress, "compare", even=False) as report:
        truth: Any = reference
        if engine is not None:
            report(0, 1, f"reference {reference}")
            seeds = (seed + _SEED_OFFSET) % SEEDS
            truth = draw_posterior(target, engine, seed=seeds, progress=report)
            if problem := reference_problem(stack_sites(truth), "the reference"):
                raise NotConverged(problem)
        timed = run_samplers(
            target,
            engines,
            runs=runs,
            seed=seed,
            progress=report,
            clock=clock,
            then=_STATISTICS_SECONDS * len(engines),
        )
        drawn = {name: one for name, one in timed.items() if not isinstance(one, Exception)}
        if not drawn:
            raise next(one for one in timed.values() if isinstance(one, Exception))
        report(0, 1, f"statistics, about {_STATISTICS_SECONDS * len(drawn):.0f} s left")
        comparison = compare(
            drawn | elsewhere, [truth], var_names=var_names, bias=bias, test=test, seed=seed
        )
    results = [
        SamplerResult(name, dict.fromkeys(COLUMNS), FAILED, _shorten(one))
        if isinstance(one, Exception)
        else comparison[name]
        for name, one in timed.items()
    ]
    return replace(comparison, samplers=(*results, *(comparison[name] for name in elsewhere)))


def _check_samplers(samplers: Sequence[str | Sampler]) -> None:
    """Refuse one name in place of a list, and an empty list.

    Raises:
        UsageError: if that is what was given.
    """
    if isinstance(samplers, str):
        problem = f"samplers are a list, even of one: write samplers=[{samplers!r}]"
        raise UsageError(problem, parameter="samplers", code="wrong-type")
    if not samplers:
        raise UsageError("name at least one sampler", parameter="samplers", code="no-data")


def _find_reference_sampler(reference: Any, draws: int) -> Sampler | None:
    """Return the sampler of the reference run, or None if a posterior is the reference."""
    if not isinstance(reference, str) or "*" in reference or Path(reference).exists():
        return None
    if read_name(reference) not in SAMPLERS:
        problem = f"the reference {reference} is neither a sampler nor a file"
        names = ", ".join(SAMPLERS.titles)
        raise UsageError(
            f"{problem}: choose one of {names}, or give the draws", parameter="reference"
        )
    return SAMPLERS.resolve(reference, {"draws": draws})


def _find_target(model: Callable[..., Any] | Target, args: Any, kwargs: Any, seed: int) -> Target:
    """Return the density of a program with its arguments, or the one that is given.

    Raises:
        UsageError: if a density has arguments, or the program cannot be run or sampled.
    """
    if not isinstance(model, Target):
        return make_model_target(model, args, kwargs, seed=seed)
    if args or kwargs:
        problem = "a density of log_density has its data already: leave args and kwargs out"
        raise UsageError(problem, parameter="args", code="conflict")
    return model


def _shorten(error: Exception) -> str:
    """Return the first line of an error, with its type if it is not one of ours."""
    if isinstance(error, BpaError):
        return error.message
    text = next(iter(str(error).strip().splitlines()), "")
    return escape_controls(": ".join(filter(None, (type(error).__name__, text))))


def run_samplers(
    target: Target,
    samplers: Mapping[str, Sampler],
    *,
    runs: int = 4,
    seed: int = 0,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
    then: float = 0.0,
) -> dict[str, Runs]:
    """Run each sampler on the same data from several seeds, in rounds, and time the runs.

    The attribute `sampling_time` of a run has the seconds of the sampler, as in PyMC. Each sampler
    has one run first that is not kept, so that compilation does not count. Then each round has a
    run of each sampler, in random order: a machine that becomes slower or faster affects all
    samplers alike.

    A sampler that raises an error is not run again, and the others go on.

    Args:
        target: the posterior.
        samplers: by name.
        runs: the number of runs of each sampler, with different seeds.
        seed: of the first run, and of the order of the runs.
        progress: True draws a bar on standard error.
        clock: returns the time in seconds.
        then: seconds of the work that follows, for the remaining time that is reported.

    Returns:
        The runs of each sampler, by its name, or the error that it raised.
    """
    seed = check_seed(seed)
    result: dict[str, Runs] = {name: [] for name in samplers}
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
            left = [of for _, of in tasks[done:] if not isinstance(result[of], Exception)]
            note = f"round {turn} of {runs}" if turn else "first run"
            remaining = describe_remaining(left, seconds, then)
            report(done, len(tasks), f"{name}, {note}{remaining}")
            number = (seed + max(turn - 1, 0)) % SEEDS
            start = clock()
            try:
                with _time_compilation() as compilation:
                    run = draw_posterior(target, samplers[name], seed=number, clock=clock)
                concatenate_runs([*kept, run])  # refuses draws that cannot be compared
            except Exception as error:  # a sampler of another package may raise any error
                if find_interruption(error) is not None:
                    raise
                LOGGER.debug("%s failed", name, exc_info=error)
                result[name] = error
                continue
            seconds[name].append(max(clock() - start - sum(compilation), 0.0))
            if turn:
                kept.append(run)
    return result


@contextmanager
def _time_compilation() -> Iterator[list[float]]:
    """Yield a list that receives the seconds of each compilation by JAX in the block."""
    seconds: list[float] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event.startswith(_COMPILATION):
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seconds
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def describe_remaining(
    left: Sequence[str], seconds: Mapping[str, Sequence[float]], then: float = 0.0
) -> str:
    """Return how long runs and the work after them will take, for the end of a note.

    Nothing is known of a sampler before its first run, which takes longer than the others even
    without compilation by JAX: it is not counted from the second run on.

    Args:
        left: the sampler of each coming run.
        seconds: of the runs that each sampler has had, without compilation.
        then: seconds of the work after the runs.

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


#: Calibrated next to the weights: a quantity that depends on the data, and so detects errors that
#: the weights do not show (Modrák et al. 2023).
LOG_LIKELIHOOD = "log p(A|λ)"
_LOG_LIKELIHOOD = "log likelihood"  # of other programs
_OBSERVED = "oracle"


def density_to_simulate(
    lists: NBest,
    weights: AnyStart,
    *,
    prior: str | PriorFamily | Prior = "isotropic:variance=0.1",
    likelihood: str | Likelihood = "oracle",
    gain: AnyGain | None = None,
    model: Model = log_linear,
) -> Target:
    """Return the log density of lists whose oracles or answers are simulated, for `calibrate`.

    Args:
        lists: their references are needed only for a likelihood that uses gains, because oracles
            are simulated. For `preference` the preferences of the lists say which candidates are
            compared and who answered, and the answers are simulated.
        weights: the canonical weights λ_T.
        prior: from which the weights are drawn.
        likelihood: one that is a distribution of the observations: `oracle` or `preference`.
        gain: if the likelihood uses gains; as for `adapt`.
        model: a NumPyro model with the sites `weights` and `oracle`, such as one of your own; its
            other sampled sites are calibrated, too.

    Raises:
        DataError: if lists and weights do not fit together.
        UsageError: if the likelihood cannot be simulated.

    >>> from bpa_ppl import from_lists
    >>> texts, features = [["a", "b"]] * 8, [[[1.0], [0.0]], [[0.0], [2.0]]] * 4
    >>> density = density_to_simulate(from_lists(texts, features, ["LM0"]), {"LM0": 0.5})
    >>> (result,) = calibrate(density, samplers=["laplace:draws=200"], replications=20)
    >>> result.names, bool(result)
    (('LM0', 'log p(A|λ)'), True)
    """
    resolved = LIKELIHOODS.resolve(likelihood)
    _require_generative(resolved)
    first = np.zeros(len(lists), np.int64)
    key = "" if gain is None else resolve(gain, lists).key
    return log_density(
        lists,
        weights,
        gain=Oracles(first, np.full(len(first), np.nan), first + 1, "", key, ""),
        likelihood=resolved,
        prior=prior,
        model=model,
    )


def calibrate(
    model: Callable[..., Any] | Target,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    samplers: Sequence[str | Sampler],
    replications: int = 200,
    seed: int = 0,
    jobs: int = 1,
    progress: bool | Reporter = False,
) -> list[Calibration]:
    """Run simulation-based calibration of samplers on a posterior.

    Parameters are drawn from the prior, and everything that the program observes is simulated given
    them. The ranks of the true values among the draws of a sampler given the simulated data are
    tested for uniformity, and so is that of the log likelihood (Talts et al. 2018; Modrák et al.
    2023). Arguments of the program that it does not observe stay as they are: a program that also
    computes with its data, such as an autoregression of the observed series, is not simulated as it
    would have to be, and is then found not to be calibrated.

    Args:
        model: a NumPyro program, as for `sample`, or a density of n-best lists, by
            `density_to_simulate` or, with references, `log_density`.
        args: the positional arguments of the program, as a tuple.
        kwargs: its keyword arguments.
        samplers: names, with settings as in `nuts:warmup=200`, or samplers of your own.
        replications: the number of simulated data sets.
        seed: of all random numbers.
        jobs: the number of threads.
        progress: True draws a bar on standard error.

    Returns:
        the result of each sampler, in their order; it is true if the sampler is calibrated.

    Raises:
        DataError: if a posterior cannot be sampled in this way.
        UsageError: if there is no such sampler or setting, or the data cannot be simulated.

    >>> import jax.numpy as jnp
    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def program(y):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    ...     numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
    >>> data = (jnp.zeros(5),)
    >>> (result,) = calibrate(program, data, samplers=["laplace:draws=200"], replications=20)
    >>> result.names, bool(result)
    (('mean', 'log likelihood'), True)
    """
    _check_samplers(samplers)
    engines = [SAMPLERS.resolve(sampler) for sampler in samplers]
    target = _find_target(model, args, kwargs, seed)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        simulation = _of_weights(target) if target.has_lists else _of_model(target)
    return [
        run_calibration(
            partial(_replicate, engine, simulation, check_seed(seed)),
            simulation.labels,
            replications=replications,
            sampler=SAMPLERS.name_of(engine),
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
        for engine in engines
    ]


class _Simulation(NamedTuple):
    """How data are simulated from a target.

    Attributes:
        target: the posterior of the data that are there.
        names: the sites whose true values are compared with draws.
        labels: of their cells, and of the log likelihood.
        given: returns the posterior of simulated data, from what the program observes, by site.
    """

    target: Target
    names: tuple[str, ...]
    labels: tuple[str, ...]
    given: Callable[[dict[str, Any]], Target]


def _require_generative(likelihood: Likelihood) -> None:
    """Refuse a likelihood that is no distribution of what is observed."""
    if not likelihood.generative:
        name = LIKELIHOODS.name_of(likelihood)
        message = f"oracles cannot be simulated from {name}: choose oracle or preference"
        raise UsageError(message, parameter="likelihood", code="not-supported")


def _of_weights(target: Target) -> _Simulation:
    """Return how oracles or answers are simulated.

    Raises:
        UsageError: if the likelihood is no distribution of them.
    """
    assert target.likelihood is not None  # it has lists
    _require_generative(target.likelihood)
    observed = require_adaptation(target).observed
    if isinstance(observed, Compared) and (observed.choices.weight != 1).any():
        message = "answers with weights other than 1 cannot be simulated: leave out the weights"
        raise UsageError(message, parameter="likelihood", code="not-supported")
    latent = inspect_model(target).latent
    names = (WEIGHTS, *(name for name in latent if name != WEIGHTS))

    def given(simulated: dict[str, Any]) -> Target:
        oracle = simulated[_OBSERVED].astype(target.lists.oracle.dtype)
        lists = target.lists._replace(oracle=oracle)
        return replace(target, data=target.data._replace(lists=lists))

    labels = (*target.features, *_label_cells(target, names[1:]), LOG_LIKELIHOOD)
    return _Simulation(target, names, labels, given)


def _of_model(target: Target) -> _Simulation:
    """Return how the data of any program are simulated.

    Raises:
        UsageError: if it observes nothing, or a `numpyro.factor`.
    """
    require_simulated(target)
    names = inspect_model(target).latent
    labels = (*_label_cells(target, names), _LOG_LIKELIHOOD)
    return _Simulation(target, names, labels, lambda data: replace(target, data=(data,)))


def _replicate(engine: Sampler, simulation: _Simulation, seed: int, i: int) -> Replication:
    """Simulate data, and draw from the posterior given the data."""
    # The setting is local to a thread.
    with NUMPYRO_LOCK, jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(seed), i)
        truth, observed, likelihood = simulate(simulation.target, simulation.names, key)
        target = replace(simulation.given(observed), seed=seed + i)
        sampled = draw(engine, target)
        log_likelihood = sampled.log_likelihood
        if log_likelihood is None:
            log_likelihood = evaluate(target, sampled.z)[1]
        values = constrain_draws(target, sampled.z)
        shape = np.shape(values[simulation.names[0]])[:2]
        parts = [np.reshape(values[name], (*shape, -1)) for name in simulation.names]
        draws = np.concatenate([*parts, total(log_likelihood, shape)[..., None]], -1)
        return Replication(np.append(truth, likelihood), draws, sampled.log_weight)


def _label_cells(target: Target, names: Sequence[str]) -> list[str]:
    """Return a name for each cell of some sites."""
    values = constrain(target, target.start)
    return [
        name if np.size(values[name]) == 1 else f"{name}[{k}]"
        for name in names
        for k in range(np.size(values[name]))
    ]


@partial(jax.jit, static_argnums=1)
def simulate(
    target: Target, names: tuple[str, ...], key: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array], jax.Array]:
    """Return parameters from the prior, data from the model given them, and their log density."""
    simulated = Simulated(target.program)
    sites = handlers.trace(handlers.seed(simulated, key)).get_trace(*target.data)
    observed = {name: sites[name] for name in simulated.sites}
    data = {name: site["value"] for name, site in observed.items()}
    likelihood = sum(site["fn"].log_prob(data[name]).sum() for name, site in observed.items())
    truth = jnp.concatenate([jnp.ravel(sites[name]["value"]) for name in names])
    return truth, data, jnp.asarray(likelihood)

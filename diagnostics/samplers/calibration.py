"""Simulation-based calibration of samplers: simulate, draw, rank the truth, test, and show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from bpa_ppl._runtime.arguments import check_seed
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.streams import atomic_writer
from bpa_ppl._runtime.workers import parallel_workers
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
from bpa_ppl.diagnostics.page import Headline, Outcome, Section, Table, describe_provenance, page
from bpa_ppl.diagnostics.pages.figures import Layer, choose_style, plot, plots
from bpa_ppl.diagnostics.samplers.efficiency import smallest_ess
from bpa_ppl.diagnostics.samplers.moments import holm
from bpa_ppl.diagnostics.samplers.running import describe_remaining, resolve_samplers
from bpa_ppl.diagnostics.samplers.runs import resample_independent
from bpa_ppl.diagnostics.samplers.uniformity import (
    find_detected_shift,
    uniform_bands,
    uniformity_test,
)
from bpa_ppl.errors import UsageError, wrong_type, wrong_value
from bpa_ppl.posterior.draws import name_array, total
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.run_sampler import draw

#: The probability that an exact sampler fails.
LEVEL = 0.01
#: The fewest replications, and the seconds after which the time that remains is logged.
_FEWEST, _SILENT_SECONDS = 20, 20.0
#: The number of draws of each posterior among which the truth is ranked.
RANKED = 99
_PROBABILITY = 0.95
_METHOD = (
    "Parameters are drawn from the prior, data from the model given them, and the sampler "
    f"is run on the data; the true values are ranked among {RANKED} of its draws. The ranks are "
    "uniform if the sampler draws from the posterior. p is the p-value of uniformity, with Holm's "
    "correction for the number of quantities."
)
_READING = (
    "The ECDF of the ranks minus that of uniform ranks. Grey: the band that contains the whole "
    f"line of an exact sampler with a probability of {100 * _PROBABILITY:g}%, for one quantity. A "
    "line above the band at the left: draws too large; below: too small; above and then below: "
    "too narrow; below and then above: too wide."
)
#: Ranked with the parameters: a quantity that depends on the data, and so detects errors that the
#: parameters do not show (Modrák et al. 2023).
LOG_LIKELIHOOD = "log likelihood"


class SimulatedData(NamedTuple):
    """A simulated data set.

    Attributes:
        truth: (quantities,) the parameters that were drawn from the prior.
        data: what was simulated given them.
        log_likelihood: log p(data | truth).

    >>> mean, rng = 0.3, np.random.default_rng(0)
    >>> simulated = SimulatedData([mean], {"y": rng.normal(mean, size=5)}, -7.5)
    >>> simulated.data["y"].shape
    (5,)
    """

    truth: Any
    data: Any
    log_likelihood: Any


@dataclass(frozen=True, eq=False)
class Simulation:
    """How data are simulated, and the posterior given them.

    `calibrate` makes one of a NumPyro program with its arguments.

    Attributes:
        labels: site -> the names of its cells; the true values have this order.
        simulate: a key of JAX -> parameters from the prior, and data given them. It is called with
            float64 enabled.
        given: simulated data -> the posterior given them.

    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def program():
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0).expand([2]))
    ...     numpyro.sample("y", dist.Normal(mean, 1.0), obs=np.zeros(2))
    >>> simulation = make_program_simulation(program)
    >>> simulation.labels
    {'mean': ('mean[0]', 'mean[1]')}
    >>> with jax.enable_x64(True):
    ...     truth, data, _ = simulation.simulate(jax.random.key(0))
    >>> truth.shape, data["y"].shape, simulation.given(data).dimension
    ((2,), (2,), 2)
    """

    labels: Mapping[str, tuple[str, ...]]
    simulate: Callable[[jax.Array], SimulatedData]
    given: Callable[[Any], Target]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities: the cells of all sites, and the log likelihood."""
        return (*chain.from_iterable(self.labels.values()), LOG_LIKELIHOOD)


def calibrate(
    model: Callable[..., Any] | Simulation,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    samplers: Sequence[str | Sampler],
    replications: int = 200,
    seed: int = 0,
    jobs: int = 1,
    max_seconds: float | None = None,
    progress: bool | Reporter = False,
) -> list[Calibration]:
    """Run simulation-based calibration of samplers on a posterior.

    Parameters are drawn from the prior, and what the program observes is simulated. The ranks of
    the true values and of their log likelihood are tested for uniformity (Talts et al. 2018; Modrák
    et al. 2023). Arguments of the program are covariates.

    Args:
        model: a NumPyro program, as for `sample`, or a `Simulation`.
        args: the positional arguments of the program, as a tuple.
        kwargs: its keyword arguments.
        samplers: names, with settings as in `nuts:warmup=200`, or samplers of your own.
        replications: the number of simulated data sets.
        seed: of all random numbers.
        jobs: the number of threads.
        max_seconds: no replication begins later than so many seconds after the first one.
        progress: True draws a bar on standard error.

    Returns:
        the calibration of each sampler, true if it passed; `str` gives its table.

    Raises:
        DataError: if a posterior cannot be sampled in this way.
        UsageError: if there is no such sampler or setting, the data cannot be simulated, or fewer
            than 20 replications have ended within `max_seconds`.

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
    engines = resolve_samplers(samplers)
    if not isinstance(model, Simulation):
        model = make_program_simulation(model, args, kwargs)
    elif args or kwargs:
        message = "a simulation has its arguments already: leave out args and kwargs"
        raise UsageError(message, parameter="args", code="conflict")
    options: dict[str, Any] = {"jobs": jobs, "max_seconds": max_seconds, "progress": progress}
    return list(calibrate_each(model, engines, replications=replications, seed=seed, **options))


def calibrate_each(
    simulation: Simulation,
    engines: Sequence[Sampler],
    *,
    seed: int = 0,
    max_seconds: float | None = None,
    **options: Any,
) -> Iterator[Calibration]:
    """Yield the calibration of each sampler when it is done; the arguments are as for `calibrate`.

    Each has an equal share of the seconds that remain.
    """
    end = None if max_seconds is None else time() + max_seconds
    for k, engine in enumerate(engines):
        yield run_calibration(
            partial(_replicate, engine, simulation, check_seed(seed)),
            simulation.names,
            sampler=SAMPLERS.name_of(engine),
            seed=seed,
            max_seconds=None if end is None else (end - time()) / (len(engines) - k),
            **options,
        )


def make_program_simulation(
    program: Callable[..., Any], args: Any = (), kwargs: Mapping[str, Any] | None = None
) -> Simulation:
    """Return how the data of a NumPyro program are simulated, for `calibrate`.

    Args:
        program: the program, as for `sample`.
        args: its positional arguments, as a tuple.
        kwargs: its keyword arguments.

    Raises:
        UsageError: if the program cannot be run or sampled, or its data cannot be simulated.
    """
    if isinstance(program, Target):
        rule = "data are simulated from a program, or by a Simulation"
        remedy = "give the program with its arguments, or what make_density_simulation returns"
        raise wrong_type(rule, program, "model", remedy=remedy)
    target = make_model_target(program, args, kwargs)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        require_simulated(target)
        labels = label_cells(target, inspect_model(target).latent)
    return Simulation(
        labels, partial(simulate, target, tuple(labels)), lambda data: replace(target, data=(data,))
    )


def _replicate(engine: Sampler, simulation: Simulation, seed: int, i: int) -> Replication:
    """Simulate data, and draw from the posterior given the data."""
    # The setting is local to a thread.
    with NUMPYRO_LOCK, jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(seed), i)
        truth, data, likelihood = simulation.simulate(key)
        target = simulation.given(data)
        sampled = draw(engine, target, seed + i)
        log_likelihood = sampled.log_likelihood
        if log_likelihood is None:
            log_likelihood = evaluate(target, sampled.z)[1]
        values = constrain_draws(target, sampled.z)
        shape = np.shape(jax.tree.leaves(sampled.z)[0])[:2]
        parts = [np.reshape(values[name], (*shape, -1)) for name in simulation.labels]
        draws = np.concatenate([*parts, total(log_likelihood, shape)[..., None]], -1)
        return Replication(np.append(truth, likelihood), draws, sampled.log_weight)


def label_cells(target: Target, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return a name for each cell of some sites, by site: that of the site, or numbers in it."""
    values = constrain(target, target.start)
    sizes = {name: np.size(values[name]) for name in names}
    return {
        name: (name,) if size == 1 else tuple(f"{name}[{k}]" for k in range(size))
        for name, size in sizes.items()
    }


@partial(jax.jit, static_argnums=1)
def simulate(target: Target, names: tuple[str, ...], key: jax.Array) -> SimulatedData:
    """Return parameters from the prior, data from the model given them, and their log density.

    Args:
        target: a posterior of the program.
        names: the sites whose values are the true parameters, in this order.
        key: of JAX's random numbers.
    """
    program = Simulated(target.program)
    sites = handlers.trace(handlers.seed(program, key)).get_trace(*target.data)
    observed = {name: sites[name] for name in program.sites}
    data = {name: site["value"] for name, site in observed.items()}
    likelihood = sum(site["fn"].log_prob(data[name]).sum() for name, site in observed.items())
    truth = jnp.concatenate([jnp.ravel(sites[name]["value"]) for name in names])
    return SimulatedData(truth, data, jnp.asarray(likelihood))


class Replication(NamedTuple):
    """True values, and draws of the posterior given data simulated from them.

    Attributes:
        truth: (quantities,) such as the parameters and their log likelihood.
        draws: (chains, draws, quantities).
        log_weight: (chains, draws) log importance weights, or None.

    >>> one = Replication(truth=[0.3], draws=np.zeros((1, 99, 1)))
    >>> one.log_weight is None
    True
    """

    truth: Any
    draws: Any
    log_weight: Any = None


@dataclass(frozen=True, eq=False)
class Calibration(Outcome):
    """The result of simulation-based calibration; `bool` is the verdict, `str` the table.

    Attributes:
        sampler: its name.
        names: of the quantities.
        ranks: (replications, quantities) of the truth among the draws, scaled to [0, 1]: uniform
            if the sampler is exact.
        p_values: (quantities,) of uniformity, adjusted by Holm.
        ess: the smallest effective sample size of a posterior, for its worst quantity.

    >>> ranks = np.linspace(0.005, 0.995, 100)[:, None]
    >>> result = Calibration("nuts", ("LM0",), ranks, np.array([1.0]), 400.0)
    >>> print(result)
    nuts, 100 replications: calibrated
    quantity  uniform ranks
    LM0       p = 1
    - of 100 such runs, 95 would find draws that are shifted by 0.50 posterior sd
    >>> result.passed, result.as_dict()["passed"]
    (True, True)
    """

    sampler: str
    names: tuple[str, ...]
    ranks: Float64
    p_values: Float64
    ess: float

    @property
    def passed(self) -> bool:
        """Whether the ranks of all quantities are uniform, at a joint level of 1%."""
        return bool(np.all(self.p_values >= LEVEL))

    @property
    def detected_shift(self) -> float:
        """The shift of the draws of a quantity, in posterior sd, that 95 of 100 such runs find."""
        return find_detected_shift(len(self.ranks), RANKED, LEVEL / len(self.names), _PROBABILITY)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "passed": self.passed,
            "level": LEVEL,
            "replications": len(self.ranks),
            "smallest_ess": self.ess,
            "detected_shift": self.detected_shift,
            "p_values": dict(zip(self.names, self.p_values.tolist(), strict=True)),
            "ranks": {name: self.ranks[:, k].tolist() for k, name in enumerate(self.names)},
        }

    def _summarise(self) -> tuple[str, Table, list[str]]:
        rows = [
            (name, f"p = {p:.3g}" + ("" if p >= LEVEL else f"  FAILED: {_describe_fault(ranks)}"))
            for name, p, ranks in zip(self.names, self.p_values, self.ranks.T, strict=True)
        ]
        verdict = "calibrated" if self.passed else "NOT calibrated"
        title = f"{self.sampler}, {len(self.ranks)} replications: {verdict}"
        caveat = f"a posterior had {self.ess:.0f} effective draws for {RANKED} ranks: raise draws"
        passed = (self.p_values >= LEVEL).tolist()
        table = Table(("quantity", "uniform ranks"), rows, passed=passed)
        power = (
            f"of 100 such runs, {100 * _PROBABILITY:g} would find draws that are shifted by "
            f"{self.detected_shift:.2f} posterior sd"
        )
        return title, table, [power, *([caveat] if self.ess < RANKED else [])]

    def section(self) -> Section:
        """Return the section of a page: the distribution of the ranks, and the table."""
        title, table, notes = self._summarise()
        points, lower, upper = uniform_bands(len(self.ranks), _PROBABILITY)
        band = Layer(points, upper - points, "band", lower - points)
        pictures = []
        for name, ranks in zip(self.names, self.ranks.T, strict=True):
            share = np.searchsorted(np.sort(ranks), points, side="right") / len(ranks)
            pictures.append(plot(name, [band, Layer(points, share - points, choose_style(0))]))
        return Section(title, [plots(pictures, _READING), table, *notes])


def run_calibration(
    replicate: Callable[[int], Replication],
    names: Sequence[str],
    *,
    replications: int = 200,
    sampler: str = "sampler",
    seed: int = 0,
    jobs: int = 1,
    max_seconds: float | None = None,
    progress: bool | Reporter = False,
) -> Calibration:
    """Run simulation-based calibration (Talts et al. 2018; Modrák et al. 2023).

    If truths are drawn from the prior, data from the model given the truth, and draws from the
    posterior given the data, the rank of the truth among independent draws is uniform.

    Args:
        replicate: makes replication number i, which depends only on that number.
        names: of the quantities that it returns.
        replications: their number; see `Calibration.detected_shift` for what it finds.
        sampler: its name.
        seed: of the selection of draws, and of ties.
        jobs: the number of threads.
        max_seconds: no replication begins later; those that have ended are ranked.
        progress: True draws a bar on standard error.

    Raises:
        UsageError: if there are too few replications.

    >>> def exact(i):
    ...     rng = np.random.default_rng(i)
    ...     truth = rng.normal()
    ...     data = rng.normal(truth)
    ...     return Replication([truth], rng.normal(data / 2, 0.5**0.5, size=(1, 99, 1)))
    >>> bool(run_calibration(exact, ["location"], replications=100))
    True
    """
    if replications < _FEWEST:
        raise wrong_value(f"replications must be at least {_FEWEST}", replications, "replications")
    from joblib import delayed

    columns, start = tuple(names), time()
    ranked, seconds = list[tuple[Float64, float]](), list[float]()

    def replicate_in_time(i: int) -> Replication | None:
        return replicate(i) if max_seconds is None or time() - start <= max_seconds else None

    def replicate_block(block: range) -> list[Replication | None]:
        return [replicate_in_time(i) for i in block]

    # Threads, not processes of this machine, because they share compiled programs.
    workers = parallel_workers(jobs, prefer="threads")
    with reporter(progress, f"calibrate {sampler}") as report, workers as parallel:
        # Other processes compile the program of each call that they receive.
        size = 1 if parallel.shares_memory else ceil(replications / parallel.width)
        blocks = (
            range(replications)[first : first + size] for first in range(0, replications, size)
        )
        runs = enumerate(chain.from_iterable(parallel(map(delayed(replicate_block), blocks))))
        for i, run in ((i, run) for i, run in runs if run is not None):
            ranked.append(_rank_true_values(run, columns, np.random.default_rng([seed, i])))
            report(len(ranked), replications, "replications")
            elapsed = sum(seconds)
            seconds.append(time() - start - elapsed)
            if elapsed < _SILENT_SECONDS <= sum(seconds):
                left = [sampler] * (replications - len(ranked))
                done = f"calibrate {sampler}: {len(ranked)} of {replications} replications"
                log_info(done + describe_remaining(left, {sampler: seconds}))
    if len(ranked) < _FEWEST:
        raise UsageError(
            f"a calibration needs at least {_FEWEST} replications, and {len(ranked)} have ended "
            "within max_seconds: raise max_seconds, or lower the draws of the sampler",
            parameter="max_seconds",
            code="no-data",
        )
    ranks = np.array([of_run for of_run, _ in ranked])
    p_values = holm([uniformity_test(of_quantity) for of_quantity in ranks.T])
    return Calibration(sampler, columns, ranks, p_values, min(ess for _, ess in ranked))


def _rank_true_values(
    run: Replication, names: tuple[str, ...], rng: np.random.Generator
) -> tuple[Float64, float]:
    """Return the ranks of the true values, (quantities,) in [0, 1], and the smallest ESS.

    A rank from 0 to L gets a random position in its part of the interval, so that ranks are
    exactly uniform. Ties, such as in a chain that does not move, are broken at random.
    """
    log_weight = None if run.log_weight is None else np.asarray(run.log_weight, np.float64)
    kind = "chains" if log_weight is None else "weighted"
    draws = name_array(run.draws, names, kind=kind, log_weight=log_weight)
    sample, truth = resample_independent(draws, RANKED, rng), np.asarray(run.truth, np.float64)
    tied = (sample == truth).sum(axis=0)
    rank = (sample < truth).sum(axis=0) + rng.integers(0, tied + 1)
    return (rank + rng.uniform(size=len(rank))) / (RANKED + 1), smallest_ess(draws)


def write_calibrations(
    calibrations: Sequence[Calibration],
    path: Path,
    *,
    provenance: Mapping[str, str] | None = None,
    command: str = "",
) -> None:
    """Write a self-contained HTML page, or the numbers if the name of the file ends in `.json`.

    Args:
        calibrations: one a sampler.
        path: of the file.
        provenance: of the results, for the page: data, settings, seed.
        command: that reproduces it.

    Raises:
        DataError: if the file cannot be written.
    """
    wrong = ", ".join(one.sampler for one in calibrations if not one)
    right = ", ".join(one.sampler for one in calibrations if one)
    summary = Headline(f"NOT calibrated: {wrong}." if wrong else f"Calibrated: {right}.", not wrong)
    sections = [one.section() for one in calibrations]
    sections.append(describe_provenance(provenance or {}, command, [_METHOD]))
    text = page("Samplers calibrated", summary, sections)
    if path.suffix == ".json":
        text = json.dumps([one.as_dict() for one in calibrations], indent=1)
    with atomic_writer(path) as file:
        file.write(text)


def _describe_fault(ranks: Float64) -> str:
    """Describe non-uniform ranks by the moment that deviates most from that of uniform ones."""
    # Both in standard errors times √N: a uniform value has variance 1/12, and its squared deviation
    # from 1/2 has variance 1/180.
    location = (ranks.mean() - 1 / 2) * np.sqrt(12)
    scale = (np.mean((ranks - 1 / 2) ** 2) - 1 / 12) * np.sqrt(180)
    if abs(location) > abs(scale):
        return "the draws are too small" if location > 0 else "the draws are too large"
    return "the draws are too narrow" if scale > 0 else "the draws are too wide"

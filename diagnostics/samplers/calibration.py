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
from typing import TYPE_CHECKING, Any, NamedTuple

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
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.adapting.weights_target import Model, WeightsTarget
from bpa_ppl.densities.model_target import require_simulated
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
from bpa_ppl.diagnostics.samplers.running import describe_remaining, find_target, resolve_samplers
from bpa_ppl.diagnostics.samplers.runs import resample_independent
from bpa_ppl.diagnostics.samplers.uniformity import (
    find_detected_shift,
    uniform_bands,
    uniformity_test,
)
from bpa_ppl.errors import UsageError, wrong_value
from bpa_ppl.gains.gains import AnyGain, resolve
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.posterior.draws import name_array, total
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.run_sampler import draw
from bpa_ppl.weight_draws import WEIGHTS
from bpa_ppl.weights import AnyStart

if TYPE_CHECKING:
    from bpa_ppl.models.priors.prior import Prior, PriorFamily

#: The probability that an exact sampler fails.
LEVEL = 0.01
#: The fewest replications, and the seconds after which the time that remains is logged.
_FEWEST, _SILENT_SECONDS = 20, 20.0
#: The number of draws of each posterior among which the truth is ranked.
RANKED = 99
_PROBABILITY = 0.95
_METHOD = (
    "Weights are drawn from the prior, oracles from the model given the weights, and the sampler "
    f"is run on them; the true values are ranked among {RANKED} of its draws. The ranks are "
    "uniform if the sampler draws from the posterior. p is the p-value of uniformity, with Holm's "
    "correction for the number of quantities."
)
_READING = (
    "The ECDF of the ranks minus that of uniform ranks. Grey: the band that contains the whole "
    f"line of an exact sampler with a probability of {100 * _PROBABILITY:g}%, for one quantity. A "
    "line above the band at the left: draws too large; below: too small; above and then below: "
    "too narrow; below and then above: too wide."
)
#: Calibrated next to the weights: a quantity that depends on the data, and so detects errors that
#: the weights do not show (Modrák et al. 2023).
LOG_LIKELIHOOD = "log p(A|λ)"
_LOG_LIKELIHOOD = "log likelihood"  # of other programs
_OBSERVED = "oracle"


def calibrate(
    model: Callable[..., Any] | Target,
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
        model: a NumPyro program, as for `sample`, or a density of n-best lists, by
            `density_to_simulate` or, with references, `log_density`.
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
    engines, target = resolve_samplers(samplers), find_target(model, args, kwargs)
    options: dict[str, Any] = {"jobs": jobs, "max_seconds": max_seconds, "progress": progress}
    return list(calibrate_each(target, engines, replications=replications, seed=seed, **options))


def calibrate_each(
    target: Target,
    engines: Sequence[Sampler],
    *,
    seed: int = 0,
    max_seconds: float | None = None,
    **options: Any,
) -> Iterator[Calibration]:
    """Yield the calibration of each sampler when it is done; the arguments are as for `calibrate`.

    Each has an equal share of the seconds that remain.
    """
    with NUMPYRO_LOCK, jax.enable_x64(True):
        simulation = _make_simulation(target)
    end = None if max_seconds is None else time() + max_seconds
    for k, engine in enumerate(engines):
        yield run_calibration(
            partial(_replicate, engine, simulation, check_seed(seed)),
            simulation.labels,
            sampler=SAMPLERS.name_of(engine),
            seed=seed,
            max_seconds=None if end is None else (end - time()) / (len(engines) - k),
            **options,
        )


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
        lists: the lists; preferences in them say which candidates are compared, and by whom.
        weights: the canonical weights λ_T.
        prior: from which the weights are drawn.
        likelihood: a distribution of the observations: `oracle` or `preference`.
        gain: if the likelihood uses gains; as for `adapt`.
        model: a NumPyro model with the sites `weights` and `oracle`, such as one of your own.

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


def _make_simulation(target: Target) -> _Simulation:
    """Return how oracles or answers, or the data of any program, are simulated.

    Raises:
        UsageError: if the likelihood is no distribution of them, or the program observes nothing,
            or a `numpyro.factor`.
    """
    latent = inspect_model(target).latent
    if not isinstance(target, WeightsTarget):
        require_simulated(target)
        labels = (*_label_cells(target, latent), _LOG_LIKELIHOOD)
        return _Simulation(target, latent, labels, lambda data: replace(target, data=(data,)))
    _require_generative(target.likelihood)
    observed = require_adaptation(target).observed
    if observed.choices is not None and (observed.choices.weight != 1).any():
        message = "answers with weights other than 1 cannot be simulated: leave out the weights"
        raise UsageError(message, parameter="likelihood", code="not-supported")
    names = (WEIGHTS, *(name for name in latent if name != WEIGHTS))

    def give_data(simulated: dict[str, Any]) -> Target:
        oracle = simulated[_OBSERVED].astype(target.lists.oracle.dtype)
        lists = target.lists._replace(oracle=oracle)
        return replace(target, data=target.data._replace(lists=lists))

    labels = (*target.features, *_label_cells(target, names[1:]), LOG_LIKELIHOOD)
    return _Simulation(target, names, labels, give_data)


def _require_generative(likelihood: Likelihood) -> None:
    """Refuse a likelihood that is no distribution of what is observed."""
    if not likelihood.generative:
        name = LIKELIHOODS.name_of(likelihood)
        message = f"oracles cannot be simulated from {name}: choose oracle or preference"
        raise UsageError(message, parameter="likelihood", code="not-supported")


def _replicate(engine: Sampler, simulation: _Simulation, seed: int, i: int) -> Replication:
    """Simulate data, and draw from the posterior given the data."""
    # The setting is local to a thread.
    with NUMPYRO_LOCK, jax.enable_x64(True):
        key = jax.random.fold_in(jax.random.key(seed), i)
        truth, observed, likelihood = simulate(simulation.target, simulation.names, key)
        target = simulation.given(observed)
        sampled = draw(engine, target, seed + i)
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


class Replication(NamedTuple):
    """True values, and draws of the posterior given data simulated from them.

    Attributes:
        truth: (quantities,) such as the weights and their log-likelihood.
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

"""Run a sampler over a grid of settings: convergence, acceptance, and held-out scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed

from bpa_ppl._runtime.arguments import SEEDS, check_seed
from bpa_ppl._runtime.messages import format_with_spread
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.finish import draw_posterior
from bpa_ppl.adapting.prepare import choose_gain
from bpa_ppl.components import Component, Registry
from bpa_ppl.decoding.reranker import rerank
from bpa_ppl.densities.target import Target
from bpa_ppl.diagnostics.check.check import check
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.diagnostics.pages.figures import write_figure
from bpa_ppl.diagnostics.samplers.efficiency import largest_r_hat, smallest_ess
from bpa_ppl.diagnostics.ways.paired import metric_title, score_choices
from bpa_ppl.errors import UsageError, wrong_type
from bpa_ppl.extras.studies.page import draw_settings
from bpa_ppl.extras.studies.results import write_rows
from bpa_ppl.extras.studies.running import with_components
from bpa_ppl.formats.streams import output_folder
from bpa_ppl.gains.gains import AnyGain
from bpa_ppl.gains.metric import Metric
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS
from bpa_ppl.posterior.weight_draws import WeightDraws
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.weights import AnyStart, StartingWeights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Fewer draws of a chain cannot be split in two for R-hat.
_MIN_DRAWS = 4


@dataclass(frozen=True)
class SweepResult(Outcome):
    """The runs of a sampler over a grid of settings.

    Attributes:
        sampler: its name.
        varied: the names of the settings that were varied.
        runs: a row for each run: the values of the settings, the number of the `run`, and what it
            has of `R-hat` (the largest), `acceptance`, `ESS` (the smallest bulk ESS, of weighted
            draws Kish's), `passed` (1 if the check passes), and scores of the test lists, such as
            `TER`, `BLEU` and `length`. The last setting varies fastest.
    """

    sampler: str
    varied: tuple[str, ...]
    runs: tuple[dict[str, float], ...]

    @property
    def passed(self) -> bool:
        return any(min(values["passed"]) == 1 for _, values in self.combinations())

    @property
    def quantities(self) -> list[str]:
        """The names of the results."""
        names = dict.fromkeys(name for row in self.runs for name in row)
        return [name for name in names if name not in (*self.varied, "run")]

    def combinations(self) -> list[tuple[dict[str, float], dict[str, list[float]]]]:
        """Return the settings of each combination, and the values of each quantity over runs."""
        groups: dict[tuple[float, ...], dict[str, list[float]]] = {}
        for row in self.runs:
            group = groups.setdefault(tuple(row[name] for name in self.varied), {})
            for name in self.quantities:
                if name in row:
                    group.setdefault(name, []).append(row[name])
        return [(dict(zip(self.varied, k, strict=True)), group) for k, group in groups.items()]

    def _summarise(self) -> tuple[str, Table, list[str]]:
        """Return a row for each combination of settings: means ± standard deviations of runs."""
        rows = []
        for settings, values in self.combinations():
            cells = [f"{value:g}" for value in settings.values()]
            for name in self.quantities:
                mean, deviation = _measure_spread(values.get(name, ()))
                cell = "–" if mean is None else format_with_spread(mean, deviation or 0.0)
                if name == "passed":
                    cell = f"{int(sum(values[name]))} of {len(values[name])}"
                cells.append(cell)
            rows.append(cells)
        caption = "Means ± standard deviations over runs; passed: runs that pass `bpa check`."
        return self.sampler, Table([*self.varied, *self.quantities], rows, caption), []

    def figure(self) -> Figure:
        """Draw each quantity against the first setting, a line for each value of the others."""
        first, *others = self.varied
        quantities = [name for name in self.quantities if name != "passed"]
        points = []
        for settings, values in self.combinations():
            curve = ", ".join(f"{name}={settings[name]:g}" for name in others) or self.sampler
            for name in quantities:
                mean, deviation = _measure_spread(values.get(name, ()))
                if mean is not None:
                    point = {"curve": curve, "value": f"{settings[first]:g}", "metric": name}
                    interval = np.nan if deviation is None else 2 * deviation
                    points.append(point | {"mean": mean, "interval": interval})
        return draw_settings(points, first, {name: name for name in quantities})


def _measure_spread(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation; None without a value, or for one without a spread."""
    mean = float(np.mean(values)) if values else None
    is_defined = len(values) > 1 and bool(np.isfinite(values).all())
    return mean, float(np.std(values, ddof=1)) if is_defined else None


def sweep(
    lists: NBest,
    weights: AnyStart,
    sampler: str,
    values: Mapping[str, Sequence[float]],
    *,
    runs: int = 4,
    seed: int = 0,
    jobs: int = 1,
    settings: Mapping[str, Any] | None = None,
    test: NBest | None = None,
    gain: AnyGain | None = None,
    progress: bool | Reporter = False,
    **options: Any,
) -> SweepResult:
    """Run a sampler with each combination of values of some settings.

    R-hat and acceptance of the published random walk over its proposal variance σ_o and burn-in:
    `sweep(lists, weights, "rwm-isotropic", {"proposal_variance": [0.001, 0.01, 0.1], "warmup":
    [0, 100, 500]}, likelihood="oracle")`. Number of samples against TER: `sweep(lists, weights,
    "imh", {"draws": [10, 100, 1000]}, test=new)`. Variance σ_T of the prior: `sweep(lists, weights,
    "imh", {"variance": [0.01, 0.1, 1]}, test=new)`.

    Args:
        lists: the adaptation sentences, as for `adapt`.
        weights: as for `adapt`.
        sampler: its name.
        values: the values of each setting; the first one is the x axis of the figure. A setting is
            of the sampler, else of the likelihood that `options` name, else of the prior.
        runs: the number of runs with each combination, with different seeds.
        seed: of the first run.
        jobs: processes at the same time; -1 uses all cores.
        settings: other settings of the sampler.
        test: lists, with references or judgements, that are reranked with each posterior, whether
            it passes its check or not.
        gain: as for `adapt`; scores are those of this gain, TER, BLEU and length.
        progress: True draws a bar on standard error.
        options: other keyword arguments of `adapt`: `likelihood`, `prior`, `add`, …

    Raises:
        DataError: if lists, references and weights do not fit together.
        UsageError: if there is no such sampler or setting, or a value is invalid.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat"], ["the dog", "dog"]],
    ...     [[[1.0], [0.0]], [[0.0], [2.0]]],
    ...     ["Errors"],
    ...     references=["the cat", "the dog"],
    ... )
    >>> result = sweep(lists, {"Errors": 0.5}, "laplace", {"draws": [10, 100]}, runs=2, test=lists)
    >>> len(result.runs), result.quantities
    (4, ['ESS', 'passed', 'TER', 'BLEU', 'length'])
    """
    seed = check_seed(seed)
    if not values or runs < 1 or not all(len(column) for column in values.values()):
        raise UsageError(
            "give at least one setting with its values, and one run of each",
            parameter="values" if runs >= 1 else "runs",
        )
    for name, column in values.items():
        if any(isinstance(value, bool | str) for value in column):
            raise wrong_type(f"the values of {name} must be numbers", list(column), "values")
    grid = [dict(zip(values, one, strict=True)) for one in product(*values.values())]
    # Mistakes are found before the long work.
    varied = [_split(one, sampler, settings or {}, options) for one in grid]
    start = StartingWeights.of(weights)
    chosen = choose_gain(lists, start, gain)
    targets: dict[str, Target] = {}
    rows: list[dict[str, float]] = []
    call = delayed(with_components(_run))

    def calls() -> Iterator[tuple[dict[str, float], Any]]:
        for combination, (engine, others) in zip(grid, varied, strict=True):
            key = repr(others)  # with all settings
            if key not in targets:
                targets[key] = log_density(
                    lists, start, gain=chosen, sampler=sampler, **{**options, **others}
                )
            for run in range(runs):
                number = (seed + run) % SEEDS
                yield combination, call(targets[key], engine, number, test, chosen)

    with reporter(progress, "sweep") as report, parallel_workers(jobs) as parallel:
        for combination, quantities in parallel.in_order(calls()):
            rows.append({**combination, "run": len(rows) % runs, **quantities})
            text = ", ".join(f"{name}={value:g}" for name, value in combination.items())
            report(len(rows), len(grid) * runs, text)
    return SweepResult(sampler, tuple(values), tuple(rows))


def _split(
    values: Mapping[str, float],
    sampler: str,
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[Sampler, dict[str, Component]]:
    """Return the sampler, and the likelihood and the prior if they have one of the settings.

    >>> owned = _split({"draws": 5, "gamma": 4, "variance": 1}, "imh", {}, {"likelihood": "margin"})
    >>> owned[1]["likelihood"], owned[1]["prior"].variance
    (Margin(gamma=4, ties=None), 1)
    """
    left, fields = dict(values), SAMPLERS[SAMPLERS.parse(sampler)[0]].__struct_fields__
    of_sampler = {n: left.pop(n) for n in values if n in fields}
    others: dict[str, Component] = {}
    registries: dict[str, Registry[Any]] = {"likelihood": LIKELIHOODS, "prior": PRIORS}
    for part, registry in registries.items():
        component = options.get(part) or ("isotropic" if part == "prior" else None)
        if isinstance(component, str):
            component = registry.resolve(component)
        if isinstance(component, Component):
            fields = component.__struct_fields__
            if of_component := {n: left.pop(n) for n in [*left] if n in fields}:
                title = f"{part} {registry.name_of(component)}"
                others[part] = component.configured(title, {**component.settings(), **of_component})
    return SAMPLERS.resolve(sampler, {**settings, **of_sampler, **left}), others


def _run(
    target: Target, engine: Sampler, seed: int, test: NBest | None, gain: Metric
) -> dict[str, float]:
    """Return the quantities of one run; those that it does not have are left out."""
    draws, result = draw_posterior(target, engine, seed=seed), {}
    weights = WeightDraws(draws).marginal
    if not draws.weighted and draws.shape[1] >= _MIN_DRAWS:
        result["R-hat"] = largest_r_hat(weights)
    if (rates := draws.statistics.get("acceptance_rate")) is not None:
        result["acceptance"] = float(np.mean(rates))
    result["ESS"] = smallest_ess(weights)
    result["passed"] = float(bool(check(draws)))
    if test is not None:
        choice = rerank(test, draws, unchecked=True).choice
        result |= {metric_title(one): one.value for one in score_choices(test, choice, gain)}
    return result


def write_sweep(sweep: SweepResult, folder: Path) -> list[Path]:
    """Write the runs as a table, `sweep.csv`, and the figure, `sweep.png`; return the paths.

    Raises:
        DataError: if the folder or a file cannot be written.
    """
    paths = [folder / "sweep.csv", folder / "sweep.png"]
    with output_folder(folder):
        write_rows(sweep.runs, paths[0])
        write_figure(sweep.figure(), paths[1])
    return paths

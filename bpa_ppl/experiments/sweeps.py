"""Run a sampler over a grid of its settings: convergence, acceptance, and held-out scores."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics.checks import check
from bpa_ppl.diagnostics.pages.figures import empty_figure, log_axis, write_figure
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import SEEDS, UsageError, checked_seed
from bpa_ppl.experiments.estimates import largest_r_hat, smallest_ess
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_writer
from bpa_ppl.nbest import NBest
from bpa_ppl.options import AdaptOptions
from bpa_ppl.posterior import Draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import Metric
from bpa_ppl.quality.scoreboard import cells, choice_scores
from bpa_ppl.registry import SAMPLERS
from bpa_ppl.sampling import adapt_draws
from bpa_ppl.sampling.adapting import gain_of
from bpa_ppl.weights import AnyWeights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Fewer draws of a chain cannot be split in two for R-hat.
_MIN_DRAWS = 4
_LOG_RATIO = 20  # between values that are shown on a logarithmic axis
_LINES = 8  # in a panel of the figure


@dataclass(frozen=True)
class SweepRow:
    """The runs with one combination of settings: the mean over runs, and the standard deviation.

    Attributes:
        settings: the values that were varied.
        runs: of each quantity its value in each run: `R-hat` (the largest), `acceptance`, `ESS`
            (the smallest bulk ESS, of weighted draws Kish's), `passed` (1 if the check passes), and
            scores of the test lists, such as `TER`, `BLEU` and `length`. A quantity that the
            sampler does not have is left out.
    """

    settings: dict[str, Any]
    runs: dict[str, tuple[float, ...]]

    def mean(self, quantity: str) -> float:
        """Return the mean over runs, NaN if it is unknown."""
        return float(np.mean(self.runs.get(quantity, (np.nan,))))

    def sd(self, quantity: str) -> float:
        """Return the standard deviation over runs, NaN with a single run or an infinite value."""
        values = self.runs.get(quantity, ())
        known = len(values) > 1 and np.isfinite(values).all()
        return float(np.std(values, ddof=1)) if known else np.nan


@dataclass(frozen=True)
class SweepResult(Outcome):
    """The results of a sampler over a grid of its settings.

    Attributes:
        sampler: its name.
        rows: one for each combination, the last setting varying fastest.
    """

    sampler: str
    rows: tuple[SweepRow, ...]

    @property
    def passed(self) -> bool:
        """Whether any setting passes the check in every run."""
        return any(row.mean("passed") == 1 for row in self.rows)

    @property
    def varied(self) -> list[str]:
        """The names of the settings that were varied."""
        return list(self.rows[0].settings)

    @property
    def quantities(self) -> list[str]:
        """The names of the results."""
        return list(dict.fromkeys(name for row in self.rows for name in row.runs))

    def table(self) -> Table:
        """Return a row for each combination of settings: means ± standard deviations of runs."""

        def cell(row: SweepRow, name: str) -> str:
            if name not in row.runs:
                return "–"
            if name == "passed":
                return f"{int(sum(row.runs[name]))} of {len(row.runs[name])}"
            sd = row.sd(name)
            return f"{row.mean(name):.4g}" + ("" if np.isnan(sd) else f" ± {sd:.2g}")

        rows = [
            [
                *(f"{value:g}" for value in row.settings.values()),
                *(cell(row, name) for name in self.quantities),
            ]
            for row in self.rows
        ]
        caption = "Means ± standard deviations over runs; passed: runs that pass `bpa check`."
        return Table([*self.varied, *self.quantities], rows, caption)

    def _shown(self) -> tuple[str, Table, list[str]]:
        return self.sampler, self.table(), []

    def figure(self) -> Figure:
        """Draw each quantity over the first setting, a line for each value of the others."""
        shown = [name for name in self.quantities if name != "passed"]
        figure, grid = empty_figure(-(-len(shown) // 2), 2, 2.4, share_x=False)
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        first, *others = self.varied
        lines: dict[tuple[Any, ...], list[SweepRow]] = {}
        for row in self.rows:
            lines.setdefault(tuple(row.settings[name] for name in others), []).append(row)
        for axes, name in zip(grid.flat, shown, strict=False):
            for values, rows in list(lines.items())[:_LINES]:
                label = ", ".join(f"{n}={v:g}" for n, v in zip(others, values, strict=True))
                x = [row.settings[first] for row in rows]
                sd = np.nan_to_num([row.sd(name) for row in rows])
                y = [row.mean(name) for row in rows]
                axes.errorbar(x, y, sd, marker="o", markersize=4, label=label)
            x = [row.settings[first] for row in self.rows]
            if min(x) > 0 and max(x) / min(x) >= _LOG_RATIO:
                log_axis(axes, min(x) / 1.3, max(x) * 1.3)
            axes.set(xlabel=first, ylabel=name)
        if others:
            grid.flat[0].legend(fontsize="small")
        return figure


def sweep(
    nbest: NBest,
    weights: AnyWeights,
    sampler: str,
    values: Mapping[str, Sequence[float]],
    *,
    runs: int = 4,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    test: NBest | None = None,
    metric: str | Metric | None = None,
    progress: bool | Reporter = False,
    **options: Any,
) -> SweepResult:
    """Run a sampler with each combination of values of its settings.

    R-hat and acceptance of the published random walk over its proposal variance σ_o and burn-in:
    `sweep(lists, weights, "rwm-isotropic", {"proposal_variance": [0.001, 0.01, 0.1], "warmup":
    [0, 100, 500]}, likelihood="oracle")`. Number of samples against TER: `sweep(lists, weights,
    "imh", {"draws": [10, 100, 1000]}, test=new)`.

    Args:
        nbest: the adaptation sentences, as for `adapt`.
        weights: as for `adapt`.
        sampler: its name.
        values: the values of each setting of the sampler; the first one is the x axis of the
            figure.
        runs: the number of runs with each combination, with different seeds.
        seed: of the first run.
        settings: other settings of the sampler.
        test: lists, with references or judgements, that are reranked with each posterior, whether
            it passes its check or not.
        metric: as for `adapt`; scores are those of this metric, TER, BLEU and length.
        progress: True draws a bar on standard error.
        options: of `adapt`: `likelihood`, `prior_variance`, `fixed`, `defaults`, …

    Raises:
        DataError: if lists, references and weights do not fit together.
        UsageError: if there is no such sampler or setting, or a value is invalid.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat"], ["the dog", "dog"]],
    ...     [[[1.0], [0.0]], [[0.0], [2.0]]],
    ...     ["Errors"],
    ...     references=["the cat", "the dog"],
    ... )
    >>> grid = {"draws": [10, 100], "warmup": [0, 50]}
    >>> result = sweep(lists, {"Errors": 0.5}, "rwm", grid, runs=2, test=lists)
    >>> len(result.rows), result.quantities
    (4, ['R-hat', 'acceptance', 'ESS', 'passed', 'TER', 'BLEU', 'length'])
    """
    seed = checked_seed(seed)
    if not values or runs < 1 or not all(len(column) for column in values.values()):
        raise UsageError(
            "give at least one setting with its values, and one run of each",
            parameter="values" if runs >= 1 else "runs",
        )
    for name, column in values.items():
        for value in column:
            if isinstance(value, bool | str):
                problem = f"{name} must have numbers as values, not {value!r}"
                raise UsageError(problem, parameter="values", code="wrong-type")
    grid = [dict(zip(values, one, strict=True)) for one in product(*values.values())]
    for combination in grid:  # find mistakes before the long work
        SAMPLERS.resolve(sampler, {**(settings or {}), **combination})
    goal = gain_of(AdaptOptions(metric=metric), nbest, weights)
    rows: list[SweepRow] = []
    with reporter(progress, "sweep") as report:
        for combination in grid:
            results: list[dict[str, float]] = []
            for run in range(runs):
                text = ", ".join(f"{name}={value:g}" for name, value in combination.items())
                report(len(rows) * runs + run, len(grid) * runs, text)
                adapting = AdaptOptions(
                    sampler=sampler,
                    settings={**(settings or {}), **combination},
                    seed=(seed + run) % SEEDS,
                    metric=goal,
                    **options,
                )
                results.append(_results(adapt_draws(nbest, weights, adapting), test, goal))
            columns = {name: tuple(one[name] for one in results) for name in results[0]}
            rows.append(SweepRow(combination, columns))
    return SweepResult(sampler, tuple(rows))


def _results(draws: Draws, test: NBest | None, metric: Metric) -> dict[str, float]:
    """Return the quantities of one run; those that it does not have are left out."""
    result = {}
    if not draws.weighted and draws.shape[1] >= _MIN_DRAWS:
        result["R-hat"] = largest_r_hat(draws)
    if (rates := draws.statistics.get("acceptance_rate")) is not None:
        result["acceptance"] = float(np.mean(rates))
    result["ESS"] = smallest_ess(draws)
    result["passed"] = float(bool(check(draws)))
    if test is not None:
        choice = rerank(test, draws, unchecked=True).choice
        result |= {name: value for name, value, _ in cells(choice_scores(test, choice, metric))}
    return result


def write_sweep(sweep: SweepResult, folder: Path, kind: str = "png") -> list[Path]:
    """Write the runs as a table, `sweep.csv`, and the figure; return the paths.

    Args:
        sweep: the results.
        folder: created if it does not exist.
        kind: of the figure: `png`, `pdf`, or `none`.

    Raises:
        DataError: if the folder or a file cannot be written.
    """
    make_folder(folder)
    paths = [folder / "sweep.csv"]
    with atomic_writer(paths[0]) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*sweep.varied, "run", *sweep.quantities])
        for row in sweep.rows:
            for run in range(len(row.runs["ESS"])):
                found = [
                    row.runs[name][run] if name in row.runs else "" for name in sweep.quantities
                ]
                writer.writerow([*row.settings.values(), run, *found])
    if kind != "none":
        paths.append(folder / f"sweep.{kind}")
        write_figure(sweep.figure(), paths[1])
    return paths

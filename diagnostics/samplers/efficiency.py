"""Efficiency of a sampler: what its draws cost, what they are worth, and how sure that is.

All samplers are ranked by one number: effective draws per second for the posterior mean of the
worst weight, which has one definition for chains and for weighted draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.page import Table
from bpa_ppl.posterior.draws import Draws, kish
from bpa_ppl.posterior.statistics import ess, r_hat

#: Of the intervals of costs.
PROBABILITY = 0.95

_CURVE_POINTS = 40  # of a curve of errors
_Bounds = tuple[float, float]
#: Name of a column -> value; None if it is unknown.
Row = dict[str, Any]
#: The first of the `COLUMNS`, on the draws.
QUALITY = (
    *("runs", "chains", "draws", "ess", "bulk_ess", "tail_ess", "kish_ess", "acceptance", "r_hat"),
)
#: Columns of the cost and quality of the draws of one sampler; None if a run does not record it.
#: Intervals are those of the spread over runs, on the logarithmic scale, by Student's t: the
#: effective sample size of one run is itself an estimate, and its error is part of that spread.
#:
#: `runs`, `chains` of each, and kept `draws` of each chain;
#: `ess` of the posterior mean, sd² / MCSE², for the worst weight, mean over runs: it may exceed the
#: number of draws if they are antithetic, and rates and the ranking use it; `bulk_ess`,
#: rank-normalised, and `tail_ess`, of the quantiles of 5 % and 95 %, of chains; `kish_ess` of
#: importance weights (Kish 1965); the mean `acceptance` rate; `r_hat`, the largest rank-normalised
#: split R-hat over all chains of all runs;
#: `seconds` of a run, the median; `ess_per_second`, the geometric mean over runs, with its
#: `ess_per_second_interval` of 95 %; `evaluations` of the density in a run, with or without
#: gradient, the statistic `n_steps`; `ess_per_evaluation`, the geometric mean over runs; and
#: `per_run`, of each run its `seed`, `seconds`, `ess`, `ess_per_second` and `evaluations`.
COLUMNS = (
    *QUALITY,
    *("seconds", "ess_per_second", "ess_per_second_interval", "evaluations", "ess_per_evaluation"),
    "per_run",
)


def measure_efficiency(runs: Sequence[Draws], joint: Draws) -> Row:
    """Return the cost and quality of the runs of a sampler, with `COLUMNS`.

    Args:
        runs: of the same sampler with different seeds.
        joint: all runs, as chains of one.

    Raises:
        DataError: if a `sampling_time` is not a number of seconds.
    """
    markov, per_run = not joint.weighted, tuple(map(_measure_cost, runs))

    def smallest(method: str) -> float | None:
        """Return the mean over runs of the ESS of the worst weight."""
        return float(np.mean([ess_by_weight(r, method).min() for r in runs])) if markov else None

    rates = [run.statistics.get("acceptance_rate") for run in runs]
    rate, interval = _geometric_mean([run["ess_per_second"] for run in per_run])
    per_evaluation, _ = _geometric_mean([ratio(r["ess"], r["evaluations"]) for r in per_run])
    return {
        "runs": len(runs),
        "chains": runs[0].shape[0],
        "draws": runs[0].shape[1],
        "ess": float(np.mean([run["ess"] for run in per_run])),
        "bulk_ess": smallest("bulk"),
        "tail_ess": smallest("tail"),
        "kish_ess": None if markov else float(np.mean([kish(run.importance) for run in runs])),
        "acceptance": _median(None if r is None else float(np.mean(r)) for r in rates),
        "r_hat": largest_r_hat(joint) if markov else None,
        "seconds": _median(run["seconds"] for run in per_run),
        "ess_per_second": rate,
        "ess_per_second_interval": interval,
        "evaluations": _median(run["evaluations"] for run in per_run),
        "ess_per_evaluation": per_evaluation,
        "per_run": per_run,
    }


def _measure_cost(run: Draws) -> Row:
    """Return the cost of a run, and the effective draws that it bought."""
    seconds, ess = run.record.sampler.seconds, float(ess_of_means(run).min())
    return {
        "seed": run.record.seed,
        "seconds": seconds,
        "ess": ess,
        "ess_per_second": ratio(ess, seconds),
        "evaluations": None if (steps := _add_evaluations(run)) is None else float(steps[-1]),
    }


def ess_by_weight(draws: Draws, method: str = "bulk") -> Float64:
    """Return the effective sample size of each weight, (Q,); 0 for one that is constant.

    Args:
        draws: chains, or draws with importance weights, whose ESS is Kish's.
        method: of ArviZ: `bulk`, `tail` or `mean`.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> constant = name_array(np.zeros((4, 100, 1)), ("LM0",))
    >>> ess_by_weight(constant).tolist()
    [0.0]
    """
    if draws.weighted:
        return np.full(len(draws.names), kish(draws.importance))
    moved = np.ptp(draws.array, axis=(0, 1)) > 0
    return np.where(moved, np.nan_to_num(ess(draws.array, method)), 0.0)


def smallest_ess(draws: Draws) -> float:
    """Return the smallest bulk ESS of a weight, or the ESS of the importance weights."""
    return float(np.min(ess_by_weight(draws)))


def largest_r_hat(draws: Draws) -> float:
    """Return the largest rank-normalised split R-hat of a weight; 1 for weighted draws."""
    if draws.weighted:
        return 1.0
    return float(np.max(np.nan_to_num(r_hat(draws.array), nan=np.inf)))


def ess_of_means(draws: Draws) -> Float64:
    """Return the effective sample size of the posterior mean of each weight, (Q,): sd² / MCSE².

    It is the number of independent draws whose mean has the same error. For chains it is ArviZ's
    `ess(method="mean")`. For weighted draws it uses the error of the self-normalised mean (Owen
    2013, §9.2), which can be too small if few draws have nearly all the weight: then Kish's ESS is
    small.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array([[[0.0], [2.0]]], ("LM0",), kind="weighted", log_weight=np.zeros((1, 2)))
    >>> ess_of_means(draws).tolist()  # with equal weights the number of draws
    [2.0]
    """
    if not draws.weighted:
        return ess_by_weight(draws, "mean")
    share, squares = draws.importance, (draws.flat - draws.mean) ** 2
    variance, error = share @ squares, share**2 @ squares
    return np.divide(variance, error, out=np.zeros_like(variance), where=error > 0)


def measure_running_error(runs: Sequence[Draws], reference: Draws) -> tuple[Row, ...]:
    """Return how the error of the posterior means falls with the evaluations that are spent.

    The mean of the first t draws of all chains of a run is compared with the mean of the reference.
    Of independent draws the error is 1/√n, except for the Monte-Carlo error of the reference, below
    which no error can be measured.

    Args:
        runs: of the same sampler with different seeds; of longer ones, as many draws of each chain
            as the shortest one has.
        reference: draws of the same variables.

    Returns:
        at most 40 rows: `evaluations` of the density in a run, the mean over runs, and the `error`,
        the root mean square over variables and runs, in posterior standard deviations of the
        reference. Empty if a run does not record its evaluations.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array([[[2.0], [0.0]]], ("LM0",), statistics={"n_steps": [[3, 5]]})
    >>> reference = name_array([[[-1.0], [1.0]]], ("LM0",))
    >>> measure_running_error([draws], reference)
    ({'evaluations': 3.0, 'error': 2.0}, {'evaluations': 8.0, 'error': 1.0})
    """
    budgets = [steps for run in runs if (steps := _add_evaluations(run)) is not None]
    if len(budgets) < len(runs):
        return ()
    length = min(map(len, budgets))
    last = np.unique(np.geomspace(1, length, _CURVE_POINTS).astype(int)) - 1
    varies = reference.deviation > 0
    squares = []
    for run in runs:
        centred = run.reordered(reference.names).array - reference.mean
        share = run.importance.reshape(run.shape)
        sums = np.cumsum((share[..., None] * centred).sum(axis=0), axis=0)[last]
        total = np.cumsum(share.sum(axis=0))[last]
        # Until a draw has a weight above 0, there is no mean.
        means = sums / np.where(total > 0, total, np.nan)[:, None]
        squares.append((means[:, varies] / reference.deviation[varies]) ** 2)
    errors = np.sqrt(np.concatenate(squares, axis=1).mean(axis=1))
    spent = np.mean([budget[last] for budget in budgets], axis=0)
    return tuple(
        {"evaluations": float(count), "error": float(error)}
        for count, error in zip(spent, errors, strict=True)
        if np.isfinite(error)
    )


def rank_samplers(costs: Mapping[str, Row]) -> list[Row]:
    """Rank samplers by effective draws per second, the fastest first.

    Args:
        costs: of the samplers to rank, by name: those whose draws are of the posterior. Samplers of
            unknown duration are left out.

    Returns:
        `sampler`; its `place` from 1, which it shares with the fastest if the interval of their
        ratio contains 1; `ess_per_second` for the posterior mean of the worst weight, with its
        `interval`; the `ratio` to that of the fastest, with its `ratio_interval`. Intervals, of
        95 %, are None with one run. Runs of the same round are paired, which cancels what changes
        on the machine from round to round; different numbers of runs have no `ratio_interval`.

    >>> runs = [{"ess_per_second": 100.0 * k, "ess_per_second_interval": None} for k in (1, 4)]
    >>> slow, fast = (run | {"per_run": [run]} for run in runs)
    >>> ranks = rank_samplers({"slow": slow, "fast": fast})
    >>> [(rank["sampler"], rank["place"], rank["ratio"]) for rank in ranks]
    [('fast', 1, 1.0), ('slow', 2, 0.25)]
    """
    timed = {name: cost for name, cost in costs.items() if cost["ess_per_second"]}
    names = sorted(timed, key=lambda name: -timed[name]["ess_per_second"])
    result = []
    for place, name in enumerate(names, 1):
        cost, fastest = timed[name], timed[names[0]]
        ratio, bounds = cost["ess_per_second"] / fastest["ess_per_second"], None
        pairs = [[run["ess_per_second"] for run in one["per_run"]] for one in (cost, fastest)]
        if place > 1 and len(pairs[0]) == len(pairs[1]):
            ratio, bounds = _geometric_mean([a / b for a, b in zip(*pairs, strict=True)])
        tied = bounds is not None and bounds[1] >= 1
        rate, interval = cost["ess_per_second"], cost["ess_per_second_interval"]
        row = {"sampler": name, "place": 1 if tied else place, "ess_per_second": rate}
        result.append(row | {"interval": interval, "ratio": ratio, "ratio_interval": bounds})
    return result


def rank_by_evaluations(costs: Mapping[str, Row]) -> list[Row]:
    """Rank samplers by effective draws per evaluation of the density, the cheapest first.

    Args:
        costs: as for `rank_samplers`; samplers that do not record evaluations are left out.

    >>> costs = {name: {"ess_per_evaluation": x} for name, x in (("a", 0.1), ("b", 0.2))}
    >>> rank_by_evaluations(costs)[1]
    {'sampler': 'a', 'place': 2, 'ess_per_evaluation': 0.1, 'ratio': 0.5}
    """
    rates = {name: x for name, cost in costs.items() if (x := cost["ess_per_evaluation"])}
    names = sorted(rates, key=lambda name: -rates[name])
    return [
        {
            "sampler": name,
            "place": place,
            "ess_per_evaluation": rates[name],
            "ratio": rates[name] / rates[names[0]],
        }
        for place, name in enumerate(names, 1)
    ]


def _geometric_mean(values: Sequence[float | None]) -> tuple[float | None, _Bounds | None]:
    """Return the geometric mean of positive numbers with its interval by Student's t.

    None if one is unknown; no interval of a single number, or if one is 0.
    """
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values) or not numbers:
        return None, None
    if min(numbers) <= 0:
        return 0.0, None
    if len(numbers) == 1:
        return numbers[0], None
    logs = np.log(numbers)
    half = student.ppf((1 + PROBABILITY) / 2, len(logs) - 1) * logs.std(ddof=1) / len(logs) ** 0.5
    low, mean, high = np.exp(logs.mean() + half * np.array([-1.0, 0.0, 1.0]))
    return float(mean), (float(low), float(high))


def format_value(value: float | _Bounds | None) -> str:
    """Return a number or an interval for a table.

    >>> format_value(12345.6), format_value((1204.0, 1800.26)), format_value(None)
    ('12350', '1204–1800', '–')
    """
    if value is None:
        return "–"
    numbers = value if isinstance(value, tuple) else (value,)
    return "–".join(f"{float(f'{number:.4g}'):g}" for number in numbers)


def make_table(rows: Sequence[Row], caption: str = "") -> Table:
    """Return a table of rows that all have the same columns; their names become titles.

    >>> make_table([{"sampler": "imh", "ess_per_second": 2.0}]).header
    ['sampler', 'ESS per second']
    """
    cells = [
        [cell if isinstance(cell, str) else format_value(cell) for cell in row.values()]
        for row in rows
    ]
    names = (name.replace("r_hat", "R-hat").replace("ess", "ESS") for name in rows[0])
    titles = [name.replace("_", " ") for name in names]
    return Table(titles, cells, caption)


def _add_evaluations(run: Draws) -> Float64 | None:
    """Return the evaluations of the density until each draw, (D,), of all chains together.

    None if the run does not record them. The statistic `n_steps` has those of each kept draw. Draws
    of the warm-up are counted as if they had taken as many.
    """
    steps = run.statistics.get("n_steps")
    if steps is None:
        return None
    warmup = np.shape(next(iter(run.warmup.values()), np.zeros((1, 0))))[1]
    each = np.sum(steps, axis=0, dtype=np.float64)
    return np.asarray(warmup * each.mean() + np.cumsum(each))


def ratio(size: float, cost: float | None) -> float | None:
    """Return how many effective draws a unit of cost buys; None if the cost is unknown."""
    return size / cost if cost else None


def _median(values: Iterable[float | None]) -> float | None:
    recorded = [value for value in values if value is not None]
    return float(np.median(recorded)) if recorded else None

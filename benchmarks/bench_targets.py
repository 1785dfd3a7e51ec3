"""Samplers on targets whose posterior moments are known: bias, and effective draws per second.

    python benchmarks/bench_targets.py [--samplers imh,nuts,rwm] [--targets NAME ...]
        [--runs 4]

Cells have the largest bias of a posterior mean, in posterior standard deviations, ± its Monte-Carlo
standard error, and how many runs fail `bpa check`; `?` if a bias of 0.1 cannot be excluded. Then
effective draws of the worst weight per second and per evaluation of the density.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from measuring import Table, run_tables
from scipy.stats import norm

from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.diagnostics.check.check import check
from bpa_ppl.diagnostics.samplers.comparison import MAX_BIAS
from bpa_ppl.diagnostics.samplers.efficiency import format_value, measure_efficiency
from bpa_ppl.diagnostics.samplers.moments import estimate_mean
from bpa_ppl.diagnostics.samplers.running import run_samplers
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.samplers.sampler import SAMPLERS

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support.known_targets import TARGETS, KnownTarget, target


def cells(exact: KnownTarget, runs: list[Draws]) -> tuple[str, str]:
    """Return the bias with the number of runs that fail, and the rates."""
    together = concatenate_runs(runs).reordered(exact.lists.feature_names)
    standard = (together.array - exact.mean) / exact.sd
    estimates = [estimate_mean(together, standard[..., k]) for k in range(len(exact.mean))]
    worst = max(estimates, key=lambda one: abs(one.mean))
    failed = sum(not check(run) for run in runs)
    bound = max(abs(one.mean) + norm.isf(0.025 / len(estimates)) * one.error for one in estimates)
    bias = f"{worst.mean:+.3f} ± {worst.error:.3f}{' ?' if bound > MAX_BIAS else ''}"
    rates = measure_efficiency(runs, together)
    return (
        f"fails {failed} of {len(runs)} ({worst.mean:+.2f})" if failed else bias,
        f"{format_value(rates['ess_per_second'])} ({format_value(rates['ess_per_evaluation'])})",
    )


def targets(options: argparse.Namespace) -> None:
    """Print a table of biases and one of rates."""
    chosen = [target(name) for name in options.targets]
    found: dict[str, list[tuple[str, str]]] = {}
    for name in options.samplers.split(","):
        for exact in chosen:
            problem = log_density(exact.lists, exact.weights, **exact.options)
            engines = {name: SAMPLERS.resolve(name)}
            runs = run_samplers(problem, engines, runs=options.runs).timed[name]
            cell = ("failed", "–") if isinstance(runs, Exception) else cells(exact, runs)
            found.setdefault(name, []).append(cell)
    for number, title in enumerate(("bias of means", "effective draws per second (evaluation)")):
        table = Table(title, *options.targets, width=24)
        for name, of_targets in found.items():
            table.row(name, *(cell[number] for cell in of_targets))


if __name__ == "__main__":
    run_tables(
        __doc__,
        (targets,),
        needs_data=False,
        samplers="auto,imh,nuts,rwm,laplace",
        targets=tuple(TARGETS),
        runs=4,
    )

"""Test TER, BLEU and length under each likelihood and gain, on the real foreign domains.

    python tests/benchmarks/bench_likelihoods.py [--tables NAME …] [--draws 10] [--domains NAME …]

Tables: `bars` (published and margin at 10 and 100 sentences, by domain, against what was asked
for), `gammas` (γ of the margin × the gain), `names` (every likelihood by name, with several
settings), `rich` (γ × the gain with features of the text of captions: language model and lexicon),
`samplers` (what `auto` finds at 100 sentences, and how far a posterior mean is from the
mode), `quadrature` (samplers against a grid over two free weights) and `calibration` (simulation
from the published likelihood).

Each draw has its own adaptation sentences (seeds 0, 1, …, with replacement; the same for every
row); the mode of the posterior chooses among the 500-best lists of all 500 test sentences. Printed:
TER ± 2 standard deviations over the draws / BLEU / words of the outputs over those of the
references, each the mean over the domains; `ratio` is the spread over that of the first row.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from bench_features import CORPORA, Task, head, of_task, row
from measuring import DATA, canonical, drawn, lists
from scipy.special import log_softmax, logsumexp, softmax

import bpa_ppl as bpa
import bpa_ppl.weights
from bpa_ppl.experiments.samplers import calibrate_sampler
from bpa_ppl.features import LanguageModel
from bpa_ppl.features.lexicon import Lexicon
from bpa_ppl.models import Margin, Risk
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.posterior import import_arviz
from bpa_ppl.quality import gains, statistics

DOMAINS = ("medical", "captions", "conversation")
#: |A| -> TER and 2σ, means over the domains, that the margin is to reach.
BARS = {10: (53.2, 0.9), 100: (52.45, 0.4)}
GAMMAS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
NAMES = ("oracle", "margin", "risk")


class Material(NamedTuple):
    """The lists of a domain, with the counts that test scores are made of."""

    pool: NBest
    test: NBest
    ter: Any
    bleu: Any

    def scores(self, posterior: Any) -> Float64:
        """Return TER, BLEU and the length ratio of what the posterior mean, or mode, chooses."""
        draws = bpa.as_draws(posterior)
        return self.of_weights(draws.aligned(self.test, draws.mean[None])[0])

    def of_weights(self, weights: Float64) -> Float64:
        """Return the same of what one weight vector chooses."""
        rows = self.test.offsets[:-1] + self.test.best(self.test.scores(weights))
        counts = self.bleu.counts[rows].sum(axis=0)
        return np.array([self.ter.corpus(rows), self.bleu.corpus(rows), counts[4] / counts[8]])


@cache
def material(domain: str) -> Material:
    """Return a domain."""
    test = lists(domain, "test")
    return Material(lists(domain, "adapt"), test, statistics(test, "ter"), statistics(test, "bleu"))


def of_draws(domain: str, size: int, draws: int, **options: Any) -> Float64:
    """Return the scores of each draw, (draws, 3)."""
    made = material(domain)
    return np.array(
        [
            made.scores(
                bpa.adapt(
                    drawn(made.pool, size, seed), canonical(), **{"sampler": "map", **options}
                )
            )
            for seed in range(draws)
        ]
    )


def summary(found: list[Float64]) -> Float64:
    """Return mean TER, mean 2σ of TER, mean BLEU and mean length ratio over domains, (4,)."""
    mean = np.mean([scores.mean(axis=0) for scores in found], axis=0)
    ddof = min(1, len(found[0]) - 1)
    spread = np.mean([2 * scores[:, 0].std(ddof=ddof) for scores in found])
    return np.array([mean[0], spread, mean[1], mean[2]])


def cell(values: Float64) -> str:
    """Return four numbers as they stand in a table."""
    ter, spread, bleu, length = values
    return f"{ter:.2f} ± {spread:.2f} / {bleu:.2f} / {length:.3f}"


def table(
    title: str, rows: tuple[tuple[str, dict[str, Any]], ...], sizes: tuple[int, ...], options: Any
) -> None:
    """Print one row for each name and its options of `adapt`."""
    heads = "".join(f"{f'|A| = {size}':>36}" for size in sizes)
    print(f"\n{title:<28}{heads}{'ratio':>8}{'s':>7}", flush=True)
    first: Float64 | None = None
    for name, chosen in rows:
        start = perf_counter()
        found = [
            summary([of_draws(d, size, options.draws, **chosen) for d in options.domains])
            for size in sizes
        ]
        spread = np.array([values[1] for values in found])
        first = spread if first is None else first
        cells = "".join(f"{cell(values):>36}" for values in found)
        seconds = perf_counter() - start
        print(f"{name:<28}{cells}{np.mean(spread / first):>8.2f}{seconds:>7.0f}", flush=True)


def bars(options: Any) -> None:
    """Print published likelihood and margin by domain, and whether the bars are reached."""
    for size, (ter, spread) in BARS.items():
        print(f"\n|A| = {size}: at most {ter:.2f} ± {spread:.2f}", flush=True)
        for name, likelihood in (("published", "oracle"), ("margin", "margin")):
            found = [of_draws(d, size, options.draws, likelihood=likelihood) for d in DOMAINS]
            each = "".join(f"{cell(summary([scores])):>36}" for scores in found)
            mean = summary(found)
            reached = mean[0] <= ter and mean[1] <= spread
            said = "reached" if reached else "missed"
            print(f"{name:<10}{each}   mean {cell(mean)}  {said}", flush=True)


def gammas(options: Any) -> None:
    """Print γ × gain."""
    for gain in ("ter", "bleu", "ter+bleu"):
        rows = tuple(
            (f"γ = {gamma:g}", {"likelihood": Margin(gamma=gamma), "metric": gain})
            for gamma in GAMMAS
        )
        table(f"margin, gain {gain}", (*rows, left_open(gain)), (10, 100), options)


def left_open(gain: str) -> tuple[str, dict[str, Any]]:
    """Return the row of the default γ."""
    return "γ left open", {"likelihood": "margin", "metric": gain}


def names(options: Any) -> None:
    """Print every likelihood."""
    rows = tuple((name, {"likelihood": name}) for name in NAMES)
    table("likelihood, gain ter", rows, (10, 100, 500), options)


def samplers(options: Any) -> None:
    """Print what `auto` finds at 100 sentences, and TER of its mean less that of the mode."""
    print(f"\n{'':<16}{'domain':<14}{'chosen because':<58}{'check':>8}{'mean − mode':>13}")
    for name in NAMES:
        for domain in options.domains:
            made = material(domain)
            sample = drawn(made.pool, 100, 0)
            found = [
                bpa.adapt(sample, canonical(), likelihood=name, sampler=sampler)
                for sampler in ("auto", "map")
            ]
            mean, mode = (made.scores(posterior)[0] for posterior in found)
            attrs = bpa.as_draws(found[0]).attrs
            why, passed = attrs["chosen_because"], bool(bpa.check(found[0]))
            print(f"{name:<16}{domain:<14}{attrs['chosen'] + ': ' + why:<70}"[:88], end="")
            print(f"{'passed' if passed else 'failed':>8}{mean - mode:>13.2f}", flush=True)


def rich(options: Any) -> None:
    """Print γ × gain with a language model and a lexicon of the domain."""
    parts = {"adapt": "dev", "test": "test"}
    pool, test = (
        bpa.read_nbest(
            DATA / f"phrases/nbest-seg/captions.{part}.nbest.xz",
            references=DATA / f"captions/{part}.ref",
            sources=CORPORA / f"captions.{text}.fr.xz",
        )
        for part, text in parts.items()
    )
    every = tuple(str(CORPORA / f"captions.train.{side}.xz") for side in ("fr", "en"))
    task = Task(pool, test).with_features(LanguageModel(text=every[1]), Lexicon(pairs=every))
    head("captions, language model, lexicon", (10, 100))
    for gain in ("ter", "bleu", "ter+bleu"):
        for gamma in (0.0, 2.0, 4.0, 8.0):
            chosen = partial(of_task, task, likelihood=Margin(gamma=gamma), metric=gain)
            row(f"gain {gain}, γ = {gamma:g}", (10, 100), options.draws, chosen)


def two_weights() -> tuple[NBest, list[str]]:
    """Return 20 short lists of captions, and the features that are held fixed: all but two."""
    pool = material("captions").pool.select(np.arange(20)).truncate(100)
    free = ("LM0", "WordPenalty0")
    return pool, [name for name in pool.feature_names if name not in free]


def on_grid(pool: NBest, fixed: list[str], density: Callable[..., Any]) -> tuple[Float64, Float64]:
    """Return mean and standard deviation of two weights by quadrature in float64.

    Args:
        pool: the lists.
        fixed: the features that are not among the two.
        density: (log p of the hypotheses of a list, (grid, hypotheses); their gains; the position
            of the oracle) ↦ the log-likelihood of the sentence.
    """
    known = bpa.weights.match(canonical(), pool, fixed=fixed)
    axis = np.linspace(-4.0, 4.0, 241)
    steps = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = known.free_values + steps
    chosen = bpa.oracles(pool, preference=pool.scores(known.values)).index
    worth, table = gains(pool), pool.features.astype(np.float64)
    log_p = -(steps**2).sum(axis=1) / (2 * 0.1)
    for s, best in enumerate(chosen):
        rows = table[pool.rows(s)]
        scores = grid @ rows[:, known.free].T + rows[:, ~known.free] @ known.fixed_values
        own = log_softmax(scores, axis=1)
        log_p += density(own, worth[pool.rows(s)], int(best))
    p = softmax(log_p)
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2)


def _margin(log_p: Float64, gain: Float64, best: int) -> Any:
    return log_p[:, best] - logsumexp(log_p + 2.0 * (gain[best] - gain), axis=1)


def _risk(kappa: float) -> Callable[..., Any]:
    return lambda log_p, gain, best: -kappa * np.exp(log_p) @ (gain.max() - gain)


#: Likelihood -> the same in plain NumPy.
PLAIN: tuple[tuple[str, Any, Callable[..., Any]], ...] = (
    ("margin, γ = 2", Margin(gamma=2.0), _margin),
    ("risk, κ = 1", Risk(kappa=1.0), _risk(1.0)),
    ("risk, κ = 10", Risk(kappa=10.0), _risk(10.0)),
)


def quadrature(_: Any) -> None:
    """Print how far samplers are from a grid: means in standard errors, and ratios of spread."""
    pool, fixed = two_weights()
    print(f"\n{'captions, 20 sentences, 2 weights':<36}{'sampler':<10}", end="")
    print(f"{'largest error of a mean':>26}{'spread over that of the grid':>32}{'check':>9}")
    for name, likelihood, density in PLAIN:
        mean, spread = on_grid(pool, fixed, density)
        for sampler in ("imh", "laplace", "nuts", "rwm"):
            posterior = bpa.adapt(
                pool, canonical(), likelihood=likelihood, sampler=sampler, fixed=fixed
            )
            draws = bpa.as_draws(posterior)
            if draws.weighted:
                effective = np.full(2, 1 / np.sum(draws.importance**2))
            else:
                effective = np.array(
                    [float(import_arviz().ess(draws.weights[..., k])) for k in range(2)]
                )
            error = np.abs(draws.mean - mean) / (spread / np.sqrt(effective))
            ratios = " ".join(f"{r:.3f}" for r in draws.deviation / spread)
            said = "passed" if bpa.check(posterior) else "failed"
            print(
                f"{name:<36}{sampler:<10}{error.max():>23.2f} SE{ratios:>32}{said:>9}", flush=True
            )


def calibration(_: Any) -> None:
    """Print simulation-based calibration of samplers under the published likelihood."""
    pool, _fixed = two_weights()
    for sampler in ("imh", "laplace", "nuts", "rwm"):
        found = calibrate_sampler(pool, canonical(), sampler, replications=100, draws=1000)
        print(found, flush=True)


TABLES: dict[str, Callable[[Any], None]] = {
    "bars": bars,
    "gammas": gammas,
    "names": names,
    "rich": rich,
    "samplers": samplers,
    "quadrature": quadrature,
    "calibration": calibration,
}


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS))
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for name in options.tables:
        TABLES[name](options)


if __name__ == "__main__":
    main()

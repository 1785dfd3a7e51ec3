"""Pairs of which one is chosen: intervals of the weights, and calibration of the probabilities.

    python benchmarks/bench_pairs.py [--tables NAME ...] [--draws 20] [--names NAME ...]

Tables:
    intervals    how many 95 % intervals contain the true weights: 100 simulated answers, weights of
                 one size with random signs, four or nine features; and how many posteriors pass
                 their check
    calibration  share of right choices, mean probability, expected calibration error and log loss
                 on new pairs, after 10, 20 and 50 labels

The expected calibration error is the mean absolute difference of the probability of the choice and
the frequency with which it is right, in ten bins from ½ to 1, weighted by their counts; the pairs
of all draws are in the same bins.

Collections:
    RewardBench   2,755 pairs of answers, nine reward models
    LLMBar        226 of them that were made to mislead
    weak          simulated: three judges who are right in 55 to 65 %, and whose errors have the
                  correlation 0.3
    arena         simulated: three good judges, see `bench_asking`
    nine          simulated: nine judges who are right in 60 to 65 %, see `bench_confidence`
    safety        740 pairs of RewardBench
    WMT 2023      a random pair of translations of each list, Chinese to English, six features

Each half of a real collection is once the pool and once the test set, in half of the draws each;
simulated collections have 1,000 or 2,000 test pairs a draw.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from bench_asking import samples
from bench_confidence import TESTED, simulated_pairs
from bench_judged import SIX, SIZES, read_halves
from bench_judging import covered
from measuring import Table, run_tables
from scipy.special import expit
from scipy.stats import norm

import bpa_ppl as bpa
from bpa_ppl import NBest, from_arrays
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.metrics.column import read_column

NAMES = ("RewardBench", "LLMBar", "weak", "arena", "nine", "safety", "WMT 2023")
BINS = 10


def pairs_of(chosen: Float64, other: Float64) -> NBest:
    """Return pairs with a gain of 1 for the chosen candidate; every other one is in second place.

    Args:
        chosen: (n, K) features.
        other: (n, K) features.
    """
    first = np.arange(len(chosen)) % 2 == 0
    table = np.stack(
        [np.where(first[:, None], a, b) for a, b in ((chosen, other), (other, chosen))]
    )
    table = table.swapaxes(0, 1).reshape(-1, chosen.shape[1])
    names = [f"judge{k}" for k in range(chosen.shape[1])]
    lists = from_arrays([""] * len(table), table, names, 2)
    return lists.with_extras(gain=np.stack([first, ~first], axis=1).ravel().astype(float))


def weak_judges(count: int, seed: int, judges: int = 3, shared: float = 0.3) -> NBest:
    """Return pairs with the grades of judges who are right in 55 to 65 %.

    Args:
        count: of pairs.
        seed: of judges and pairs.
        judges: how many.
        shared: the correlation of their errors.
    """
    rng = np.random.default_rng([seed, 7])
    lead = norm.ppf(rng.uniform(0.55, 0.65, judges))
    covariance = shared + (1 - shared) * np.eye(judges)
    difference = lead + rng.multivariate_normal(np.zeros(judges), covariance, count)
    return pairs_of(difference / 2, -difference / 2)


def random_pairs(lists: NBest, seed: int) -> NBest:
    """Return a random pair of candidates of different gain from each list that has one."""
    rng, gain = np.random.default_rng([seed, 3]), read_column(lists, "mqm")
    rows = []
    for start, size in zip(lists.offsets[:-1], lists.sizes, strict=True):
        first, second = start + rng.choice(size, 2, replace=False)
        if gain[first] != gain[second]:
            rows.append((first, second) if gain[first] > gain[second] else (second, first))
    better, worse = np.transpose(rows)
    features = lists.features.astype(np.float64)
    return pairs_of(features[better], features[worse])


def draw_samples(name: str, size: int, draws: int) -> Iterator[tuple[NBest, NBest]]:
    """Yield pairs to adapt on, and test pairs."""
    if name in ("weak", "nine"):
        make = weak_judges if name == "weak" else simulated_pairs
        for seed in range(draws):
            lists = make(size + TESTED, seed)
            yield lists[:size], lists[size:]
    elif name == "WMT 2023":
        halves = read_halves(("wmt23.zh-en",), SIX)
        for seed in range(draws):
            half = halves[seed % len(halves)]
            lists = random_pairs(half.pool, seed)
            rng = np.random.default_rng(seed)
            chosen = rng.choice(len(lists), min(size, len(lists)), replace=False)
            yield lists[chosen], random_pairs(half.test, seed)
    else:
        yield from samples(name, size, draws)


def expected_calibration_error(right: Float64, probability: Float64) -> float:
    """Return the weighted difference of probability and frequency in bins from ½ to 1."""
    place = np.minimum(((probability - 0.5) * 2 * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(place, probability - right)).sum() / len(right))


def calibration(options: Any) -> None:
    """Print accuracy, mean probability, calibration error and log loss."""
    columns = "right", "probability", "calibration error", "log loss", "± 2 se"
    for name in options.names:
        table = Table(name, *columns)
        for size in SIZES:
            p, losses = [], []
            for lists, test in draw_samples(name, size, options.draws):
                posterior = bpa.adapt(lists, None, gain="gain")
                choices = bpa.rerank(test, posterior, unchecked=True)
                of_chosen = choices.probabilities[read_column(test, "gain") == 1]
                p.append(of_chosen)
                losses.append(-np.log(np.clip(of_chosen, 1e-9, 1)).mean())
            joint = np.concatenate(p)
            right, best = (joint > 0.5) + 0.5 * (joint == 0.5), np.maximum(joint, 1 - joint)
            error = expected_calibration_error(right, best)
            spread = 2 * np.std(losses, ddof=1) / np.sqrt(len(losses))
            values = right.mean(), best.mean(), error, np.mean(losses), spread
            table.row(f"{size} labels", *(f"{value:.3f}" for value in values))


def simulated_answers(truth: Float64, answers: int, seed: int) -> NBest:
    """Return pairs of which one was chosen by the weights.

    Args:
        truth: (K,) the weights, for features of variance 1.
        answers: how many.
        seed: of features and answers.
    """
    rng = np.random.default_rng([seed, 11])
    features = rng.normal(size=(2, answers, len(truth)))
    first = rng.random(answers) < expit((features[0] - features[1]) @ truth)
    chosen, other = (np.where(first[:, None], *features[::step]) for step in (1, -1))
    return pairs_of(chosen, other)


def intervals(options: Any) -> None:
    """Print how often intervals have the true weights, and how many posteriors pass their check."""
    table = Table("pairs, 100 answers", "covered", "of", "share", "passed", "data sets")
    count = 2 * options.draws + 10
    for features, size in product((4, 9), (0.3, 1.0, 1.5)):
        inside, passed = 0, 0
        for seed in range(count):
            truth = size * np.random.default_rng([seed, 12]).choice([-1.0, 1.0], size=features)
            lists = simulated_answers(truth, 100, seed)
            draws = bpa.as_draws(bpa.adapt(lists, None, gain="gain", seed=seed))
            inside, passed = inside + covered(draws, truth), passed + bool(bpa.check(draws))
        total = features * count
        row = f"{features} weights of size {size}"
        table.row(row, inside, total, f"{inside / total:.3f}", passed, count)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    tables = (intervals, calibration)
    run_tables(__doc__, {table.__name__: table for table in tables}, draws=20, names=NAMES)

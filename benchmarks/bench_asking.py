"""Choose, or ask a person: the agreement of choices that are not asked about, and their share.

    python benchmarks/bench_asking.py [--tables NAME ...] [--draws 100] [--size 50] [--names ...]

Tables:
    promises   pairs of answers: the probability below which to ask is learned from `--size` labels
               for a promised agreement of 0.7 to 0.95. A cell has the share of the draws in which
               any choice is sure; the share of those in which the sure choices agree with the test
               labels as often as promised; the share of all draws in which they do not; and the
               mean share of choices that are sure
    lists      judged lists: the share of choices that are among the best candidates, in the half of
               the choices with the higher and in that with the lower predictive probability

Collections of pairs:
    RewardBench   all 2,755 pairs, with nine reward models
    LLMBar        226 of them that were made to mislead
    safety        740 of them, of five other subsets
    translations  pairs of WMT 2023, zh-en, with another MQM, with three metrics (two halves of each
                  domain with enough pairs)
    arena         simulated: three judges that grade from 1 to 10 and share a part of their errors;
                  the labels follow the difference in quality (Bradley and Terry), and the weighted
                  judges agree with 81 % of them
    plateau       the same, steeper, but one in seven labels is random
    weak          simulated: three judges with errors of their own, which agree with 61 % together
    six           six such judges, which agree with 66 % together

Each half of the real collections is once the pool and once the test set, in half of the draws each.
The simulated ones have 2,000 test pairs a draw.

Rows:
    probabilities as they are   the lowest probability from which on the mean leave-one-out
                                probability is at least the promised agreement
    curve                       from which on the agreement expected by the curve of the reliability
                                is at least the promised one, and its 10 % quantile less two points
    from the top on             as ours, but the first test is the one of the fewest labels
    ours                        `bpa rerank --agree`
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from bench_judged import (
    SIX,
    SUMMARIES,
    WMT23,
    draw_lists,
    hard_pairs,
    read_halves,
    read_rewards,
    reward_halves,
)
from measuring import Table, answered_pairs, few, run_tables

import bpa_ppl as bpa
from bpa_ppl import NBest, from_arrays
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.adapting.adapt import adapt_draws
from bpa_ppl.evaluation.reliability import CONFIDENCE, Reliability, count_allowed
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.posterior.draws import quantiles

PROMISES = (0.7, 0.8, 0.85, 0.9, 0.95)
TESTED = 2000  # simulated pairs
NAMES = ("RewardBench", "LLMBar", "safety", "translations", "arena", "plateau", "weak", "six")
SAFETY = ("donotanswer", "refusals-dangerous", "refusals-offensive")
SAFETY = (*SAFETY, "xstest-should-refuse", "xstest-should-respond")


def arena(count: int, seed: int, slope: float = 2.4, random: float = 0.0) -> NBest:
    """Return pairs with the grades of three judges.

    Args:
        count: of pairs.
        seed: of quality, errors and labels.
        slope: of the logit of the label, for each unit of quality.
        random: the share of labels that are random.
    """
    rng = np.random.default_rng(1000 + seed)
    quality = rng.normal(size=(count, 2))
    p = 1 / (1 + np.exp(-slope * (quality[:, 0] - quality[:, 1])))
    first = rng.random(count) < (1 - random) * p + random / 2
    shared = quality + rng.normal(0, 0.25, (count, 2))
    grades = [6 + 2 * (shared + rng.normal(0, error, (count, 2))) for error in (0.3, 0.4, 0.5)]
    return answered_pairs(np.clip(np.round(np.stack(grades, axis=-1)), 1, 10), first)


def weak(count: int, seed: int, judges: int, slope: float, error: float) -> NBest:
    """Return pairs with scores of judges that see little of the quality."""
    rng = np.random.default_rng(5000 + seed)
    quality = rng.normal(size=(count, 2))
    first = rng.random(count) < 1 / (1 + np.exp(-slope * (quality[:, 0] - quality[:, 1])))
    scores = [quality + rng.normal(0, error, (count, 2)) for _ in range(judges)]
    return answered_pairs(np.stack(scores, axis=-1), first)


def compare_two(lists: NBest, seed: int) -> NBest:
    """Return a random pair of each list; 1 is the better, and equal ones are left out."""
    rng, mqm = np.random.default_rng(seed), read_column(lists, "mqm")
    rows = [
        lists.offsets[s] + rng.choice(lists.sizes[s], 2, replace=False) for s in range(len(lists))
    ]
    pairs = np.array([pair for pair in rows if mqm[pair[0]] != mqm[pair[1]]])
    better = mqm[pairs] > mqm[pairs[:, ::-1]]
    table = lists.features[pairs.ravel()]
    found = from_arrays([""] * len(table), table, lists.feature_names, 2)
    return found.with_extras(gain=better.ravel().astype(float))


SIMULATED: dict[str, Callable[[int, int], NBest]] = {
    "arena": arena,
    "plateau": partial(arena, slope=4.5, random=1 / 7),
    "weak": partial(weak, judges=3, slope=0.5, error=0.8),
    "six": partial(weak, judges=6, slope=0.75, error=1.0),
}


def samples(name: str, size: int, draws: int) -> Iterator[tuple[NBest, NBest]]:
    """Yield pairs to adapt on, and test pairs."""
    if name in SIMULATED:
        for seed in range(draws):
            lists = SIMULATED[name](size + TESTED, seed)
            yield lists[:size], lists[size:]
        return
    if name == "translations":
        halves = read_halves(("wmt23.zh-en",), SIX[:3])
        halves = [
            replace(h, pool=compare_two(h.pool, 0), test=compare_two(h.test, 1)) for h in halves
        ]
        halves = [half for half in halves if len(half.pool) >= 100]
    else:
        members = {
            "RewardBench": True,
            "LLMBar": hard_pairs(),
            "safety": np.isin(read_rewards().sentence_extras["domain"], SAFETY),
        }
        halves = reward_halves(members[name])
    for half, seed in product(halves, range(-(-draws // len(halves)))):
        yield draw_lists(half, size, seed), half.test


def as_they_are(predicted: Reliability, agree: float) -> float:
    """Return the probability from which on the mean probability is as promised."""
    means = np.cumsum(predicted.probability) / np.arange(1, len(predicted.probability) + 1)
    return float(np.min(predicted.probability, initial=np.inf, where=means >= agree))


def by_curve(predicted: Reliability, agree: float) -> float:
    """Return the probability from which on the expected agreement is as promised."""
    curves = np.cumsum(predicted.curves(predicted.probability), axis=1)
    means = curves / np.arange(1, len(predicted.probability) + 1)
    low = quantiles(means, (1 - CONFIDENCE,), predicted.posterior)[0]
    reached = (predicted.posterior @ means >= agree) & (low >= agree - 0.02)
    return float(np.min(predicted.probability, initial=np.inf, where=reached))


def from_the_top(predicted: Reliability, agree: float) -> float:
    """Return the probability to ask below if the first test is the one of the fewest labels."""
    wrong, least = np.cumsum(1 - predicted.agreement), np.inf
    allowed = count_allowed(len(wrong), agree, CONFIDENCE)[1:]
    last = allowed == allowed[-1]
    for k in np.flatnonzero((np.diff(allowed, prepend=-1) > 0) | (last & (allowed >= 0))):
        if wrong[k] > allowed[k]:
            break
        least = float(predicted.probability[k])
    return least


WAYS: dict[str, Callable[[Reliability, float], float]] = {
    "probabilities as they are": as_they_are,
    "curve": by_curve,
    "from the top on": from_the_top,
    "**ours**": Reliability.threshold,
}


def predict(name: str, options: Any) -> Iterator[tuple[Reliability, Float64, Float64]]:
    """Yield the reliability by leave-one-out, and probabilities and agreement of test choices."""
    for lists, test in samples(name, options.size, options.draws):
        draws = adapt_draws(lists, None, gain="gain")
        predicted = Reliability.of(draws.adaptation)
        assert predicted is not None
        choices = bpa.rerank(test, draws, unchecked=True)
        right = read_column(test, "gain")[test.offsets[:-1] + choices.choice]
        yield predicted, choices.probability, right


def cell(agreement: Float64, share: Float64, promised: float) -> str:
    """Return how many draws have sure choices, how many promises are kept, and the mean share."""
    answered = share > 0
    kept = answered & (agreement >= promised)
    of_answered = f"{kept.sum() / answered.sum():.2f}" if answered.any() else "–"
    broken = (answered & ~kept).mean()
    return f"{answered.mean():.2f} / {of_answered} / {broken:.2f} / {share.mean():.2f}"


def promises(options: Any) -> None:
    """Print how often promises are kept, and the share of the choices that are not asked about."""
    for name in options.names:
        results: dict[str, list[list[tuple[float, float]]]] = {way: [] for way in WAYS}
        for predicted, probability, right in predict(name, options):
            for way, threshold in WAYS.items():
                row = []
                for agree in PROMISES:
                    sure = probability >= threshold(predicted, agree)
                    row.append((right[sure].mean() if sure.any() else np.nan, sure.mean()))
                results[way].append(row)
        table = Table(f"{name}, {options.size} labels", *(f"promised {p}" for p in PROMISES))
        for way, rows in results.items():
            columns = zip(*rows, strict=True)
            parts = zip(columns, PROMISES, strict=True)
            table.row(way, *(cell(*np.transpose(column), agree) for column, agree in parts))


def share_of_best(right: Float64, p: Float64) -> tuple[float, float]:
    """Return the share of right choices in the more and in the less probable half."""
    order = np.argsort(-p, kind="stable")
    more, less = np.array_split(right[order], 2)
    return float(more.mean()), float(less.mean())


def lists(options: Any) -> None:
    """Print how well predictive probabilities separate right choices from wrong ones."""
    table = Table(f"judged lists, {options.size} labels", "more probable", "less probable")
    for file in few((*WMT23, "wmt24esa.en-cs", "webnlg2020", SUMMARIES)):
        results = []
        for half, seed in product(read_halves((file,)), few(range(4))):
            posterior = adapt_draws(draw_lists(half, options.size, seed), None, gain="gain")
            choices = bpa.rerank(half.test, posterior, rule="predictive", unchecked=True)
            gain, first = read_column(half.test, "gain"), half.test.offsets[:-1]
            best = np.maximum.reduceat(gain, first)
            results.append(share_of_best(gain[first + choices.choice] == best, choices.probability))
        table.row(file, *(f"{value:.3f}" for value in np.mean(results, axis=0)))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    run_tables(__doc__, (promises, lists), draws=100, size=50, names=NAMES)

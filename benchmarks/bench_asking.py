"""Choose, or ask a person: the agreement of choices that are not asked about, and their share.

    python benchmarks/bench_asking.py [--tables NAME ...] [--draws 400] [--size 50]

Tables:
    promises   pairs of answers: the probability below which to ask is learned from `--size` labels
               for a promised agreement of 0.85, 0.9 and 0.95. A cell has the share of the draws
               where the choices that are not asked about agree with the test labels at least as
               often as promised, less two points (also if there are no such choices); their mean
               agreement; and their mean share of all choices
    lists      judged lists: the share of choices that are among the best candidates, in the half of
               the choices with the higher and in that with the lower predictive probability

Collections of pairs:
    RewardBench   all 2,755 pairs, with nine reward models
    LLMBar        226 of them that were made to mislead
    safety        740 of them, of five other subsets
    arena         simulated: three judges that grade from 1 to 10 and share a part of their errors;
                  the labels follow the difference in quality (Bradley and Terry), and the weighted
                  judges agree with 81 % of them
    plateau       the same, steeper, but one in seven labels is random

Each half of the real collections is once the pool and once the test set, in half of the draws each.
The simulated ones have 2,000 test pairs a draw.

Rows:
    probabilities as they are   the lowest probability from which on the mean leave-one-out
                                probability is at least the promised agreement
    Clopper and Pearson         from which on the lower 95% limit of the leave-one-out agreement is
                                at least the promised one, less two points
    slope alone                 as ours, without random answers
    ours                        `bpa rerank --agree`
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from bench_judged import (
    SUMMARIES,
    WMT23,
    draw_lists,
    hard_pairs,
    read_halves,
    read_rewards,
    reward_halves,
)
from measuring import Table, run_tables
from scipy.stats import beta

import bpa_ppl as bpa
from bpa_ppl import NBest, from_arrays
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.adapting import adapt_draws
from bpa_ppl.diagnostics.reliability import RANDOM, Reliability
from bpa_ppl.metrics.column import read_column

PROMISES, MARGIN = (0.85, 0.9, 0.95), 0.02
TESTED = 2000  # simulated pairs
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
    table = np.clip(np.round(np.stack(grades, axis=-1)), 1, 10).reshape(-1, 3)
    lists = from_arrays([""] * len(table), table, ["gpt", "claude", "llama"], 2)
    return lists.with_extras(gain=np.stack([first, ~first], axis=1).ravel().astype(float))


def samples(name: str, size: int, draws: int) -> Iterator[tuple[NBest, NBest]]:
    """Yield pairs to adapt on, and test pairs."""
    if name in ("arena", "plateau"):
        options = {"slope": 4.5, "random": 1 / 7} if name == "plateau" else {}
        for seed in range(draws):
            lists = arena(size + TESTED, seed, **options)
            yield lists[:size], lists[size:]
        return
    members = {
        "RewardBench": True,
        "LLMBar": hard_pairs(),
        "safety": np.isin(read_rewards().sentence_extras["domain"], SAFETY),
    }
    for half, seed in product(reward_halves(members[name]), range(draws // 2)):
        yield draw_lists(half, size, seed), half.test


def as_they_are(predicted: Reliability, agree: float) -> float:
    """Return the probability from which on the mean probability is as promised."""
    means = np.cumsum(predicted.probability) / np.arange(1, len(predicted.probability) + 1)
    return float(np.min(predicted.probability, initial=np.inf, where=means >= agree))


def clopper_pearson(predicted: Reliability, agree: float) -> float:
    """Return the probability from which on the lower limit of the agreement is as promised."""
    right = np.cumsum(predicted.agreement)
    low = beta.ppf(0.05, right, np.arange(1, len(right) + 1) - right + 1)
    reached = np.nan_to_num(low) >= agree - MARGIN
    return float(np.min(predicted.probability, initial=np.inf, where=reached))


class SlopeAlone(Reliability):
    """Reliability if no label is random."""

    @cached_property
    def posterior(self) -> Float64:
        """The probability of each curve, (curves,)."""
        shares = super().posterior * (RANDOM == 0)
        return np.asarray(shares / shares.sum())


def slope_alone(predicted: Reliability, agree: float) -> float:
    """Return the probability to ask below if no label is random."""
    columns = predicted.probability, predicted.agreement, predicted.weight
    return SlopeAlone(*columns).threshold(agree)


WAYS: dict[str, Callable[[Reliability, float], float]] = {
    "probabilities as they are": as_they_are,
    "Clopper and Pearson": clopper_pearson,
    "slope alone": slope_alone,
    "**ours**": Reliability.threshold,
}


def cell(kept: Float64, agreement: Float64, share: Float64) -> str:
    """Return the share of kept promises, the mean agreement and the mean share of choices."""
    answered = agreement[share > 0]
    mean = f"{answered.mean():.3f}" if len(answered) else "–"
    return f"{kept.mean():.2f} / {mean} / {share.mean():.2f}"


def promises(options: Any) -> None:
    """Print the agreement and the share of the choices that are not asked about."""
    for name in ("arena", "plateau", "RewardBench", "LLMBar", "safety"):
        results: dict[str, list[list[tuple[bool, float, float]]]] = {way: [] for way in WAYS}
        for lists, test in samples(name, options.size, options.draws):
            draws = adapt_draws(lists, None, gain="gain")
            predicted = Reliability.of(draws)
            assert predicted is not None
            choices = bpa.rerank(test, draws, unchecked=True)
            right = read_column(test, "gain")[test.offsets[:-1] + choices.choice]
            for way, threshold in WAYS.items():
                row = []
                for agree in PROMISES:
                    sure = choices.probability >= threshold(predicted, agree)
                    agreement = right[sure].mean() if sure.any() else np.nan
                    row.append((not agreement < agree - MARGIN, agreement, sure.mean()))
                results[way].append(row)
        table = Table(f"{name}, {options.size} labels", *(f"promised {p}" for p in PROMISES))
        for way, rows in results.items():
            cells = [np.transpose(column) for column in zip(*rows, strict=True)]
            table.row(way, *(cell(*columns) for columns in cells))


def share_of_best(right: Float64, p: Float64) -> tuple[float, float]:
    """Return the share of right choices in the more and in the less probable half."""
    order = np.argsort(-p, kind="stable")
    more, less = np.array_split(right[order], 2)
    return float(more.mean()), float(less.mean())


def lists(options: Any) -> None:
    """Print how well predictive probabilities separate right choices from wrong ones."""
    table = Table(f"judged lists, {options.size} labels", "more probable", "less probable")
    for file in (*WMT23, "wmt24esa.en-cs", "webnlg2020", SUMMARIES):
        results = []
        for half, seed in product(read_halves((file,)), range(4)):
            posterior = adapt_draws(draw_lists(half, options.size, seed), None, gain="gain")
            choices = bpa.rerank(half.test, posterior, rule="predictive", unchecked=True)
            gain, first = read_column(half.test, "gain"), half.test.offsets[:-1]
            best = np.maximum.reduceat(gain, first)
            results.append(share_of_best(gain[first + choices.choice] == best, choices.probability))
        table.row(file, *(f"{value:.3f}" for value in np.mean(results, axis=0)))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    tables = (promises, lists)
    run_tables(__doc__, {table.__name__: table for table in tables}, draws=400, size=50)

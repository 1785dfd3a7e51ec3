"""Calibration of the probabilities of reranking.

    python benchmarks/bench_confidence.py [--tables NAME ...] [--draws 5]

Tables:
    translations   500-best lists of a decoder, 50 sentences with references, `laplace`: the event
                   that the most probable candidate is the oracle; 3 draws
    pairs          data sets of pairs with one chosen answer: RewardBench, its adversarial part
                   LLMBar, and nine simulated judges that agree in part and are right in 60 to 65 %;
                   10, 20 and 50 pairs; the event that the more probable candidate is chosen
    lists          judged lists: the predictive probability of the choices; the leave-one-out share
                   of choices among the best candidates, which `adapt` records; and the same share
                   on the test lists

Each number is a mean over the draws, and for pairs and lists also over the two halves of a
collection, each of which is once the pool and once the test set. The calibration error is the mean
absolute difference of probability and frequency in ten bins of equal counts; with 100 test pairs it
is 0.1 by chance alone.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from importlib.resources import as_file, files
from itertools import product
from typing import Any

import numpy as np
from bench_judged import SUMMARIES, WMT23, draw_lists, hard_pairs, read_halves, reward_halves
from measuring import DOMAINS, Table, answered_pairs, canonical, draw, few, read_lists, run_tables
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl.evaluation.compare_ways import read_comparison
from bpa_ppl.evaluation.paired import estimate_proportion
from bpa_ppl.extending import oracles
from bpa_ppl.gains.judged import average_best
from bpa_ppl.lists.candidate_columns import read_column

SIZES = few((10, 20, 50))
PAIRS = ("RewardBench", "LLMBar", "simulated judges")
TESTED = 1000  # simulated pairs
LEAST = 25  # test lists of a domain
#: Collections with gains of lists.
JUDGED = (*WMT23, "wmt24esa.en-cs", "webnlg2020", SUMMARIES)


def read_domain(domain: str) -> tuple[NBest, NBest]:
    """Return lists to adapt on and lists to test on; the leaflet of the demo is split."""
    if domain != "leaflet":
        return read_lists(domain, "adapt"), read_lists(domain, "test")
    with as_file(files("bpa_ppl.demo_data")) as folder:
        lists = bpa.read_nbest(folder / "leaflet.nbest100.gz", references=folder / "leaflet.ref")
    order = np.random.default_rng(0).permutation(len(lists))
    return lists.select(order[:100]), lists.select(order[100:])


def calibration_error(right: Any, probability: Any) -> float:
    """Return the mean difference of probability and frequency in ten bins of equal counts."""
    curve = calibration_curve(right, probability, n_bins=10, strategy="quantile")
    return float(np.abs(np.subtract(*curve)).mean())


def translations(_: Any) -> None:
    """Print the table of each domain and likelihood."""
    for domain, likelihood in product(few(("leaflet", *DOMAINS), 2), ("margin", "oracle")):
        pool, test = read_domain(domain)
        oracle_texts = test.chosen(oracles(test).index)
        results: list[tuple[float, float]] = []
        for seed in few(range(3)):
            settings = {"sampler": "laplace:draws=300", "likelihood": likelihood, "seed": seed}
            posterior = bpa.adapt(draw(pool, 50, seed), canonical(), **settings)
            summed = bpa.rerank(test, posterior, unchecked=True, derivations="summed")
            right = [text == other for text, other in zip(summed.texts, oracle_texts, strict=True)]
            p = np.minimum(summed.probability, 1.0)  # sums may be larger by a rounding error
            results.append((calibration_error(right, p), brier_score_loss(right, p)))
        table = Table(f"{domain}, {likelihood}, |A| = 50", "calibration error", "Brier")
        table.row("mean", *(f"{value:.3f}" for value in np.mean(results, axis=0)))


def simulated_pairs(count: int, seed: int, judges: int = 9, misleading: int = 0) -> NBest:
    """Return pairs whose better answer depends on the scores of judges that agree in part.

    Args:
        count: how many.
        seed: of the judges and the pairs.
        judges: how many.
        misleading: how many of them give high scores to the answers that the others find bad.
    """
    rng = np.random.default_rng(seed)
    covariance, weights = 0.5 + 0.5 * np.eye(judges), rng.normal(0.5, 1.0, judges)
    weights *= 0.8 / np.sqrt(weights @ covariance @ weights)
    scores = rng.multivariate_normal(np.zeros(judges), covariance / 2, size=(count, 2))
    first = rng.random(count) < 1 / (1 + np.exp((scores[:, 1] - scores[:, 0]) @ weights))
    scores[..., :misleading] *= -1
    return answered_pairs(scores, first)


def samples_of_pairs(name: str, size: int, draws: int) -> Iterator[tuple[NBest, NBest]]:
    """Yield pairs to adapt on, and test pairs."""
    if name == "simulated judges":
        for seed in range(2 * draws):
            lists = simulated_pairs(size + TESTED, seed)
            yield lists[:size], lists[size:]
        return
    for half in reward_halves(hard_pairs() if name == "LLMBar" else True):
        for seed in range(draws):
            yield draw_lists(half, size, seed), half.test


def predict_pairs(posterior: Any, test: NBest) -> tuple[Any, Any, Any]:
    """Return the probabilities of test pairs, their gains, and the gain of each choice."""
    p = bpa.rerank(test, posterior, unchecked=True).probabilities.reshape(-1, 2)
    gains = read_column(test, "gain").reshape(-1, 2)
    return p, gains, gains[np.arange(len(p)), p.argmax(axis=1)]


def pairs(options: Any) -> None:
    """Print the calibration of the probability that a candidate is preferred."""
    columns = "share right", "mean probability", "difference", "calibration error", "log loss"
    for name, size in product(PAIRS, SIZES):
        table = Table(f"{name}, {size} pairs", *columns)
        for row, likelihood in (("`risk`", "risk"), ("**the default**", None)):
            results = []
            for lists, test in samples_of_pairs(name, size, options.draws):
                posterior = bpa.adapt(lists, None, gain="gain", likelihood=likelihood)
                p, gains, right = predict_pairs(posterior, test)
                best = p.max(axis=1)
                shares = right.mean(), best.mean(), abs(right.mean() - best.mean())
                results.append(
                    (*shares, calibration_error(right, best), log_loss(gains[:, 0], p[:, 0]))
                )
            table.row(row, *(f"{value:.3f}" for value in np.mean(results, axis=0)))


def share_of_best(lists: NBest, posterior: bpa.WeightDraws) -> float:
    """Return the share of choices among the best candidates; those of equal score share it."""
    gain, first = read_column(lists, "gain"), lists.offsets[:-1]
    best = gain == np.repeat(np.maximum.reduceat(gain, first), lists.sizes)
    scores = lists.scores(posterior.aligned(lists, posterior.mean[None])[0])
    return float(average_best(lists, best.astype(np.float64), scores).mean())


def lists(options: Any) -> None:
    """Print predictive probabilities and leave-one-out shares, and the share of best choices."""
    columns = "share of best", "mean probability", "leave-one-out", "interval has the share"
    table = Table("judged lists", *columns)
    for file in JUDGED:
        halves = [half for half in read_halves((file,)) if len(half.test) >= LEAST]
        for size in (SIZES[0], SIZES[-1]):
            results = []
            for half, seed in product(halves, range(options.draws)):
                posterior = bpa.as_weight_draws(
                    bpa.adapt(draw_lists(half, size, seed), None, gain="gain")
                )
                predicted = bpa.rerank(half.test, posterior, rule="predictive", unchecked=True)
                choice = bpa.rerank(half.test, posterior, unchecked=True).choice
                p = predicted.probabilities[half.test.offsets[:-1] + choice]
                comparison = read_comparison(posterior.adaptation)
                assert comparison is not None
                assert comparison.best is not None
                share, (count, total) = share_of_best(half.test, posterior), comparison.best
                low, high = estimate_proportion(count, total)
                results.append((share, p.mean(), count / total, low <= share <= high))
            table.row(
                f"{file}, {size} lists", *(f"{value:.3f}" for value in np.mean(results, axis=0))
            )


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    run_tables(__doc__, (translations, pairs, lists), draws=5)

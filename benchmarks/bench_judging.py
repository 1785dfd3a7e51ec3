"""Comparing two candidates at a time: the headroom that simulated raters win with few answers.

    python benchmarks/bench_judging.py [--tables NAME ...] [--draws 10] [--slip 0.05]

Data and protocol are the same as in `bench_judged.py`: each half of a domain of WMT 2023 is once
the pool that pairs are chosen from, and once the test set. The simulated rater prefers the
candidate with the better MQM; "no difference" counts as an answer. The tables show the share of the
headroom ± two standard deviations over the sessions, by the number of answers.

Tables:
    pairs     ways of choosing pairs, with all metrics as features
    collections  mixed and random pairs with other judgements: summaries, data-to-text, medical
              texts, talks and WMT, with only computed features and with the systems; reward models
    six       the six features that most people have, starting from 0 and from one trusted metric
    intervals  how often 95 % intervals contain the true weights: the best of four candidates, 100
              answers, four weights of equal size, or drawn from the prior; `--draws` data sets each
    kinds     the same for several kinds of answers, 100 of each, with weights of different sizes
    slips     the same for slip rates of two or three raters, with 60 and 300 answers of each
    speed     milliseconds for the next pair, an answer and the outlook, on 10,000 lists of 20
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from bench_judged import (
    COMPUTED,
    CONSENSUS_SETS,
    SIX,
    SUMMARIES,
    WMT23,
    Half,
    cell,
    hard_pairs,
    read_halves,
    reward_halves,
)
from measuring import Table, few, print_cells, run_tables

import bpa_ppl as bpa
from bpa_ppl.evaluation.headroom import headroom_won
from bpa_ppl.evaluation.raters import compare_raters
from bpa_ppl.extras.judging.session import Session
from bpa_ppl.formats.in_memory import from_lists
from bpa_ppl.formats.journal import PLACES, TIE
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weight_draws import as_weight_draws

ANSWERS = few((10, 20, 50))
TRUSTED = "qe_CometKiwi"


class InformationOnly(Session):
    """A session without random questions."""

    def _is_informative(self, lines: int) -> bool:
        return True


class RandomOnly(Session):
    """A session of random questions."""

    def _is_informative(self, lines: int) -> bool:
        return False


WAYS = {"mixed": Session, "information": InformationOnly, "random": RandomOnly}


def learning_curve(session: Session, test: NBest, clicks: tuple[int, ...]) -> list[float]:
    """Return the share of the headroom that a session wins on other lists after some answers.

    The rater prefers the candidate with the higher MQM, and of two that are equal says that there
    is no difference.
    """
    values = np.asarray(read_column(session.lists, "mqm"), np.float64)
    result = []
    for count in clicks:
        while len(session.judgements) < count:
            question = session.next()
            shown = values[session.lists.offsets[question.sentence] + np.array(question.candidates)]
            session.answer(TIE if shown[0] == shown[1] else PLACES[int(np.argmax(shown))])
        result.append(headroom_won(test, session.choices(test), "mqm"))
    return result


def print_sessions(
    name: str,
    halves: list[Half],
    options: Any,
    *,
    pairs: str = "mixed",
    start: Callable[[Half], dict[str, Any]] = lambda half: {},
    answers: tuple[int, ...] = ANSWERS,
    categorical: str | None = None,
) -> None:
    """Print the headroom that sessions win.

    Args:
        name: of the row.
        halves: pools and test sets.
        options: of the command line.
        pairs: how they are chosen.
        start: returns the weights or the prior of a half.
        answers: their numbers.
        categorical: a column whose values become features.
    """
    curves = []
    for half in halves:
        settings = {"slip": options.slip, "categorical": categorical}
        runs = [
            WAYS[pairs](half.pool, seed=seed, **start(half), **settings)
            for seed in range(options.draws)
        ]
        curves.append([learning_curve(run, half.test, answers) for run in runs])
    means = np.mean(curves, axis=0).T
    cells = [cell(size, list(values)) for size, values in zip(answers, means, strict=True)]
    print_cells(name, cells)


def pairs(options: Any) -> None:
    """Print how ways of choosing pairs compare."""
    print("\nall metrics")
    for way in WAYS:
        print_sessions(way, read_halves(WMT23), options, pairs=way)


def collections(options: Any) -> None:
    """Print how mixed and random pairs compare on other collections."""
    for file in (*CONSENSUS_SETS, SUMMARIES, *WMT23):
        halves = read_halves((file,), (*COMPUTED, "chars"))
        for name, categorical in ((file, None), (f"{file}, systems", "system")):
            for way in ("mixed", "random"):
                print_sessions(
                    f"{name}, {way}", halves, options, pairs=way, categorical=categorical
                )
    for way in ("mixed", "random"):
        print_sessions(f"reward models, {way}", reward_models(), options, pairs=way)


def reward_models() -> list[Half]:
    """Return the halves of hard pairs of answers, with the scores of reward models."""
    parts = [(half.pool, half.test) for half in reward_halves(hard_pairs())]
    return [Half("rewardbench", *(x.without("preferences") for x in pair)) for pair in parts]


def trusted(half: Half) -> dict[str, Any]:
    """Return a weight of one metric alone."""
    names = half.pool.feature_names
    return {"weights": {TRUSTED: 0.5 / float(half.pool.spread[names.index(TRUSTED)])}}


def six(options: Any) -> None:
    """Print the scores with six features."""
    print("\nsix features")
    halves = read_halves(WMT23, SIX)
    print_sessions("from nothing", halves, options)
    answers = (0, *ANSWERS)
    print_sessions(f"from {TRUSTED}", halves, options, start=trusted, answers=answers)


#: Slip rates of two or three raters.
RATES = ((0.02, 0.02), (0.05, 0.05), (0.2, 0.2), (0.45, 0.45), (0.05, 0.05, 0.45))


def best_of_four(truth: np.ndarray, slips: tuple[float, ...], answers: int, seed: int) -> NBest:
    """Return lists of which raters chose the best of four candidates.

    Args:
        truth: (K,) weights.
        slips: the slip rates of the raters.
        answers: of each rater.
        seed: of the data.
    """
    rng, count = np.random.default_rng([seed, 11]), answers * len(slips)
    features = rng.normal(size=(count, 4, len(truth))).astype(np.float32)
    chosen = (features @ truth + rng.gumbel(size=(count, 4))).argmax(axis=1)
    rater = np.arange(count) % len(slips)
    at_random = rng.uniform(size=count) < np.array(slips)[rater]
    chosen = np.where(at_random, rng.integers(4, size=count), chosen).tolist()
    rankings = [
        [{"candidates": [best, [k for k in range(4) if k != best]], "rater": f"r{number}"}]
        for best, number in zip(chosen, rater.tolist(), strict=True)
    ]
    texts = [[f"{s} {k}" for k in range(4)] for s in range(count)]
    lists = from_lists(texts, features, [f"x{k}" for k in range(len(truth))])
    return lists.with_sentence_extras(rankings=rankings)


def covered(draws: bpa.WeightDraws, truth: np.ndarray) -> int:
    """Return how many 95 % intervals of weights have the true ones."""
    low, high = np.quantile(draws.flat, [0.025, 0.975], axis=0)
    return int(np.count_nonzero((low < truth) & (truth < high)))


def intervals(options: Any) -> None:
    """Print how often intervals have the true weights, and how many posteriors pass their check."""
    table = Table("best of four, 100 answers", "covered", "of", "passed", "data sets")
    for size in few((0.5, 1.0, 1.5, None)):
        inside, passed = 0, 0
        for seed in range(options.draws):
            rng = np.random.default_rng([seed, 12])
            truth = (size or 0.0) * rng.choice([-1.0, 1.0], size=4)
            if size is None:
                lists = best_of_four(truth, (0.0,), 100, seed)
                truth = bpa.log_density(lists, None).prior.sample(rng, 1)[0]
            lists = best_of_four(truth, (0.0,), 100, seed)
            draws = as_weight_draws(bpa.adapt(lists, None, seed=seed))
            inside, passed = inside + covered(draws, truth), passed + bool(bpa.check(draws))
        name = "drawn from the prior" if size is None else f"size {size}"
        table.row(name, inside, 4 * options.draws, passed, options.draws)


#: Weights of different sizes, and factors of them.
UNEQUAL, FACTORS = np.array([1.0, 0.8, 0.3, 0.0, -0.5]), (1.0, 1.5)
#: Kinds of answers: candidates of a list, and how many of the best are named in order.
KINDS = {
    "the best of four": (4, 1),
    "rankings of four": (4, 3),
    "one of two, of lists of four": (4, 0),
    "one of two": (2, 1),
}


def answer(truth: np.ndarray, candidates: int, named: int, seed: int) -> NBest:
    """Return 100 lists with an answer each.

    Args:
        truth: (K,) weights.
        candidates: of each list.
        named: the best ones are named in order; 0 compares the first two candidates.
        seed: of the data.
    """
    rng = np.random.default_rng([seed, 13])
    features = rng.normal(size=(100, candidates, len(truth))).astype(np.float32)
    scores = features @ truth + rng.gumbel(size=features.shape[:2])
    rankings = []
    for of_list in scores if named else scores[:, :2]:
        order, top = np.argsort(-of_list).tolist(), max(named, 1)
        rankings.append([[*order[:top], *([sorted(order[top:])] if order[top:] else [])]])
    texts = [[f"{s} {k}" for k in range(candidates)] for s in range(100)]
    lists = from_lists(texts, features, [f"x{k}" for k in range(len(truth))])
    return lists.with_sentence_extras(rankings=rankings)


def kinds(options: Any) -> None:
    """Print how often intervals have the true weights, by the kind of answers, and mean errors."""
    columns = "covered", "of", "share", "passed", "data sets", "mean z of the largest"
    table = Table("100 answers", *columns)
    for name, (candidates, named) in few([*KINDS.items()]):
        for factor in FACTORS:
            inside, passed, z = 0, 0, list[float]()
            for seed in range(options.draws):
                truth = factor * UNEQUAL
                lists = answer(truth, candidates, named, seed + int(1000 * factor))
                draws = as_weight_draws(bpa.adapt(lists, None, seed=seed))
                inside, passed = inside + covered(draws, truth), passed + bool(bpa.check(draws))
                z.append(float((draws.mean[0] - truth[0]) / draws.deviation[0]))
            total = len(truth) * options.draws
            row = inside, total, f"{inside / total:.3f}", passed, options.draws, float(np.mean(z))
            table.row(f"{name}, weights × {factor:g}", *row)


def slips(options: Any) -> None:
    """Print how often intervals have the true slip rates, and the weights that are learned."""
    columns = "covered", "of", "mean of the last", "weights covered", "of", "passed"
    table = Table("slip rates", *columns)
    for rates in few(RATES):
        for answers in few((60, 300)):
            inside, weights, passed, last = 0, 0, 0, list[float]()
            for seed in range(options.draws):
                truth = np.random.default_rng([seed, 12]).choice([-1.0, 1.0], size=4)
                lists = best_of_four(truth, rates, answers, seed)
                posterior = bpa.adapt(lists, None, seed=seed)
                found = compare_raters(posterior)
                assert found is not None
                of_raters = [found.slips[f"r{k}"] for k in range(len(rates))]
                pairs = zip(of_raters, rates, strict=True)
                inside += sum(low < rate < high for (_, low, high), rate in pairs)
                weights += covered(as_weight_draws(posterior), truth)
                passed += bool(bpa.check(posterior))
                last.append(of_raters[-1][0])
            name = f"{', '.join(map(str, rates))}: {answers} answers"
            count = options.draws
            table.row(
                *(name, inside, len(rates) * count, float(np.mean(last))),
                *(weights, 4 * count, passed),
            )


def speed(options: Any) -> None:
    """Print the median and the longest time of each part of an answer."""
    rng = np.random.default_rng(0)
    texts = [[f"text {s} {i}" for i in range(20)] for s in range(10_000)]
    features = rng.normal(size=(10_000, 20, 12))
    session = Session(from_lists(texts, features, [f"metric{k}" for k in range(12)]))
    seconds: dict[str, list[float]] = {"next": [], "answer": [], "outlook": []}
    for _ in few(range(60), 3):
        answer = ("first", "second", "tie")[rng.integers(3)]
        parts = session.next, partial(session.answer, answer), session.outlook
        for name, part in zip(seconds, parts, strict=True):
            start = perf_counter()
            part()
            seconds[name].append(perf_counter() - start)
    table = Table("10,000 lists of 20, milliseconds", "median", "longest")
    for name, values in seconds.items():
        table.row(name, 1000 * float(np.median(values)), 1000 * max(values))


if __name__ == "__main__":
    run_tables(
        __doc__, (pairs, collections, six, kinds, intervals, slips, speed), draws=10, slip=0.05
    )

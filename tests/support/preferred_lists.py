"""Lists with preferences, draws for them, and the simple ways to choose by plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.adaptation_record import ObservedRecord
from bpa_ppl.evaluation.simple_ways import Way
from bpa_ppl.posterior.statistics import loo_log_weights
from bpa_ppl.weight_draws import name_weights
from support.posteriors import record_of

NAMES = ("good", "fair", "noise")
#: A simulated judge prefers larger values of these weights.
TRUE = np.array([2.0, 1.0, 0.0])


def lists_of(tables: Sequence[Any], **answers: Any) -> bpa.NBest:
    texts = [[f"{s} {k}" for k in range(len(table))] for s, table in enumerate(tables)]
    return bpa.from_lists(texts, tables, NAMES).with_sentence_extras(**answers)


def judged(seed: int, count: int = 40, size: int = 2, answers: int = 1) -> bpa.NBest:
    """Lists, and answers about random pairs of their candidates by a judge without ties."""
    rng = np.random.default_rng(seed)
    tables = list(rng.normal(size=(count, size, 3)))
    return lists_of(tables, preferences=[answered(rng, table, answers) for table in tables])


def answered(rng: np.random.Generator, table: np.ndarray, answers: int) -> list[list[int]]:
    entries = []
    for _ in range(answers):
        one, other = sorted(int(k) for k in rng.choice(len(table), 2, replace=False))
        first = rng.logistic() < (table[one] - table[other]) @ TRUE
        entries.append([one, other] if first else [other, one])
    return entries


def mixed(seed: int) -> bpa.NBest:
    """Ragged lists with pairs of two raters, ties, full and partial rankings, weights, gaps."""
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(n, 3)) for n in rng.integers(2, 6, 20)]
    preferences: list[Any] = [answered(rng, table, 2) for table in tables]
    preferences[1] = [
        {"candidates": pair, "rater": rater, "weight": weight}
        for pair, rater, weight in zip(preferences[1], ("ann", "bob"), (0.5, 3.0), strict=True)
    ]
    preferences[2] = None
    preferences[3] = None
    rankings: list[Any] = [None] * 20
    for s, table in enumerate(tables):
        if s > 12:
            order = np.argsort(-(table @ TRUE)).tolist()
            rankings[s] = [order] if s % 2 else [[order[0], order[1:]]]
    ties = [[[0, 1]] if s in (3, 4) else None for s in range(20)]
    return lists_of(tables, preferences=preferences, ties=ties, rankings=rankings)


def posterior(pool: bpa.NBest, seed: int = 0) -> bpa.Draws:
    """Draws with an invented log-likelihood of each choice; `rerank` chooses by their mean."""
    rng = np.random.default_rng(seed)
    ids = []
    for s in range(len(pool)):
        for name in ("preferences", "ties", "rankings"):
            for entry in pool.sentence_extras.get(name, [None] * len(pool))[s] or ():
                members = entry["candidates"] if isinstance(entry, dict) else entry
                single = name != "rankings" or isinstance(members[-1], list)
                ids += [pool.sentence_ids[s]] * (1 if single else len(members) - 1)
    return name_weights(
        rng.normal([0.5, 0.3, 0.1], 0.5, size=(2, 100, 3)),
        NAMES,
        log_likelihood={"oracle": -np.abs(rng.normal(1.0, 0.2, size=(2, 100, len(ids))))},
        constants={"canonical": np.zeros(3)},
        sentence_ids=np.array(ids),
        record=record_of(observed=ObservedRecord(kind="preferences"), start="none"),
    )


class AnswerLoops:
    """Answers as a loop reads them: by list, (weight, its pairs of a better and a worse row)."""

    def __init__(self, pool: bpa.NBest) -> None:
        self.pool = pool
        self.lists: dict[int, list[tuple[float, list[tuple[int, int]]]]] = {}
        for s in range(len(pool)):
            for name in ("preferences", "rankings"):
                for entry in pool.sentence_extras[name][s] or ():
                    weight = entry.get("weight", 1.0) if isinstance(entry, dict) else 1.0
                    members = entry["candidates"] if isinstance(entry, dict) else entry
                    rest = members[-1] if isinstance(members[-1], list) else []
                    ordered = members[:-1] if rest else members
                    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
                    pairs += [(a, b) for a in ordered for b in rest]
                    self.lists.setdefault(s, []).append((weight, pairs))

    @property
    def weight(self) -> np.ndarray:
        """The weight of the answers about each list."""
        return np.array([sum(w for w, _ in answers) for answers in self.lists.values()])

    def values(self, scores: list[np.ndarray], of: Any) -> np.ndarray:
        """The mean of a function of the differences of scores, for each list with answers."""
        return np.array(
            [
                np.average(
                    [np.mean([of(scores[s][a] - scores[s][b]) for a, b in p]) for _, p in answers],
                    weights=[w for w, _ in answers],
                )
                for s, answers in self.lists.items()
            ]
        )

    def accuracy(self, scores: list[np.ndarray]) -> np.ndarray:
        return self.values(scores, lambda d: 1.0 if d > 0 else 0.5 if d == 0 else 0.0)

    def log_loss(self, scores: list[np.ndarray]) -> np.ndarray:
        return self.values(scores, lambda d: np.log1p(np.exp(-d)))

    def rows(self, draws: bpa.Draws) -> dict[str, np.ndarray]:
        """The accuracy on each list by each way, and by the posterior without the list."""
        tables, spread = tables_of(self.pool), self.pool.select(list(self.lists)).spread
        shares = [left_out(self.pool, draws, s) for s in range(len(tables))]
        return {
            Way.FIRST: self.accuracy([-np.arange(len(table)) for table in tables]),
            Way.MEAN: self.accuracy([table @ (1 / spread) for table in tables]),
            Way.FEATURE: self.best_feature(tables),
            Way.ADAPTED: self.accuracy(
                [t @ (share @ draws.flat) for t, share in zip(tables, shares, strict=True)]
            ),
        }

    def best_feature(self, tables: list[np.ndarray]) -> np.ndarray:
        """The accuracy of each list by the feature and sign that is best on the others."""
        ways = np.array(
            [self.accuracy([sign * t[:, k] for t in tables]) for k in range(3) for sign in (1, -1)]
        )
        chosen = []
        for s in range(len(self.weight)):
            others = np.arange(len(self.weight)) != s
            chosen.append(ways[np.argmax(ways[:, others] @ self.weight[others]), s])
        return np.array(chosen)

    def adapted_loss(self, draws: bpa.Draws) -> np.ndarray:
        """The log loss on each list by the posterior without it."""
        tables, losses = tables_of(self.pool), []
        for s, answers in self.lists.items():
            share = left_out(self.pool, draws, s)

            def loss(a: int, b: int, s: int = s, share: np.ndarray = share) -> float:
                gap = draws.flat @ (tables[s][a] - tables[s][b])
                return float(-np.log(share @ (1 / (1 + np.exp(-gap)))))

            each = [np.mean([loss(a, b) for a, b in pairs]) for _, pairs in answers]
            losses.append(np.average(each, weights=[w for w, _ in answers]))
        return np.array(losses)


def left_out(pool: bpa.NBest, draws: bpa.Draws, sentence: int) -> np.ndarray:
    """The smoothed weights of the draws without any answer about a list, of any judge."""
    log_p = np.asarray(draws.pointwise).reshape(200, -1)
    own = log_p[:, np.asarray(draws.sentence_ids) == pool.sentence_ids[sentence]].sum(axis=1)
    share = np.exp(loo_log_weights(np.zeros(200), own[None])[0][0])
    return np.asarray(share / share.sum())


def tables_of(pool: bpa.NBest) -> list[np.ndarray]:
    return [pool.features[pool.rows(s)].astype(np.float64) for s in range(len(pool))]

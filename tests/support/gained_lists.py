"""Lists with gains, draws for them, and the simple ways to choose by plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.adaptation_record import GainColumn, RecipeRecord
from bpa_ppl.evaluation.compare_ways import to_record
from bpa_ppl.evaluation.simple_ways import Way
from bpa_ppl.gains.column import Column
from bpa_ppl.posterior.statistics import loo_log_weights
from bpa_ppl.weight_draws import name_weights
from support import reference_model
from support.posteriors import record_of, with_record

NAMES = ("LM0", "TM0", "Length")
SIMPLE = (Way.FIRST, Way.TOTAL, Way.CANONICAL, Way.MEAN, Way.FEATURE, Way.SYSTEM, Way.RIDGE)
MQM = Column(column="mqm")
JUDGED = record_of(recipe=RecipeRecord(gain=GainColumn(MQM.column, MQM.negative)))


def lists(seed: int, count: int = 9, *, missing: bool = False) -> bpa.NBest:
    """Ragged lists with ties in a feature, systems that some lists lack, and gains in eighths."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, count)
    features = [
        np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, n)]).astype(np.float32)
        for n in sizes
    ]
    gains = [(rng.integers(-40, 40, n) / 8).tolist() for n in sizes]
    if missing:
        gains[2] = [None] * len(gains[2])
        gains[3][1:] = [None] * (len(gains[3]) - 1)
        gains[5][1] = None
    systems = [rng.permutation(list("ABCDEF"))[:n].tolist() for n in sizes]
    texts = [[f"{s} {k}" for k in range(n)] for s, n in enumerate(sizes)]
    made = bpa.from_lists(texts, features, NAMES, extras={"system": systems})
    flat = np.array([np.nan if g is None else g for each in gains for g in each])
    made = made.with_extras(mqm=flat)
    return replace(made, totals=rng.normal(size=len(made.features)).astype(np.float32))


def posterior(pool: bpa.NBest, seed: int = 0, draws: int = 100, **known: object) -> bpa.Draws:
    rng = np.random.default_rng(seed)
    weights = rng.normal([0.5, -0.3, 0.1], 0.3, size=(2, draws, 3))
    log_p = -np.abs(rng.normal(1.0, 0.3, size=(2, draws, len(pool))))
    return name_weights(
        weights,
        NAMES,
        log_likelihood={"oracle": log_p},
        constants={"canonical": np.array([1.0, -1.0, 0.0])},
        sentence_ids=pool.sentence_ids,
        **{"record": JUDGED, **known},
    )


def recorded(pool: bpa.NBest, **options: object) -> bpa.Draws:
    draws = posterior(pool, **options)
    return with_record(draws, comparison=to_record(bpa.compare_baselines(pool, draws)))


def shared(scores: list[float], gains: list[float]) -> float:
    """The gain of the best score, by a plain loop: the mean over ties and judged candidates."""
    best = [g for score, g in zip(scores, gains, strict=True) if score == max(scores)]
    judged = [g for g in best if g == g]
    return float(np.mean(judged)) if judged else float("nan")


class GainLoops:
    """The gains of each way, list by list, by plain loops over lists of numbers."""

    def __init__(self, pool: bpa.NBest) -> None:
        gains = np.asarray(pool.extras["mqm"])
        self.lists = []
        for s in range(len(pool)):
            rows = [r for r in range(*pool.rows(s).indices(10**6)) if np.isfinite(gains[r])]
            if len(rows) > 1:
                self.lists.append((pool.features[rows].astype(float), gains[rows].tolist(), rows))
        self.pool = pool

    def feature(self, k: int, sign: int) -> list[float]:
        return [shared((sign * x[:, k]).tolist(), g) for x, g, _ in self.lists]

    def by(self, column: np.ndarray) -> list[float]:
        return [shared(column[rows].tolist(), g) for _, g, rows in self.lists]

    def left_out(self, ways: list[list[float]]) -> list[float]:
        """For each list the way of the highest mean gain on the others."""
        found = []
        for s in range(len(self.lists)):
            means = [np.mean([g for t, g in enumerate(way) if t != s]) for way in ways]
            found.append(ways[int(np.argmax(means))][s])
        return found

    def single(self) -> dict[str, list[float]]:
        ways = ([self.feature(k, 1), self.feature(k, -1)] for k in range(3))
        return {name: max(both, key=np.mean) for name, both in zip(NAMES, ways, strict=True)}

    def best_feature(self) -> list[float]:
        return self.left_out([self.feature(k, sign) for k in range(3) for sign in (1, -1)])

    def mean(self, signs: tuple[int, ...]) -> list[float]:
        every = [x[:, k] - x[:, k].mean() for x, *_ in self.lists for k in range(3)]
        spread = [np.sqrt(np.mean(np.concatenate(every[k::3]) ** 2)) for k in range(3)]
        return [shared((x / spread @ np.array(signs)).tolist(), g) for x, g, _ in self.lists]

    def ridge(self) -> list[float]:
        """With one fold a list for the penalty, and refitted without each list."""
        table = np.concatenate([x - x.mean(axis=0) for x, *_ in self.lists])
        target = np.concatenate([np.subtract(g, np.mean(g)) for _, g, _ in self.lists])
        fold = np.repeat(np.arange(len(self.lists)), [len(g) for _, g, _ in self.lists])
        table, target = table / table.std(axis=0), target / target.std()
        found = []
        for s, (_, gains, _) in enumerate(self.lists):
            rest = fold != s
            weights = tuned_ridge(table[rest], target[rest], fold[rest])
            found.append(gains[int(np.argmax(table[~rest] @ weights))])
        return found

    def system(self) -> list[float]:
        names = np.array(self.pool.extras["system"])
        held = [
            {names[r]: g for g, r in zip(gains, rows, strict=True)} for _, gains, rows in self.lists
        ]
        frequent = sorted(
            {n for h in held for n in h if 2 * sum(n in o for o in held) >= len(held)}
        )
        found = []
        for s, own in enumerate(held):
            above = {}
            for name in frequent:
                others = [
                    h[name] - np.mean(list(h.values()))
                    for t, h in enumerate(held)
                    if t != s and name in h
                ]
                if name in own and others:
                    above[name] = np.mean(others)
            found.append(
                own[max(above, key=lambda n: above[n])] if above else np.mean(list(own.values()))
            )
        return found

    def rows(self, draws: bpa.Draws) -> dict[str, np.ndarray]:
        """The gain of each list by each way, and by the posterior without the list."""
        adapted = np.concatenate(left_out(self.pool, draws))
        rows = {
            Way.FIRST: [g[0] for _, g, _ in self.lists],
            Way.TOTAL: self.by(np.asarray(self.pool.totals)),
            Way.CANONICAL: self.by(self.pool.scores([1.0, -1.0, 0.0])),
            Way.MEAN: self.mean((1, -1, 1)),
            Way.FEATURE: self.best_feature(),
            Way.SYSTEM: self.system(),
            Way.RIDGE: self.ridge(),
            Way.RANDOM: [float(np.mean(g)) for _, g, _ in self.lists],
            Way.BEST: [max(g) for _, g, _ in self.lists],
            Way.ADAPTED: self.by(adapted),
        }
        return {name: np.array(gains) for name, gains in rows.items()}

    @property
    def weight(self) -> np.ndarray:
        """The weight of each list."""
        return np.ones(len(self.lists))


def tuned_ridge(table: np.ndarray, target: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The weights by the penalty of the highest mean R² of folds, as scikit-learn's RidgeCV."""

    def fit(rows: np.ndarray, penalty: float) -> np.ndarray:
        x, y = table[rows], target[rows]
        return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)

    def r_squared(own: np.ndarray, penalty: float) -> float:
        error = target[own] - table[own] @ fit(~own, penalty)
        return float(1 - (error @ error) / np.sum((target[own] - target[own].mean()) ** 2))

    penalties, members = np.logspace(5, -1, 13), [fold == one for one in np.unique(fold)]
    best = np.argmax([np.mean([r_squared(own, p) for own in members]) for p in penalties])
    return fit(np.ones(len(fold), bool), penalties[best])


def left_out(pool: bpa.NBest, draws: bpa.Draws) -> list[np.ndarray]:
    """p(e|f) of each list by the smoothed weights of the posterior without the list."""
    found = []
    for s in range(len(pool)):
        log_p = np.asarray(draws.pointwise).reshape(200, -1)[:, s]
        weight = np.exp(loo_log_weights(np.zeros(200), log_p[None])[0][0])
        found += reference_model.predictive(pool[s], draws.flat, weight)
    return found

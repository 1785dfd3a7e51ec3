"""Judges, reward models and metrics combined by other methods.

    python benchmarks/bench_juries.py [--tables NAME ...] [--draws 3] [--calls 100]

Tables:
    llmbar       226 pairs of answers that were made to mislead (LLMBar, neighbour and GPTInst, in
                 RewardBench), with the scores of nine reward models; accuracy, 10 draws
    rewardbench  all 2,755 pairs of RewardBench, with the same scores; accuracy, 10 draws
    metrics      WMT 2023, 17 quality metrics, consensus and length gap; share of the headroom
    six          WMT 2023, six features that most people have; share of the headroom
    texts        eight collections with three features of the texts alone; share of the headroom
    left-out     the accuracy that `adapt` prints after answers to pairs, by leave-one-out, and the
                 accuracy on the test set. A cell has the means for ours / mean of the scores /
                 logistic regression over 20 draws of each half; then the share of the 95% intervals
                 of our accuracy, and of its differences from the two others, that contain the value
                 of the test set; and the mean log loss of ours / mean with one slope / logistic
                 regression
    added        what the posterior adds over other ways to learn from the same labels: accuracy and
                 log loss on RewardBench, LLMBar and simulated judges (10 draws, 20 simulations),
                 headroom on WMT 2023 and on eight collections with three features of the texts.
                 ± is two standard errors of the difference from the posterior over the draws;
                 `mode` is the mode of the same posterior. For the log loss on pairs, the mean of
                 the scores has a learned slope

Each half of a collection is once the pool that judged lists are drawn from, without replacement,
and once the test set. The seeds 0, 1, ... are the same for every row. A cell has the mean ± two
standard deviations over the draws, by the number of judged lists; a pool with fewer lists is used
as a whole. For the other methods, the scores are divided by their standard deviations within the
lists of the whole pool; our model takes these from the judged lists.

Rows:
    mean of the scores     mean of all standardised scores except the length gap
    best score             the score with the best choices on the judged lists
    ridge                  Bayesian ridge regression on normal scores of the gains within lists
    logistic regression    on differences of the scores of two candidates, C = 1
    lambdarank             LightGBM's, with its defaults, and with 50 trees of at most 7 leaves of
                           at least 2 candidates; grades are ranks within the list
    search                 weights from 0 to 1, found by a Gaussian process with expected
                           improvement (scikit-learn's, Matérn kernel), as in MetaMetrics: `--calls`
                           evaluations of the share of correctly ordered pairs, half of them at
                           random
    MetaMetrics            its published scores
    ours                   `adapt(lists, None)`, the same from equal weights, and for preferences
                           with a wide prior instead of a learned scale
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from bench_confidence import simulated_pairs
from bench_judged import (
    COMPUTED,
    CONSENSUS_SETS,
    SIX,
    SUMMARIES,
    TED,
    WMT23,
    Chooser,
    Half,
    adapt,
    best_feature,
    cell,
    draw_lists,
    fit_ridge,
    hard_pairs,
    read_halves,
    reward_halves,
)
from measuring import few, run_tables
from scipy.stats import norm, rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression

import bpa_ppl as bpa
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.evaluation.compare_ways import read_comparison
from bpa_ppl.evaluation.simple_ways import Way
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import StartingWeights

SIZES, ADDED_SIZES = few((10, 20, 50, 200)), few((10, 20, 50))
#: Draws of pairs, and those of the table `left-out`.
DRAWS, LEFT_OUT_DRAWS = few(range(10)), few(range(20))
METHODS = "mean of the scores", "ridge", "logistic regression", "mode", "**posterior**"
TEXTS = tuple(name for name in (*CONSENSUS_SETS, SUMMARIES) if name not in TED)
PUBLISHED = "metametrics"


def scaled(half: Half, lists: NBest) -> Float64:
    """Return the features divided by their standard deviations within the lists of the pool."""
    spread = half.pool.spread
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    return np.asarray(lists.features * scale)


def differences(half: Half, lists: NBest) -> Float64:
    """Return (pairs, features) a better candidate minus a worse one, of all pairs in the lists."""
    table, gain = scaled(half, lists), read_column(lists, "gain")
    found = []
    for sentence in range(len(lists)):
        rows = range(*lists.rows(sentence).indices(len(table)))
        for one, other in combinations(rows, 2):
            if gain[one] != gain[other]:
                better, worse = (one, other) if gain[one] > gain[other] else (other, one)
                found.append(table[better] - table[worse])
    return np.array(found).reshape(-1, table.shape[1])


def mean_of_scores(half: Half, _: NBest) -> Int64:
    """Choose by the mean of the scores, except the length gap."""
    names = np.array(half.test.feature_names)
    return half.test.best(scaled(half, half.test) @ (names != "length_gap"))


def score_by_ridge(half: Half, lists: NBest) -> Float64:
    """Score by a ridge regression of normal scores of the gains on list-centred scores."""
    return np.asarray(scaled(half, half.test) @ fit_ridge(lists, scaled(half, lists)))


def ridge(half: Half, lists: NBest) -> Int64:
    """Choose by a ridge regression of normal scores of the gains on list-centred scores."""
    return half.test.best(score_by_ridge(half, lists))


def score_by_logistic_regression(half: Half, lists: NBest, mean: bool = False) -> Float64:
    """Score by a logistic regression of which of two candidates is better.

    Args:
        half: gives the test lists.
        lists: judged ones.
        mean: whether the mean of the scores, except the length gap, is the only feature.
    """
    names = np.array(lists.feature_names)
    columns = (names != "length_gap")[:, None] / len(names) if mean else np.eye(len(names))
    pairs = differences(half, lists) @ columns
    answers = np.repeat([1, 0], len(pairs))
    fitted = LogisticRegression(fit_intercept=False).fit(np.vstack([pairs, -pairs]), answers)
    return np.asarray(scaled(half, half.test) @ columns @ fitted.coef_[0])


def logistic_regression(half: Half, lists: NBest) -> Int64:
    """Choose by a logistic regression of which of two candidates is better."""
    return half.test.best(score_by_logistic_regression(half, lists))


def lambdarank(half: Half, lists: NBest, **settings: Any) -> Int64:
    """Choose by boosted trees that rank the candidates of a list."""
    import lightgbm

    gain = read_column(lists, "gain")
    rows = [gain[lists.rows(s)] for s in range(len(lists))]
    grades = np.concatenate([rankdata(of_list, "dense") - 1 for of_list in rows]).astype(int)
    ranker = lightgbm.LGBMRanker(verbosity=-1, n_jobs=1, random_state=0, **settings)
    ranker.fit(scaled(half, lists), grades, group=lists.sizes)
    return half.test.best(np.asarray(ranker.predict(scaled(half, half.test))))


def search(half: Half, lists: NBest, calls: int) -> Int64:
    """Choose by weights that a Gaussian process finds."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # bounds of the kernel
    pairs, rng = differences(half, lists), np.random.default_rng(0)
    tried = rng.random((calls // 2, pairs.shape[1]))
    values = np.mean(pairs @ tried.T > 0, axis=0)
    kernel = ConstantKernel(0.1) * Matern(nu=2.5) + WhiteKernel(1e-3)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    while len(tried) < calls:
        if len(tried) % 5 == 0:  # in between, the kernel stays
            process.set_params(kernel=kernel, optimizer="fmin_l_bfgs_b")
        kernel = process.fit(tried, values).kernel_
        process.set_params(kernel=kernel, optimizer=None)
        around = tried[values.argmax()] + 0.1 * rng.normal(size=(500, pairs.shape[1]))
        points = np.vstack([rng.random((1000, pairs.shape[1])), np.clip(around, 0, 1)])
        mean, deviation = process.predict(points, return_std=True)
        z = (mean - values.max()) / np.maximum(deviation, 1e-9)
        improvement = deviation * (z * norm.cdf(z) + norm.pdf(z))
        point = points[improvement.argmax()]
        tried = np.vstack([tried, point])
        values = np.append(values, np.mean(pairs @ point > 0))
    return half.test.best(scaled(half, half.test) @ tried[values.argmax()])


def published(half: Half, _: NBest) -> Int64:
    """Choose by the published scores of MetaMetrics."""
    scores = half.test.sentence_extras[PUBLISHED]
    return half.test.best(np.concatenate([np.array(pair) for pair in scores]))


def from_preferences(half: Half, lists: NBest, weights: str | None = None, **options: Any) -> Int64:
    """Choose after adaptation to the preferences."""
    posterior = bpa.adapt(lists, weights, likelihood="preference", **options)
    return bpa.rerank(half.test, posterior, unchecked=True).choice


def from_gains(half: Half, lists: NBest, equal: bool = False) -> Int64:
    """Choose after adaptation to the gains."""
    if not equal:
        return adapt(half, lists)
    lower = [name for name in ("length_gap", "chars") if name in lists.feature_names]
    return adapt(half, lists, StartingWeights("equal", lower_is_better=lower))


def print_table(
    title: str,
    halves: Sequence[Half],
    draws: int,
    calls: int,
    score: Callable[[Half, Int64], float] = Half.headroom,
) -> None:
    """Print the scores of all methods; the mean over files, if there are several."""
    preferences = PUBLISHED in halves[0].pool.sentence_extras
    ours = from_preferences if preferences else from_gains
    rows: dict[str, tuple[Chooser, bool]] = {"mean of the scores": (mean_of_scores, False)}
    if preferences:
        rows["MetaMetrics, published"] = (published, False)
    rows["best score on the judged lists"] = (best_feature, True)
    rows["ridge"] = (ridge, True)
    rows["logistic regression"] = (logistic_regression, True)
    if importlib.util.find_spec("lightgbm"):
        small = {"n_estimators": 50, "num_leaves": 7, "min_child_samples": 2}
        rows["lambdarank, defaults"] = (lambdarank, True)
        rows["lambdarank, small trees"] = (partial(lambdarank, **small), True)
    else:
        print("lightgbm is not installed: the rows of lambdarank are left out")
    rows[f"search, {calls} calls"] = (partial(search, calls=calls), True)
    rows["**ours**"] = (ours, True)
    if preferences:
        wide = partial(from_preferences, prior="isotropic:variance=0.1")
        rows["ours, variance of the prior 0.1"] = (wide, True)
    equal = {"weights": "equal"} if preferences else {"equal": True}
    rows["ours, from equal weights"] = (partial(ours, **equal), True)
    print(f"\n| {title} | none | {' | '.join(f'{size} lists' for size in SIZES)} |")
    print(f"|---|{'---:|' * (1 + len(SIZES))}")
    files = list(dict.fromkeys(half.name.split()[0] for half in halves))
    for name, (choose, learns) in rows.items():
        cells = [""] * (1 + len(SIZES))
        for place, size in enumerate(SIZES if learns else (0,), int(learns)):
            means = []
            for seed in range(draws if learns else 1):
                scores: dict[str, list[float]] = {file: [] for file in files}
                for half in halves:
                    choice = choose(half, draw_lists(half, size, seed))
                    scores[half.name.split()[0]].append(score(half, choice))
                means.append(np.mean([np.mean(of_file) for of_file in scores.values()]))
            cells[place] = cell(size, means).split(":")[1].strip().replace("0.", ".")
        print(f"| {name} | {' | '.join(cells)} |".replace(" ± .000", ""), flush=True)


def llmbar(options: Any) -> None:
    """Print the table of the pairs that were made to mislead."""
    halves = reward_halves(hard_pairs())
    print_table("LLMBar: 226 pairs, accuracy", halves, len(DRAWS), options.calls, Half.mean_mqm)


def rewardbench(options: Any) -> None:
    """Print the table of all pairs."""
    halves = reward_halves()
    print_table(
        "RewardBench: 2,755 pairs, accuracy", halves, len(DRAWS), options.calls, Half.mean_mqm
    )


def metrics(options: Any) -> None:
    """Print the table of WMT 2023 with all metrics."""
    halves = read_halves(WMT23)
    print_table("WMT 2023, 19 features: headroom", halves, options.draws, options.calls)


def six(options: Any) -> None:
    """Print the table of WMT 2023 with six features."""
    halves = read_halves(WMT23, SIX)
    print_table("WMT 2023, six features: headroom", halves, options.draws, options.calls)


def left_out(options: Any) -> None:
    """Print the accuracy by leave-one-out and on the test set."""
    for title, members in (("LLMBar", hard_pairs()), ("RewardBench", True)):
        print(f"\n| {title} | {' | '.join(f'{size} pairs' for size in ADDED_SIZES)} |")
        print(f"|---|{'---:|' * len(ADDED_SIZES)}")
        columns = [left_out_cells(reward_halves(members), size) for size in ADDED_SIZES]
        for name in columns[0]:
            print(f"| {name} | {' | '.join(column[name] for column in columns)} |", flush=True)


def left_out_cells(halves: Sequence[Half], size: int) -> dict[str, str]:
    """Return the cells of one column, by the name of the row."""
    names = (Way.ADAPTED, Way.MEAN, Way.LOGISTIC)
    pairs, warned = [], 0
    for half, seed in product(halves, LEFT_OUT_DRAWS):
        with capture_notes() as notes:
            posterior = bpa.adapt(draw_lists(half, size, seed), None, likelihood="preference")
        warned += any(note.level == logging.WARNING for note in notes)
        new = half.test.without("gain", "mqm")
        choice = bpa.rerank(new, posterior, unchecked=True).choice
        inside = read_comparison(bpa.as_weight_draws(posterior).adaptation)
        outside = bpa.compare_baselines(new, posterior, choice=choice)
        pairs.append([[of.row(name) for name in names] for of in (inside, outside)])

    def numbers(name: str) -> Float64:
        """Return a field of the rows, (draws, leave-one-out or test set, ways)."""
        return np.array([[[getattr(row, name) for row in of] for of in both] for both in pairs])

    def shown(values: Float64) -> str:
        return " / ".join(f"{value:.3f}".replace("0.", ".") for value in values)

    gain, loss, difference = numbers("gain"), numbers("log_loss"), numbers("difference")
    covered = [within(gain[:, 1, 0], numbers("gain_low")[:, 0, 0], numbers("gain_high")[:, 0, 0])]
    covered += [
        within(difference[:, 1, way], numbers("low")[:, 0, way], numbers("high")[:, 0, way])
        for way in (1, 2)
    ]
    return {
        "accuracy, leave-one-out": shown(gain[:, 0].mean(axis=0)),
        "accuracy, test set": shown(gain[:, 1].mean(axis=0)),
        "intervals that contain it": shown(np.array(covered)),
        "log loss, leave-one-out": shown(loss[:, 0].mean(axis=0)),
        "log loss, test set": shown(loss[:, 1].mean(axis=0)),
        "draws with a warning": f"{warned / len(pairs):.2f}",
    }


def within(values: Float64, low: Float64, high: Float64) -> float:
    """Return the share of values in their intervals."""
    return float(np.mean((low <= values) & (values <= high)))


def texts(options: Any) -> None:
    """Print the table of the collections with features of the texts alone."""
    halves = read_halves(TEXTS, (*COMPUTED, "chars"))
    print_table("features of texts: headroom", halves, options.draws, options.calls)


def log_loss(half: Half, logits: Float64) -> float:
    """Return the log loss of test pairs from unnormalised log-probabilities, (candidates,)."""
    gain = read_column(half.test, "gain").reshape(-1, 2)
    difference = np.subtract(*logits.reshape(-1, 2).T) * np.sign(np.subtract(*gain.T))
    return float(np.logaddexp(0, -difference).mean())


def measure(half: Half, lists: NBest, is_pairs: bool) -> Float64:
    """Return accuracy and log loss, or headroom and NaN, (methods, 2), by `METHODS`."""
    scores = [
        score_by_logistic_regression(half, lists, mean=True),
        score_by_ridge(half, lists),
        score_by_logistic_regression(half, lists),
    ]
    choices, logits = [half.test.best(one) for one in scores], [scores[0], None, scores[2]]
    if not is_pairs:  # by the mean itself, whose slope may come out negative
        choices[0] = mean_of_scores(half, lists)
    for sampler in ("map", None):
        posterior = bpa.adapt(lists, None, gain="gain", sampler=sampler)
        result = bpa.rerank(half.test, posterior, unchecked=True)
        choices.append(result.choice)
        logits.append(np.log(np.maximum(result.probabilities, 1e-12)) if is_pairs else None)
    score = half.mean_mqm if is_pairs else half.headroom
    losses = [log_loss(half, one) if is_pairs and one is not None else np.nan for one in logits]
    return np.column_stack([[score(choice) for choice in choices], losses])


def print_added(title: str, by_seed: Sequence[Sequence[Half]], is_pairs: bool) -> None:
    """Print a table of all methods, with paired differences from the posterior.

    Args:
        title: of the table.
        by_seed: the halves of each seed of the judged lists.
        is_pairs: whether the lists are pairs, with probabilities.
    """
    units = ("accuracy", "log loss") if is_pairs else ("headroom",)
    table = np.array(
        [
            [
                np.mean(
                    [measure(half, draw_lists(half, size, seed), is_pairs) for half in halves],
                    axis=0,
                )
                for seed, halves in enumerate(by_seed)
            ]
            for size in ADDED_SIZES
        ]
    )
    header = [f"{unit}, {size}" for unit in units for size in ADDED_SIZES]
    print(f"\n| {title} | {' | '.join(header)} |\n|---|{'---:|' * len(header)}")
    difference = table - table[:, :, -1:]
    mean, error = table.mean(axis=1), 2 * difference.std(axis=1, ddof=1) / np.sqrt(len(by_seed))
    for row, name in enumerate(METHODS):
        cells = []
        for unit, size in product(range(len(units)), range(len(ADDED_SIZES))):
            value, spread = mean[size, row, unit], error[size, row, unit]
            shown = f"{value:.3f} ± {spread:.3f}" if spread else f"{value:.3f}"
            cells.append("–" if np.isnan(value) else shown.replace("0.", "."))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def added(options: Any) -> None:
    """Print what the posterior adds over the mean, regressions and its own mode."""
    draws = len(DRAWS)
    print_added("RewardBench", [reward_halves()] * draws, True)
    print_added("LLMBar: pairs that mislead", [reward_halves(hard_pairs())] * draws, True)
    for title, misleading in (("simulated", 0), ("simulated, three of nine mislead", 3)):
        by_seed = []
        for seed in range(2 * draws):
            lists = simulated_pairs(1200, seed, misleading=misleading)
            lists = lists.with_extras(mqm=read_column(lists, "gain"))
            by_seed.append([Half(title, lists[:200], lists[200:])])
        print_added(f"judges, {title}", by_seed, True)
    print_added("WMT 2023, six features", [read_halves(WMT23, SIX)] * options.draws, False)
    print_added("WMT 2023, 19 features", [read_halves(WMT23)] * options.draws, False)
    for file in TEXTS:
        halves = read_halves((file,), (*COMPUTED, "chars"))
        print_added(f"{file}, features of texts", [halves] * options.draws, False)


if __name__ == "__main__":
    run_tables(
        __doc__, (llmbar, rewardbench, metrics, six, texts, left_out, added), draws=3, calls=100
    )

"""Times of `adapt` by the number of features, and of two regressions of scikit-learn.

    python benchmarks/bench_width.py [--features 10 50 ...] [--lists 50] [--candidates 10]

Lists are random; five features have an effect on the gains. Printed are CPU seconds: of `adapt`
with its check and the comparison with baselines, in its first call, which compiles, and in a second
one; of `RidgeCV` of the gains, with 13 penalties, and of `LogisticRegressionCV` of the differences
between the best candidate and the others, with 10 penalties. Both leave out a tenth of the lists at
a time. Features and gains have their means of each list subtracted. Then the ratios of the second
call of `adapt` to both, and the sampler with the number of directions in which it sampled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import Table, best_time, run_tables
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GroupKFold

import bpa_ppl as bpa
from bpa_ppl.lists.nbest import centre
from bpa_ppl.weight_draws import DIRECTIONS

FEATURES = (10, 50, 100, 500, 1000, 2000, 5000)
_FOLDS = 10
_INFORMATIVE = 5


def random_lists(count: int, size: int, features: int) -> tuple[bpa.NBest, np.ndarray]:
    """Return lists, and the gains of their candidates."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(count, size, features))
    gains = table[..., :_INFORMATIVE].sum(axis=2) + rng.gumbel(size=(count, size))
    texts = [[f"{s} {c}" for c in range(size)] for s in range(count)]
    names = [f"f{k}" for k in range(features)]
    lists = bpa.from_lists(texts, table, names, extras={"quality": gains.tolist()})
    return lists, gains.reshape(-1)


def fit_ridge(lists: bpa.NBest, gains: np.ndarray) -> Any:
    """Return the ridge regression of gains."""
    groups = np.repeat(np.arange(len(lists)), lists.sizes)
    folds = list(GroupKFold(_FOLDS).split(groups, groups=groups))
    model = RidgeCV(np.logspace(5, -1, 13), fit_intercept=False, cv=folds)
    return model.fit(centre(lists.features, lists.sizes), centre(gains, lists.sizes))


def fit_logistic(lists: bpa.NBest, gains: np.ndarray) -> Any:
    """Return the logistic regression of the best candidates, with each answer in both orders."""
    features, rows, groups = centre(lists.features, lists.sizes), [], []
    for s in range(len(lists)):
        of_list = np.arange(*lists.rows(s).indices(len(features)))
        best = of_list[np.argmax(gains[of_list])]
        rows.append(features[best] - features[of_list[of_list != best]])
        groups += [s] * (len(of_list) - 1)
    x, group = np.concatenate(rows), np.tile(groups, 2)
    x, y = np.concatenate([x, -x]), np.repeat([1, 0], len(x))
    folds = list(GroupKFold(_FOLDS).split(x, groups=group))
    options: dict[str, Any] = {"l1_ratios": (0,), "use_legacy_attributes": False}
    options["scoring"] = "neg_log_loss"
    model = LogisticRegressionCV(cv=folds, fit_intercept=False, max_iter=1000, **options)
    return model.fit(x, y)


def widths(options: Any) -> None:
    """Print the seconds by the number of features."""
    columns = "first", "adapt", "RidgeCV", "LogisticCV", "/ RidgeCV", "/ LogisticCV", "sampler"
    table = Table(f"features of {options.lists} lists of {options.candidates}", *columns)
    for features in options.features:
        lists, gains = random_lists(options.lists, options.candidates, features)
        first, second = (
            best_time(lambda seed=seed, lists=lists: bpa.adapt(lists, gain="quality", seed=seed))
            for seed in (0, 1)
        )
        draws = bpa.as_weight_draws(second.result)
        ridge = best_time(lambda lists=lists, gains=gains: fit_ridge(lists, gains)).cpu
        logistic = best_time(lambda lists=lists, gains=gains: fit_logistic(lists, gains)).cpu
        sampler = draws.record.figures.chosen or ""
        if DIRECTIONS in draws.draws.values:
            sampler += f", {draws.draws.values[DIRECTIONS].shape[-1]} directions"
        sampler += ", passed" if bpa.check(draws) else ", FAILED"
        ratios = second.cpu / ridge, second.cpu / logistic
        table.row(str(features), first.cpu, second.cpu, ridge, logistic, *ratios, sampler)


if __name__ == "__main__":
    run_tables(__doc__, (widths,), needs_data=False, features=FEATURES, lists=50, candidates=10)

"""Changed units, signs and constant columns are named, and unchanged lists are not."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.posteriors import name_weights, record_of
from support.raising import capture_notes

from bpa_ppl import BpaWarning, Draws, NBest, Reranker, from_lists, rerank
from bpa_ppl.decoding.scales import ScaleGuard, feature_scales

JUDGES = tuple(f"judge{k}" for k in range(9))
#: How well each judge sees the quality, and its unit.
SKILL, UNIT = np.linspace(0.5, 2.0, 9), np.logspace(-2, 3, 9)


def judged(count: int, rng: np.random.Generator, size: int = 2) -> NBest:
    """Return lists as of RewardBench: two answers, scored by judges of unequal worth.

    All values of judge3 are positive, those of judge4 log-probabilities.
    """
    quality = rng.normal(size=(count, size, 1)) * rng.gamma(2.0, size=(count, 1, 1))
    noise = rng.standard_t(4, size=(count, size, 9))
    level = rng.normal(size=(count, 1, 9))
    features = quality * SKILL + noise + level
    features[..., 3] += 100
    features[..., 4] -= 50
    return from_lists([[f"text {i}" for i in range(size)]] * count, features * UNIT, JUDGES)


def posterior(lists: NBest) -> Draws:
    """Return a posterior that was adapted to lists, as far as its record of features."""
    weights = SKILL / UNIT
    record = record_of(feature_scales=feature_scales(lists, weights))
    return name_weights(weights[None, None], lists.feature_names, kind="point", record=record)


def changed(lists: NBest, judge: int, column: object) -> NBest:
    """Return lists with another column of a judge."""
    features = lists.features.copy()
    features[:, judge] = column
    return replace(lists, features=features)


def warnings_of(reranker: Reranker, *parts: NBest) -> list[str]:
    """Choose from lists, and return what is warned about."""
    with capture_notes() as notes:
        for lists in parts:
            reranker(lists)
    return [note.message for note in notes]


@pytest.mark.parametrize("size", [2, 12])
@pytest.mark.parametrize("count", [10, 80])
@pytest.mark.parametrize(
    ("judge", "change", "words"),
    [
        (0, lambda x: 100 * x, "judge0 varies "),  # a share as percent
        (8, lambda x: x / 100, "judge8 varies "),
        (3, lambda x: -x, "all values of judge3 in the first"),
        (4, lambda x: np.exp(x / UNIT[4]), "all values of judge4 in the first"),  # probabilities
        (5, lambda x: 0 * x + 7.5, "judge5 is constant within each of the first"),
    ],
)
def test_a_changed_judge_is_named_alone(
    size: int, count: int, judge: int, change: object, words: str
) -> None:
    rng = np.random.default_rng(judge)
    draws = posterior(judged(60, rng, size))
    new = judged(count, rng, size)
    new = changed(new, judge, change(new.features[:, judge]))  # type: ignore[operator]
    for parts in ([new], [*new.chunks(1)]):  # together, and one by one
        (message,) = warnings_of(Reranker(draws, unchecked=True), *parts)
        assert message.startswith(words)
    if "varies" in words:
        times = float(message.split("varies ")[1].split(" times")[0].replace(",", ""))
        assert 0.3 < times / (100 if judge == 0 else 0.01) < 3
    with capture_notes() as notes:
        rerank(new, draws, unchecked=True)
    assert [note.message.split(" in the first")[0] for note in notes]


@pytest.mark.parametrize("size", [2, 8])
def test_unchanged_lists_are_seldom_warned_about(size: int) -> None:
    """The level is at most 1 % for all features together."""
    rng, runs, alarms = np.random.default_rng(size), 150, 0
    for _ in range(runs):
        adapted, new = judged(int(rng.choice([10, 20, 50])), rng, size), judged(12, rng, size)
        guard = ScaleGuard(feature_scales(adapted, SKILL / UNIT), JUDGES)
        with capture_notes() as notes:
            guard.add(JUDGES, new.features, new.sizes)
        alarms += bool(notes)
    assert alarms <= stats.binom.ppf(0.999, runs, 0.01)


def test_only_the_first_lists_are_compared() -> None:
    rng = np.random.default_rng(0)
    draws, good = posterior(judged(60, rng)), judged(20, rng)
    bad = changed(good, 2, 50 * good.features[:, 2])
    reranker = Reranker(draws, unchecked=True)
    assert warnings_of(reranker, bad[:9]) == []
    assert len(warnings_of(reranker, bad[9:10])) == 1
    assert warnings_of(reranker, bad, bad) == []
    reranker = Reranker(draws, unchecked=True)
    assert warnings_of(reranker, good[:10], bad) == []
    unrecorded = name_weights(np.ones((1, 1, 9)), JUDGES, kind="point")
    assert warnings_of(Reranker(unrecorded, unchecked=True), bad) == []
    single = from_lists([["a"]] * 20, bad.features[::2][:, None], JUDGES)
    assert warnings_of(Reranker(draws, unchecked=True), single) == []


def test_zeros_have_no_sign() -> None:
    """Counts of errors, and their negatives: most lists have some without any."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (60, 3, 1)).astype(np.float64)
    lists = from_lists([list("abc")] * 60, counts, ["errors"])
    scales = feature_scales(lists[:40], [1.0])
    assert scales["errors"].sign == 1
    for factor, warned in ((-1, 1), (1, 0)):
        guard = ScaleGuard(scales, ["errors"])
        with capture_notes() as notes:
            for one in lists[40:].chunks(1):
                guard.add(("errors",), factor * one.features, one.sizes)
        assert len(notes) == warned


def test_few_lists_and_rare_features_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    few = feature_scales(judged(4, rng), SKILL)
    assert [scale.deviation for scale in few.values()] == [0.0] * 9
    lists = judged(40, rng)
    rare = np.where(np.arange(80) < 20, lists.features[:, 0], 0.0)  # varies in a quarter
    scales = feature_scales(changed(lists, 0, np.abs(rare)), SKILL)
    assert (scales["judge0"].deviation, scales["judge0"].sign) == (0.0, 0)
    guard = ScaleGuard(scales, ["judge0"])
    with capture_notes() as notes:
        guard.add(("judge0",), np.zeros((20, 1)), np.full(10, 2))
    assert not notes


def test_a_feature_may_be_absent_and_columns_have_any_order() -> None:
    rng = np.random.default_rng(0)
    reranker = Reranker(posterior(judged(60, rng)), unchecked=True, without=["judge0"])
    new = judged(128, rng).without("judge0")
    new = changed(new, 0, 100 * new.features[:, 0])
    new = replace(new, features=new.features[:, ::-1], feature_names=new.feature_names[::-1])
    messages = warnings_of(reranker, new)
    assert [message.split()[0] for message in messages if "varies" in message] == ["judge1"]


def test_threads_and_processes_warn_too() -> None:
    rng = np.random.default_rng(0)
    reranker = Reranker(posterior(judged(60, rng)), unchecked=True)
    new = judged(40, rng)
    new = changed(new, 1, 100 * new.features[:, 1])

    def choose(s: int) -> int:
        return reranker.choose(new.texts(s), new.features[new.rows(s)]).position

    with pytest.warns(BpaWarning) as warned, ThreadPoolExecutor(8) as threads:
        chosen = list(threads.map(choose, range(len(new))))
    assert chosen == reranker(new).choice.tolist()
    assert {str(one.message).split()[0] for one in warned} == {"judge1"}
    (message,) = warnings_of(pickle.loads(pickle.dumps(reranker)), new)
    assert message.startswith("judge1 varies")


def test_the_record_is_the_median_of_deviations_as_of_numpy() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(size, 2)) + 1e4 for size in (5, 2, 3, 1, 7, 4, 2)]
    tables[0][:, 1] = 0.1  # constant, whose mean has an error of rounding
    lists = from_lists([[f"{i}" for i in range(len(of))] for of in tables], tables, ["a", "b"])
    scales = feature_scales(lists, [1.0, 1.0])
    for k, name in enumerate("ab"):
        deviations = [of[:, k].std() for of in tables if len(of) > 1 and np.ptp(of[:, k])]
        assert scales[name].deviation == pytest.approx(np.median(deviations))
        assert scales[name].sign == 1

"""The table of simple ways, for lists with gains and with preferences: one contract.

Each row has the mean of plain loops over the lists, weighted as the judgements are, and the paired
difference of the adapted weights, whose choice of a list is that of the posterior without it. A
table is recorded and read back as it was. Too few lists, and others than the draws', are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import binomtest, norm, sem, ttest_rel
from support import gained_lists as gained
from support import preferred_lists as preferred
from support.gained_lists import SIMPLE
from support.posteriors import recorded_comparison, with_parts, with_record
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl.evaluation.compare_ways import BaselineComparison, read_comparison, to_record
from bpa_ppl.evaluation.simple_ways import BaselineRow, Way

#: Loops over lists, and draws.
Case = Callable[[], tuple[Any, bpa.Draws]]


def of_gains(seed: int, missing: bool) -> tuple[gained.GainLoops, bpa.Draws]:
    pool = gained.lists(seed, missing=missing)
    return gained.GainLoops(pool), gained.posterior(pool)


def of_preferences(seed: int) -> tuple[preferred.AnswerLoops, bpa.Draws]:
    pool = preferred.mixed(seed)
    return preferred.AnswerLoops(pool), preferred.posterior(pool)


CASES: dict[str, Case] = {
    "gains": lambda: of_gains(0, missing=False),
    "some gains": lambda: of_gains(1, missing=True),
    "preferences": lambda: of_preferences(0),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_case
def test_each_row_is_that_of_plain_loops(case: Case) -> None:
    loops, draws = case()
    found, expected, weight = (
        bpa.compare_baselines(loops.pool, draws),
        loops.rows(draws),
        loops.weight,
    )
    adapted = expected[Way.ADAPTED]
    assert found.evaluation == "leave-one-out"
    for name, gains in expected.items():
        row = found.row(name)
        assert row is not None
        assert row.lists == len(gains)
        assert row.gain == pytest.approx(np.average(gains, weights=weight))
        if name != Way.ADAPTED:
            check_difference(row, adapted - gains, weight)
    simple = [row for row in found.rows if row.kind == "baseline"]
    assert found.baseline == max(simple, key=lambda row: row.gain)


def check_difference(row: BaselineRow, differences: np.ndarray, weight: np.ndarray) -> None:
    """Compare with the paired interval of SciPy, where all lists count the same."""
    mean = np.average(differences, weights=weight)
    assert row.difference == pytest.approx(mean, abs=1e-12)
    if np.ptp(differences) == 0:
        assert math.isnan(row.low)
    elif np.ptp(weight) == 0:
        interval = ttest_rel(differences, np.zeros(len(differences))).confidence_interval(0.95)
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high))
    else:
        assert row.low < row.difference < row.high


def test_gains_have_rows_of_single_features_shares_and_best_choices() -> None:
    loops, draws = of_gains(1, missing=True)
    found = bpa.compare_baselines(loops.pool, draws)
    named = {row.name for row in found.rows if row.kind != "feature"}
    assert named == {*SIMPLE, Way.ADAPTED, Way.RANDOM, Way.BEST}
    random, best = (found.row(name).gain for name in (Way.RANDOM, Way.BEST))
    for row in found.rows:
        assert row.share == pytest.approx((row.gain - random) / (best - random))
    single = {row.name: row.gain for row in found.rows if row.kind == "feature"}
    assert single == pytest.approx({name: np.mean(g) for name, g in loops.single().items()})
    p = np.concatenate(gained.left_out(loops.pool, draws))
    highest = [(p[rows].tolist(), [float(x == max(g)) for x in g]) for _, g, rows in loops.lists]
    right = round(sum(gained.shared(scores, is_best) for scores, is_best in highest))
    assert found.best == (right, len(loops.lists))
    interval = binomtest(right, len(loops.lists)).proportion_ci(0.95, "wilson")
    shown = f"{100 * interval.low:.0f}% to {100 * interval.high:.0f}%"
    assert found.messages[-1].message.endswith(f"(leave-one-out, 95% interval {shown})")
    assert found.unjudged == int(np.isnan(loops.pool.extras["mqm"]).sum())


def test_preferences_have_a_log_loss() -> None:
    loops, draws = of_preferences(1)
    found = bpa.compare_baselines(loops.pool, draws)
    assert (found.unit, found.unjudged, len(loops.lists)) == ("accuracy", 2, 18)
    loss = np.average(loops.adapted_loss(draws), weights=loops.weight)
    assert found.row(Way.ADAPTED).log_loss == pytest.approx(loss, rel=1e-6)


def test_intervals_of_accuracies_count_a_few_lists_more_that_disagree() -> None:
    """Four for an accuracy (Agresti & Coull 1998), two for a difference (Agresti & Caffo 2000)."""
    pool = preferred.judged(3, 20).with_sentence_extras(ties=[None] * 20, rankings=[None] * 20)
    loops, draws = preferred.AnswerLoops(pool), preferred.posterior(pool)
    found, expected = bpa.compare_baselines(pool, draws), loops.rows(draws)
    row, adapted = found.row(Way.MEAN), expected[Way.ADAPTED]
    differences = adapted - expected[Way.MEAN]
    for ends, values, added in (
        ((row.low, row.high), differences, [-1, 1]),
        ((row.gain_low, row.gain_high), expected[Way.MEAN], [0, 0, 1, 1]),
    ):
        more = np.append(values, added)
        assert ends == pytest.approx(norm.interval(0.95, more.mean(), sem(more)))


@each_case
def test_a_record_is_read_back_as_it_was(case: Case) -> None:
    loops, draws = case()
    comparison = bpa.compare_baselines(loops.pool, draws)
    draws = with_record(draws, comparison=to_record(comparison))
    record = json.loads(json.dumps(draws.adaptation.comparison, allow_nan=False))
    again = msgspec.convert(record, BaselineComparison)
    assert str(again) == str(read_comparison(draws.adaptation)) == str(comparison)
    assert with_record(draws, comparison=to_record(again)).record == draws.record
    earlier = {name: value for name, value in record.items() if name != "best"}
    assert msgspec.convert(earlier, BaselineComparison) == replace(again, best=None)
    with raises(bpa.DataError, "damaged"):
        read_comparison(with_record(draws, comparison={"rows": 3}).adaptation)


@each_case
def test_too_few_lists_and_those_of_other_sentences_are_refused(case: Case) -> None:
    loops, draws = case()
    with raises(bpa.DataError, "no-data"):
        bpa.compare_baselines(loops.pool[:1], gain="mqm" if "mqm" in loops.pool.extras else None)
    draws = with_record(draws, data={"texts": "recorded by adapt"})
    expected = bpa.compare_baselines(loops.pool, draws).row("adapted weights")
    assert expected is not None
    again = bpa.compare_baselines(loops.pool[::-1], draws).row("adapted weights")
    assert again is not None
    assert again.gain == pytest.approx(expected.gain)  # they are found by their ids
    without = with_parts(draws, log_likelihood={})  # compared in-sample
    names = [f"d{k}" for k in loops.pool.sentence_ids]
    named = with_parts(draws, coords={"sentence": np.array([f"d{k}" for k in draws.sentence_ids])})
    others = replace(loops.pool, sentence_ids=loops.pool.sentence_ids + 500)
    renamed = loops.pool.with_sentence_extras(id=[*names[1:], "other"])
    bpa.compare_baselines(loops.pool.with_sentence_extras(id=names), named)
    wrong = [(others, draws), (others[:-1], draws), (others, without), (renamed, named)]
    for lists, posterior in wrong:
        with raises(bpa.DataError, "mismatch", parameter="lists"):
            bpa.compare_baselines(lists, posterior)
    for choice in ([0], np.full(len(others), 99), np.full(len(others), -1), [0.5] * len(others)):
        with raises(bpa.UsageError, "wrong-type", parameter="choice"):
            bpa.compare_baselines(others, draws, choice=choice)


def test_one_list_is_not_compared_by_adapt() -> None:
    with pytest.warns(bpa.BpaWarning, match="one judged list teaches little"):
        posterior = bpa.adapt(gained.lists(1)[:1], gain="mqm", sampler="map")
    assert recorded_comparison(posterior) is None

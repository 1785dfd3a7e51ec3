"""Drift: changed units, signs and constant columns are named, and unchanged lists are not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.posteriors import Record, name_weights
from support.raising import capture_notes

from bpa_ppl import BpaWarning, Draws, NBest, Reranker, concatenate, from_lists
from bpa_ppl.decoding.drift import DriftMonitor, _Lists, feature_scales
from bpa_ppl.decoding.improvement import describe_improvement, evaluate_improvement

JUDGES = tuple(f"judge{k}" for k in range(9))
#: How well each judge sees the quality, and its unit.
SKILL, UNIT = np.linspace(0.5, 2.0, 9), np.logspace(-2, 3, 9)


def judged(count: int, rng: np.random.Generator, size: int = 2) -> NBest:
    """Return lists as of RewardBench: two answers, scored by judges of unequal worth."""
    quality = rng.normal(size=(count, size, 1)) * rng.gamma(2.0, size=(count, 1, 1))
    noise = rng.standard_t(4, size=(count, size, 9))
    level = rng.normal(size=(count, 1, 9))
    features = (quality * SKILL + noise + level) * UNIT
    return from_lists([[f"text {i}" for i in range(size)]] * count, features, JUDGES)


def posterior(lists: NBest, weights: np.ndarray = SKILL / UNIT) -> Draws:
    """Return a posterior that was adapted to lists, as far as drift is concerned."""
    record = Record(feature_scales=feature_scales(lists, weights))
    return name_weights(weights[None, None], lists.feature_names, kind="point", record=record)


def changed(lists: NBest, judge: int, factor: float) -> NBest:
    """Return lists with the column of a judge times a factor."""
    factors = np.where(np.arange(len(lists.feature_names)) == judge, factor, 1.0)
    return replace(lists, features=lists.features * factors.astype(np.float32))


def warnings_of(reranker: Reranker, *parts: NBest) -> list[str]:
    """Choose from lists, and return what is warned about."""
    with capture_notes() as notes:
        for lists in parts:
            reranker(lists)
    return [note.message for note in notes]


TURNED, CONSTANT = "turned against the other features", "is constant within each of the last"


@pytest.mark.parametrize("judge", [0, 4, 8])
@pytest.mark.parametrize(
    ("factor", "words"),
    [(5.0, "varies "), (20.0, "varies "), (0.05, "varies "), (-1.0, TURNED), (0.0, CONSTANT)],
)
def test_a_changed_judge_is_named_alone(judge: int, factor: float, words: str) -> None:
    rng = np.random.default_rng(judge)
    reranker = Reranker(posterior(judged(60, rng)), unchecked=True)
    messages = warnings_of(reranker, changed(judged(200, rng), judge, factor))
    assert messages
    assert all(words in message for message in messages)
    named = {name for name in JUDGES for message in messages if name in message}
    assert named == {JUDGES[judge]}
    if words == "varies ":
        size = float(messages[0].split("varies ")[1].split(" times")[0])
        assert 0.5 < size / factor < 2


def test_a_smaller_unit_is_found_where_the_spread_differs_much_between_lists() -> None:
    """The differences of pairs over 4 are still in the range of those before."""
    rng = np.random.default_rng(1)
    before, new = (
        rng.normal(size=(count, 2, 2)) * np.exp(rng.normal(size=(count, 1, 1)))
        for count in (50, 85)
    )
    lists = from_lists([["a", "b"]] * 50, list(before), ["lm", "tm"])
    weights = {"lm": 1.0, "tm": 1.0}
    monitor = DriftMonitor(feature_scales(lists, [1.0, 1.0]), weights, weights)
    with capture_notes() as notes:
        for table in new / [4, 1]:
            monitor.add_one(("lm", "tm"), table)
    (note,) = notes  # after 1, 5 and 21 lists the others were compared
    assert note.message.startswith("lm varies")
    assert "within the last 64 lists" in note.message


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 8])
def test_unchanged_lists_are_seldom_warned_about(size: int) -> None:
    """The level is at most 1 % for all features and all comparisons of 256 lists together."""
    rng, runs, alarms = np.random.default_rng(size), 120, 0
    for _ in range(runs):
        adapted = judged(int(rng.choice([10, 20, 50])), rng, size)
        scales = posterior(adapted).record.feature_scales
        monitor = DriftMonitor(scales, dict(zip(JUDGES, SKILL / UNIT, strict=True)), JUDGES)
        new = judged(256, rng, size)
        with capture_notes() as notes:
            for table in np.split(new.features, 256):
                monitor.add_one(JUDGES, table)
        alarms += bool(notes)
    assert alarms <= stats.binom.ppf(0.999, runs, 0.01)


def test_a_single_list_in_another_unit_is_named() -> None:
    rng = np.random.default_rng(0)
    reranker = Reranker(posterior(judged(100, rng, 12)), unchecked=True)
    new = changed(judged(1, rng, 12), 3, 100.0)
    assert reranker.drift == ()
    with capture_notes() as notes:
        reranker.choose(new.texts(0), new.features)
    assert "judge3 varies" in notes[0].message
    assert reranker.drift == (notes[0].message,)
    constant = changed(judged(1, rng, 12), 3, 0.0)
    assert not warnings_of(Reranker(reranker.draws, unchecked=True), constant)
    unrecorded = name_weights(np.ones((1, 1, 9)), JUDGES, kind="point")
    assert not warnings_of(Reranker(unrecorded, unchecked=True), new)


def test_of_two_features_that_disagree_both_are_named() -> None:
    rng = np.random.default_rng(0)
    two = [judged(count, rng, 6).without(*JUDGES[:7]) for count in (40, 64)]
    reranker = Reranker(posterior(two[0], SKILL[7:] / UNIT[7:]), unchecked=True)
    messages = warnings_of(reranker, changed(two[1], 1, -1.0))
    assert [message.split(" has turned")[0] for message in messages] == ["judge7", "judge8"]
    assert "mean correlation -0." in messages[0]


def test_each_change_is_warned_about_once_and_ends() -> None:
    rng = np.random.default_rng(0)
    reranker = Reranker(posterior(judged(60, rng)), unchecked=True)
    bad = [changed(judged(64, rng), 2, 50.0) for _ in range(6)]
    assert len(warnings_of(reranker, *bad)) == 1
    assert len(reranker.drift) == 1
    other = [changed(changed(judged(64, rng), 2, 50.0), 5, 0.0) for _ in range(3)]
    (message,) = warnings_of(reranker, *other)
    assert "judge5" in message
    assert "judge2" not in message
    assert len(reranker.drift) == 2
    assert not warnings_of(reranker, *(judged(64, rng) for _ in range(4)))
    assert reranker.drift == ()


def test_a_sign_is_warned_about_once_however_it_is_found() -> None:
    """First against the other features, then of all values."""
    rng = np.random.default_rng(0)

    def positive(count: int) -> NBest:
        lists = judged(count, rng)
        return replace(lists, features=lists.features + np.float32(100) * (np.arange(9) == 3))

    reranker = Reranker(posterior(positive(60)), unchecked=True)
    mixed = concatenate([positive(1), changed(positive(63), 3, -1.0)], renumber=True)
    (message,) = warnings_of(reranker, mixed)
    assert message.startswith("judge3 has turned against")
    assert "judge3" in reranker.drift[0]
    assert not warnings_of(reranker, *(changed(positive(64), 3, -1.0) for _ in range(3)))
    other = Reranker(reranker.draws, unchecked=True)
    (message,) = warnings_of(other, changed(positive(64), 3, -1.0))
    assert message.startswith("all values of judge3")


def test_a_feature_may_be_absent_and_columns_have_any_order() -> None:
    rng = np.random.default_rng(0)
    draws = posterior(judged(60, rng))
    reranker = Reranker(draws, unchecked=True, without=["judge0"])
    new = judged(128, rng).without("judge0")
    new = replace(new, features=new.features[:, ::-1], feature_names=new.feature_names[::-1])
    with pytest.warns(BpaWarning, match="left out"):
        reranker(new)
    assert reranker.drift == ()
    messages = warnings_of(reranker, changed(new, 7, 100.0))
    assert "judge1 varies" in messages[-1]


def test_tables_of_the_caller_are_copied() -> None:
    rng = np.random.default_rng(0)
    reranker, buffer = Reranker(posterior(judged(60, rng)), unchecked=True), None
    with capture_notes() as notes:
        for one in judged(100, rng).chunks(1):
            buffer = one.features.copy()
            reranker.choose(one.texts(0), buffer)
            buffer *= 1e6
    assert not notes


def test_the_report_names_a_change() -> None:
    rng = np.random.default_rng(0)
    draws = posterior(judged(60, rng))
    with pytest.warns(BpaWarning, match="judge4"):
        result = evaluate_improvement(changed(judged(80, rng), 4, 20.0), draws)
    (message,) = result.drift
    assert "judge4 varies" in message
    assert f"{message}." in describe_improvement(result)[0].advice[0]
    assert not evaluate_improvement(judged(80, rng), draws).drift


def test_the_service_shows_and_logs_a_change(caplog: pytest.LogCaptureFixture) -> None:
    testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")
    application = pytest.importorskip("bpa_ppl.extras.judging.serving.app").application
    rng = np.random.default_rng(0)
    draws = posterior(judged(60, rng))
    client = testclient.TestClient(
        application(lambda: Reranker(draws, unchecked=True)), "http://localhost"
    )
    assert client.get("/model").json()["drift"] == []
    new = changed(judged(80, rng), 1, 20.0)
    with caplog.at_level("INFO", logger="bpa_ppl.serving"):
        for one in new.chunks(4):
            rows = [
                {"text": one.text(row), **dict(zip(JUDGES, values, strict=True))}
                for row, values in enumerate(one.features.tolist())
            ]
            lists = [{"candidates": rows[n : n + 2]} for n in range(0, len(rows), 2)]
            assert client.post("/rerank", json=lists).is_success
    (shown,) = client.get("/model").json()["drift"]
    assert "judge1 varies" in shown
    events = [json.loads(record.message) for record in caplog.records]
    assert [event["changes"] for event in events if event["event"] == "drift"] == [[shown]]


def test_statistics_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([5, 2, 3])
    table, weights = rng.normal(size=(10, 3)) + 1e4, np.array([1.0, -2.0, 0.5])
    found = _Lists.of(table, sizes).agreement(weights)
    for s, rows in enumerate(np.split(table, np.cumsum(sizes)[:-1])):
        for k in range(3):
            others = np.delete(rows, k, axis=1) @ np.delete(weights, k)
            assert found[s, k] == pytest.approx(np.corrcoef(rows[:, k], others)[0, 1])
    for size in (2, 3, 8, 50):  # deviations of lists of any size can be compared
        table = rng.normal(0, 3.0, (4000 * size, 1))
        median = np.median(_Lists.of(table, np.full(4000, size)).deviations)
        assert median == pytest.approx(3.0, rel=0.05)

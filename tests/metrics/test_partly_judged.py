"""Lists with missing judgements: oracles, gains and means, compared with loops."""

from __future__ import annotations

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import DataError, NBest, from_arrays, gains, oracles
from bpa_ppl.metrics.gains import count_statistics, score_choice
from bpa_ppl.metrics.oracles import headroom
from bpa_ppl.metrics.scoreboard import compare_choices

SENTENCES = 60


@pytest.fixture(scope="module")
def partial_lists() -> NBest:
    """Lists of one to six candidates, half of them judged with integers, so that many tie."""
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 7, SENTENCES)
    count = int(sizes.sum())
    mqm = np.where(rng.uniform(size=count) < 0.5, -rng.integers(0, 4, count), np.nan)
    return from_arrays(
        [f"candidate {k}" for k in range(count)],
        rng.normal(size=(count, 2)),
        ["lm", "length"],
        sizes,
        extras={"mqm": mqm, "by": [f"system {k % 3}" for k in range(count)]},
        references=[f"candidate {k}" for k in range(SENTENCES)],
    )


def judged_values(lists: NBest) -> list[list[tuple[int, float]]]:
    """Return position and judgement of the judged candidates of each list."""
    column = np.asarray(lists.extras["mqm"])
    rows = (column[lists.rows(s)] for s in range(len(lists)))
    return [[(k, v) for k, v in enumerate(row.tolist()) if not np.isnan(v)] for row in rows]


@pytest.mark.parametrize("sign", [1, -1])
def test_oracles_agree_with_loops(partial_lists: NBest, sign: int) -> None:
    scores = np.random.default_rng(1).normal(size=len(partial_lists.features))
    name = "mqm" if sign == 1 else "-mqm"
    result = oracles(partial_lists, name, preference=scores)
    for s, entries in enumerate(judged_values(partial_lists)):
        preference = scores[partial_lists.rows(s)]
        if len(entries) < 2:
            assert np.isnan(result.score[s])
            assert (result.tied[s], result.index[s]) == (0, np.argmax(preference))
            continue
        best = max(sign * value for _, value in entries)
        ties = [k for k, value in entries if sign * value == best]
        assert result.score[s] == sign * best
        assert result.tied[s] == len(ties)
        assert result.index[s] == max(ties, key=lambda k: preference[k])
    assert result.skipped == sum(len(v) < 2 for v in judged_values(partial_lists)) > 0


def test_headroom_uses_judged_candidates(partial_lists: NBest) -> None:
    scores = np.random.default_rng(2).normal(size=len(partial_lists.features))
    room = headroom(partial_lists, scores, "mqm")
    lists = [(s, v) for s, v in enumerate(judged_values(partial_lists)) if len(v) > 1]
    own = [scores[partial_lists.rows(s)] for s, _ in lists]
    first = [max(v, key=lambda kv: o[kv[0]])[1] for o, (_, v) in zip(own, lists, strict=True)]
    values = [[value for _, value in entries] for _, entries in lists]
    assert room.first_best.value == pytest.approx(np.mean(first))
    assert room.oracle.value == pytest.approx(np.mean(list(map(max, values))))
    assert room.anti_oracle.value == pytest.approx(np.mean(list(map(min, values))))
    assert len(room.oracles) == SENTENCES
    printed = str(room)
    assert f"{SENTENCES - len(lists)} lists left out" in printed
    assert f" of {len(lists)} oracles tied" in printed


def test_mean_is_over_judged_choices(partial_lists: NBest) -> None:
    rng = np.random.default_rng(3)
    choices = [rng.integers(0, partial_lists.sizes) for _ in range(2)]
    rows = [partial_lists.offsets[:-1] + choice for choice in choices]
    chosen = [np.asarray(partial_lists.extras["mqm"])[row] for row in rows]
    counts = [int(np.isfinite(values).sum()) for values in chosen]
    score = score_choice(partial_lists, choices[0], "mqm")
    assert score.value == pytest.approx(np.nanmean(chosen[0]))
    assert score.details == {"mqm.judged": counts[0]}
    total, judged = count_statistics(partial_lists, "mqm")[rows[0]].sum(axis=0)
    assert total / judged == score.value
    note = f"judged, {counts[0]} canonical and {counts[1]} adapted of 60"
    assert note in str(compare_choices(partial_lists, *choices, "mqm"))
    assert "judged" not in str(compare_choices(partial_lists, *choices, "lm"))


def test_choices_without_judgement_have_no_score(partial_lists: NBest) -> None:
    bare = partial_lists.with_extras(mqm=np.full(len(partial_lists.features), np.nan))
    assert np.isnan(score_choice(bare, np.zeros(len(bare), int), "mqm").value)
    with raises(DataError, "no-data", match="mqm"):
        headroom(bare, gain="mqm")


def test_missing_values_and_gains(partial_lists: NBest) -> None:
    column = np.asarray(partial_lists.extras["mqm"])
    np.testing.assert_array_equal(gains(partial_lists, "-mqm"), -column)
    missing = (None if k % 2 else "" for k in range(len(column)))
    mixed = [m if np.isnan(v) else v for v, m in zip(column, missing, strict=True)]
    np.testing.assert_array_equal(gains(partial_lists.with_extras(mqm=mixed), "mqm"), column)

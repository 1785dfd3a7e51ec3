"""Lists with missing judgements: oracles, gains and means, compared with loops."""

from __future__ import annotations

import numpy as np
import pytest

from bpa_ppl import DataError, NBest, gains, oracles
from bpa_ppl.quality import (
    Column,
    choice_score,
    column_of,
    compared,
    headroom,
    judged,
    only_judged,
    statistics,
)

SENTENCES = 60


@pytest.fixture(scope="module")
def partial_lists() -> NBest:
    """Lists of one to six candidates, half of them judged with integers, so that many tie."""
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 7, SENTENCES)
    count = int(sizes.sum())
    mqm = np.where(rng.uniform(size=count) < 0.5, -rng.integers(0, 4, count), np.nan)
    return NBest.from_arrays(
        [f"candidate {k}" for k in range(count)],
        rng.normal(size=(count, 2)),
        ["lm", "length"],
        sizes,
        extras={"mqm": mqm, "by": [f"system {k % 3}" for k in range(count)]},
        references=[f"candidate {k}" for k in range(SENTENCES)],
    )


def judged_values(lists: NBest, sentence: int) -> list[tuple[int, float]]:
    """Return position and judgement of the judged candidates of one list."""
    column = np.asarray(lists.extras["mqm"])[lists.rows(sentence)]
    return [(k, float(value)) for k, value in enumerate(column) if not np.isnan(value)]


def test_only_judged_keeps_judged_candidates(partial_lists: NBest) -> None:
    kept, rows = only_judged(partial_lists, "mqm")
    expected = [
        [int(partial_lists.offsets[s]) + k for k, _ in judged_values(partial_lists, s)]
        for s in range(len(partial_lists))
        if len(judged_values(partial_lists, s)) > 1
    ]
    assert rows.tolist() == [row for rows in expected for row in rows]
    assert kept.sizes.tolist() == list(map(len, expected))
    assert 0 < len(kept) < SENTENCES
    np.testing.assert_array_equal(kept.features, partial_lists.features[rows])
    assert [kept.text(k) for k in range(len(rows))] == [partial_lists.text(row) for row in rows]
    assert kept.extras["by"] == tuple(partial_lists.extras["by"][row] for row in rows)
    assert kept.references == tuple((f"candidate {s}",) for s in kept.sentence_ids)
    np.testing.assert_array_equal(
        judged(partial_lists, "mqm"), ~np.isnan(column_of(partial_lists, "mqm"))
    )
    whole, every = only_judged(partial_lists, "lm")
    assert (whole.sizes > 1).all() or whole is partial_lists
    assert len(every) == partial_lists.sizes[partial_lists.sizes > 1].sum()


@pytest.mark.parametrize("sign", [1, -1])
def test_oracles_agree_with_loops(partial_lists: NBest, sign: int) -> None:
    scores = np.random.default_rng(1).normal(size=len(partial_lists.features))
    name = "mqm" if sign == 1 else "-mqm"
    result = oracles(partial_lists, name, preference=scores)
    skipped = 0
    for s in range(len(partial_lists)):
        judged_entries = judged_values(partial_lists, s)
        of = scores[partial_lists.rows(s)]
        if len(judged_entries) < 2:
            skipped += 1
            assert np.isnan(result.score[s])
            assert (result.tied[s], result.index[s]) == (0, np.argmax(of))
            continue
        best = max(sign * value for _, value in judged_entries)
        ties = [k for k, value in judged_entries if sign * value == best]
        assert result.score[s] == sign * best
        assert result.tied[s] == len(ties)
        assert result.index[s] == max(ties, key=lambda k: of[k])
    assert result.skipped == skipped > 0


def test_headroom_uses_judged_candidates(partial_lists: NBest) -> None:
    scores = np.random.default_rng(2).normal(size=len(partial_lists.features))
    room = headroom(partial_lists, scores, "mqm")
    lists = [
        (s, judged_values(partial_lists, s))
        for s in range(len(partial_lists))
        if len(judged_values(partial_lists, s)) > 1
    ]
    first = [
        max(entries, key=lambda kv: scores[partial_lists.rows(s)][kv[0]])[1] for s, entries in lists
    ]
    assert room.first_best.value == pytest.approx(np.mean(first))
    best = [max(value for _, value in entries) for _, entries in lists]
    assert room.oracle.value == pytest.approx(np.mean(best))
    worst = [min(value for _, value in entries) for _, entries in lists]
    assert room.anti_oracle.value == pytest.approx(np.mean(worst))
    assert len(room.oracles) == SENTENCES
    left_out = SENTENCES - len(lists)
    assert f"{left_out} lists left out: fewer than two candidates are judged" in str(room)
    assert f" of {len(lists)} oracles tied" in str(room)


def test_mean_is_over_judged_choices(partial_lists: NBest) -> None:
    rng = np.random.default_rng(3)
    choice, other = (rng.integers(0, partial_lists.sizes) for _ in range(2))
    column = np.asarray(partial_lists.extras["mqm"])
    chosen = column[partial_lists.offsets[:-1] + choice]
    score = choice_score(partial_lists, choice, "mqm")
    judged_count = int((~np.isnan(chosen)).sum())
    assert score.value == pytest.approx(np.nanmean(chosen))
    assert score.details == {"mqm.judged": judged_count}
    assert (
        statistics(partial_lists, "mqm").corpus(partial_lists.offsets[:-1] + choice) == score.value
    )
    board = compared(partial_lists, choice, other, "mqm")
    other_count = int((~np.isnan(column[partial_lists.offsets[:-1] + other])).sum())
    assert (
        f"mqm: means of the choices that are judged, {judged_count} canonical and "
        f"{other_count} adapted of 60" in str(board)
    )
    assert "means of the choices" not in str(compared(partial_lists, choice, other, "lm"))


def test_gains_without_judgement_are_nan(partial_lists: NBest) -> None:
    np.testing.assert_array_equal(gains(partial_lists, "mqm"), column_of(partial_lists, "mqm"))
    np.testing.assert_array_equal(gains(partial_lists, "-mqm"), -column_of(partial_lists, "mqm"))


def test_choices_without_judgement_have_no_score(partial_lists: NBest) -> None:
    bare = partial_lists.with_extras(mqm=np.full(len(partial_lists.features), np.nan))
    assert np.isnan(choice_score(bare, np.zeros(len(bare), int), "mqm").value)
    kept, rows = only_judged(bare, "mqm")
    assert (len(kept), len(rows)) == (0, 0)
    with pytest.raises(DataError, match="no list has two candidates with a value of mqm: judge"):
        headroom(bare, metric="mqm")


def test_error_names_sentence_without_references(partial_lists: NBest) -> None:
    references = [() if s == 7 else refs for s, refs in enumerate(partial_lists.references or ())]
    with pytest.raises(DataError, match="sentence 7 has no reference: give at least one"):
        oracles(partial_lists.with_references(references), "ter")


def test_none_and_empty_text_are_missing_values(partial_lists: NBest) -> None:
    column = np.asarray(partial_lists.extras["mqm"])
    given = [
        None if np.isnan(v) and k % 2 else "" if np.isnan(v) else v for k, v in enumerate(column)
    ]
    lists = partial_lists.with_extras(mqm=given)
    np.testing.assert_array_equal(column_of(lists, "mqm"), column)
    assert (
        oracles(lists, Column(column="mqm")).index.tolist()
        == oracles(partial_lists, "mqm").index.tolist()
    )

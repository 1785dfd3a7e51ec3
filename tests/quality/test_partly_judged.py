"""Lists of which some candidates have no judgement: oracles, gains and means, by plain loops."""

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
def partly() -> NBest:
    """Lists of one to six candidates, half of which are judged, in whole numbers: many tie."""
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


def values(lists: NBest, sentence: int) -> list[tuple[int, float]]:
    """Return position and judgement of the judged candidates of one list."""
    column = np.asarray(lists.extras["mqm"])[lists.rows(sentence)]
    return [(k, float(value)) for k, value in enumerate(column) if not np.isnan(value)]


def test_only_judged_candidates_are_left(partly: NBest) -> None:
    kept, rows = only_judged(partly, "mqm")
    expected = [
        [int(partly.offsets[s]) + k for k, _ in values(partly, s)]
        for s in range(len(partly))
        if len(values(partly, s)) > 1
    ]
    assert rows.tolist() == [row for rows in expected for row in rows]
    assert kept.sizes.tolist() == list(map(len, expected))
    assert 0 < len(kept) < SENTENCES
    np.testing.assert_array_equal(kept.features, partly.features[rows])
    assert [kept.text(k) for k in range(len(rows))] == [partly.text(row) for row in rows]
    assert kept.extras["by"] == tuple(partly.extras["by"][row] for row in rows)
    assert kept.references == tuple((f"candidate {s}",) for s in kept.sentence_ids)
    np.testing.assert_array_equal(judged(partly, "mqm"), ~np.isnan(column_of(partly, "mqm")))
    whole, every = only_judged(partly, "lm")
    assert (whole.sizes > 1).all() or whole is partly
    assert len(every) == partly.sizes[partly.sizes > 1].sum()


@pytest.mark.parametrize("sign", [1, -1])
def test_oracles_are_those_of_plain_loops(partly: NBest, sign: int) -> None:
    scores = np.random.default_rng(1).normal(size=len(partly.features))
    name = "mqm" if sign == 1 else "-mqm"
    result = oracles(partly, name, preference=scores)
    skipped = 0
    for s in range(len(partly)):
        there = values(partly, s)
        of = scores[partly.rows(s)]
        if len(there) < 2:
            skipped += 1
            assert np.isnan(result.score[s])
            assert (result.tied[s], result.index[s]) == (0, np.argmax(of))
            continue
        best = max(sign * value for _, value in there)
        ties = [k for k, value in there if sign * value == best]
        assert result.score[s] == sign * best
        assert result.tied[s] == len(ties)
        assert result.index[s] == max(ties, key=lambda k: of[k])
    assert result.skipped == skipped > 0


def test_headroom_is_of_the_judged_candidates(partly: NBest) -> None:
    scores = np.random.default_rng(2).normal(size=len(partly.features))
    room = headroom(partly, scores, "mqm")
    lists = [(s, values(partly, s)) for s in range(len(partly)) if len(values(partly, s)) > 1]
    first = [max(there, key=lambda kv: scores[partly.rows(s)][kv[0]])[1] for s, there in lists]
    assert room.first_best.value == pytest.approx(np.mean(first))
    best = [max(value for _, value in there) for _, there in lists]
    assert room.oracle.value == pytest.approx(np.mean(best))
    worst = [min(value for _, value in there) for _, there in lists]
    assert room.anti_oracle.value == pytest.approx(np.mean(worst))
    assert len(room.oracles) == SENTENCES
    left_out = SENTENCES - len(lists)
    assert f"{left_out} lists left out: fewer than two candidates are judged" in str(room)
    assert f" of {len(lists)} oracles tied" in str(room)


def test_a_mean_counts_the_choices_that_are_judged(partly: NBest) -> None:
    rng = np.random.default_rng(3)
    choice, other = (rng.integers(0, partly.sizes) for _ in range(2))
    column = np.asarray(partly.extras["mqm"])
    chosen = column[partly.offsets[:-1] + choice]
    score = choice_score(partly, choice, "mqm")
    there = int((~np.isnan(chosen)).sum())
    assert score.value == pytest.approx(np.nanmean(chosen))
    assert score.details == {"mqm.judged": there}
    assert statistics(partly, "mqm").corpus(partly.offsets[:-1] + choice) == score.value
    board = compared(partly, choice, other, "mqm")
    also = int((~np.isnan(column[partly.offsets[:-1] + other])).sum())
    assert (
        f"mqm: means of the choices that are judged, {there} canonical and {also} adapted of 60"
        in str(board)
    )
    assert "means of the choices" not in str(compared(partly, choice, other, "lm"))


def test_gains_are_nan_where_there_is_no_judgement(partly: NBest) -> None:
    np.testing.assert_array_equal(gains(partly, "mqm"), column_of(partly, "mqm"))
    np.testing.assert_array_equal(gains(partly, "-mqm"), -column_of(partly, "mqm"))


def test_nothing_judged_has_no_score(partly: NBest) -> None:
    bare = partly.with_extras(mqm=np.full(len(partly.features), np.nan))
    assert np.isnan(choice_score(bare, np.zeros(len(bare), int), "mqm").value)
    kept, rows = only_judged(bare, "mqm")
    assert (len(kept), len(rows)) == (0, 0)
    with pytest.raises(DataError, match="no list has two candidates with a value of mqm: judge"):
        headroom(bare, metric="mqm")


def test_a_sentence_without_references_is_named(partly: NBest) -> None:
    references = [() if s == 7 else refs for s, refs in enumerate(partly.references or ())]
    with pytest.raises(DataError, match="sentence 7 has no reference: give at least one"):
        oracles(partly.with_references(references), "ter")


def test_a_column_reads_none_and_empty_texts_as_missing(partly: NBest) -> None:
    column = np.asarray(partly.extras["mqm"])
    given = [
        None if np.isnan(v) and k % 2 else "" if np.isnan(v) else v for k, v in enumerate(column)
    ]
    lists = partly.with_extras(mqm=given)
    np.testing.assert_array_equal(column_of(lists, "mqm"), column)
    assert (
        oracles(lists, Column(column="mqm")).index.tolist() == oracles(partly, "mqm").index.tolist()
    )

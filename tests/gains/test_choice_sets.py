"""Preferences, ties and rankings as choices among rows, and errors."""

from __future__ import annotations

from typing import Any

import krippendorff
import numpy as np
import pytest
from support.preferred_lists import lists_of
from support.raising import raises

from bpa_ppl import DataError, NBest, from_lists
from bpa_ppl.gains.judged import Judged
from bpa_ppl.gains.preferences import (
    agreement,
    choice_sets,
    has_preferences,
    iter_choices,
    ordinal_alpha,
)


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Two sentences with four and three candidates, which have ids."""
    return from_lists(
        [["a", "b", "c", "d"], ["e", "f", "g"]],
        [[[1.0, 0.0], [2.0, 4.0], [5.0, 1.0], [8.0, 8.0]], [[0.0, 1.0], [3.0, 2.0], [6.0, 6.0]]],
        ["LM0", "TM0"],
        extras={"id": [["A", "B", "C", "D"], ["E", "F", "E"]]},
        sentence_ids=[7, 9],
    )


def choices_by_text(lists: NBest, **extras: Any) -> list[tuple[list[str], int]]:
    """Return the options of each choice as texts, and the position of the chosen one."""
    result = choice_sets(lists.with_sentence_extras(**extras))
    texts = [result.lists.texts(c) for c in range(len(result.chosen))]
    return list(zip(texts, result.chosen.tolist(), strict=True))


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ({"preferences": [[[2, 0], ["B", "D"]], None]}, [(["c", "a"], 0), (["b", "d"], 0)]),
        ({"preferences": np.array([[[2, 0]], [[0, 1]]])}, [(["c", "a"], 0), (["e", "f"], 0)]),
        ({"rankings": [[[3, 0, 2]], None]}, [(["d", "a", "c"], 0), (["a", "c"], 0)]),
        (
            {"rankings": [[[2, [0, 1, 3]], [1, 0, ["D"]]], None]},
            [(["c", "a", "b", "d"], 0), (["b", "a", "d"], 0), (["a", "d"], 0)],
        ),
    ],
)
def test_preferences_and_rankings_are_choices(lists: NBest, extras: dict, expected: list) -> None:
    assert choices_by_text(lists, **extras) == expected


def test_ties_add_a_third_option_to_all_pairs(lists: NBest) -> None:
    none = "(no difference)"
    extras = {"preferences": [[[2, 0]], []], "ties": [None, [[0, 1]]], "rankings": [None, [[2, 1]]]}
    expected = [(["c", "a", none], 0), (["e", "f", none], 2), (["g", "f"], 0)]
    assert choices_by_text(lists, **extras) == expected
    result = choice_sets(lists.with_sentence_extras(**extras))
    assert result.tie.tolist() == [0, 0, 1, 0, 0, 1, 0, 0]
    assert result.lists.features[[2, 5]].tolist() == [[3.0, 0.5], [1.5, 1.5]]
    assert result.lists.sentence_ids.tolist() == [7, 9, 9]
    assert result.counts == {"lists": 2, "preferences": 1, "ties": 1, "rankings": 1}
    without = lists.with_sentence_extras(preferences=[[[2, 0]], None])
    assert choice_sets(without, ties=True).lists.sizes.tolist() == [3]


def test_contradictory_preferences_are_kept(lists: NBest, caplog: pytest.LogCaptureFixture) -> None:
    preferences = [[[2, 0], [0, 2], [1, 0], [0, 2]], [[0, 1]]]
    with caplog.at_level("INFO", "bpa_ppl"):
        assert len(choices_by_text(lists, preferences=preferences)) == 5
    assert "1 pair of candidates preferred in both directions" in caplog.text


@pytest.mark.parametrize(
    ("name", "entries", "code"),
    [
        ("preferences", 3, "bad-line"),
        ("preferences", [[0, 1, 2]], "bad-line"),
        ("preferences", [[0, 4]], "bad-name"),
        ("preferences", [["A", 0]], "duplicate"),
        ("preferences", [[0, True]], "bad-name"),
        ("rankings", [[[0, 1]]], "bad-line"),
        ("rankings", [1, 0], "bad-line"),
        ("rankings", [[0, [1, 0]]], "duplicate"),
        ("rankings", [[[0, 1], 2]], "bad-line"),
        ("preferences", [{"weight": 2.0}], "bad-line"),
        ("ties", [{"candidates": [0, 1], "rate": 1}], "bad-name"),
        ("ties", [{"candidates": [0, 1], "weight": 0}], "bad-number"),
        ("ties", [{"candidates": [0, 1], "weight": 1e-60}], "bad-number"),
        ("rankings", [{"candidates": [0, 1], "weight": float("nan")}], "bad-number"),
        ("preferences", [{"candidates": [0, 1], "rater": 3}], "bad-name"),
        ("preferences", [["A", "unknown"]], "bad-name"),
    ],
)
def test_invalid_entries_are_refused_with_their_sentence(
    lists: NBest, name: str, entries: Any, code: str
) -> None:
    with raises(DataError, code, match=rf"{name}.* of sentence 7 ") as caught:
        choices_by_text(lists, **{name: [entries, None]})
    assert caught.value.path == lists.origin
    with raises(DataError, "bad-name", match=r"preferences\[1\] of sentence 9 .*'E'"):
        choices_by_text(lists, preferences=[None, [[0, 1], ["E", "F"]]])  # two have this id


def test_lists_without_preferences_are_refused(lists: NBest) -> None:
    for extras in ({}, {"preferences": [None, []]}, {"domain": ["news", "web"]}):
        assert not has_preferences(lists.with_sentence_extras(**extras))
        with raises(DataError, "no-data"):
            choices_by_text(lists, **extras)


def entry(*candidates: Any, **fields: Any) -> dict[str, Any]:
    return {"candidates": list(candidates), **fields}


def test_entries_with_weights_and_raters(lists: NBest) -> None:
    judged = lists.with_sentence_extras(
        preferences=[[[2, 0], entry("B", "D", weight=0.3, rater="bob")], None],
        ties=[[entry(0, 1, rater=None, weight=None)], [entry(0, 1, rater="ann")]],
        rankings=[[entry(2, [0, 1, 3], weight=2), entry(3, 2, 1, rater="ann")], None],
    )
    result = choice_sets(judged)
    assert result.weight.tolist() == [1.0, 0.3, 1.0, 2.0, 1.0, 1.0, 1.0]
    assert result.raters == ("(unnamed)", "ann", "bob")
    assert result.rater.tolist() == [0, 2, 0, 0, 1, 1, 1]
    assert result.named_raters == {"ann": 3, "bob": 1}
    plain = lists.with_sentence_extras(
        preferences=[[[2, 0], ["B", "D"]], None],
        ties=[[[0, 1]], [[0, 1]]],
        rankings=[[[2, [0, 1, 3]], [3, 2, 1]], None],
    )
    for ours, expected in zip(result[1:4], choice_sets(plain)[1:4], strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_alpha_is_that_of_a_calculation_by_hand(lists: NBest) -> None:
    """Ordinal α by Krippendorff's formula; a repeated answer does not count again."""
    more = from_lists([["a", "b"]] * 3, [[[0.0], [1.0]]] * 3, ["LM0"])
    first, second = [entry(0, 1, rater=name) for name in ("ann", "bob")]
    judged = more.with_sentence_extras(
        preferences=[[first, second, entry(1, 0, rater="bob")], [entry(1, 0, rater="bob")], None],
        ties=[None, [entry(0, 1, rater="ann")], [entry(0, 1, rater="bob"), [0, 1]]],
        rankings=[None, [entry(0, 1, rater="ann")], None],
    )
    result = agreement(iter_choices(judged))
    assert (result.raters, result.pairs, result.alike) == (2, 2, 1)
    # Two answers first, one tie and one second: the observed disagreement is that of tie and
    # second, 1, in one of two pairs; the expected one is the mean over all pairs of answers.
    observed, expected = 1 / 2, 2 * (2 * 1.5**2 + 2 * 2.5**2 + 1) / (4 * 3)
    assert result.alpha == pytest.approx(1 - observed / expected)
    both = more.with_sentence_extras(preferences=[[first, second], None, None])
    alike = agreement(iter_choices(both))
    assert alike.alpha is None


@pytest.mark.parametrize("seed", range(20))
def test_alpha_is_that_of_krippendorff(seed: int) -> None:
    rng = np.random.default_rng(seed)
    answers = rng.integers(3, size=(rng.integers(2, 6), 12)).astype(float)
    answers[2:, ::3] = np.nan  # not all raters answer everything
    counts = np.array([np.sum(answers == answer, axis=0) for answer in range(3)], float).T
    expected = krippendorff.alpha(answers, level_of_measurement="ordinal")
    assert ordinal_alpha(counts) == pytest.approx(expected, abs=1e-12)


def test_the_accuracy_is_that_of_a_calculation_by_hand() -> None:
    lists = lists_of(
        [np.zeros((4, 3)), np.zeros((2, 3)), np.zeros((3, 3))],
        preferences=[[[0, 1], {"candidates": [0, 1], "weight": 3}, [1, 0]], None, None],
        ties=[[[2, 3]], [[0, 1]], None],
        rankings=[None, None, [[2, 0, 1], [1, [0, 2]]]],
    )
    pairs = Judged.by_preferences(lists)
    assert pairs.sentences.tolist() == [0, 2]
    assert pairs.left_out == 2
    assert pairs.weight.tolist() == [5, 2]
    assert pairs.lists.sizes.tolist() == [4, 3]
    # List 0: answers of weight 1 + 3 are right, one is wrong. List 2: of the first ranking 2 > 0
    # and 2 > 1 are right and 0 > 1 is equal; of the second, 1 > 0 is equal and 1 > 2 is wrong.
    scores = np.array([2.0, 1.0, 0.0, 0.0, 1.0, 1.0, 3.0])
    assert pairs.gain_of(scores) == pytest.approx([4 / 5, (2.5 / 3 + 0.5 / 2) / 2])
    none = Judged.by_preferences(lists.without("preferences", "rankings"))
    assert (len(none.lists), len(none.weight), none.left_out) == (0, 0, 2)

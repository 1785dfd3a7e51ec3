"""Journals of judgements and the lists that they are about."""

from __future__ import annotations

import pytest
from support.judged_pairs import compared_lists
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.formats.journal import Journal, Judgement, with_judgements


def test_answers_of_several_raters_are_merged() -> None:
    """Skipped pairs are left out; the second rater has no name."""
    lists = compared_lists(2, 3)
    ann = Journal({"rater": "ann"}, {2: Judgement(0, (0, 1), "first")})
    bob = Journal({}, {2: Judgement(0, (0, 1), "tie"), 3: Judgement(1, (2, 0), "skip")})
    judged = with_judgements(lists, [ann, bob])
    preference, tie = ({"candidates": [0, 1], "rater": rater} for rater in ("ann", "rater 2"))
    assert judged.sentence_extras["preferences"] == ([preference], None)
    assert judged.sentence_extras["ties"] == ([tie], None)


@pytest.mark.parametrize(
    "journal", [Journal({"sha256": "0"}), Journal({}, {2: Judgement(0, (0, 9), "first")})]
)
def test_answers_about_other_lists_are_refused(journal: Journal) -> None:
    with raises(DataError, "mismatch"):
        with_judgements(compared_lists(), [journal])

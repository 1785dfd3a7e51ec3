"""Journals of judgements and the lists that they are about."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.damage import damage_journal
from support.judged_pairs import compared_lists
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.formats.journal import Journal, JournalFile, Judgement, read_journal, with_judgements


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


@pytest.mark.parametrize("count", [400, pytest.param(8000, marks=pytest.mark.slow)])
def test_a_damaged_journal_is_read_or_refused(tmp_path: Path, count: int) -> None:
    """The error names the file; a record that is added stands on a line of its own."""
    path, lists, results = tmp_path / "answers.jsonl", compared_lists(), Counter[str]()
    records: list[dict[str, Any]] = [{"format": "judgements", "version": 1, "rater": "ann"}]
    records += [{"id": n, "candidates": [0, 1], "answer": "first"} for n in range(2)]
    records += [{"undo": 2}, {**records[1], "id": 3, "correction": "better"}]
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    for seed in range(count):
        path.write_bytes(damage_journal(content, random.Random(seed)))
        try:
            journal = read_journal(path)
            with_judgements(lists, [journal])
            JournalFile(path, journal.header).append({})
            results[str(path.read_bytes().endswith(b"}\n{}\n"))] += 1
        except DataError as error:
            results["refused" if str(path) in str(error) else str(error)] += 1
    about_lists = {name for name in results if "no candidates" in name}
    assert set(results) - about_lists == {"True", "refused"}
    assert min(results["True"], results["refused"]) > 50

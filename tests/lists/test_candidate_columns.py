"""What is said of lists that all have one candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpa_ppl import read_nbest
from bpa_ppl.lists.candidate_columns import describe_singles

FIELD = Path(__file__).resolve().parents[1] / "formats" / "field" / "4"


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_what_may_be_wrong_with_lists_of_one_candidate() -> None:
    table = read_nbest(FIELD / "weave.csv", format="csv:id=id,text=output.output.answer")
    problem = describe_singles(table)
    assert "every list has one candidate" in problem
    assert "inputs.example.question (3 different)" in problem
    assert "judge.score" not in problem
    singles = read_nbest([f'{{"id": {k}, "candidates": ["t{k}"]}}' for k in range(2)])
    assert "and those of one sentence the same id" in describe_singles(singles)
    wide = singles.with_extras(other=["x", "y"])
    assert describe_singles(wide).endswith("shows for a column for each system")
    systems = read_nbest(FIELD / "wide.csv", format="csv:id=seg_id,text=hyp.A")
    assert describe_singles(systems).endswith("shows for a column for each system")

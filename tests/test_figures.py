"""Figures that several pages of the documentation show are the same on each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.extras import require_extras

ROOT = Path(__file__).resolve().parent.parent
RESULTS = "docs/results.md"
WHICH, PREFERENCES = "docs/extras/judges.md", "docs/how-to/preferences.md"
JURIES, JUDGED = "docs/results/juries.md", "docs/results/judged-lists.md"
CONTROL, LIKELIHOODS = "docs/results/control.md", "docs/results/likelihoods.md"
CHOICES, ASKING = "docs/results/choices.md", "docs/results/asking.md"

#: Rows whose last three numbers are the same: a page and the beginning of its row, and another one.
SAME = [
    (RESULTS, "reward models, RewardBench", JURIES, "accuracy: RewardBench"),
    (RESULTS, "reward models, LLMBar", JURIES, "accuracy: LLMBar"),
    (WHICH, "right, %: RewardBench", JURIES, "accuracy: RewardBench"),
    (WHICH, "right, %: LLMBar", JURIES, "accuracy: LLMBar"),
    (WHICH, "log loss: LLMBar", JURIES, "log loss: LLMBar"),
    (WHICH, "headroom, %: 19", JURIES, "headroom: WMT 2023, 19"),
    (RESULTS, "WMT 2023, all metrics", CHOICES, "WMT 2023, 19"),
    (RESULTS, "WMT 2023, six features", CHOICES, "WMT 2023, 6"),
    (RESULTS, "summaries, 15 metrics", CHOICES, "thumb.summeval, 15 |"),
    (RESULTS, "texts and systems", JUDGED, "texts and systems: **default"),
]
#: Rows whose first two means, with deviations, are the same.
MEANS = [
    (RESULTS, "`margin`, the default", LIKELIHOODS, "margin, γ = 2"),
    (RESULTS, "`margin` on lists that", CONTROL, "margin, lists of D"),
    (RESULTS, "`margin`, the default", CONTROL, "margin, lists of the domain"),
    (RESULTS, "`oracle`, as published", LIKELIHOODS, "oracle, as published"),
]


def row_of(page: str, beginning: str) -> str:
    """Return the only row of a table that begins so."""
    lines = (ROOT / page).read_text("utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith(f"| {beginning}")]
    return row


def numbers(row: str) -> list[float]:
    """Return the numbers of a row, of which percentages are shares."""
    found = [float(number) for number in re.findall(r"(?<!\w)\d*\.\d+", row)]
    return [round(number / 100, 3) if number > 1.5 else number for number in found]


def means(row: str) -> list[tuple[float, ...]]:
    """Return the first two means of a row, with their deviations."""
    return [tuple(map(float, found)) for found in re.findall(r"([\d.]+) ± ([\d.]+)", row)[:2]]


@pytest.mark.parametrize(("page", "row", "other", "of_other"), SAME)
def test_shares_are_those_of_the_measurements(
    page: str, row: str, other: str, of_other: str
) -> None:
    if page.startswith("docs/extras/"):
        require_extras()
    assert numbers(row_of(page, row))[-3:] == numbers(row_of(other, of_other))[-3:]


@pytest.mark.parametrize(("page", "row", "other", "of_other"), MEANS)
def test_means_are_those_of_the_measurements(
    page: str, row: str, other: str, of_other: str
) -> None:
    assert means(row_of(page, row)) == means(row_of(other, of_other))


def test_the_shares_of_sure_choices_are_those_of_the_measurements() -> None:
    rules = (ROOT / ASKING).read_text("utf-8")
    for collection, row in (
        ("RewardBench", "RewardBench |"),
        ("LLMBar", "LLMBar, pairs made to mislead"),
        ("arena", "simulated judges, right in"),
    ):
        of_collection = rules[rules.index(f"\n| {collection} |") :]
        ours = of_collection[of_collection.index("**ours** |") :].splitlines()[0].split("|")[3:6]
        percents = row_of(PREFERENCES, row).split("|")[2:5]
        assert [float(p.strip(" %")) / 100 for p in percents] == [
            float(cell.split("/")[3]) for cell in ours
        ]


def test_times_of_many_lists_are_those_of_the_recorded_run() -> None:
    records = (ROOT / "docs/results/scale.txt").read_text("utf-8")
    columns = "CPU seconds", "ms a list", "MiB"
    for references in ("related", "unrelated"):
        head, _, *rows = records[records.index(f"| lists, {references} ") :].splitlines()
        names = [cell.strip() for cell in head.split("|")]
        for count in ("100", "1,000", "10,000"):
            (row,) = (row for row in rows[:5] if row.startswith(f"| {count} "))
            cells = dict(zip(names, (cell.strip() for cell in row.split("|")), strict=True))
            shown = row_of("docs/speed.md", f"{count}, {references} ").split("|")[2:-1]
            assert [cell.strip() for cell in shown] == [cells[name] for name in columns]

"""The page that compares our numbers with those of the papers.

Each claim has a place, a figure of the paper, ours, a verdict and the key of the script that
printed ours; the numbers are held against the stored outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "published.md"
HEAD = ["claim of", "the paper says", "its figure", "ours", "verdict", "printed by"]
VERDICTS = {"confirmed", "not confirmed", "open"}
#: How many claims each paper has: J is 2015, C COLING 2010, S S+SSPR 2010.
CLAIMS = {"J": 50, "C": 21, "S": 12, "F": 31, "I": 31}
NUMBER = r"[-+−]?\d*\.\d+"
WITH_ERROR = re.compile(rf"({NUMBER})(?: ± ({NUMBER}))?")
#: Settings that a cell names are no results.
SETTING = re.compile(r"(?:σ_o|σ_T|δ|α|β|γ) = [\d.]+(?:(?:, | and )[\d.]+)*")
RUN = re.compile(rf"{NUMBER}(?: ± {NUMBER})?(?:, {NUMBER}(?: ± {NUMBER})?)*")

Entry = tuple[str, str | None]


def split_row(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def list_tables(text: str) -> Iterator[list[list[str]]]:
    """Return the tables of a text, without the line below the heading."""
    for block in re.split(r"\n(?!\|)", text):
        lines = [line for line in block.split("\n") if line.startswith("|")]
        if len(lines) > 2:
            yield [split_row(line) for line in (lines[0], *lines[2:])]


@cache
def read_tables() -> list[list[list[str]]]:
    """Return the tables of the page."""
    return list(list_tables(PAGE.read_text("utf-8")))


def list_rows() -> list[list[str]]:
    """Return the rows of the claims."""
    return [row for head, *rows in read_tables() for row in rows if head == HEAD]


@cache
def read_scripts() -> dict[str, tuple[str, str]]:
    """Return the command of each key, and the file with its output."""
    (rows,) = [rows for head, *rows in read_tables() if head == ["key", "command", "output"]]
    scripts = {}
    for key, command, output in rows:
        (path,) = re.findall(r"\]\(([^)#]*)", output)
        scripts[key.strip("`")] = (command.strip("`"), path)
    return scripts


def read_output(key: str) -> str:
    """Return what a script printed, or the page that its numbers stand on."""
    command, path = read_scripts()[key]
    text = (DOCS / path if path else PAGE).read_text("utf-8")
    if not path.endswith(".txt"):
        return text if path else text.split("## Single runs of Moses")[1].split("\n## ")[0]
    records = re.split(r"^Printed by `python benchmarks/", text, flags=re.MULTILINE)
    found = [record for record in records if record.startswith(f"{command}`")]
    assert len(found) == 1, f"{path} has {len(found)} outputs of {command}"
    return found[0]


def normalise(number: str) -> str:
    """Return a number as the scripts print it."""
    sign = "-" if number[0] in "-−" else ""
    whole, digits = number.lstrip("-+−").split(".")
    return f"{sign}{int(whole or 0)}.{digits}"


def list_entries(cell: str) -> list[Entry]:
    """Return the numbers of a cell, each with its ±."""
    return [
        (normalise(value), normalise(error) if error else None)
        for value, error in WITH_ERROR.findall(cell)
    ]


def list_tracks(table: list[list[str]]) -> Iterator[list[Entry]]:
    """Return the sequences of a table: the n-th number of each cell of a row, or of a column."""
    rows = [[list_entries(cell) for cell in row] for row in table]
    columns = [list(column) for column in zip(*rows, strict=False)]
    for cells in (*rows, *columns):
        for place in range(max((len(cell) for cell in cells), default=0)):
            track = [cell[place] for cell in cells if len(cell) > place]
            yield track
            yield [(error, None) for _, error in track if error]
        yield from cells


@cache
def read_tracks(key: str) -> tuple[tuple[Entry, ...], ...]:
    """Return the sequences of numbers in an output; a line of prose is a sequence, too."""
    text = read_output(key)
    lines = [list_entries(line) for line in text.splitlines() if not line.startswith("|")]
    tracks = [track for table in list_tables(text) for track in list_tracks(table)]
    return tuple(tuple(track) for track in (*tracks, *lines))


def is_part(run: Iterable[Entry], track: Iterable[Entry]) -> bool:
    """Return whether a sequence has the numbers of a run in their order."""
    rest = iter(track)
    return all(
        any(value == other and error in (None, of_other) for other, of_other in rest)
        for value, error in run
    )


def list_runs(cell: str) -> list[list[Entry]]:
    """Return the runs of numbers of a cell of the page."""
    text = SETTING.sub("", re.sub(r"`[^`]*`|\]\([^)]*\)", "", cell))
    return [list_entries(found) for found in RUN.findall(text)]


def test_each_row_is_complete() -> None:
    rows = list_rows()
    assert len(rows) > 100
    for place, claim, figure, ours, verdict, keys in rows:
        assert verdict in VERDICTS, place
        assert 0 < len(claim.split()) <= 25, (place, len(claim.split()))
        assert figure, place
        assert ours, place
        assert re.match(r"[JCSFI]\d+\b", place), place
        for key in keys.split(", "):
            assert key.strip("`") in read_scripts(), (place, key)


def test_the_page_counts_its_verdicts() -> None:
    verdicts = [row[4] for row in list_rows()]
    confirmed, refuted, undecided = (
        verdicts.count(v) for v in ("confirmed", "not confirmed", "open")
    )
    text = " ".join(PAGE.read_text("utf-8").split())
    counts = f"{confirmed} are confirmed, {refuted} are not confirmed, and {undecided} are open"
    assert counts in text


def test_each_claim_of_a_paper_is_on_the_page() -> None:
    places = [row[0] for row in list_rows()]
    for title in ("Procedures", "Findings that are not tested"):
        (part,) = re.findall(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
        places += [row[0] for _, *rows in list_tables(part) for row in rows]
    found = re.findall(r"\b[JCSFI]\d+\b", "\n".join(places))
    expected = {f"{paper}{n}" for paper, count in CLAIMS.items() for n in range(1, count + 1)}
    assert set(found) == expected


@pytest.mark.parametrize("row", list_rows(), ids=lambda row: row[0].partition(":")[0])
def test_our_figures_are_those_that_the_scripts_printed(row: list[str]) -> None:
    *_, ours, _, keys = row
    tracks = [track for key in keys.split(", ") for track in read_tracks(key.strip("`"))]
    for run in list_runs(ours):
        assert any(is_part(run, track) for track in tracks), f"not printed: {run}"


def test_lengths_and_translations_are_those_that_the_scripts_printed() -> None:
    (lengths,) = [rows for head, *rows in read_tables() if head[0] == "text"]
    for row in lengths:
        numbers = [entry for cell in row[1:] for entry in list_entries(cell)]
        assert len(numbers) == 3, row
        assert any(is_part(numbers, track) for track in read_tracks("texts")), row
    examples = [rows for head, *rows in read_tables() if head == ["", ""]]
    assert len(examples) == 2
    output = read_output("examples")
    for _, translation in (row for rows in examples for row in rows):
        assert f"| {translation} |" in output, translation


def test_a_figure_that_no_script_printed_is_found() -> None:
    table = [["", "10", "100"], ["walk", "54.13 ± 3.21", "-0.66 (1.000)"]]
    tracks = list(list_tracks(table))
    assert any(is_part([("54.13", "3.21"), ("-0.66", None)], track) for track in tracks)
    assert any(is_part([("3.21", None)], track) for track in tracks)
    for wrong in ("0.66", "54.14", "3.22"):
        assert not any(is_part([(wrong, None)], track) for track in tracks)
    assert not any(is_part([("-0.66", None), ("54.13", None)], track) for track in tracks)
    assert list_runs("δ = 0.5: −.66, 1.0 ± 0.2 (p 0.007)") == [
        [("-0.66", None), ("1.0", "0.2")],
        [("0.007", None)],
    ]

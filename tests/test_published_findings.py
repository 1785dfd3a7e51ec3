"""The claims of the papers: a script printed our numbers for the domain and method named before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "published.md").read_text("utf-8")
HEAD = ["claim of", "the paper says", "its figure", "ours", "verdict", "printed by"]
VERDICTS = ("confirmed", "not confirmed", "open")
#: How many claims each paper has: J is 2015, C COLING 2010, S S+SSPR 2010.
CLAIMS = {"J": 50, "C": 21, "S": 12, "F": 31, "I": 31}
NUMBER = r"(?:[-+−]?\d*\.\d+|\d{3} of \d{3})"
RUN = rf"{NUMBER}(?: ± {NUMBER})?(?:, {NUMBER}(?: ± {NUMBER})?)*"
#: Settings that a cell names are no results.
SETTING = re.compile(r"(?:σ_o|σ_T|δ|α|β|γ) = [\d.]+(?:(?:, | and )[\d.]+)*|\]\([^)]*\)")
DOMAIN = "captions|medical|conversation"
METHOD = (
    r"published-2010|published-sspr|published|mcmc-vit|vit-2010|map-oracle|mert(?:-plus|\+)|mert"
    r"|mira(?:-ter| \(TER\))|mira|pro|canonical|unadapted|λ_T|delta"
)
#: Other names of methods in the outputs.
SAME = {"canonical": "λ_t", "unadapted": "λ_t", "mert-plus": "mert+", "mira-ter": "mira (ter)"}
SAME |= {"delta": "published-2010"}
NAME = rf"\b(?:(?P<domain>{DOMAIN})|minus `?(?P<base>{METHOD})|(?P<method>{METHOD}))(?![\w-])"
TOKEN = re.compile(rf"{NAME}|(?P<run>{RUN})|(?P<open>\()|(?P<close>\))", re.IGNORECASE)

Entry = tuple[str, str]
#: The domain, the method that is subtracted, and the method; None is any.
Names = tuple[str | None, str | None, str | None]


def split_row(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@cache
def list_tables(text: str) -> list[list[list[str]]]:
    """Return the tables of a text, without the line below the heading."""
    blocks = [re.findall(r"^\|.*", block, re.M) for block in re.split(r"\n(?!\|)", text)]
    return [[split_row(line) for line in (b[0], *b[2:])] for b in blocks if len(b) > 2]


def list_rows() -> list[list[str]]:
    """Return the rows of the claims."""
    return [row for head, *rows in list_tables(PAGE) for row in rows if head == HEAD]


def read_output(key: str) -> str:
    """Return what the script with a key printed, or the page that its numbers stand on."""
    (rows,) = [rows for head, *rows in list_tables(PAGE) if head[0] == "key"]
    ((command, output),) = [cells for name, *cells in rows if name == f"`{key}`"]
    (path,) = re.findall(r"\]\(([^)#]*)", output)
    if not path:
        return PAGE.split("## Single runs of Moses")[1].split("\n## ")[0]
    text = (DOCS / path).read_text("utf-8")
    if not path.endswith(".txt"):
        return text
    records = re.split(r"^Printed by `python benchmarks/", text, flags=re.M)
    (record,) = [one for one in records if one.startswith(f"{command.strip('`')}`")]
    return record


def list_entries(cell: str) -> list[Entry]:
    """Return the numbers of a cell as the scripts print them, each with its ±."""
    found = re.findall(rf"({NUMBER})(?: ± ({NUMBER}))?", cell)
    return [(re.sub(r"^(-?)\.", r"\g<1>0.", n.replace("−", "-").lstrip("+")), e) for n, e in found]


def find_name(pattern: str, text: str) -> str | None:
    """Return the first name of a domain or method in a text."""
    found = re.search(pattern, text, re.IGNORECASE)
    return SAME.get(name := found[0].lower(), name) if found else None


def list_tracks(table: list[list[str]]) -> Iterator[tuple[Names, list[Entry]]]:
    """Return the sequences of a table: the n-th number of each cell of a row, or of a column.

    A sequence has one domain, which the title, the row or the column names, and one method.
    """
    title = table[0][0]
    base = find_name(METHOD, title.partition("minus that of ")[2])
    methods = [find_name(rf"^(?:{METHOD})", row[0]) for row in table]
    lines: dict[tuple[Names, str, int], list[list[Entry]]] = {}
    for y, (row, method) in enumerate(zip(table, methods, strict=True)):
        for x, (column, cell) in enumerate(zip(table[0], row, strict=False)):
            domain = find_name(DOMAIN, f"{title} {column} {row[0]}")
            names = (domain, base, (method or row[0]) if any(methods) else None)
            for line in (("row", y), ("column", x)):
                lines.setdefault((names, *line), []).append(list_entries(cell))
    for (names, *_), cells in lines.items():
        for place in range(max(map(len, cells))):
            track = [cell[place] for cell in cells if len(cell) > place]
            yield from ((names, track), (names, [(error, "") for _, error in track]))
        yield from ((names, cell) for cell in cells)


@cache
def read_tracks(key: str) -> dict[Names, list[list[Entry]]]:
    """Return the sequences of numbers in an output; a line of prose is a sequence, too."""
    text = read_output(key)
    prose = [list_entries(line) for line in text.splitlines()[1:] if not line.startswith("|")]
    tracks: dict[Names, list[list[Entry]]] = {(None, None, None): prose}
    for names, track in chain.from_iterable(map(list_tracks, list_tables(text))):
        tracks.setdefault(names, []).append(track)
    return tracks


def is_part(run: list[Entry], track: list[Entry]) -> bool:
    """Return whether a sequence has the numbers of a run in their order."""
    rest = iter(track)
    return all(any(n == other and e in ("", error) for other, error in rest) for n, e in run)


def list_runs(cell: str, start: str | None = "") -> Iterator[tuple[Names, list[Entry]]]:
    """Return the runs of numbers of a cell of the page, with the last names before each.

    Names in parentheses count up to their end, and `start` before the first name.
    """
    stack = [dict.fromkeys(("domain", "base", "method"), start)]
    for token in TOKEN.finditer(SETTING.sub("", cell)):
        if token["run"]:
            domain, base, method = stack[-1].values()
            yield (domain, base, method), list_entries(token[0])
        elif token["open"]:
            stack.append(stack[-1].copy())
        elif token["close"]:
            stack.pop()
        elif kind := token.lastgroup:
            stack[-1][kind] = find_name(".+", token[kind])


def find_wrong(place: str, ours: str, keys: str) -> list[tuple[Names, list[Entry]]]:
    """Return the runs of numbers that no script printed for their domain and method."""
    outputs = [part for key in re.findall(r"`(.*?)`", keys) for part in read_tracks(key).items()]
    return [
        (names, run)
        for names, run in list_runs(ours, None if place[0] in "FI" else "")
        if not any(
            all(name is None or own in (None, name) for name, own in zip(names, of, strict=True))
            and any(is_part(run, track) for track in tracks)
            for of, tracks in outputs
        )
    ]


@pytest.mark.parametrize("row", list_rows(), ids=lambda row: row[0].partition(":")[0])
def test_each_row_is_complete_and_has_the_figures_that_the_scripts_printed(row: list[str]) -> None:
    place, claim, _, ours, verdict, keys = row
    assert all(row)
    assert verdict in VERDICTS
    assert 0 < len(claim.split()) <= 25, len(claim.split())
    assert re.match(r"[JCSFI]\d+\b", place)
    assert find_wrong(place, ours, keys) == []


@pytest.mark.parametrize("names", [DOMAIN, METHOD])
def test_exchanged_names_are_found(names: str) -> None:
    pattern = re.compile(rf"\b(?:{names})(?![\w-])", re.IGNORECASE)
    for place, _, _, ours, _, keys in list_rows():
        written = {find_name(".+", name) or "" for name in pattern.findall(ours)}
        for one, other in combinations(sorted(written), 2) if any(list_runs(ours)) else ():
            swap = {one: other, other: one}
            exchanged = pattern.sub(lambda m, s=swap: s.get(find_name(".+", m[0]), m[0]), ours)
            assert find_wrong(place, exchanged, keys), (place, one, other)


def test_the_page_counts_its_verdicts_and_has_each_claim() -> None:
    verdicts = [row[4] for row in list_rows()]
    confirmed, refuted, undecided = map(verdicts.count, VERDICTS)
    counts = f"{confirmed} are confirmed, {refuted} are not confirmed, and {undecided} are open"
    assert counts in " ".join(PAGE.split())
    places = [row[0] for head, *rows in list_tables(PAGE) if head[0] == HEAD[0] for row in rows]
    expected = {f"{paper}{n}" for paper, count in CLAIMS.items() for n in range(1, count + 1)}
    assert set(re.findall(r"\b[JCSFI]\d+\b", "\n".join(places))) == expected


def test_lengths_and_translations_are_those_that_the_scripts_printed() -> None:
    (lengths,) = [rows for head, *rows in list_tables(PAGE) if head[0] == "text"]
    for text, *cells in lengths:
        assert not find_wrong(text, f"{text}: {', '.join(cells[1:])}", "`texts`"), text
    examples = [row for head, *rows in list_tables(PAGE) if head == ["", ""] for row in rows]
    assert len(examples) == 18
    for _, translation in examples:
        assert f"| {translation} |" in read_output("examples"), translation

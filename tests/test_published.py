"""Figures of docs/published.md: each is in the row of its method and the table of its domain.

A cell of the page names what its numbers are, and then has the numbers:

    mert, mira and pro minus `published`, at 10: captions +2.23, +0.88, +1.25; medical +1.63, …

Names are those of domains, methods (in backticks, or a tuner, or λ_T), metrics, sizes of A
(`at 10, 50, 500`) and settings (`δ = 1, 8, 64`). A name holds until another one of its kind follows
after a number, and to the end of the sentence or of the parenthesis. Names of a kind in a row are a
list; the numbers are those of all combinations, in any order of the kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from math import prod
from typing import NamedTuple

import pytest
from support.pages import ROOT

DOCS = ROOT / "docs"
PUBLISHED = (DOCS / "published.md").read_text("utf-8")
HEAD = ["claim of", "the paper says", "its figure", "ours", "verdict", "printed by"]
VERDICTS = ("confirmed", "not confirmed", "open")
#: How many claims each paper has: J is 2015, C COLING 2010, S S+SSPR 2010.
CLAIMS = {"J": 50, "C": 21, "S": 12, "F": 31, "I": 31}
DOMAINS = ("captions", "medical", "conversation")
#: What some lists were tuned on, in place of a domain.
TUNED = ("in the domain", "a quarter of", "none of")
#: Names on the page -> in the records, where they differ.
METHODS = {
    "λ_T": {"unadapted", "canonical"},
    "mert": {"mert (BLEU)", "mert", "mert-bleu", "MERT", "MERT, another sample"},
    "mert+": {"mert+ (BLEU, 100-best)", "mert-plus-100", "mert-plus-bleu"},
    "mira": {"mira (BLEU)", "mira"},
    "mira (TER)": {"mira (TER)"},
    "pro": {"pro (BLEU)", "pro", "PRO"},
}
METRICS = {
    "1- to 4-grams": [f"precision_{n}" for n in (1, 2, 3, 4)],
    "precision of 1 word": ["precision_1"],
    "brevity penalty": ["brevity_penalty"],
    "length ratio": ["length_ratio"],
    "length ratios": ["length_ratio"],
    "words of a reference": ["of a reference"],
    "effective sample size": ["ESS"],
    "held out": ["held out"],
    "positive": ["common"],
    "weight × SD within lists": ["weight × SD within lists"],
    **{name: [name] for name in ("TER", "BLEU", "acceptance", "seconds", "log p", "phrases")},
    **{name: [name] for name in ("negative", "mean", "other than with 10", "Rand index")},
}
SETTINGS = {
    "δ": "delta",
    "n": "nbest_size",
    "samples": "draws",
    "weights": "draws",
    "steps": "warmup",
    **{name: name for name in ("σ_T", "σ_o", "Σ|λ|", "K", "share")},
}
#: Sizes of A of so many numbers, if the page names none.
SIZES = {5: ("10", "20", "50", "100", "500"), 3: ("10", "100", "500"), 2: ("10", "100")}
NUMBER = r"[-+]?(?:\d+ of \d{3}|\d*\.?\d+)(?: ± \d*\.\d+)?(?: ?%)?"
LIST = r"\d*\.?\d+(?:(?:, | and )\d*\.?\d+(?![\d.]*σ))*"
TOKEN = re.compile(
    r"(?P<domain>\b(?:" + "|".join((*DOMAINS, *TUNED)) + r")\b)"
    r"|minus (?P<base>λ_T|`[^`]+`)"
    r"|(?P<method>`[^`]+`|λ_T|\b(?:mira \(TER\)|mert\+|(?:mert|mira|pro)\b))"
    r"|(?P<spread>2σ)"
    r"|(?P<metric>\b(?:" + "|".join(map(re.escape, METRICS)) + r")\b)"
    r"|\bat (?P<size>" + LIST + r")"
    r"|(?P<setting>(?:" + "|".join(map(re.escape, SETTINGS)) + r") = " + LIST + ")"
    r"|(?P<numbers>(?<![\w.])" + NUMBER + r"(?:(?:, | / | and )" + NUMBER + r")*(?![\w]))"
    r"|(?P<open>\()|(?P<close>\))|(?P<end>\. (?=[A-Z`λ]|2σ))"
)


class Entry(NamedTuple):
    """A number of a printed record, with what its table, row and column are called."""

    domain: str
    base: str
    label: str
    method: str
    size: str
    settings: frozenset[tuple[str, str]]
    metric: str = ""
    value: str = ""
    spread: str = ""
    alone: bool = False  # whether its record has no other domain, so that the page need not name it


@cache
def list_tables(text: str) -> list[list[list[str]]]:
    """Return the tables of a text, without the line below the heading."""
    blocks = [re.findall(r"^\|.*", block, re.M) for block in re.split(r"\n(?!\|)", text)]
    split = re.compile(r"(?<!\\)\|")
    return [
        [
            [cell.strip().replace("\\|", "|") for cell in split.split(line)[1:-1]]
            for line in (b[0], *b[2:])
        ]
        for b in blocks
        if len(b) > 2
    ]


def plain(text: str) -> str:
    """Return a text with the minus and the zeros of the scripts."""
    return re.sub(r"(?<![\d.])\.(?=\d)", "0.", text.replace("−", "-"))


def name_parts(title: str, column: str) -> list[str]:
    """Return what the numbers of a cell are, from the title of its table and its column."""
    if " / " in column:
        names = column.split(" / ")
    elif ": " in title:
        text = title.split(": ")[1]
        names = text.split(" / " if " / " in text else ", ")
    elif found := re.search(r"TER / BLEU|\bTER\b|\bBLEU\b", title):
        names = found.group().split(" / ")
    elif not re.match(r"(\|A\| = )?\d", column) and not column.startswith(DOMAINS):
        names = [column]
    elif title.endswith("phrases"):
        names = ["phrases", "words"]
    elif title.startswith((*DOMAINS, "tuned")):
        names = ["TER", "BLEU", "length"]
    elif title.startswith("K = "):
        names = ["Rand index"]
    else:
        names = [title]
    seconds = {"CPU seconds": "seconds", "seconds, largest": "seconds"}
    log_p = dict.fromkeys(("log p(t|s)", "p(t|s)"), "log p")
    return [(seconds | log_p).get(one, one).removesuffix(" ± 2σ") for one in names]


def name_method(label: str) -> str:
    """Return the label of a row without its domain and settings."""
    if label.startswith("delta-"):
        return "published-2010"
    return re.sub(r"^\w+, (?=adapt|test)|(?:^|, )\S+ ?= ?[\d.]+", "", label)


def list_entries(text: str) -> Iterator[Entry]:
    """Yield the numbers of the tables of a record."""
    for head, *rows in list_tables(plain(text)):
        title, *columns = head
        if title.startswith("sentence"):  # translations
            continue
        for label, *cells in rows:
            row = dict(zip(columns, cells, strict=False))
            for column, cell in row.items():
                where = f"{title}; {label}; {column}"
                size = re.search(r"(?:^|, |\|A\| = )(\d+)(?: sentences)?$", column)
                base = re.search(r"minus that of (\S+)", title)
                found = re.findall(r"([^\s,;:]+) ?= ?([\d.]+)", where.replace("delta-", "delta="))
                settings = {(name.replace("variance", "σ_T"), value) for name, value in found}
                if share := re.fullmatch(r"0\.\d+", column):
                    settings.add(("share", share[0]))
                in_row = re.findall(r"\|A\| = (\d+)", label)
                entry = Entry(
                    domain=next((one for one in (*DOMAINS, *TUNED) if one in where), ""),
                    base=base[1] if base else "",
                    label=label,
                    method=name_method(label),
                    size=row.get("|A|") or (size[1] if size else "".join(in_row)),
                    settings=frozenset(pair for pair in settings if pair[0] != "|A|"),
                )
                yield from list_numbers(entry, name_parts(title, column), cell)


def list_numbers(entry: Entry, names: list[str], cell: str) -> Iterator[Entry]:
    """Yield the numbers of a cell: of each metric, and in parentheses their changes."""
    text, _, changes = cell.partition(" (")
    split = ", " if " / " not in text and len(names) > 1 else " / "
    parts = [*zip(names, text.split(split), strict=False)]
    parts += zip(names, changes.split("; "), strict=False) if "±" in changes else []
    for name, part in parts:
        for value, spread in re.findall(r"([-+]?(?:\d+ of \d+|\d*\.?\d+))(?: ± ([\d.]+))?", part):
            yield entry._replace(metric=name, value=value, spread=spread)


@cache
def read_record(key: str) -> str:
    """Return what the script with a key printed, or the page that its numbers stand on."""
    (rows,) = [rows for head, *rows in list_tables(PUBLISHED) if head[0] == "key"]
    ((command, output),) = [cells for name, *cells in rows if name == f"`{key}`"]
    (path,) = re.findall(r"\]\(([^)#]*)", output)
    if not path:
        return PUBLISHED.split("## Single runs of Moses")[1].split("\n## ")[0]
    text = (DOCS / path).read_text("utf-8")
    records = re.split(r"^Printed by `python benchmarks/", text, flags=re.M)
    chosen = [one for one in records if one.startswith(f"{command.strip('`')}`")]
    return chosen[0] if chosen else text


@cache
def read_entries(keys: str, exchanged: tuple[str, str] | None = None) -> dict[str, list[Entry]]:
    """Return the entries of the records of some keys, by how the page may write their numbers.

    Args:
        keys: of the last column of the page.
        exchanged: two words of the records that are exchanged before.
    """
    entries: dict[str, list[Entry]] = {}
    for key in re.findall(r"`(.*?)`", keys):
        record = read_record(key)
        if exchanged:
            record = exchange(record, *exchanged)
        tables = [*list_entries(record)]
        if not tables or not record.startswith("bench_"):  # numbers in the sentences of a page
            found = re.findall(r"\d+ of \d+|\d*\.\d+", plain(record).replace(" of the ", " of "))
            tables += [Entry("", "", "", "", "", frozenset(), "TER", number) for number in found]
        if record.startswith("bench_invariance"):
            k = re.search(r"--k (\d+)", record)
            pair = ("K", k[1] if k else "12")
            tables = [one._replace(settings=one.settings | {pair}) for one in tables]
        alone = len({one.domain for one in tables} - {""}) == 1
        for one in (one._replace(alone=alone) for one in tables):
            for number in {one.value, one.spread, f"{one.value} ± {one.spread}"}:
                entries.setdefault(number, []).append(one)
    return entries


def split_list(text: str) -> list[str]:
    return re.split(r", | and ", text)


class Context:
    """The names that hold where the numbers of a cell stand, a list of each kind."""

    def __init__(self, lists: dict[str, list[str]] | None = None):
        self.lists = {kind: [*names] for kind, names in (lists or {}).items()}
        self.used = set(self.lists)  # kinds whose list is complete, because numbers followed

    def add(self, kind: str, names: list[str]) -> None:
        if kind in self.used:
            self.lists[kind] = []
            self.used.remove(kind)
        known = self.lists.setdefault(kind, [])
        known.extend(name for name in names if name not in known)


def read_cell(text: str) -> Iterator[tuple[dict[str, list[str]], list[str]]]:
    """Yield the names that hold for some numbers, and these numbers."""
    stack = [Context()]
    for token in TOKEN.finditer(re.sub(r"\]\([^)]*\)", "]", plain(text))):
        kind, word, now = str(token.lastgroup), token[str(token.lastgroup)], stack[-1]
        if kind == "open":
            stack.append(Context(now.lists))
        elif kind == "close" and len(stack) > 1:
            stack.pop()
        elif kind == "end":
            stack[-1] = Context()
        elif kind == "numbers":
            numbers = re.split(r", | / | and ", word)
            if any(re.search(r"[.+-]|of", one) for one in numbers):
                yield now.lists, [number.rstrip(" %") for number in numbers]
                now.used = set(now.lists)
        elif kind == "setting":
            name, values = word.split(" = ")
            now.add(SETTINGS[name], split_list(values))
        elif kind == "size":
            now.add(kind, split_list(word))
        elif kind == "metric":
            now.add(kind, METRICS[word])
        elif kind != "close":
            now.add(kind, [word.strip("`")])


def is_of(entry: Entry, number: str, names: dict[str, str]) -> bool:
    """Return whether a number of the page is that entry of a record."""
    method, base = (names.get(kind, "") for kind in ("method", "base"))
    value, _, spread = number.partition(" ± ")
    given = {(name, names[name]) for name in {*SETTINGS.values()} & names.keys()}
    is_row = method == entry.label
    return (
        value == (entry.spread if "spread" in names else entry.value)
        and spread in ("", entry.spread)
        and names.get("domain", entry.domain if entry.alone else "") == entry.domain
        and (entry.base in METHODS.get(base, {base}))
        and (is_row or entry.method in METHODS.get(method, {method}))
        and (method == "λ_T" or names.get("size", "") == entry.size)
        and (given == entry.settings or method == "λ_T" or (is_row and given <= entry.settings))
        and names.get("metric", "TER") == entry.metric
    )


def find_lost(text: str, entries: dict[str, list[Entry]]) -> list[str]:
    """Return the numbers of a cell that no entry with their names has."""
    lost = []
    for lists, numbers in read_cell(text):
        axes = {kind: names for kind, names in lists.items() if names}
        if axes.get("method") == ["λ_T"]:  # the same with any lists and settings
            axes = {kind: axes[kind] for kind in ("domain", "metric", "method") if kind in axes}
        count = prod(map(len, axes.values()))
        if "size" not in axes and len(numbers) // count in SIZES:
            axes["size"] = [*SIZES[len(numbers) // count]]
        alone = {kind: names[0] for kind, names in axes.items() if len(names) == 1}
        fits = [
            all(
                any(
                    is_of(entry, number, alone | dict(zip(order, point, strict=True)))
                    for entry in entries.get(number, ())
                )
                for number, point in zip(numbers, points, strict=True)
            )
            for order in permutations(kind for kind in axes if kind not in alone)
            if len(points := [*product(*(axes[kind] for kind in order))]) == len(numbers)
        ]
        if not any(fits):
            lost.append(f"{axes}: {numbers}")
    return lost


ROWS = [row for head, *rows in list_tables(PUBLISHED) for row in rows if head == HEAD]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].partition(":")[0])
def test_a_number_is_in_the_row_of_its_method_and_the_table_of_its_domain(row: list[str]) -> None:
    place, claim, _, ours, verdict, keys = row
    assert all(row)
    assert verdict in VERDICTS
    assert 0 < len(claim.split()) <= 25
    assert re.match(r"[JCSFI]\d+\b", place)
    assert find_lost(ours, read_entries(keys)) == []


def exchange(text: str, one: str, other: str) -> str:
    """Return a text with two words exchanged, in capitals as well."""
    words = {one: other, other: one, one.upper(): other.upper(), other.upper(): one.upper()}
    choice = "|".join(map(re.escape, words))
    return re.sub(rf"(?<![\w-])(?:{choice})(?![\w+-])", lambda found: words[found[0]], text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("captions", "medical"), ("conversation", "captions"), ("medical", "conversation")],
        *[("mira", "mert"), ("mert", "pro"), ("pro", "mira"), ("mert", "mert+"), ("TER", "BLEU")],
        *[("published", "published-2010"), ("vit-2010", "mcmc-vit"), ("linear", "map")],
        *[("weighted", "flat"), ("EM", "LDA"), ("in the domain", "none of"), ("σ_T", "σ_o")],
        *[("brevity penalty", "length ratio"), ("δ = 1", "δ = 8"), ("K = 4", "K = 24")],
    ],
)
def test_each_row_notices_two_exchanged_names(one: str, other: str) -> None:
    changed = [(row, exchange(row[3], one, other)) for row in ROWS]
    rows = [(row, ours) for row, ours in changed if ours != row[3] and [*read_cell(ours)]]
    assert rows
    found = [row[0] for row, ours in rows if find_lost(ours, read_entries(row[5]))]
    assert found == [row[0] for row, _ in rows]


@pytest.mark.parametrize(("one", "other"), [("captions", "medical"), ("conversation", "captions")])
def test_each_row_notices_two_exchanged_names_of_its_records(one: str, other: str) -> None:
    rows = [row for row in ROWS if exchange(row[3], one, other) != row[3] and [*read_cell(row[3])]]
    found = [row[0] for row in rows if find_lost(row[3], read_entries(row[5], (one, other)))]
    assert found == [row[0] for row in rows]


def test_the_average_lengths_of_texts_are_those_of_their_script() -> None:
    (rows,) = [rows for head, *rows in list_tables(PUBLISHED) if head[0] == "text"]
    numbers = re.findall(r"\d+\.?\d*(?= \|)", read_record("texts"))
    assert [number for _, *cells in rows for number in cells] == numbers


def test_each_wish_of_the_authors_says_whether_it_exists_here() -> None:
    (rows,) = [rows for head, *rows in list_tables(PUBLISHED) if head[1] == "wish"]
    assert [row for row in rows if not re.match(r"yes[:,] |no$|no: ", row[2])] == []
    assert len(rows) == 16


def test_the_page_of_claims_counts_its_verdicts_and_has_each_claim() -> None:
    confirmed, refuted, undecided = map([row[4] for row in ROWS].count, VERDICTS)
    counts = f"{confirmed} are confirmed, {refuted} are not confirmed, and {undecided} are open"
    assert counts in " ".join(PUBLISHED.split())
    tables = [rows for head, *rows in list_tables(PUBLISHED) if head[0] == HEAD[0]]
    places = "\n".join(row[0] for rows in tables for row in rows)
    expected = {f"{paper}{n}" for paper, count in CLAIMS.items() for n in range(1, count + 1)}
    assert set(re.findall(r"\b[JCSFI]\d+\b", places)) == expected

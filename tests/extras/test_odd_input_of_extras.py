"""What is given to converters and readers of phrases: used, or refused.

As in `tests/soak/test_odd_input.py`: by one of our errors, which names the file if there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import use_or_refuse
from support.damage import edited, samples
from support.phrase_pairs import numbered
from support.strategies import EDITS, changed, damaged, outcome

import bpa_ppl.extras.convert as convert
from bpa_ppl.extras.convert.records import read_json, read_text_lines, write_lists
from bpa_ppl.extras.convert.servers import ANSWERS
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.extras.phrases.table_files import read_counts, read_table, write_counts, write_table
from bpa_ppl.extras.phrases.tables import PhraseCounts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extras" / "other-tools.md"
#: A record of each kind, from the page.
RECORDS = [
    tuple(line.split(None, 1))
    for block in re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for line in block.splitlines()
]


#: Formats of other programs, which `bpa convert` takes too.
LISTS = ("fairseq", "kaldi", "marian", "moses", "openai", "plain:list_size=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@settings(max_examples=5 * settings.default.max_examples)
@given(st.data())
def test_odd_records_are_converted_to_lists_as_they_are_written_or_refused(
    folder: Path, data: Any
) -> None:
    kind, shown = data.draw(st.sampled_from(RECORDS))
    path, written = folder / "records", folder / "lists.jsonl"
    if shown.startswith("{"):
        record = json.loads(shown)
        rows = data.draw(changed(data.draw(changed([record, record]))))
        lines = map(json.dumps, rows if isinstance(rows, list) else [rows])
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        read: Callable[[Path], Any] = read_json
    else:
        path.write_bytes(data.draw(damaged(f"{shown}\n{shown}\n".encode())))
        read = read_text_lines
    function = partial(convert.answers, server=kind) if kind in ANSWERS else getattr(convert, kind)
    lists = outcome(lambda: function(read(path)), path)
    if not isinstance(lists, str):
        write_lists(lists, written)
        assert list(map(json.loads, written.read_text("utf-8").split("\n")[:-1])) == lists


#: Samples of each kind of `bpa convert`: records of the page, and files of other programs.
SAMPLES: dict[str, list[bytes]] = {kind: samples(kind.partition(":")[0]) for kind in LISTS}
for kind, shown in RECORDS:
    SAMPLES.setdefault(kind, []).append(f"{shown}\n{shown}\n".encode())
#: Most kinds take few of these options.
OPTIONS = [
    *("--bad drop", "--bad drop", "--bad error", "--bad m", "--qrels ref", "--qrels lists"),
    *("--prompt-id '(.*)'", "--prompt-id '('", "--prompt-id '(.)(.)'", "--prompt-id 1"),
    *("--extract '(.*)'", "--extract 'q|(a)'", "--extract '[A-Z]$'", "--extract ''"),
    *("--baseline m", "--baseline ''", "--question prompt", "--first first", "--second chosen"),
]


@settings(max_examples=2 * settings.default.max_examples)
@given(st.sampled_from([*SAMPLES]), st.lists(st.sampled_from(OPTIONS), max_size=2), st.data())
def test_convert_uses_a_damaged_file_or_ends_with_one_line_and_no_output(
    folder: Path, kind: str, options: list[str], data: Any
) -> None:
    sample = data.draw(st.sampled_from(SAMPLES[kind]))
    content = data.draw(st.just(sample) | damaged(sample))
    use_or_refuse(f"convert {kind} FILE -o out {' '.join(options)}", folder, content)


COUNTS = b"un ||| a ||| 3\nun ||| one ||| 1\nle chat ||| the cat ||| 2.5\n"
EXTRACT = b"un ||| a ||| 0-0\nun ||| one ||| 0-0\nle chat ||| the cat ||| 0-0 1-1\n"
TABLE = b"un ||| a ||| 0.6 0.75\nun ||| one ||| 0.9 0.25\n"
ALIGNED = b"un ||| a ||| 0.6 0.5 0.75 0.5 ||| 0-0 ||| 3 4 3\n"


def copy_table(path: Path) -> None:
    write_table(read_table(path), path.with_name("again.parquet"))


def count(path: Path) -> None:
    read_counts(path).find_marginals("source", ["un"])


READERS: list[tuple[bytes, Callable[[Path], Any]]] = [
    (COUNTS, count),
    (EXTRACT, count),
    (TABLE, copy_table),
    (ALIGNED, copy_table),
]


@pytest.mark.parametrize(("sample", "read"), READERS)
@given(st.data())
def test_a_damaged_text_file_is_read_or_refused(
    sample: bytes, read: Callable[[Path], Any], folder: Path, data: Any
) -> None:
    path = folder / "damaged"
    path.write_bytes(data.draw(damaged(sample)))
    outcome(lambda: read(path), path)
    path.write_bytes(sample)
    assert not isinstance(outcome(lambda: read(path), path), str)


@given(st.data(), st.booleans())
def test_damaged_parquet_of_counts_and_subdomains_is_read_or_refused(
    folder: Path, data: Any, is_text: bool
) -> None:
    path = folder / "table.parquet"
    if is_text:
        (text,) = numbered([["a", "b"], ["c"]])
        Subdomains(text, text, [0, 1], np.array([0.5, 0.5])).save(path)
        table = pq.read_table(path)
        ((key, facts),) = table.schema.metadata.items()
        if data.draw(st.booleans()):
            table = table.drop_columns([data.draw(st.sampled_from(table.column_names))])
        else:
            facts = json.dumps(data.draw(changed(json.loads(facts)))).encode()
        pq.write_table(table.replace_schema_metadata({key: facts}), path)
        outcome(lambda: Subdomains.load(path), path)
    else:
        write_counts(PhraseCounts.of(["un", "le chat"], ["a", "the cat"], [3, 1]), path)
        path.write_bytes(edited(path.read_bytes(), data.draw(EDITS)))
        outcome(lambda: count(path), path)

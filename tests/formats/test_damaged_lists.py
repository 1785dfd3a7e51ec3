"""Every reader on damaged files: each file is a table, or an error that names it.

In a table, each number is printed in the file. Reading the file as a stream, or in other blocks,
gives the same table, or an error as well. More examples: `--hypothesis-profile soak`.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.damage import FORMATS, SERVERS, Edit, edited, samples, weight_samples
from support.registries import NBEST_FORMATS, WEIGHT_FORMATS
from support.strategies import EDITS, outcome
from support.table_content import table_content

from bpa_ppl import NBest, concatenate, iter_nbest, read_nbest, read_weights
from bpa_ppl.extending import NBestFormat
from bpa_ppl.formats import moses
from bpa_ppl.formats.build import build
from bpa_ppl.formats.reading import schema_of
from bpa_ppl.formats.roles import make_roles
from bpa_ppl.formats.schema import Schema

#: Features of these are computed from what is printed.
DERIVED = {"fairseq", "openai", *SERVERS}
#: The first line names the columns.
HEADED = {"csv", "tsv"}
#: Why a file that can be read at once is refused in parts.
LIMITS = ("sort the rows by id", "write all ids in the same way")
NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
#: Between words: also the other characters that `str.split` takes as blanks.
BETWEEN = re.compile(
    rb"""[\s\x1c-\x1f=,;:"'|{}\[\]()#]+|\xc2[\x85\xa0]|\xe2\x80[\x80-\x8a\xa8\xa9]"""
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "lists"


@pytest.mark.parametrize("name", FORMATS)
@given(pick=st.integers(0, 3), edits=EDITS, features=st.sampled_from([None, "*"]))
@example(pick=0, edits=[], features=None)
def test_a_damaged_file_of_lists_is_read_in_one_way_or_refused(
    name: str, path: Path, pick: int, edits: list[Edit], features: str | None
) -> None:
    sample = samples(name)[pick % len(samples(name))]
    content = edited(sample, edits)
    path.write_bytes(content)
    format = NBEST_FORMATS.resolve(name, {"list_size": 2} if name == "plain" else {})
    options: Any = {"format": format, "features": features}
    whole = outcome(lambda: content_of([read_nbest(path, **options)]), path)
    stream = partial(iter_nbest, path, chunk=1, **options)
    parts = outcome(lambda: content_of(list(stream())), path)
    check_same(whole, parts)
    if name != "parquet":
        check_blocks(name, options, sample, content, path)
        if not isinstance(whole, str) and name not in DERIVED:
            values = np.frombuffer(whole["features"][2])
            assert set(np.abs(values).tolist()) <= printed_numbers(content)
    # Some answers of servers have no log-probabilities.
    assert edits or name in SERVERS or not isinstance(whole, str)


@pytest.mark.parametrize("name", WEIGHT_FORMATS)
@given(pick=st.integers(0, 1), edits=EDITS)
@example(pick=0, edits=[])
def test_damaged_weights_are_printed_numbers_or_refused(
    name: str, path: Path, pick: int, edits: list[Edit]
) -> None:
    content = edited(weight_samples(name)[pick], edits)
    path.write_bytes(content)
    weights = outcome(lambda: dict(read_weights(path, format=name)), path)
    if isinstance(weights, str):
        assert edits
        return
    values = np.abs(list(weights.values()))
    assert np.isfinite(values).all()
    assert set(values.tolist()) <= printed_numbers(content.removeprefix(b"\xef\xbb\xbf"))


def content_of(tables: list[NBest]) -> dict[str, Any]:
    """Return all that some tables hold, as it can be compared."""
    lists = concatenate(tables, fill_missing=True)
    texts = [lists.text(row) for row in range(len(lists.features))]
    return {**table_content(lists, "strings", "string_index"), "texts": texts}


def printed_numbers(content: bytes) -> set[float]:
    """Return the numbers of a file without their signs."""
    return {abs(float(token)) for token in BETWEEN.split(content) if NUMBER.fullmatch(token)}


def check_same(one: Any, two: Any) -> None:
    """Compare the outcomes in one part and in several; either fault may be reported first."""
    if isinstance(one, str) and isinstance(two, str):
        return
    assert not isinstance(one, str), one
    if isinstance(two, str):
        assert any(limit in two for limit in LIMITS), two
        return
    assert [name for name in {**one, **two} if one.get(name) != two.get(name)] == []


def check_blocks(name: str, options: Any, start: bytes, content: bytes, path: Path) -> None:
    """Compare a sound file with a damaged one behind it in one block with the same in two.

    What a reader knows of its first block may let it read others in another, faster way.
    """
    text = content.removeprefix(b"\xef\xbb\xbf")
    if name in HEADED:
        text = text[text.find(b"\n") + 1 :]
    if not text:
        return
    text = text if text.endswith(b"\n") else text + b"\n"
    one = outcome(lambda: columns_of([start + text], path, **options), path)
    # Arrow reads short blocks of Moses too, as otherwise only long ones.
    with mock.patch.object(moses, "_ARROW_FROM", 0):
        two = outcome(lambda: columns_of([start, text], path, **options), path)
    check_same(one, two)


def columns_of(
    blocks: list[bytes], path: Path, format: NBestFormat, features: str | None
) -> dict[str, Any]:
    """Return the columns of a file that is read in some blocks."""
    schema = schema_of(format, Schema(str(path), roles=make_roles(features)))
    first = b"".join(blocks).partition(b"\n")[0]
    file: Any = SimpleNamespace(chunks=lambda size=None: iter(blocks), first_line=first)
    return content_of([next(build(format.blocks(file, schema), schema))])

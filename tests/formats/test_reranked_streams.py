"""Files reranked as a stream, and read at once: the same choices, or the same error."""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.posteriors import RecipeRecord, SourceRecord, name_weights, record_of

from bpa_ppl import Draws, Reranker, Weights, iter_nbest, read_nbest, rerank
from bpa_ppl.errors import DataError

Row = dict[str, Any]
LISTS, COLUMNS = 5, ("lm", "x", "w")
NOTES = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


def rows_of(rng: np.random.Generator, lists: int = LISTS) -> list[Row]:
    """Return three candidates a list, with numbers of a few digits and a system."""
    return [
        {"id": k, "text": f"t{k} {n}", "by": "uvw"[n]}
        | {name: round(float(rng.normal()), 3) for name in COLUMNS}
        for k in range(lists)
        for n in range(3)
    ]


def written(rows: list[Row], format: str, folder: Path) -> Path:
    """Write a file; a field that a row lacks is absent, or an empty cell."""
    path, table = folder / f"lists.{format}", pd.DataFrame(rows)
    if format == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif format == "parquet":
        table.to_parquet(path, row_group_size=2)
    else:
        table.to_csv(path, index=False)
    return path


def outcome(lists: Any, posterior: Draws, **options: Any) -> Any:
    """Return the choices as lines, or the message of the error where there is one."""
    try:
        return list(rerank(lists(), posterior, unchecked=True, **options).json_lines())
    except DataError as error:
        return str(error)


#: Where a column lacks values: first and last list, and candidates of these.
GAPS = {
    "lost": [(k, n) for k in range(3, LISTS) for n in range(3)],
    "lost once": [(3, 1)],
    "late": [(k, n) for k in range(2) for n in range(3)],
    "late by one": [(0, 0)],
    "absent": [(k, n) for k in range(LISTS) for n in range(3)],
}


@NOTES
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("format", "column", "gap"),
    [
        *(("jsonl", *of) for of in product(("lm", "x", "w", "by", "reference", "other"), GAPS)),
        *product(("csv", "parquet"), ("x", "w", "by"), GAPS),
        *((format, "reference", "complete") for format in ("jsonl", "csv", "parquet")),
    ],
)
def test_choices_do_not_depend_on_how_a_file_is_read(
    format: str, column: str, gap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`x` and `lm` are free, `w` is fixed, `by` is a category, `other` has no weight."""
    monkeypatch.setattr("bpa_ppl.formats.parquet._BATCH", 2)
    rng = np.random.default_rng(3)
    rows = rows_of(rng)
    gaps = GAPS.get(gap, [])
    for place, row in enumerate(rows):
        row["other"] = round(float(rng.normal()), 3)
        if column == "reference":
            row["reference"] = f"t{place // 3} r"
        if divmod(place, 3) in gaps:
            del row[column]
    path = written(rows, format, tmp_path)
    features = ("x", "lm", "by=u", "by=v", "by=w")
    settings = {"column": "by", "values": ["u", "v", "w"]}
    source = SourceRecord(source="indicators", settings=settings, feature_names=features[2:])
    record = record_of(recipe=RecipeRecord(sources=(source,)))
    weights = rng.normal(1, 0.1, (4, 100, 5))
    posterior = name_weights(weights, features, fixed=Weights({"w": -1.0}), record=record)
    ways = [partial(iter_nbest, path, chunk=n) for n in ((1, 2) if format == "jsonl" else (2,))]
    for options in ({}, {"without": "x"}) if column == "x" else ({},):
        whole = outcome(partial(read_nbest, path), posterior, **options)
        assert [outcome(way, posterior, **options) for way in ways] == [whole] * len(ways)
        fails = column in ("lm", "by") or (column == "x" and not options)
        fails = fails or (column == "w" and gap != "absent")
        assert isinstance(whole, str) == (fails and gap != "complete"), whole
        if isinstance(whole, str):
            k, n = gaps[0]
            if column == "w" and gap.startswith("late"):  # the first one is the rule
                k, n = (2, 0) if gap == "late" else (0, 1)
            assert f"candidates[{n}] of list {k} has" in whole
            assert f" {column}, " in whole


@NOTES
def test_a_file_of_many_lists(tmp_path: Path) -> None:
    """The lists of the default size of tables are not all of the file."""
    rows = rows_of(np.random.default_rng(4), lists=200)
    draws = name_weights(np.ones((1, 4, 3)), COLUMNS)
    for _ in ("complete", "without the last x"):
        path = written(rows, "jsonl", tmp_path)
        whole = outcome(partial(read_nbest, path), draws)
        assert outcome(partial(iter_nbest, path), draws) == whole
        rows[-1].pop("x", None)
    assert "candidates[2] of list 199 has no x, it has lm, w" in whole


@NOTES
def test_references_that_a_table_of_a_stream_lacks() -> None:
    lines = [f'{{"id": {k}, "text": "a", "lm": 1}}' for k in range(3)]
    lines[2] = lines[2].replace("{", '{"reference": "r", ')
    reranker = Reranker(name_weights(np.ones((1, 4, 1)), ("lm",)), unchecked=True)
    for lists in (iter_nbest(lines, chunk=1), read_nbest(lines)):
        assert reranker(lists).lists.references == ((), (), ("r",))

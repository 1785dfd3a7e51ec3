"""Lists as people have them: saved by Excel, with references in places, with empty lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import NBest, iter_nbest, read_nbest
from bpa_ppl.errors import BpaWarning, DataError

Write = Callable[..., Path]
BOTH = [{"text": "a cat", "lm": -1.5}, {"text": "cat", "lm": -2}]


def lines(*records: dict[str, Any]) -> list[str]:
    return [json.dumps(record) for record in records]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_semicolons_and_decimal_commas(write: Write, start: str) -> None:
    rows = ["id;text;lm;mqm;by", *(f"{k // 2};a, {k};{k},25;;x" for k in range(120))]
    rows[100] = "49;a, 99;3;-0,5;x"
    with pytest.warns(BpaWarning) as notes:
        nbest = read_nbest(write((start + "\r\n".join(rows)).encode()))
    assert sum("separated by ';'" in str(note.message) for note in notes) == 1
    assert nbest.features[:, 0].tolist() == [k + 0.25 if k != 99 else 3 for k in range(120)]
    assert (nbest.text(7), set(nbest.extras["by"])) == ("a, 7", {"x"})
    assert np.flatnonzero(~np.isnan(nbest.extras["mqm"])).tolist() == [99]
    for number in ("1.234,5", "1,234,5", "2.5"):
        bad = write(*rows[:50], f"60;b;{number};;x")
        with pytest.warns(BpaWarning), pytest.raises(DataError, match=f":51: .*{number}"):
            read_nbest(bad)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("separator", [",", "\t", ";"])
@pytest.mark.filterwarnings("ignore:.*separated by")
def test_lines_of_empty_cells_are_left_out(write: Write, separator: str) -> None:
    rows = ["id,text,lm,mqm", *(f"{k},t,{k},1" for k in range(70)), ",,,", "70,t,70,1", ",,,", ""]
    nbest = read_nbest(write(*(row.replace(",", separator) for row in rows)))
    assert nbest.sentence_ids.tolist() == list(range(71))
    assert nbest.feature_names == ("lm", "mqm")


@pytest.mark.filterwarnings("ignore:.*no reference for 1 sentence")
@pytest.mark.parametrize("name", ["reference", "references"])
def test_references_in_any_form(write: Write, name: str) -> None:
    several = ["the cat", "a cat"]
    records = [{name: "the cat"}, {name: several}, {name: []}, {}, {name: ["b"]}]
    nbest = read_nbest(
        write(*lines(*({**r, "candidates": BOTH} for r in [*records[:3], records[4]])))
    )
    assert nbest.references == (("the cat",), tuple(several), (), ("b",))
    nbest = read_nbest(
        write(*lines(*({"id": len(r), **r, "text": ["a", "b"]} for r in (records[1], records[3]))))
    )
    assert nbest.references == (tuple(several), ())
    nbest = read_nbest(write(f"id,text,{name}", "0,a,the cat", "0,b,", "1,a,"))
    assert nbest.references == (("the cat",), ())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("nothing", [{"candidates": []}, {"candidates": None}, {}])
def test_sentences_without_candidates(write: Write, nothing: dict[str, Any]) -> None:
    records = [
        {"id": k, "source": f"s{k}", **({"candidates": BOTH} if k in (0, 1, 3) else nothing)}
        for k in range(5)
    ]
    path = write(*lines(*records))
    with pytest.warns(BpaWarning, match="2 sentences without candidates, the first of id 2"):
        nbest = read_nbest(path)
    assert nbest.sentence_ids.tolist() == [0, 1, 3]
    assert nbest.sources == ("s0", "s1", "s3")
    empty: dict[int, str | None] = {}
    with pytest.warns(BpaWarning, match="without candidates"):
        parts = list(iter_nbest(path, chunk=1, empty=empty))
    assert [part.sentence_ids.tolist() for part in parts] == [[0], [1], [3]]
    assert empty == {2: "s2", 4: "s4"}
    with pytest.warns(BpaWarning, match="without candidates"):
        assert len(NBest.from_records(records)) == 3

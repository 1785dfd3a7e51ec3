"""JSON lines with the same fields are read as the same lines read record by record."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.table_content import table_content

from bpa_ppl import read_nbest
from bpa_ppl.errors import DataError
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.formats.uniform_lines import uniform_columns

VALUES = st.sampled_from(
    [-1.5, 2, 0, 1e39, 10**30, "a", "7", "", None, True, [], ["r"], {"x": 1}, [1], float("nan")]
)
NAMES = st.sampled_from(["lm", "by", "total", "id", "source", "references", "doc", "text", 'q"'])
CANDIDATE = st.fixed_dictionaries({"text": st.sampled_from(["a cat", "été\n", ""])})


@st.composite
def files(draw: st.DrawFn) -> list[str]:
    """Draw lines that mostly have the fields of the first one."""
    more = draw(st.dictionaries(st.sampled_from(["lm", "by", "total"]), VALUES, max_size=2))
    whole = draw(st.dictionaries(NAMES, VALUES, max_size=2))
    long, lines = draw(st.booleans()), []
    for number in range(draw(st.integers(1, 4))):
        candidates = [{**draw(CANDIDATE), **more} for _ in range(draw(st.integers(0, 2)))]
        if candidates and draw(st.integers(0, 3)) == 0:
            candidates[-1][draw(NAMES)] = draw(VALUES)
        record: dict[str, Any] = {"id": number, **whole, "candidates": candidates}
        if long:
            record = {"id": number, **whole, **(candidates or [{"text": "b", **more}])[0]}
        if draw(st.integers(0, 5)) == 0:
            record[draw(NAMES)] = draw(VALUES)
        if draw(st.integers(0, 5)) == 0:
            record.popitem()
        line = json.dumps(record)
        repeated = line.replace("{", '{"lm": 1, "lm": 1, ', 1)
        lines.append(draw(st.sampled_from([line] * 9 + [repeated, "", line[:-1]])))
    return lines


def outcome(lines: list[str], bad: str, record_by_record: bool) -> Any:
    """Return what is read, or the error."""
    # Lines whose fields have other names are read record by record.
    format = Jsonl(candidates="of") if record_by_record else "jsonl"
    if record_by_record:
        lines = [line.replace('"candidates"', '"of"') for line in lines]
    try:
        with warnings.catch_warnings(action="ignore"):
            return table_content(read_nbest(lines, format=format, bad=bad))
    except DataError as error:
        return error.code, error.line, error.parameter


@pytest.mark.usefixtures("small_blocks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.sampled_from(["error", "drop"]))
def test_they_are_read_as_records_are(lines: list[str], bad: str) -> None:
    assert outcome(lines, bad, False) == outcome(lines, bad, True)


def test_lines_of_the_same_fields_in_any_order_are_decoded_at_once() -> None:
    uniform = uniform_columns({"id": 3, "candidates": [{"text": "a", "lm": -1}]})
    line = b'{"candidates": [{"lm": 2.5, "text": "a"}], "id": 4}\n'
    fields = uniform(line * 2, [5, 6])
    assert fields is not None
    assert fields.candidates["lm"].tolist() == [2.5, 2.5]
    assert (fields.line.tolist(), fields.parent.tolist()) == ([5, 6], [0, 1])
    for old, new in ((b"2.5", b"null"), (b"2.5", b'"2"'), (b'"lm"', b'"tm"'), (b"[", b"[1")):
        assert uniform(line.replace(old, new), [5]) is None

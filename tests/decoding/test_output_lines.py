"""Output lines aligned with the source: gaps, order and the end of the text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bpa_ppl.decoding import AlignedWriter, Reranked
from bpa_ppl.errors import DataError, UsageError

SOURCES = ("null", "eins", "zwei", "drei", "vier", "fünf")


def choices(*ids: int) -> Reranked:
    zeros = np.zeros(len(ids))
    texts = [f"text {identifier}" for identifier in ids]
    whole = zeros.astype(np.int64)
    return Reranked(np.array(ids), whole, zeros, whole, zeros, texts, texts, [()] * len(ids))


def written_lines(lines: AlignedWriter, *parts: Reranked) -> list[str]:
    texts = [line for part in parts for line in lines.lines(part)]
    return [line.removesuffix("\n") for line in (*texts, *lines.rest())]


@pytest.mark.parametrize("first_id", [0, 1])
def test_one_line_per_sentence(first_id: int) -> None:
    ids = [number + first_id for number in (1, 2, 4)]
    parts = choices(*ids[:2]), choices(ids[2])
    one, two, four = (f"text {identifier}" for identifier in ids)
    filled = AlignedWriter("source", SOURCES, first_id)
    assert written_lines(filled, *parts) == ["null", one, two, "drei", four, "fünf"]
    assert filled.filled == 3
    assert written_lines(AlignedWriter("empty", SOURCES, first_id), *parts) == [
        "",
        one,
        two,
        "",
        four,
        "",
    ]
    assert written_lines(AlignedWriter("empty", None, first_id), *parts) == ["", one, two, "", four]


@pytest.mark.parametrize("gaps", ["error", "empty", "source"])
def test_lists_without_gaps_are_unchanged(gaps: str) -> None:
    lines = AlignedWriter(gaps, SOURCES)
    assert written_lines(lines, choices(0, 1, 2), choices(3, 4, 5)) == [
        f"text {n}" for n in range(6)
    ]
    assert lines.filled == 0


@pytest.mark.parametrize(
    ("ids", "missing"), [((1, 2), 0), ((0, 2), 1), ((0, 1, 2, 3, 4), 5)], ids=["begin", "in", "end"]
)
def test_gap_raises_without_replacement(ids: tuple, missing: int) -> None:
    with pytest.raises(DataError, match=f"^no list for sentence {missing}, ") as refused:
        written_lines(AlignedWriter("error", SOURCES), choices(*ids))
    assert refused.value.parameter == "gaps"


def test_lines_are_in_the_order_of_ids() -> None:
    lines = AlignedWriter("error", SOURCES)
    parts = choices(4, 0, 2), choices(1, 5), choices(3)
    line_counts = [len(list(lines.lines(part))) for part in parts]
    assert line_counts == [1, 2, 3]  # lines are written as soon as possible
    assert written_lines(AlignedWriter("error", SOURCES), *parts) == [f"text {n}" for n in range(6)]
    filled = written_lines(AlignedWriter("source", SOURCES), choices(4, 1), choices(2))
    assert filled == ["null", "text 1", "text 2", "drei", "text 4", "fünf"]


@pytest.mark.parametrize("parts", [[(0, 1), (1,)], [(0, 2), (3, 2)]])
def test_rejects_second_list_of_a_sentence(parts: list[tuple]) -> None:
    with pytest.raises(DataError, match=f"^a second list of sentence {parts[1][-1]}: give each"):
        written_lines(AlignedWriter("empty", SOURCES), *(choices(*p) for p in parts))


def test_messages_name_original_ids() -> None:
    def named(*ids: str) -> Reranked:
        numbers = [int(identifier.partition(":")[2]) for identifier in ids]
        return replace(choices(*numbers), ids=list(ids))

    with pytest.raises(DataError, match="no list for line 3 of the sources, after sentence doc:1,"):
        written_lines(AlignedWriter("error", SOURCES), named("doc:0", "doc:1"))
    with pytest.raises(DataError, match="a second list of sentence doc:1: give each"):
        written_lines(AlignedWriter("empty"), named("doc:0", "doc:1"), named("doc:1"))


def test_rejects_invalid_arguments() -> None:
    with pytest.raises(UsageError, match="unknown policy for gaps 'skip'") as refused:
        AlignedWriter("skip")
    assert (refused.value.parameter, refused.value.code) == ("gaps", "unknown-name")
    with pytest.raises(UsageError) as refused:
        AlignedWriter("source")
    assert (refused.value.parameter, refused.value.code) == ("sources", "missing-sources")
    with pytest.raises(DataError, match="no source for sentence 1: give the sources of this text"):
        written_lines(AlignedWriter("source", ["null"]), choices(0, 2))
    with pytest.raises(DataError, match="sentence id 0 is below the first id, 1") as below:
        written_lines(AlignedWriter("empty", first_id=1), choices(0))
    assert below.value.parameter == "first_id"
    with pytest.raises(DataError, match="no list for sentences 0 to 4611686018427387903: correct"):
        written_lines(AlignedWriter("empty"), choices(2**62))

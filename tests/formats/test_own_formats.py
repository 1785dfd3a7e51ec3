"""Formats of a third party: found by content, by name and by suffix, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TextIO

import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import NBest, iter_nbest, read_nbest, read_weights, write_nbest, write_weights
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.format import NBEST_FORMATS, WEIGHT_FORMATS, NBestFormat, WeightFormat
from bpa_ppl.formats.schema import Schema


class Toy(NBestFormat, frozen=True):
    """`#toy` in the first line, then id, text and feature by tabs."""

    digits: int = 17

    def detect(self, first_line: bytes) -> bool:
        return first_line.startswith(b"#toy")

    def records(self, lines: Iterator[str], schema: Schema) -> Iterator[dict[str, Any]]:
        for line in lines:
            if not line.startswith("#"):
                identifier, text, value = line.split("\t")
                yield {"id": int(identifier), "text": text, "Toy0": float(value)}

    def write(self, nbest: NBest, file: TextIO) -> None:
        file.write("#toy\n")
        for s, identifier in enumerate(nbest.sentence_ids):
            for text, value in zip(nbest.texts(s), nbest.features[nbest.rows(s), 0], strict=True):
                print(identifier, text, f"{value:.{self.digits}g}", sep="\t", file=file)


class Blanks(NBestFormat, frozen=True):
    """A line is the name of a sentence and its candidates; not registered."""

    def records(self, lines: Iterator[str], schema: Schema) -> Iterator[dict[str, Any]]:
        for line in lines:
            name, *texts = line.split()
            candidates = [{"text": text, "rank": rank} for rank, text in enumerate(texts)]
            yield {"id": name, "candidates": candidates}


class ToyWeights(WeightFormat, frozen=True):
    """Lines `name: value`."""

    suffixes: ClassVar[tuple[str, ...]] = (".toy", ".pairs")

    def detect(self, text: str) -> bool:
        return text.startswith("%toy")

    def parse(self, text: str, origin: str) -> list[tuple[str, float]]:
        pairs = [line.split(": ") for line in text.splitlines()[1:]]
        return [(name, float(value)) for name, value in pairs]

    def write(self, weights: Mapping[str, float], file: TextIO) -> None:
        file.write("%toy\n" + "".join(f"{n}: {value!r}\n" for n, value in weights.items()))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    NBEST_FORMATS.register("toy", Toy)
    WEIGHT_FORMATS.register("toy", ToyWeights)
    yield
    del NBEST_FORMATS.registered["toy"]
    del WEIGHT_FORMATS.registered["toy"]


def test_it_is_written_by_name_and_with_settings(write: Write, tmp_path: Path) -> None:
    """Candidates of many sentences become columns in parts."""
    lists = read_nbest(write("#toy", *(f"{n // 2}\ttext {n % 3}\t{n / 7}" for n in range(3000))))
    assert (len(lists), len(lists.strings), lists.feature_names) == (1500, 3, ("Toy0",))
    write_nbest(lists, tmp_path / "again.gz", format="toy")
    again = read_nbest(tmp_path / "again.gz")
    assert again.features.tolist() == lists.features.tolist()
    write_nbest(lists, tmp_path / "short", format=Toy(digits=2))
    assert (tmp_path / "short").read_text().splitlines()[2] == "0\ttext 1\t0.14"


def test_a_record_may_have_candidates(write: Write) -> None:
    path = write("a x y", "b z")
    lists = read_nbest(path, format=Blanks())
    assert (lists.ids, lists.texts(0), lists.feature_names) == (("a", "b"), ["x", "y"], ("rank",))
    assert lists.features.tolist() == [[0], [1], [0]]
    parts = list(iter_nbest(path, format=Blanks(), chunk=1))
    assert [part.texts(0) for part in parts] == [["x", "y"], ["z"]]
    with raises(DataError, "bad-line", line=2, match="not enough values"):
        read_nbest(write("a x", ""), format=Blanks())
    with raises(UsageError, "not-supported", parameter="format", match="Blanks"):
        write_nbest(lists, path, format=Blanks())


@pytest.mark.usefixtures("small_blocks")
def test_a_line_that_cannot_be_read_is_named(write: Write) -> None:
    for wrong in ("1\ta", "1\ta\tx", b"\xff\n"):
        code = "bad-line" if isinstance(wrong, str) else "bad-encoding"
        with raises(DataError, code, line=3):
            read_nbest(write("#toy", "0\ta\t1", wrong, "1\ta\t2"))


def test_weights_are_found_by_content_and_suffix(tmp_path: Path) -> None:
    weights = {"LM0": 0.1, "W0": 1 / 3}
    for name, format in (("w.toy", "auto"), ("w.pairs", "auto"), ("w", "toy")):
        write_weights(weights, tmp_path / name, format=format)
        assert (tmp_path / name).read_text().startswith("%toy\nLM0: 0.1\n")
        assert dict(read_weights(tmp_path / name)) == weights
    assert dict(read_weights(tmp_path / "w", format=ToyWeights())) == weights
    with raises(UsageError, "not-supported", parameter="template"):
        write_weights(weights, "-", template=tmp_path / "w", format="toy")

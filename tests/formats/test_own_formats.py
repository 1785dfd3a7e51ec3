"""Formats of a third party: found by content, by name and by suffix, read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np
import pytest
from raising import raises

from bpa_ppl import NBest, read_nbest, read_weights, write_nbest, write_weights
from bpa_ppl.arrays import Float64
from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats import NBEST_FORMATS, WEIGHT_FORMATS, NBestFormat, WeightFormat
from bpa_ppl.rows import ReadOptions

Write = Callable[..., Path]


class Toy(NBestFormat, frozen=True):
    """`#toy` in the first line, then id, text, feature, total and spans by tabs."""

    digits: Count = 17

    def detect(self, first_line: bytes) -> bool:
        return first_line.startswith(b"#toy")

    def records(self, lines: Iterator[str], options: ReadOptions) -> Iterator[dict[str, Any]]:
        for line in lines:
            if not line.startswith("#"):
                identifier, text, value, total, spans = line.split("\t")
                numbers = {"Toy0": float(value), "total": float(total)}
                more = self.extras(int(identifier), spans.split())
                yield {"id": int(identifier), "text": text, **numbers, **more}

    def extras(self, identifier: int, spans: list[str]) -> dict[str, Any]:
        return {"spans": tuple(spans)}

    def write(self, nbest: NBest, file: TextIO) -> None:
        file.write("#toy\n")
        spans = nbest.extras["spans"]
        assert nbest.totals is not None
        for s, identifier in enumerate(nbest.sentence_ids):
            for h in range(nbest.rows(s).start, nbest.rows(s).stop):
                numbers = (nbest.features[h, 0], nbest.totals[h])
                cells = (*(f"{x:.{self.digits}g}" for x in numbers), " ".join(spans[h]))
                print(identifier, nbest.text(h), *cells, sep="\t", file=file)


class ToyWeights(WeightFormat, frozen=True):
    """`name: value` lines, as in YAML."""

    suffixes: ClassVar[tuple[str, ...]] = (".toy", ".yaml")

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
    del NBEST_FORMATS._members["toy"]
    del WEIGHT_FORMATS._members["toy"]


def line(identifier: int, number: int) -> str:
    row = f"{identifier}\ttext {number % 3}\t{number}\t{-number}"
    return f"{row}\t{' '.join(map(str, range(number)))}"


@pytest.fixture
def path(write: Write) -> Path:
    """A file of lists of 1, 2, 3 and 4 hypotheses; the n-th hypothesis has n spans."""
    ids = [s for s in range(4) for _ in range(s + 1)]
    return write("#toy", *(line(s, n) for n, s in enumerate(ids)))


def assert_toy(nbest: NBest) -> None:
    """Assert that each value of each column is that of its hypothesis."""
    numbers = nbest.features[:, 0].astype(int).tolist()
    assert nbest.extras["spans"] == tuple(tuple(map(str, range(number))) for number in numbers)
    assert [nbest.text(h) for h in range(len(numbers))] == [f"text {n % 3}" for n in numbers]


def test_it_is_written_by_name_and_with_settings(path: Path, tmp_path: Path) -> None:
    nbest = read_nbest(path)
    write_nbest(nbest, tmp_path / "again.gz", format="toy")
    again = read_nbest(tmp_path / "again.gz")
    assert_toy(again)
    assert again.totals is not None
    assert again.totals.tolist() == nbest.totals.tolist()  # type: ignore[union-attr]
    write_nbest(nbest, tmp_path / "short", {"Toy0": 1 / 3}, format=Toy(digits=2))
    assert (tmp_path / "short").read_text().splitlines()[2] == "1\ttext 1\t1\t0.33\t0"
    with raises(UsageError, "unknown-name", parameter="format"):
        write_nbest(nbest, tmp_path / "other", format="xml")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("wrong", "code"),
    [("1\ta", "bad-line"), ("1\ta\tx\t1\t0", "bad-line"), (b"\xff\n", "bad-encoding")],
)
def test_a_line_that_cannot_be_read_is_named(write: Write, wrong: str | bytes, code: str) -> None:
    with raises(DataError, code, line=3):
        read_nbest(write("#toy", line(0, 1), wrong, line(1, 2)))


def test_sources_belong_to_ids(path: Path, write: Write) -> None:
    sources = [f"s{i}" for i in range(4)]
    nbest = read_nbest(path, sources=sources)
    assert nbest.sources == tuple(sources)
    file = write("a", "b", "c", "d", name="src")
    both = read_nbest(path, sources=file, references=[("x",)] * 4)
    assert [part.sources for part in both.chunks(3)] == [("a", "b", "c"), ("d",)]
    with raises(DataError, parameter="sources", line=8, match="sentence id 3.*src has 3"):
        read_nbest(path, sources=write("a", "b", "c", name="src"))
    with raises(UsageError, "wrong-type", parameter="sources"):
        read_nbest(path, sources=[("a",)] * 4)  # type: ignore[list-item]


def test_weights_are_found_by_content_and_suffix(tmp_path: Path) -> None:
    values: Float64 = np.array([0.1, 1 / 3])
    weights = dict(zip(("LM0", "W0"), values.tolist(), strict=True))
    for name in ("w.toy", "w.yaml"):
        write_weights(weights, tmp_path / name)
        assert (tmp_path / name).read_text().startswith("%toy\nLM0: 0.1\n")
        assert dict(read_weights(tmp_path / name)) == weights
    write_weights(weights, tmp_path / "w", format="toy")
    assert dict(read_weights(tmp_path / "w", format=ToyWeights())) == weights
    write_weights(weights, tmp_path / "w.txt")
    assert (tmp_path / "w.txt").read_text().startswith("LM0= 0.1\n")
    with raises(UsageError, "not-supported", parameter="template"):
        write_weights(weights, "-", template=tmp_path / "w", format="toy")
    with raises(UsageError, "unknown-name", parameter="format"):
        read_weights(tmp_path / "w", format="xml")


def test_many_sentences_become_columns_in_parts(write: Write) -> None:
    lists = read_nbest(write("#toy", *(line(n // 2, n % 5) for n in range(3000))))
    assert (len(lists), len(lists.strings)) == (1500, 3)
    assert lists.features[:, 0].tolist() == [n % 5 for n in range(3000)]

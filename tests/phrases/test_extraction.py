"""Phrase extraction, compared with its definition and with the counts of another program."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import DataError, UsageError
from bpa_ppl.phrases.extraction import PairCounter, extract_phrases
from bpa_ppl.phrases.tables import PhraseCounts, read_counts

Pair = tuple[list[str], list[str], list[tuple[int, int]]]


def write_corpus(folder: Path, pairs: list[Pair]) -> list[Path]:
    """Write aligned sentences, and return the three paths."""
    columns = {
        "fr": [" ".join(source) for source, _, _ in pairs],
        "en": [" ".join(target) for _, target, _ in pairs],
        "align": [" ".join(f"{a}-{b}" for a, b in points) for _, _, points in pairs],
    }
    for name, lines in columns.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return [folder / name for name in columns]


def reference_counts(pairs: list[Pair], longest: int) -> Counter[tuple[str, str]]:
    """Count all pairs of spans that are consistent with the alignment."""
    result: Counter[tuple[str, str]] = Counter()
    for source, target, points in pairs:
        spans = [
            [
                (b, e)
                for b in range(len(side))
                for e in range(b + 1, min(b + longest, len(side)) + 1)
            ]
            for side in (source, target)
        ]
        for (b, e), (c, d) in product(*spans):
            inside = [(b <= s < e, c <= t < d) for s, t in points]
            if any(i and j for i, j in inside) and all(i == j for i, j in inside):
                result[" ".join(source[b:e]), " ".join(target[c:d])] += 1
    return result


def counts_by_text(table: PhraseCounts) -> dict[tuple[str, str], float]:
    """Return the counts by pairs of texts."""
    sides = (table.texts("source").to_pylist(), table.texts("target").to_pylist())
    return dict(zip(zip(*sides, strict=True), table.count.tolist(), strict=True))


def random_pairs(number: int, rng: np.random.Generator) -> list[Pair]:
    """Return sentence pairs over a few words, with unaligned words."""
    pairs: list[Pair] = []
    for _ in range(number):
        source, target = ([str(w) for w in rng.integers(5, size=rng.integers(9))] for _ in "st")
        grid = rng.random((len(source), len(target))) < 0.2
        pairs.append((source, target, [(int(a), int(b)) for a, b in np.argwhere(grid)]))
    return pairs


@pytest.mark.parametrize("longest", [1, 2, 5, 9])
def test_pairs_agree_with_definition(longest: int, tmp_path: Path) -> None:
    pairs = random_pairs(150, np.random.default_rng(longest))
    table = extract_phrases(*write_corpus(tmp_path, pairs), max_length=longest)
    assert counts_by_text(table) == reference_counts(pairs, longest)
    assert table.total == sum(reference_counts(pairs, longest).values())
    ordered = list(zip(table.source.tolist(), table.target.tolist(), strict=True))
    assert ordered == sorted(ordered)
    assert table.sources.to_pylist() == sorted(table.sources.to_pylist())


def test_keep_selects_sentences(tmp_path: Path) -> None:
    pairs = random_pairs(60, np.random.default_rng(1))
    keep = np.arange(60) % 3 == 0
    table = extract_phrases(*write_corpus(tmp_path, pairs), keep=keep)
    assert counts_by_text(table) == reference_counts(pairs[::3], 5)
    with pytest.raises(UsageError, match="59 values, but there are 60"):
        extract_phrases(*write_corpus(tmp_path, pairs), keep=keep[1:])


def test_counts_are_summed_over_chunks(tmp_path: Path) -> None:
    pairs = random_pairs(60, np.random.default_rng(2)) * 400
    reports: list[tuple[int, int]] = []
    table = extract_phrases(
        *write_corpus(tmp_path, pairs),
        progress=lambda done, total, note: reports.append((done, total)),
    )
    assert counts_by_text(table) == {
        pair: 400 * n for pair, n in reference_counts(pairs[:60], 5).items()
    }
    assert reports == [(20_000, 24_000), (24_000, 24_000)]


def test_pair_counter() -> None:
    counter, rng = PairCounter(max_pending=150), np.random.default_rng(0)
    numbers = rng.integers(4, size=(3, 100, 2), dtype=np.int32)
    for part in numbers:
        counter.add(part[:, 0], part[:, 1])
    pairs, counts = counter.counted()
    expected = Counter((int(a) << 32) + int(b) for a, b in numbers.reshape(-1, 2))
    assert dict(zip(pairs.tolist(), counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("text", "counts"), [("dev", "dev"), pytest.param("train", "in", marks=pytest.mark.slow)]
)
def test_counts_agree_with_another_program(text: str, counts: str, shared_data: Path) -> None:
    folder = shared_data / "phrases"
    paths = [folder / "corpora" / f"captions.{text}.{end}.xz" for end in ("fr", "en", "align")]
    ours = extract_phrases(*paths)
    theirs = read_counts(folder / "phrases" / f"captions.{counts}.extract.xz")
    assert ours.sources.equals(theirs.sources)
    assert ours.targets.equals(theirs.targets)
    for name in ("source", "target", "count", "source_count", "target_count"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@pytest.mark.slow
def test_totals_of_the_general_corpus(shared_data: Path) -> None:
    folder = shared_data / "phrases"
    table = extract_phrases(*(folder / f"corpora/out.{end}.xz" for end in ("fr", "en", "align")))
    assert (len(table), table.total) == (9_768_976, 21_400_935)
    part = read_counts(
        folder / "phrases/out.extract.captions.xz",
        source_counts=folder / "phrases/out.marginals.captions.src.xz",
        target_counts=folder / "phrases/out.marginals.captions.tgt.xz",
    )
    np.testing.assert_array_equal(table.count[table.rows_of(part)], part.count)
    for side in ("source", "target"):
        numbers = table.numbers_of(side, part.phrases(side))
        np.testing.assert_array_equal(table.marginal(side)[numbers], part.marginal(side))


@pytest.mark.parametrize(
    ("alignment", "line", "message"),
    [
        ("0-0\n0-3\n", 2, "a point of '0-3' is outside the sentences of 1 and 2 words"),
        ("0-0\n1-0\n", 2, "a point of '1-0' is outside"),
        ("0-0\n99999999999999999999-0\n", 2, "is outside"),
        ("0-\n0-0\n", 1, "must be like 0-0 1-2, not '0-'"),
        ("0-0\n0-0-1\n", 2, "not '0-0-1'"),
        ("0--1\n0-0\n", 1, "not '0--1'"),
        ("0 0\n0-0\n", 1, "not '0 0'"),
        ("a-b\n0-0\n", 1, "not 'a-b'"),
        ("-1-0\n0-0\n", 1, "not '-1-0'"),
        ("\n\n", None, "no phrase pair is consistent"),
        ("0-0\n", None, "1 lines, and .*fr has more"),
        ("0-0\n0-0\n0-0\n", None, "2 lines, and .*align has more"),
    ],
)
def test_rejects_invalid_alignments(
    alignment: str, line: int | None, message: str, tmp_path: Path
) -> None:
    paths = write_corpus(tmp_path, [(["a", "b"], ["x"], []), (["a"], ["x", "y"], [])])
    paths[2].write_text(alignment, "utf-8")
    with pytest.raises(DataError, match=message) as raised:
        extract_phrases(*paths)
    assert raised.value.line == line


def test_rejects_invalid_text_and_lengths(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, [(["a"], ["x"], [(0, 0)])])
    with pytest.raises(UsageError, match="max_length must be at least 1"):
        extract_phrases(*paths, max_length=0)
    paths[0].write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match="fr:1: byte 0xe9 is not UTF-8"):
        extract_phrases(*paths)
    for path in paths:
        path.write_text("")
    with pytest.raises(DataError, match="fr: the file is empty"):
        extract_phrases(*paths)


def test_spaces_and_blank_lines(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("fr", "en", "align")]
    texts = ("\tle  chat\u00a0noir \r\n\n", " the  cat\r\n\n", " 0-0 \t1-1\r\n\n")
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    assert counts_by_text(extract_phrases(*paths)) == {
        ("le", "the"): 1,
        ("chat\u00a0noir", "cat"): 1,
        ("le chat\u00a0noir", "the cat"): 1,
    }

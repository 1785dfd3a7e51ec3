"""Phrase extraction, compared with its definition and with the counts of another program."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.language_models import model_of
from support.phrase_pairs import counts_by_pair, pairs_of
from support.raising import raises

from bpa_ppl import DataError, UsageError
from bpa_ppl.extras.phrases.extraction import extract_phrases, select_lines

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


def random_pairs(number: int, rng: np.random.Generator) -> list[Pair]:
    """Return sentence pairs over a few words, with unaligned words."""
    pairs: list[Pair] = []
    for _ in range(number):
        source, target = ([str(w) for w in rng.integers(5, size=rng.integers(9))] for _ in "st")
        grid = rng.random((len(source), len(target))) < 0.2
        pairs.append((source, target, [(int(a), int(b)) for a, b in np.argwhere(grid)]))
    return pairs


@pytest.mark.parametrize("longest", [2, 5])
def test_pairs_agree_with_definition(longest: int, tmp_path: Path) -> None:
    pairs = random_pairs(150, np.random.default_rng(longest))
    table = extract_phrases(*write_corpus(tmp_path, pairs), max_length=longest)
    assert counts_by_pair(table) == reference_counts(pairs, longest)
    assert table.total == sum(reference_counts(pairs, longest).values())
    assert pairs_of(table) == sorted(pairs_of(table))
    keep = np.arange(150) % 3 == 0
    table = extract_phrases(*write_corpus(tmp_path, pairs), max_length=longest, keep=keep)
    assert counts_by_pair(table) == reference_counts(pairs[::3], longest)


def test_counts_are_summed_over_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl.extras.phrases.extraction.MAX_PENDING", 1000)
    pairs = random_pairs(60, np.random.default_rng(2)) * 400
    reports: list[tuple[int, int]] = []
    table = extract_phrases(
        *write_corpus(tmp_path, pairs),
        progress=lambda done, total, note: reports.append((done, total)),
    )
    expected = reference_counts(pairs[:60], 5)
    assert counts_by_pair(table) == {pair: 400 * n for pair, n in expected.items()}
    assert reports == [(20_000, 20_000), (24_000, 24_000)]


MALFORMED = ("0-", "0-0-1", "0--1", "0 0", "a-b", "-1-0")
OUTSIDE = ("0-3", "1-0", "99999999999999999999-0")


@pytest.mark.parametrize(
    ("alignment", "code", "line"),
    [
        *[(f"0-0\n{points}\n", "bad-line", 2) for points in MALFORMED],
        *[(f"0-0\n{points}\n", "mismatch", 2) for points in OUTSIDE],
        ("\n\n", "mismatch", None),
        ("0-0\n", "wrong-length", None),
        ("0-0\n0-0\n0-0\n", "wrong-length", None),
    ],
)
def test_rejects_invalid_alignments(
    alignment: str, code: str, line: int | None, tmp_path: Path
) -> None:
    paths = write_corpus(tmp_path, [(["a", "b"], ["x"], []), (["a"], ["x", "y"], [])])
    paths[2].write_text(alignment, "utf-8")
    with raises(DataError, code, line=line):
        extract_phrases(*paths)


def test_rejects_invalid_text_and_lengths(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, [(["a"], ["x"], [(0, 0)])])
    with raises(UsageError, parameter="max_length"):
        extract_phrases(*paths, max_length=0)
    paths[0].write_bytes(b"caf\xe9\n")
    with raises(DataError, "bad-encoding", line=1, match="fr:1: byte 0xe9"):
        extract_phrases(*paths)
    for path in paths:
        path.write_text("")
    with raises(DataError, "no-data"):
        extract_phrases(*paths)


def test_lines_with_the_lowest_perplexity_are_selected(tmp_path: Path) -> None:
    model, path = model_of(["the cat sat", "the dog sat", "a cat ran"], 2), tmp_path / "en"
    lines = ["pursuant to section 4", "the cat ran", "", "a dog sat", "hon. members", "the cat ran"]
    path.write_text("".join(f"{line}\n" for line in lines))
    perplexities = [np.exp(-model.by_word([line.split()])[0].mean()) for line in lines]
    # Of equal lines, the first ones are selected, and at least one line.
    order = np.argsort(perplexities, kind="stable")
    for share, count in ((0.5, 3), (0.3, 2), (0.01, 1), (1.0, 6)):
        chosen = np.flatnonzero(select_lines(model, path, share))
        assert chosen.tolist() == sorted(order[:count])
    # ⌈0.07 · 100⌉ is 7, though the product of floats is more than 7.
    path.write_text("the cat ran\n" * 100)
    for share, count in ((0.07, 7), (0.071, 8), (0.57, 57), (1.0, 100)):
        assert select_lines(model, path, share).sum() == count
    for share in (0.0, 1.1, float("nan")):
        with raises(UsageError, parameter="keep"):
            select_lines(model, path, share)

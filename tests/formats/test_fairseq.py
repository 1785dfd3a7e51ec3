"""What fairseq prints: lines of sentences in any order, between those of its log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from raising import raises

from bpa_ppl import read_nbest
from bpa_ppl.errors import BpaWarning, DataError

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("score", "logprob.sum", "logprob.mean", "logprob.min", "length")
Write = Callable[..., Path]


def lines(identifier: int, *texts: str, letters: str = "STHDP", score: str = "-0.5") -> list[str]:
    """Return the lines of one sentence."""
    found = [f"S-{identifier}\tsource {identifier}"] if "S" in letters else []
    found += [f"T-{identifier}\treference {identifier}"] if "T" in letters else []
    for text in texts:
        found += [f"H-{identifier}\t{score}\t{text}"] if "H" in letters else []
        found += [f"D-{identifier}\t{score}\t{text}."] if "D" in letters else []
        found += [f"P-{identifier}\t-1.0000 -0.2500"] if "P" in letters else []
        found += [f"A-{identifier}\t0-0"] if "A" in letters else []
    return found


def test_the_golden_file() -> None:
    nbest = read_nbest(GOLDEN / "generate-test.txt")
    assert nbest.feature_names == NAMES
    assert nbest.sentence_ids.tolist() == [2, 0]
    assert [nbest.texts(s) for s in range(2)] == [
        ["a black cat .", "black cat ."],
        ["H-1 hello", ""],
    ]
    assert nbest.sources == ("un chat noir", "bonjour")
    assert nbest.references == (("a black cat",), ("hello",))
    assert nbest.extras == {"alignment": ("0-0 2-1 1-2", "2-0 1-1", "0-0", "")}
    tokens = [[-0.5, -0.25, -0.125, -0.1317], [-1.5, -0.5, -1], [0, -0.0001, 0], [-12.5]]
    scores = [-0.2516743242740631, -1, -3.0517578125e-05, -12.5]
    expected = [
        [score, sum(t), sum(t) / len(t), min(t), len(t)]
        for score, t in zip(scores, tokens, strict=True)
    ]
    assert nbest.features.tolist() == np.float32(expected).tolist()
    assert nbest.totals is None


@pytest.mark.parametrize("letters", ["H", "D", "HD", "HP", "SH", "THP", "SDP", "HA", "STHDPA"])
def test_kinds_of_lines_that_a_file_may_lack(write: Write, letters: str) -> None:
    path = write(*lines(3, "a", "b", letters=letters), *lines(1, "c", letters=letters))
    nbest = read_nbest(path)
    dot = "." if "D" in letters else ""
    assert nbest.texts(0) == [f"a{dot}", f"b{dot}"]
    assert nbest.feature_names == (NAMES if "P" in letters else NAMES[:1])
    assert nbest.sources == (("source 3", "source 1") if "S" in letters else None)
    assert nbest.references == ((("reference 3",), ("reference 1",)) if "T" in letters else None)
    assert ("alignment" in nbest.extras) == ("A" in letters)


def interleaved(seed: int) -> tuple[list[str], dict[int, list[tuple[str, float, list[float]]]]]:
    """Return the lines of sentences between each other and a log, and the lists that they make."""
    rng = np.random.default_rng(seed)
    lists, waiting = {}, []
    for identifier in rng.permutation([*range(8, 13), *range(98, 102), 10**17]).tolist():
        found = []
        for k in range(rng.integers(1, 4)):
            tokens = np.round(-rng.exponential(size=rng.integers(1, 5)), 4).tolist()
            found.append((f"  é\t{identifier} {k} ", float(-rng.exponential()), tokens))
        lists[identifier] = found
        own = [f"S-{identifier}\tsource {identifier}"]
        for text, score, tokens in found:
            own += [f"H-{identifier}\t{score}\tnot this", f"D-{identifier}\t{score}\t{text}"]
            own += [f"P-{identifier}\t{' '.join(map(str, tokens))}"]
        waiting.append(own)
    printed = []
    while waiting:
        at = int(rng.integers(min(3, len(waiting))))
        printed += [waiting[at].pop(0)]
        printed += rng.choice(
            ["", "log", "T-", "H-x\t1", "S", "D-Day 1", "P-" + "1" * 20 + "x"], 1
        ).tolist()
        waiting = [own for own in waiting if own]
    return printed, lists


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("end", ["", "\r"])
def test_lists_are_found_whatever_stands_between_their_lines(
    write: Write, monkeypatch: pytest.MonkeyPatch, seed: int, end: str
) -> None:
    printed, lists = interleaved(seed)
    monkeypatch.setattr("bpa_ppl.formats.streams._BLOCK", 1)
    monkeypatch.setattr("bpa_ppl.formats.streams._CHUNK", 37 * (1 + 40 * (seed % 2)))
    nbest = read_nbest(write(*(line + end for line in printed)))
    assert sorted(nbest.sentence_ids.tolist()) == sorted(lists)
    for s, identifier in enumerate(nbest.sentence_ids.tolist()):
        expected = lists[identifier]
        assert nbest.texts(s) == [text.strip(" ") for text, _, _ in expected]
        rows = [
            [score, sum(tokens), sum(tokens) / len(tokens), min(tokens), len(tokens)]
            for _, score, tokens in expected
        ]
        np.testing.assert_allclose(nbest.features[nbest.rows(s)], rows, rtol=1e-6)
        assert nbest.sources is not None
        assert nbest.sources[s] == f"source {identifier}"


@pytest.mark.parametrize("tokens", ["-1 x", "-1 -inf", "-3e38 -3e38", "1_0"])
def test_bad_scores_of_tokens(write: Write, tokens: str) -> None:
    path = write("H-0\t-0.5\ta", "P-0\t-1", "H-0\t-0.5\tb", f"P-0\t{tokens}")
    with raises(DataError, "bad-number", parameter="bad", line=3):
        read_nbest(path)
    with pytest.warns(BpaWarning, match="1 hypothesis dropped"):
        assert read_nbest(path, bad="drop").texts(0) == ["a"]


@pytest.mark.parametrize(
    ("added", "code", "number"),
    [
        (["S-1\ts", "T-1\tr"], "bad-line", 6),
        (lines(1, "a")[1:], "wrong-length", 6),
        (lines(1, "a", letters="STHDPA"), "wrong-length", 6),
        (lines(1, "a", letters="STHD"), "wrong-length", 6),
        (lines(1, "a", letters="STHP"), "wrong-length", 6),
        (lines(1, "a", "b")[:-1], "wrong-length", 6),
        ([*lines(1, "a"), "S-1\tagain"], "wrong-length", 6),
        ([*lines(1, "a")[:4], "P-1\t"], "bad-line", 8),
        (["S-1\ts", b"T-1\t\xe9\n", *lines(1, "a")[2:]], "bad-encoding", 7),
    ],
)
def test_faults_are_named(write: Write, added: list[str | bytes], code: str, number: int) -> None:
    with raises(DataError, code, line=number):
        read_nbest(write(*lines(0, "a"), *added))


def test_sentences_that_are_too_far_apart(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl.formats.fairseq._INTERLEAVED", 2)
    blocks = [lines(i, f"t{i}") for i in (4, 2, 9)]
    late = [line for block in [*blocks, ["H-4\t-1\tlate"]] for line in block]
    first, other = lines(4, "t"), lines(2, "u")
    between = read_nbest(write(*first[:2], *other, *first[2:]))
    assert between.sentence_ids.tolist() == [4, 2]
    with raises(DataError, "duplicate", line=16):
        read_nbest(write(*late))

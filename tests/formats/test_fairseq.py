"""What fairseq prints: lines of sentences, between those of its log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.raising import raises
from support.user_files import Write

from bpa_ppl import read_nbest
from bpa_ppl.errors import BpaWarning, DataError

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("score", "logprob.sum", "logprob.mean", "logprob.min", "length")


def lines(identifier: int, *texts: str, letters: str = "STHDP", score: str = "-0.5") -> list[str]:
    """Return the lines of one sentence."""
    rests = [f"S\tsource {identifier}", f"T\treference {identifier}"]
    for text in texts:
        rests += [f"H\t{score}\t{text}", f"D\t{score}\t{text}.", "P\t-1.0000 -0.2500", "A\t0-0"]
    return [f"{rest[0]}-{identifier}{rest[1:]}" for rest in rests if rest[0] in letters]


def test_the_golden_file() -> None:
    nbest = read_nbest(GOLDEN / "generate-test.txt")
    assert nbest.feature_names == NAMES
    assert nbest.sentence_ids.tolist() == [2, 0]
    assert nbest.texts(0) == ["a black cat .", "black cat ."]
    assert nbest.texts(1) == ["H-1 hello", ""]
    assert nbest.sources == ("un chat noir", "bonjour")
    assert nbest.references == (("a black cat",), ("hello",))
    assert nbest.extras == {"alignment": ("0-0 2-1 1-2", "2-0 1-1", "0-0", "")}
    tokens = [[-0.5, -0.25, -0.125, -0.1317], [-1.5, -0.5, -1], [0, -0.0001, 0], [-12.5]]
    scores = [-0.2516743242740631, -1, -3.0517578125e-05, -12.5]
    pairs = zip(scores, tokens, strict=True)
    expected = [[score, sum(t), sum(t) / len(t), min(t), len(t)] for score, t in pairs]
    assert nbest.features.tolist() == expected


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("end", ["", "\r"])
def test_lists_are_found_whatever_stands_between_their_lines(write: Write, end: str) -> None:
    first, second = lines(98, "é\tx", "b"), lines(10**17, "c", score="-2")
    log = ["", "log", "T-", "H-x\t1", "S", "D-Day 1", f"P-{'1' * 20}x"]
    printed = [first[0], *log, *first[1:5], *log, *first[5:], *second[:3], *log, *second[3:]]
    nbest = read_nbest(write(*(line + end for line in printed)), format="fairseq")
    assert nbest.sentence_ids.tolist() == [98, 10**17]
    assert [nbest.texts(s) for s in range(2)] == [["é\tx.", "b."], ["c."]]
    assert nbest.features[:, :2].tolist() == [[-0.5, -1.25], [-0.5, -1.25], [-2, -1.25]]
    assert nbest.sources == ("source 98", f"source {10**17}")


@pytest.mark.parametrize("tokens", ["-1 x", "-1 -inf", "-9e59 -9e59", "1_0"])
def test_bad_scores_of_tokens(write: Write, tokens: str) -> None:
    path = write("H-0\t-0.5\ta", "P-0\t-1", "H-0\t-0.5\tb", f"P-0\t{tokens}")
    with raises(DataError, "bad-number", parameter="bad", line=3):
        read_nbest(path)
    with pytest.warns(BpaWarning, match="1 candidate dropped"):
        assert read_nbest(path, bad="drop").texts(0) == ["a"]


@pytest.mark.parametrize(
    ("letter", "printed"),
    [
        ("D", ["D-0\t-1\tA", "D-0\t-2\tB", "H-0\t-1\ta", "H-0\t-2\tb"]),
        ("D", ["H-0\t-1\ta", "D-0\t-1\tA", "H-0\t-2\tb", "D-0\t-2.5\tB"]),
        ("P", ["H-0\t-1\ta", "H-0\t-2\tb", "P-0\t-1.5 -0.25", "P-0\t-3 -0.75"]),
        ("P", ["H-0\t-1\ta", "H-0\t-1\tb", "P-0\t-1.5 -0.5", "P-0\t-1"]),  # equal scores
        ("A", ["H-0\t-1\ta", "H-0\t-2\tb", "A-0\t0-0", "A-0\t1-0"]),
    ],
)
def test_lines_of_unknown_candidates(write: Write, letter: str, printed: list[str]) -> None:
    first = next(n for n, line in enumerate(printed, 1) if line.startswith(letter))
    with raises(DataError, "mismatch", line=first) as refused:
        read_nbest(write(*printed), format="fairseq")
    assert f"the {letter}- lines of sentence 0" in str(refused.value)
    kept = [line for line in printed if not line.startswith(letter)]
    assert read_nbest(write(*kept)).texts(0) == ["a", "b"]


#: What the hub prints: sentences without ids.
HUB = (
    *("S\tun chat", "H\t-0.15000000596046448\ta cat", "P\t-0.1000 -0.2000"),
    *("H\t-0.42\tcat", "P\t-0.4000 -0.4400", "S\tbonjour", "H\t-0.2\thello", "P\t-0.2000"),
)


@pytest.mark.parametrize(
    "prefix", ["", "2026-05-05 10:00:00 | INFO | fairseq.hub_utils | ", "INFO:fairseq.hub_utils:"]
)
@pytest.mark.parametrize("first", [0, 1])
def test_sentences_of_the_hub_are_counted(write: Write, prefix: str, first: int) -> None:
    lists = read_nbest(write(*(prefix + line for line in HUB)), format=f"auto:first_id={first}")
    assert (lists.ids, lists.sources) == ((first, first + 1), ("un chat", "bonjour"))
    assert (lists.texts(0), lists.texts(1)) == (["a cat", "cat"], ["hello"])
    expected = [[-0.15, -0.3], [-0.42, -0.84], [-0.2, -0.2]]
    np.testing.assert_allclose(lists.features[:, :2], expected, rtol=1e-6)


def test_numbered_lines_are_no_lines_of_the_hub(write: Write) -> None:
    """A line of the log that begins with a letter and a tab is left out, as before."""
    numbered, odd = ("S-0\tun chat", "H-0\t-0.5\ta cat"), ("S\tsomething", "H\t-1\telse")
    for printed in ((*numbered, *odd), (odd[1], *numbered)):
        lists = read_nbest(write(*printed), format="fairseq")
        assert (len(lists), lists.texts(0)) == (1, ["a cat"])

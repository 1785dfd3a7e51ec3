"""ARPA files: reading, writing, agreement with KenLM, and damaged files."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpa_ppl.errors import DataError
from bpa_ppl.text.arpa import read_arpa, write_arpa
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import words_of

GOLDEN = Path(__file__).parent / "golden"
#: A file as other tools may write it: unordered, with spaces, and without some back-off weights.
SMALL = """
\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-0.5 a -0.25
-99 <s> -0.5
-0.5\tb
-1 </s>
-2 <unk>

\\2-grams:
-0.1 <s> a
-0.3\ta b
-0.2 a </s>

\\end\\
"""


def write_small_arpa(folder: Path, text: str) -> Path:
    path = folder / "small.arpa"
    path.write_text(text, encoding="utf-8")
    return path


def models_equal(one: NgramModel, other: NgramModel) -> bool:
    arrays = zip(one.tables, other.tables, strict=True)
    return one.words == other.words and all(np.array_equal(a, b) for a, b in arrays)


def test_reads_arpa_of_another_program(tmp_path: Path) -> None:
    model = read_arpa(write_small_arpa(tmp_path, SMALL))
    assert model.counts == (5, 3)
    result = model.log_probabilities([["a"], ["a", "b"], ["b", "a", "x"], []]) / np.log(10)
    by_hand = [
        -0.1 - 0.2,
        -0.1 - 0.3 - 1,
        (-0.5 - 0.5) - 0.5 + (-0.25 - 2) - 1,
        -0.5 - 1,
    ]
    np.testing.assert_allclose(result, by_hand, atol=1e-6)
    assert model.unknown([["b", "a", "x", "<s>", "</s>", "<unk>"]]).tolist() == [4]


def test_model_without_unk_gives_tiny_probabilities(tmp_path: Path) -> None:
    text = SMALL.replace("-2 <unk>\n", "").replace("1=5", "1=4")
    model = read_arpa(write_small_arpa(tmp_path, text))
    assert model.unknown([["x"]]).tolist() == [1]
    assert model.log_probabilities([["x"]])[0] / np.log(10) == pytest.approx(-0.5 - 100 - 1)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("order", [1, 3, 5])
def test_write_and_read_round_trip(order: int, suffix: str, tmp_path: Path) -> None:
    model = NgramModel.train([GOLDEN / "harbour.txt"], order)
    path = tmp_path / f"harbour.arpa{suffix}"
    write_arpa(model, path)
    assert models_equal(read_arpa(path), model)
    assert path.read_bytes().startswith({".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ"}.get(suffix, b""))


sentences = st.lists(st.lists(st.text("ab<>/é\u00a0\u3000", min_size=1), max_size=5), min_size=1)


@settings(max_examples=20, deadline=None)
@given(sentences.filter(any), st.integers(1, 4))
def test_random_words_round_trip(text: list[list[str]], order: int) -> None:
    model = NgramModel.estimate(text, order)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.arpa"
        write_arpa(model, path)
        assert models_equal(read_arpa(path), model)


@pytest.mark.skipif(find_spec("kenlm") is None, reason="KenLM is not installed")
def test_kenlm_reads_written_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import kenlm

    ours = NgramModel.train([GOLDEN / "harbour.txt"], 4)
    path = tmp_path / "harbour.arpa"
    write_arpa(ours, path)
    theirs = kenlm.Model(str(path))
    capfd.readouterr()  # KenLM prints its progress
    texts = [
        "the ferry waits at the café",
        "",
        "a ship on the second lane",
        "10\u00a0000 dogs dogs",
    ]
    result = ours.log_probabilities(list(map(words_of, texts))) / np.log(10)
    np.testing.assert_allclose(result, [theirs.score(text) for text in texts], atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("\\data\\", "data", 2, r"expected \\data\\, not 'data'"),
        ("ngram 1=5", "ngram 1=many", 3, "expected ngram 1=NUMBER"),
        ("ngram 1=5\n", "", 3, "expected ngram 1=NUMBER, not 'ngram 2=3'"),
        ("ngram 1=5\nngram 2=3\n", "", 3, "expected ngram 1=NUMBER, not ''"),
        ("ngram 2=3", "ngram 3=3", 4, "ngram 2=NUMBER"),
        ("\\1-grams:", "\\2-grams:", 6, r"expected \\1-grams:"),
        ("-0.5\tb\n", "", 11, "expected a number, 1 words and optionally a number, not ''"),
        ("-0.5\tb", "-0.5\tb c d", 9, "a number, 1 words"),
        ("1=5", "1=4", 11, r"expected \\2-grams:, not '-2 <unk>'"),
        ("-0.5\tb", "much\tb", 9, "'much' is not a finite number"),
        ("-0.5\tb", "nan\tb", 9, "'nan' is not a finite number"),
        ("-0.5\tb", "-inf\tb", 9, "'-inf' is not a finite number"),
        ("-0.5\tb", "-1e39\tb", 9, "'-1e39' is not a finite number"),
        ("a -0.25", "a inf", 7, "'inf' is not a finite number"),
        ("-0.3\ta b", "0.3\ta b", 15, "the logarithm of a probability is positive"),
        ("-0.3\ta b", "-0.3\ta b -1", 15, "expected a number, 2 words"),
        ("-0.3\ta b", "-0.3\ta c", 15, "the word 'c' is not among the unigrams"),
        ("-0.3\ta b", "-0.3\t<s> a", 15, "the 2-gram occurs for the second time"),
        ("-0.5\tb", "-0.5\ta", 9, "the 1-gram occurs for the second time"),
        ("-1 </s>", "-1 end", 11, "the word </s> is not among the unigrams"),
        ("-99 <s>", "-99 begin", 11, "the word <s> is not among the unigrams"),
        ("\\end\\", "", 18, r"expected \\end\\, not the end of the file"),
        ("-0.2 a </s>\n\n\\end\\\n", "", 15, "the file ends after 2 of 3 2-grams: it is trunc"),
    ],
)
def test_invalid_files_raise_with_line_number(
    old: str, new: str, line: int, message: str, tmp_path: Path
) -> None:
    assert SMALL.count(old) == 1
    with pytest.raises(DataError, match=message) as caught:
        read_arpa(write_small_arpa(tmp_path, SMALL.replace(old, new)))
    assert caught.value.line == line
    assert "small.arpa" in str(caught.value)


def test_rejects_ngram_without_its_prefix(tmp_path: Path) -> None:
    text = SMALL.replace("2=3", "2=3\nngram 3=2").replace(
        "\\end\\", "\\3-grams:\n-0.1 a b </s>\n-0.1 b b a\n\n\\end\\"
    )
    with pytest.raises(DataError, match=r":21: 'b b' is not among the 2-grams"):
        read_arpa(write_small_arpa(tmp_path, text))


@pytest.mark.parametrize("bytes_left", [0, 1, 40, 90, 135])
def test_rejects_truncated_file(bytes_left: int, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"small\.arpa:\d+: "):
        read_arpa(write_small_arpa(tmp_path, SMALL[:bytes_left]))


def test_rejects_truncated_compressed_file(tmp_path: Path) -> None:
    for pack, name in ((gzip.compress, "gzip"), (lzma.compress, "xz")):
        path = tmp_path / name
        path.write_bytes(pack(SMALL.encode())[:-20])
        with pytest.raises(DataError, match=f"the {name} data end too early"):
            read_arpa(path)


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    model = NgramModel.estimate([["a"]], 2)
    with pytest.raises(DataError, match="no such folder"):
        write_arpa(model, tmp_path / "missing" / "a.arpa")
    old = write_small_arpa(tmp_path, "old")
    model.words = ("too", "few")
    with pytest.raises(IndexError):
        write_arpa(model, old)
    assert old.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [old]

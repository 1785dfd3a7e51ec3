"""ARPA files: reading, writing, and damaged files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.model_files import read_arpa, write_arpa

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
    return one.words == other.words and all(map(np.array_equal, one.tables, other.tables))


def test_reads_arpa_of_another_program(tmp_path: Path) -> None:
    model = read_arpa(write_small_arpa(tmp_path, SMALL))
    assert model.counts == (5, 3)
    result = model.log_probabilities([["a"], ["a", "b"], ["b", "a", "x"], []]) / np.log(10)
    by_hand = [-0.1 - 0.2, -0.1 - 0.3 - 1, (-0.5 - 0.5) - 0.5 + (-0.25 - 2) - 1, -0.5 - 1]
    np.testing.assert_allclose(result, by_hand, atol=1e-6)
    assert model.unknown([["b", "a", "x", "<s>", "</s>", "<unk>"]]).tolist() == [4]


def test_model_without_unk_gives_tiny_probabilities(tmp_path: Path) -> None:
    text = SMALL.replace("-2 <unk>\n", "").replace("1=5", "1=4")
    model = read_arpa(write_small_arpa(tmp_path, text))
    assert model.unknown([["x"]]).tolist() == [1]
    assert model.log_probabilities([["x"]])[0] / np.log(10) == pytest.approx(-0.5 - 100 - 1)


@pytest.mark.parametrize(("order", "suffix"), [(1, ""), (3, ".gz"), (5, ".xz"), (2, ".zst")])
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


#: A section that SMALL could have at its end, with a trigram whose context is missing.
TRIGRAMS = "\\3-grams:\n-0.1 a b </s>\n-0.1 b b a\n\n\\end\\"


@pytest.mark.parametrize(
    ("old", "new", "line", "code"),
    [
        ("\\data\\", "data", 2, "bad-line"),
        ("ngram 1=5", "ngram 1=many", 3, "bad-line"),
        ("ngram 1=5", f"ngram 1={'9' * 5000}", 3, "bad-line"),
        ("ngram 1=5", f"ngram {'1' * 5000}=5", 3, "bad-line"),
        ("ngram 1=5\nngram 2=3\n", "", 3, "bad-line"),
        ("ngram 2=3", "ngram 3=3", 4, "bad-line"),
        ("\\1-grams:", "\\2-grams:", 6, "bad-line"),
        ("-0.5\tb\n", "", 11, "bad-line"),
        ("-0.5\tb", "-0.5\tb c d", 9, "bad-line"),
        ("-0.5\tb", "much\tb", 9, "bad-number"),
        ("-0.5\tb", "-1e39\tb", 9, "bad-number"),
        ("a -0.25", "a inf", 7, "bad-number"),
        ("-0.3\ta b", "0.3\ta b", 15, "bad-number"),
        ("-0.3\ta b", "-0.3\ta b -1", 15, "bad-line"),
        ("-0.3\ta b", "-0.3\ta c", 15, "mismatch"),
        ("-0.3\ta b", "-0.3\t<s> a", 15, "duplicate"),
        ("-0.5\tb", "-0.5\ta", 9, "duplicate"),
        ("-1 </s>", "-1 end", 11, "damaged"),
        ("\\end\\", "", 18, "bad-line"),
        ("-0.2 a </s>\n\n\\end\\\n", "", 15, "damaged"),
        ("2=3", "2=3\nngram 3=2", 21, "mismatch"),
    ],
)
def test_invalid_files_are_named(old: str, new: str, line: int, code: str, tmp_path: Path) -> None:
    assert SMALL.count(old) == 1
    text = SMALL.replace(old, new)
    if line == 21:
        text = text.replace("\\end\\", TRIGRAMS)
    with raises(DataError, code, line=line, match="small.arpa"):
        read_arpa(write_small_arpa(tmp_path, text))

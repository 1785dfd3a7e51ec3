"""Detection of language model files, and binary files of KenLM."""

from __future__ import annotations

import gzip
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from raising import raises

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.text.arpa import read_arpa
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.model_files import KenlmModel, evaluate_text, is_model, model_of
from bpa_ppl.text.words import words_of

GOLDEN = Path(__file__).parent / "golden"
TEXT, ARPA = GOLDEN / "harbour.txt", GOLDEN / "harbour.o3.arpa.gz"
BINARY = GOLDEN / "harbour.o3.binary.gz"

with_kenlm = pytest.mark.skipif(find_spec("kenlm") is None, reason="KenLM is not installed")
TEST_SENTENCES = [
    "the ferry leaves the harbour at ten",
    "a whale waits <s> at the gate </s>",
    "",
    "10\u00a0000 dogs",
]


def test_models_are_detected_by_content(tmp_path: Path) -> None:
    misnamed = tmp_path / "model.txt"
    misnamed.write_bytes(b"\n" + gzip.decompress(ARPA.read_bytes()))
    assert [is_model(path) for path in (TEXT, ARPA, BINARY, misnamed, "-")] == [
        *(False, True, True, True, False)
    ]
    read = model_of([misnamed], order=1)
    assert read.order == 3
    learned = model_of([TEXT, TEXT], order=2)
    assert isinstance(learned, NgramModel)
    assert learned.order == 2


@pytest.mark.parametrize("path", [ARPA, BINARY])
def test_rejects_model_file_with_other_files(path: Path) -> None:
    with raises(UsageError, "conflict", match=path.name):
        model_of([TEXT, path])


@with_kenlm
@pytest.mark.parametrize("packed", [True, False])
def test_binary_file_agrees_with_arpa_file(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "harbour.binary"
    path.write_bytes(BINARY.read_bytes() if packed else gzip.decompress(BINARY.read_bytes()))
    binary, text = model_of([path]), read_arpa(ARPA)
    assert isinstance(binary, KenlmModel)
    assert binary.order == 3
    sentences = [words_of(text) for text in [*TEST_SENTENCES, *read_lines(TEXT)]]
    for method in ("by_word", "scored"):
        pairs = zip(
            getattr(binary, method)(sentences), getattr(text, method)(sentences), strict=True
        )
        for result, expected in pairs:
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, atol=1e-5)
    assert binary.unknown(sentences[:4]).tolist() == [0, 3, 0, 0]
    assert len(binary.log_probabilities([])) == len(binary.unknown([])) == 0


@with_kenlm
def test_rejects_damaged_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "harbour.binary"
    path.write_bytes(gzip.decompress(BINARY.read_bytes())[:1000])
    with raises(DataError, "damaged", match=r"harbour\.binary"):
        model_of([path])


def test_binary_files_require_kenlm() -> None:
    with patch.dict(sys.modules, kenlm=None), raises(UsageError, "missing-package"):
        model_of([BINARY])


def test_evaluate_text_of_several_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, lines in zip(paths, (TEST_SENTENCES[:2], TEST_SENTENCES[2:]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    model = NgramModel.train([TEXT])
    scores, unknown = model.by_word(list(map(words_of, TEST_SENTENCES)))
    result = evaluate_text(model, paths)
    assert (result.words, result.unknown) == (len(scores) - len(TEST_SENTENCES), 3)
    assert result.perplexity == pytest.approx(np.exp(-scores.mean()))
    assert result.known == pytest.approx(np.exp(-scores[~unknown].mean()))
    paths[0].write_text("", encoding="utf-8")
    with raises(DataError, "no-data", match=r"a\.txt"):
        evaluate_text(model, paths[:1])

"""Detection of language model files, and perplexities of texts."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.model_files import evaluate_text, is_model, read_or_train
from bpa_ppl.text.words import split_words

GOLDEN = Path(__file__).parent / "golden"
TEXT, ARPA = GOLDEN / "harbour.txt", GOLDEN / "harbour.o3.arpa.gz"
TEST_SENTENCES = [
    "the ferry leaves the harbour at ten",
    "a whale waits <s> at the gate </s>",
    "",
    "10\u00a0000 dogs",
]


def test_models_are_detected_by_content(tmp_path: Path) -> None:
    misnamed = tmp_path / "model.txt"
    misnamed.write_bytes(b"\n" + gzip.decompress(ARPA.read_bytes()))
    assert [is_model(path) for path in (TEXT, ARPA, misnamed, "-")] == [*(False, True, True, False)]
    read = read_or_train([misnamed], order=1)
    assert read.order == 3
    learned = read_or_train([TEXT, TEXT], order=2)
    assert isinstance(learned, NgramModel)
    assert learned.order == 2


def test_rejects_model_file_with_other_files() -> None:
    with raises(UsageError, "conflict", match=ARPA.name):
        read_or_train([TEXT, ARPA])


def test_evaluate_text_of_several_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, lines in zip(paths, (TEST_SENTENCES[:2], TEST_SENTENCES[2:]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    model = NgramModel.train([TEXT])
    scores, unknown = model.by_word(list(map(split_words, TEST_SENTENCES)))
    result = evaluate_text(model, paths)
    assert (result.words, result.unknown) == (len(scores) - len(TEST_SENTENCES), 3)
    assert result.perplexity == pytest.approx(np.exp(-scores.mean()))
    assert result.known == pytest.approx(np.exp(-scores[~unknown].mean()))
    paths[0].write_text("", encoding="utf-8")
    with raises(DataError, "no-data", match=r"a\.txt"):
        evaluate_text(model, paths[:1])

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import UsageError
from bpa_ppl.phrases.extraction import select_lines, select_sentences, sentence_perplexities
from bpa_ppl.text.language_model import NgramModel

DOMAIN = [["the", "cat", "sat"], ["the", "dog", "sat"], ["a", "cat", "ran"]]


def test_perplexities_agree_with_single_texts() -> None:
    model = NgramModel.estimate(DOMAIN, order=2)
    texts = [["the", "cat"], [], ["zut"], ["a", "dog", "sat"]]
    expected = [np.exp(-model.by_word([text])[0].mean()) for text in texts]
    np.testing.assert_allclose(sentence_perplexities(model, texts), expected, rtol=1e-6)


def test_in_domain_lines_are_selected(tmp_path: Path) -> None:
    model = NgramModel.estimate(DOMAIN, order=2)
    (tmp_path / "en").write_text("pursuant to section 4\nthe cat ran\nhon. members\na dog sat\n")
    assert select_lines(model, tmp_path / "en", 0.5).tolist() == [False, True, False, True]


def test_first_of_equal_sentences_are_selected() -> None:
    assert select_sentences([2.0, 1.0, 1.0, 1.0], 0.5).tolist() == [False, True, True, False]
    assert select_sentences([2.0, 1.0], 0.01).sum() == 1
    assert select_sentences([2.0, 1.0], 1.0).all()
    for share in (0.0, 1.1, float("nan")):
        with pytest.raises(UsageError, match="above 0 and up to 1"):
            select_sentences([1.0], share)

"""Mixtures of language models, compared with the formula and with a grid of weights."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl.errors import DataError
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.lm_mixtures import MixtureModel

ONE = NgramModel.estimate([["a", "b"], ["a", "c"], ["b", "a"]], 2)
TWO = NgramModel.estimate([["a", "d"], ["d", "a", "b"]], 3)
THREE = NgramModel.estimate([["c", "c", "a"]], 1)
DEV = [["a", "b", "d"], ["d", "a", "b"], ["b", "x"], []]


def test_probabilities_agree_with_the_equation() -> None:
    mixture = MixtureModel([ONE, TWO], [0.7, 0.3])
    scores, unknown = mixture.by_word(DEV)
    parts = [model.by_word(DEV) for model in (ONE, TWO)]
    for word, score in enumerate(scores):
        first, second = (exp(logs[word]) for logs, _ in parts)
        assert score == pytest.approx(log(0.7 * first + 0.3 * second), rel=1e-12)
    # x is unknown to both, d only to the first; the ends of sentences are known.
    assert np.flatnonzero(unknown).tolist() == [9]
    assert parts[0][1].sum() == 3
    totals = [scores[:4].sum(), scores[4:8].sum(), scores[8:11].sum(), scores[11]]
    assert mixture.log_probabilities(DEV) == pytest.approx(totals)
    assert mixture.unknown(DEV).tolist() == [0, 0, 1, 0]


def test_a_model_of_weight_zero_has_no_effect() -> None:
    """Its words are unknown as well: d is known to the second model alone."""
    mixed, alone = MixtureModel([ONE, TWO], [1.0, 0.0]).by_word(DEV), ONE.by_word(DEV)
    np.testing.assert_allclose(mixed[0], alone[0], rtol=1e-15)
    assert mixed[1].tolist() == alone[1].tolist()


def test_files_without_a_sentence_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n")
    with raises(DataError, "no-data", match=r"empty\.txt"):
        MixtureModel.fit_files([ONE, TWO], [tmp_path / "empty.txt"])


@pytest.mark.parametrize("models", [(ONE, TWO), (TWO, ONE), (ONE, TWO, THREE)])
def test_weights_maximise_the_likelihood(models: tuple[NgramModel, ...]) -> None:
    fitted = MixtureModel.fit(models, DEV)
    p = np.exp([model.by_word(DEV)[0] for model in models])
    grid = np.array(np.meshgrid(*[np.linspace(0, 1, 101)] * (len(models) - 1))).reshape(
        len(models) - 1, -1
    )
    grid = np.vstack([grid, 1 - grid.sum(axis=0)])
    grid = grid[:, grid[-1] >= -1e-12].clip(0)
    values = np.log(grid.T @ p).sum(axis=1)
    assert fitted.weights == pytest.approx(grid[:, values.argmax()], abs=0.011)
    assert fitted.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert fitted.log_probabilities(DEV).sum() >= values.max()

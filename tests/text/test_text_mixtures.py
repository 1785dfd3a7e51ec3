"""The weights of a mixture of language models against a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bpa_ppl import DataError, UsageError
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.mixtures import LinearMixture, linear_mixture


def texts(seed: int, words: str, sentences: int = 40) -> list[list[str]]:
    """Return random sentences of some words."""
    rng = np.random.default_rng(seed)
    return [list(rng.choice(list(words), size=rng.integers(1, 9))) for _ in range(sentences)]


ONE, TWO = NgramModel.estimate(texts(1, "aabc"), 2), NgramModel.estimate(texts(2, "bccd"), 2)
DEV = texts(3, "abcd")


def log_likelihood(weight: float) -> float:
    one, two = (np.exp(model.word_log_probabilities(DEV)) for model in (ONE, TWO))
    return float(np.log(weight * one + (1 - weight) * two).sum())


def test_weights_are_those_of_an_optimiser() -> None:
    found = linear_mixture([ONE, TWO], DEV)
    best = minimize_scalar(lambda w: -log_likelihood(w), bounds=(0, 1), method="bounded")
    assert 0.05 < best.x < 0.95
    assert found[0] == pytest.approx(best.x, abs=1e-4)
    assert log_likelihood(found[0]) >= -best.fun - 1e-9
    assert found.sum() == pytest.approx(1)


def test_a_mixture_scores_as_the_mean_of_its_models() -> None:
    mixture = LinearMixture([ONE, TWO], [0.25, 0.75])
    assert mixture.log_probabilities(DEV).sum() == pytest.approx(log_likelihood(0.25))
    assert mixture.perplexity(DEV) < max(ONE.perplexity(DEV), TWO.perplexity(DEV))
    assert mixture.unknown([["a", "d", "x"]]).tolist() == [1]
    assert (mixture.order, LinearMixture([ONE], [1.0]).perplexity(DEV)) == (
        2,
        pytest.approx(ONE.perplexity(DEV)),
    )


def test_three_models_of_which_two_are_equal() -> None:
    found = linear_mixture([ONE, TWO, ONE], DEV)
    assert found[0] + found[2] == pytest.approx(linear_mixture([ONE, TWO], DEV)[0], abs=1e-4)


def test_what_is_no_mixture() -> None:
    with pytest.raises(UsageError, match="2 models need as many weights"):
        LinearMixture([ONE, TWO], [1.0])
    with pytest.raises(UsageError, match=r"1 in sum, not 0\.5"):
        LinearMixture([ONE], [0.5])
    with pytest.raises(UsageError, match="at least one"):
        linear_mixture([], DEV)
    with pytest.raises(DataError, match="no sentence"):
        linear_mixture([ONE], [])

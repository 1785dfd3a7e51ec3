"""The temperature: known answers, plain loops; the risk of making only the surest changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference_model
from raising import raises
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from bpa_ppl import DataError, Draws, NBest
from bpa_ppl.diagnostics import calibrated, reliability, risk_coverage, temperature
from bpa_ppl.diagnostics.leave_one_out import leave_one_out
from bpa_ppl.posterior import as_draws

NAMES = ("LM0", "WP0")
TRUTH = np.array([1.0, -0.5])


def lists(count: int, seed: int, size: int = 8) -> NBest:
    """Lists with some strings twice over."""
    rng = np.random.default_rng(seed)
    texts = [[f"t{h % (size - 2)}" for h in range(size)] for _ in range(count)]
    features = [rng.normal(size=(size, 2)).astype(np.float32) for _ in range(count)]
    return NBest.from_lists(texts, features, NAMES)


def posterior(pool: NBest, oracle: np.ndarray, scale: float, spread: float = 0.0) -> Draws:
    """Draws around the truth times `scale`, with the log-likelihood of each sentence."""
    rng = np.random.default_rng(5)
    weights = scale * TRUTH + spread * rng.normal(size=(2, 40, 2))
    known = {
        w.tobytes(): reference_model.log_likelihood(pool, oracle, w) for c in weights for w in c
    }
    table = [[known[w.tobytes()] for w in chain] for chain in weights]
    return Draws(
        {"weights": weights},
        NAMES,
        log_likelihood={"oracle": np.array(table)},
        sentence_sites=("oracle",),
        observed={"oracle": oracle},
    )


def drawn(pool: NBest, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array(
        [rng.choice(len(p), p=p) for p in reference_model.predictive(pool, TRUTH[None])]
    )


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_the_temperature_undoes_a_scale(scale: float) -> None:
    """With weights that are `scale` times the truth, T = scale is the truth again."""
    pool = lists(200, seed=1)
    found = temperature(posterior(pool, drawn(pool, 2), scale, spread=0.02), pool)
    assert found.value == pytest.approx(scale, rel=0.2)
    assert found.after >= found.before
    assert (found.sentences, found.doubtful) == (200, 0)
    assert str(found).startswith(f"temperature {found.value:.2f}: leave-one-out log probability")


def test_it_is_the_maximum_of_a_plain_loop() -> None:
    pool = lists(20, seed=3)
    oracle = drawn(pool, 4)
    draws = posterior(pool, oracle, 2.0, spread=0.3)

    def score(value: float) -> float:
        total = 0.0
        for s in range(len(pool)):
            features, texts = pool.features[pool.rows(s)], pool.texts(s)
            log_p = np.array([reference_model.log_choice(features, w) for w in draws.flat])
            ratio = -log_p[:, oracle[s]]
            weight = np.exp(ratio - logsumexp(ratio))
            p = (weight @ np.exp(log_p)) ** (1 / value)
            total += np.log(sum(p[np.array(texts) == texts[oracle[s]]]) / p.sum())
        return total / len(pool)

    best = minimize_scalar(lambda t: -score(t), bounds=(0.2, 10), method="bounded")
    found = temperature(draws, pool)
    # The raw importance weights of the loop are smoothed there, which moves them a little.
    assert found.value == pytest.approx(best.x, rel=0.02)
    assert found.before == pytest.approx(score(1.0), abs=0.01)


def test_a_sentence_is_predicted_without_itself() -> None:
    """Two values of the weights, and one sentence that prefers one of them: it is left out."""
    pool = lists(1, seed=7)
    weights = np.where(np.arange(400) < 200, 1.0, -1.0)[None, :, None] * TRUTH
    likelihood = reference_model.log_likelihood
    table = np.array([[likelihood(pool, [0], w) for w in weights[0]]])
    share = np.exp(table[0, :, 0])
    chosen = np.random.default_rng(1).choice(400, 4000, p=share / share.sum())
    draws = Draws(
        {"weights": weights[:, chosen]},
        NAMES,
        log_likelihood={"oracle": table[:, chosen]},
        sentence_sites=("oracle",),
        observed={"oracle": np.array([0])},
    )
    (p,) = leave_one_out(draws, pool).probabilities(pool)
    (even,) = reference_model.predictive(pool, np.array([TRUTH, -TRUTH]))
    np.testing.assert_allclose(p, even, atol=0.02)


def test_calibration_improves_if_it_was_wrong() -> None:
    pool, new = lists(80, seed=8), lists(700, seed=9)
    after = calibrated(posterior(pool, drawn(pool, 10), 4.0, spread=0.02), pool)
    oracle = drawn(new, 11)
    raw = reliability(after, new, oracle, temperature=1.0).error
    assert raw > 0.15
    assert reliability(after, new, oracle).error < 0.05
    assert as_draws(after).attrs["temperature"] == pytest.approx(4.0, rel=0.3)


def test_inputs_that_it_cannot_be_fitted_to() -> None:
    pool = lists(6, seed=12)
    draws = posterior(pool, drawn(pool, 13), 1.0)
    with raises(DataError, "no-data"):
        temperature(replace(draws, kind="point"), pool)
    with raises(DataError, "no-data"):
        temperature(replace(draws, log_likelihood={}, sentence_sites=()), pool)
    with raises(DataError, "mismatch"):
        temperature(draws, pool[:3])


def test_risk_and_coverage_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(3)
    better, before, after = rng.uniform(size=50), rng.integers(0, 9, 50), rng.integers(0, 9, 50)
    lengths, changed = rng.integers(5, 20, 50), rng.uniform(size=50) < 0.7
    found = risk_coverage(better, before, after, lengths, changed)
    for sure in (-1.0, 0.2, 0.7, 1.0):
        made = changed & (better > sure)
        edits = np.where(made, after, before)
        worse = np.mean((after > before)[made]) if made.any() else 0.0
        expected = made.sum() / changed.sum(), worse, 100 * edits.sum() / lengths.sum()
        assert found.at(sure) == pytest.approx(expected)
    assert len(str(found).splitlines()) == 6


def test_a_text_without_changes_has_no_risk() -> None:
    found = risk_coverage([0.0], [2], [2], [4], [False])
    assert found.at(-1.0) == (0.0, 0.0, 50.0)
    with raises(DataError, "wrong-length"):
        risk_coverage([0.1], [2, 3], [2, 2], [4, 4])

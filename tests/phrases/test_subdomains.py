"""Latent subdomains: EM compared with a NumPyro program, recovery of subdomains, and resuming."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import pytest
from sklearn.metrics import adjusted_rand_score
from support.planted import planted
from support.raising import raises
from support.subdomain_program import pad_text, subdomain_mixture

from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.phrases.induction import induce
from bpa_ppl.phrases.subdomain_em import EMSettings, Iteration, Lexicons, fit_em
from bpa_ppl.phrases.subdomains import Subdomains
from bpa_ppl.phrases.tables import SIDES
from bpa_ppl.text.words import NumberedText

EXACT = {"em": "soft", "smoothing": "none", "prior": 0.0}
SMALL = planted(3, 40, 0.3, words=9, length=4)[:2]
TEXTS = planted(3, 150, 0.4, words=40)[:2]


def run_em(texts: tuple[NumberedText, NumberedText], jobs: int = 1, **settings: object) -> list:
    with parallel_workers(jobs, threads=True) as team:
        return fit_em(*texts, EMSettings(**settings), team)  # type: ignore[arg-type]


def agreement(result: Subdomains, truth: np.ndarray) -> float:
    return float(adjusted_rand_score(truth, result.winners()))


def parameter_tables(
    result: list[Iteration], step: int, order: int, lm_iterations: int = 1
) -> dict[str, np.ndarray]:
    """Return the parameters after a step of EM, by counting with its posteriors."""
    first = lm_iterations  # the posteriors of the language models, which stay fixed
    k, created = len(result[0].weights), {"weights": result[step].weights}
    for name, text in zip(SIDES, SMALL, strict=True):
        padded = pad_text(text, order)
        counts = np.zeros((k, padded.sizes[0], padded.sizes[1] + 1))
        rows, places = np.nonzero(padded.history >= 0)
        events = padded.history[rows, places], padded.following[rows, places]
        for z in range(k):
            np.add.at(counts[z], events, result[first].pair_weights(z)[rows])
        created[f"{name}_next"] = counts / np.maximum(counts.sum(2, keepdims=True), 1e-300)
    lexicons, sizes = Lexicons(*SMALL, 0.0), [len(text.words) for text in SMALL]
    for (given, predicted), (n, m) in zip((SIDES, SIDES[::-1]), (sizes, sizes[::-1]), strict=True):
        dense = np.zeros((k, n + 1, m))
        starts, columns = lexicons.texts[given].rows
        # The empty word, the first row of a lexicon, is the last one of the program.
        words = np.repeat(np.arange(n + 1), np.diff(starts)) - 1
        for z in range(k):
            weight_history = [entry.pair_weights(z, given) for entry in result[first : step + 1]]
            dense[z][words, columns] = lexicons.learn(given, weight_history)
        created[f"{predicted}_given"] = dense
    return created


def program_log_likelihood(order: int, k: int) -> Callable:
    """Return a function of the NumPyro program's log-likelihood and gradient."""
    rectangles = [pad_text(text, order) for text in SMALL]

    def likelihood(values: dict) -> jax.Array:
        model = numpyro.handlers.substitute(subdomain_mixture, values)
        with numpyro.validation_enabled(False):
            trace = numpyro.handlers.trace(model).get_trace(*rectangles, k)
        return trace["pairs"]["fn"].log_factor.sum()

    return jax.jit(jax.value_and_grad(likelihood))


@pytest.mark.parametrize(("order", "lm_iterations"), [(1, 1), (3, 1), (3, 0)])
def test_em_likelihood_agrees_with_program(order: int, lm_iterations: int) -> None:
    result = run_em(SMALL, k=3, order=order, lm_iterations=lm_iterations, iterations=2, **EXACT)
    assert len(result) == lm_iterations + 3
    likelihood = program_log_likelihood(order, 3)
    for step in (lm_iterations, lm_iterations + 1):
        total, _ = likelihood(parameter_tables(result, step, order, lm_iterations))
        assert float(total) == pytest.approx(result[step + 1].log_likelihood, rel=1e-6)


def test_em_steps_agree_with_program_gradient() -> None:
    result = run_em(SMALL, k=2, order=1, iterations=3, start="random", **EXACT)
    slope_of = program_log_likelihood(1, 2)
    # The gradient at θ = 0 is not defined.
    assert all((entry.posteriors > 0).all() for entry in result)
    for step in (1, 2):
        values, after = parameter_tables(result, step, 1), parameter_tables(result, step + 1, 1)
        _, slope = slope_of(values)
        for name in ("weights", "target_given", "source_given"):
            # A step of EM: θ ∂L/∂θ, normalised.
            raw = values[name] * np.nan_to_num(np.asarray(slope[name]))
            expected = raw / np.maximum(raw.sum(axis=-1, keepdims=True), 1e-300)
            np.testing.assert_allclose(after[name], expected, atol=2e-6)
            assert abs(after[name] - values[name]).max() > 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_likelihood_never_decreases(seed: int) -> None:
    texts = planted(3, 120, 0.4, seed, words=25, length=6)[:2]
    start = {"lm_iterations": 6, "seed": seed, "start": "random"}
    result = run_em(texts, k=3, order=2, iterations=6, **start, **EXACT)
    likelihoods = np.array([entry.log_likelihood for entry in result])
    for part in (likelihoods[1:7], likelihoods[7:]):
        assert (np.diff(part) > -1e-9 * abs(part[0])).all()
        assert part[-1] > part[0] + 1


@pytest.mark.parametrize("settings", [{}, {"em": "soft", "order": 1}, {"em": "soft", "folds": 4}])
def test_planted_subdomains_are_recovered(settings: dict) -> None:
    source, target, truth = planted(4, 600, 0.5)
    result = induce(source, target, 4, **settings)
    assert agreement(result, truth) >= 0.9
    shares = np.bincount(truth) / len(truth)
    np.testing.assert_allclose(np.sort(result.weights), np.sort(shares), atol=0.02)


@pytest.mark.parametrize("side", ["target", "both"])
def test_planted_topics_are_recovered(side: Any) -> None:
    source, target, truth = planted(3, 150, 0.9, words=100, length=15)
    result = induce(source, target, 3, induction="lda", side=side)
    assert agreement(result, truth) >= 0.9
    assert not result.hard
    recorded = [result.settings[name] for name in ("induction", "side", "alpha", "beta")]
    assert recorded == ["lda", side, 0.01, 0.01]
    np.testing.assert_allclose(result.weights, result.posteriors().mean(axis=0), rtol=1e-5)


def test_cross_fitting_improves_recovery() -> None:
    source, target, truth = planted(6, 800, 0.4)
    results = [induce(source, target, 6, order=1, folds=folds) for folds in (1, 5)]
    in_sample, cross_fitted = (agreement(result, truth) for result in results)
    assert cross_fitted > in_sample + 0.02


@pytest.mark.parametrize("settings", [{}, {"em": "soft", "folds": 2}])
def test_result_depends_on_seed_but_not_on_jobs(settings: dict) -> None:
    texts = planted(3, 150, 0.1, words=40)[:2]
    one_job, three_jobs = (induce(*texts, 3, seed=1, jobs=n, **settings) for n in (1, 3))
    assert one_job.assignment.tobytes() == three_jobs.assignment.tobytes()
    assert one_job.settings == three_jobs.settings
    other = induce(*texts, 3, seed=2, **settings)
    assert one_job.assignment.tobytes() != other.assignment.tobytes()


def test_empty_sentences_and_empty_subdomains() -> None:
    source, target = [["a", "b"], [], ["c"]] * 4, [["x"], ["y"], []] * 4
    with pytest.warns(BpaWarning, match="no sentence pair"):
        result = induce(source, target, 6)
    assert set(result.winners()[::3].tolist()) == {int(result.winners()[0])}


def test_rejects_texts_that_are_not_parallel(tmp_path: Path) -> None:
    source, target = [["a"]] * 5, [["b"]] * 5
    with raises(DataError, "wrong-length", match="the source text: 5 "):
        induce(source, target[:4], 2)
    with raises(DataError, "no-data", match="the target text: 1 "):
        induce(source, [["b"], [], [], [], []], 2)
    (tmp_path / "fr").write_text("a\nb\n")
    with raises(DataError, "wrong-length", match="fr: 2 "):
        induce(tmp_path / "fr", target, 2)

"""Sentences added one by one: the posterior of all at once, by NumPy and by quadrature."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import reference_model
import targets
from moment_checks import assert_weighted_moments
from raising import raises
from sacrebleu.metrics import TER
from scipy.special import log_expit, logsumexp, softmax

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, DataError, Draws, NBest, UsageError
from bpa_ppl.errors import NotConverged
from bpa_ppl.models import LIKELIHOODS, Likelihood, Margin, Pairs, Risk
from bpa_ppl.sampling import Sequential

NAMES = ["LM0", "WP0"]
CANONICAL = {"LM0": 0.3, "WP0": -0.2}
VARIANCE, SENTENCES = 2.0, 40
OPTIONS = {"likelihood": "oracle", "prior_variance": VARIANCE}


def rows(sentences: int = SENTENCES, seed: int = 4) -> np.ndarray:
    """The features of the second hypothesis less those of the first, which is the oracle."""
    return np.random.default_rng(seed).normal(size=(sentences, 2)) * [2.0, 1.0] + [0.5, -0.5]


POOL = reference_model.pairs(rows(), NAMES)


@cache
def adapted(count: int, draws: int = 1000) -> Draws:
    """The posterior of the first sentences, four chains of so many draws."""
    oracle = reference_model.given(*[0] * count)
    options = {"oracle": oracle, "sampler": "imh", "draws": draws, **OPTIONS}
    return bpa.as_draws(bpa.adapt(POOL[:count], CANONICAL, **options))


def grown(start: Draws, stop: int, step: int = 1, **options: object) -> Sequential:
    """A posterior to which sentences were added, up to a number of them in all."""
    growing = Sequential(start, **options)  # type: ignore[arg-type]
    for first in range(int(start.attrs["adaptation_sentences"]), stop, step):
        some = POOL[first : min(first + step, stop)]
        growing.add(some, oracle=reference_model.given(*[0] * len(some)))
    return growing


def assert_posterior(draws: Draws, count: int, ess: float = 100) -> None:
    """Hold draws against the posterior of the first sentences, by quadrature."""
    exact = targets.logistic(rows()[:count], VARIANCE, 9.0)
    # A chain's draws count for what they are worth: 5 standard errors of so many independent ones.
    thinned = slice(None, None, 1 if draws.weighted else 3)
    log_weight = np.log(draws.importance)[thinned]
    assert_weighted_moments(draws.flat[thinned], log_weight, exact.mean, exact.covariance, ess)


def test_weights_are_the_likelihood_of_the_new_sentences() -> None:
    start = adapted(3).with_attrs(baselines={"of": "the adaptation sentences"})
    growing = grown(start, 5)
    assert [step.afresh for step in growing.steps] == ["", ""]
    found = growing.draws()
    expected = log_expit(-start.flat @ rows()[3:5].T.astype(np.float32))
    np.testing.assert_allclose(found.statistics["log_ratio"].ravel(), expected.sum(1), atol=1e-4)
    np.testing.assert_allclose(found.pointwise[..., 3:].reshape(-1, 2), expected, atol=1e-4)
    np.testing.assert_allclose(
        found.log_density, start.log_density + expected.sum(1).reshape(start.shape), atol=1e-4
    )
    assert found.kind == "weighted"
    assert found.attrs["adaptation_sentences"] == 5
    assert "baselines" not in found.attrs
    assert found.attrs["pareto_k"] == growing.steps[-1].pareto_k
    assert_posterior(found, 5)


@pytest.mark.filterwarnings("ignore:the posterior equals its prior")
def test_updates_of_the_prior_are_exact() -> None:
    growing = grown(adapted(0), SENTENCES)
    assert {step.afresh for step in growing.steps} == {"", "exact"}
    assert_posterior(growing.draws(), SENTENCES)
    assert bpa.check(growing.draws())


def test_the_adaptation_lists_make_new_draws_exact() -> None:
    growing = grown(adapted(2, 400), SENTENCES, 19, adaptation_lists=POOL[:2])
    assert "exact" in {step.afresh for step in growing.steps}
    found = growing.draws()
    assert_posterior(found, SENTENCES)
    # Exact draws have the log-likelihoods of all sentences.
    assert found.pointwise.shape[-1] == len(found.sentence_ids) == SENTENCES
    expected = log_expit(-found.flat @ rows().T)
    np.testing.assert_allclose(found.pointwise.reshape(-1, SENTENCES), expected, atol=1e-4)


@pytest.mark.slow
def test_without_the_adaptation_lists_a_gaussian_represents_them_with_a_warning() -> None:
    start = adapted(2, draws=400)
    with pytest.warns(BpaWarning, match="first 2 sentences"):
        growing = grown(start, SENTENCES, SENTENCES - 2, sampler="laplace")
    assert [step.afresh for step in growing.steps] == ["Gaussian"]
    found = growing.draws()
    # The answer is that of the Gaussian times the likelihood of the new ones, by quadrature.
    gaussian = bpa.Prior.of(start)
    precision = np.linalg.inv(gaussian.covariance)

    def log_density(weights: np.ndarray) -> np.ndarray:
        away = weights - gaussian.mean
        added = log_expit(-weights @ rows()[2:].T).sum(axis=1)
        return np.asarray(added - 0.5 * np.einsum("ni,ij,nj->n", away, precision, away))

    grid, p = targets.integrated(log_density, gaussian.mean, 6.0)
    mean = p @ grid
    covariance = (grid - mean).T @ ((grid - mean) * p[:, None])
    assert_weighted_moments(found.flat, np.log(found.importance), mean, covariance)
    # Log-likelihoods are of the added sentences only; the prior is that of the posterior.
    assert found.pointwise.shape[-1] == len(found.sentence_ids) == SENTENCES - 2
    np.testing.assert_array_equal(found.constants["prior_mean"], start.constants["prior_mean"])
    assert found.attrs["adaptation_sentences"] == SENTENCES
    assert bpa.check(found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the posterior equals its prior")
def test_files_between_steps_change_nothing(tmp_path: Path) -> None:
    start = through = adapted(0)
    at_once = Sequential(start)
    for number, some in enumerate((POOL[:1], POOL[1:39], POOL[39:])):
        oracle = reference_model.given(*[0] * len(some))
        at_once.add(some, oracle=oracle)
        path = tmp_path / f"{number}.nc"
        made = bpa.update(through, some, oracle=oracle)
        bpa.write_posterior(made, path)
        through = bpa.as_draws(bpa.read_posterior(path))
    expected = at_once.draws()
    assert [step.afresh for step in at_once.steps] == ["", "exact", ""]
    np.testing.assert_array_equal(through.weights, expected.weights)
    np.testing.assert_allclose(through.importance, expected.importance, atol=1e-9)
    assert [u["afresh"] for u in through.attrs["updates"]] == [s.afresh for s in at_once.steps]
    assert_posterior(through, SENTENCES)


def test_a_list_of_one_changes_nothing() -> None:
    growing = Sequential(adapted(3))
    one = NBest.from_lists([["alone"]], [[[1.0, 2.0]]], NAMES)
    step = growing.add(one, oracle=reference_model.given(0))
    assert not step.afresh
    np.testing.assert_allclose(growing.draws().mean, adapted(3).mean, rtol=1e-6)


# Likelihoods, metrics and gains that were recorded


def texts(seed: int, sentences: int = 6) -> NBest:
    """Lists of five with references, which TER can tell apart."""
    rng = np.random.default_rng(seed)
    words = list("abcdefg")
    strings = [
        [" ".join(rng.choice(words, rng.integers(2, 6))) for _ in range(5)]
        for _ in range(sentences)
    ]
    features = rng.normal(size=(sentences, 5, 2)).tolist()
    references = [(" ".join(rng.choice(words, 4)),) for _ in range(sentences)]
    return NBest.from_lists(strings, features, NAMES, references=references)


def drawn(likelihood: str, **settings: object) -> Draws:
    """Draws that record a likelihood, as many chains leave them."""
    centre = np.array(list(CANONICAL.values()))
    weights = centre + 0.3 * np.random.default_rng(5).normal(size=(2, 500, 2))
    recorded = {"name": likelihood, **settings}
    constants = {"canonical": centre, "prior_mean": centre, "prior_variance": np.full(2, 0.1)}
    attrs = {"likelihood": recorded, "oracle_metric": "ter", "adaptation_sentences": 0}
    return Draws({"weights": weights}, tuple(NAMES), constants=constants, attrs=attrs)


def log_likelihood(one: NBest, weights: np.ndarray, likelihood: Likelihood) -> float:
    """The likelihood of a sentence by its formula; what counts is the TER edits of sacreBLEU."""
    reference = one.references[0][0]
    words = len(reference.split())
    metric = TER()
    edits = [metric.sentence_score(text, [reference]).score * words / 100 for text in one.texts(0)]
    scores, loss = one.features.astype(np.float64) @ weights, np.array(edits) - min(edits)
    if isinstance(likelihood, Pairs):
        better, worse = np.nonzero(loss[:, None] < loss - 1e-9)
        weight = 2 * likelihood.exponent / len(loss)
        return float(weight * log_expit(scores[better] - scores[worse]).sum())
    best = np.flatnonzero(loss < 1e-9)
    canonical = one.scores(list(CANONICAL.values()))
    oracle = best[np.argmax(canonical[best])]
    if isinstance(likelihood, Margin):
        return float(scores[oracle] - logsumexp(scores + likelihood.gamma * loss))
    return float(-likelihood.kappa * softmax(scores) @ loss)


@pytest.mark.parametrize(
    "likelihood",
    [
        Margin(gamma=1.5),
        Risk(kappa=0.7),
        Pairs(exponent=0.7),
    ],
    ids=str,
)
def test_the_recorded_likelihood_is_that_of_the_formula(likelihood: Likelihood) -> None:
    start = drawn(LIKELIHOODS.name_of(likelihood), **likelihood.settings())
    pool = texts(0)
    growing = Sequential(start)
    growing.add(pool)
    found = growing.draws().pointwise.reshape(1000, -1)
    for sentence, one in enumerate(pool):
        for draw in (0, 250, 251, 999):  # of several blocks
            expected = log_likelihood(one, start.flat[draw], likelihood)
            assert found[draw, sentence] == pytest.approx(expected, abs=1e-4)


def test_a_recorded_column_is_the_criterion_and_not_a_feature() -> None:
    whole = texts(1).with_features("comet", np.random.default_rng(2).normal(size=(30, 1)))
    column = {"oracle_metric": "comet", "gain_column": {"column": "comet", "negative": False}}
    start = drawn("oracle")
    growing = Sequential(replace(start, attrs={**start.attrs, **column}))
    growing.add(whole)
    best = [int(np.argmax(one.features[:, 2])) for one in whole]
    assert growing.draws().observed["oracle"].tolist() == best


def test_recorded_features_are_computed_for_new_lists() -> None:
    start, pool = drawn("oracle"), texts(2)
    more = {"feature_sources": [{"source": "length", "characters": True, "words": False}]}
    renamed = replace(start, features=("LM0", "LengthCharacters"), attrs={**start.attrs, **more})
    growing = Sequential(renamed)
    growing.add(pool.without("WP0"))
    found = growing.draws().pointwise.reshape(1000, -1)
    for sentence, one in enumerate(pool):
        table = np.column_stack([one.features[:, 0], [len(text) for text in one.texts(0)]])
        oracle = growing.draws().observed["oracle"][sentence]
        expected = reference_model.log_choice(table, start.flat[7])[oracle]
        assert found[7, sentence] == pytest.approx(expected, abs=1e-4)


# What cannot be updated


def test_a_point_or_draws_of_another_density_are_refused() -> None:
    start, one = drawn("oracle"), POOL[3:4]
    point = replace(start, values={"weights": start.weights[:1, :1]}, kind="point")
    other = replace(start, attrs={**start.attrs, "sampler": "heuristic"})
    for posterior, code in ((point, "not-supported"), (other, "conflict")):
        with raises(UsageError, code, parameter="posterior"):
            bpa.update(posterior, one, oracle=reference_model.given(0))


def test_a_posterior_that_fails_its_check_is_refused() -> None:
    start = drawn("oracle")
    values = start.weights + np.linspace(0, 9, start.shape[1])[None, :, None]
    drifting = replace(start, values={"weights": values})
    with pytest.raises(NotConverged):
        bpa.update(drifting, POOL[3:4], oracle=reference_model.given(0))


NO_REFERENCES, LISTS = ("missing-references", "references"), "adaptation_lists"


def foreign(**attrs: object) -> Draws:
    """The posterior of three sentences that records something else."""
    start = adapted(3)
    return replace(start, attrs={**start.attrs, **attrs})


def test_what_does_not_fit_is_refused_with_the_remedy() -> None:
    start, pool = adapted(3), POOL
    other = reference_model.pairs(rows(), ["LM0", "TM0"])
    one = pool[3:4]
    named = one.with_references(["oracle"])
    damaged = {**start.constants, "added_size": np.array([3])}
    calls = [
        (lambda: Sequential(start).add(other[3:4]), "missing-feature", "without"),
        (lambda: Sequential(start).add(pool[:0]), "no-data", "nbest"),
        (lambda: Sequential(foreign(oracle_signature="")).add(one), *NO_REFERENCES),
        (lambda: Sequential(start).add(named), "mismatch", "metric"),
        (lambda: Sequential(foreign(oracle_metric="mine")).add(named), "missing-setting", "metric"),
        (lambda: Sequential(foreign(likelihood="?")), "bad-data", "posterior"),
        (lambda: Sequential(foreign(adaptation_sentences="?")), "damaged", "posterior"),
        (lambda: Sequential(start, adaptation_lists=pool[:4]), "wrong-length", LISTS),
        (lambda: Sequential(start, adaptation_lists=pool[4:7]), "mismatch", LISTS),
        (lambda: Sequential(replace(start, constants=damaged)), "damaged", "posterior"),
    ]
    for call, code, parameter in calls:
        with pytest.raises((DataError, UsageError)) as caught:
            call()
        assert (caught.value.code, caught.value.parameter) == (code, parameter), caught.value


def test_a_custom_model_is_reweighted_and_not_sampled_again() -> None:
    start = adapted(3, 150)  # so few draws that 36 further sentences leave next to none
    growing = Sequential(replace(start, attrs={**start.attrs, "model": "mine"}))
    growing.add(POOL[3:4], oracle=reference_model.given(0))
    before = growing.draws()
    with raises(DataError, "not-supported", parameter="posterior", match="mine"):
        growing.add(POOL[4:], oracle=reference_model.given(*[0] * (SENTENCES - 4)))
    # The failed step has no effect.
    np.testing.assert_array_equal(growing.draws().importance, before.importance)
    assert growing.draws().attrs["adaptation_sentences"] == 4


def test_a_prior_of_several_sites_is_reweighted() -> None:
    start = drawn("oracle")
    sites = {**start.values, "scale": np.ones((*start.shape, 2))}
    growing = Sequential(replace(start, values=sites, sites=("scale",)))
    growing.add(POOL[3:4], oracle=reference_model.given(0))
    ratio = growing.draws().statistics["log_ratio"].ravel()
    np.testing.assert_allclose(ratio, log_expit(-start.flat @ rows()[3]), atol=1e-4)
    assert growing.draws().values["scale"] is sites["scale"]

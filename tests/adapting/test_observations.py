"""What is observed, step by step: gains, their ties, choices of two candidates, preferences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from numpyro import infer
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from support import reference_model
from support.moment_checks import assert_moments
from support.raising import capture_notes, raises
from support.registries import GAINS, LIKELIHOODS
from support.targets import integrated, moments_of

from bpa_ppl import (
    DataError,
    Isotropic,
    NBest,
    OracleChoice,
    Reranker,
    adapt,
    as_weight_draws,
    from_arrays,
    from_lists,
    log_density,
    rerank,
)
from bpa_ppl.extending import Likelihood, Lists, choose_prior, log_linear, observe, oracles, prepare

CANONICAL = {"a": 0.5, "b": -0.2}
quiet = pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(0)
    texts = [[f"text {n}" for n in range(4)] for _ in range(30)]
    lists = from_lists(texts, rng.normal(size=(30, 4, 2)), list(CANONICAL))
    preferences = [[[int(winner), int((winner + 1) % 4)]] for winner in rng.integers(4, size=30)]
    return lists.with_extras(grade=rng.integers(5, size=120)).with_sentence_extras(
        preferences=preferences
    )


def test_numpyro_has_the_density_of_the_steps(lists: NBest) -> None:
    """NumPyro's log density of the model and the data of the steps is that of `log_density`."""
    prepared = prepare(lists, CANONICAL, gain="grade", likelihood="oracle")
    observed = observe(prepared)
    prior = choose_prior(observed, prepared)
    target = log_density(lists, CANONICAL, gain="grade", likelihood="oracle")
    data = observed.table(prepared.match), prior.as_arrays()

    @jax.jit
    def theirs(z: Any, data: Any) -> Any:
        return infer.util.log_density(
            log_linear, (*data, LIKELIHOODS["oracle"]()), {}, {"weights": z}
        )[0]

    for z in np.random.default_rng(0).normal(size=(3, 2)):
        assert target.value_and_gradient(z)[0] == pytest.approx(float(theirs(z, data)), rel=1e-6)


@pytest.mark.parametrize("name", [*LIKELIHOODS])
def test_observations_have_one_protocol(name: str, lists: NBest) -> None:
    """What a likelihood observes is scored lists or comparisons, and both have the same parts."""
    prepared = prepare(lists, CANONICAL, gain="grade", likelihood=name)
    observed = observe(prepared)
    likelihood = prepared.likelihood  # that of the gain in place of `none`
    assert (observed.choices is not None) == (likelihood.observes == "preferences")
    assert likelihood.defaults(observed).observes == likelihood.observes
    assert {"texts", "features", "oracles"} <= observed.hashes().keys()
    assert observed.record().sentences == len(observed.lists)
    table = observed.table()
    rows = np.sort(table.sentence[table.sentence >= 0])
    np.testing.assert_array_equal(rows, np.arange(len(observed.lists)))
    assert ("gain" in table.buckets[0]) == (likelihood.observes == "gains")
    assert ("tie" in table.buckets[0]) == (likelihood.observes == "preferences")
    assert (observed.edit is not None) == (likelihood.observes == "gains")


def test_the_prior_is_that_of_adapt(lists: NBest) -> None:
    """With a learned scale: without canonical weights."""
    prepared = prepare(lists, gain="grade")
    prior = choose_prior(observe(prepared), prepared)
    expected = log_density(lists, None, gain="grade").prior
    np.testing.assert_allclose(prior.variance, expected.variance)
    assert prior.record is not None
    assert prior.record.scale_learned
    scale = np.sqrt(prior.variance[0]) * lists.spread[0]
    assert prior.record.scale == pytest.approx(scale, rel=0.01)


FEATURES = ("comet", "length")
SENTENCES, SIZE = 12, 5


def graded_lists(seed: int = 0, sentences: int = SENTENCES) -> NBest:
    """Lists whose gains are small whole numbers, so that most have several best candidates."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(sentences, SIZE, 2)).astype(np.float32)
    noise = rng.normal(size=(sentences, SIZE))
    mqm = np.minimum(np.round(features[..., 0] + noise), 1.0)
    texts = [[f"text {s} {rng.integers(10**6)}" for _ in range(SIZE)] for s in range(sentences)]
    return from_lists(texts, list(features), FEATURES, extras={"mqm": mqm.tolist()})


def brute_force(nbest: NBest, weights: np.ndarray, gamma: float) -> np.ndarray:
    """(1/k) Σ log p(e) over the k best candidates, with a margin, list by list."""
    mqm, found = np.asarray(nbest.extras["mqm"]), []
    for s in range(len(nbest)):
        rows = nbest.rows(s)
        gain, scores = mqm[rows], nbest.features[rows].astype(np.float64) @ weights
        log_p = scores - np.logaddexp.reduce(scores + gamma * (gain.max() - gain))
        found.append(log_p[gain == gain.max()].mean())
    return np.array(found)


@quiet
@pytest.mark.parametrize("likelihood", ["oracle", "margin"])
def test_the_tied_best_share_the_observation(likelihood: str) -> None:
    pool = graded_lists()
    assert (oracles(pool, "mqm").tied > 1).sum() > 3
    draws = as_weight_draws(adapt(pool, None, gain="mqm", likelihood=likelihood, sampler="map"))
    gamma = draws.adaptation.likelihood.settings.get("gamma", 0.0)
    expected = brute_force(pool, draws.mean, gamma)
    np.testing.assert_allclose(draws.pointwise[0, 0], expected, rtol=1e-5, atol=1e-5)
    mean, variance = (draws.draws.constants[f"prior_{moment}"] for moment in ("mean", "variance"))

    def loss(weights: np.ndarray) -> float:
        prior = norm.logpdf(weights, mean, np.sqrt(variance)).sum()
        return -float(brute_force(pool, weights, gamma).sum() + prior)

    np.testing.assert_allclose(draws.mean, minimize(loss, np.zeros(2), tol=1e-10).x, atol=2e-4)


@pytest.mark.slow
@quiet
def test_draws_have_the_moments_of_shared_ties() -> None:
    """By quadrature."""
    pool, zeros = graded_lists(sentences=24), dict.fromkeys(FEATURES, 0.0)
    options = {"gain": "mqm", "likelihood": "oracle:ties=shared", "prior": "isotropic:variance=4.0"}
    draws = as_weight_draws(adapt(pool, zeros, sampler="imh:draws=500", **options))

    def log_density(weights: np.ndarray) -> np.ndarray:
        prior = norm.logpdf(weights, 0.0, 2.0).sum(axis=1)
        return prior + [brute_force(pool, one, 0.0).sum() for one in weights]

    grid, p = integrated(log_density, draws.mean, 6 * draws.deviation.max(), 41)
    assert_moments(draws.weights, *moments_of(grid, p))


def test_many_draws_side_by_side_have_the_density_of_each() -> None:
    """Shapes at which XLA computed a sum of products wrongly from the 33rd draw on."""
    rng = np.random.default_rng(0)
    graded_lists, size, draws = 512, 8, 256
    features = rng.normal(size=(2, graded_lists, size)).astype(np.float32)
    share = np.repeat(np.float32([[0.5, 0.5, 0, 0, 0, 0, 0, 0]]), graded_lists, axis=0)
    weights = rng.normal(size=(draws, 2)).astype(np.float32)
    base = np.zeros((1, graded_lists, size), np.float32)

    bucket = {"features": np.moveaxis(features, 0, 1)[None], "base": base, "share": share[None]}
    oracle = np.zeros(graded_lists, np.int32)
    table = Lists((bucket,), oracle, oracle, oracle, np.array([graded_lists]))
    log_p = jax.vmap(lambda vector: OracleChoice(table, vector).log_prob(oracle))
    found = np.asarray(jax.jit(log_p)(weights))
    scores = np.einsum("dq,qsn->dsn", weights.astype(np.float64), features)
    expected = scores[..., :2].mean(axis=-1) - np.logaddexp.reduce(scores, axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@quiet
@pytest.mark.parametrize(
    ("sampler", "likelihood"), [("map", "oracle"), ("imh:draws=60,chains=2", "risk")]
)
def test_the_order_of_candidates_does_not_matter(sampler: str, likelihood: str) -> None:
    pool = graded_lists()
    rng, places = np.random.default_rng(1), np.arange(len(pool.features))
    rows = np.concatenate([rng.permutation(places[pool.rows(s)]) for s in range(SENTENCES)])
    other = pool.regroup(slice(None), rows, pool.sizes)
    options: dict[str, Any] = {"gain": "mqm", "likelihood": likelihood, "sampler": sampler}
    one, two = (as_weight_draws(adapt(p, None, **options)) for p in (pool, other))
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-9, atol=1e-9)
    chosen = rows[other.offsets[:-1] + two.draws.observed["oracle"]]
    np.testing.assert_array_equal(chosen, pool.offsets[:-1] + one.draws.observed["oracle"])


@quiet
def test_totals_break_ties_where_there_are_no_canonical_weights() -> None:
    pool = graded_lists()
    totals = np.random.default_rng(2).normal(size=len(pool.features))
    scored = replace(pool, totals=totals.astype(np.float32))
    found = observe(prepare(scored, None, gain="mqm"))
    assert found.record().ties == "canonical"
    gain = np.asarray(pool.extras["mqm"])
    best = np.repeat(np.maximum.reduceat(gain, pool.offsets[:-1]), pool.sizes)
    expected = pool.best(np.where(gain == best, totals, -np.inf))
    assert found.chosen.tolist() == expected.tolist()


@quiet
def test_shared_ties_are_counted_and_lists_of_ties_alone_are_an_error() -> None:
    pool = graded_lists()
    with capture_notes() as notes:
        shared = as_weight_draws(adapt(pool, None, gain="mqm", sampler="map"))
    assert shared.adaptation.observed.ties == "shared"
    tied = int((oracles(pool, "mqm").tied > 1).sum())
    (said,) = [n.message for n in notes if "several best candidates" in n.message]
    assert said.startswith(f"{tied} of 12 lists")
    same = pool.with_extras(mqm=[0.0] * len(pool.features))
    with raises(DataError, "no-data"):
        adapt(same, None, gain="mqm", sampler="map")


@quiet
def test_without_canonical_weights_the_mean_of_the_scores_decides() -> None:
    posterior = adapt(graded_lists(), None, gain="mqm", sampler="imh:draws=300,chains=2")
    draws, new = as_weight_draws(posterior), graded_lists(3, 40)
    found = rerank(new, posterior, unchecked=True)
    assert draws.adaptation.start == "none"
    assert found.choice.tolist() == new.best(new.features @ draws.mean).tolist()
    for s in (0, 17):
        p = np.exp(reference_model.log_choice(new.features[new.rows(s)], draws.mean))
        assert found.probability[s] == pytest.approx(p.max(), rel=1e-5)
    named = rerank(new, posterior, rule="predictive", unchecked=True)
    assert not np.allclose(named.probability, found.probability)
    canonical = {"comet": 0.5, "length": 0.0}
    posterior = adapt(graded_lists(), canonical, gain="mqm", sampler="map")
    assert as_weight_draws(posterior).adaptation.start == "canonical"


JUDGES = 6
NEW = 1000
CHOSEN = GAINS["column"](column="chosen")


def judged_pairs(pairs: int, strength: float, seed: int) -> NBest:
    """Pairs of answers with the scores of judges that agree in part, and the chosen answer.

    Args:
        pairs: how many.
        strength: the standard deviation of the true log odds; 0.8 are judges that are right in
            65 %, 4 in 90 %.
        seed: of weights, scores and choices.
    """
    rng = np.random.default_rng(seed)
    covariance = 0.5 + 0.5 * np.eye(JUDGES)
    weights = rng.normal(0.5, 1.0, JUDGES)
    weights *= strength / np.sqrt(weights @ covariance @ weights)
    scores = rng.multivariate_normal(np.zeros(JUDGES), covariance / 2, size=(pairs, 2))
    first = rng.random(pairs) < expit((scores[:, 0] - scores[:, 1]) @ weights)
    names = [f"judge{number}" for number in range(JUDGES)]
    lists = from_arrays([""] * (2 * pairs), scores.reshape(-1, JUDGES), names, 2)
    answers = [[[0, 1] if won else [1, 0]] for won in first]
    lists = lists.with_extras(chosen=np.stack([first, ~first], axis=1).ravel().astype(float))
    return lists.with_sentence_extras(preferences=answers)


def errors(probability: np.ndarray, chosen: np.ndarray) -> tuple[float, float]:
    """Return mean probability − share right, and the expected calibration error in ten bins."""
    p, right = probability.reshape(-1, 2), chosen.reshape(-1, 2)
    best = p.argmax(axis=1)
    difference = p.max(axis=1) - np.take_along_axis(right, best[:, None], axis=1)[:, 0]
    parts = np.array_split(difference[np.argsort(p.max(axis=1))], 10)
    return float(difference.mean()), float(np.mean([abs(part.mean()) for part in parts]))


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.8, 4.0])
@pytest.mark.parametrize("gain", [None, "chosen"])
@quiet
def test_probabilities_of_pairs_are_calibrated(gain: str | None, strength: float) -> None:
    found = []
    for seed in range(8):
        lists = judged_pairs(50 + NEW, strength, seed)
        judged, new = lists[:50], lists[50:]
        posterior = adapt(judged, None, gain=gain, sampler="laplace")
        probability = Reranker(posterior)(new).probabilities
        found.append(errors(probability, np.asarray(new.extras["chosen"])))
    difference, error = np.mean(found, axis=0)
    assert abs(difference) < 0.06
    assert error < 0.06


@quiet
def test_gains_of_two_candidates_of_longer_lists_are_preferences() -> None:
    """With the prior of answers about longer lists."""
    rng = np.random.default_rng(2)
    lists = from_arrays([""] * 80, rng.normal(size=(80, 2)), ["a", "b"], 4)
    gains, answers = np.full((20, 4), np.nan), []
    for row in gains:
        better, worse = rng.permutation(4)[:2].tolist()
        row[[better, worse]] = 1, 0
        answers.append([[better, worse]])
    lists = lists.with_extras(chosen=gains.ravel()).with_sentence_extras(preferences=answers)
    by_gain = as_weight_draws(adapt(lists, None, sampler="map", gain="chosen"))
    by_preference = as_weight_draws(adapt(lists, None, sampler="map"))
    assert by_gain.adaptation.prior.scale == pytest.approx(
        by_preference.adaptation.prior.scale, rel=0.01
    )
    np.testing.assert_allclose(by_gain.mean, by_preference.mean, rtol=0.01)


def test_one_chosen_of_two_is_a_logistic_regression() -> None:
    lists = judged_pairs(60, 2.0, 0)
    pairs = lists.features.reshape(-1, 2, JUDGES).astype(np.float64)
    chosen = np.asarray(lists.extras["chosen"]).reshape(-1, 2)[:, 0]
    scale = 0.7 / lists.spread
    fitted = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10)
    expected = fitted.fit((pairs[:, 0] - pairs[:, 1]) * scale, chosen).coef_[0] * scale
    options: dict[str, Any] = {"prior": Isotropic(scale=0.7, mean=0.0), "sampler": "map"}
    for posterior in (adapt(lists, None, gain="chosen", **options), adapt(lists, None, **options)):
        np.testing.assert_allclose(as_weight_draws(posterior).mean, expected, rtol=1e-3, atol=1e-4)


def test_the_default_likelihood_of_choices_of_two() -> None:
    def choose(gain: Any, lists: NBest) -> Likelihood:
        return prepare(lists, None, gain=gain).likelihood

    pairs = judged_pairs(8, 1.0, 0)
    graded = pairs.with_extras(chosen=np.arange(16.0))
    three = from_lists([["a", "b", "c"]] * 2, [[[0.0], [1.0], [2.0]]] * 2, ["judge"])
    unjudged = three.with_extras(chosen=[1, None, 0] * 2)
    other = pairs.with_extras(chosen=2 - 3 * np.array(pairs.extras["chosen"]))
    for lists in (pairs, other, unjudged):
        assert isinstance(choose(CHOSEN, lists), LIKELIHOODS["oracle"])
    for lists in (graded, three.with_extras(chosen=[1, 0, 0] * 2), unjudged[:1]):
        assert isinstance(choose(CHOSEN, lists), LIKELIHOODS["pairs"])
    assert isinstance(choose(GAINS["ter"](), pairs), LIKELIHOODS["preference"])  # no references


@quiet
def test_a_tie_is_no_choice_of_the_canonical_weights() -> None:
    pairs = judged_pairs(60, 1.0, 0)
    chosen = np.array(pairs.extras["chosen"])
    chosen[20:] = 1  # both answers to the other fifty questions are good
    tied = pairs.with_extras(chosen=chosen)
    canonical = dict.fromkeys(pairs.feature_names, 3.0)
    options: dict[str, Any] = {"gain": "chosen", "sampler": "map"}
    shared = adapt(tied, canonical, likelihood="oracle:ties=shared", **options)
    assert np.array_equal(
        as_weight_draws(adapt(tied, canonical, **options)).mean, as_weight_draws(shared).mean
    )


@pytest.mark.slow
def test_between_two_candidates_the_mean_of_the_weights_has_the_averaged_probability() -> None:
    lists = judged_pairs(120, 2.0, 1)
    posterior = adapt(lists[:60], None)
    assert as_weight_draws(posterior).adaptation.start == "none"
    mean, predictive = (
        Reranker(posterior, rule=rule, draws="all")(lists) for rule in ("mean", "predictive")
    )
    assert np.array_equal(mean.probability, predictive.probability)
    scores = lists.scores(
        as_weight_draws(posterior).aligned(lists, as_weight_draws(posterior).mean[None])[0]
    )
    clear = mean.probability > 0.51  # the average decides, and the posterior is not symmetric
    assert clear.sum() > 110
    assert np.array_equal(mean.choice[clear], lists.best(scores)[clear])

"""Settings chosen from the adaptation sentences, against refits by quadrature."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import plain
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from targets import integrated

from bpa_ppl import DataError, NBest, UsageError, adapt
from bpa_ppl.models import Isotropic, Likelihood, Margin, Prior, Risk, Soft
from bpa_ppl.posterior import as_draws
from bpa_ppl.posterior.draws import importance_weights, kish
from bpa_ppl.quality import Oracles, resolve
from bpa_ppl.sampling.adapting import target_of
from bpa_ppl.sampling.base import Data, Target
from bpa_ppl.sampling.choosing import (
    SETTINGS,
    Candidate,
    Choice,
    LeftOut,
    Parts,
    built,
    chosen,
    copies,
    decision,
    evidence,
    lead,
    silenced,
)
from bpa_ppl.sampling.density import evaluate
from bpa_ppl.sampling.heuristic import Heuristic
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.sentences import Sentences
from bpa_ppl.weights import match

CANONICAL = {"LM0": 0.3, "WP0": -0.2}
SENTENCES, SIZE, POINTS = 8, 5, 161
PARTS = Parts(Margin(), Isotropic(), IndependenceMetropolis())


def problem(seed: int = 5) -> Sentences:
    """Short lists of two features, of which the first says something about the gain."""
    rng = np.random.default_rng(seed)
    worth = rng.integers(-6, 1, size=(SENTENCES, SIZE)).astype(float)
    features = rng.normal(size=(SENTENCES, SIZE, 2))
    features[..., 0] += 0.3 * worth
    texts = [[f"{s} {e}" for e in range(SIZE)] for s in range(SENTENCES)]
    nbest = NBest.from_lists(texts, list(features), list(CANONICAL))
    best = worth.argmax(axis=1)
    oracles = Oracles(best, np.zeros(SENTENCES), np.ones(SENTENCES, int), "first", "ter", "given")
    return Sentences(nbest, match(CANONICAL, nbest), resolve("ter"), oracles, worth.ravel())


def posterior_of(known: Sentences, likelihood: Likelihood, prior: Prior) -> Target:
    likely, seen = known.observed(likelihood, prior.mean)
    worth = known.gains if likely.needs_gains else None
    given: dict[str, Any] = {"likelihood": likely, "oracle": seen, "gains": worth}
    return target_of(known.nbest, known.match, prior, **given)


def on_grid(
    known: Sentences, gamma: float, variance: float, left_out: int | None = None
) -> tuple[plain.Array, plain.Array, float]:
    """Weights on a grid, the posterior there, and the logarithm of its integral, in float64."""
    mean = np.array(list(CANONICAL.values()))
    lists = known.nbest.features.astype(np.float64).reshape(SENTENCES, SIZE, 2)
    assert known.gains is not None
    worth = known.gains.reshape(SENTENCES, SIZE)

    def log_density(weights: plain.Array) -> plain.Array:
        total = norm.logpdf(weights, mean, np.sqrt(variance)).sum(axis=1)
        for s in set(range(SENTENCES)) - {left_out}:
            best = known.oracles.index[s]
            scores = weights @ lists[s].T
            cost = gamma * (worth[s, best] - worth[s])
            total += scores[:, best] - logsumexp(scores + cost, axis=1)
        return np.asarray(total)

    width = 12 * np.sqrt(variance) if gamma else 6 * np.sqrt(variance)
    grid, p = integrated(log_density, mean, width, points=POINTS)
    cell = (2 * width / (POINTS - 1)) ** 2
    return grid, p, float(logsumexp(log_density(grid)) + np.log(cell))


@pytest.fixture(scope="module")
def known() -> Sentences:
    return problem()


@pytest.mark.parametrize("again", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_posterior_without_a_sentence_is_that_of_a_refit(
    known: Sentences, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if again:
        monkeypatch.setattr("bpa_ppl.sampling.choosing.POOR_PARETO_K", -np.inf)
    target = posterior_of(known, Margin(gamma=1.0), built(Isotropic(variance=0.5), known.match))
    posterior = LeftOut(target, PARTS.sampler, draws=4000)
    for sentence in (0, 3):
        weights, log_weight, fresh = posterior.without(np.array([sentence]))
        assert fresh == again
        grid, p, _ = on_grid(known, 1.0, 0.5, sentence)
        share = importance_weights(log_weight)
        assert kish(share) > 1000
        spread = np.sqrt(p @ (grid - p @ grid) ** 2)
        error = np.abs(share @ weights - p @ grid) / (spread / np.sqrt(kish(share)))
        assert error.max() < 5


def test_a_sentence_that_is_left_out_changes_the_posterior(known: Sentences) -> None:
    """Else the test above could not fail."""
    grid, p, _ = on_grid(known, 1.0, 0.5)
    without, q, _ = on_grid(known, 1.0, 0.5, 3)
    assert np.abs(p @ grid - q @ without).max() > 0.05


@pytest.mark.parametrize("likelihood", [Margin(gamma=1.5), Soft(tau=0.7), Risk(kappa=1.0)])
def test_silenced_sentences_say_nothing(known: Sentences, likelihood: Likelihood) -> None:
    target = posterior_of(known, likelihood, built(Isotropic(), known.match))
    z = {"weights": np.random.default_rng(0).normal(size=(1, 3, 2))}
    before = evaluate(target.program, target.data, z)[1]["oracle"]
    quiet = Data(silenced(target.data.lists, np.array([1, 6])), target.data.prior)
    after = evaluate(target.program, quiet, z)[1]["oracle"]
    np.testing.assert_array_equal(after[..., [1, 6]], 0.0)
    rest = [0, 2, 3, 4, 5, 7]
    np.testing.assert_array_equal(after[..., rest], before[..., rest])
    assert (np.abs(before[..., [1, 6]]) > 1e-3).all()


def exact_gain(
    known: Sentences, gamma: float, variance: float
) -> tuple[plain.Array, npt.NDArray[np.bool_]]:
    """What the predictive of a refit by quadrature chooses is worth, and whether it is no tie."""
    assert known.gains is not None
    found, clear = [], []
    for s in range(SENTENCES):
        grid, p, _ = on_grid(known, gamma, variance, s)
        scores = grid @ known.nbest.features[known.nbest.rows(s)].astype(np.float64).T
        votes = p @ np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        found.append(known.gains[known.nbest.rows(s)][votes.argmax()])
        second, first = np.sort(votes)[-2:]
        clear.append(first - second > 0.05)  # beyond what 500 draws get wrong
    return np.array(found), np.array(clear)


@pytest.mark.slow
def test_every_candidate_is_judged_as_by_exact_refits(
    known: Sentences, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"margin": (2.0, 0.0), "prior-variance": (0.1, 1.0)}
    settings = {name: SETTINGS[name]._replace(values=values) for name, values in few.items()}
    monkeypatch.setattr("bpa_ppl.sampling.choosing.SETTINGS", settings)
    told: list[int] = []
    choice = chosen(
        tuple(few),
        "loo",
        PARTS,
        known,
        partial(posterior_of, known),
        lambda done, total, note: told.append(total),
    )
    assert told == [4] * 4
    pairs = [tuple(one.values.values()) for one in choice.candidates]
    assert pairs == [(2.0, 0.1), (2.0, 1.0), (0.0, 0.1), (0.0, 1.0)]
    assert len({one.score for one in choice.candidates}) > 1  # the candidates are told apart
    for one, pair in zip(choice.candidates, pairs, strict=True):
        exact, clear = exact_gain(known, *pair)
        assert clear.mean() > 0.5
        np.testing.assert_array_equal(one.gain[clear], exact[clear], err_msg=str(one))


@pytest.mark.parametrize("variance", [0.03, 0.1, 0.3])
def test_evidence_is_the_integral(known: Sentences, variance: float) -> None:
    prior = built(Isotropic(variance=variance), known.match)
    with jax.enable_x64(True):
        found = evidence(posterior_of(known, Margin(gamma=0.0), prior))
    # Laplace's relative error falls with the sentences and the width of the prior: 6 % at σ_T = 1.
    assert found == pytest.approx(on_grid(known, 0.0, variance)[2], abs=0.05)


def planted(weights: list[float], sentences: int = 16) -> NBest:
    """Lists whose oracles, the first hypotheses, were drawn with some weights."""
    rng = np.random.default_rng(1)
    tables = []
    for _ in range(sentences):
        table = rng.normal(size=(4, len(weights)))
        best = int(np.argmax(table @ weights + rng.gumbel(size=4)))
        tables.append(np.roll(table, -best, axis=0))
    texts = [["right", "wrong", "wrong too", "quite wrong"]] * sentences
    names = [f"f{k}" for k in range(len(weights))]
    return NBest.from_lists(texts, tables, names, references=[("right",)] * sentences)


NEAR, FAR = [0.5] * 4, [2.5, -2.5] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "better", "worse", "by"),
    [(NEAR, 0.01, 1.0, "evidence"), (FAR, 1.0, 0.01, "evidence"), (FAR, 1.0, 0.01, "loo")],
)
def test_a_planted_prior_variance_is_preferred(
    weights: list[float], better: float, worse: float, by: str
) -> None:
    lists = planted(weights)
    canonical = dict.fromkeys(lists.feature_names, 0.5)
    options: dict[str, Any] = {"choose": "prior-variance", "choose_by": by, "likelihood": "oracle"}
    draws = as_draws(adapt(lists, canonical, sampler="map", **options))
    made = draws.attrs["choice"]
    judged = {row["prior-variance"]: row[by] for row in made["table"]}
    assert list(judged) == [0.1, 0.01, 0.03, 0.3, 1.0]
    assert judged[better] > judged[worse]
    variance = made["chosen"]["prior-variance"]
    assert draws.attrs["prior"]["variance"] == variance
    np.testing.assert_allclose(draws.constants["prior_variance"], variance)
    if by == "evidence":
        assert judged[variance] == max(judged.values())


def test_what_was_chosen_is_what_is_adapted_with() -> None:
    """The margin, asked for without naming the likelihood."""
    lists = planted(FAR)
    canonical = dict.fromkeys(lists.feature_names, 0.5)
    draws = as_draws(adapt(lists, canonical, sampler="map", choose=["margin"]))
    made = draws.attrs["choice"]
    assert made["by"] == "loo"
    assert [row["margin"] for row in made["table"]] == [2.0, 0.0, 1.0, 4.0, 8.0]
    assert draws.attrs["likelihood"] == {"name": "margin", "gamma": made["chosen"]["margin"]}
    same = Margin(gamma=made["chosen"]["margin"])
    plainly = adapt(lists, canonical, sampler="map", likelihood=same)
    np.testing.assert_array_equal(as_draws(plainly).mean, draws.mean)


def test_delta_is_judged_by_exact_reweighting() -> None:
    lists = planted(FAR)
    canonical = dict.fromkeys(lists.feature_names, 0.5)
    options: dict[str, Any] = {"sampler": "heuristic", "likelihood": "oracle", "draws": 40}
    draws = as_draws(adapt(lists, canonical, choose="delta", **options))
    vectors, none = draws.flat, np.zeros(len(lists), int)
    each = np.array([plain.log_likelihood(lists, none, vector) for vector in vectors])
    before = np.array([plain.log_prior(vector, [0.5] * 4, 0.1) for vector in vectors])
    worth = np.array([0.0, -1.0, -2.0, -2.0])  # edits of "wrong" and so on
    for row in draws.attrs["choice"]["table"]:
        gained = []
        for s in range(len(lists)):
            say = importance_weights(np.delete(each, s, axis=1).sum(axis=1) / row["delta"] + before)
            p = plain.predictive(lists[s : s + 1], vectors, say, 1 / row["delta"])[0]
            gained.append(worth[int(p.argmax())])
        assert row["loo"] == pytest.approx(np.mean(gained), abs=1e-5)
    assert draws.attrs["settings"]["delta"] == draws.attrs["choice"]["chosen"]["delta"]


def test_copies_are_left_out_together() -> None:
    lists = planted([1.0, 0.0], sentences=4)
    assert copies(lists.select([2, 0, 2, 1, 0])).tolist() == [0, 1, 0, 2, 1]


def candidates(*gains: list[float]) -> list[Candidate]:
    return [
        Candidate({"margin": float(k)}, PARTS, np.array(gain, float))
        for k, gain in enumerate(gains)
    ]


@pytest.mark.parametrize(
    ("gains", "index", "said"),
    [
        (([0, 0, 0, 0], [1, 1, 1, 2]), 1, "chose margin 1: mean gain of a sentence left out 1.250"),
        (([0, 0, 0, 0], [4, -3, 0, 0]), 0, "margin 1 has 0.250, ahead by 0.2 standard errors"),
        (([1, 0], [0, 0]), 0, "kept margin 0: mean gain of a sentence left out 0.500, the highest"),
        (([0, 0], [1, 1]), 1, "1.000 against 0.000 of margin 0"),
    ],
)
def test_a_candidate_must_be_ahead_of_the_defaults(gains: Any, index: int, said: str) -> None:
    tried = candidates(*gains)
    assert decision(tried) == index
    assert said in str(Choice("loo", index, tried))


def test_equals_are_not_ahead() -> None:
    assert lead(*candidates([1, 2], [1, 2])) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"choose": "gamma"}, "unknown setting to choose 'gamma': choose one of margin"),
        ({"choose": "margin", "choose_by": "waic"}, "unknown criterion of choice 'waic'"),
        (
            {"choose": "margin", "likelihood": "oracle"},
            "margin is a setting of the likelihood margin: name that likelihood, or leave margin",
        ),
        ({"choose": "kappa"}, "kappa is a setting of the likelihood hope or risk"),
        ({"choose": "delta"}, "delta is a setting of the sampler heuristic"),
        (
            {"choose": "margin", "likelihood": Margin(gamma=3.0)},
            "margin is both given and to be chosen: leave one of them out",
        ),
        ({"choose": "prior-variance", "prior_variance": 0.2}, "prior-variance is both given"),
        (
            {"choose": "margin", "choose_by": "evidence"},
            "evidence compares priors, and margin changes the likelihood: choose it by loo",
        ),
        ({"choose": "prior-variance", "model": "none"}, "a model is a function"),
    ],
)
def test_what_cannot_be_chosen_is_said_at_once(options: dict[str, Any], message: str) -> None:
    lists = planted([1.0, 0.0], sentences=3)
    with pytest.raises(UsageError, match=message):
        adapt(lists, dict.fromkeys(lists.feature_names, 0.5), **options)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_sentences(count: int) -> None:
    lists = planted([1.0, 0.0], sentences=3).select([0] * count * 2)
    with pytest.raises(DataError, match="two different ones or more"):
        adapt(lists, dict.fromkeys(lists.feature_names, 0.5), choose="prior-variance")


def test_the_choice_can_be_interrupted(known: Sentences) -> None:
    def stop(done: int, total: int, note: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chosen(("margin",), "loo", PARTS, known, partial(posterior_of, known), stop)


def test_every_setting_has_its_default_first() -> None:
    for setting in SETTINGS.values():
        assert len(set(setting.values)) == len(setting.values)
    assert Margin().scaled(1.0).gamma == SETTINGS["margin"].values[0]
    assert Isotropic().variance == SETTINGS["prior-variance"].values[0]
    assert Heuristic().delta == SETTINGS["delta"].values[0]

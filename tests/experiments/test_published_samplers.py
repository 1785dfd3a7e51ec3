"""The published samples of weights, step by step, and their importance weights by SciPy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from support import reference_model
from support.raising import raises
from support.targets import NAMES

from bpa_ppl import (
    DataError,
    NBest,
    Prior,
    UsageError,
    adapt,
    check,
    from_lists,
    rerank,
    write_posterior,
)
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.experiments.samplers.published import Heuristic, WeightTrace, perturb
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.files import read_draws
from bpa_ppl.weights import StartingWeights

ORACLE = (2, 0, 1)


def published(
    canonical: reference_model.Array, uniform: reference_model.Array
) -> reference_model.Array:
    """For s = 1..N_S: copy λ_T, add U(−0.5, 0.5) to component s mod Q, divide by Σ|λ_k|."""
    sample = [canonical]
    for s in range(1, len(uniform) + 1):
        copy = canonical.copy()
        copy[s % len(copy)] += uniform[s - 1]
        sample.append(copy / np.abs(copy).sum())
    return np.array(sample)


@pytest.mark.parametrize("features", [1, 2, 14])
def test_the_sample_is_that_of_the_published_procedure_to_the_bit(features: int) -> None:
    canonical = np.random.default_rng(1).normal(size=features)
    uniform = np.random.default_rng(2).uniform(-0.5, 0.5, size=100)
    ours = perturb(canonical, 100, np.random.default_rng(2))
    np.testing.assert_array_equal(ours, published(canonical, uniform))


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(12)
    sizes = (4, 2, 3)
    texts = [[str(i) for i in range(n)] for n in sizes]
    return from_lists(texts, [rng.normal(size=(n, 2)) for n in sizes], NAMES)


CANONICAL = {"LM0": 0.7, "WP0": -0.3}


def heuristic(lists: NBest, delta: float = 1.0, weights: Any = CANONICAL, **options: Any) -> Any:
    options |= {"sampler": Heuristic(draws=50, delta=delta), "gain": reference_model.given(*ORACLE)}
    return adapt(lists, weights, **options)


def log_weights(lists: NBest, sample: Any, variance: float, delta: float) -> np.ndarray:
    """Return log p(e* | f, λ) / δ + log p(λ) of a sample, less that of its first weights."""
    result = [
        reference_model.log_likelihood(lists, ORACLE, weights).sum() / delta
        + reference_model.log_prior(weights, list(CANONICAL.values()), variance)
        for weights in sample
    ]
    return np.subtract(result, result[0])


@pytest.mark.parametrize("delta", [1.0, 4.0])
def test_weights_and_decisions_are_those_of_the_paper(lists: NBest, delta: float) -> None:
    posterior = heuristic(lists, delta=delta, prior="isotropic:variance=0.2")
    sample = posterior["posterior"]["weights"].values[0]
    assert sample[0].tolist() == list(CANONICAL.values())
    expected = log_weights(lists, sample, 0.2, delta)
    log_weight = posterior["sample_stats"]["log_weight"].values[0]
    np.testing.assert_allclose(log_weight - log_weight[0], expected, atol=1e-5)
    # Its decisions are those of Eq. 11.
    result, votes = rerank(lists, posterior, unchecked=True), np.exp(expected)
    for sentence, p in enumerate(reference_model.predictive(lists, sample, votes, 1 / delta)):
        assert result.choice[sentence] == p.argmax()
        assert result.probability[sentence] == pytest.approx(p.max(), rel=1e-4)


@pytest.mark.parametrize("settings", [{}, {"delta": 4.0}])
def test_weights_that_mert_visits_are_weighted_by_the_data(
    lists: NBest, settings: dict[str, Any]
) -> None:
    lists, finished = lists.with_references(["2", "0", "1"]), []
    found = adapt(
        lists,
        CANONICAL,
        sampler=WeightTrace(restarts=5, **settings),
        extra=lists,
        seed=3,
        likelihood="oracle",
        gain=reference_model.given(*ORACLE),
        progress=lambda done, total, note: finished.append((done, total)),
    )
    assert found.attrs["extra"] == lists.origin
    assert finished[-1] == (1, 1)
    visited = WeightTrace(restarts=5).fitted(lists, CANONICAL, fixed=None, seed=3).visited
    np.testing.assert_allclose(found["posterior"]["weights"].values[0], visited)
    expected = log_weights(lists, visited, 0.1, settings.get("delta", 1.0))
    log_weight = found["sample_stats"]["log_weight"].values[0]
    np.testing.assert_allclose(log_weight - log_weight[0], expected, atol=1e-5)
    assert "ESS of the weights" in {finding.name for finding in check(found).findings}


def test_visited_weights_have_the_length_of_the_free_canonical_weights(toy: NBest) -> None:
    weights = {"LM0": 2.0, "TM0[0]": 1.2, "TM0[1]": -0.8}
    sampler = WeightTrace(restarts=2).fitted(toy, weights, fixed=["TM0[0]"], seed=3)
    visited = np.asarray(sampler.visited)
    assert visited[0].tolist() == pytest.approx([2.0, -0.8])
    np.testing.assert_allclose(np.abs(visited).sum(axis=1), 2.8)


@pytest.mark.parametrize(("delta", "extra"), [(1.0, False), (8.0, True)])
def test_further_lists_give_the_posterior_of_all_lists(
    tmp_path: Path, delta: float, extra: bool
) -> None:
    """The sample is kept, so an update is exact, however few draws carry the weight."""
    differences = np.random.default_rng(4).normal(size=(30, 3)) * [40.0, 20.0, 10.0]
    lists = reference_model.pairs(differences, ["LM0", "TM0", "WP0"])
    weights = dict.fromkeys(lists.feature_names, 0.2)
    lists = lists.with_references([lists.texts(s)[0] for s in range(len(lists))])

    def adapted(first: int, last: int, **options: Any) -> Any:
        if extra and "prior" not in options:
            options["extra"] = lists
        options["gain"] = reference_model.given(*[0] * (last - first))
        sampler = f"weight-trace:delta={delta}" if extra else f"heuristic:delta={delta}"
        return adapt(lists[first:last], weights, sampler=sampler, likelihood="oracle", **options)

    write_posterior(adapted(0, 10), tmp_path / "first.nc")
    first = read_draws(tmp_path / "first.nc")
    with capture_notes() as notes:
        second = adapted(10, 11, prior=Prior.of(first, unchecked=True))
        third = as_draws(adapted(11, 30, prior=Prior.of(second, unchecked=True), seed=5))
    assert not [note.message for note in notes if "Gaussian" in note.message]
    whole = as_draws(adapted(0, 30))
    np.testing.assert_array_equal(third.weights, whole.weights)
    for name in ("log_weight", "log_density"):
        ours, expected = getattr(third, name), getattr(whole, name)
        np.testing.assert_allclose(ours - ours[0, 0], expected - expected[0, 0], atol=1e-9)
    np.testing.assert_allclose(third.importance, whole.importance, atol=1e-12)
    assert third.record.figures.earlier_lists == 11
    for name in ("prior_mean", "prior_variance"):
        np.testing.assert_array_equal(third.constants[name], whole.constants[name])


def test_a_prior_that_the_heuristic_sample_cannot_continue(lists: NBest) -> None:
    prior = Prior.of(heuristic(lists, delta=4.0), unchecked=True)
    with raises(UsageError, "conflict", parameter="delta", match="delta=4"):
        heuristic(lists, delta=2.0, prior=prior)
    with raises(DataError, "mismatch", parameter="prior", match="More"):
        start = StartingWeights(CANONICAL, defaults={"More": 0.1})
        heuristic(lists.with_features("More", np.zeros(9)), weights=start, prior=prior)
    # Fewer draws of weight than features are no Gaussian.
    alone = as_draws(heuristic(lists))
    alone = replace(alone, log_weight=np.where(np.arange(51) == 3, 0.0, -np.inf)[None])
    prior = Prior.of(alone, unchecked=True)
    with raises(UsageError, parameter="prior", match="heuristic"):
        adapt(lists, CANONICAL, gain=reference_model.given(*ORACLE), prior=prior)


def test_a_model_with_more_than_weights_is_refused(lists: NBest) -> None:
    def wider(lists: Any, prior: Any, likelihood: Any) -> None:
        numpyro.sample("scale", dist.HalfNormal(1.0))
        weights = numpyro.sample("weights", dist.Normal(prior.mean, 1.0).to_event(1))
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, weights)

    with raises(UsageError, "not-supported", parameter="sampler"):
        heuristic(lists, model=wider)


def test_what_does_not_fit_weight_trace_is_refused(lists: NBest) -> None:
    lists = lists.with_references(["2", "0", "1"])
    with raises(UsageError, parameter="visited"):
        adapt(lists, CANONICAL, sampler=WeightTrace(visited=np.zeros((4, 3))))
    with raises(UsageError, parameter="extra", match="the sampler imh uses no out-of-domain"):
        adapt(lists, CANONICAL, sampler="imh", extra=lists)
    with raises(UsageError, "missing-setting", parameter="extra"):
        adapt(lists, CANONICAL, sampler="weight-trace")

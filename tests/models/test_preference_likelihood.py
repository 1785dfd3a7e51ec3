"""Bradley–Terry, Plackett–Luce, Davidson and slips, compared with formulas and simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.infer import Predictive
from scipy.optimize import approx_fprime
from scipy.special import expit, logit
from scipy.stats import multivariate_normal, norm
from support.moment_checks import assert_weighted_moments
from support.raising import raises
from support.reference_model import Array, log_prior
from support.targets import (
    by_domain,
    calibrate_density,
    log_likelihoods,
    moments_of,
    starting_at_zero,
)

from bpa_ppl import Isotropic, NBest, UsageError, adapt, as_weight_draws, from_lists
from bpa_ppl import log_density as density_of
from bpa_ppl.extending import Target
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.log_linear import hierarchical

pytestmark = pytest.mark.usefixtures("several_buckets")

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}
VARIANCE = 0.5
WEIGHTS = np.array([0.9, -0.7])
SIZES = (5, 2, 7, 3)
PREFERENCES = [[[2, 0], [0, 2], [1, 4]], None, [[6, 5]], [[1, 0]]]
RANKINGS = [None, [[1, 0]], [[3, 0, 2], [5, [6, 1, 3]], [6, 5, 4, 3, 2, 1, 0]], []]
TIES = [[[3, 4]], [[0, 1]], None, [[2, 0], [2, 0]]]
RATERS = ("ann", None, "bob")
STRENGTHS = (1.0, 0.3, 2.5, None)
#: Slip rates: of all raters, or of each; raters without a name come first.
Slip = float | Mapping[str | None, float]


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of several lengths with equal candidates, and a feature whose weight is fixed."""
    rng = np.random.default_rng(14)
    features = [rng.normal(size=(n, 3)).round(1) for n in SIZES]
    features[2][1] = features[2][3]
    features[0][4] = features[0][1]
    return from_lists([[str(i) for i in range(n)] for n in SIZES], features, NAMES)


def with_judgements(
    lists: NBest, *, ties: bool, raters: bool = False, strengths: bool = False
) -> NBest:
    """Return the lists with preferences, rankings and, as asked for, ties, raters and weights."""
    number = count()

    def entry(candidates: list[Any]) -> Any:
        i = next(number)
        if not raters and not strengths:
            return candidates
        rater = {"rater": RATERS[i % 3]} if raters else {}
        weight = {"weight": STRENGTHS[i % 4]} if strengths else {}
        return {"candidates": candidates, **rater, **weight}

    extras = {"preferences": PREFERENCES, "rankings": RANKINGS, **({"ties": TIES} if ties else {})}
    return lists.with_sentence_extras(
        **{n: [e and [entry(c) for c in e] for e in column] for n, column in extras.items()}
    )


def reference_log_likelihood(lists: NBest, weights: Array, nu: float | None, slip: Slip) -> Array:
    """Return the log-likelihood of each choice by the formulas, in float64."""
    result = []
    for s in range(len(lists)):
        strength = np.exp(lists.features[lists.rows(s)].astype(np.float64) @ [*weights, 1.0])

        def add(entry: Any, chosen: float, *others: float) -> None:
            fields = entry if isinstance(entry, dict) else {}
            rate = slip[fields.get("rater")] if isinstance(slip, Mapping) else slip
            p = (1 - rate) * chosen / (chosen + sum(others)) + rate / (1 + len(others))
            result.append((fields.get("weight") or 1.0) * np.log(p))

        def members(entry: Any) -> list[Any]:
            candidates: list[Any] = entry["candidates"] if isinstance(entry, dict) else entry
            return candidates

        extras = {name: column[s] or [] for name, column in lists.sentence_extras.items()}
        for entry in extras["preferences"]:
            i, j = members(entry)
            middle = [] if nu is None else [nu * np.sqrt(strength[i] * strength[j])]
            add(entry, strength[i], strength[j], *middle)
        for entry in extras.get("ties", ()):
            i, j = members(entry)
            add(entry, nu * np.sqrt(strength[i] * strength[j]), strength[i], strength[j])
        for entry in extras["rankings"]:
            ranking = members(entry)
            rest = ranking[-1] if isinstance(ranking[-1], list) else []
            order = [k for k in ranking if k is not rest]
            while order and len(order) + len(rest) > 1:
                best = order.pop(0)
                add(entry, strength[best], *strength[order + rest])
    return np.array(result)


def posterior_target(lists: NBest, likelihood: Preference, **options: Any) -> Target:
    """Return the posterior given lists with judgements, which starts at 0."""
    prior = Isotropic(variance=VARIANCE)
    with starting_at_zero():
        return density_of(lists, CANONICAL, likelihood=likelihood, prior=prior, **options)


CASES = {
    "Bradley-Terry and Plackett-Luce": ({"ties": False}, Preference()),
    "ties of any ν and slips": ({"ties": True}, Preference(slip=0.2)),
    "ties of a given ν, slips of raters and weights": (
        {"ties": True, "raters": True, "strengths": True},
        Preference(slip="raters", nu=0.7),
    ),
}


@pytest.fixture(params=CASES, scope="module")
def preference_case(
    request: pytest.FixtureRequest, lists: NBest
) -> tuple[NBest, Preference, Target]:
    """Lists with judgements, a likelihood, and the posterior."""
    judgements, likelihood = CASES[request.param]
    compared_lists = with_judgements(lists, **judgements)
    return compared_lists, likelihood, posterior_target(compared_lists, likelihood)


def reference_values(
    likelihood: Preference, z: Mapping[str, Array]
) -> tuple[Array, float | None, Slip]:
    """Return the weights, ν and the slip rates of some values of the sites."""
    nu = float(np.exp(z["log_nu"])) if "log_nu" in z else likelihood.nu
    slip: Slip = likelihood.slip if isinstance(likelihood.slip, float) else 0.0
    if "slip_offset" in z:
        rates = expit(z["slip_location"] + 1.5 * z["slip_offset"])
        slip = dict(zip((None, "ann", "bob"), rates.tolist(), strict=True))
    return z["weights"], nu, slip


def log_density(lists: NBest, likelihood: Preference, z: Mapping[str, Array]) -> float:
    """Return log p(z, data) by the formulas."""
    prior = log_prior(z["weights"], [0.4, -0.2], VARIANCE)
    for name, *of_site in (("log_nu",), ("slip_location", logit(0.1), 1.5), ("slip_offset",)):
        prior += float(norm.logpdf(z[name], *of_site).sum()) if name in z else 0.0
    values = reference_values(likelihood, z)
    return float(reference_log_likelihood(lists, *values).sum()) + prior


def test_density_gradient_and_log_likelihood_agree_with_formulas(
    preference_case: tuple[NBest, Preference, Target],
) -> None:
    lists, likelihood, posterior = preference_case
    free = "log_nu" in posterior.start
    assert free is ("ties" in lists.sentence_extras and likelihood.nu is None)
    others = {
        "log_nu": np.array(0.3),
        "slip_location": np.array(-1.5),
        "slip_offset": np.array([0.4, -1.2, 1.5]),
    }
    for weights in (WEIGHTS, -4 * WEIGHTS):
        z = {name: {"weights": weights, **others}[name] for name in posterior.start}
        flat, unflat = ravel_pytree(z)
        ours, slope = posterior.value_and_gradient(flat)
        reference = lambda x, unflat=unflat: log_density(lists, likelihood, unflat(x))  # noqa: E731
        np.testing.assert_allclose(ours, log_density(lists, likelihood, z), rtol=2e-5)
        expected = approx_fprime(np.asarray(flat), reference, 1e-6)
        np.testing.assert_allclose(slope, expected, rtol=2e-4, atol=2e-4)
        expected = reference_log_likelihood(lists, *reference_values(likelihood, z))
        np.testing.assert_allclose(log_likelihoods(posterior, z), expected, rtol=2e-5, atol=1e-6)


def test_slips_of_so_many_answers_that_the_table_is_padded() -> None:
    """Of 17 answers: the table has 18 rows, and the last one no answer."""
    features = np.random.default_rng(2).normal(size=(17, 2, 2))
    pairs = from_lists([["a", "b"]] * 17, features, NAMES[:2])
    pairs = pairs.with_sentence_extras(preferences=[[[0, 1]]] * 17)
    zero = dict.fromkeys(NAMES[:2], 0.0)
    prior = Isotropic(variance=VARIANCE)
    target = density_of(pairs, zero, likelihood=Preference(slip=0.3), prior=prior)
    assert (np.asarray(target.lists.sentence) < 0).sum() == 1
    score = (features[:, 0] - features[:, 1]) @ WEIGHTS
    expected = np.log(0.7 * expit(score) + 0.15).sum() + log_prior(WEIGHTS, [0.0, 0.0], VARIANCE)
    assert float(target(WEIGHTS)) == pytest.approx(expected, rel=2e-5)


def test_ties_of_domains_with_weights_of_their_own(lists: NBest) -> None:
    named = with_judgements(lists, ties=True).with_sentence_extras(domain=list("abab"))
    target = posterior_target(named, Preference(slip=0.2), model=hierarchical)
    offset = np.array([[1.0, -0.5], [-2.0, 0.3]])
    z = {"shared": WEIGHTS, "scale": np.array(np.log(0.8)), "offset": offset}
    z |= {"offset_of_new": np.zeros(2), "log_nu": np.array(0.3)}
    own = WEIGHTS + 0.8 * np.sqrt(VARIANCE) * offset
    expected = [
        reference_log_likelihood(named[s : s + 1], own[s % 2], np.exp(0.3), 0.2) for s in range(4)
    ]
    np.testing.assert_allclose(log_likelihoods(target, z), np.concatenate(expected), rtol=2e-5)


@pytest.mark.slow
def test_posterior_of_slip_rates_agrees_with_quadrature() -> None:
    """Of one weight and the rates of two raters; m is integrated out analytically."""
    rng = np.random.default_rng(3)
    x, features = 1.5 * np.abs(rng.normal(size=40)), np.zeros((40, 2, 1), np.float32)
    features[:, 0, 0] = x
    best, rater = rng.uniform(size=40) < 0.8, np.repeat(["ann", "bob"], 20)
    best[:18] = True
    entries = [
        [{"candidates": [0, 1] if first else [1, 0], "rater": str(name)}]
        for first, name in zip(best, rater, strict=True)
    ]
    judged = from_lists([["a", "b"]] * 40, features, ["LM0"])
    judged = judged.with_sentence_extras(preferences=entries)
    options: dict[str, Any] = {"prior": Isotropic(variance=VARIANCE), "seed": 4}
    posterior = as_weight_draws(adapt(judged, {"LM0": 0.4}, sampler="laplace", **options))
    assert [*posterior.draws.coords["rater"]] == ["ann", "bob"]
    weight, odds = np.linspace(-1.8, 4.2, 41), np.linspace(-12.0, 8.0, 81)
    p = expit(weight[:, None] * np.where(best, x, -x))[:, None]  # (weights, 1, answers)
    slip = expit(odds)[None, :, None]
    log_p = np.log((1 - slip) * p + slip / 2)
    each = [log_p[..., rater == name].sum(axis=-1) for name in ("ann", "bob")]
    grid = np.stack(np.meshgrid(odds, odds, indexing="ij"), axis=-1)
    covariance = 1.5**2 * (np.eye(2) + 1.0)
    total = each[0][:, :, None] + each[1][:, None, :]
    total += multivariate_normal(np.full(2, logit(0.1)), covariance).logpdf(grid)
    total += norm.logpdf(weight, 0.4, np.sqrt(VARIANCE))[:, None, None]
    mass = np.exp(total - total.max())
    mass /= mass.sum()
    values = np.meshgrid(weight, expit(odds), expit(odds), indexing="ij")
    points, p = np.stack(values, axis=-1).reshape(-1, 3), mass.ravel()
    mean, covariance = moments_of(points, p)
    draws = np.column_stack([posterior.flat, posterior.draws.values["slip"].reshape(-1, 2)])
    assert_weighted_moments(draws, np.log(posterior.importance), mean, covariance, ess=300)


@pytest.mark.slow
def test_simulated_answers_have_model_frequencies(lists: NBest) -> None:
    posterior = posterior_target(with_judgements(lists, ties=True, raters=True), Preference())
    sites = {"weights": np.broadcast_to(WEIGHTS, (4000, 2)), "log_nu": np.full(4000, 0.3)}
    sites |= {"slip_location": np.full(4000, -1.0)}
    sites |= {"slip_offset": np.broadcast_to([-3.0, 0.0, 2.0], (4000, 3))}
    sites = {n: sites[n] for n in posterior.start}
    tables = posterior.lists
    program = handlers.uncondition(posterior.program)
    answers = Predictive(program, sites)(jax.random.key(0), *posterior.data)["oracle"]
    width = max(bucket["base"].shape[-1] for bucket in tables.buckets)
    for row in range(width):
        of_row = tables._replace(oracle=np.full_like(tables.oracle, row))
        given_row = replace(posterior, data=posterior.data._replace(lists=of_row))
        log_p = log_likelihoods(given_row, {n: value[0] for n, value in sites.items()})
        used = np.asarray(tables.sentence) >= 0
        order = np.argsort(np.asarray(tables.sentence)[used])
        observed = (np.asarray(answers)[:, used] == row).mean(axis=0)[order]
        # Shorter lists have no such row.
        p = np.nan_to_num(np.exp(log_p.astype(np.float64)))
        np.testing.assert_array_less(np.abs(observed - p), 5 * np.sqrt(0.25 / 4000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("likelihood", "raters"),
    [(Preference(), False), (Preference(), True), (Preference(slip=0.1), False)],
)
def test_weights_ties_and_slips_are_calibrated(
    lists: NBest, likelihood: Preference, raters: bool
) -> None:
    judged_lists = with_judgements(lists, ties=True, raters=raters)
    # With raters there are more values, and fewer effective draws.
    options: dict[str, Any] = {"prior": Isotropic(variance=VARIANCE), "likelihood": likelihood}
    sampler = f"imh:draws={600 if raters else 300}"
    density = density_of(judged_lists, CANONICAL, **options)
    (result,) = calibrate_density(density, samplers=[sampler], replications=200, seed=1)
    slips = ("slip_location", *(f"slip_offset[{r}]" for r in range(3))) if raters else ()
    assert result.names == ("LM0", "WP0", "log_nu", *slips, "log likelihood")
    assert result, str(result)


def test_answers_with_weights_are_not_simulated_and_no_judge_always_slips(lists: NBest) -> None:
    judged_lists = with_judgements(lists, ties=True, strengths=True)
    with starting_at_zero(), raises(UsageError, "not-supported", parameter="likelihood"):
        calibrate_density(density_of(judged_lists, CANONICAL), samplers=["imh"])
    with raises(UsageError, "invalid-setting", parameter="slip"):
        Preference(slip=1.0)


@pytest.mark.parametrize(
    ("judgements", "site", "setting"),
    [({"ties": True}, "log_nu", "nu"), ({"ties": False, "raters": True}, "slip_location", "slip")],
)
def test_rejects_model_without_the_parameters(
    lists: NBest, judgements: dict[str, bool], site: str, setting: str
) -> None:
    named = with_judgements(lists, **judgements).with_sentence_extras(domain=list("abab"))
    message = rf"has the parameter {site}: .* or set {setting}\b"
    with raises(UsageError, "not-supported", parameter="model", match=message):
        adapt(named, CANONICAL, model=by_domain, sampler="nuts")

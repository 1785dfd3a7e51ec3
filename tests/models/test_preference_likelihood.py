"""Bradley–Terry, Plackett–Luce and Davidson, compared with NumPy, quadrature and simulation."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer import Predictive
from raising import raises
from reference_model import Array, log_prior
from scipy.optimize import approx_fprime
from scipy.stats import kstest, norm
from targets import integrated

from bpa_ppl import NBest, UsageError, adapt
from bpa_ppl.experiments.samplers import calibrate_sampler
from bpa_ppl.models import Hierarchical, Lists, Preference, Prior, in_order
from bpa_ppl.posterior import as_draws
from bpa_ppl.registry import LIKELIHOODS
from bpa_ppl.sampling import target_of
from bpa_ppl.sampling.base import Target
from bpa_ppl.sampling.density import evaluate, potential
from bpa_ppl.sampling.sentences import preference_sentences
from bpa_ppl.weights import match

NAMES = ("LM0", "WP0", "UnknownWordPenalty0")
CANONICAL = {"LM0": 0.4, "WP0": -0.2, "UnknownWordPenalty0": 1.0}
VARIANCE = 0.5
WEIGHTS = np.array([0.9, -0.7])
SIZES = (5, 2, 7, 3)
PREFERENCES = [[[2, 0], [0, 2], [1, 4]], None, [[6, 5]], [[1, 0]]]
RANKINGS = [None, [[1, 0]], [[3, 0, 2], [5, [6, 1, 3]], [6, 5, 4, 3, 2, 1, 0]], []]
TIES = [[[3, 4]], [[0, 1]], None, [[2, 0], [2, 0]]]


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of several lengths with equal candidates, and a feature whose weight is fixed."""
    rng = np.random.default_rng(14)
    features = [rng.normal(size=(n, 3)).round(1) for n in SIZES]
    features[2][1] = features[2][3]
    features[0][4] = features[0][1]
    return NBest.from_lists([[str(i) for i in range(n)] for n in SIZES], features, NAMES)


def with_judgements(lists: NBest, *, ties: bool) -> NBest:
    """Return the lists with preferences, rankings and optionally ties."""
    more = {"ties": TIES} if ties else {}
    return lists.with_sentence_extras(preferences=PREFERENCES, rankings=RANKINGS, **more)


def reference_log_likelihood(lists: NBest, weights: Array, nu: float | None, slip: float) -> Array:
    """Return the log-likelihood of each choice by the formulas, in float64."""
    result = []
    for s in range(len(lists)):
        strength = np.exp(lists.features[lists.rows(s)].astype(np.float64) @ [*weights, 1.0])

        def log_answer_probability(chosen: float, *others: float) -> float:
            p = chosen / (chosen + sum(others))
            return float(np.log((1 - slip) * p + slip / (1 + len(others))))

        extras = {name: column[s] or [] for name, column in lists.sentence_extras.items()}
        for i, j in extras["preferences"]:
            middle = [] if nu is None else [nu * np.sqrt(strength[i] * strength[j])]
            result.append(log_answer_probability(strength[i], strength[j], *middle))
        for i, j in extras.get("ties", ()):
            assert nu is not None
            tie = nu * np.sqrt(strength[i] * strength[j])
            result.append(log_answer_probability(tie, strength[i], strength[j]))
        for ranking in extras["rankings"]:
            rest = ranking[-1] if isinstance(ranking[-1], list) else []
            order = [k for k in ranking if k is not rest]
            while order and len(order) + len(rest) > 1:
                best = order.pop(0)
                result.append(log_answer_probability(strength[best], *strength[order + rest]))
    return np.array(result)


def posterior_target(lists: NBest, likelihood: Preference) -> Target:
    """Return the posterior given lists with judgements."""
    observed = preference_sentences(lists, match(CANONICAL, lists), likelihood)
    names, values = observed.match.free_names, observed.match.free_values.tolist()
    prior = Prior.isotropic(dict(zip(names, values, strict=True)), VARIANCE)
    options: dict[str, Any] = {"oracle": observed.oracles.index, "gains": observed.gains}
    return target_of(observed.nbest, observed.match, prior, likelihood=likelihood, **options)


CASES = {
    "Bradley-Terry and Plackett-Luce": (False, Preference()),
    "slips": (False, Preference(slip=0.2)),
    "ties of a given ν": (True, Preference(nu=0.7)),
    "no tie of a given ν": (False, Preference(nu=0.7, slip=0.1)),
    "ties of any ν": (True, Preference()),
    "ties of any ν and slips": (True, Preference(slip=0.2)),
}


@pytest.fixture(params=CASES, scope="module")
def preference_case(
    request: pytest.FixtureRequest, lists: NBest
) -> tuple[NBest, Preference, Target]:
    """Lists with judgements, a likelihood, and the posterior."""
    ties, likelihood = CASES[request.param]
    compared_lists = with_judgements(lists, ties=ties)
    return compared_lists, likelihood, posterior_target(compared_lists, likelihood)


def log_density(lists: NBest, likelihood: Preference, flat: Array, free: bool) -> float:
    """Return log p(z, data) by the formulas, of z = (log ν, λ) where ν is free, else λ."""
    log_nu, weights = (flat[0], flat[1:]) if free else (None, flat)
    nu = likelihood.nu if log_nu is None else float(np.exp(log_nu))
    prior = log_prior(weights, [0.4, -0.2], VARIANCE)
    prior += 0.0 if log_nu is None else float(norm.logpdf(log_nu))
    return float(reference_log_likelihood(lists, weights, nu, likelihood.slip).sum()) + prior


def test_density_gradient_and_log_likelihood_agree_with_formulas(
    preference_case: tuple[NBest, Preference, Target],
) -> None:
    lists, likelihood, posterior = preference_case
    free = "log_nu" in posterior.start
    assert free is ("ties" in lists.sentence_extras and likelihood.nu is None)
    value = jax.jit(jax.value_and_grad(lambda z: -potential(posterior.program, posterior.data, z)))
    for weights in (WEIGHTS, -4 * WEIGHTS):
        flat = np.append(0.3, weights) if free else weights
        z = {"weights": weights, **({"log_nu": np.array(0.3)} if free else {})}
        ours, slope = value(z)
        reference = lambda x: log_density(lists, likelihood, x, free)  # noqa: E731
        np.testing.assert_allclose(ours, reference(flat), rtol=2e-5)
        result = np.append(slope["log_nu"], slope["weights"]) if free else slope["weights"]
        expected = approx_fprime(flat, reference, 1e-6)
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4)
    z = {"weights": WEIGHTS[None, None], "log_nu": np.full((1, 1), -0.4)}
    z = {name: z[name] for name in posterior.start}
    _, result = evaluate(posterior.program, posterior.data, z)
    nu = np.exp(-0.4) if "log_nu" in z else likelihood.nu
    expected = reference_log_likelihood(lists, WEIGHTS, nu, likelihood.slip)
    np.testing.assert_allclose(result["oracle"][0, 0], expected, rtol=2e-5, atol=1e-6)


def test_log_likelihood_of_domains_agrees_with_formulas(lists: NBest) -> None:
    judged_lists = with_judgements(lists, ties=True)
    posterior = posterior_target(judged_lists, Preference())
    number = np.asarray(posterior.data.lists.sentence)
    tables = posterior.data.lists._replace(domain=np.maximum(number, 0) % 2)
    weights = np.array([WEIGHTS, [-0.3, 0.5]])

    @jax.jit
    def log_p(tables: Lists, weights: Array) -> Any:
        likelihood = posterior.program.likelihood
        with handlers.trace() as sites, handlers.substitute(data={"log_nu": 0.3}):
            likelihood.sample_parameters().observe(tables, weights)
        return sites["oracle"]["fn"].log_prob(tables.oracle)

    result = np.asarray(log_p(tables, weights))[in_order(tables)]
    each = [reference_log_likelihood(judged_lists, w, np.exp(0.3), 0.0) for w in weights]
    np.testing.assert_allclose(result, np.where(np.arange(len(result)) % 2, *each[::-1]), rtol=2e-5)


def test_order_of_candidates_does_not_matter(lists: NBest) -> None:
    rng = np.random.default_rng(2)
    orders = [rng.permutation(n) for n in SIZES]
    rows = np.concatenate([f + o for f, o in zip(lists.offsets[:-1], orders, strict=True)])
    new = [np.argsort(order).tolist() for order in orders]

    def renumber(entries: Any, s: int) -> Any:
        return [renumber(e, s) for e in entries] if isinstance(entries, list) else new[s][entries]

    judged_lists = with_judgements(lists, ties=True)
    extras = {
        name: [e and renumber(e, s) for s, e in enumerate(column)]
        for name, column in judged_lists.sentence_extras.items()
    }
    shuffled = lists.regroup(np.arange(len(lists)), rows, lists.sizes)
    shuffled = shuffled.with_sentence_extras(**extras)
    z = {"weights": WEIGHTS, "log_nu": np.array(0.3)}
    ours, other = (posterior_target(part, Preference()) for part in (judged_lists, shuffled))
    energies = [potential(target.program, target.data, z) for target in (ours, other)]
    np.testing.assert_allclose(*energies, rtol=1e-6)


def grid_moments(log_p: Any, centre: Array, width: float, points: int) -> tuple[Array, Array]:
    """Integrate on a grid whose step is less than the posterior's standard deviations."""
    grid, p = integrated(log_p, centre, width, points)
    mean = p @ grid
    deviation = np.sqrt(p @ (grid - mean) ** 2)
    assert np.all(deviation > 2 * width / (points - 1))
    return mean, deviation


def assert_moments_agree(draws: Array, mean: Array, deviation: Array) -> None:
    """Assert that nearly independent draws (n, d) have these moments."""
    error = deviation / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * error)
    # The standard error of a standard deviation, for a kurtosis up to 5.
    assert np.all(np.abs(draws.std(axis=0) - deviation) < 5 * error)


DRAWS: dict[str, Any] = {"prior_variance": VARIANCE, "sampler": "laplace", "draws": 20_000}


@pytest.mark.parametrize("slip", [0.0, 0.15])
def test_posterior_of_two_weights_agrees_with_quadrature(lists: NBest, slip: float) -> None:
    judged_lists, likelihood = with_judgements(lists, ties=False), Preference(slip=slip)
    posterior = as_draws(adapt(judged_lists, CANONICAL, likelihood=likelihood, **DRAWS))
    log_p = lambda grid: np.array([log_density(judged_lists, likelihood, x, False) for x in grid])  # noqa: E731
    mean, deviation = grid_moments(log_p, np.array([0.4, -0.2]), 4.0, 33)
    rng = np.random.default_rng(0)
    assert_moments_agree(rng.choice(posterior.flat, 4000, p=posterior.importance), mean, deviation)


def test_posterior_of_weight_and_tie_parameter_agrees_with_quadrature(lists: NBest) -> None:
    judged_lists = with_judgements(lists.without_features("WP0"), ties=True)
    canonical = {name: CANONICAL[name] for name in ("LM0", "UnknownWordPenalty0")}
    posterior = as_draws(adapt(judged_lists, canonical, likelihood="preference", **DRAWS))

    def log_p(grid: Array) -> Array:
        likelihood = [
            reference_log_likelihood(judged_lists, w, np.exp(log_nu), 0.0).sum()
            for log_nu, *w in grid
        ]
        prior = norm.logpdf(grid[:, 0]) + norm.logpdf(grid[:, 1], 0.4, np.sqrt(VARIANCE))
        return np.array(likelihood) + prior

    mean, deviation = grid_moments(log_p, np.array([0.0, 0.4]), 4.5, 33)
    values = np.column_stack([posterior.values["log_nu"].ravel(), posterior.flat[:, 0]])
    assert posterior.weights.shape[-1] == 1
    rng = np.random.default_rng(0)
    assert_moments_agree(rng.choice(values, 4000, p=posterior.importance), mean, deviation)


@pytest.mark.parametrize("name", [n for n, (ties, _) in CASES.items() if "slips" in n])
def test_simulated_answers_have_model_frequencies(lists: NBest, name: str) -> None:
    ties, likelihood = CASES[name]
    posterior = posterior_target(with_judgements(lists, ties=ties), likelihood)
    sites = {"weights": np.broadcast_to(WEIGHTS, (4000, 2)), "log_nu": np.full(4000, 0.3)}
    sites = {n: sites[n] for n in posterior.start}
    data = posterior.data
    program = handlers.uncondition(posterior.program)
    answers = Predictive(program, sites)(jax.random.key(0), *data)["oracle"]
    width = max(bucket.base.shape[-1] for bucket in data.lists.buckets)
    for row in range(width):
        lists_of_row = data.lists._replace(oracle=np.full_like(data.lists.oracle, row))
        z = {n: value[None, :1] for n, value in sites.items()}
        _, result = evaluate(posterior.program, data._replace(lists=lists_of_row), z)
        used = np.asarray(data.lists.sentence) >= 0
        order = np.argsort(np.asarray(data.lists.sentence)[used])
        observed = (np.asarray(answers)[:, used] == row).mean(axis=0)[order]
        # Shorter lists have no such row.
        p = np.nan_to_num(np.exp(result["oracle"][0, 0].astype(np.float64)))
        np.testing.assert_array_less(np.abs(observed - p), 5 * np.sqrt(0.25 / 4000))


@pytest.mark.parametrize(
    ("likelihood", "replications"),
    [
        (Preference(slip=0.1), 60),  # the test below finds a wrong prior with fewer
        pytest.param(Preference(), 200, marks=pytest.mark.slow),
        pytest.param(Preference(slip=0.1), 200, marks=pytest.mark.slow),
    ],
)
def test_weights_and_ties_are_calibrated(
    lists: NBest, likelihood: Preference, replications: int
) -> None:
    judged_lists = with_judgements(lists, ties=True)
    options: dict[str, Any] = {"prior_variance": VARIANCE, "seed": 1, "draws": 300}
    result = calibrate_sampler(
        judged_lists, CANONICAL, "imh", replications=replications, likelihood=likelihood, **options
    )
    assert result.names == ("LM0", "WP0", "log_nu", "log p(A|λ)")
    assert result, str(result)


def test_calibration_detects_wrong_tie_prior(lists: NBest, monkeypatch: pytest.MonkeyPatch) -> None:
    """ν is simulated from a prior that differs from the prior of the inference."""
    import bpa_ppl.experiments.samplers as calibrating

    simulated = calibrating.simulated

    def shifted(program: Any, data: Any, names: Any, key: Any) -> Any:
        truth, oracle, likelihood = simulated(program, data, names, key)
        return truth.at[-1].add(1.5), oracle, likelihood

    monkeypatch.setattr(calibrating, "simulated", shifted)
    options: dict[str, Any] = {"replications": 50, "likelihood": "preference", "draws": 500}
    judged_lists = with_judgements(lists, ties=True)
    result = calibrate_sampler(judged_lists, CANONICAL, "laplace", **options)
    assert not result
    assert kstest(result.ranks[:, result.names.index("log_nu")], "uniform").pvalue < 1e-4


@pytest.mark.parametrize(
    ("likelihood", "setting", "values"),
    [
        ("preference", "slip", (1.0, -0.1)),
        ("preference", "nu", (0.0, "many")),
        ("margin", "gamma", (-1.0, float("inf"))),
    ],
)
def test_rejects_settings_out_of_bounds(likelihood: str, setting: str, values: Any) -> None:
    for value in values:
        with raises(UsageError, "invalid-setting", parameter=setting):
            LIKELIHOODS.resolve(likelihood, {setting: value})


def test_rejects_model_without_tie_parameter(lists: NBest) -> None:
    judged_lists = with_judgements(lists, ties=True).with_sentence_extras(domain=list("abab"))
    with raises(UsageError, "not-supported", parameter="model"):
        adapt(judged_lists, CANONICAL, model=Hierarchical(2), sampler="nuts")

"""Instance weighting, compared with the equations in plain Python, finite differences and JAX."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp, log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from weighted_mixture import log_likelihoods

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models.instance_weighting import (
    Phi,
    PhiPrior,
    Problem,
    Variant,
    fit,
    problem_of,
    variant_named,
    weigh,
)
from bpa_ppl.models.instance_weighting.mixture import (
    constrained,
    evaluate_mixture,
    log_likelihood,
    unconstrained,
)
from bpa_ppl.nbest import Float32
from bpa_ppl.phrases import PhraseCounts
from bpa_ppl.phrases.mixtures import pairs_of_both

NAMES = ("one", "two", "three")
VARIANTS = [
    Variant(mixture, smoothed, link, flat, weighted, complete=complete)
    for mixture, smoothed, link, flat, weighted, complete in product(
        ("linear", "map"),
        (True, False),
        ("logistic", "exponential"),
        (True, False),
        (True, False),
        (True, False),
    )
    if weighted or link == "logistic"
]


def random_counts(rng: np.random.Generator, pairs: int, first: int = 0) -> PhraseCounts:
    """Return counts of random pairs from a few phrases, many of which are shared."""
    source, target = rng.integers(first, first + 12, (2, pairs))
    texts = [f"s{n}" for n in source], [f"t{n}" for n in target]
    return PhraseCounts.of(*texts, rng.integers(1, 9, pairs))


@pytest.fixture(scope="module")
def tables() -> tuple[PhraseCounts, PhraseCounts, PhraseCounts, Float32]:
    """Counts of IN, OUT (with pairs missing) and dev, and the features of OUT."""
    rng = np.random.default_rng(3)
    inside, outside, dev = (
        random_counts(rng, 30, first=2),
        random_counts(rng, 60),
        random_counts(rng, 40),
    )
    whole = outside.source_count + rng.integers(0, 3, len(outside.sources))
    outside = outside.with_marginals(source=(outside.sources, whole))
    return inside, outside, dev, rng.normal(size=(len(outside), 3)).astype(np.float32)


@pytest.fixture(scope="module")
def problem(tables: tuple) -> Problem:
    """The estimation of p(t|s) from the tables."""
    inside, outside, dev, features = tables
    return problem_of(inside, outside, dev, features, NAMES)


def random_phi(variant: Variant, problem: Problem, seed: int = 0) -> tuple[np.ndarray, Phi]:
    """Return random unconstrained values and the corresponding φ."""
    z = np.random.default_rng(seed).normal(size=variant.size(problem))
    return z, constrained(variant, z)


def reference_probabilities(
    tables: tuple, side: str, variant: Variant, phi: Phi
) -> dict[tuple[str, str], float]:
    """Return p(x | y) of each dev pair by the equations, one pair at a time."""
    inside, outside, dev, features = tables

    def of(table: PhraseCounts) -> dict[tuple[str, str], float]:
        texts = [table.texts(s).to_pylist() for s in ("source", "target")]
        x, y = reversed(texts) if side == "target" else texts
        return dict(zip(zip(x, y, strict=True), table.count.tolist(), strict=True))

    given = "source" if side == "target" else "target"
    whole = dict(zip(outside.phrases(given).to_pylist(), outside.marginal(given), strict=True))
    weighted, sums = {}, {}
    for row, ((x, y), count) in enumerate(of(outside).items()):
        eta = float(phi.weights @ features[row]) if variant.weighted else 0.0
        factor = 1 / (1 + exp(-eta)) if variant.link == "logistic" else exp(eta)
        weighted[x, y] = (1 if variant.flat else count) * (factor if variant.weighted else 1)
        sums[y] = sums.get(y, 0) + count
    result = {}
    for x, y in of(dev):
        c_in = sum(c for (_, other), c in of(inside).items() if other == y)
        weights = [w for (_, other), w in weighted.items() if other == y]
        alpha = phi.mixing if variant.mixture == "linear" else c_in / (c_in + phi.mixing)
        p_in = of(inside).get((x, y), 0) / c_in if c_in else 0.0
        p_out = 0.0
        if weights:
            missing = whole[y] / sums[y]
            if (x, y) in weighted:
                p_out = weighted[x, y] + phi.gamma / (missing * len(weights))
            p_out /= missing * sum(weights) + phi.gamma
        if variant.complete:
            alpha = 1.0 if not weights else 0.0 if not c_in else alpha
        result[x, y] = alpha * p_in + (1 - alpha) * p_out
    return result


@pytest.mark.parametrize("side", ["target", "source"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_probabilities_agree_with_equations(tables: tuple, variant: Variant, side: str) -> None:
    inside, outside, dev, features = tables
    problem = problem_of(inside, outside, dev, features, NAMES, side)  # type: ignore[arg-type]
    phi = random_phi(variant, problem)[1]
    expected = reference_probabilities(tables, side, variant, phi)
    result = evaluate_mixture(variant.apply(problem), variant, phi).probability
    assert result == pytest.approx(list(expected.values()), rel=1e-12)
    assert (result > 0).tolist() == problem.supported.tolist()


def test_tables_cover_all_cases(problem: Problem) -> None:
    assert (problem.missing > 1).any()
    assert (problem.missing == 1).any()
    assert (problem.in_total == 0).any()
    assert 0 < problem.support < 1


@pytest.mark.parametrize(
    "variant",
    [v for v in VARIANTS if v.weighted and not v.flat and v.smoothed >= (not v.complete)],
    ids=str,
)
def test_gradient_agrees_with_finite_differences_and_jax(
    problem: Problem, variant: Variant
) -> None:
    ready = variant.apply(problem)
    z = random_phi(variant, problem)[0]
    value, gradient = log_likelihood(ready, variant, z)

    def traced(z: jax.Array) -> jax.Array:
        mixing = jax.nn.sigmoid(z[0]) if variant.mixture == "linear" else jnp.exp(z[0])
        gamma = jnp.exp(z[1]) if variant.smoothed else jnp.zeros(())
        weights = z[1 + variant.smoothed :]
        return log_likelihoods(ready, variant, mixing, gamma, weights).sum()

    jax_result = jax.value_and_grad(traced)(jnp.asarray(z))
    assert value == pytest.approx(float(jax_result[0]), rel=1e-12)
    assert gradient == pytest.approx(np.asarray(jax_result[1]), rel=1e-9, abs=1e-9)
    step = 1e-5 * np.eye(len(z))
    values_at_steps = [
        [log_likelihood(ready, variant, z + s * e)[0] for s in (1, -1)] for e in step
    ]
    differences = (np.array(values_at_steps) @ [1, -1]) / 2e-5
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("form", "mixture"),
    [
        ("weighted", "map"),
        *(
            pytest.param(form, mixture, marks=pytest.mark.slow)
            for form, mixture in product(("exponential", "flat", "gamma-0"), ("linear", "map"))
        ),
    ],
)
def test_optimum_beats_random_restarts(problem: Problem, form: str, mixture: str) -> None:
    variant = variant_named(form, mixture)
    # A weak prior: on few pairs the likelihood alone may be unbounded.
    prior = PhiPrior(weight_deviation=3.0)
    single_start, ten_starts = (
        fit(problem, variant, prior=prior),
        fit(problem, variant, prior=prior, starts=10),
    )

    def density(phi: Phi) -> float:
        z = unconstrained(variant, phi)
        return (
            log_likelihood(variant.apply(problem), variant, z)[0] + prior.log_density(variant, z)[0]
        )

    assert single_start.converged
    assert density(single_start.phi) >= density(ten_starts.phi) - 1e-6


def test_linear_mixture_agrees_with_grid_search(problem: Problem) -> None:
    variant = variant_named("plain", "linear")
    ready = variant.apply(problem)
    grid = np.linspace(0.001, 0.999, 999)
    values = [log_likelihood(ready, variant, np.array([log(a / (1 - a))]))[0] for a in grid]
    assert fit(problem, variant).phi.mixing == pytest.approx(grid[np.argmax(values)], abs=1e-3)


def test_true_weights_are_recovered() -> None:
    rng = np.random.default_rng(0)
    sources, targets = np.repeat(np.arange(40), 20), np.tile(np.arange(20), 40)
    texts = [f"s{n}" for n in sources], [f"t{n}" for n in targets]
    outside = PhraseCounts.of(*texts, rng.integers(1, 50, 800))
    inside = PhraseCounts.of(["s0"], ["t0"], [1])
    features = rng.normal(size=(800, 2)).astype(np.float32)
    eta = features @ [1.5, -1.0]
    weighted = outside.count / (1 + np.exp(-eta))
    shares = weighted.reshape(40, 20) / weighted.reshape(40, 20).sum(axis=1, keepdims=True)
    drawn = np.concatenate([rng.multinomial(2000, share) for share in shares])
    supported = drawn > 0
    dev = PhraseCounts.of(
        *(
            table.texts(side, supported)
            for table, side in ((outside, "source"), (outside, "target"))
        ),
        drawn[supported],
    )
    problem = problem_of(inside, outside, dev, features, ("one", "two"))
    result = fit(problem, variant_named("gamma-0", "linear"))
    assert result.phi.weights == pytest.approx([1.5, -1.0], abs=0.1)


def test_probabilities_sum_to_one(tables: tuple) -> None:
    inside, outside, dev, features = tables
    whole = PhraseCounts.summed(  # the pairs that are missing have mass too
        outside.sources, outside.targets, outside.source, outside.target, outside.count
    )
    fitted = fit(problem_of(inside, whole, dev, features, NAMES), variant_named("weighted"))
    pairs = pairs_of_both(inside, whole)
    table = problem_of(inside, whole, pairs, features, NAMES)
    sums = np.bincount(pairs.source, fitted.probabilities(table))
    assert len(pairs) == len(set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)))
    assert sums == pytest.approx(np.ones(len(pairs.sources)))
    # The dev pairs have equal probabilities in the table of all pairs.
    rows = pairs.rows_of(dev)
    dev_probabilities = fitted.probabilities(problem_of(inside, whole, dev, features, NAMES))
    assert fitted.probabilities(table)[rows[rows >= 0]] == pytest.approx(
        dev_probabilities[rows >= 0]
    )
    assert (dev_probabilities[rows < 0] == 0).all()


def test_log_likelihood_is_mean_over_supported_pairs(problem: Problem) -> None:
    fitted = fit(problem, variant_named("plain", "linear"))
    supported = problem.supported
    logs = np.log(fitted.probabilities(problem)[supported])
    assert fitted.log_likelihood == pytest.approx(
        np.average(logs, weights=problem.weight[supported])
    )
    assert fitted.support == pytest.approx(problem.weight[supported].sum() / problem.weight.sum())


def test_features_are_selected_by_name(problem: Problem) -> None:
    variant = replace(variant_named("weighted"), features=("two",))
    assert fit(problem, variant).names == ("two",)
    with pytest.raises(DataError, match="no feature svm"):
        fit(problem, variant_named("svm"))
    with pytest.raises(DataError, match="fit"):
        fit(problem, variant_named("weighted")).probabilities(problem.only(("one",)))


def test_rejects_unknown_names() -> None:
    with pytest.raises(UsageError, match="best"):
        variant_named("best")
    with pytest.raises(UsageError, match="log-linear"):
        variant_named("weighted", "log-linear")


def test_rejects_invalid_input(tables: tuple) -> None:
    inside, outside, dev, features = tables
    with pytest.raises(DataError, match="shape"):
        problem_of(inside, outside, dev, features[1:], NAMES)
    with pytest.raises(DataError, match="finite"):
        problem_of(inside, outside, dev, features * np.float32(np.nan), NAMES)
    with pytest.raises(DataError, match="empty"):
        problem_of(inside, outside, PhraseCounts.of([], [], []), features, NAMES)
    unrelated = problem_of(inside, outside, PhraseCounts.of(["x"], ["y"], [1]), features, NAMES)
    with pytest.raises(DataError, match="no phrase pair"):
        fit(unrelated, variant_named("plain"))
    with pytest.raises(UsageError, match="bounds"):
        unconstrained(Variant("linear"), Phi(1.5, 1.0, np.zeros(0)))


def test_weigh_computes_both_directions(tables: tuple) -> None:
    inside, outside, dev, features = tables
    variant, prior = variant_named("weighted", "linear"), PhiPrior()
    result = weigh(inside, outside, dev, features, NAMES, variant, prior=prior)
    assert len(result.table) == len(pairs_of_both(inside, outside))
    for name, side in (("direct", "target"), ("inverse", "source")):
        problem = problem_of(inside, outside, dev, features, NAMES, side)  # type: ignore[arg-type]
        fitted = fit(problem, variant, prior=prior)
        rows = result.table.rows_of(dev)
        expected = fitted.probabilities(problem)
        assert result.table.columns[name][rows[rows >= 0]] == pytest.approx(expected[rows >= 0])
        assert result.fits[name].log_likelihood == pytest.approx(fitted.log_likelihood)
    # The result does not depend on the batch size.
    again = weigh(inside, outside, dev, features, NAMES, variant, prior=prior, batch=7)
    for name, column in result.table.columns.items():
        assert again.table.columns[name] == pytest.approx(column)


def test_posterior_mean_is_close_to_mode(tables: tuple) -> None:
    inside, outside, dev, features = tables
    prior = PhiPrior(weight_deviation=0.3)
    mode = weigh(inside, outside, dev, features, NAMES, prior=prior)
    mean = weigh(inside, outside, dev, features, NAMES, prior=prior, draws=200)
    assert set(mean.posteriors) == {"direct", "inverse"}
    for name, column in mean.table.columns.items():
        assert column == pytest.approx(mode.table.columns[name], abs=0.1)
        assert not np.array_equal(column, mode.table.columns[name])

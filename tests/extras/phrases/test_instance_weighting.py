"""Instance weighting, compared with the equations in plain Python, JAX, NumPyro and quadrature."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import jax
import numpy as np
import pytest
from scipy.stats import norm
from support.phrase_pairs import counts_by_pair
from support.raising import capture_notes, raises

from bpa_ppl import DataError, UsageError
from bpa_ppl.extras.phrases.instance_weights import (
    MixtureData,
    Phi,
    Variant,
    collect_data,
    compute_log_densities,
    compute_probabilities,
    constrain_phi,
    fit_weights,
    on_device,
    value_and_gradient,
    variant_named,
    weigh_tables,
)
from bpa_ppl.extras.phrases.mixtures import join_pairs
from bpa_ppl.extras.phrases.tables import PhraseCounts, Side

NAMES = ("one", "two", "three")
PRIOR = {"prior_deviation": 1.2}
NARROW = {"prior_deviation": 0.3}
Tables = tuple[PhraseCounts, PhraseCounts, PhraseCounts, np.ndarray]
#: Of any two settings all four combinations.
VARIANTS = [
    Variant(mixture, smoothed, link, flat, complete=(smoothed == flat) == (link == "logistic"))
    for mixture, smoothed, link, flat in [
        ("linear", True, "logistic", False),
        ("linear", False, "exponential", True),
        ("linear", True, "exponential", True),
        ("linear", False, "logistic", False),
        ("map", True, "logistic", True),
        ("map", False, "exponential", False),
        ("map", True, "exponential", False),
        ("map", False, "logistic", True),
    ]
]


def random_counts(rng: np.random.Generator, pairs: int, first: int = 0) -> PhraseCounts:
    """Return counts of random pairs from a few phrases, many of which are shared.

    Each pair is there the other way round, too, so that one compilation serves both directions.
    """
    numbers = rng.integers(first, first + 12, (2, pairs // 2))
    source, target = np.hstack([numbers, numbers[::-1]])
    texts = [f"s{n}" for n in source], [f"t{n}" for n in target]
    return PhraseCounts.of(*texts, rng.integers(1, 9, len(source)))


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Counts of IN, OUT (with pairs missing) and dev, and the features of OUT."""
    rng = np.random.default_rng(3)
    inside, outside = random_counts(rng, 30, first=2), random_counts(rng, 60)
    dev = random_counts(rng, 40)
    whole = outside.source_count + rng.integers(0, 3, len(outside.sources))
    outside = replace(outside, source_count=whole)
    return inside, outside, dev, rng.normal(size=(len(outside), 3)).astype(np.float32)


@pytest.fixture(scope="module")
def data(tables: Tables) -> MixtureData:
    """The estimation of p(t|s) from the tables."""
    result = collect_data(*tables, NAMES)
    assert (result.missing > 1).any()
    assert (result.missing == 1).any()
    assert (result.in_total == 0).any()
    assert 0 < result.support < 1
    return result


def random_phi(variant: Variant, data: MixtureData) -> Phi:
    """Return random parameters."""
    z = np.random.default_rng(0).normal(size=variant.smoothed + 1 + len(variant.apply(data).names))
    phi = jax.device_get(constrain_phi(variant, z))
    return Phi(float(phi.mixing), float(phi.gamma), phi.weights)


def mixture_of(data: MixtureData, variant: Variant, phi: Phi) -> np.ndarray:
    """Return p(x | y; φ) of the queried pairs, without compilation."""
    with on_device(variant.apply(data)) as arrays, jax.disable_jit():
        return np.asarray(compute_probabilities(arrays, variant, phi))


def reference_probabilities(tables: Tables, side: Side, variant: Variant, phi: Phi) -> list[float]:
    """Return p(x | y) of each dev pair by the equations, one pair at a time."""
    given: Side = "source" if side == "target" else "target"
    # Counts by (x, y)
    step = -1 if side == "target" else 1
    inner, outer, dev = (
        {pair[::step]: count for pair, count in counts_by_pair(table).items()}
        for table in tables[:3]
    )
    whole = dict(zip(tables[1].phrases(given).to_pylist(), tables[1].marginal(given), strict=True))
    weighted = {}
    for row, (pair, count) in enumerate(outer.items()):
        eta = float(phi.weights @ tables[3][row])
        factor = 1 / (1 + exp(-eta)) if variant.link == "logistic" else exp(eta)
        weighted[pair] = (1 if variant.flat else count) * factor
    result = []
    for x, y in dev:
        c_in = sum(count for (_, other), count in inner.items() if other == y)
        weights = [w for (_, other), w in weighted.items() if other == y]
        alpha = phi.mixing if variant.mixture == "linear" else c_in / (c_in + phi.mixing)
        p_in = inner.get((x, y), 0) / c_in if c_in else 0.0
        p_out = 0.0
        if weights:
            missing = whole[y] / sum(count for (_, other), count in outer.items() if other == y)
            if (x, y) in weighted:
                p_out = weighted[x, y] + phi.gamma / (missing * len(weights))
            p_out /= missing * sum(weights) + phi.gamma
        if variant.complete:
            alpha = 1.0 if not weights else 0.0 if not c_in else alpha
        result.append(alpha * p_in + (1 - alpha) * p_out)
    return result


def test_probabilities_agree_with_equations(tables: Tables) -> None:
    """Of both sides with any setting."""
    sides: list[Side] = ["target", "target", "source", "source"] * 2
    for variant, side in zip(VARIANTS, sides, strict=True):
        data = collect_data(*tables, NAMES, side)
        phi = random_phi(variant, data)
        result = mixture_of(data, variant, phi)
        expected = reference_probabilities(tables, side, variant, phi)
        assert result == pytest.approx(expected, rel=1e-12), variant
        assert (result > 0).tolist() == data.supported.tolist()


def test_doubtful_fits_are_reported() -> None:
    # The only dev pair is the OUT pair with the higher feature, and IN does not have it: without a
    # prior the likelihood grows with λ, β and 1 / γ for ever.
    inside, dev = PhraseCounts.of(["s"], ["c"], [1]), PhraseCounts.of(["s"], ["a"], [5])
    outside = PhraseCounts.of(["s", "s"], ["a", "b"], [1, 1])
    features = np.array([[0.01], [-0.01]], np.float32)
    data, variant = collect_data(inside, outside, dev, features, ("one",)), Variant("map")
    with capture_notes() as notes:
        fitted = fit_weights(data, variant)
    assert ["without a prior" in notes[0].message, "doubtful" in notes[1].message] == [True, True]
    beta, gamma, weight = fitted.problems()
    assert (beta[:4], gamma[:5]) == ("beta", "gamma")
    assert "one is" in weight
    with_prior = fit_weights(data, variant, prior_deviation=1.0)
    assert with_prior.problems() == ()
    assert "converged after" in with_prior.describe("p(t|s)")
    not_converged = replace(with_prior, converged=False)
    steps = with_prior.iterations
    assert not_converged.problems() == (f"no convergence after {steps} iterations",)
    assert f"not converged after {steps} iterations" in not_converged.describe("p(t|s)")


def test_features_are_selected_by_name(data: MixtureData) -> None:
    two = replace(variant_named("weighted"), features=("two",))
    fitted = fit_weights(data, two, **PRIOR)
    assert fitted.names == ("two",)
    column = data._replace(features=data.features[:, 1:2], names=("two",))
    assert (fitted.probabilities(column) == fitted.probabilities(data)).all()


def test_rejects_invalid_input(tables: Tables) -> None:
    inside, outside, dev, features = tables
    with raises(UsageError, "unknown-name", parameter="form"):
        variant_named("best")
    with raises(UsageError, "unknown-name", parameter="mixture"):
        variant_named("weighted", "log-linear")
    with raises(DataError, "bad-number"):
        collect_data(inside, outside, dev, features * np.float32(np.nan), NAMES)
    for other in (PhraseCounts.of([], [], []), PhraseCounts.of(["x"], ["y"], [1])):
        unrelated = collect_data(inside, outside, other, features, NAMES)
        with raises(DataError, "mismatch"):
            fit_weights(unrelated, variant_named("weighted"))
    with raises(UsageError, "conflict", parameter="dev"):
        weigh_tables(inside, outside, inside, features, NAMES, **PRIOR)


def test_weigh_computes_both_directions(tables: Tables) -> None:
    table, fits = weigh_tables(*tables, NAMES, **NARROW)
    small_batches, _ = weigh_tables(*tables, NAMES, **NARROW, batch=60)
    pairs = join_pairs(*tables[:2])
    assert len(table) == len(pairs) > 60
    sides: dict[str, Side] = {"direct": "target", "inverse": "source"}
    rows = table.find_rows(tables[2])
    for name, side in sides.items():
        data = collect_data(*tables, NAMES, side)
        fitted, column = fits[name], table.columns[name]
        expected = reference_probabilities(tables, side, fitted.variant, fitted.phi)
        assert column[rows[rows >= 0]] == pytest.approx(np.array(expected)[rows >= 0])
        log_p = np.log(np.array(expected)[data.supported])
        mean = np.average(log_p, weights=data.weight[data.supported])
        assert fitted.log_likelihood == pytest.approx(mean)
        mass = data.weight[data.supported].sum()
        assert fitted.support == pytest.approx(mass / data.weight.sum())
        assert small_batches.columns[name] == pytest.approx(column)


def test_density_agrees_with_scipy_and_the_fit_is_its_mode(tables: Tables) -> None:
    variant, data = variant_named("weighted"), collect_data(*tables, NAMES)
    points = np.random.default_rng(1).normal(size=(3, 5))
    expected = []
    for z in points:  # log β and log γ ~ N(0, 2²), weights ~ N(0, 1.2²)
        phi = Phi(exp(z[0]), exp(z[1]), z[2:])
        p = np.array(reference_probabilities(tables, "target", variant, phi))
        likelihood = data.weight @ np.log(np.where(data.supported, p, 1.0))
        expected.append(likelihood + norm.logpdf(z, 0, [2, 2, 1.2, 1.2, 1.2]).sum())
    mode = fit_weights(data, variant, **PRIOR).z
    with on_device(variant.apply(data)) as arrays:
        densities = [compute_log_densities(arrays, variant, 1.2, z)[0] for z in points]
        _, slope = value_and_gradient(arrays, variant, 1.2, mode)
    assert np.diff(np.array(densities)) == pytest.approx(np.diff(expected), rel=1e-9)
    # The gradient of a sum over hundreds of pairs; it is large away from the mode.
    assert np.asarray(slope) == pytest.approx(0, abs=1e-3)

"""Instance weighting, compared with the equations in plain Python, JAX, NumPyro and quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import potential_energy, unconstrain_fn
from phrase_pairs import counts_by_pair
from raising import raises
from weighted_mixture import weighted_mixture

from bpa_ppl.arrays import Float32
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.models.instance_weighting import (
    FORMS,
    MixtureData,
    Phi,
    Variant,
    fit,
    mixture_data,
    variant_named,
    weigh,
)
from bpa_ppl.models.instance_weighting.density import (
    constrained,
    log_densities,
    placed,
    probabilities,
    value_and_gradient,
)
from bpa_ppl.notes import capture_notes
from bpa_ppl.phrases import PhraseCounts
from bpa_ppl.phrases.mixtures import pairs_of_both
from bpa_ppl.phrases.pair_features import PAIR_FEATURES
from bpa_ppl.phrases.tables import Side

NAMES = ("one", "two", "three")
PRIOR = {"prior_deviation": 1.2}
NARROW = {"prior_deviation": 0.3}
Tables = tuple[PhraseCounts, PhraseCounts, PhraseCounts, Float32]
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
    outside = outside.with_marginal("source", outside.sources, whole)
    return inside, outside, dev, rng.normal(size=(len(outside), 3)).astype(np.float32)


@pytest.fixture(scope="module")
def data(tables: Tables) -> MixtureData:
    """The estimation of p(t|s) from the tables."""
    result = mixture_data(*tables, NAMES)
    assert (result.missing > 1).any()
    assert (result.missing == 1).any()
    assert (result.in_total == 0).any()
    assert 0 < result.support < 1
    return result


@pytest.fixture(scope="module")
def dense_data() -> MixtureData:
    """Data with two features and more than a hundred dev pairs, for posteriors."""
    rng = np.random.default_rng(8)
    inside, outside = random_counts(rng, 40, first=2), random_counts(rng, 90)
    dev = random_counts(rng, 120)
    features = rng.normal(size=(len(outside), 2)).astype(np.float32)
    return mixture_data(inside, outside, dev, features, NAMES[:2])


def random_phi(variant: Variant, data: MixtureData) -> Phi:
    """Return random parameters."""
    z = np.random.default_rng(0).normal(size=variant.size(data))
    phi = jax.device_get(constrained(variant, z))
    return Phi(float(phi.mixing), float(phi.gamma), phi.weights)


def mixture_of(data: MixtureData, variant: Variant, phi: Phi) -> np.ndarray:
    """Return p(x | y; φ) of the queried pairs, without compilation."""
    with placed(variant.apply(data)) as arrays, jax.disable_jit():
        return np.asarray(probabilities(arrays, variant, phi))


def densities(
    data: MixtureData, variant: Variant, z: np.ndarray, deviation: float | None = 1.2
) -> np.ndarray:
    """Return (n,) the log density of values z, (n, d)."""
    with placed(variant.apply(data)) as arrays:
        density = jax.jit(jax.vmap(lambda one: log_densities(arrays, variant, deviation, one)[0]))
        return np.asarray(density(z))


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


@pytest.mark.parametrize("side", ["target", "source"])
def test_probabilities_agree_with_equations(tables: Tables, side: Side) -> None:
    data = mixture_data(*tables, NAMES, side)
    for variant in VARIANTS:
        phi = random_phi(variant, data)
        result = mixture_of(data, variant, phi)
        expected = reference_probabilities(tables, side, variant, phi)
        assert result == pytest.approx(expected, rel=1e-12), variant
        assert (result > 0).tolist() == data.supported.tolist()


#: What the published forms do with a count and η = λ·f, by the beginnings of their features
#: (Sections 3.3 and 3.4), and whether γ is fitted.
ALL = ("tokens", "out.", "in.", "svm")
FORM_DEFINITIONS: dict[str, tuple[tuple[str, ...], Callable[[float, float], float], bool]] = {
    "weighted": (ALL, lambda count, eta: count / (1 + exp(-eta)), True),
    "gamma-0": (ALL, lambda count, eta: count / (1 + exp(-eta)), False),
    "flat": (ALL, lambda count, eta: 1 / (1 + exp(-eta)), True),
    "exponential": (ALL, lambda count, eta: count * exp(eta), True),
    "general": (("tokens", "out."), lambda count, eta: count / (1 + exp(-eta)), True),
    "similarity": (("in.",), lambda count, eta: count / (1 + exp(-eta)), True),
    "svm": (("svm",), lambda count, eta: count / (1 + exp(-eta)), True),
}


@pytest.mark.parametrize("mixture", ["linear", "map"])
@pytest.mark.parametrize("form", FORMS)
def test_forms_agree_with_their_definitions(form: str, mixture: str) -> None:
    names = (*PAIR_FEATURES, "svm")
    beginnings, weigh_count, smoothed = FORM_DEFINITIONS[form]
    columns = [n for n, name in enumerate(names) if name.startswith(beginnings)]
    inside = PhraseCounts.of(["s", "s"], ["a", "d"], [1, 4])
    outside = PhraseCounts.of(["s"] * 3, ["a", "b", "c"], [1, 2, 4])
    features = np.random.default_rng(5).normal(size=(3, len(names))).astype(np.float32)
    dev = PhraseCounts.of(["s"] * 4, list("abcd"), [1] * 4)
    data, variant = (
        mixture_data(inside, outside, dev, features, names),
        variant_named(form, mixture),
    )
    phi = random_phi(variant, data)
    assert (len(phi.weights), phi.gamma > 0) == (len(columns), smoothed)
    etas = features[:, columns].astype(float) @ phi.weights
    weighted = [weigh_count(*pair) for pair in zip([1, 2, 4], etas, strict=True)]
    p_out = [(w + phi.gamma / 3) / (sum(weighted) + phi.gamma) for w in weighted] + [0.0]
    alpha = phi.mixing if mixture == "linear" else 5 / (5 + phi.mixing)
    expected = alpha * np.array([1 / 5, 0, 0, 4 / 5]) + (1 - alpha) * np.array(p_out)
    assert mixture_of(data, variant, phi) == pytest.approx(expected, rel=1e-6)


def test_density_is_finite_where_factors_overflow(data: MixtureData) -> None:
    variant = variant_named("exponential")
    z = np.array([0.0, -700.0, 1e5, -1e5, 1e5])
    with placed(variant.apply(data)) as arrays:
        (value, _), gradient = value_and_gradient(arrays, variant, 1.2, z)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


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
    drawn_pairs = outside.texts("source", supported), outside.texts("target", supported)
    dev = PhraseCounts.of(*drawn_pairs, drawn[supported])
    data = mixture_data(inside, outside, dev, features, ("one", "two"))
    with pytest.warns(BpaWarning, match="without a prior"):
        result = fit(data, variant_named("gamma-0", "linear"))
    assert result.phi.weights == pytest.approx([1.5, -1.0], abs=0.1)


def test_probabilities_sum_to_one(tables: Tables) -> None:
    inside, outside, dev, features = tables
    # Without the missing pairs, which have mass, too.
    whole = PhraseCounts.of(outside.texts("source"), outside.texts("target"), outside.count)
    data = mixture_data(inside, whole, dev, features, NAMES)
    fitted = fit(data, variant_named("weighted"), **PRIOR)
    pairs = pairs_of_both(inside, whole)
    table = mixture_data(inside, whole, pairs, features, NAMES)
    sums = np.bincount(pairs.source, fitted.probabilities(table))
    assert len(pairs) == len(set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)))
    assert sums == pytest.approx(np.ones(len(pairs.sources)))
    # The dev pairs have equal probabilities in the table of all pairs.
    rows = pairs.rows_of(dev)
    dev_probabilities = fitted.probabilities(mixture_data(inside, whole, dev, features, NAMES))
    in_table = fitted.probabilities(table)[rows[rows >= 0]]
    assert in_table == pytest.approx(dev_probabilities[rows >= 0])
    assert (dev_probabilities[rows < 0] == 0).all()


def test_doubtful_fits_are_reported() -> None:
    # The only dev pair is the OUT pair with the higher feature, and IN does not have it: without a
    # prior the likelihood grows with λ, β and 1 / γ for ever.
    inside, dev = PhraseCounts.of(["s"], ["c"], [1]), PhraseCounts.of(["s"], ["a"], [5])
    outside = PhraseCounts.of(["s", "s"], ["a", "b"], [1, 1])
    features = np.array([[0.01], [-0.01]], np.float32)
    data, variant = mixture_data(inside, outside, dev, features, ("one",)), Variant("map")
    with capture_notes() as notes:
        fitted = fit(data, variant)
    assert ["without a prior" in notes[0].message, "doubtful" in notes[1].message] == [True, True]
    assert fitted.at_bound == ("beta", "gamma")
    assert any("one is" in text for text in fitted.problems())
    with_prior = fit(data, variant, prior_deviation=1.0)
    assert with_prior.problems() == ()
    assert "converged after" in with_prior.describe("p(t|s)")
    not_converged = replace(with_prior, converged=False)
    steps = with_prior.iterations
    assert not_converged.problems() == (f"no convergence after {steps} iterations",)
    assert f"not converged after {steps} iterations" in not_converged.describe("p(t|s)")


def test_features_are_selected_by_name(data: MixtureData) -> None:
    variant = replace(variant_named("weighted"), features=("two",))
    assert fit(data, variant, **PRIOR).names == ("two",)
    with raises(DataError, "missing-feature", match="svm"):
        fit(data, variant_named("svm"), **PRIOR)
    with raises(DataError, "missing-feature"):
        fit(data.only(()), variant_named("weighted"), **PRIOR)
    with raises(DataError, "mismatch"):
        fitted = fit(data, variant_named("weighted"), **PRIOR)
        fitted.probabilities(data.only(("one",)))


def test_rejects_invalid_input(tables: Tables) -> None:
    inside, outside, dev, features = tables
    with raises(UsageError, "unknown-name", parameter="form"):
        variant_named("best")
    with raises(UsageError, "unknown-name", parameter="mixture"):
        variant_named("weighted", "log-linear")
    with raises(DataError, "wrong-length"):
        mixture_data(inside, outside, dev, features[1:], NAMES)
    with raises(DataError, "bad-number"):
        mixture_data(inside, outside, dev, features * np.float32(np.nan), NAMES)
    with raises(DataError, "no-data"):
        mixture_data(inside, outside, PhraseCounts.of([], [], []), features, NAMES)
    unrelated = mixture_data(inside, outside, PhraseCounts.of(["x"], ["y"], [1]), features, NAMES)
    with raises(DataError, "mismatch"):
        fit(unrelated, variant_named("weighted"))
    data = mixture_data(*tables, NAMES)
    for value in (0.0, -1.0, np.nan, np.inf):
        with raises(UsageError, parameter="prior_deviation"):
            fit(data, variant_named("weighted"), prior_deviation=value)
    with raises(UsageError, "conflict", parameter="dev"):
        weigh(inside, outside, inside, features, NAMES, **PRIOR)


def test_weigh_computes_both_directions(tables: Tables) -> None:
    table, fits = weigh(*tables, NAMES, **NARROW)
    small_batches, _ = weigh(*tables, NAMES, **NARROW, batch=60)
    pairs = pairs_of_both(*tables[:2])
    assert len(table) == len(pairs) > 60
    sides: dict[str, Side] = {"direct": "target", "inverse": "source"}
    rows = table.rows_of(tables[2])
    for name, side in sides.items():
        data = mixture_data(*tables, NAMES, side)
        fitted, column = fits[name], table.columns[name]
        expected = reference_probabilities(tables, side, fitted.variant, fitted.phi)
        assert column[rows[rows >= 0]] == pytest.approx(np.array(expected)[rows >= 0])
        log_p = np.log(np.array(expected)[data.supported])
        mean = np.average(log_p, weights=data.weight[data.supported])
        assert fitted.log_likelihood == pytest.approx(mean)
        mass = data.weight[data.supported].sum()
        assert fitted.support == pytest.approx(mass / data.weight.sum())
        assert small_batches.columns[name] == pytest.approx(column)


def unconstrained_sites(variant: Variant, data: MixtureData, z: np.ndarray) -> dict[str, jax.Array]:
    """Return unconstrained values of φ as a dictionary of NumPyro sites."""
    phi = constrained(variant, z)
    sites = {variant.mixing_name: phi.mixing, "weights": jnp.asarray(phi.weights)}
    if variant.smoothed:
        sites["gamma"] = phi.gamma
    return unconstrain_fn(weighted_mixture, (data, variant, 1.2), {}, sites)


@pytest.mark.parametrize(("form", "mixture"), [("weighted", "map")])
def test_density_and_mode_agree_with_numpyro_program(
    dense_data: MixtureData, form: str, mixture: str
) -> None:
    variant = variant_named(form, mixture)
    theirs = jax.jit(
        jax.value_and_grad(
            lambda z: -potential_energy(weighted_mixture, (dense_data, variant, 1.2), {}, z)
        )
    )
    points = np.random.default_rng(1).normal(size=(3, variant.size(dense_data)))
    ours = densities(dense_data, variant, points)
    result = [theirs(unconstrained_sites(variant, dense_data, z)) for z in points]
    assert np.diff(ours) == pytest.approx(np.diff([float(v) for v, _ in result]), rel=1e-9)
    mode = fit(dense_data, variant, **PRIOR).z
    slope = theirs(unconstrained_sites(variant, dense_data, mode))[1]
    # The gradient of a sum over hundreds of pairs; it is large away from the mode.
    assert np.concatenate(list(map(np.atleast_1d, slope.values()))) == pytest.approx(0, abs=1e-3)
    assert all(max(np.abs(s).max() for s in slopes.values()) > 1 for _, slopes in result)

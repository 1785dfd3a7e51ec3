"""Learned priors, compared with one large joint Gaussian and SciPy's optimiser for Σ, in use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_expit
from scipy.stats import multivariate_normal, norm
from support import reference_model
from support.posteriors import (
    ComponentRecord,
    FeatureScale,
    ObservedRecord,
    PriorRecord,
    name_weights,
    record_of,
    with_parts,
    with_record,
)
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, DataError, Draws, NBest, Prior, UsageError
from bpa_ppl.models.likelihoods.oracle import Margin
from bpa_ppl.models.priors.learned import (
    DomainWeights,
    Evidence,
    Hierarchy,
    fit_hierarchy,
    learn_hierarchy,
    match_domains,
)

SHRINKAGE, STRENGTH = 0.1, 3.0
CENTRE, VARIANCE = np.array([0.5, -1.0]), np.array([0.1, 0.4])


def simulated_evidence(domains: int, seed: int = 3, spread: float = 0.2) -> dict[str, Evidence]:
    """Return evidence on two weights per domain, with a random precision for each domain."""
    rng = np.random.default_rng(seed)
    result = {}
    for number in range(domains):
        root = rng.normal(size=(2, 2)) * 3
        precision = root @ root.T + np.eye(2)
        between = spread**2 * np.array([[1.0, 0.6], [0.6, 2.0]])
        true_weights = rng.multivariate_normal([0.7, -0.6], between)
        estimates = rng.multivariate_normal(true_weights, np.linalg.inv(precision))
        shift = precision @ estimates
        result[str(number)] = Evidence(("a", "b"), precision, shift, CENTRE, VARIANCE)
    return result


def learned(result: dict[str, Evidence]) -> Hierarchy:
    return fit_hierarchy(result, shrinkage=SHRINKAGE, strength=STRENGTH)


def joint_gaussian(result: Hierarchy, terms: dict[str, Evidence]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of (μ, λ_1, …, λ_D, λ_new) given Σ, from the joint precision."""
    size, count = len(result.names), len(terms) + 2
    precision, shift = np.zeros((count * size,) * 2), np.zeros(count * size)
    part = [slice(k * size, (k + 1) * size) for k in range(count)]
    precision[part[0], part[0]] = np.diag(1 / VARIANCE)
    shift[part[0]] = CENTRE / VARIANCE
    inverse = np.linalg.inv(result.between)
    for k in range(1, count):
        for one, other, sign in ((0, 0, 1), (k, k, 1), (0, k, -1), (k, 0, -1)):
            precision[part[one], part[other]] += sign * inverse
    for block, term in zip(part[1:], terms.values(), strict=False):
        at = np.arange(block.start, block.stop)[[result.names.index(name) for name in term.names]]
        precision[np.ix_(at, at)] += term.precision
        shift[at] += term.shift
    covariance = np.linalg.inv(precision)
    return covariance @ shift, covariance


@pytest.mark.parametrize("missing", [False, True])
def test_means_and_covariances_agree_with_joint_gaussian(missing: bool) -> None:
    terms = simulated_evidence(4)
    if missing:
        rest = terms["2"].over(["a"])
        terms["2"] = rest._replace(shift=rest.precision @ np.array([0.4]), spread=None)
    result = learned(terms)
    mean, covariance = joint_gaussian(result, terms)
    np.testing.assert_allclose(result.mean, mean[:2])
    np.testing.assert_allclose(result.mean_covariance, covariance[:2, :2])
    for k, domain in enumerate(result.domains.values(), 1):
        block = slice(2 * k, 2 * k + 2)
        np.testing.assert_allclose(domain.mean, mean[block])
        np.testing.assert_allclose(domain.covariance, covariance[block, block])
    new = result.prior()
    np.testing.assert_allclose(new.mean, mean[-2:])
    np.testing.assert_allclose(new.covariance, covariance[-2:, -2:], rtol=1e-6)
    assert result.domains["2"].has.tolist() == [True, not missing]


def test_between_covariance_agrees_with_optimiser() -> None:
    terms = simulated_evidence(5)
    estimates = np.concatenate([np.linalg.solve(t.precision, t.shift) for t in terms.values()])
    noise = np.zeros((10, 10))
    for k, term in enumerate(terms.values()):
        noise[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.linalg.inv(term.precision)
    shared = np.kron(np.ones((5, 5)), np.diag(VARIANCE))

    def spread(free: np.ndarray) -> np.ndarray:
        root = np.array([[np.exp(free[0]), 0.0], [free[1], np.exp(free[2])]])
        return np.asarray(root @ root.T)

    def loss(free: np.ndarray) -> float:
        between = spread(free)
        covariance = shared + np.kron(np.eye(5), between) + noise
        fit = multivariate_normal.logpdf(estimates, np.tile(CENTRE, 5), covariance)
        target = SHRINKAGE * np.diag(VARIANCE)
        penalty = np.linalg.slogdet(between)[1] + np.trace(np.linalg.solve(between, target))
        return float(-fit + STRENGTH / 2 * penalty)

    best = minimize(loss, [-1.0, 0.0, -1.0], method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(learned(terms).between, spread(best.x), rtol=2e-3, atol=2e-5)


PRECISION, BEST = np.array([[9.0, 2.0], [2.0, 5.0]]), np.array([1.0, 0.3])


def exact_posterior(precision: np.ndarray = PRECISION, draws: int = 200) -> Draws:
    """Return draws with exactly the mean and covariance of prior × likelihood."""
    inside = precision + np.diag(1 / VARIANCE)
    mean = np.linalg.solve(inside, precision @ BEST + CENTRE / VARIANCE)
    raw = np.random.default_rng(0).normal(size=(draws, 2))
    raw -= raw.mean(axis=0)
    raw = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T))).T
    drawn = mean + raw @ np.linalg.cholesky(np.linalg.inv(inside)).T
    constants = {"prior_mean": CENTRE, "prior_variance": VARIANCE}
    return name_weights(drawn[None], ("a", "b"), constants=constants)


def test_evidence_is_the_likelihood_without_prior() -> None:
    result = Evidence.of(exact_posterior())
    assert result.spread is None
    np.testing.assert_allclose(result.precision, PRECISION)
    np.testing.assert_allclose(np.linalg.solve(result.precision, result.shift), BEST)
    np.testing.assert_array_equal(result.prior_variance, VARIANCE)
    full = {"prior_mean": CENTRE, "prior_covariance": np.diag(VARIANCE)}
    recorded = with_record(
        with_parts(exact_posterior(), constants=full),
        prior=PriorRecord("isotropic", spread={"b": 3.0}),
    )
    np.testing.assert_allclose(Evidence.of(recorded).precision, PRECISION)
    np.testing.assert_array_equal(Evidence.of(recorded).spread, [np.nan, 3.0])


def test_negative_precision_becomes_zero() -> None:
    draws = exact_posterior(np.array([[4.0, 0.0], [0.0, -0.5]]))  # wider than its prior: noise
    result = Evidence.of(draws)
    np.testing.assert_allclose(result.precision, np.diag([4.0, 0.0]), atol=1e-9)
    assert result.shift[1] == pytest.approx(0.0, abs=1e-9)


def test_unsuitable_posteriors_and_settings_are_refused() -> None:
    with raises(DataError, "no-data", parameter="posteriors"):
        Evidence.of(exact_posterior(draws=15))
    point = with_parts(exact_posterior(), values={"weights": np.zeros((1, 1, 2))}, kind="point")
    with raises(DataError, "not-supported", parameter="posteriors"):
        Evidence.of(point)
    with raises(DataError, "not-supported", parameter="posterior"):
        Evidence.of(with_parts(exact_posterior(), constants={}))
    for name, value in (("shrinkage", 0.0), ("strength", -1.0)):
        with raises(UsageError, parameter=name):
            fit_hierarchy(simulated_evidence(2), **{name: value})


def test_one_domain_agrees_with_quadrature() -> None:
    """Quadrature over μ and the domain's weight given Σ, and optimisation over Σ."""
    precision, best, centre, variance = 40.0, 0.9, 0.5, 0.1
    arrays = np.array([precision * best]), np.array([centre]), np.array([variance])
    one = Evidence(("a",), np.array([[precision]]), *arrays)
    result = learned({"talks": one})
    axis = np.linspace(-2.0, 3.0, 401)
    likelihood = norm.pdf(best, axis, precision**-0.5)

    def mean_density(between: float) -> np.ndarray:
        """Return p(μ) p(data | μ, Σ) on the grid."""
        each = norm.pdf(axis[:, None], axis, np.sqrt(between)) @ likelihood  # p is symmetric
        return np.asarray(norm.pdf(axis, centre, np.sqrt(variance)) * each)

    def loss(between: float) -> float:
        target = SHRINKAGE * variance
        penalty = STRENGTH / 2 * (np.log(between) + target / between)
        return float(penalty - np.log(mean_density(between).sum()))

    between = minimize_scalar(loss, bounds=(1e-3, 0.1), method="bounded").x
    p = mean_density(between) / mean_density(between).sum()
    mean = p @ axis
    new = result.prior()
    np.testing.assert_allclose(result.between, [[between]], rtol=1e-3)
    np.testing.assert_allclose(new.mean, [mean], rtol=1e-5)
    np.testing.assert_allclose(new.covariance, [[p @ (axis - mean) ** 2 + between]], rtol=1e-3)


def test_unit_of_feature_is_its_geometric_mean_spread() -> None:
    """The unit is the geometric mean of τ over the geometric mean of the feature's spread.

    The variances of the priors are τ² / spread².
    """
    terms = simulated_evidence(3)
    tau, spread = (0.1, 0.1, 2.0), np.array([[2.0, 0.5], [4.0, 0.5], [2.0, 2.0]])
    for label, of_domain, own in zip(terms, tau, spread, strict=True):
        variance = (of_domain / own) ** 2
        terms[label] = terms[label]._replace(prior_variance=variance, spread=own)
    unit = np.prod(tau) ** (1 / 3) / np.prod(spread, axis=0) ** (1 / 3)
    np.testing.assert_allclose(np.sqrt(match_domains(terms)[2]), unit)


def test_spread_is_small_for_equal_domains_without_canonical_weights() -> None:
    """All domains have equal weights, far outside of their narrow priors."""
    shared, names = np.array([1.0, 2.0]), ("a", "b")
    narrow = np.zeros(2), np.full(2, 0.01), np.full(2, 0.3)
    one = Evidence(names, 400 * np.eye(2), 400 * shared, *narrow)
    terms = {str(k): one for k in range(6)}
    result = fit_hierarchy(terms)
    published = fit_hierarchy({label: one._replace(spread=None) for label, one in terms.items()})
    assert (result.mean > 5 * published.mean).all()
    assert np.trace(result.between) < np.trace(published.between) / 10
    same = fit_hierarchy(terms, shrinkage=1.0, strength=100.0)
    np.testing.assert_array_equal(result.between, same.between)


def test_features_with_a_canonical_weight_keep_their_prior_variance() -> None:
    terms = simulated_evidence(2)
    for label, variance in (("0", [0.1, 0.01]), ("1", [0.3, 0.04])):
        spread = np.array([np.nan, 3.0])
        terms[label] = terms[label]._replace(prior_variance=np.array(variance), spread=spread)
    np.testing.assert_allclose(match_domains(terms)[2], [0.2, 0.02])


def test_each_weight_has_its_verdict() -> None:
    """One weight of each kind, of a prior variance of 0.25; only the films have `lm`."""
    apart = {"talks": [0.02, 0.3, 0.1, 0.0], "films": [0.0, -0.1, 0.0, 0.0], "leaflets": [0.0] * 4}
    deviation, mean = np.array([0.05, 0.1, 0.4, 0.3]), np.array([0.5, 1.0, -0.5, 0.2])
    domains = {}
    for label, offset in apart.items():
        has = np.array([True] * 3 + [label == "films"])
        parts = mean + offset, 0.01 * np.eye(4), np.array(offset), deviation, has
        domains[label] = DomainWeights(*parts)
    between = np.diag(np.square([0.01, 0.3, 0.1, 0.2]))
    names = ("alike", "apart", "unsure", "lm")
    hierarchy = Hierarchy(names, mean, 0.01 * np.eye(4), between, domains, np.full(4, 0.25), 7)
    rows = [line.split(maxsplit=3) for line in hierarchy.table().splitlines()[1:]]
    assert rows == [  # in the order of √Σ in units of the prior
        ["apart", "1.000", "0.300", "own: talks (+3.0 sd)"],
        ["lm", "0.200", "0.200", "of films alone"],
        ["unsure", "-0.500", "0.100", "unknown"],
        ["alike", "0.500", "0.010", "shared"],
    ]
    point = name_weights(np.zeros((1, 1, 4)), names, kind="point")
    posteriors = [
        with_record(point, feature_scales={name: FeatureScale(spread) for name in names})
        for spread in (2.0, 8.0)
    ]
    head, first, *_ = hierarchy.table(posteriors).splitlines()
    assert head.startswith("weight × standard deviation within lists")
    assert first.split()[:3] == ["apart", "4.000", "1.200"]


CANONICAL = {"LM0": 0.5, "WP0": -1.0}
SENTENCES = 20


def pool(seed: int, truth: tuple[float, float], sentences: int = SENTENCES) -> NBest:
    """Lists of two, whose first candidate was drawn from p(e | f, λ) with a true λ."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sentences, 2)) * [3.0, 2.0]
    other = rng.uniform(size=sentences) < 1 / (1 + np.exp(-rows @ truth))
    return reference_model.pairs(np.where(other, -1, 1)[:, None] * rows, list(CANONICAL))


def draws_of(seed: int, truth: tuple[float, float]) -> Draws:
    """Draws of the prior N(λ_T, 0.1 I) with the likelihood as importance weights."""
    rows = pool(seed, truth).features[1::2].astype(np.float64)
    mean, variance = np.array(list(CANONICAL.values())), np.full(2, 0.1)
    drawn = mean + np.random.default_rng(seed).normal(size=(20000, 2)) * np.sqrt(variance)
    return name_weights(
        drawn[None],
        tuple(CANONICAL),
        kind="weighted",
        log_weight=log_expit(-drawn @ rows.T).sum(axis=1)[None],
        constants={"canonical": mean, "prior_mean": mean, "prior_variance": variance},
        record=record_of(
            likelihood=ComponentRecord("oracle"), observed=ObservedRecord(sentences=SENTENCES)
        ),
    )


@pytest.fixture(scope="module")
def posteriors() -> dict[str, Draws]:
    truths = {"talks": (0.9, -0.8), "leaflets": (0.9, -1.2), "films": (0.9, -1.0)}
    return {name: draws_of(seed, truth) for seed, (name, truth) in enumerate(truths.items())}


@pytest.fixture(scope="module")
def prior(posteriors: dict[str, Draws]) -> Prior:
    return bpa.learn_prior(posteriors)


def test_no_sentence_gives_the_prior_and_the_canonical_weights_are_kept(prior: Prior) -> None:
    none = pool(5, (0.0, 0.0))[:0]
    with pytest.warns(bpa.BpaWarning, match="equals its prior"):
        found = bpa.adapt(none, CANONICAL, prior=prior, likelihood=Margin(), sampler="map")
    draws = bpa.as_weight_draws(found)
    np.testing.assert_allclose(draws.mean, prior.mean, atol=1e-9)
    before = draws.draws.prior["weights"][0]
    np.testing.assert_allclose(before.mean(axis=0), prior.mean, atol=0.05)
    np.testing.assert_allclose(np.cov(before.T), prior.covariance, atol=0.01)
    assert draws.canonical is not None
    np.testing.assert_array_equal(draws.canonical, list(CANONICAL.values()))
    again = Prior.recorded(found)
    np.testing.assert_allclose(again.covariance, prior.covariance)
    assert bpa.check(found)


def test_files_and_labels(posteriors: dict[str, Draws], tmp_path: Path) -> None:
    paths = []
    for name, one in list(posteriors.items())[:2]:
        paths.append(tmp_path / f"{name}.nc")
        bpa.write_posterior(one, paths[-1])
    of_files = learn_hierarchy(paths)
    assert list(of_files.domains) == ["talks", "leaflets"]
    of_memory = learn_hierarchy(list(posteriors.values())[:2])
    assert list(of_memory.domains) == ["domain 1", "domain 2"]
    np.testing.assert_allclose(of_files.mean, of_memory.mean)


def test_posteriors_of_other_likelihoods_are_warned_about(posteriors: dict[str, Draws]) -> None:
    margin = ComponentRecord("margin", {"gamma": 2.0})
    other = with_parts(posteriors["films"], record=record_of(likelihood=margin))
    with pytest.warns(BpaWarning, match="different likelihoods"):
        bpa.learn_prior({"talks": posteriors["talks"], "films": other})


def test_posteriors_without_a_common_feature_are_not_joined(posteriors: dict[str, Draws]) -> None:
    """A third one that has features of both joins them; one of its own kind does not."""
    talks = posteriors["talks"]
    films = with_parts(posteriors["films"], coords={"feature": ("TM0", "TM1")})
    with raises(DataError, "mismatch", parameter="posteriors", match="talks and films .*WP0; TM0"):
        bpa.learn_prior({"talks": talks, "films": films})
    with raises(DataError, "mismatch", parameter="posteriors"):
        bpa.learn_prior({"talks": talks, "leaflets": posteriors["leaflets"], "films": films})
    both = with_parts(posteriors["leaflets"], coords={"feature": ("TM0", "LM0")})
    with pytest.warns(BpaWarning, match="LM0, WP0, TM0, TM1"):
        joined = bpa.learn_prior({"talks": talks, "films": films, "both": both})
    assert set(joined.names) == {"LM0", "WP0", "TM0", "TM1"}


def test_posteriors_that_cannot_be_used_are_named(posteriors: dict[str, Draws]) -> None:
    with raises(UsageError, "wrong-type", parameter="posteriors"):
        bpa.learn_prior(posteriors["talks"])
    with raises(UsageError, "no-data", parameter="posteriors"):
        bpa.learn_prior([])
    bare = with_parts(posteriors["talks"], constants={})
    with raises(DataError, "not-supported", parameter="posteriors", match="bare"):
        bpa.learn_prior({"talks": posteriors["talks"], "bare": bare})
    talks = posteriors["talks"]
    line = with_parts(talks, values={"weights": talks.weights[..., :1] * [1.0, -1.0]})  # Σ|λ| = 1
    with raises(DataError, "not-supported", parameter="posteriors", match="line"):
        bpa.learn_prior({"talks": talks, "line": line})
    with raises(DataError, "missing-feature", parameter="without"):
        bpa.learn_prior(posteriors, without=["c"])
    with raises(DataError, "no-data", parameter="without", match="talks"):
        bpa.learn_prior(posteriors, without=["LM0", "WP0"])


def test_features_of_all_domains_are_learned_without_the_others(
    posteriors: dict[str, Draws],
) -> None:
    """No warning, and one of two domains that lacks the feature is taken as it is."""
    talks = posteriors["talks"]
    films = with_parts(posteriors["films"], coords={"feature": ("LM0", "lm.oov")})
    with pytest.warns(BpaWarning, match="WP0, lm.oov"):
        bpa.learn_prior([talks, films])
    assert bpa.learn_prior([talks, films], without=["lm.oov", "WP0"]).names == ("LM0",)

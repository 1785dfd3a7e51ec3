"""Models with several sites: hierarchies of domains, and the horseshoe."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_model
from moment_checks import assert_moments
from numpyro.infer.util import potential_energy
from raising import raises
from scipy.special import log_expit, logsumexp
from scipy.stats import beta, halfcauchy, halfnorm, invgamma, norm
from targets import AtStart

import bpa_ppl
from bpa_ppl import NBest, UsageError, check
from bpa_ppl.models import Hierarchical, Horseshoe, Prior, tabulate
from bpa_ppl.models.likelihoods import Oracle
from bpa_ppl.posterior import as_draws
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.sampling import Sampled, Target, learn_prior_jointly, nuts
from bpa_ppl.sampling.density import constrained, potential
from bpa_ppl.sampling.whitening import original, whitened
from bpa_ppl.weights import Match, match

DOMAINS, SENTENCES, VARIANCE, SPREAD = 24, 20, 0.5, 1.5


def simulated_domains() -> dict[str, NBest]:
    """Return lists of two with one feature per domain, simulated with a weight of the domain."""
    rng = np.random.default_rng(4)
    result = {}
    for number, truth in enumerate(rng.normal(1.0, 0.5, size=DOMAINS)):
        rows = rng.normal(0, 3, size=SENTENCES)
        sign = np.where(rng.uniform(size=SENTENCES) < 1 / (1 + np.exp(-rows * truth)), -1, 1)
        result[str(number)] = reference_model.pairs((sign * rows)[:, None], ["LM0"])
    return result


def domain_log_likelihood(lists: NBest, domain_weights: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of a domain."""
    rows = lists.features[1::2, 0].astype(float)
    return np.asarray(sum(log_expit(-domain_weights * row) for row in rows))


def new_domain_moments(domains: dict[str, NBest]) -> tuple[float, float]:
    """Return mean and variance of a new domain's weight, by quadrature over (μ, τ) and each λ."""
    shared, scale = np.linspace(-1.0, 3.0, 61), np.linspace(0.01, 3.0, 50)
    unit, weight = np.polynomial.hermite_e.hermegauss(25)
    domain_weights = shared[:, None, None] + scale[None, :, None] * unit
    log_p = norm.logpdf(shared, 0.5, VARIANCE**0.5)[:, None]
    log_p = log_p + halfnorm.logpdf(scale, scale=SPREAD * VARIANCE**0.5)
    for one in domains.values():
        log_likelihood = domain_log_likelihood(one, domain_weights)
        log_p = log_p + logsumexp(log_likelihood, axis=2, b=weight / weight.sum())
    p = np.exp(log_p - logsumexp(log_p))
    mean = p.sum(axis=1) @ shared
    variance = p.sum(axis=1) @ (shared - mean) ** 2 + p.sum(axis=0) @ scale**2
    return float(mean), float(variance)


def test_hierarchical_density_agrees_with_scipy() -> None:
    rng = np.random.default_rng(6)
    names, domain = ("LM0", "WP0"), np.array([0, 1, 1, 0, 1])
    lists = reference_model.pairs(rng.normal(size=(5, 2)), names)
    table = tabulate(lists, match(dict.fromkeys(names, 0.0), lists), np.zeros(5), domain=domain)
    mean, variance = np.array([0.5, -1.0]), np.array([0.1, 0.4])
    z = {
        "shared": jnp.array([0.7, -0.8]),
        "scale": jnp.array([-1.2, -0.5]),
        "correlation": jnp.array([0.6]),
        "own": jnp.asarray(rng.normal(size=(3, 2))),
    }
    shared, scale, domain_weights = (np.asarray(z[name]) for name in ("shared", "scale", "own"))
    scale, r = np.exp(scale), np.tanh(0.6)
    root = scale[:, None] * np.array([[1.0, 0.0], [r, np.sqrt(1 - r**2)]])
    weights = shared + domain_weights @ root.T
    expected = norm.logpdf(shared, mean, np.sqrt(variance)).sum()
    expected += norm.logpdf(domain_weights).sum()
    expected += (halfnorm.logpdf(scale, scale=SPREAD * np.sqrt(variance)) + np.log(scale)).sum()
    # Of two weights the correlation is 2 b − 1 with b ~ Beta(2, 2), and r = tanh of its site.
    expected += beta.logpdf((1 + r) / 2, 2.0, 2.0) - np.log(2) + np.log(1 - r**2)
    for sentence, number in enumerate(domain):
        rows = lists.features[lists.rows(sentence)]
        expected += reference_model.log_choice(rows, weights[number])[0]
    target = Target(Hierarchical(2, spread=SPREAD), Oracle(), table, Prior(mean, variance), z)
    with jax.enable_x64(True):
        assert float(-potential(target, z)) == pytest.approx(expected, abs=1e-4)
        result = constrained(target, z)
        np.testing.assert_allclose(result["weights"], weights[2])
        np.testing.assert_allclose(result["by_domain"], weights[:2])


def hierarchy_target(names: tuple[str, ...], domains: int) -> Target:
    """Return a hierarchical posterior of a few lists of each domain."""
    rng = np.random.default_rng(6)
    count = 4 * domains
    lists = reference_model.pairs(rng.normal(size=(count, len(names))), names)
    lists = lists.with_sentence_extras(domain=[str(number % domains) for number in range(count)])
    prior = Prior.isotropic(dict.fromkeys(names, 0.3), 0.5)
    model, oracle = Hierarchical(domains, spread=2.0), reference_model.given(*[0] * count)
    options = {"likelihood": "oracle", "oracle": oracle, "prior": prior, "model": model}
    return bpa_ppl.log_density(lists, dict.fromkeys(names, 0.0), **options)


def test_whitened_coordinates_are_exact() -> None:
    """Their density is that of the model times the Jacobian determinant, by differences."""
    with jax.enable_x64(True):
        target = hierarchy_target(("LM0", "WP0"), 2)
        simpler = whitened(target)
        assert simpler is not None
        rng = np.random.default_rng(1)
        z = {name: jnp.asarray(rng.normal(size=np.shape(x))) for name, x in target.start.items()}

        def own(value: jax.Array) -> jax.Array:
            draws = {name: x[None, None] for name, x in (z | {"own": value}).items()}
            result = original(simpler, Sampled(z=draws, log_density=np.zeros((1, 1))))
            return result.z["own"][0, 0]

        step, size = 1e-5, z["own"].size
        moves = step * np.eye(size).reshape(size, *z["own"].shape)
        jacobian = [(own(z["own"] + move) - own(z["own"] - move)) / (2 * step) for move in moves]
        log_det = np.linalg.slogdet(np.reshape(jacobian, (size, size)))[1]

        def energy(value: jax.Array) -> jax.Array:
            values = z | {"own": value}
            return potential_energy(simpler.program, simpler.data, {}, values)

        expected = potential(target, z | {"own": jnp.asarray(own(z["own"]))})
        assert float(jax.jit(energy)(z["own"])) == pytest.approx(
            float(expected) - log_det, abs=1e-4
        )


@pytest.mark.slow
@pytest.mark.parametrize("is_whitened", [True, False])
def test_draws_agree_with_quadrature(is_whitened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    domains = dict(list(simulated_domains().items())[:3])
    options: dict[str, Any] = {"prior_variance": VARIANCE, "likelihood": "oracle"}
    options["oracle"] = reference_model.given(*[0] * 3 * SENTENCES)
    if is_whitened:
        monkeypatch.setattr(nuts, "assess_proposals", lambda target: (None, np.inf, "of a test"))
        options |= {"sampler": "nuts", "draws": 1500, "target_accept": 0.99}
    result = learn_prior_jointly(domains, {"LM0": 0.5}, model=Hierarchical(3, SPREAD), **options)
    assert ("whitened" in result.attrs.get("metric", "")) is is_whitened
    assert is_whitened or check(result), str(check(result))
    mean, variance = new_domain_moments(domains)
    draws = as_draws(result)
    assert_moments(draws.weights, [mean], [[variance]])
    rebuilt = draws.values["shared"] + draws.values["scale"] * draws.values["own"][..., 0]
    np.testing.assert_allclose(rebuilt[..., :3], draws.values["by_domain"][..., 0], atol=1e-9)


def test_sites_have_the_names_of_features_and_domains() -> None:
    rng = np.random.default_rng(0)
    names = ["LM0", "WP0"]
    pools = {name: reference_model.pairs(rng.normal(size=(4, 2)), names) for name in ("b", "a")}
    options: dict[str, Any] = {"oracle": reference_model.given(*[0] * 8), "likelihood": "oracle"}
    options |= {"model": Hierarchical(2, spread=2.0)}  # as in the test above: compiled once
    options |= {"sampler": AtStart()}  # the names do not depend on the sampler
    result = learn_prior_jointly(pools, dict.fromkeys(names, 0.1), **options)
    sites = result["posterior"]
    assert sites["own"].dims[2:] == ("domain_or_new", "feature")
    assert sites["own"].sel(domain_or_new="new", feature="WP0").shape == (1, 1)
    assert sites["by_domain"].coords["domain"].values.tolist() == ["b", "a"]
    assert sites["correlation"].dims[2:] == ("feature", "other_feature")
    assert result["prior"]["shared"].dims[2:] == ("feature",)
    draws = as_draws(result)
    components = draws.components(derived=True)
    assert {"shared[LM0]", "own[new, WP0]", "correlation[WP0, LM0]", "by_domain[a, LM0]"} < {
        *components
    }
    assert set(as_draws(to_arviz(draws)).components(derived=True)) == set(components)


def test_rejects_wrong_number_of_domains() -> None:
    with raises(UsageError, "mismatch", parameter="model"):
        learn_prior_jointly(simulated_domains(), {"LM0": 0.5}, model=Hierarchical(3))
    with raises(UsageError, parameter="domains"):
        Hierarchical(0)


class TestSparsePriors:
    """A dense weight and three sparse ones."""

    names = ("LM0", "a", "b", "c")
    spread = np.array([np.nan, 6.0, 3.0, 6.0])
    match = Match(names, np.array([0.5, 0.0, 0.0, 0.0]), np.ones(4, dtype=bool), spread)

    def test_horseshoe_density_agrees_with_scipy(self) -> None:
        lists = reference_model.pairs(np.random.default_rng(0).normal(size=(5, 4)), self.names)
        family = Horseshoe(relevant=1.0)
        table = tabulate(lists, match(dict.fromkeys(self.names, 0.0), lists), np.zeros(5))
        model, prior = family.model(self.match), family.build(self.match)._replace(names=None)
        z = {
            "unit": jnp.array([0.3, -1.0, 0.5, 2.0]),
            "local": jnp.array([0.2, -0.4, 1.5]),
            "overall": jnp.array(-0.7),
            "slab": jnp.array(0.4),
        }
        target = Target(model, Oracle(), table, prior, z)
        local, overall, slab = (np.exp(np.asarray(z[n])) for n in ("local", "overall", "slab"))
        kappa = np.sqrt(slab * local**2 / (slab + overall**2 * local**2))
        factor = np.append(1.0, overall * kappa)
        spread = np.sqrt(0.1) * np.array([1.0, 1.0, 2.0, 1.0])  # 6 over the spread within lists
        weights = np.array([0.5, 0, 0, 0]) + spread * factor * np.asarray(z["unit"])
        expected = norm.logpdf(np.asarray(z["unit"])).sum()
        expected += (halfcauchy.logpdf(local) + np.log(local)).sum()
        expected += halfcauchy.logpdf(overall, scale=0.5) + np.log(overall)
        expected += invgamma.logpdf(slab, 2.0, scale=2.0) + np.log(slab)
        expected += reference_model.log_likelihood(lists, np.zeros(5, int), weights).sum()
        with jax.enable_x64(True):
            assert float(-potential(target, z)) == pytest.approx(expected, abs=1e-4)
            np.testing.assert_allclose(constrained(target, z)["weights"], weights)

    def test_all_shifts_are_sparse_if_all_weights_are_canonical(self) -> None:
        every = Match(("LM0", "WP0"), np.array([0.5, -1.0]), np.ones(2, dtype=bool))
        assert Horseshoe(relevant=0.5).model(every).sparse == (True, True)
        assert Horseshoe(relevant=0.5).model(every).scale == pytest.approx(1 / 3)
        with raises(UsageError, "invalid-setting", parameter="relevant"):
            Horseshoe(relevant=0.0)

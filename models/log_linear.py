"""Log-linear models: one vector of weights for all lists, or one for each domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.likelihoods.lists import Lists
    from bpa_ppl.models.priors.prior import Prior

#: Of the prior of `scale` in `hierarchical`, a half-t whose median is 1 in units of the prior of
#: the weights. Domains that need the same weights lose with a wide normal prior. With a
#: half-Cauchy, scales reach 70 if all judges agree with the answers of a domain, and NUTS diverges
#: there: docs/results/groups.txt.
_DEGREES, _SCALE = 4.0, 1.35


def log_linear(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """λ ~ p(λ | T); e*_a ~ p(e | f_a, λ) for each adaptation sentence a.

    These are the factors p(λ | T) and p(A | λ) of Eq. 7 of Sanchis-Trilles & Casacuberta (2015).

    Sites: `weights` (Q,), and with the published likelihood `oracle` (S,), observed, in a plate
    over sentences. A custom model takes the same arguments and needs a site `weights` with one
    value per free feature, which may be a function of other sites.

    >>> import numpyro
    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.likelihoods.oracle import Oracle
    >>> from bpa_ppl.models.likelihoods.lists import tabulate
    >>> from bpa_ppl.models.priors.prior import Prior
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 1.0}, lists), [1])
    >>> model = numpyro.handlers.seed(log_linear, 0)
    >>> sites = numpyro.handlers.trace(model).get_trace(
    ...     lists, Prior.isotropic({"LM0": 1.0}), Oracle()
    ... )
    >>> [name for name, site in sites.items() if site["type"] == "sample"]
    ['weights', 'oracle']
    """
    import numpyro

    weights = numpyro.sample("weights", prior.distribution())
    likelihood = likelihood.sample_parameters()
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, weights)


def scaled_log_linear(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """The log-linear model with the common scale τ of weights as a site: λ = m + τ x.

    Integrated over τ it is `log_linear` with the prior
    `bpa_ppl.models.priors.shared_scale.SharedScale`. Sites: `precision` () is 1/τ²; `unit` (Q,) is
    x, with mean 0 and the variances of the prior; `weights` (Q,) is a function of them.
    """
    import jax.numpy as jnp
    import numpyro

    assert prior.scale is not None
    precision = numpyro.sample("precision", prior.scale.precision())
    of_units = prior._replace(mean=jnp.zeros_like(prior.mean), scale=None)
    unit = numpyro.sample("unit", of_units.distribution())
    scale = jnp.where(jnp.asarray(prior.scale.shared), 1 / jnp.sqrt(precision), 1.0)
    weights = numpyro.deterministic("weights", prior.mean + scale * unit)
    likelihood = likelihood.sample_parameters()
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, weights)


def hierarchical(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """λ_d = μ + s·σ·z_d for each domain d, with μ ~ p(λ | T), z_d ~ N(0, I) and s ~ t⁺₄(0, 1.35).

    σ are the standard deviations of the prior, so that s is the share by which domains differ. Its
    half-t prior allows for domains that do not differ and for those that do (Gelman 2006). The
    extra `domain` of the sentences names their domains: `adapt(lists, model=hierarchical)`.

    Sites: `shared` (Q,), μ; `scale`, s; `offset` (D, Q), z; `own` (D, Q), the weights of the
    domains, by which `rerank` chooses from the lists of each; and `weights` (Q,), those of a domain
    that is not among them, which are drawn around the shared ones with `offset_of_new` (Q,).
    Independent z instead of λ_d make the posterior one that NUTS samples well (Papaspiliopoulos,
    Roberts & Sköld 2007).

    >>> import numpyro
    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.likelihoods.oracle import Oracle
    >>> from bpa_ppl.models.likelihoods.lists import tabulate
    >>> from bpa_ppl.models.priors.prior import Prior
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]] * 3, [[[0.0], [1.0]]] * 3, ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 1.0}, lists), [1, 0, 1], domain=[0, 1, 1])
    >>> model = numpyro.handlers.seed(hierarchical, 0)
    >>> sites = numpyro.handlers.trace(model).get_trace(
    ...     lists, Prior.isotropic({"LM0": 1.0}), Oracle()
    ... )
    >>> sites["own"]["value"].shape, sites["weights"]["value"].shape
    ((2, 1), (1,))
    """
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    of_shared = prior.distribution()
    unit, shape = jnp.sqrt(of_shared.variance), (len(lists.domains), lists.features)
    shared = numpyro.sample("shared", of_shared)
    of_scale = dist.FoldedDistribution(dist.StudentT(_DEGREES, 0.0, _SCALE))
    scale = numpyro.sample("scale", of_scale)
    offset = numpyro.sample("offset", dist.Normal().expand(shape).to_event(2))
    new = numpyro.sample("offset_of_new", dist.Normal().expand(shape[1:]).to_event(1))
    by_domain = numpyro.deterministic("own", shared[None] + scale * unit[None] * offset)
    numpyro.deterministic("weights", shared + scale * unit * new)
    likelihood = likelihood.sample_parameters()
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, by_domain)


#: The names of the dimensions of its sites.
hierarchical.dims = {  # type: ignore[attr-defined]
    "shared": ("feature",),
    "offset": ("domain", "feature"),
    "offset_of_new": ("feature",),
    "own": ("domain", "feature"),
}

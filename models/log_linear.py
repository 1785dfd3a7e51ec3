"""The model of Bayesian predictive adaptation: a prior over weights and a likelihood of oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.lists import Lists
    from bpa_ppl.models.priors.prior import Prior


def log_linear(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """λ ~ p(λ | T); e*_a ~ p(e | f_a, λ) for each adaptation sentence a (Eq. 7).

    Sites: `weights` (Q,), and with the published likelihood `oracle` (S,), observed, in a plate
    over sentences. A custom model takes the same arguments and needs a site `weights` with one
    value per free feature, which may be a function of other sites.

    >>> import numpyro
    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.likelihoods.oracle import Oracle
    >>> from bpa_ppl.models.lists import tabulate
    >>> from bpa_ppl.models.priors.prior import Prior
    >>> from bpa_ppl.weights import match
    >>> nbest = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 1.0}, nbest), [1])
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

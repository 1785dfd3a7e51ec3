"""The model of Bayesian predictive adaptation: a prior over weights and a likelihood of oracles."""

from __future__ import annotations

import numpyro

from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.priors.base import Prior


def log_linear(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """λ ~ p(λ | T); e*_a ~ p(e | f_a, λ) for each adaptation sentence a (Eq. 7).

    Sites: `weights` (Q,), and with the published likelihood `oracle` (S,), observed, in a plate
    over sentences. A model of your own takes the same arguments and needs a site called `weights`
    of one value a free feature, which may be a function of other sites.
    """
    weights = numpyro.sample("weights", prior.distribution())
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, weights)

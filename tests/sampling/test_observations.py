"""The steps of `adapt` one by one: what was observed, the prior, and NumPyro's own samplers."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpyro.infer import MCMC, NUTS

from bpa_ppl.adapting import log_density
from bpa_ppl.building import from_lists
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Observations
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.statistics import ess
from bpa_ppl.sampling.observations import Compared, Scored, observe
from bpa_ppl.sampling.prior_choice import choose_prior
from bpa_ppl.sampling.sampler import SAMPLERS
from bpa_ppl.weights import match

CANONICAL = {"a": 0.5, "b": -0.2}


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(0)
    texts = [[f"text {n}" for n in range(4)] for _ in range(30)]
    lists = from_lists(texts, rng.normal(size=(30, 4, 2)), list(CANONICAL))
    preferences = [[[int(winner), int((winner + 1) % 4)]] for winner in rng.integers(4, size=30)]
    return lists.with_extras(grade=rng.integers(5, size=120)).with_sentence_extras(
        preferences=preferences
    )


def test_numpyro_samples_the_data_of_the_steps(lists: NBest) -> None:
    """NumPyro's MCMC and NUTS and a sampler of ours on the density of `log_density`."""
    start = match(CANONICAL, lists)
    observed = observe(lists, "grade", start, likelihood="oracle")
    prior, _ = choose_prior(observed, start)
    mcmc = MCMC(
        NUTS(log_linear),
        num_warmup=500,
        num_samples=1000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    with jax.enable_x64(True):
        mcmc.run(jax.random.key(0), observed.table(start), prior, Oracle())
        theirs = np.asarray(mcmc.get_samples(group_by_chain=True)["weights"])
        target = log_density(lists, CANONICAL, gain="grade", likelihood="oracle")
        ours = np.asarray(SAMPLERS.resolve("imh").sample(target).z["weights"])
    effective = ess(theirs)
    assert effective.min() > 400
    deviation = theirs.std(axis=(0, 1))
    error = deviation * np.sqrt(1 / effective + 1 / ess(ours))
    assert (np.abs(theirs.mean(axis=(0, 1)) - ours.mean(axis=(0, 1))) < 4 * error).all()
    np.testing.assert_allclose(ours.std(axis=(0, 1)), deviation, rtol=0.15)


@pytest.mark.parametrize("name", [*LIKELIHOODS])
def test_observations_have_one_protocol(name: str, lists: NBest) -> None:
    """What a likelihood observes is scored lists or comparisons, and both have the same parts."""
    observed = observe(lists, "grade", match(CANONICAL, lists), likelihood=name)
    data: Observations = observed
    likelihood = LIKELIHOODS.resolve(name)
    assert isinstance(observed, Compared if likelihood.observes == "preferences" else Scored)
    assert likelihood.defaults(data).observes == likelihood.observes
    assert {"texts", "features", "oracles"} <= observed.hashes().keys()
    assert observed.record().sentences == len(observed.lists)
    table = observed.table()
    rows = np.sort(table.sentence[table.sentence >= 0])
    np.testing.assert_array_equal(rows, np.arange(len(observed.lists)))
    assert ("gain" in table.buckets[0]) == (likelihood.observes == "gains")
    assert ("tie" in table.buckets[0]) == (likelihood.observes == "preferences")
    assert (observed.edit is not None) == (likelihood.observes == "gains")


def test_the_prior_is_that_of_adapt(lists: NBest) -> None:
    """With a learned scale: without canonical weights."""
    start = match(None, lists)._replace(origin="none")
    observed = observe(lists, "grade", start)
    prior, record = choose_prior(observed, start, likelihood="risk")
    expected = log_density(lists, None, gain="grade").prior
    np.testing.assert_allclose(prior.variance, expected.variance)
    assert record.scale_learned
    assert record.scale == pytest.approx(np.sqrt(prior.variance[0]) * lists.spread[0], rel=0.01)

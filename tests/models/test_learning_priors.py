"""Priors learned from posteriors, and used: by name, and with no sentence at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_expit
from support import reference_model
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, DataError, Draws, NBest, UsageError
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.priors.learned import learn_hierarchy
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.record import ComponentRecord, Observed, Record

CANONICAL = {"LM0": 0.5, "WP0": -1.0}
SENTENCES = 20


def pool(seed: int, truth: tuple[float, float], sentences: int = SENTENCES) -> NBest:
    """Lists of two, whose first candidate was drawn from p(e | f, λ) with a true λ."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sentences, 2)) * [3.0, 2.0]
    other = rng.uniform(size=sentences) < 1 / (1 + np.exp(-rows @ truth))
    return reference_model.pairs(np.where(other, -1, 1)[:, None] * rows, list(CANONICAL))


def posterior(seed: int, truth: tuple[float, float]) -> Draws:
    """Draws of the prior N(λ_T, 0.1 I) with the likelihood as importance weights."""
    rows = pool(seed, truth).features[1::2].astype(np.float64)
    mean, variance = np.array(list(CANONICAL.values())), np.full(2, 0.1)
    drawn = mean + np.random.default_rng(seed).normal(size=(20000, 2)) * np.sqrt(variance)
    return Draws(
        {"weights": drawn[None]},
        tuple(CANONICAL),
        kind="weighted",
        log_weight=log_expit(-drawn @ rows.T).sum(axis=1)[None],
        constants={"canonical": mean, "prior_mean": mean, "prior_variance": variance},
        record=Record(likelihood=ComponentRecord("oracle"), observed=Observed(sentences=SENTENCES)),
    )


@pytest.fixture(scope="module")
def posteriors() -> dict[str, Draws]:
    truths = {"talks": (0.9, -0.8), "leaflets": (0.9, -1.2), "films": (0.9, -1.0)}
    return {name: posterior(seed, truth) for seed, (name, truth) in enumerate(truths.items())}


@pytest.fixture(scope="module")
def prior(posteriors: dict[str, Draws]) -> Prior:
    return bpa.learn_prior(posteriors)


def test_no_sentence_gives_the_prior_and_the_canonical_weights_are_kept(prior: Prior) -> None:
    none = pool(5, (0.0, 0.0))[:0]
    with pytest.warns(bpa.BpaWarning, match="equals its prior"):
        found = bpa.adapt(none, CANONICAL, prior=prior, likelihood=Margin(), sampler="map")
    draws = bpa.as_draws(found)
    np.testing.assert_allclose(draws.mean, prior.mean, atol=1e-9)
    before = draws.prior["weights"][0]
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
    other = replace(posteriors["films"], record=Record(likelihood=margin))
    with pytest.warns(BpaWarning, match="different likelihoods"):
        bpa.learn_prior({"talks": posteriors["talks"], "films": other})


def test_posteriors_without_a_common_feature_are_not_joined(posteriors: dict[str, Draws]) -> None:
    """A third one that has features of both joins them; one of its own kind does not."""
    talks = posteriors["talks"]
    films = replace(posteriors["films"], features=("TM0", "TM1"))
    with raises(DataError, "mismatch", parameter="posteriors", match="talks and films .*WP0; TM0"):
        bpa.learn_prior({"talks": talks, "films": films})
    with raises(DataError, "mismatch", parameter="posteriors"):
        bpa.learn_prior({"talks": talks, "leaflets": posteriors["leaflets"], "films": films})
    both = replace(posteriors["leaflets"], features=("TM0", "LM0"))
    with pytest.warns(BpaWarning, match="LM0, WP0, TM0, TM1"):
        joined = bpa.learn_prior({"talks": talks, "films": films, "both": both})
    assert set(joined.names) == {"LM0", "WP0", "TM0", "TM1"}


def test_posteriors_that_cannot_be_used_are_named(posteriors: dict[str, Draws]) -> None:
    with raises(UsageError, "wrong-type", parameter="posteriors"):
        bpa.learn_prior(posteriors["talks"])
    with raises(UsageError, "no-data", parameter="posteriors"):
        bpa.learn_prior([])
    bare = Draws({"weights": np.zeros((1, 99, 2))}, ("LM0", "WP0"))
    with raises(DataError, "not-supported", parameter="posteriors", match="bare"):
        bpa.learn_prior({"talks": posteriors["talks"], "bare": bare})
    with raises(DataError, "missing-feature", parameter="without"):
        bpa.learn_prior(posteriors, without=["c"])
    with raises(DataError, "no-data", parameter="without", match="talks"):
        bpa.learn_prior(posteriors, without=["LM0", "WP0"])


def test_features_of_all_domains_are_learned_without_the_others(
    posteriors: dict[str, Draws],
) -> None:
    """No warning, and one of two domains that lacks the feature is taken as it is."""
    talks = posteriors["talks"]
    films = replace(posteriors["films"], features=("LM0", "lm.oov"))
    with pytest.warns(BpaWarning, match="WP0, lm.oov"):
        bpa.learn_prior([talks, films])
    assert bpa.learn_prior([talks, films], without=["lm.oov", "WP0"]).names == ("LM0",)

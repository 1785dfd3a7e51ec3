"""Initial weights of features of the texts: the shipped values, units, and when they apply."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from bpa_ppl import (
    Isotropic,
    NBest,
    Prior,
    adapt,
    add_features,
    as_weight_draws,
    from_lists,
    log_density,
    point_weights,
    rerank,
)
from bpa_ppl.extending import StartingWeights
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.length import Length

CONTENT = json.loads(files("bpa_ppl.features").joinpath("pretrained.json").read_text())
FEATURES = CONTENT["features"]
#: The prior mean of weights without a starting value is 0.
ZERO = "isotropic:mean=0"
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "red", "old", "mat", "tree"]


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Lists of texts with one score and judgements."""
    rng = np.random.default_rng(5)
    texts = [[" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(6)] for _ in range(12)]
    table = from_lists(texts, [rng.normal(size=(6, 1)) for _ in texts], ["qe"])
    return table.with_extras(judgement=rng.normal(size=72))


def prior_of(lists: NBest, **options: Any) -> Prior:
    settings = {"likelihood": "none", "add": ["consensus", "length"]} | options
    problem = log_density(lists, gain="judgement", **settings)
    return problem.prior._replace(names=problem.source.prepared.lists.feature_names)


def test_added_columns_have_the_shipped_weights_per_spread(lists: NBest) -> None:
    extended = add_features(lists, ["consensus", "length"])
    spread = dict(zip(extended.feature_names, extended.spread, strict=True))
    share = (9 / 10) ** 2  # nine columns are known, and the score is not
    prior = prior_of(lists)
    for name, mean, variance in zip(prior.names, prior.mean, prior.variance, strict=True):
        if name == "qe":
            # Nothing is observed, and higher is better with a probability of 0.95.
            assert mean == pytest.approx(0.9 * 0.5 * np.sqrt(variance))
            continue
        assert mean == pytest.approx(share * FEATURES[name]["mean"] / spread[name])
        assert variance == pytest.approx(CONTENT["variance"] / spread[name] ** 2)


def test_only_columns_of_the_sources_without_settings_are_known(lists: NBest) -> None:
    for source in (Consensus(metric="chrf"), Length(words=False, ratio=True)):
        with_sources = replace(lists, sources=("a b",) * len(lists))
        assert not prior_of(with_sources, add=source, prior=ZERO).mean.any()
    # Columns of that name in the lists themselves may be anything.
    given = add_features(lists, "consensus")
    assert not prior_of(given, add=(), prior=ZERO).mean.any()


def test_they_can_be_switched_off_or_replaced(lists: NBest) -> None:
    switched_off = StartingWeights(pretrained=False)
    assert not prior_of(lists, weights=switched_off, prior=ZERO).mean.any()
    prior = prior_of(
        lists,
        weights=StartingWeights(defaults={"consensus.words": 7.0}),
        prior=Isotropic(variance={"LengthWords": 2.0}),
    )
    named = dict(zip(prior.names, zip(prior.mean, prior.variance, strict=True), strict=True))
    assert named["consensus.words"][0] == 7.0
    assert named["LengthWords"][1] == 2.0
    assert named["consensus.chrf5"][0] > 0
    # A variance of all weights is that of the known ones, too.
    wide = prior_of(lists, prior="isotropic:variance=4.0")
    assert wide.mean.any()
    assert wide.variance.min() > 25 * prior_of(lists).variance.min()
    given = prior_of(lists, prior=Isotropic(single={"consensus.chrf5": 3.0}))
    assert dict(zip(given.names, given.variance, strict=True))["consensus.chrf5"] == 3.0


def test_canonical_weights_leave_the_columns_at_zero(lists: NBest) -> None:
    assert prior_of(lists, weights={"qe": 1.0}).mean.tolist() == [1.0] + [0.0] * 9
    assert prior_of(lists, weights="equal").mean[1:].any()


def test_lists_without_any_judgement_are_reranked_by_them(lists: NBest) -> None:
    texts = lists.without("qe").without("judgement")
    with pytest.warns(UserWarning, match="no sentence was judged"):
        posterior = adapt(texts[:0], None, add=["consensus", "length"])
    assert as_weight_draws(posterior).record.pretrained == tuple(FEATURES)
    weights = point_weights(posterior)
    for name, feature in FEATURES.items():
        error = 6 * np.sqrt(CONTENT["variance"] / 1000) / feature["spread"]
        assert weights[name] == pytest.approx(feature["mean"] / feature["spread"], abs=error)
    extended = add_features(texts, ["consensus", "length"])
    expected = [feature["mean"] / feature["spread"] for feature in FEATURES.values()]
    same = rerank(texts, posterior).choice == extended.best(extended.features @ expected)
    assert same.mean() > 0.9  # draws of the prior are not exactly around its mean

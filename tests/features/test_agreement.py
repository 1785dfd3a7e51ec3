"""The prior mean of weights without a starting value: what the features have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.posteriors import recorded_comparison
from support.raising import capture_notes

from bpa_ppl import NBest, adapt, as_weight_draws, from_lists, log_density, rerank
from bpa_ppl.extending import StartingWeights, choose_prior, observe, prepare
from bpa_ppl.features.matching import measure_agreement

FACTOR = 0.5
NAMES = ("good", "fair", "cost", "noise")


def lists(sentences: int = 40, seed: int = 0) -> NBest:
    """Lists of six candidates whose quality two features measure well, and one with a minus."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(sentences, 6))
    table = np.stack(
        [
            5.0 * (quality + 0.3 * rng.normal(size=quality.shape)),
            quality + rng.normal(size=quality.shape),
            -100.0 * (quality + 0.5 * rng.normal(size=quality.shape)),
            rng.normal(size=quality.shape),
        ],
        axis=2,
    )
    texts = [[f"{s} {e}" for e in range(6)] for s in range(sentences)]
    extras = {"gain": quality.tolist(), "system": [list("abcdef")] * sentences}
    return from_lists(texts, list(table), NAMES, extras=extras)


def prior_means(pool: NBest, weights: Any = None, **options: Any) -> dict[str, float]:
    """Return the prior mean of each weight, in units of τ / spread."""
    target = log_density(pool, weights, **{"gain": "gain", **options})
    means = np.asarray(target.prior.mean) / np.sqrt(target.prior.variance)
    return dict(zip(target.features, np.asarray(means, float).tolist(), strict=True))


def scaled_agreement(pool: NBest, names: Sequence[str]) -> dict[str, float]:
    """Return the prior means that follow from the agreement, in units of τ / spread."""
    return {name: FACTOR * value for name, value in measure_agreement(pool, names)[0].items()}


@pytest.mark.parametrize("wide", [False, True])
def test_it_is_the_correlation_with_the_first_principal_component(wide: bool) -> None:
    pool = lists(4, seed=1)
    if wide:  # more features than candidates
        others = np.random.default_rng(2).normal(size=(24, 60)) + pool.features[:, :1] / 5
        pool = pool.with_features([f"f{k}" for k in range(60)], others)
    names = pool.feature_names
    values = pool.features.astype(float).reshape(4, 6, -1)
    values = (values - values.mean(axis=1, keepdims=True)).reshape(24, -1)
    values /= values.std(axis=0)
    first = np.linalg.svd(values, full_matrices=False).U[:, 0]
    expected = np.corrcoef(values.T, first)[-1, :-1]
    expected *= np.sign(expected.sum())
    by_name = dict(zip(names, expected.tolist(), strict=True))
    agreement, probability = measure_agreement(pool, names)
    assert agreement == pytest.approx(by_name, abs=1e-10)
    share = expected.sum() / np.abs(expected).sum()
    assert probability == pytest.approx((1 + 0.9 * share) / 2)
    # Neither the units nor a constant of each list matter.
    moved = pool.features * np.float64(3.0) + np.repeat(np.arange(4.0), 6)[:, None]
    moved = pool.without(*names).with_features(names, moved)
    assert measure_agreement(moved, names)[0] == pytest.approx(by_name, abs=1e-6)


def test_it_has_the_sign_of_most_features_or_the_given_one() -> None:
    pool = lists()
    agreement, probability = measure_agreement(pool, NAMES)
    assert 0.5 < probability < 0.8
    assert min(agreement["good"], agreement["fair"], -agreement["cost"]) > 0.6
    assert abs(agreement["noise"]) < 0.3
    turned, probability = measure_agreement(pool, NAMES, ["good", "fair"])
    assert probability == 1
    assert turned == pytest.approx({name: -value for name, value in agreement.items()})


@pytest.mark.slow
def test_the_prior_mean_of_weights_without_a_starting_value_follows_it() -> None:
    pool = lists()
    agreement = scaled_agreement(pool, NAMES)
    with capture_notes() as notes:
        assert prior_means(pool) == pytest.approx(agreement, abs=1e-3)
    assert "× its correlation with what the features have in common (good " in notes[-1].message
    for options in ({"prior": "isotropic:scale=0.2"}, {"likelihood": "risk"}, {"gain": "-cost"}):
        kept = [name for name in NAMES if name != "cost" or "gain" not in options]
        expected = scaled_agreement(pool, kept)
        assert prior_means(pool, **options) == pytest.approx(expected, abs=1e-3)
    assert not any(prior_means(pool, prior="isotropic:mean=0").values())
    costs = StartingWeights(lower_is_better=["good", "fair"])
    opposite = {name: -value for name, value in agreement.items()}
    assert prior_means(pool, costs) == pytest.approx(opposite, abs=1e-3)
    assert prior_means(pool, "none:lower_is_better=good,fair") == pytest.approx(opposite, abs=1e-3)


@pytest.mark.parametrize(
    "prior", ["isotropic", pytest.param("isotropic:scale=0.2", marks=pytest.mark.slow)]
)
def test_where_features_disagree_the_lists_decide_on_the_sign(prior: str) -> None:
    pool = lists()
    pair = pool.without("fair", "noise").with_extras(
        gain=pool.extras["gain"], loss=-np.asarray(pool.extras["gain"])
    )
    agreement, probability = measure_agreement(pair, ["good", "cost"])
    assert (agreement["cost"], probability) == (pytest.approx(-agreement["good"]), 0.5)
    for gain, sign in (("gain", 1.0), ("loss", -1.0)):
        expected = {"good": sign * FACTOR * agreement["good"]}
        expected["cost"] = -expected["good"]
        means = prior_means(pair, gain=gain, prior=prior)
        assert means == pytest.approx(expected, abs=1e-3)
    prepared = prepare(pair, None, gain="loss", prior=prior)
    chosen = choose_prior(observe(prepared), prepared)
    assert chosen.record.settings["mean"] == -FACTOR
    # One that is given has no other sign, and without observations both signs are as probable.
    asked = prior_means(pair, gain="loss", prior="isotropic:mean=0.5,scale=0.2")
    assert asked == pytest.approx({n: FACTOR * v for n, v in agreement.items()}, abs=1e-3)
    assert not any(prior_means(pair, likelihood="none", prior=prior).values())


def test_the_prior_mean_of_other_weights_is_their_starting_value() -> None:
    pool = lists()
    means = prior_means(pool, {"good": 1.0}, exclude=["fair", "cost", "noise"])
    assert means == pytest.approx({"good": 1 / np.sqrt(0.1)})
    zeros = StartingWeights(defaults={"good": 0.0})
    expected = scaled_agreement(pool, NAMES[1:])
    assert prior_means(pool, zeros) == pytest.approx({"good": 0.0, **expected}, abs=1e-3)
    equal = log_density(pool, "equal", gain="gain")
    np.testing.assert_allclose(equal.prior.mean * pool.spread, 1 / 8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_constants_and_all_weights_with_indicators_have_the_mean_zero() -> None:
    pool = lists()
    constant = np.repeat(np.random.default_rng(0).normal(size=40), 6)[:, None]
    expected = scaled_agreement(pool, NAMES)
    pool = pool.with_features(["constant"], constant)
    assert prior_means(pool) == pytest.approx({**expected, "constant": 0.0}, abs=1e-3)
    with_indicators = prior_means(pool, categorical="system", prior="isotropic:scale=0.3")
    assert len(with_indicators) > len(NAMES) + 1
    assert not any(with_indicators.values())
    asked = prior_means(pool, categorical="system", prior="isotropic:scale=0.3,mean=0.5")
    assert {name: asked[name] for name in NAMES} == pytest.approx(expected, abs=1e-3)
    # These say nothing about the gain, so they are left out.
    left_out = prior_means(pool, categorical="system")
    assert left_out == pytest.approx({**expected, "constant": 0.0}, abs=1e-3)


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_the_mean_of_the_features_has_its_signs_with_indicators_too() -> None:
    pool = lists()
    means = []
    scaled: dict[str, Any] = {"gain": "gain", "sampler": "map", "prior": "isotropic:scale=0.3"}
    for options in ({}, {"categorical": "system"}):
        draws = as_weight_draws(adapt(pool, None, **scaled, **options))
        means.append(recorded_comparison(draws).row("mean of the standardised features"))
    assert means[1].gain == pytest.approx(means[0].gain)
    assert signs_of(means[1]) == [1.0, 1.0, -1.0]


def signs_of(row: Any) -> list[float]:
    """Return the signs of the weights of all features but the noise."""
    return np.sign([row.weights[name] for name in NAMES[:3]]).tolist()


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.parametrize("options", [{"categorical": "system", "gain": "gain"}, {"gain": "chosen"}])
def test_the_mean_of_the_features_knows_for_which_lower_is_better(options: dict[str, Any]) -> None:
    pool = lists() if "categorical" in options else choices_of_two()
    costs = StartingWeights(lower_is_better=["good", "fair"])
    draws = as_weight_draws(
        adapt(pool, costs, prior="isotropic:scale=0.3", sampler="map", **options)
    )
    assert not draws.draws.constants["prior_mean"].any()
    assert signs_of(recorded_comparison(draws).row("mean of the standardised features")) == [
        -1.0,
        -1.0,
        1.0,
    ]


def choices_of_two() -> NBest:
    """Return the first two candidates of each list, of which one is chosen at random."""
    table = lists().features.reshape(40, 6, -1)
    pairs = from_lists([["a", "b"]] * 40, list(table[:, :2]), NAMES)
    sides = np.random.default_rng(3).integers(2, size=40)
    return pairs.with_extras(chosen=np.eye(2)[sides].ravel())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_choices_of_two_and_the_horseshoe_have_the_mean_zero() -> None:
    chosen = choices_of_two()
    for prior in ("isotropic", "isotropic:scale=0.5"):
        draws = as_weight_draws(adapt(chosen, None, gain="chosen", prior=prior, sampler="map"))
        assert not np.any(draws.draws.constants["prior_mean"])
    asked = prior_means(chosen, gain="chosen", prior="isotropic:scale=0.5,mean=0.5")
    assert asked == pytest.approx(dict.fromkeys(NAMES, FACTOR), abs=1e-3)
    assert not log_density(lists(), gain="gain", prior="horseshoe").prior.mean.any()


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_without_judgements_lists_are_chosen_by_what_features_share() -> None:
    pool = lists()
    draws = adapt(pool, None, gain="gain", likelihood="none", sampler="map")
    chosen = rerank(pool, draws).choice
    quality = np.asarray(pool.extras["gain"], float).reshape(40, 6)
    assert quality[np.arange(40), chosen].mean() > 0.8 * quality.max(axis=1).mean()

"""`auto` takes independence proposals where they fit, and says why."""

from __future__ import annotations

from typing import Any

import numpyro
import numpyro.distributions as dist
import pytest
from judged_lists import judged_lists
from raising import raises

from bpa_ppl import DataError, NBest, adapt, check
from bpa_ppl.models import Likelihood, Lists, OracleChoice, Prior
from bpa_ppl.sampling import auto


def _observe_without_effect(lists: Lists, weights: Any) -> None:
    with numpyro.plate("sentence", len(lists.oracle)):
        numpyro.sample("oracle", OracleChoice(lists, weights * 0.0), obs=lists.oracle)


def _modeless(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """A funnel: its density grows without bound towards a scale of zero."""
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    weights = numpyro.sample("weights", dist.Normal(prior.mean, scale).to_event(1))
    _observe_without_effect(lists, weights)


def test_auto_chooses_imh_if_its_proposals_fit(pool: NBest) -> None:
    post = adapt(pool, {"A": 0.1, "B": 0.2}, sampler="auto", seed=1)
    assert post.attrs["chosen"] == "imh"
    assert "Pareto k̂" in post.attrs["chosen_because"]
    assert check(post)


@pytest.mark.parametrize(
    ("failures", "chosen", "count"),
    [(0, "imh", 100), (1, "imh", 100), (2, "imh", 400), (4, "nuts", 1600)],
)
def test_failed_checks_are_followed_by_fitted_proposals_more_draws_and_nuts(
    pool: NBest, monkeypatch: pytest.MonkeyPatch, failures: int, chosen: str, count: int
) -> None:
    found = iter([*[["R-hat"], ["bulk ESS"], ["R-hat"], ["tail ESS"]][:failures], []])
    monkeypatch.setattr(auto, "failures", lambda target, sampled: (next(found), {}))
    post = adapt(pool, {"A": 0.1, "B": 0.2}, sampler="auto", seed=1, draws=100, chains=1)
    assert post.attrs["chosen"] == chosen
    assert ("fitted moments" in post.attrs["chosen_because"]) == (failures > 0)
    assert ("drawn_again_because" in post.attrs) == (failures > 0)
    assert post["posterior"]["weights"].shape[:2] == (1, count)


def _of_systems(likelihood: str) -> tuple[NBest, dict[str, Any]]:
    """Lists whose posterior is far from the Gaussian at its mode, and the options of `adapt`."""
    lists = judged_lists(20, names=(*"abcdef", "eve"))
    gain = lists.features[:, 1]
    lists = lists.without("comet").with_extras(gain=gain)
    return lists, {
        "metric": "gain",
        "likelihood": likelihood,
        "categorical": "system",
        "prior_variance": 4.0,
        "seed": 1,
    }


@pytest.mark.filterwarnings("ignore:all choices")  # the last one is the best by construction
@pytest.mark.parametrize("likelihood", ["risk", pytest.param("margin", marks=pytest.mark.slow)])
def test_proposals_are_fitted_to_a_posterior_far_from_its_laplace_approximation(
    likelihood: str,
) -> None:
    lists, options = _of_systems(likelihood)
    post = adapt(lists, None, **options)
    assert post.attrs["chosen"] == "imh"
    assert "> 0.5 of proposals around the mode" in post.attrs["chosen_because"]
    assert "≤ 0.7 of those with fitted moments" in post.attrs["chosen_because"]
    assert check(post)


@pytest.mark.slow
def test_it_falls_back_to_nuts(pool: NBest) -> None:
    post = adapt(pool, {"A": 0.1, "B": 0.2}, sampler="auto", model=_modeless, draws=50, chains=2)
    assert post.attrs["chosen"] == "nuts"
    assert "n_steps" in post["sample_stats"]


def test_a_missing_mode_is_reported(pool: NBest) -> None:
    with raises(DataError, parameter="sampler"):
        adapt(pool, {"A": 0.1, "B": 0.2}, sampler="imh", model=_modeless)

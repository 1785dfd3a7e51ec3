"""The defaults of `adapt`: the likelihood that suits the gain, and presets."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from support.extras import require_extras
from support.judged_lists import judged_lists
from support.posteriors import AdaptationRecord
from support.raising import raises
from support.registries import PRIORS, SAMPLERS

from bpa_ppl import NBest, UsageError, adapt, as_weight_draws, check, log_density, read_weights
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.adapting.settings import PRESETS, resolve_settings
from bpa_ppl.extending import Settings

pytestmark = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
CANONICAL = {"LM0": 0.5, "TM0[0]": 0.1, "TM0[1]": 0.2}


def made(lists: NBest, weights: Any = CANONICAL, **options: Any) -> Any:
    return as_weight_draws(adapt(lists, weights, **{"sampler": "map", **options}))


@pytest.mark.parametrize("options", [{}, {"categorical": "system"}], ids=str)
def test_any_other_gain_has_pairs_weighted_by_differences(options: dict[str, Any]) -> None:
    lists = judged_lists(20)
    options = {"weights": {"logprob": 0.1}, "prior": "isotropic:variance=0.1", **options}
    options["gain"] = "comet"
    unit = lists.spread[lists.feature_names.index("comet")]
    pairs = {"name": "pairs", "exponent": 0.25, "power": 0.75}
    pairs["unit"] = pytest.approx(unit, rel=0.005)
    expected = {
        "auto": pairs,
        "heuristic": {"name": "oracle"},
    }
    for sampler, likelihood in expected.items():
        target = log_density(lists, sampler=sampler, **options)
        record = AdaptationRecord.of(require_adaptation(target).record(target))
        assert record.likelihood.plain == likelihood


@pytest.mark.slow
def test_presets_are_their_samplers_and_settings(toy: NBest) -> None:
    preset = as_weight_draws(
        adapt(toy, CANONICAL, preset="published", sampler="rwm-isotropic:draws=50")
    )
    by_name = made(toy, sampler="rwm-isotropic:draws=50")
    np.testing.assert_array_equal(preset.weights, by_name.weights)
    assert by_name.adaptation.likelihood.name == "oracle"
    assert preset.record.sampler.settings["proposal_variance"] == 0.01
    explicit = made(toy, preset="published", likelihood="margin")
    assert (explicit.record.sampler.name, explicit.adaptation.likelihood.name) == ("map", "margin")
    heuristic = as_weight_draws(adapt(toy, CANONICAL, preset="published-2010"))
    options = {"likelihood": "oracle", "prior": "isotropic:variance=1.0"}
    named = made(toy, sampler="heuristic:draws=100,delta=8", **options)
    np.testing.assert_array_equal(heuristic.draws.log_weight, named.draws.log_weight)
    assert heuristic.record.sampler.settings == {"draws": 100, "delta": 8.0}
    require_extras()
    with raises(UsageError, "missing-setting", parameter="sampler", match="weight-trace:lists="):
        adapt(toy, CANONICAL, preset="published-sspr")


def test_what_is_named_has_precedence_over_a_preset(toy: NBest) -> None:
    prior = "isotropic:variance=0.3"
    mine = made(toy, sampler="heuristic:draws=50,delta=2", preset="published-2010", prior=prior)
    assert mine.record.sampler.settings == {"draws": 50, "delta": 2.0}
    assert mine.adaptation.likelihood.name == "oracle"
    assert mine.draws.constants["prior_variance"].tolist() == [0.3] * len(CANONICAL)
    # The settings of a preset are those of its sampler and of its prior.
    settings: Settings = {"preset": "published-2010", "sampler": "map", "prior": "horseshoe"}
    assert resolve_settings(**settings).sampler == SAMPLERS.resolve("map")
    assert resolve_settings(**settings).prior == PRIORS.resolve("horseshoe")
    # Answers alone are observed by default.
    assert resolve_settings(answered=True).given == {"likelihood": "preference"}
    assert resolve_settings(answered=True, **settings).given == settings


@pytest.mark.slow
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_preset_fails_its_check_for_a_reason_with_one_remedy(preset: str, leaflet: NBest) -> None:
    lists = leaflet[:60].truncate(20)
    canonical = read_weights(files("bpa_ppl.demo_data") / "moses.ini")
    options = {}
    if preset == "published-sspr":
        require_extras()
        options["sampler"] = SAMPLERS["weight-trace"](lists=lists)
    report = check(adapt(lists, canonical, preset=preset, **options))
    assert not report
    (remedy,) = {finding.advice.rpartition(": ")[2] for finding in report.failures}
    assert ("use rwm" if preset == "published" else "use a Markov-chain sampler") in remedy
    assert str(report).count("\n- ") == 1

"""Every sampler is a component of one shape, and adapt refuses settings that it does not have."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import reference_model

from bpa_ppl import UsageError, adapt
from bpa_ppl.registry import SAMPLERS
from bpa_ppl.sampling import Sampled, Sampler, Target

#: Settings that are not numbers: what is sampled from, not how.
LISTS = ("visited",)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_has_settings_and_sample(name: str) -> None:
    sampler = SAMPLERS.resolve(name)
    assert isinstance(sampler, Sampler)
    assert sampler == SAMPLERS[name]()
    assert hash(sampler) == hash(SAMPLERS[name]())
    assert SAMPLERS.name_of(sampler) == name
    signature = inspect.signature(type(sampler).sample, eval_str=True)
    assert list(signature.parameters) == ["self", "target"]
    assert signature.parameters["target"].annotation is Target
    assert signature.return_annotation is Sampled


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_number_of_the_settings_must_be_positive(name: str) -> None:
    for field in set(SAMPLERS.resolve(name).__struct_fields__).difference(LISTS):
        with pytest.raises(UsageError, match=f"{field} must be"):
            SAMPLERS.resolve(name, {field: -1})


def test_the_published_walk_has_the_published_settings() -> None:
    settings: Any = SAMPLERS.resolve("rwm-isotropic")
    assert settings.proposal_variance == 0.01
    assert (settings.warmup, settings.draws) == (500, 1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sampler": "gibbs"}, "unknown sampler 'gibbs': choose one of"),
        ({"sampler": "nuts", "step": 1}, "has no setting step: it has .*draws"),
        ({"sampler": "map", "draws": 10}, "has no setting draws: it has none"),
        ({"sampler": "nuts", "draws": 0}, "draws must be an integer ≥ 1, not 0"),
        ({"sampler": "nuts", "chains": float("nan")}, "chains must be"),
        ({"sampler": "nuts", "target_accept": 5.0}, "target_accept must be a number > 0 and"),
        ({"sampler": "map", "prior_variance": 0.0}, "prior variance must be positive"),
        ({"sampler": "map", "likelihood": "hinge"}, "unknown likelihood 'hinge': choose one of"),
        ({"sampler": "map", "prior": "flat"}, "unknown prior 'flat': choose one of"),
        ({"sampler": "weight-trace"}, "needs the lists that the canonical weights were tuned on"),
    ],
)
def test_invalid_settings_are_refused(arguments: dict[str, Any], message: str) -> None:
    pool = reference_model.pairs([[1.0]], ["LM0"])
    with pytest.raises(UsageError, match=message):
        adapt(pool, {"LM0": 0.5}, oracle=reference_model.given(0), **arguments)

"""Every sampler has the same two exports, and adapt refuses settings that it does not have."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import plain
import pytest

from bpa_ppl import UsageError, adapt
from bpa_ppl.sampling import SAMPLERS
from bpa_ppl.sampling.draws import Draws, Problem
from bpa_ppl.sampling.registry import configure, load


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_has_settings_and_sample(name: str) -> None:
    module = load(name)
    settings = configure(name, {})
    assert isinstance(settings, module.Settings)
    assert is_dataclass(settings)
    # Only a frozen dataclass that compares by its values has a hash.
    assert hash(settings) == hash(module.Settings())
    signature = inspect.signature(module.sample, eval_str=True)
    annotations = [parameter.annotation for parameter in signature.parameters.values()]
    assert list(signature.parameters) == ["problem", "settings"]
    assert annotations == [Problem, module.Settings]
    assert signature.return_annotation is Draws


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_number_of_the_settings_must_be_positive(name: str) -> None:
    for field in fields(load(name).Settings):
        with pytest.raises(UsageError, match=f"{field.name} must be"):
            configure(name, {field.name: -1})


def test_the_published_walk_has_the_published_settings() -> None:
    settings = load("rwm-isotropic").Settings()
    assert settings.proposal_variance == 0.01
    assert (settings.warmup, settings.draws) == (500, 1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sampler": "gibbs"}, "unknown sampler 'gibbs': choose one of"),
        ({"sampler": "nuts", "step": 1}, "has no setting step: it has .*draws"),
        ({"sampler": "map", "draws": 10}, "has no setting draws: it has none"),
        ({"sampler": "nuts", "draws": 0}, "draws must be a whole number from 1 on, not 0"),
        ({"sampler": "nuts", "chains": float("nan")}, "chains must be"),
        ({"sampler": "map", "prior_variance": 0.0}, "prior variance must be positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    pool = plain.pairs([[1.0]], ["LM0"])
    with pytest.raises(UsageError, match=message):
        adapt(pool, {"LM0": 0.5}, oracle=plain.given(0), **arguments)

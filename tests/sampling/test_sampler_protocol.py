"""Every sampler is a component of one shape, and adapt refuses settings that it does not have."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from support import reference_model
from support.raising import raises

from bpa_ppl import Isotropic, UsageError, adapt
from bpa_ppl.sampling.arguments import Arguments
from bpa_ppl.sampling.nuts import Nuts
from bpa_ppl.sampling.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.target import Sampled, Target

#: Settings that are not numbers: what is sampled from, not how.
LISTS = ("visited", "options")


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_has_settings_and_sample(name: str) -> None:
    sampler = SAMPLERS.resolve(name)
    assert isinstance(sampler, Sampler)
    assert sampler == SAMPLERS[name]()
    assert hash(sampler) == hash(SAMPLERS[name]())
    assert SAMPLERS.name_of(sampler).partition(":")[0] == name
    assert SAMPLERS.resolve(SAMPLERS.name_of(sampler)) == sampler
    signature = inspect.signature(type(sampler).sample, eval_str=True)
    assert list(signature.parameters) == ["self", "target"]
    assert signature.parameters["target"].annotation is Target
    assert signature.return_annotation is Sampled


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_number_of_the_settings_must_be_positive(name: str) -> None:
    for field in set(SAMPLERS.resolve(name).__struct_fields__).difference(LISTS):
        with raises(UsageError, "invalid-setting", parameter=field):
            SAMPLERS.resolve(name, {field: -1})


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({"sampler": "gibbs"}, "unknown-name", "sampler"),
        ({"sampler": "map", "draws": 10}, "unknown-setting", "draws"),
        ({"sampler": "nuts", "chains": float("nan")}, "invalid-setting", "chains"),
        ({"sampler": "nuts:target_accept=5"}, "invalid-setting", "target_accept"),
        ({"sampler": "nuts:draws=500", "draws": 200}, "conflict", "draws"),
        ({"sampler": Nuts(chains=2), "chains": 3}, "conflict", "chains"),
        ({"sampler": "imh", "draws": 10.5}, "invalid-setting", "draws"),
        ({"sampler": "map", "prior": "isotropic:variance=0.0"}, "bad-number", "variance"),
        ({"sampler": "map", "prior": Isotropic(variance=[0.1, 0.2])}, "wrong-length", "variance"),
        ({"sampler": "map", "likelihood": "hinge"}, "unknown-name", "likelihood"),
        ({"sampler": "map", "prior": "flat"}, "unknown-name", "prior"),
        ({"sampler": "map", "preset": "printed"}, "unknown-name", "preset"),
    ],
)
def test_invalid_settings_are_refused(arguments: dict[str, Any], code: str, parameter: str) -> None:
    pool = reference_model.pairs([[1.0]], ["LM0"])
    with raises(UsageError, code, parameter=parameter):
        adapt(pool, {"LM0": 0.5}, gain=reference_model.given(0), **arguments)


def test_draws_and_chains_are_those_of_the_sampler() -> None:
    for sampler in ("nuts:warmup=50", Nuts(warmup=50), Nuts(warmup=50, draws=20)):
        chosen = Arguments(sampler=sampler, draws=20, chains=np.int64(2)).resolve_sampler()
        assert chosen == Nuts(warmup=50, draws=20, chains=2)

"""The posterior of old lists as the prior of new ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support import reference_model

from bpa_ppl import BpaWarning, Draws, Prior, adapt, as_weight_draws

NAMES = ["LM0", "TM0"]
PAIRS = reference_model.pairs(np.random.default_rng(2).normal(size=(6, 2)), NAMES)
LISTS = PAIRS.with_extras(quality=[1.0, 0.0] * 6)


def posterior_of(kappa: float, prior: Prior | str = "isotropic:variance=4") -> Draws:
    options = {"likelihood": f"risk:kappa={kappa}", "gain": "quality", "sampler": "imh:draws=500"}
    return as_weight_draws(adapt(LISTS, dict.fromkeys(NAMES, 0.2), prior=prior, **options))


def test_other_settings_of_the_likelihood_are_warned_about() -> None:
    prior = Prior.of(posterior_of(1.5))
    with pytest.warns(BpaWarning, match=r"kappa=2.0.*kappa=1.5"):
        posterior_of(2.0, prior)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BpaWarning)
        posterior_of(1.5, prior)

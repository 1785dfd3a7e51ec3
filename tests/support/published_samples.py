"""Lists, weights and updates for the tests of the published samples of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import NBest, Prior, adapt, from_lists, write_posterior
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.posterior.arviz_data import as_weight_draws
from bpa_ppl.posterior.files import read_weight_draws
from bpa_ppl.samplers.sampler import SAMPLERS
from support import reference_model
from support.targets import NAMES, SENTENCES

ORACLE = (2, 0, 1)
CANONICAL = {"LM0": 0.7, "WP0": -0.3}


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(12)
    sizes = (4, 2, 3)
    texts = [[str(i) for i in range(n)] for n in sizes]
    return from_lists(texts, [rng.normal(size=(n, 2)) for n in sizes], NAMES)


def log_weights(lists: NBest, sample: Any, variance: float, delta: float) -> np.ndarray:
    """Return log p(e* | f, λ) / δ + log p(λ) of a sample, less that of its first weights."""
    result = [
        reference_model.log_likelihood(lists, ORACLE, weights).sum() / delta
        + reference_model.log_prior(weights, list(CANONICAL.values()), variance)
        for weights in sample
    ]
    return np.subtract(result, result[0])


def check_further_lists(sampler: str, folder: Path, *, tuned: bool = False) -> None:
    """The sample is kept, so an update is exact, however few draws carry the weight."""
    differences = np.random.default_rng(4).normal(size=(3 * SENTENCES, 2)) * [40.0, 20.0]
    lists = reference_model.pairs(differences, NAMES)
    weights = dict.fromkeys(lists.feature_names, 0.2)
    lists = lists.with_references([lists.texts(s)[0] for s in range(len(lists))])
    chosen = SAMPLERS.resolve(sampler, {"lists": lists} if tuned else None)

    def adapted(*parts: int, **options: Any) -> Any:
        some = lists[parts[0] * SENTENCES : (parts[-1] + 1) * SENTENCES]
        options["gain"] = reference_model.given(*[0] * len(some))
        return adapt(some, weights, sampler=chosen, likelihood="oracle", **options)

    write_posterior(adapted(0), folder / "first.nc")
    first = read_weight_draws(folder / "first.nc")
    with capture_notes() as notes:
        second = adapted(1, prior=Prior.of(first, unchecked=True))
        third = as_weight_draws(adapted(2, prior=Prior.of(second, unchecked=True), seed=5))
    assert not [note.message for note in notes if "Gaussian" in note.message]
    whole = as_weight_draws(adapted(0, 1, 2))
    np.testing.assert_array_equal(third.weights, whole.weights)
    for name in ("log_weight", "log_density"):
        ours, expected = getattr(third.draws, name), getattr(whole.draws, name)
        np.testing.assert_allclose(ours - ours[0, 0], expected - expected[0, 0], atol=1e-9)
    np.testing.assert_allclose(third.importance, whole.importance, atol=1e-12)
    assert third.record.figures.earlier_lists == 2 * SENTENCES
    for name in ("prior_mean", "prior_variance"):
        np.testing.assert_array_equal(third.draws.constants[name], whole.draws.constants[name])

"""On real lists, where nobody knows the answer, each sampler agrees with a long reference run."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from bpa_ppl import NBest, adapt, read_nbest, read_weights
from bpa_ppl.posterior import import_arviz
from bpa_ppl.posterior.draws import importance_weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

pytestmark = pytest.mark.slow  # posteriors by quadrature are held in test_known_answers

SENTENCES = 20
DATA = files("bpa_ppl.demo_data")


class Moments(NamedTuple):
    """Estimates of the first two moments of each weight, (2, features), and their errors."""

    values: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]


@cache
def _pool() -> NBest:
    lists = read_nbest(str(DATA / "leaflet.nbest100.gz"), references=str(DATA / "leaflet.ref"))
    return lists.select(np.random.default_rng(0).permutation(len(lists))[:SENTENCES])


def _posterior(sampler: str, **settings: float) -> InferenceData:
    canonical = read_weights(str(DATA / "moses.ini"))
    return adapt(_pool(), canonical, sampler=sampler, seed=3, **settings)


def _of_chains(posterior: InferenceData) -> Moments:
    weights = posterior["posterior"]["weights"].values
    powers = np.stack([weights, (weights - _centre()) ** 2])
    ess = import_arviz().ess
    effective = np.array([[ess(p[..., q], method="mean") for q in range(14)] for p in powers])
    assert effective.min() > 200, "too few effective draws to tell"
    return Moments(powers.mean((1, 2)), powers.std((1, 2)) / np.sqrt(effective))


def _of_weighted(posterior: InferenceData) -> Moments:
    weights = posterior["posterior"]["weights"].values[0]
    powers = np.stack([weights, (weights - _centre()) ** 2])
    share = importance_weights(posterior["sample_stats"]["log_weight"].values.reshape(-1))
    assert 1 / np.sum(share**2) > 200, "too few effective draws to tell"
    values = np.einsum("d,kdq->kq", share, powers)
    errors = np.sqrt(np.einsum("d,kdq->kq", share**2, (powers - values[:, None]) ** 2))
    return Moments(values, errors)


@cache
def _reference_run() -> InferenceData:
    return _posterior("nuts", draws=4000, warmup=500, target_accept=0.9)


@cache
def _centre() -> npt.NDArray[np.float64]:
    return np.asarray(_reference_run()["posterior"]["weights"].values.mean((0, 1)))


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        *[(name, {}) for name in ("imh", "laplace", "nuts")],
        ("rwm", {"draws": 2000}),
        ("rwm-isotropic", {"proposal_variance": 0.002, "draws": 60_000}),
    ],
)
def test_moments_agree_with_a_long_run(sampler: str, settings: dict[str, float]) -> None:
    reference = _of_chains(_reference_run())
    found = _posterior(sampler, **settings)
    ours = (_of_weighted if sampler == "laplace" else _of_chains)(found)
    apart = np.abs(ours.values - reference.values)
    assert np.all(apart < 5 * np.hypot(ours.errors, reference.errors))

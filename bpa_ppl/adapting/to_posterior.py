"""Record how draws of weights were made, also those of an algorithm of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, to_floats
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.densities.target import NUMPYRO_LOCK, Sampled, Target, evaluate, unflatten
from bpa_ppl.errors import bad_value, wrong_shape
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.record import Figures, SamplerRecord
from bpa_ppl.posterior.statistics import smooth_log_weights
from bpa_ppl.sampling.finish import finish
from bpa_ppl.sampling.run_sampler import SamplerRun

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


def to_posterior(
    density: Target,
    z: npt.ArrayLike,
    *,
    sampler: str = "unknown sampler",
    warmup: npt.ArrayLike | None = None,
    log_weight: npt.ArrayLike | None = None,
    statistics: Mapping[str, npt.ArrayLike] | None = None,
) -> InferenceData:
    """Return draws of any algorithm as the posterior that `adapt` would return.

    `check`, `report`, `compare` and `rerank` accept it.

    Args:
        density: the result of `log_density`.
        z: (chains, draws, d) unconstrained values.
        sampler: a name for the sampler, which the posterior records.
        warmup: (chains, draws, d) the values of the warm-up, to keep them.
        log_weight: (chains, draws) log p(z, data) − log q(z) of proposals from q, up to a
            constant. The importance weights are Pareto-smoothed, and k̂ is recorded.
        statistics: arrays (chains, draws) by ArviZ's names. `n_steps` is the number of
            evaluations of the density for each draw; without it, this number is unknown.

    Raises:
        DataError: if shapes do not fit together, or a value is not finite.
        UsageError: if the density was not made by `log_density`.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> density = log_density(lists, {"LM0": 0.5})
    >>> z = np.random.default_rng(0).normal(0.5, 0.3, (4, 100, 1))
    >>> posterior = to_posterior(density, z, sampler="mine")
    >>> posterior["posterior"]["weights"].shape, posterior.attrs["sampler"]
    ((4, 100, 1), 'mine')
    """
    adaptation = require_adaptation(density)
    values = _to_draws(density, "z", z)
    shape, weights, k_hat = values.shape[:2], None, None
    if log_weight is not None:
        weights, k_hat = smooth_log_weights(_to_column("log_weight", log_weight, shape))
    arrays = {n: _to_column(n, v, shape) for n, v in (statistics or {}).items()}
    sites = unflatten(values, density.start)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        log_density, log_likelihood = evaluate(density, sites)
    sampled = Sampled(
        z=sites,
        kind="chains" if weights is None else "weighted",
        log_density=log_density,
        log_weight=weights,
        statistics=arrays,
        warmup=(
            {} if warmup is None else unflatten(_to_draws(density, "warmup", warmup), density.start)
        ),
        log_likelihood=log_likelihood,
        figures=Figures(pareto_k=k_hat),
    )
    of_sampler = SamplerRecord(name=str(sampler))
    seed = adaptation.prepared.settings.seed
    return to_arviz(finish(SamplerRun(density, sampled, of_sampler, seed)).draws)


def _to_draws(density: Target, name: str, z: npt.ArrayLike) -> Float64:
    """Return draws as finite numbers, (chains, draws, d)."""
    values = to_floats(z, name)
    if values.ndim != 3 or values.shape[2] != density.dimension or not values.size:
        shape = f"(chains, draws, {density.dimension})"
        raise wrong_shape(name, values.shape, shape, parameter=name, code="mismatch")
    if not np.isfinite(values).all():
        value, remedy = float(values[~np.isfinite(values)][0]), "leave out the draws that diverged"
        raise bad_value(
            f"a value of {name}", value, "a finite number", remedy=remedy, parameter=name
        )
    return values


def _to_column(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of one value per draw, (chains, draws), in its own type."""
    if to_floats(values, name).shape != shape:
        expected, actual = f"{shape}, (chains, draws)", np.shape(values)
        raise wrong_shape(name, actual, expected, parameter=name, code="mismatch")
    return np.asarray(values)

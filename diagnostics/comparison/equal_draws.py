"""Weighted draws as draws of equal weight, for statistics that know no weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.nbest import Int64
from bpa_ppl.posterior import import_arviz, normalised_weights, statistic

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import Dataset

#: Groups of one value a draw.
_DRAWN = ("posterior", "log_likelihood", "sample_stats")


def equal_draws(posterior: InferenceData, seed: int = 0) -> InferenceData:
    """Return a posterior whose draws have equal weight: itself, or resampled by its weights.

    Systematic resampling: a draw of weight w comes ⌊Dw⌋ or ⌈Dw⌉ times among D draws.

    Args:
        posterior: any; weighted if it has a statistic `log_weight`.
        seed: of the resampling.
    """
    log_weight = statistic(posterior, "log_weight")
    if log_weight is None:
        return posterior
    share = np.cumsum(normalised_weights(log_weight.reshape(-1)))
    count = len(share)
    marks = (np.arange(count) + np.random.default_rng(seed).uniform()) / count
    chosen = np.searchsorted(share, marks).clip(max=count - 1)
    chain, draw = np.divmod(chosen, log_weight.shape[1])
    groups = {
        name: _taken(posterior[name], chain, draw) if name in _DRAWN else posterior[name]
        for name in posterior.groups()
        if name != "warmup_posterior"
    }
    groups["sample_stats"] = groups["sample_stats"].drop_vars("log_weight")
    return import_arviz().InferenceData(attrs=dict(posterior.attrs), **groups)


def _taken(group: Dataset, chain: Int64, draw: Int64) -> Dataset:
    """Return some draws of a group, as one chain."""
    from xarray import DataArray

    at = {"chain": DataArray(chain, dims="draw"), "draw": DataArray(draw, dims="draw")}
    picked = group.isel(at).drop_vars(("chain", "draw"), errors="ignore")
    return picked.expand_dims(chain=[0]).assign_coords(draw=np.arange(len(draw)))

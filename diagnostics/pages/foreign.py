"""Posteriors written by others: draws of `weights` of any shape, laid out as ours are."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.posterior import feature_names, import_arviz

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import DataArray


def with_features(posterior: InferenceData) -> InferenceData:
    """Return a posterior whose `weights` are (chain, draw, feature) and finite.

    A single weight becomes one feature, and a table of weights as many as it has cells, named by
    their coordinates. A posterior that is laid out so already is returned as it is.

    Raises:
        DataError: if there are no draws of `weights`, or a draw is not a finite number.

    >>> data = import_arviz().from_dict(posterior={"weights": np.zeros((2, 10))})
    >>> with_features(data)["posterior"]["weights"].sizes
    Frozen({'chain': 2, 'draw': 10, 'feature': 1})
    """
    if "posterior" not in posterior or "weights" not in posterior["posterior"]:
        raise DataError("the posterior holds no draws of a variable called weights")
    weights = posterior["posterior"]["weights"]
    if not {"chain", "draw"} <= set(weights.dims):
        raise DataError(
            f"weights has the dimensions {', '.join(map(str, weights.dims))}: it needs chain and "
            "draw, as ArviZ writes them"
        )
    if weights.size == 0:
        raise DataError("weights has no draws: its shape is " + " × ".join(map(str, weights.shape)))
    laid_out = posterior
    if weights.dims[:2] != ("chain", "draw") or weights.ndim != 3:
        laid_out = _replaced(posterior, _flattened(weights))
    _check_finite(laid_out)
    return laid_out


def _flattened(weights: DataArray) -> DataArray:
    """Return the draws as (chain, draw, feature), the cells of further dimensions in a row."""
    rest = [str(dim) for dim in weights.dims if dim not in ("chain", "draw")]
    ordered = weights.transpose("chain", "draw", *rest)
    cells = product(*(ordered[dim].values.tolist() for dim in rest))
    names = [", ".join(map(str, cell)) or "weights" for cell in cells]
    return type(weights)(
        ordered.values.reshape(*ordered.shape[:2], -1),
        dims=("chain", "draw", "feature"),
        coords={"chain": ordered["chain"], "draw": ordered["draw"], "feature": names},
        name="weights",
    )


def _replaced(posterior: InferenceData, weights: DataArray) -> InferenceData:
    groups = {"posterior": weights.to_dataset().assign_attrs(posterior["posterior"].attrs)}
    if "sample_stats" in posterior:
        groups["sample_stats"] = posterior["sample_stats"]
    data = import_arviz().InferenceData(**groups)
    data.attrs.update(posterior.attrs)
    return data


def _check_finite(posterior: InferenceData) -> None:
    wrong = ~np.isfinite(posterior["posterior"]["weights"].values)
    if wrong.any():
        chain, draw, feature = np.argwhere(wrong)[0].tolist()
        raise DataError(
            f"the weight of {feature_names(posterior)[feature]} is not a finite number in draw "
            f"{draw} of chain {chain} ({int(wrong.any(axis=2).sum())} draws in all): mend the "
            "sampler that wrote it"
        )

"""The posterior as ArviZ InferenceData: the one place that builds, saves, loads and reads it.

Groups: `posterior`, `prior`, `sample_stats`, `log_likelihood` (one value a sentence),
`observed_data`, `constant_data`, and `warmup_posterior` where a sampler has a warm-up. The
coordinate `feature` carries the names of the free features, `sentence` the ids of the sentences.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import DataError, one_of
from bpa_ppl.formats.streams import atomic_path
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.weights import Weights, match

if TYPE_CHECKING:
    from arviz import InferenceData

POINTS = ("mean", "mode", "draw")
_DIMS = {
    "weights": ["feature"],
    "oracle": ["sentence"],
    "oracle_score": ["sentence"],
    "canonical": ["feature"],
    "prior_variance": ["feature"],
    "mode": ["feature"],
    "held": ["held_feature"],
}


def import_arviz() -> Any:
    """Import ArviZ without its daily notice about the coming major version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
        import arviz
    return arviz


def build(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any],
    attrs: Mapping[str, Any],
) -> InferenceData:
    """Return InferenceData from plain arrays.

    Args:
        groups: group -> variable -> array; draws have leading dimensions (chains, draws).
        coords: names of the features, `feature` and `held_feature`, and ids, `sentence`.
        attrs: settings and versions; what is no string or number is stored as JSON.
    """
    arviz = import_arviz()
    given = {name: dict(group) for name, group in groups.items() if group}
    warmup = given.pop("warmup_posterior", None)
    with warnings.catch_warnings():
        # Few draws of many chains look to it like a mistake in the order of the dimensions.
        warnings.filterwarnings("ignore", "More chains", UserWarning)
        data = arviz.from_dict(
            **given,
            coords=dict(coords),
            dims={name: dims for name, dims in _DIMS.items() if _used(name, given)},
            save_warmup=warmup is not None,
            **({} if warmup is None else {"warmup_posterior": warmup}),
        )
    data.attrs.update({key: _attribute(value) for key, value in attrs.items()})
    return data


def write_posterior(posterior: InferenceData, path: str | Path) -> None:
    """Save a posterior as NetCDF, written beside and renamed.

    Raises:
        DataError: if the file cannot be written.
    """
    with atomic_path(path) as beside:
        posterior.to_netcdf(str(beside), engine="h5netcdf")


def read_posterior(path: str | Path) -> InferenceData:
    """Load a posterior from NetCDF, this library's or another's that has `weights`.

    Raises:
        DataError: if the file cannot be read or holds no draws of `weights`.
    """
    if not Path(path).is_file():
        raise DataError("no such file: give the posterior that `bpa adapt` wrote", path)
    try:
        data = import_arviz().from_netcdf(str(path), engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"not a readable NetCDF posterior ({reason})", path) from error
    if "posterior" not in data or "weights" not in data["posterior"]:
        raise DataError("holds no draws of a variable called weights", path)
    return data


def feature_names(posterior: InferenceData) -> tuple[str, ...]:
    """Return the names of the free features."""
    weights = posterior["posterior"]["weights"]
    return tuple(str(name) for name in weights[weights.dims[-1]].values)


def draws(posterior: InferenceData) -> Float64:
    """Return all draws of the weights, chains one after the other, (chains × draws, features)."""
    values = posterior["posterior"]["weights"].values
    return np.asarray(values.reshape(-1, values.shape[-1]), dtype=np.float64)


def held(posterior: InferenceData) -> Weights:
    """Return the weights that were held at their canonical value."""
    if "constant_data" not in posterior or "held" not in posterior["constant_data"]:
        return Weights({})
    values = posterior["constant_data"]["held"]
    names = values["held_feature"].values
    return Weights(zip(map(str, names), map(float, values.values), strict=True))


def beside(samples: Float64, posterior: InferenceData, nbest: NBest) -> Float64:
    """Lay draws of the free weights and the held weights beside the columns of a table.

    Args:
        samples: (D, free features) in the order of the posterior.
        posterior: which names them.
        nbest: the table, of Q features.

    Returns:
        (D, Q) in the order of the table.

    Raises:
        DataError: if the table has a feature without a weight.
    """
    free = {name: samples[:, k] for k, name in enumerate(feature_names(posterior))}
    known = Weights({**dict.fromkeys(free, 0.0), **held(posterior)}, source="the posterior")
    matched = match(known, nbest, fixed=())
    columns = [
        free.get(name, np.full(len(samples), value))
        for name, value in zip(matched.names, matched.values, strict=True)
    ]
    return np.column_stack(columns)


def statistic(posterior: InferenceData, name: str) -> np.ndarray | None:
    """Return a sampler's statistic, (chains, draws), or None where it is not recorded."""
    if "sample_stats" not in posterior or name not in posterior["sample_stats"]:
        return None
    return np.asarray(posterior["sample_stats"][name].values)


def normalised_weights(log_weight: np.ndarray) -> Float64:
    """Return importance weights that sum to one, from their logarithms."""
    shifted = np.exp(np.asarray(log_weight, np.float64) - np.max(log_weight))
    return shifted / shifted.sum()


def pareto_smoothed(log_ratio: np.ndarray) -> tuple[Float64, float]:
    """Return Pareto-smoothed log weights, in the same shape, and k̂ (Vehtari et al. 2024)."""
    flat = np.asarray(log_ratio, np.float64).reshape(-1)
    finite = np.where(np.isfinite(flat), flat, -np.inf)
    smoothed, k_hat = import_arviz().psislw(finite)
    return np.asarray(smoothed).reshape(np.shape(log_ratio)), float(k_hat)


def point_weights(posterior: InferenceData, point: str = "mean", draw: int = 0) -> Weights:
    """Return one vector of weights to stand for the posterior, held weights included.

    Args:
        posterior: the draws.
        point: `mean`, `mode`, or `draw`.
        draw: which draw, counted over all chains one after the other.

    Raises:
        DataError: if the posterior has no such draw, or no mode.
        UsageError: if there is no such point.
    """
    one_of(point, POINTS, "point")
    values = {"mean": _mean, "mode": _mode, "draw": lambda p: _draw(p, draw)}[point](posterior)
    free = dict(zip(feature_names(posterior), values.tolist(), strict=True))
    return Weights({**free, **held(posterior)}, source=f"the posterior {point}")


def _mean(posterior: InferenceData) -> Float64:
    log_weight = statistic(posterior, "log_weight")
    weight = None if log_weight is None else normalised_weights(log_weight.reshape(-1))
    return np.average(draws(posterior), axis=0, weights=weight)


def _mode(posterior: InferenceData) -> Float64:
    if "constant_data" not in posterior or "mode" not in posterior["constant_data"]:
        raise DataError(
            "this posterior does not hold its mode: use a sampler that finds it (map, nuts), "
            "or ask for the mean"
        )
    return np.asarray(posterior["constant_data"]["mode"].values, dtype=np.float64)


def _draw(posterior: InferenceData, draw: int) -> Float64:
    all_draws = draws(posterior)
    if not 0 <= draw < len(all_draws):
        raise DataError(f"there is no draw {draw}: the posterior has 0 to {len(all_draws) - 1}")
    return all_draws[draw]


def _used(name: str, groups: Mapping[str, Mapping[str, Any]]) -> bool:
    return any(name in group for group in groups.values())


def _attribute(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else json.dumps(value)

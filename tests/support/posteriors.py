"""Draws and InferenceData as other programs write it, and the names of posteriors in tests."""

# ruff: noqa: F401

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xarray
from msgspec import structs
from scipy.signal import lfilter

from bpa_ppl import Draws, WeightDraws, Weights, as_weight_draws
from bpa_ppl.adaptation_record import (
    AdaptationRecord,
    ComponentRecord,
    FeatureScale,
    GainColumn,
    ObservedRecord,
    PriorRecord,
    RecipeRecord,
    SourceRecord,
)
from bpa_ppl.diagnostics.check.report import check_and_record
from bpa_ppl.evaluation.compare_ways import BaselineComparison, read_comparison
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.arviz_functions import (
    InferenceData,
    arviz_version,
    import_arviz,
    to_arviz_data,
    to_datasets,
)
from bpa_ppl.posterior.draws import name_array
from bpa_ppl.posterior.groups import label_groups
from bpa_ppl.posterior.record import Figures, Finding, FromPrior, Record, SamplerRecord
from bpa_ppl.weight_draws import name_weights, read_weight_draws

NAMES = ("LM0", "TM0", "WP0")
CHAINS, DRAWS, SENTENCES = 2, 60, 5


def inference_data(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> InferenceData:
    """Return arrays by group and name as ArviZ's data."""
    return to_arviz_data(to_datasets(label_groups(groups, coords, dims)), {})


def dataset_of(data: InferenceData, group: str) -> xarray.Dataset:
    """Return a group of ArviZ's data as a dataset, in any version."""
    node = data[group]
    dataset: xarray.Dataset = node.to_dataset() if isinstance(node, xarray.DataTree) else node
    return dataset


def external_posterior(
    weights: npt.ArrayLike,
    names: Sequence[str],
    *,
    sites: Mapping[str, npt.ArrayLike] | None = None,
    **stats: npt.ArrayLike,
) -> InferenceData:
    """Return a posterior of another program.

    Args:
        weights: draws (chains, draws, features).
        names: the names of the features.
        sites: draws of other sites (chains, draws, …).
        stats: sampler statistics (chains, draws).
    """
    groups = {"posterior": {"weights": weights, **(sites or {})}, "sample_stats": stats}
    return inference_data(
        {
            group: {name: np.asarray(values) for name, values in variables.items()}
            for group, variables in groups.items()
        },
        coords={"feature": list(names)},
        dims={"weights": ["feature"]},
    )


def autoregressive(
    correlation: float, chains: int, draws: int, features: int, seed: int
) -> npt.NDArray[np.float64]:
    """Return stationary AR(1) chains with standard normal draws (chains, draws, features)."""
    return _draw_chains(correlation, chains, draws, features, seed).copy()


@lru_cache(maxsize=100)
def _draw_chains(
    correlation: float, chains: int, draws: int, features: int, seed: int
) -> npt.NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(size=(draws, chains, features))
    scale = np.sqrt(1 - correlation**2)
    rest, _ = lfilter([scale], [1, -correlation], noise[1:], axis=0, zi=correlation * noise[:1])
    return np.concatenate([noise[:1], rest]).swapaxes(0, 1)


def draws_of_all_kinds(**changes: Any) -> WeightDraws:
    """Return draws with all parts that a posterior may have."""
    rng = np.random.default_rng(3)
    shape = (CHAINS, DRAWS)
    parts: dict[str, Any] = {
        "weights": rng.normal(size=(*shape, 3)),
        "features": NAMES,
        "values": {"scale": rng.gamma(2.0, size=shape)},
        "log_density": rng.normal(size=shape),
        "log_likelihood": {"oracle": rng.normal(size=(*shape, SENTENCES)).astype(np.float32)},
        "statistics": {"acceptance_rate": rng.uniform(0.2, 0.4, size=shape)},
        "warmup": {"weights": rng.normal(size=(CHAINS, 7, 3))},
        "prior": {"weights": rng.normal(size=(1, 20, 3))},
        "sampled": ("weights", "scale"),
        "observed": {"oracle": np.arange(SENTENCES)},
        "constants": {"canonical": np.ones(3), "prior_mean": np.ones(3), "mode": np.zeros(3)},
        "fixed": Weights({"UnknownWordPenalty0": 1.0}),
        "sentence_ids": np.arange(SENTENCES),
        "record": Record(sampler=SamplerRecord(name="imh", settings={"draws": DRAWS}), seed=1),
    }
    return name_weights(**{**parts, **changes})


D = TypeVar("D", Draws, WeightDraws)


def record_of(base: Record | None = None, **fields: Any) -> Record:
    """Return a record with other values of some fields, of its own or of `AdaptationRecord`."""
    own = {name: fields.pop(name) for name in {*fields} & {*Record.__struct_fields__}}
    record = structs.replace(Record() if base is None else base, **own)
    return structs.replace(AdaptationRecord.of(record), **fields).add_to(record)


def with_record(draws: D, **fields: Any) -> D:
    """Return draws whose record has other values of some fields, see `record_of`."""
    record = record_of(draws.record, **fields)
    if isinstance(draws, WeightDraws):
        return with_parts(draws, record=record)
    return replace(draws, record=record)


def with_parts(posterior: Any, coords: Any = None, **parts: Any) -> WeightDraws:
    """Return draws of weights with other parts of their `Draws`, and some other coordinates."""
    draws = as_weight_draws(posterior, finite=False).draws
    return WeightDraws(replace(draws, coords={**draws.coords, **(coords or {})}, **parts))


def with_check(posterior: Draws | WeightDraws) -> Draws:
    """Return draws with the record of their check."""
    draws = posterior.draws if isinstance(posterior, WeightDraws) else posterior
    return check_and_record(draws)[0]


def recorded_comparison(posterior: Any) -> BaselineComparison | None:
    """Return the comparison with simple ways that a posterior records."""
    return read_comparison(as_weight_draws(posterior).adaptation)

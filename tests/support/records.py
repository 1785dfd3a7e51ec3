"""Draws with other parts, and the names of `bpa_ppl.posterior` that several tests need."""

# ruff: noqa: F401

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from msgspec import structs

from bpa_ppl import Draws, WeightDraws, as_weight_draws
from bpa_ppl.posterior.arviz_functions import InferenceData, arviz_version, import_arviz
from bpa_ppl.posterior.draws import name_array
from bpa_ppl.posterior.files import read_weight_draws
from bpa_ppl.posterior.record import (
    ComponentRecord,
    FeatureScale,
    Figures,
    Finding,
    GainColumn,
    ObservedRecord,
    PriorRecord,
    RecipeRecord,
    Record,
    SamplerRecord,
    SourceRecord,
)
from bpa_ppl.posterior.weight_draws import name_weights

D = TypeVar("D", Draws, WeightDraws)


def with_record(draws: D, **fields: Any) -> D:
    """Return draws whose record has other values of some fields."""
    record = structs.replace(draws.record, **fields)
    if isinstance(draws, WeightDraws):
        return with_parts(draws, record=record)
    return replace(draws, record=record)


def with_parts(posterior: Any, coords: Any = None, **parts: Any) -> WeightDraws:
    """Return draws of weights with other parts of their `Draws`, and some other coordinates."""
    draws = as_weight_draws(posterior, finite=False).draws
    return WeightDraws(replace(draws, coords={**draws.coords, **(coords or {})}, **parts))

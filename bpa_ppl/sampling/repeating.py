"""The record of the options of `adapt`, with which a posterior can be made again."""

from __future__ import annotations

import json
from collections.abc import KeysView, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.component import Component
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.base import FEATURES
from bpa_ppl.features.recipe import with_tuples
from bpa_ppl.models.likelihoods.base import LIKELIHOODS
from bpa_ppl.models.priors.base import PRIORS, Prior
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.quality.base import METRICS
from bpa_ppl.registry import Registry
from bpa_ppl.sampling.base import SAMPLERS
from bpa_ppl.sampling.options import AdaptOptions
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.weights import AnyWeights

#: Entries of the record that are not options.
_WEIGHTS, _NO_WEIGHTS, _SETTINGS = "weights", "none", "settings"
#: Options that the draws do not depend on.
_WITHOUT_EFFECT = ("jobs", "progress")
#: The registries of options that may be components.
_REGISTRIES: Mapping[str, Registry[Any]] = {
    "sampler": SAMPLERS,
    "likelihood": LIKELIHOODS,
    "prior": PRIORS,
    "prior_variance": PRIORS,
    "metric": METRICS,
    "add": FEATURES,
}


def record_of(options: AdaptOptions, weights: AnyWeights) -> dict[str, Any]:
    """Return the options of `adapt` that are not at their defaults, and the weights, as plain data.

    What only Python has, such as a function as metric, is None.

    Args:
        options: as they were given.
        weights: the canonical weights, as they were given.

    >>> record_of(AdaptOptions(seed=3, metric=len), {"LM0": 0.5})
    {'weights': {'LM0': 0.5}, 'seed': 3, 'metric': None}
    """
    if isinstance(weights, Weights) and weights.positional:
        weights = list(weights.values())
    recorded_weights = _NO_WEIGHTS if weights is None else _plain_or_none(weights)
    record = {_WEIGHTS: recorded_weights}
    defaults = AdaptOptions()
    for field in fields(AdaptOptions):
        value = getattr(options, field.name)
        if field.name in _WITHOUT_EFFECT or value is getattr(defaults, field.name):
            continue
        plain = _plain_or_none(value, _REGISTRIES.get(field.name))
        if plain != getattr(defaults, field.name) or plain is None:
            record[field.name] = plain
    return record


def recorded_options(posterior: Posterior, **changes: Any) -> tuple[AnyWeights, dict[str, Any]]:
    """Return the canonical weights and the options that a posterior was adapted with.

    On the same lists, machine and versions they give the same draws.

    Args:
        posterior: of `adapt`.
        changes: options of `adapt` in place of the recorded ones, and `weights`.

    Returns:
        the weights as `adapt` takes them, and its keyword arguments.

    Raises:
        DataError: if the posterior does not record its options, since another program wrote it.
        UsageError: if an option was an object of Python, which cannot be recorded, and `changes`
            has no other one; or a component of another package is unknown.

    >>> from bpa_ppl import adapt, from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> posterior = adapt(lists, {"LM0": 0.5}, sampler="map", seed=1)
    >>> weights, options = recorded_options(posterior, seed=2)
    >>> weights, options
    ({'LM0': 0.5}, {'sampler': 'map', 'seed': 2})
    >>> again = adapt(lists, weights, **options)
    """
    names = {field.name for field in fields(AdaptOptions)} | {_WEIGHTS}
    named = {name: changes.pop(name) for name in names & changes.keys()}
    if changes:
        named[_SETTINGS] = changes
    weights, options = repeated_options(posterior, named)
    return weights, options | options.pop(_SETTINGS)


def repeated_options(
    posterior: Posterior, changes: Mapping[str, Any]
) -> tuple[AnyWeights, dict[str, Any]]:
    """Return the canonical weights, and the recorded options as fields of `AdaptOptions`.

    Args:
        posterior: as for `recorded_options`.
        changes: fields in place of the recorded ones, and `weights`; `settings` are added to the
            recorded ones, unless these are of another sampler.

    Raises:
        DataError: as `recorded_options`.
        UsageError: as `recorded_options`.
    """
    record = as_draws(posterior).record.options
    if record is None or _WEIGHTS not in record:
        raise DataError(
            "the posterior does not record how it was adapted: give one that `adapt` wrote",
            code="not-supported",
        )
    for name, value in record.items():
        if value is None and name not in changes:
            problem = f"{name} was an object of Python, which is not recorded: give {name} again"
            raise UsageError(problem, parameter=name, code="not-supported")
    kept = {name: value for name, value in record.items() if name not in changes}
    options = {**{name: _restored(name, value) for name, value in kept.items()}, **changes}
    is_same_sampler = changes.keys().isdisjoint(("sampler", "preset"))
    settings = record.get(_SETTINGS) if is_same_sampler else None
    options[_SETTINGS] = {**(settings or {}), **changes.get(_SETTINGS, {})}
    weights = options.pop(_WEIGHTS)
    return None if isinstance(weights, str) and weights == _NO_WEIGHTS else weights, options


def _plain_or_none(value: Any, registry: Registry[Any] | None = None) -> Any:
    """Return a value as JSON holds it, components as name and settings; None if it cannot."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, Component) and registry is not None:
            name = registry.name_of(value)
            if name in registry:
                return {"name": name, _SETTINGS: value.settings()}
        if isinstance(value, set | frozenset):
            return sorted(value)
        if isinstance(value, Sequence | KeysView):
            return list(value)
        raise TypeError(f"{type(value).__name__} is an object of Python")

    if isinstance(value, Prior) and value.other is None:
        return value.as_dict()
    if hasattr(value, "_fields"):  # JSON would take it for a list
        return None
    try:
        return json.loads(json.dumps(value, default=plain))
    except TypeError:
        return None


def _restored(name: str, value: Any) -> Any:
    """Return an option from its record."""
    if isinstance(value, list) and name == "add":
        return [_restored(name, one) for one in value]
    if name in _REGISTRIES and isinstance(value, dict):
        if isinstance(settings := value.get(_SETTINGS), dict):
            restored = {key: with_tuples(one) for key, one in settings.items()}
            return _REGISTRIES[name].recorded(str(value.get("name")), restored)
        if name == "prior":
            return Prior.from_dict(value)
    return value

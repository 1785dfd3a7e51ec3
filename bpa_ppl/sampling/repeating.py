"""The record of the options of `adapt`, with which a posterior can be made again."""

from __future__ import annotations

import json
from collections.abc import KeysView, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.recipe import with_tuples
from bpa_ppl.features.source import FEATURES
from bpa_ppl.metrics.metric import METRICS
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS, Prior
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling.arguments import Arguments
from bpa_ppl.sampling.sampler import SAMPLERS
from bpa_ppl.weights import StartingWeights, Weights, split_arguments

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.weights import AnyStart

#: Entries of the record that are not options.
_WEIGHTS, _NO_WEIGHTS, _SETTINGS = "weights", "none", "settings"
#: Options that the draws do not depend on, or that follow from others.
_NOT_RECORDED = ("jobs", "progress", "oracle")
#: The registries of options that may be components.
_REGISTRIES: Mapping[str, Registry[Any]] = {
    "sampler": SAMPLERS,
    "likelihood": LIKELIHOODS,
    "prior": PRIORS,
    "gain": METRICS,
    "add": FEATURES,
}


def record_arguments(options: Arguments) -> dict[str, Any]:
    """Return the arguments of `adapt` that are not at their defaults, and the weights, as data.

    `StartingWeights` are recorded by their own arguments. What only Python has, such as a function
    as the gain, is None.

    Args:
        options: as they were given.

    >>> record_arguments(Arguments(weights={"LM0": 0.5}, seed=3, gain=len))
    {'weights': {'LM0': 0.5}, 'gain': None, 'seed': 3}
    """
    start = options.start
    weights = start.weights
    if isinstance(weights, Weights) and weights.positional:
        weights = list(weights.values())
    record = {_WEIGHTS: _NO_WEIGHTS if weights is None else _plain_or_none(weights)}
    defaults: tuple[Any, ...] = (StartingWeights(), Arguments())
    for given, default in zip((start, options), defaults, strict=True):
        for field in fields(default):
            value, at_default = getattr(given, field.name), getattr(default, field.name)
            if field.name in (_WEIGHTS, *_NOT_RECORDED) or value is at_default:
                continue
            plain = _plain_or_none(value, _REGISTRIES.get(field.name))
            if plain != _plain_or_none(at_default) or plain is None:
                record[field.name] = plain
    return record


def recorded_options(posterior: Posterior, **changes: Any) -> tuple[AnyStart, dict[str, Any]]:
    """Return the weights and the other arguments that a posterior was adapted with.

    On the same lists, machine and versions they give the same draws.

    Args:
        posterior: of `adapt`.
        changes: arguments of `adapt`, or of `StartingWeights`, in place of the recorded ones. With
            another sampler or preset the recorded `draws` and `chains` are left out.

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
    record = as_draws(posterior).record.options
    if record is None or _WEIGHTS not in record:
        raise DataError(
            "the posterior does not record how it was adapted: give one that `adapt` wrote",
            code="not-supported",
        )
    if isinstance(start := changes.get(_WEIGHTS), StartingWeights):
        changes = {**changes, **vars(start)}
    unused = () if changes.keys().isdisjoint(("sampler", "preset")) else ("draws", "chains")
    kept = {name: value for name, value in record.items() if name not in (*changes, *unused)}
    for name, value in kept.items():
        if value is None:
            problem = f"{name} was a Python object, which is not recorded: pass {name} again"
            raise UsageError(problem, parameter=name, code="not-supported")
    options = {**{name: _restore(name, value) for name, value in kept.items()}, **changes}
    if isinstance(weights := options[_WEIGHTS], str) and weights == _NO_WEIGHTS:
        options[_WEIGHTS] = None
    return split_arguments(options)


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


def _restore(name: str, value: Any) -> Any:
    """Return an option from its record."""
    if isinstance(value, list) and name == "add":
        return [_restore(name, one) for one in value]
    if name in _REGISTRIES and isinstance(value, dict):
        if isinstance(settings := value.get(_SETTINGS), dict):
            restored = {key: with_tuples(one) for key, one in settings.items()}
            return _REGISTRIES[name].restore(str(value.get("name")), restored)
        if name == "prior":
            return Prior.from_dict(value)
    return value

"""Validation of draws: shapes, types, and finite numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import DataError, one_of

if TYPE_CHECKING:
    from bpa_ppl.posterior.draws import Draws

#: Chains that follow the posterior, draws with importance weights, or one point.
KINDS = ("chains", "weighted", "point")
WEIGHTS = "weights"

_NUMBERS = "biuf"
_BY_FEATURE = ("canonical", "prior_mean", "prior_variance", "mode")
#: Attributes used in computations, with their types; other attributes are only displayed.
_ATTRIBUTES: Mapping[str, tuple[Any, str]] = {
    "likelihood_exponent": (float, "a number"),
    "pareto_k": (float, "a number"),
    "newton_decrement": (float, "a number"),
    "feature_sources": (list, "a list of records"),
    "gain_column": (dict, "a record"),
}


def validate_shapes(draws: Draws) -> None:
    """Raise unless names, shapes and types of the parts of draws are consistent.

    Raises:
        DataError: naming the first inconsistent part and the shape or type it should have.
        UsageError: if the kind of draws does not exist.
    """
    one_of(draws.kind, KINDS, "kind of draws")
    if (draws.kind == "weighted") != (draws.log_weight is not None):
        raise DataError(
            f"draws of the kind {draws.kind} {'lack' if draws.log_weight is None else 'have'} "
            "importance weights (log_weight): only weighted draws have them"
        )
    actual = np.shape(draws.values[WEIGHTS])
    if len(actual) != 3 or actual[2] != len(draws.features):
        raise DataError(
            f"weights has the shape {actual}: it must be (chains, draws, {len(draws.features)} "
            "features)"
        )
    twice = [name for name, n in Counter((*draws.features, *draws.fixed)).items() if n > 1]
    if twice:
        raise DataError(f"{twice[0]!r:.80} names two weights: feature names must be unique")
    unknown = [site for site in draws.sites if site not in draws.values]
    if unknown:
        raise DataError(f"there are no draws of the sampled site {unknown[0]!r:.80}")
    for name, values, shape in _shaped(draws):
        _check_array(name, values, shape)
    _check_attributes(draws.attrs)


def _shaped(draws: Draws) -> list[tuple[str, Any, tuple[int | None, ...]]]:
    """Return name, values and required leading shape of all arrays."""
    sample = np.shape(draws.values[WEIGHTS])[:2]
    size = len(draws.features)
    entries: list[tuple[str, Any, tuple[int | None, ...]]] = [
        *((name, values, sample) for name, values in draws.values.items()),
        *((name, values, sample) for name, values in draws.log_likelihood.items()),
        *((f"log prior of {name}", values, sample) for name, values in draws.log_prior.items()),
        *((f"predicted {name}", values, sample) for name, values in draws.predictive.items()),
        *((name, values, sample) for name, values in draws.statistics.items()),
        ("log_weight", draws.log_weight, sample),
        ("the log density", draws.log_density, sample),
        *((name, draws.constants.get(name), (size,)) for name in _BY_FEATURE),
        ("prior_covariance", draws.constants.get("prior_covariance"), (size, size)),
    ]
    return [entry for entry in entries if entry[1] is not None]


def _check_array(name: str, values: Any, shape: tuple[int | None, ...]) -> None:
    array = np.asarray(values)
    if array.dtype.kind not in _NUMBERS:
        raise DataError(f"{name} has the type {array.dtype}, not numbers: make the posterior again")
    if array.shape[: len(shape)] != shape:
        raise DataError(
            f"{name} has the shape {array.shape}, which must begin with {shape}: it does not "
            "belong to these weights"
        )


def _check_attributes(attrs: Mapping[str, Any]) -> None:
    for name, (kind, expected) in _ATTRIBUTES.items():
        value = attrs.get(name)
        numbers = (int, float, np.number) if kind is float else kind
        if value is not None and not isinstance(value, numbers):
            raise DataError(f"the attribute {name} is {value!r:.80}, not {expected}")
    exponent = attrs.get("likelihood_exponent")
    if exponent is not None and not 0 < exponent < np.inf:
        raise DataError(f"the attribute likelihood_exponent is {exponent}, not a number above 0")


def check_finite(draws: Draws) -> None:
    """Raise if any weight or log density is not finite.

    Raises:
        DataError: naming the feature and the draw.
    """
    wrong = ~np.isfinite(draws.weights)
    if wrong.any():
        chain, draw, feature = np.argwhere(wrong)[0].tolist()
        raise DataError(
            f"the weight of {draws.features[feature]} is not a finite number in draw "
            f"{draw} of chain {chain} ({int(wrong.any(axis=2).sum())} draws in total): fix the "
            "sampler that wrote this file"
        )
    for name in _BY_FEATURE:
        if name in draws.constants and not np.isfinite(draws.constants[name]).all():
            raise DataError(f"{name} holds a value that is not a finite number: adapt again")
    for name, values in (("log_weight", draws.log_weight), ("log density", draws.log_density)):
        # Logarithms of weights that are not all zero.
        if values is not None and not -np.inf < np.max(values, initial=-np.inf) < np.inf:
            raise DataError(
                f"the {name} of the draws holds NaN or +inf, or is −inf everywhere: fix the "
                "sampler that wrote this file"
            )

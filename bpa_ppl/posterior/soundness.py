"""What draws must be before anything is computed of them: shapes, kinds of numbers, no NaN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import DataError, one_of

if TYPE_CHECKING:
    from bpa_ppl.posterior.draws import Draws

#: What draws are: chains that follow the posterior, draws with importance weights, or one point.
KINDS = ("chains", "weighted", "point")
WEIGHTS = "weights"

_NUMBERS = "biuf"
_BY_FEATURE = ("canonical", "prior_mean", "prior_variance", "mode")
#: Attributes that are computed with, and what each must be; others are only shown.
_ATTRIBUTES: Mapping[str, tuple[Any, str]] = {
    "likelihood_exponent": (float, "a number"),
    "pareto_k": (float, "a number"),
    "newton_decrement": (float, "a number"),
    "feature_sources": (list, "a list of records"),
    "gain_column": (dict, "a record"),
}


def check_form(draws: Draws) -> None:
    """Raise unless the parts of draws fit together, whatever numbers are in them.

    Raises:
        DataError: naming the first part that does not fit, and how it should be.
        UsageError: if there is no such kind of draws.
    """
    one_of(draws.kind, KINDS, "kind of draws")
    if (draws.kind == "weighted") != (draws.log_weight is not None):
        raise DataError(
            f"draws of the kind {draws.kind} {'lack' if draws.log_weight is None else 'have'} "
            "importance weights (log_weight): weighted draws have them, and no others"
        )
    found = np.shape(draws.values[WEIGHTS])
    if len(found) != 3 or found[2] != len(draws.features):
        raise DataError(
            f"weights has the shape {found}: it needs chains, draws and {len(draws.features)} "
            "features"
        )
    _check_names(draws)
    for name, values, shape in _shaped(draws):
        _check_array(name, values, shape)
    _check_attributes(draws.attrs)


def _check_names(draws: Draws) -> None:
    """Raise where a feature has two weights, or a site is named of which there are no draws."""
    twice = [name for name, n in Counter((*draws.features, *draws.fixed)).items() if n > 1]
    if twice:
        raise DataError(
            f"{twice[0]!r:.80} names two weights: every feature needs a name of its own"
        )
    unknown = [site for site in draws.sites if site not in draws.values]
    if unknown:
        raise DataError(f"{unknown[0]!r:.80} is said to be sampled, and there are no draws of it")


def _shaped(draws: Draws) -> list[tuple[str, Any, tuple[int | None, ...]]]:
    """Return name, values and shape of all arrays; the shape is as far as it must be so."""
    each = np.shape(draws.values[WEIGHTS])[:2]
    size = len(draws.features)
    found: list[tuple[str, Any, tuple[int | None, ...]]] = [
        *((name, values, each) for name, values in draws.values.items()),
        *((name, values, each) for name, values in draws.log_likelihood.items()),
        *((f"log prior of {name}", values, each) for name, values in draws.log_prior.items()),
        *((f"predicted {name}", values, each) for name, values in draws.predictive.items()),
        *((name, values, each) for name, values in draws.statistics.items()),
        ("log_weight", draws.log_weight, each),
        ("the log density", draws.log_density, each),
        *((name, draws.constants.get(name), (size,)) for name in _BY_FEATURE),
        ("prior_covariance", draws.constants.get("prior_covariance"), (size, size)),
    ]
    return [entry for entry in found if entry[1] is not None]


def _check_array(name: str, values: Any, shape: tuple[int | None, ...]) -> None:
    array = np.asarray(values)
    if array.dtype.kind not in _NUMBERS:
        raise DataError(f"{name} is of {array.dtype}, not of numbers: make the posterior again")
    if array.shape[: len(shape)] != shape:
        raise DataError(
            f"{name} has the shape {array.shape}, which should begin with {shape}: it does not "
            "belong to these weights"
        )


def _check_attributes(attrs: Mapping[str, Any]) -> None:
    for name, (kind, what) in _ATTRIBUTES.items():
        value = attrs.get(name)
        numbers = (int, float, np.number) if kind is float else kind
        if value is not None and not isinstance(value, numbers):
            raise DataError(f"the attribute {name} is {value!r:.80}, not {what}")
    exponent = attrs.get("likelihood_exponent")
    if exponent is not None and not 0 < exponent < np.inf:
        raise DataError(f"the attribute likelihood_exponent is {exponent}, not a number above 0")


def check_finite(draws: Draws) -> None:
    """Raise where a number that decides on translations is none.

    Raises:
        DataError: naming the feature and the draw.
    """
    wrong = ~np.isfinite(draws.weights)
    if wrong.any():
        chain, draw, feature = np.argwhere(wrong)[0].tolist()
        raise DataError(
            f"the weight of {draws.features[feature]} is not a finite number in draw "
            f"{draw} of chain {chain} ({int(wrong.any(axis=2).sum())} draws in all): mend the "
            "sampler that wrote it"
        )
    for name in _BY_FEATURE:
        if name in draws.constants and not np.isfinite(draws.constants[name]).all():
            raise DataError(f"{name} holds what is not a finite number: adapt again")
    for name, values in (("log_weight", draws.log_weight), ("log density", draws.log_density)):
        if values is not None and not _logarithms(np.asarray(values)):
            raise DataError(
                f"the {name} of the draws holds NaN or +inf, or is −inf everywhere: mend the "
                "sampler that wrote it"
            )


def _logarithms(values: Any) -> bool:
    """Say whether values can be logarithms of weights: of which some are above nothing."""
    return bool((values < np.inf).all() and (values > -np.inf).any())

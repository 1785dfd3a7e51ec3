"""Draws to and from ArviZ: the only module that knows the groups of InferenceData.

Groups: `posterior`, `prior`, `sample_stats`, `log_likelihood` (one variable an observed site),
`log_prior` (one a sampled site, or all together), `observed_data`, `constant_data`,
`warmup_posterior` where a sampler has a warm-up, and `posterior_predictive` where lists were at
hand to predict (`bpa_ppl.diagnostics.with_predictions`). The
coordinate `feature` carries the names of the free features, `fixed_feature` those of the fixed
ones, `sentence` the ids of the sentences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.posterior.arviz_functions import groups_of, of_groups
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.groups import SAMPLES, Group, Groups, grouped
from bpa_ppl.posterior.soundness import WEIGHTS, check_finite
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

    #: What functions that look at a posterior take.
    Posterior: TypeAlias = Draws | InferenceData

_DENSITY, _LOG_WEIGHT, _FIXED = "lp", "log_weight", "fixed"
#: The prior of all sites together, as Stan's packages call it.
_JOINT = "lprior"
_ORACLE, _SITES = "oracle", "sites"
_FEATURE_DIMS = {
    "canonical": ["feature"],
    "prior_mean": ["feature"],
    "prior_variance": ["feature"],
    "prior_covariance": ["feature", "other_feature"],
    "mode": ["feature"],
    _FIXED: ["fixed_feature"],
    "oracle_score": ["sentence"],
}


def to_arviz(draws: Draws) -> InferenceData:
    """Return draws as ArviZ's data: InferenceData, or from ArviZ 1 on a DataTree.

    >>> draws = Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",))
    >>> groups_of(to_arviz(draws)).groups["posterior"].sizes
    {'chain': 2, 'draw': 10, 'feature': 1}
    """
    return of_groups(to_groups(draws))


def to_groups(draws: Draws) -> Groups:
    """Return draws as ArviZ's groups of arrays, without loading ArviZ.

    What is no string or number among the attributes is stored as JSON.
    """
    statistics = {
        **draws.statistics,
        **({} if draws.log_density is None else {_DENSITY: draws.log_density}),
        **({} if draws.log_weight is None else {_LOG_WEIGHT: draws.log_weight}),
    }
    constants = {**draws.constants, **({_FIXED: draws.fixed.values_array} if draws.fixed else {})}
    attrs = {**draws.attrs, "kind": draws.kind, _SITES: list(draws.sites)}
    groups = {  # in the order of InferenceData: the same bytes come of both
        "posterior": draws.values,
        "posterior_predictive": draws.predictive,
        "log_likelihood": draws.log_likelihood,
        "log_prior": _log_prior(draws),
        "sample_stats": statistics,
        "prior": draws.prior,
        "observed_data": draws.observed,
        "constant_data": constants,
        "warmup_posterior": draws.warmup,
    }
    return grouped(
        groups,
        coords=_coords(draws),
        dims=_dims(draws, {name for group in groups.values() for name in group}),
        attrs={key: _encoded(value) for key, value in attrs.items()},
    )


def _log_prior(draws: Draws) -> Mapping[str, Any]:
    """Return what is recorded of it, or what the density has beside the likelihood."""
    total = draws.total_log_prior
    if draws.log_prior or total is None:
        return draws.log_prior
    return {draws.sites[0] if len(draws.sites) == 1 else _JOINT: total}


def completed(stored: Groups, draws: Draws) -> Groups:
    """Return a posterior of ours with the log prior, which older files leave to be computed."""
    ours = _SITES in stored.attrs and "log_prior" not in stored.groups
    if not (ours and (found := _log_prior(draws))):
        return stored
    return Groups({**stored.groups, **grouped({"log_prior": found}).groups}, stored.attrs)


def _coords(draws: Draws) -> dict[str, Any]:
    coords: dict[str, Any] = {"feature": list(draws.features), "fixed_feature": list(draws.fixed)}
    if draws.sentence_ids is not None:
        coords["sentence"] = draws.sentence_ids
    if "prior_covariance" in draws.constants:
        coords["other_feature"] = list(draws.features)
    return coords


def _dims(draws: Draws, used: set[str]) -> dict[str, list[str]]:
    dims = {name: dims for name, dims in _FEATURE_DIMS.items() if name in used}
    dims |= {site: ["sentence"] for site in (*draws.sentence_sites, *draws.predictive)}
    return dims | {WEIGHTS: ["feature"]}


def as_draws(posterior: Posterior, *, finite: bool = True) -> Draws:
    """Return what any posterior holds as `Draws`, our own or anybody's with draws of `weights`.

    A single weight becomes one feature, and a table of weights as many as it has cells, named by
    their coordinates. Where the posterior does not say what was sampled, everything was that is
    not one and the same number in all draws.

    Args:
        posterior: InferenceData or a DataTree, or Draws, which are returned as they are.
        finite: whether a weight that is not a finite number is an error.

    Raises:
        DataError: if there are no draws of `weights`, one is not a finite number, or the parts of
            the posterior do not fit together.
        UsageError: if it is no posterior at all.

    >>> from bpa_ppl.posterior import inference_data
    >>> data = inference_data({"posterior": {"weights": np.zeros((2, 10))}})
    >>> as_draws(data).weights.shape, as_draws(data).features
    ((2, 10, 1), ('weights',))
    """
    draws = posterior if isinstance(posterior, Draws) else draws_of(groups_of(posterior))
    if finite:
        check_finite(draws)
    return draws


def draws_of(stored: Groups) -> Draws:
    """Return what any posterior's groups hold as draws; see `as_draws`."""
    groups = stored.groups
    weights, features = _weights_of(groups)
    statistics = _chain_variables(groups.get("sample_stats"))
    attrs = {str(key): _decoded(value) for key, value in stored.attrs.items()}
    log_weight = statistics.pop(_LOG_WEIGHT, None)
    values = _chain_variables(groups["posterior"]) | {WEIGHTS: weights}
    likelihood = groups.get("log_likelihood")
    timing = dict(groups["posterior"].attrs)
    return Draws(
        values,
        features,
        kind=attrs.pop("kind", "chains" if log_weight is None else "weighted"),
        log_weight=log_weight,
        log_density=statistics.pop(_DENSITY, None),
        log_likelihood=_chain_variables(likelihood),
        log_prior=_chain_variables(groups.get("log_prior")),
        predictive=_chain_variables(groups.get("posterior_predictive")),
        sentence_sites=_sentence_sites(likelihood),
        statistics=statistics,
        warmup=_same_shape(groups.get("warmup_posterior"), values),
        prior=_same_shape(groups.get("prior"), values),
        sites=_sites(attrs.pop(_SITES, None), values),
        observed=_observed(groups.get("observed_data")),
        constants=_constants(groups.get("constant_data"), features),
        fixed=_fixed(groups.get("constant_data")),
        sentence_ids=_sentence_ids(likelihood),
        attrs={**timing, **attrs},
    )


def _weights_of(groups: Mapping[str, Group]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the draws of the weights as (chain, draw, feature), and the features."""
    if "posterior" not in groups or WEIGHTS not in groups["posterior"].arrays:
        raise DataError("the posterior holds no draws of a variable called weights")
    weights, coords = groups["posterior"].arrays[WEIGHTS], groups["posterior"].coords
    if not {"chain", "draw"} <= set(weights.dims):
        raise DataError(
            f"weights has the dimensions {', '.join(weights.dims)}: it needs chain and "
            "draw, as ArviZ writes them"
        )
    shape = weights.values.shape
    if weights.values.size == 0:
        raise DataError("weights has no draws: its shape is " + " × ".join(map(str, shape)))
    sizes = {d: size for d, size in zip(weights.dims, shape, strict=True) if d not in SAMPLES}
    if len(sizes) == 1 and (unnamed := sizes.keys() - coords):
        raise DataError(f"weights has no coordinate {unnamed.pop()}: it names the features")
    labels = [coords[d].values.tolist() if d in coords else range(n) for d, n in sizes.items()]
    names = tuple(", ".join(map(str, cell)) or WEIGHTS for cell in product(*labels))
    values = weights.leading(*SAMPLES)
    return values.reshape(*values.shape[:2], -1), names


def _chain_variables(group: Group | None) -> dict[str, Any]:
    """Return the variables of a group that have chains and draws, those first."""
    if group is None:
        return {}
    return {
        name: variable.leading(*SAMPLES)
        for name, variable in group.arrays.items()
        if {*SAMPLES} <= set(variable.dims)
    }


def _same_shape(group: Group | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return other draws of the same sites; what has another shape is not of this model."""
    found = _chain_variables(group)
    return {
        name: array
        for name, array in found.items()
        if name in values and array.shape[2:] == values[name].shape[2:]
    }


def _arrays(group: Group | None) -> dict[str, Any]:
    if group is None:
        return {}
    return {name: variable.values for name, variable in group.arrays.items()}


def _observed(group: Group | None) -> dict[str, Any]:
    """Return what was observed; oracles are positions, to which predictions add a share of one."""
    found = _arrays(group)
    if _ORACLE in found and found[_ORACLE].dtype.kind == "f":
        found[_ORACLE] = np.floor(found[_ORACLE]).astype(np.int64)
    return found


def _sentence_sites(group: Group | None) -> tuple[str, ...]:
    """Return the observed sites of one value a sentence; another program may have one site."""
    if group is None:
        return ()
    named = [name for name, v in group.arrays.items() if v.dims[2:] == ("sentence",)]
    single = [name for name, v in group.arrays.items() if len(v.dims) == 3]
    return tuple(named or (single if len(single) == 1 else [n for n in single if n == _ORACLE]))


def _sentence_ids(group: Group | None) -> Any:
    found = None if group is None else group.coords.get("sentence")
    return None if found is None else found.values


def _constants(group: Group | None, features: tuple[str, ...]) -> dict[str, Any]:
    """Return what is known beside the draws, if it is of the same features in the same order."""
    if group is None:
        return {}
    for coordinate in ("feature", "other_feature"):
        found = group.coords.get(coordinate)
        if found is not None and tuple(map(str, np.ravel(found.values))) != features:
            raise DataError(
                f"the {coordinate} of constant_data are not those of the weights, one by one: "
                "adapt again"
            )
    return {name: values for name, values in _arrays(group).items() if name != _FIXED}


def _fixed(constants: Group | None) -> Weights:
    if constants is None or _FIXED not in constants.arrays:
        return Weights({})
    dims, values, _ = constants.arrays[_FIXED]
    if dims != ("fixed_feature",) or "fixed_feature" not in constants.coords:
        raise DataError("the fixed weights have no names (fixed_feature): adapt again")
    if values.dtype.kind not in "iuf":
        raise DataError(f"the fixed weights are of {values.dtype}, not of numbers: adapt again")
    names = constants.coords["fixed_feature"].values
    return Weights(zip(map(str, names), map(float, values), strict=True), "the posterior")


def _sites(recorded: Any, values: Mapping[str, Any]) -> tuple[str, ...]:
    if recorded is None:
        return tuple(_moving(values))
    if not isinstance(recorded, list) or not all(isinstance(site, str) for site in recorded):
        raise DataError(f"the attribute sites is {recorded!r:.80}, not a list of names")
    return tuple(recorded) or tuple(_moving(values))


def _moving(values: Mapping[str, Any]) -> list[str]:
    """Return the sites that are not one and the same number in all draws, and the weights."""
    return [n for n, v in values.items() if n == WEIGHTS or np.any(v != v[:1, :1])]


def _encoded(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else json.dumps(value)


def _decoded(value: Any) -> Any:
    """Read an attribute that was stored as JSON; that of another program may be anything."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value

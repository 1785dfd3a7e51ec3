"""Draws to and from ArviZ's data: the only module that uses its groups.

Groups: `posterior`, `prior`, `sample_stats`, `log_likelihood` (one variable per observed site),
`log_prior` (one per sampled site, or their sum), `observed_data`, `constant_data`,
`warmup_posterior` for samplers with a warm-up, and `posterior_predictive` and `prior_predictive`
where there are lists to predict (`bpa_ppl.diagnostics.with_predictions`). The coordinate `feature`
holds the names of the free features, `fixed_feature` those of the fixed ones, `sentence` the ids of
the sentences. A model names the dimensions of its other sites in its attribute `dims`.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError
from bpa_ppl.posterior.arviz_functions import arviz_data, data_tree, group_tree
from bpa_ppl.posterior.draws import WEIGHTS, Draws, check_finite
from bpa_ppl.posterior.groups import SAMPLE_DIMS, Group, labelled_groups
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from xarray import DataTree

    from bpa_ppl.posterior.arviz_functions import InferenceData

    #: The type of a posterior as an argument.
    Posterior: TypeAlias = Draws | InferenceData

#: Of the groups below; raise it when an older bpa_ppl could no longer read the files.
SCHEMA_VERSION = 1
_SCHEMA = "schema_version"
_DENSITY, _LOG_WEIGHT, _FIXED = "lp", "log_weight", "fixed"
#: The prior of all sites together, as Stan's packages call it.
_JOINT = "lprior"
_OF_FEATURES = {"feature", "other_feature"}
_ORACLE, _SITES = "oracle", "sites"
_FEATURE_DIMS = {
    "canonical": ["feature"],
    "prior_mean": ["feature"],
    "prior_variance": ["feature"],
    "prior_covariance": ["feature", "other_feature"],
    "mode": ["feature"],
    _FIXED: ["fixed_feature"],
    "oracle_score": ["sentence"],
    "observation_weight": ["sentence"],
    "observation_rater": ["sentence"],
}


def to_arviz(draws: Draws) -> InferenceData:
    """Return draws as ArviZ's data: InferenceData with ArviZ 0.x, otherwise a DataTree.

    >>> draws = Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",))
    >>> dict(data_tree(to_arviz(draws))["posterior"].sizes)
    {'chain': 2, 'draw': 10, 'feature': 1}
    """
    return arviz_data(to_tree(draws))


def to_tree(draws: Draws) -> DataTree:
    """Return draws as a tree of ArviZ's groups, without loading ArviZ; see `to_groups`."""
    return group_tree(*to_groups(draws))


def to_groups(draws: Draws) -> tuple[dict[str, Group], dict[str, Any]]:
    """Return draws as ArviZ's groups, and the attributes of the whole.

    Attributes other than strings and numbers are stored as JSON.

    Raises:
        DataError: if an attribute is neither a text, a number, nor made of them.
    """
    statistics = {
        **draws.statistics,
        **({} if draws.log_density is None else {_DENSITY: draws.log_density}),
        **({} if draws.log_weight is None else {_LOG_WEIGHT: draws.log_weight}),
    }
    constants = {**draws.constants, **({_FIXED: draws.fixed.values_array} if draws.fixed else {})}
    log_prior, total = draws.log_prior, draws.total_log_prior
    if not log_prior and total is not None:
        log_prior = {draws.sites[0] if len(draws.sites) == 1 else _JOINT: total}
    attrs = {**draws.attrs, "kind": draws.kind, _SITES: list(draws.sites), _SCHEMA: SCHEMA_VERSION}
    groups = {  # in ArviZ's order
        "posterior": draws.values,
        "posterior_predictive": draws.predictive,
        "log_likelihood": draws.log_likelihood,
        "log_prior": log_prior,
        "sample_stats": statistics,
        "prior": draws.prior,
        "prior_predictive": draws.prior_predictive,
        "observed_data": draws.observed,
        "constant_data": constants,
        "warmup_posterior": draws.warmup,
    }
    used = {name for group in groups.values() for name in group}
    dims = {name: dims for name, dims in _FEATURE_DIMS.items() if name in used}
    dims |= {site: list(names) for site, names in draws.dims.items() if site in used}
    dims |= {site: ["sentence"] for site in (*draws.sentence_sites, *draws.predictive)}
    names, fixed = list(draws.features), list(draws.fixed)
    coords: dict[str, Any] = {"feature": names, "other_feature": names, "fixed_feature": fixed}
    coords |= {dimension: list(labels) for dimension, labels in draws.coords.items()}
    if draws.sentence_ids is not None:
        coords["sentence"] = draws.sentence_ids
    plain = {name: _encoded(name, value) for name, value in attrs.items()}
    return labelled_groups(groups, coords, {**dims, WEIGHTS: ["feature"]}), plain


def as_draws(posterior: Posterior, *, finite: bool = True) -> Draws:
    """Return any posterior with draws of `weights` as `Draws`.

    A single weight becomes one feature, and a table of weights as many as it has cells, named by
    their coordinates. If the posterior does not record which sites were sampled, these are all
    sites whose value is not the same in all draws.

    Args:
        posterior: InferenceData or a DataTree, or Draws, which are returned as they are.
        finite: whether to refuse weights that are not finite numbers.

    Raises:
        DataError: if there are no draws of `weights`, one is not a finite number, or the parts of
            the posterior do not fit together.
        UsageError: if it is not a posterior.

    >>> from bpa_ppl.posterior.arviz_functions import inference_data
    >>> data = inference_data({"posterior": {"weights": np.zeros((2, 10))}})
    >>> as_draws(data).weights.shape, as_draws(data).features
    ((2, 10, 1), ('weights',))
    """
    draws = posterior if isinstance(posterior, Draws) else from_tree(data_tree(posterior))
    if finite:
        check_finite(draws)
    return draws


def from_tree(tree: DataTree) -> Draws:
    """Return the groups of any posterior as draws; see `as_draws`."""
    return from_groups(tree_groups(tree), tree.attrs)


def tree_groups(tree: DataTree) -> dict[str, Group]:
    """Return the groups of a tree as plain arrays."""
    groups = {}
    for name, node in tree.children.items():
        data = node.to_dataset()
        dims = {str(n): tuple(map(str, v.dims)) for n, v in data.data_vars.items()}
        arrays, coords = ({str(n): v.values for n, v in p.items()} for p in (data, data.coords))
        groups[name] = Group(arrays, dims, coords, data.attrs)
    return groups


def from_groups(groups: Mapping[str, Group], recorded: Mapping[Any, Any]) -> Draws:
    """Return the groups of any posterior, and what it records as attributes, as draws."""
    weights, features = _weights(groups)
    statistics = _draws_of(groups.get("sample_stats"))
    attrs = {str(key): _decoded(value) for key, value in recorded.items()}
    version = attrs.pop(_SCHEMA, SCHEMA_VERSION)
    if not isinstance(version, int) or not 0 < version <= SCHEMA_VERSION:
        raise DataError(
            f"the posterior has schema version {version!r:.80}, and this bpa_ppl reads up to "
            f"{SCHEMA_VERSION}: install the version that wrote it, or adapt again",
            code="unknown-format",
        )
    log_weight = statistics.pop(_LOG_WEIGHT, None)
    values = _draws_of(groups["posterior"]) | {WEIGHTS: weights}
    likelihood, constants = groups.get("log_likelihood"), groups.get("constant_data")
    return Draws(
        values,
        features,
        kind=attrs.pop("kind", "chains" if log_weight is None else "weighted"),
        log_weight=log_weight,
        log_density=statistics.pop(_DENSITY, None),
        log_likelihood=_draws_of(likelihood),
        log_prior=_draws_of(groups.get("log_prior")),
        predictive=_draws_of(groups.get("posterior_predictive")),
        prior_predictive=_draws_of(groups.get("prior_predictive")),
        sentence_sites=_sentence_sites(likelihood),
        statistics=statistics,
        warmup=_same_shape(groups.get("warmup_posterior"), values),
        prior=_same_shape(groups.get("prior"), values),
        sites=_sites(attrs.pop(_SITES, None), values),
        **_named_dimensions(groups["posterior"], len(features)),
        observed=_observed(groups.get("observed_data")),
        constants=_constants(constants, features),
        fixed=_fixed(constants),
        sentence_ids=None if likelihood is None else likelihood.coords.get("sentence"),
        attrs={**groups["posterior"].attrs, **attrs},
    )


def _weights(groups: Mapping[str, Group]) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Return the draws of the weights as (chain, draw, feature), and the features."""
    if "posterior" not in groups or WEIGHTS not in groups["posterior"].arrays:
        problem = "the posterior holds no draws of a variable called weights"
        raise DataError(problem, code="no-data")
    group = groups["posterior"]
    weights, dims = group.arrays[WEIGHTS], group.dims[WEIGHTS]
    if not {*SAMPLE_DIMS} <= set(dims):
        raise DataError(
            f"weights has the dimensions {', '.join(dims)}: it needs chain and draw, as ArviZ "
            "writes them",
            code="wrong-length",
        )
    if weights.size == 0:
        raise DataError(f"weights has no draws: its shape is {weights.shape}", code="no-data")
    weights = _draws_of(group)[WEIGHTS]
    others = [dim for dim in dims if dim not in SAMPLE_DIMS]
    if len(others) == 1 and others[0] not in group.coords:
        problem = f"weights has no coordinate {others[0]}: it names the features"
        raise DataError(problem, code="bad-name")
    sizes = zip(others, weights.shape[2:], strict=True)
    labels = [group.coords.get(dim, np.arange(size)).tolist() for dim, size in sizes]
    names = tuple(", ".join(map(str, cell)) or WEIGHTS for cell in product(*labels))
    return weights.reshape(*weights.shape[:2], -1), names


def _draws_of(group: Group | None) -> dict[str, Any]:
    """Return the arrays of a group that have chains and draws, those dimensions first."""
    if group is None:
        return {}
    return {
        name: np.moveaxis(values, [group.dims[name].index(dim) for dim in SAMPLE_DIMS], (0, 1))
        for name, values in group.arrays.items()
        if {*SAMPLE_DIMS} <= set(group.dims[name])
    }


def _same_shape(group: Group | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return other draws of the same sites; arrays of another shape are from another model."""
    return {
        name: array
        for name, array in _draws_of(group).items()
        if name in values and array.shape[2:] == values[name].shape[2:]
    }


def _observed(group: Group | None) -> dict[str, Any]:
    """Return what was observed; oracles are positions, to which predictions add a fraction."""
    arrays = {} if group is None else dict(group.arrays)
    if _ORACLE in arrays and arrays[_ORACLE].dtype.kind == "f":
        arrays[_ORACLE] = np.floor(arrays[_ORACLE]).astype(np.int64)
    return arrays


def _sentence_sites(group: Group | None) -> tuple[str, ...]:
    """Return the observed sites with one value per sentence; other programs may have one site."""
    if group is None:
        return ()
    named = [name for name, dims in group.dims.items() if dims[2:] == ("sentence",)]
    single = [name for name, dims in group.dims.items() if len(dims) == 3]
    return tuple(named or (single if len(single) == 1 else [n for n in single if n == _ORACLE]))


def _constants(group: Group | None, features: tuple[str, ...]) -> dict[str, Any]:
    """Return the constants, if they are of the same features in the same order."""
    if group is None:
        return {}
    for name in _OF_FEATURES & set(group.coords):
        if tuple(map(str, np.ravel(group.coords[name]))) != features:
            raise DataError(
                f"the coordinate {name} of constant_data differs from the features of the weights: "
                "adapt again",
                code="mismatch",
            )
    return {name: values for name, values in group.arrays.items() if name != _FIXED}


def _fixed(constants: Group | None) -> Weights:
    if constants is None or _FIXED not in constants.arrays:
        return Weights({})
    fixed = constants.arrays[_FIXED]
    if constants.dims[_FIXED] != ("fixed_feature",) or "fixed_feature" not in constants.coords:
        problem = "the fixed weights have no names (fixed_feature): adapt again"
        raise DataError(problem, code="bad-name")
    if fixed.dtype.kind not in "iuf":
        problem = f"the fixed weights have the type {fixed.dtype}, not numbers: adapt again"
        raise DataError(problem, code="bad-number")
    names = map(str, constants.coords["fixed_feature"])
    return Weights(zip(names, map(float, fixed), strict=True), "the posterior")


def _named_dimensions(group: Group, features: int) -> dict[str, Any]:
    """Return the dimensions of the sites that have names, and their labels, as fields of Draws."""
    dims: dict[str, tuple[str, ...]] = {}
    for name, all_dims in group.dims.items():
        sizes = dict(zip(all_dims, group.arrays[name].shape, strict=True))
        names = tuple(dim for dim in all_dims if dim not in SAMPLE_DIMS)
        numbered = all(dim.startswith(f"{name}_dim_") for dim in names)
        others = any(sizes[dim] != features for dim in _OF_FEATURES.intersection(names))
        if name != WEIGHTS and not numbered and not others:
            dims[name] = names
    used = {dim for names in dims.values() for dim in names} - _OF_FEATURES
    labels = {dim: group.coords[dim] for dim in used if dim in group.coords}
    coords = {dim: tuple(map(str, v)) for dim, v in labels.items() if v.dtype.kind not in "iu"}
    return {"dims": dims, "coords": coords}


def _sites(recorded: Any, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the recorded sites, or the weights and the sites whose value is not constant."""
    if recorded is None or recorded == []:
        return tuple(n for n, v in values.items() if n == WEIGHTS or np.any(v != v[:1, :1]))
    if not isinstance(recorded, list) or not all(isinstance(site, str) for site in recorded):
        problem = f"the attribute sites is {recorded!r:.80}, not a list of names"
        raise DataError(problem, parameter="sites", code="bad-name")
    return tuple(recorded)


def _encoded(name: str, value: Any) -> str | int | float:
    """Return an attribute as NetCDF holds it: other values than texts and numbers as JSON."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"the attribute {name} is {reprlib.repr(value)}: give texts, numbers, or lists"
        raise DataError(problem, code="cannot-write") from error


def _decoded(value: Any) -> Any:
    """Decode an attribute stored as JSON; those of other programs are returned as they are."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def point_weights(posterior: Posterior, point: str = "mean", draw: int = 0) -> Weights:
    """Return one vector of weights that represents a posterior, fixed weights included.

    Args:
        posterior: the draws.
        point: `mean`, of the draws; `mode`, if the sampler has computed it; or `draw`.
        draw: which draw, counted over all chains one after the other.

    Raises:
        DataError: if the posterior has no such draw, or no mode.
        UsageError: if there is no such point.

    >>> point_weights(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)))
    Weights({'LM0': 1})
    """
    return as_draws(posterior).at_point(point, draw)

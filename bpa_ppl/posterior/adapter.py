"""Draws to and from ArviZ's data: the only module that uses its groups.

Groups: `posterior`, `prior`, `sample_stats`, `log_likelihood` (one variable per observed site),
`log_prior` (one per sampled site and per factor, or their sum), `observed_data`, `constant_data`,
`warmup_posterior` for samplers with a warm-up, and `posterior_predictive` where it is asked for, or
there are lists to predict (`diagnostics.predictive_checks`). The coordinate `feature` holds the
names of the free features, `fixed_feature` those of the fixed ones, `sentence` the ids of the
sentences. A model names the dimensions of its other sites in its attribute `dims`. The attributes
are those of `bpa_ppl.posterior.record`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.arviz_functions import split_groups, to_arviz_data, to_datasets
from bpa_ppl.posterior.draws import (
    BY_FEATURE,
    WEIGHTS,
    Draws,
    check_finite,
    total,
)
from bpa_ppl.posterior.groups import SAMPLE_DIMS, Group, label_groups
from bpa_ppl.posterior.record import from_attributes, read_version, to_attributes
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

    #: The type of a posterior as an argument.
    Posterior: TypeAlias = Draws | InferenceData

#: Of the files that are written, and the oldest that is read: versions 1 and 2 were those of states
#: before the release of 1.0, with other names of features. `tests/posterior/test_schema.py` holds
#: what a version records, and says when it has to be raised.
SCHEMA_VERSION, _OLDEST = 3, 3
SCHEMA = "schema_version"
_DENSITY, LOG_WEIGHT, _FIXED = "lp", "log_weight", "fixed"
#: The prior of all sites together, as Stan's packages call it.
_JOINT = "lprior"
_OF_FEATURES = {"feature", "other_feature"}
_ORACLE, _SITES = "oracle", "sites"
#: Scalars of brms, Bambi and Stan that are no weights; most of the others that are named.
_NO_WEIGHT = re.compile(r"(b_)?[Ii]ntercept|lprior|lp|sigma|(sd|cor|r)_.*|.*__|.*\|.*")
_MOST = 20
#: The variables of a posterior in any form, as an expression.
_VARIABLES = 'xarray.Dataset(data.get("posterior", data).data_vars)'
#: The same with chains and draws exchanged.
EXCHANGED = f'{_VARIABLES}.rename({{"chain": "draw", "draw": "chain"}})'
_DIMS = {
    **{name: ["feature"] for name in (WEIGHTS, *BY_FEATURE)},
    **{name: ["sentence"] for name in ("oracle_score", "observation_weight", "observation_rater")},
    "prior_covariance": ["feature", "other_feature"],
    _FIXED: ["fixed_feature"],
}


def to_arviz(draws: Draws) -> InferenceData:
    """Return draws as ArviZ's data: InferenceData with ArviZ 0.x, otherwise a DataTree.

    >>> draws = Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",))
    >>> dict(to_arviz(draws)["posterior"].sizes)
    {'chain': 2, 'draw': 10, 'feature': 1}
    """
    groups, attrs = to_groups(draws)
    return to_arviz_data(to_datasets(groups), attrs)


def to_groups(draws: Draws) -> tuple[dict[str, Group], dict[str, Any]]:
    """Return draws as ArviZ's groups, and the attributes of the whole.

    Attributes other than strings and numbers are stored as JSON.
    """
    statistics = {
        **draws.statistics,
        **({} if draws.log_density is None else {_DENSITY: draws.log_density}),
        **({} if draws.log_weight is None else {LOG_WEIGHT: draws.log_weight}),
    }
    constants = {**draws.constants, **({_FIXED: draws.fixed.values_array} if draws.fixed else {})}
    log_prior = draws.log_prior
    if draws.log_likelihood and draws.log_density is not None and not log_prior:
        with np.errstate(invalid="ignore"):  # unknown where both are −∞
            prior = draws.log_density - total(draws.log_likelihood, draws.shape)
        log_prior = {draws.sites[0] if len(draws.sites) == 1 else _JOINT: prior}
    attrs = to_attributes(draws.record)
    attrs |= {"kind": draws.kind, _SITES: list(draws.sites), SCHEMA: SCHEMA_VERSION}
    groups = {  # in ArviZ's order
        "posterior": draws.values,
        "posterior_predictive": draws.predictive,
        "log_likelihood": draws.log_likelihood,
        "log_prior": log_prior,
        "sample_stats": statistics,
        "prior": draws.prior,
        "observed_data": draws.observed,
        "constant_data": constants,
        "warmup_posterior": draws.warmup,
    }
    of_sites = {n: list(d) for n, d in draws.dims.items() if n != WEIGHTS or not draws.features}
    dims = (_DIMS if draws.features else {}) | of_sites
    predicted = draws.predictive if draws.features else ()
    dims |= {site: ["sentence"] for site in (*draws.sentence_sites, *predicted)}
    names, fixed = list(draws.features), list(draws.fixed)
    coords: dict[str, Any] = {"fixed_feature": fixed}
    if names:  # a program without lists may have a site or a plate called feature
        coords |= {"feature": names, "other_feature": names}
    coords |= {dimension: list(labels) for dimension, labels in draws.coords.items()}
    if draws.sentence_ids is not None:
        coords["sentence"] = draws.sentence_ids
    for name, value in attrs.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            attrs[name] = json.dumps(value)
    return label_groups(groups, coords, dims), attrs


def as_draws(posterior: Posterior, *, finite: bool = True, any_variables: bool = False) -> Draws:
    """Return any posterior with draws of `weights` as `Draws`.

    A single weight becomes one feature, and a table of weights as many as it has cells, named by
    their coordinates. If the posterior does not record which sites were sampled, these are all
    sites whose value is not the same in all draws.

    Args:
        posterior: InferenceData, a DataTree or a Dataset, or Draws, which are returned as they are.
        finite: whether to refuse weights that are not finite numbers.
        any_variables: whether a posterior without `weights` is taken, too: as the draws of its
            other variables that are numbers, with no feature.

    Raises:
        DataError: if there are no draws, one is not a finite number, or the parts of the posterior
            do not fit together.
        UsageError: if it is not a posterior.

    >>> from xarray import Dataset, DataTree
    >>> data = Dataset({"weights": (("chain", "draw"), np.zeros((2, 10)))})
    >>> draws = as_draws(DataTree.from_dict({"posterior": data}))
    >>> draws.weights.shape, draws.features
    ((2, 10, 1), ('weights',))
    """
    draws = posterior
    if not isinstance(draws, Draws):
        draws = from_groups(*split_groups(draws), any_variables=any_variables)
    if finite:
        check_finite(draws)
    return draws


def from_groups(
    groups: Mapping[str, Group], recorded: Mapping[Any, Any], *, any_variables: bool = False
) -> Draws:
    """Return the groups of any posterior, and what it records as attributes, as draws."""
    draws = {name: find_draws(group) for name, group in groups.items()}
    variables = draws.get("posterior", {})
    nothing = Group({}, {}, {}, {})
    is_ours = SCHEMA in recorded
    of_lists = has_features(groups.get("posterior", nothing), is_ours)
    features: tuple[str, ...] = ()
    if any_variables and variables and not of_lists:
        variables = {name: x for name, x in variables.items() if x.dtype.kind in "biuf"}
        if not variables:
            raise DataError("no variable with numbers: give draws of a posterior", code="no-data")
        values = variables
    else:
        weights, features = _read_weights(groups, is_site=is_ours and not of_lists)
        values = variables | {WEIGHTS: weights}
    statistics = draws.get("sample_stats", {})
    attrs = {str(key): _decode(value) for key, value in recorded.items()}
    of_group = {str(key): _decode(value) for key, value in groups["posterior"].attrs.items()}
    if foreign := SCHEMA not in attrs:  # other programs may have statistics that are texts
        statistics = {n: x for n, x in statistics.items() if x.dtype.kind in "biuf"}
    _require_schema(attrs.pop(SCHEMA, SCHEMA_VERSION), attrs.get("versions"))

    def of_sites(group: str) -> dict[str, Any]:
        """Return draws of the sites; arrays of another shape are from another model."""
        found = ((n, x) for n, x in draws.get(group, {}).items() if n in values)
        return {name: x for name, x in found if x.shape[2:] == values[name].shape[2:]}

    observed = dict(groups.get("observed_data", nothing).arrays)
    if _ORACLE in observed and observed[_ORACLE].dtype.kind == "f":
        # A position, to which predictions add a fraction.
        observed[_ORACLE] = np.floor(observed[_ORACLE]).astype(np.int64)
    likelihood = groups.get("log_likelihood", nothing)
    chains, kept = next(iter(values.values())).shape[:2]
    if foreign and 0 < kept < chains:
        raise DataError(
            f"the posterior has {chains} chains of {kept} draws: exchange chain and draw, "
            f"{EXCHANGED}",
            code="wrong-length",
        )
    log_prior = draws.get("log_prior", {})
    for name in [n for n, x in log_prior.items() if kept and x.shape[:2] != (chains, kept)]:
        shape = " × ".join(map(str, log_prior.pop(name).shape[:2]))
        warn_user(f"log_prior of {name} is left out: it has {shape} draws, not {chains} × {kept}")
    log_weight = statistics.pop(LOG_WEIGHT, None)
    sites = attrs.pop(_SITES, None)
    if not isinstance(sites, list) or not sites:
        of_weights = {WEIGHTS} if features else set()
        sites = [n for n, v in values.items() if n in of_weights or np.any(v != v[:1, :1])]
    constants, fixed = _read_constants(groups.get("constant_data", nothing), features)
    return Draws(
        values,
        features,
        kind=attrs.pop("kind", "chains" if log_weight is None else "weighted"),
        log_weight=log_weight,
        log_density=statistics.pop(_DENSITY, None),
        log_likelihood=draws.get("log_likelihood", {}),
        log_prior=log_prior,
        predictive=draws.get("posterior_predictive", {}),
        sentence_sites=_find_sentence_sites(likelihood),
        statistics=statistics,
        warmup=of_sites("warmup_posterior"),
        prior=of_sites("prior"),
        sites=tuple(sites),
        **_name_dimensions(groups["posterior"], len(features)),
        observed=observed,
        constants=constants,
        fixed=fixed,
        sentence_ids=likelihood.coords.get("sentence"),
        record=from_attributes(of_group | attrs, foreign=foreign),
    )


def has_features(group: Group, is_ours: bool = False) -> bool:
    """Return whether a posterior has weights of features, not a site of that name like any other.

    Args:
        group: the posterior.
        is_ours: whether this package made it; otherwise any labels that are not numbers are names
            of features.
    """
    if "feature" in group.dims.get(WEIGHTS, ()) or is_ours:
        return "feature" in group.dims.get(WEIGHTS, ())
    dims = [dim for dim in group.dims.get(WEIGHTS, ()) if dim not in SAMPLE_DIMS]
    labels = (np.asarray(group.coords.get(dim, 0)).dtype.kind for dim in dims)
    return not {*labels} <= {"i", "u"}


def _require_schema(schema: Any, versions: Any) -> None:
    """Refuse a posterior of another schema, whose entries may have another meaning.

    Raises:
        DataError: naming the version that wrote it, if that is recorded.
    """
    if isinstance(schema, int) and _OLDEST <= schema <= SCHEMA_VERSION:
        return
    package = "bpa_ppl"
    writer = f"{package} {versions[package]}" if _names(versions, package) else package
    if isinstance(schema, int) and 0 < schema < _OLDEST:
        writer = f"a state of {package} before the release of 1.0"
    raise DataError(
        f"the posterior was written by {writer:.80}, in the schema version {schema!r:.80}, and "
        f"this {package} {read_version(package)} reads version {SCHEMA_VERSION}: adapt again, or "
        "install the version that wrote it",
        code="unknown-format",
    )


def _names(versions: Any, package: str) -> bool:
    return isinstance(versions, dict) and isinstance(versions.get(package), str)


def _read_weights(
    groups: Mapping[str, Group], is_site: bool = False
) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Return the draws of the weights as (chain, draw, feature), and the features.

    Args:
        groups: of the posterior.
        is_site: whether a variable `weights` is a site of a program without lists.
    """
    group = groups.get("posterior", Group({}, {}, {}, {}))
    if is_site and WEIGHTS in group.arrays:
        message = "the posterior has no weights of features: adapt to lists with this model"
        raise DataError(message, code="no-data")
    if WEIGHTS not in group.arrays:
        found = f"{list_names(group.arrays) or 'none'} (groups: {list_names(groups) or 'none'})"
        remedy = "give draws of a posterior"
        if group.arrays:
            remedy = _suggest_call(group)
        message = f"no variable {WEIGHTS} in the posterior, but {found}: {remedy}"
        raise DataError(message, code="no-data")
    dims, others = group.dims[WEIGHTS], [d for d in group.dims[WEIGHTS] if d not in SAMPLE_DIMS]
    if len(dims) != len(others) + 2:
        raise DataError(describe_dims(group, WEIGHTS), code="wrong-length")
    weights = find_draws(group)[WEIGHTS]
    if len(others) == 1 and others[0] not in group.coords:
        message = f"weights have no names: take {_VARIABLES}.assign_coords({others[0]}=features)"
        raise DataError(message, code="bad-name")
    sizes = zip(others, weights.shape[2:], strict=True)
    labels = [group.coords.get(dim, np.arange(size)).tolist() for dim, size in sizes]
    names = tuple(", ".join(map(str, cell)) or WEIGHTS for cell in product(*labels))
    return weights.reshape(*weights.shape[:2], len(names)), names


def describe_dims(group: Group, name: str) -> str:
    """Return what to do about a variable without chains or draws, for a message.

    >>> describe_dims(Group({}, {"mu": ("draw",)}, {}, {}), "mu")
    'mu has the dimensions draw: it needs chain and draw, as ArviZ writes them; select ...'
    """
    dims = group.dims[name]
    remedy = 'select by lists, sel(chain=[0]), or add a chain, expand_dims("chain")'
    if "sample" in dims and "chain" in group.coords:
        index = "" if "sample" in group.coords else 'set_index(sample=["chain", "draw"]).'
        remedy = f'call {index}unstack("sample")'
    elif dims and {*SAMPLE_DIMS}.isdisjoint(dims):
        remedy = f'call rename({{"{dims[0]}": "draw"}}).expand_dims("chain")'
    problem = f"{name} has the dimensions {', '.join(dims) or 'none'}: it needs chain and draw"
    return f"{problem}, as ArviZ writes them; {remedy}"


def _suggest_call(group: Group) -> str:
    """Return the call that makes the variable `weights` of other variables, for a message."""
    drawn = {name: dims for name, dims in group.dims.items() if {*SAMPLE_DIMS} <= {*dims}}
    if not drawn:
        return describe_dims(group, next(iter(group.dims)))
    scalars = [n for n, dims in drawn.items() if len(dims) == 2 and not _NO_WEIGHT.fullmatch(n)]
    made = f'{scalars[:_MOST]}].to_dataarray("feature").to_dataset(name="{WEIGHTS}")'
    for name, dims in drawn.items():
        if len(dims) == 3 and "|" not in name:
            (dim,) = {*dims} - {*SAMPLE_DIMS}
            made = f"['{name}']].rename({ {name: WEIGHTS, dim: 'feature'} })"
    call = f"{_VARIABLES}[{made}.assign_coords(feature=features)"
    names = "with these variables and the names of their features"
    take = "only compare, check and trace take any variables; if some are weights, take"
    return f"{take} {call} {names}, where data is the posterior or arviz.from_netcdf(path)"


def find_draws(group: Group) -> dict[str, Any]:
    """Return the arrays of a group that have chains and draws, those dimensions first."""
    return {
        name: np.moveaxis(values, [group.dims[name].index(dim) for dim in SAMPLE_DIMS], (0, 1))
        for name, values in group.arrays.items()
        if {*SAMPLE_DIMS} <= set(group.dims[name])
    }


def _find_sentence_sites(group: Group) -> tuple[str, ...]:
    """Return the observed sites with one value per sentence; other programs may have one site."""
    named = [name for name, dims in group.dims.items() if dims[2:] == ("sentence",)]
    single = [name for name, dims in group.dims.items() if len(dims) == 3]
    return tuple(named or (single if len(single) == 1 else [n for n in single if n == _ORACLE]))


def _read_constants(group: Group, features: tuple[str, ...]) -> tuple[dict[str, Any], Weights]:
    """Return the constants and the fixed weights."""
    for name in _OF_FEATURES & set(group.coords):
        if tuple(map(str, np.ravel(group.coords[name]))) != features:
            message = f"constant_data is not of the features {list_names(features)}: adapt again"
            raise DataError(message, code="mismatch")
    constants = dict(group.arrays)
    fixed, names = constants.pop(_FIXED, np.zeros(0)), group.coords.get("fixed_feature", ())
    if len(names) != len(fixed) or fixed.dtype.kind not in "iuf":
        problem = "the fixed weights are not numbers with names (fixed_feature): adapt again"
        raise DataError(problem, code="bad-name")
    return constants, Weights(zip(map(str, names), fixed.tolist(), strict=True), "the posterior")


def _name_dimensions(group: Group, features: int) -> dict[str, Any]:
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
    counted = {
        dim for dim, v in labels.items() if v.dtype.kind in "iu" and np.all(v == np.arange(len(v)))
    }
    coords = {dim: tuple(map(str, v)) for dim, v in labels.items() if dim not in counted}
    return {"dims": dims, "coords": coords}


def read_flat(recorded: Mapping[Any, Any]) -> dict[str, int]:
    """Return the sites with cells that the density does not depend on, as a posterior records.

    >>> read_flat({"cells_without_density": '{"y_unobserved": 40}'})
    {'y_unobserved': 40}
    """
    flat: dict[str, int] = _decode(recorded.get("cells_without_density", "{}"))
    return flat


def _decode(value: Any) -> Any:
    """Decode an attribute stored as JSON; those of other programs are returned as they are."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value.item() if isinstance(value, np.generic) else value

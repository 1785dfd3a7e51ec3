"""Draws to and from ArviZ's data: the only module that uses its groups.

Groups: `posterior`, `prior`, `sample_stats`, `log_likelihood` (one variable per observed site),
`log_prior` (one per sampled site and per factor, or their sum), `observed_data`, `constant_data`,
`warmup_posterior` for samplers with a warm-up, and `posterior_predictive` where it is asked for. A
model names the dimensions of its sites in its attribute `dims`. The attributes are those of
`bpa_ppl.posterior.record`, and those that others attach to a record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.arviz_functions import split_groups, to_arviz_data, to_datasets
from bpa_ppl.posterior.draws import Draws, HasDraws, check_finite, total, unwrap
from bpa_ppl.posterior.groups import OTHER_PROGRAMS, SAMPLE_DIMS, Group, label_groups
from bpa_ppl.posterior.record import from_attributes, read_version, to_attributes

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

    #: The type of a posterior as an argument.
    Posterior: TypeAlias = Draws | HasDraws | InferenceData

#: Of the files that are written, and the oldest that is read: versions 1 and 2 were those of states
#: before the release of 1.0, with other names of features. `tests/posterior/test_schema.py` holds
#: what a version records, and says when it has to be raised.
SCHEMA_VERSION, _OLDEST = 3, 3
SCHEMA = "schema_version"
_DENSITY, LOG_WEIGHT = "lp", "log_weight"
#: The prior of all sites together, as Stan's packages call it.
_JOINT = "lprior"
_SITES, _MAIN = "sites", "main_sites"
_PACKAGE = "bpa_ppl"


def to_arviz(draws: Draws | HasDraws) -> InferenceData:
    """Return draws as ArviZ's data: InferenceData with ArviZ 0.x, otherwise a DataTree.

    >>> draws = Draws({"theta": np.zeros((2, 10, 3))}, dims={"theta": ("school",)})
    >>> dict(to_arviz(draws)["posterior"].sizes)
    {'chain': 2, 'draw': 10, 'school': 3}
    """
    groups, attrs = to_groups(unwrap(draws))
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
    log_prior = draws.log_prior
    if draws.log_likelihood and draws.log_density is not None and not log_prior:
        with np.errstate(invalid="ignore"):  # unknown where both are −∞
            prior = draws.log_density - total(draws.log_likelihood, draws.shape)
        log_prior = {draws.sites[0] if len(draws.sites) == 1 else _JOINT: prior}
    attrs = to_attributes(draws.record)
    attrs |= {"kind": draws.kind, _SITES: list(draws.sites), SCHEMA: SCHEMA_VERSION}
    if draws.main:
        attrs[_MAIN] = list(draws.main)
    groups = {  # in ArviZ's order
        "posterior": draws.values,
        "posterior_predictive": draws.predictive,
        "log_likelihood": draws.log_likelihood,
        "log_prior": log_prior,
        "sample_stats": statistics,
        "prior": draws.prior,
        "observed_data": draws.observed,
        "constant_data": draws.constants,
        "warmup_posterior": draws.warmup,
    }
    for name, value in attrs.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            attrs[name] = json.dumps(value)
    return label_groups(groups, draws.coords, draws.dims), attrs


def as_draws(posterior: Posterior, *, finite: bool = True) -> Draws:
    """Return ArviZ's data, or `Draws`, as `Draws` of its variables that are numbers.

    Raises:
        DataError: if there are no draws, one is not a finite number (unless `finite` is false), or
            the parts of the posterior do not fit together.
        UsageError: if it is not a posterior.

    >>> from xarray import Dataset, DataTree
    >>> data = Dataset({"mu": (("chain", "draw"), np.zeros((2, 10)))})
    >>> as_draws(DataTree.from_dict({"posterior": data})).names
    ('mu',)
    """
    draws = unwrap(posterior)
    if not isinstance(draws, Draws):
        draws = from_groups(*split_groups(draws))
    if finite:
        check_finite(draws)
    return draws


def from_groups(groups: Mapping[str, Group], recorded: Mapping[Any, Any]) -> Draws:
    """Return the groups of any posterior, and what it records as attributes, as draws."""
    draws = {name: find_draws(group) for name, group in groups.items()}
    values = {n: x for n, x in draws.get("posterior", {}).items() if x.dtype.kind in "biuf"}
    if not values:
        group = groups.get("posterior", Group({}, {}, {}, {}))
        if group.arrays and not draws["posterior"]:
            raise DataError(describe_dims(group, next(iter(group.arrays))), code="wrong-length")
        message = f"no variable with numbers (groups: {list_names(groups) or 'none'}): give draws "
        raise DataError(f"{message}of a posterior", code="no-data")
    statistics = draws.get("sample_stats", {})
    attrs = {str(key): _decode(value) for key, value in recorded.items()}
    of_group = {str(key): _decode(value) for key, value in groups["posterior"].attrs.items()}
    if foreign := SCHEMA not in attrs:  # other programs may have statistics that are texts
        statistics = {n: x for n, x in statistics.items() if x.dtype.kind in "biuf"}
    _require_schema(attrs.pop(SCHEMA, SCHEMA_VERSION), attrs.get("versions"))

    def of_sites(group: str) -> dict[str, Any]:
        """Return draws of the sites; arrays of another shape are from another model."""
        arrays = ((n, x) for n, x in draws.get(group, {}).items() if n in values)
        return {name: x for name, x in arrays if x.shape[2:] == values[name].shape[2:]}

    nothing = Group({}, {}, {}, {})
    constants = groups.get("constant_data", nothing)
    dims, coords = _name_dimensions(groups)
    recorded_main = None if foreign else attrs.pop(_MAIN, None)
    main = _find_main(recorded_main, groups["posterior"])
    for dim in {dim for site in main for dim in dims.get(site, ())} & constants.coords.keys():
        labels = coords.get(dim, constants.coords[dim])
        if not np.array_equal(constants.coords[dim], labels):
            problem = f"constant_data is not of the {dim} {list_names(labels)}: make the "
            raise DataError(f"{problem}posterior again", code="mismatch")
    chains, kept = next(iter(values.values())).shape[:2]
    if foreign and 0 < kept < chains:
        raise exchanged("the posterior", chains, kept)
    log_prior = draws.get("log_prior", {})
    for name in [n for n, x in log_prior.items() if kept and x.shape[:2] != (chains, kept)]:
        shape = " × ".join(map(str, log_prior.pop(name).shape[:2]))
        warn_user(f"log_prior of {name} is left out: it has {shape} draws, not {chains} × {kept}")
    log_weight = statistics.pop(LOG_WEIGHT, None)
    sites = attrs.pop(_SITES, None)
    return Draws(
        values,
        kind=attrs.pop("kind", "chains" if log_weight is None else "weighted"),
        log_weight=log_weight,
        log_density=statistics.pop(_DENSITY, None),
        log_likelihood=draws.get("log_likelihood", {}),
        log_prior=log_prior,
        predictive=draws.get("posterior_predictive", {}),
        statistics=statistics,
        warmup=of_sites("warmup_posterior"),
        prior=of_sites("prior"),
        sampled=tuple(sites) if isinstance(sites, list) and sites else None,
        main=main,
        dims=dims,
        coords=coords,
        observed=dict(groups.get("observed_data", nothing).arrays),
        constants=dict(constants.arrays),
        record=from_attributes(of_group | attrs, foreign=foreign),
    )


def _find_main(recorded: Any, group: Group) -> tuple[str, ...]:
    """Return the main sites of a posterior: those that it records.

    Files of earlier versions do not record them, nor do other programs: theirs are the weights of
    features, `weights` along `feature`.
    """
    if isinstance(recorded, list):
        return tuple(map(str, recorded))
    return ("weights",) if "feature" in group.dims.get("weights", ()) else ()


def _require_schema(schema: Any, versions: Any) -> None:
    """Refuse a posterior of another schema, whose entries may have another meaning.

    Raises:
        DataError: naming the version that wrote it, if that is recorded.
    """
    if isinstance(schema, int) and _OLDEST <= schema <= SCHEMA_VERSION:
        return
    writer = f"{_PACKAGE} {versions[_PACKAGE]}" if _names(versions, _PACKAGE) else _PACKAGE
    if isinstance(schema, int) and 0 < schema < _OLDEST:
        writer = f"a state of {_PACKAGE} before the release of 1.0"
    raise DataError(
        f"the posterior was written by {writer:.80}, in the schema version {schema!r:.80}, and "
        f"this {_PACKAGE} {read_version(_PACKAGE)} reads version {SCHEMA_VERSION}: adapt again, or "
        "install the version that wrote it",
        code="unknown-format",
    )


def _names(versions: Any, package: str) -> bool:
    return isinstance(versions, dict) and isinstance(versions.get(package), str)


def describe_dims(group: Group, name: str) -> str:
    """Return what is wrong with a variable without chains or draws, for a message.

    >>> describe_dims(Group({}, {"mu": ("draw",)}, {}, {}), "mu")
    'mu has the dimensions draw: it needs chain and draw, as ArviZ writes them; docs/how-to/...'
    """
    problem = f"{name} has the dimensions {list_names(group.dims[name]) or 'none'}: it needs chain"
    return f"{problem} and draw, as ArviZ writes them; {OTHER_PROGRAMS}"


def exchanged(name: str, chains: int, kept: int) -> DataError:
    """Return the error of more chains than draws."""
    problem = f"{name} has {chains} chains of {kept} draws: exchange chain and draw, or run fewer "
    return DataError(f"{problem}chains for longer; {OTHER_PROGRAMS}", code="wrong-length")


def find_draws(group: Group) -> dict[str, Any]:
    """Return the arrays of a group that have chains and draws, those dimensions first."""
    return {
        name: np.moveaxis(values, [group.dims[name].index(dim) for dim in SAMPLE_DIMS], (0, 1))
        for name, values in group.arrays.items()
        if {*SAMPLE_DIMS} <= set(group.dims[name])
    }


def _name_dimensions(
    groups: Mapping[str, Group],
) -> tuple[dict[str, tuple[str, ...]], dict[str, npt.NDArray[Any]]]:
    """Return the dimensions of arrays that have names, and their labels, as fields of Draws.

    Of two groups with an array of one name, the first has the dimensions.
    """
    dims: dict[str, tuple[str, ...]] = {}
    coords: dict[str, npt.NDArray[Any] | None] = {}
    for group in groups.values():
        for name, all_dims in group.dims.items():
            names = tuple(dim for dim in all_dims if dim not in SAMPLE_DIMS)
            labels = (group.coords.get(dim, np.zeros(0)) for dim in names)
            numbered = all(of_dim.dtype.kind in "iuf" for of_dim in labels)
            if not (numbered and all(dim.startswith(f"{name}_dim_") for dim in names)):
                dims.setdefault(name, names)
        for dim in {dim for name in group.dims for dim in dims.get(name, ())}:
            coords.setdefault(dim, group.coords.get(dim))
    return dims, {dim: labels for dim, labels in coords.items() if labels is not None}


def _decode(value: Any) -> Any:
    """Decode an attribute stored as JSON; those of other programs are returned as they are."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value.item() if isinstance(value, np.generic) else value

"""The variables that are compared: open the posteriors, take the common, drop, and stack."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, compress, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.names import find_positions, number_repeats
from bpa_ppl.errors import DataError, UsageError, list_names
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Draws, name_array
from bpa_ppl.posterior.opening import open_posterior, require_log_weights
from bpa_ppl.posterior.selection import (
    CONSTANT,
    INFINITE,
    NOT_NUMBERS,
    Reasons,
    describe_left_out,
    find_heavy,
    leave_out,
    select_variables,
)
from bpa_ppl.posterior.statistics import LARGEST

#: A variable that is one cell of an array: `theta[1]`, `theta[1,2]`, `theta.1.2`.
_CELL = re.compile(r"(.+?)(?:\[(\d+(?:, ?\d+)*)\]|\.(\d+(?:\.\d+)*))")

#: The relative precision of constants that are stored in float32.
_SINGLE = 1e-6


class _Variable(NamedTuple):
    """Draws of a variable, (C, D, K), its shape without chain and draw, and labels of cells."""

    values: npt.NDArray[Any]
    shape: tuple[int, ...]
    labels: list[str]
    numbered: bool  # cells have no other labels than numbers


class _Run(NamedTuple):
    """A run of a sampler: the sampler's name, the variables, and the draws.

    All variables are functions of the `parameters`; None if these are not recorded. The `main` ones
    are cells of the main sites. Texts and complex numbers are no variables.
    """

    sampler: str
    variables: dict[str, _Variable]
    parameters: set[str] | None
    draws: Draws
    main: tuple[str, ...]
    not_numbers: Sequence[str]


class Selection(NamedTuple):
    """Draws of the same variables from all posteriors.

    Attributes:
        runs: by sampler, the cells that are compared, such as `theta[3]`.
        recorded: by sampler, draws with all that is recorded of their data and model: of the
            cells of the main sites, if one of the posteriors records its parameters.
        left_out: a sentence on each kind of variables that are not compared, or only by quantiles.
        heavy: the cells without a variance in the reference, of which only quantiles are compared.
        incomplete: how many variables are compared, and which ones only some posteriors have; empty
            if the compared ones were chosen, or determine all others.
    """

    runs: dict[str, list[Draws]]
    recorded: dict[str, list[Draws]]
    left_out: tuple[str, ...]
    heavy: tuple[str, ...]
    incomplete: str


def select_comparable(
    posteriors: Mapping[str, Sequence[Any]],
    reference: str,
    var_names: Sequence[str] | None = None,
    *,
    log_weights: str | None = None,
) -> Selection:
    """Return draws of the same variables from all posteriors, and what is left out.

    Variables are matched by name. The cells of an array may be variables of their own in another
    posterior, such as `theta[1]` or `theta.1`, numbered from 0 or from 1, if all of them are there.

    A posterior may record its parameters, of which all its variables are functions, and the main
    sites. If there is one, all parameters are compared, and the main sites cell by cell.

    Left out are variables that not all posteriors have, discrete variables, cells that are not
    finite in all draws, cells that a posterior records as constants because its density does not
    depend on them, and cells that are constant in the reference.

    Args:
        posteriors: the runs of each sampler by its name, in any form that `open_posterior` takes.
        reference: the name of the one that the others are compared with.
        var_names: the variables to compare; None takes all that are common.
        log_weights: the variable with the importance weights of draws, or their logarithms.

    Raises:
        DataError: if there is nothing to compare, or the posteriors differ in shapes or labels.
        UsageError: if something is not a posterior, or does not have a variable of `var_names`, or
            none has `log_weights`.
    """
    runs = _open_runs(posteriors, log_weights, split=var_names is None)
    place = [run.sampler for run in runs].index(reference)
    expected, main = runs[place].variables, runs[place].main
    recorded: list[Draws] = []
    if var_names is None and any(run.draws.sampled for run in runs):
        recorded = [as_draws(select_variables(run.draws).draws) for run in runs]
    common, one_sided = _take_common(runs, expected, var_names)
    sites = [site for site in common for _ in expected[site].labels]
    labels = number_repeats(label for site in common for label in expected[site].labels)
    draws = [
        name_array(
            np.concatenate([_align(site, run, expected[site]) for site in common], axis=-1),
            labels,
            kind=run.draws.kind,
            log_weight=run.draws.log_weight,
            statistics=run.draws.statistics,
            observed=run.draws.observed,
            record=run.draws.record,
        )
        for run in runs
    ]
    # Cells of the main sites are not left out: the check refuses constant ones.
    kept, reasons = leave_out(sites, draws, [run.sampler for run in runs], reference, main)
    infinite = {why: of for why, of in reasons.items() if why.startswith(INFINITE)}
    if var_names and infinite:
        why, (label, *_) = next(iter(infinite.items()))
        problem = f"{label} is {why}: fix the sampler that drew it, or leave it out of var_names"
        raise DataError(problem, code="bad-number")
    for k in np.flatnonzero(kept & ~np.isin(labels, main)).tolist():
        largest = max(float(np.abs(run.array[..., k]).max()) for run in draws)
        if largest > LARGEST or 0 < largest < 1 / LARGEST:
            raise DataError(
                f"{labels[k]} has values up to {largest:.2g}, whose powers are no numbers in "
                f"float64: divide it by {largest:.0e} in all posteriors, or leave it out by "
                "var_names",
                code="bad-number",
            )
    for k in np.isin(labels, reasons.get(CONSTANT, ())).nonzero()[0].tolist():
        value = draws[place].array[0, 0, k]
        for run, of_run in zip(runs, draws, strict=True):
            if not np.isclose(of_run.array[..., k], value, rtol=_SINGLE, atol=0.0).all():
                raise DataError(
                    f"{labels[k]} is {value:g} in all draws of {reference}, but not in "
                    f"{run.sampler}: they differ in their model",
                    code="mismatch",
                )
    not_numbers = list(dict.fromkeys(chain.from_iterable(run.not_numbers for run in runs)))
    sentences = describe_left_out("compared", {NOT_NUMBERS: not_numbers, **reasons, **one_sided})
    if not kept.any():
        raise DataError("; ".join(["there is nothing to compare", *sentences]), code="no-data")
    coords = {"name": tuple(compress(labels, kept))}
    draws = [replace(of, values={"values": of.array[..., kept]}, coords=coords) for of in draws]
    incomplete = ""
    # What is not finite anywhere is as a constant; otherwise the posteriors differ in it.
    uneven = {why: of for why, of in infinite.items() if why != INFINITE}
    if one_sided or uneven:
        names = {v: expected[v].labels for v in common}
        incomplete = _describe_incomplete(len(draws[0].names), runs, names, one_sided, uneven)
    selected = _by_sampler(runs, draws)
    heavy = tuple(name for name in find_heavy(selected[reference]) if name not in main)
    if heavy:
        why = "as the tails of these draws are so heavy that mean and sd are not reliable"
        sentences += (f"compared by quantiles alone, {why}: {list_names(heavy)}",)
    checked = _by_sampler(runs, recorded or [_split_sites(of) for of in draws])
    return Selection(selected, checked, sentences, heavy, incomplete)


def _split_sites(draws: Draws) -> Draws:
    """Return draws whose cells are sites of their own, of which nothing is the main site."""
    cells = dict(zip(draws.names, np.moveaxis(draws.array, -1, 0), strict=True))
    return replace(draws, values=cells, sampled=draws.names, main=(), dims={}, coords={})


def _open_runs(
    posteriors: Mapping[str, Sequence[Any]], log_weights: str | None, *, split: bool
) -> list[_Run]:
    """Return all runs of all samplers with their variables.

    Args:
        posteriors: as for `select_comparable`.
        log_weights: as for `select_comparable`.
        split: whether each cell of the main sites is a variable, if all posteriors have them.

    Raises:
        UsageError: if no posterior has the variable `log_weights`.
    """
    opened = [
        (name, *open_posterior(data, name, log_weights=log_weights))
        for name, several in posteriors.items()
        for data in several
    ]
    require_log_weights(log_weights, *(draws for _, draws, _ in opened))
    split = split and all(draws.main for _, draws, _ in opened)
    return _join_cells(
        [_read(name, draws, of.get(NOT_NUMBERS, []), split) for name, draws, of in opened]
    )


def _read(sampler: str, draws: Draws, not_numbers: Sequence[str], split: bool) -> _Run:
    """Return the variables of a posterior; each main cell is one if `split`."""
    variables: dict[str, _Variable] = {}
    parameters = set[str]()
    main = draws.main_names if split else ()
    for site in dict.fromkeys((*(draws.main if split else ()), *draws.values)):
        array = np.asarray(draws.values[site])
        flat, shape = array.reshape(*array.shape[:2], -1), array.shape[2:]
        if split and site in draws.main:
            cells = enumerate(number_repeats(draws.label_cells(site)))
            variables |= {of: _Variable(flat[..., k, None], (), [of], True) for k, of in cells}
            continue
        labels = number_repeats(f"{site}[{label}]" for label in draws.label_cells(site))
        coords = (np.asarray(draws.coords.get(dim, 0)) for dim in draws.dims.get(site, ()))
        numbered = all(of_dim.dtype.kind in "iu" for of_dim in coords)
        name = number_repeats([*variables, site])[-1]
        variables[name] = _Variable(flat, shape, labels if shape else [site], numbered)
        if site in draws.sites:
            parameters.add(name)
    sampled = None if draws.sampled is None else {*main, *parameters}
    return _Run(sampler, variables, sampled, draws, main, not_numbers)


def _join_cells(runs: Sequence[_Run]) -> list[_Run]:
    """Replace cells such as `theta[1]` by the array that they make, if others have this array.

    They stay variables of their own unless each run has an array of the same shape, or all its
    cells: nothing says which cells of another shape correspond.
    """
    tables = [dict(run.variables) for run in runs]
    cells = [_find_cells(table) for table in tables]
    for base in dict.fromkeys(chain.from_iterable(cells)):
        names = [of.get(base, {}) for of in cells]
        pairs = list(zip(tables, names, strict=True))
        arrays = [_join(of, table) if of else table.get(base) for table, of in pairs]
        joined = [array for array in arrays if array is not None]
        same_shape = len(joined) == len(runs) and len({array.shape for array in joined}) == 1
        is_same = all(of == names[0] for of in names)
        if is_same or not same_shape or any(of and base in table for table, of in pairs):
            continue
        for (table, of), array in zip(pairs, joined, strict=True):
            for name in of:
                del table[name]
            table[base] = array
    return [run._replace(variables=table) for run, table in zip(runs, tables, strict=True)]


def _find_cells(table: Mapping[str, _Variable]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the index of each scalar whose name is that of a cell, by name, by array."""
    result: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, variable in table.items():
        if not variable.shape and (parts := _CELL.fullmatch(name)):
            base, with_commas, with_dots = parts.groups()
            index = re.split(r", ?|\.", with_commas or with_dots)
            result.setdefault(base, {})[name] = tuple(map(int, index))
    return result


def _join(cells: Mapping[str, tuple[int, ...]], table: Mapping[str, _Variable]) -> _Variable | None:
    """Return the array of cells that are numbered from 0 or 1; None if one is missing."""
    names = sorted(cells, key=lambda name: cells[name])
    first, last = cells[names[0]], cells[names[-1]]
    shape = tuple(b - a + 1 for a, b in zip(first, last, strict=False))
    if {*first} not in ({0}, {1}) or math.prod(shape) != len(names):
        return None
    grid = product(*(range(a, b + 1) for a, b in zip(first, last, strict=False)))
    if [cells[name] for name in names] != list(grid):
        return None
    values = np.concatenate([table[name].values for name in names], axis=-1)
    return _Variable(values, shape, names, numbered=True)


def _take_common(
    runs: Sequence[_Run], expected: Mapping[str, _Variable], var_names: Sequence[str] | None
) -> tuple[list[str], Reasons]:
    """Return the variables to compare, which all posteriors have, and those of only some.

    Functions of the parameters are left out, if all posteriors record what these are. The others
    are returned by who has them: `a has`, `a and b have`; none if `var_names` chooses.

    Raises:
        DataError: if there is none.
        UsageError: if one of `var_names` is missing.
    """
    common = [v for v in expected if all(v in run.variables for run in runs)]
    if var_names is not None and {*var_names} <= {*common}:
        return list(dict.fromkeys(var_names)), {}
    has = {run.sampler: list_names(run.variables) or "none" for run in runs}
    described = "; ".join(f"{name} has {variables}" for name, variables in has.items())
    for missing in (v for v in var_names or () if v not in common):
        problem = f"not all posteriors have the variable {missing}: {described}"
        raise UsageError(problem, parameter="var_names", code="bad-name")
    if not common:
        message = f"no variable that the posteriors have in common: {described}"
        raise DataError(message, code="no-data")
    one_sided: Reasons = {}
    for name in dict.fromkeys(chain.from_iterable(run.variables for run in runs)):
        if name not in common:
            owners = list(dict.fromkeys(run.sampler for run in runs if name in run.variables))
            one_sided.setdefault(f"only in {' and '.join(owners)}", []).append(name)
    parameters = [run.parameters for run in runs]
    needed = [v for v in common if any(of is None or v in of for of in parameters)]
    return needed, one_sided


def _align(name: str, run: _Run, expected: _Variable) -> Float64:
    """Return the draws of a variable with its cells in the order of the reference."""
    variable = run.variables[name]
    if variable.shape != expected.shape:
        raise DataError(
            f"{name} of {run.sampler} has the shape {variable.shape}, but in the others it is "
            f"{expected.shape}",
            code="mismatch",
        )
    values = variable.values.astype(np.float64)
    if {*variable.labels} == {*expected.labels}:
        return values[..., find_positions(expected.labels, variable.labels)]
    if not (variable.numbered or expected.numbered):
        ours, theirs = (one.labels[0] for one in (variable, expected))
        raise DataError(
            f"the cells of {name} in {run.sampler} have labels such as {ours}, but those of the "
            f"others are such as {theirs}",
            code="mismatch",
        )
    return values


def _describe_incomplete(
    count: int,
    runs: Sequence[_Run],
    common: Mapping[str, Sequence[str]],
    one_sided: Reasons,
    uneven: Reasons,
) -> str:
    """Return how many variables are compared, and why the others are not.

    Empty if the compared variables determine all others. `one_sided` are variables, and `uneven`
    cells, that only some posteriors have.
    """
    without = {*chain.from_iterable(uneven.values())}
    finite = {v for v, labels in common.items() if without.isdisjoint(labels)}
    if any(run.parameters and run.parameters <= finite for run in runs):
        return ""
    sizes = {v: len(of.labels) for run in runs for v, of in run.variables.items()}
    total = sum(sizes[v] for v in {*common, *chain.from_iterable(one_sided.values())})
    reasons = [f"{list_names(of)} is {why}" for why, of in {**one_sided, **uneven}.items()]
    return f"{count} of {total} variables were compared, because {' and '.join(reasons)}"


def _by_sampler(runs: Sequence[_Run], draws: Sequence[Draws]) -> dict[str, list[Draws]]:
    result: dict[str, list[Draws]] = {}
    for run, of in zip(runs, draws, strict=True):
        result.setdefault(run.sampler, []).append(of)
    return result

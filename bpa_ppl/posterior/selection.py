"""Which variables of posteriors are checked, compared and drawn, and why the others are not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import compress, groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.draws import Draws, kish, name_array
from bpa_ppl.posterior.statistics import count_moments, ess, estimate_tail_shapes

#: Why variables or cells are left out -> their names.
Reasons = dict[str, list[str]]
#: Why variables are left out.
NOT_NUMBERS, DISCRETE = "not real-valued", "discrete"
INFINITE, CONSTANT = "not finite", "constant"
FLAT = "values that the density does not depend on"


class Opened(NamedTuple):
    """Draws of a posterior of any program.

    Attributes:
        draws: of its variables, or of those that were chosen.
        left_out: why variables are left out -> their names; empty if variables are chosen.
    """

    draws: Draws
    left_out: Reasons


def leave_out(
    sites: Sequence[str],
    runs: Sequence[Draws],
    samplers: Sequence[str],
    reference: str | None = None,
    keep: Collection[str] = (),
) -> tuple[npt.NDArray[np.bool_], Reasons]:
    """Return which cells are variables to check or compare, (K,), and why the others are not.

    A site is discrete if its draws are whole numbers below 2^52 that vary. A cell is left out if a
    draw is not finite, if a posterior records that its density does not depend on it, or if it is
    the same in all draws of the reference.

    Args:
        sites: (K,) the site of each cell; the cells of a site follow each other.
        runs: the draws of these cells.
        samplers: of each run.
        reference: the sampler that the others are compared with; None if none are.
        keep: the sites of which nothing is left out.

    >>> draws = Draws({"z": np.array([[0.0, 1.0]]), "x": np.array([[0.5, 1.0]])})
    >>> leave_out(("z", "x"), [draws], ["a"])
    (array([False,  True]), {'discrete': ['z']})
    """
    names, arrays, reasons = runs[0].names, [run.array for run in runs], Reasons()
    exempt, kept = np.isin(sites, [*keep]), np.ones(len(names), bool)

    def leave(cells: npt.ArrayLike, why: str) -> None:
        if (places := np.flatnonzero(np.asarray(cells) & kept & ~exempt)).size:
            reasons.setdefault(why, []).extend(names[k] for k in places.tolist())
            kept[places] = False

    varies = np.array([np.any(x != x[:1, :1], axis=(0, 1)) for x in arrays])
    whole = np.array([np.all((x == np.floor(x)) & (abs(x) < 2.0**52), (0, 1)) for x in arrays])
    for site, of_site in groupby(range(len(names)), key=sites.__getitem__):
        cells = [*of_site]
        if (whole[:, cells].all(axis=1) & varies[:, cells].any(axis=1)).any() and site not in keep:
            reasons.setdefault(DISCRETE, []).append(site)
            kept[cells] = False
    infinite = np.array([~np.isfinite(x).all(axis=(0, 1)) for x in arrays])
    for of_runs in np.unique(infinite, axis=1).T:
        if owners := [*dict.fromkeys(compress(samplers, of_runs))]:
            where = "" if len(owners) == len({*samplers}) else f" in {' and '.join(owners)}"
            leave(np.all(of_runs == infinite.T, axis=1), f"{INFINITE}{where}")
    for run, moves in zip(runs, varies, strict=True):
        leave(~moves & np.isin(sites, [*run.record.flat]), FLAT)
    of_reference = [reference in (None, name) for name in samplers]
    leave(~varies[of_reference].any(axis=0), CONSTANT)
    return kept, reasons


def find_heavy(runs: Sequence[Draws]) -> tuple[str, ...]:
    """Return the cells without a variance, as their tails are so heavy.

    >>> values = np.random.default_rng(0).standard_cauchy((4, 1000, 1))
    >>> find_heavy([name_array(values, ("x",))]), find_heavy([name_array(np.cbrt(values), ("x",))])
    (('x',), ())
    """
    length = min(run.shape[1] for run in runs)
    x = np.concatenate([run.array[:, :length] for run in runs])
    logs = [run.log_weight[:, :length] for run in runs if run.log_weight is not None]
    if len(logs) == len(runs):
        names = [str(k) for k in range(x.shape[-1])]
        weighted = name_array(x, names, kind="weighted", log_weight=np.concatenate(logs))
        x = weighted.resampled().array
        share = np.full(x.shape[-1], kish(weighted.importance) / len(weighted.flat))
    else:
        share = np.nan_to_num(np.minimum(ess(x), ess(x, "tail"))) / x[..., 0].size
    heavy = count_moments(*estimate_tail_shapes(x, share)) < 2
    return tuple(compress(runs[0].names, heavy))


def select_variables(draws: Draws, var_names: Sequence[str] = ()) -> Opened:
    """Return draws of the continuous variables of another program, and why others are left out.

    Args:
        draws: the draws; those that record which sites were sampled are returned as they are.
        var_names: variables, or single cells such as `theta[3]`, of which nothing is left out.

    Raises:
        DataError: if there is none.
    """
    if draws.sampled is not None or draws.main:
        return Opened(draws, {})
    cells = replace(draws, sampled=tuple(draws.values)).cells
    kept, left_out = leave_out(
        cells.sites,
        [name_array(cells.values, cells.names, record=draws.record)],
        [""],
        keep={name.partition("[")[0] for name in var_names},
    )
    if not kept.any():  # the check fails for cells that are constant or not finite
        discrete = left_out.get(DISCRETE, [])
        left_out = {DISCRETE: discrete}
        kept = ~np.isin(cells.sites, discrete)
        if not kept.any():
            raise describe_nothing(left_out)
    if kept.all():
        return Opened(draws, left_out)
    broken = {*compress(cells.sites, ~kept)}
    values = {site: array for site, array in draws.values.items() if site not in broken}
    for k in np.flatnonzero(kept).tolist():
        if cells.sites[k] in broken:
            values[cells.names[k]] = cells.values[..., k]
    return Opened(replace(draws, values=values), left_out)


def describe_nothing(left_out: Reasons) -> DataError:
    """Return the error of a posterior without variables to check."""
    reasons = "; ".join(describe_left_out("checked", left_out))
    message = f"no continuous variable: {reasons}; give draws of continuous ones"
    return DataError(message, code="no-data")


def describe_left_out(done: str, reasons: Reasons) -> tuple[str, ...]:
    """Return a sentence on each kind of variables that something is not done with.

    >>> describe_left_out("checked", {"discrete": ["k", "z"], "not finite": []})
    ('not checked, because they are discrete: k, z',)
    """
    return tuple(
        f"not {done}, because {'it is' if len(names) == 1 else 'they are'} {why}: "
        + list_names(names)
        for why, names in reasons.items()
        if names
    )

"""The runs of a sampler as chains of one, and nearly independent draws of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Arrays, Draws, kish
from bpa_ppl.posterior.statistics import ess

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

_MIN_DRAWS = 10  # per chain: diagnostics of fewer are meaningless
_LEFT = 0.3  # autocorrelations of thinned draws, summed over the variables


def concatenate_runs(posteriors: Sequence[Posterior]) -> Draws:
    """Concatenate the runs of one sampler, as chains, with what a check of them needs.

    Args:
        posteriors: draws with different seeds. Runs that are longer than others, as
            those of `auto` may be, are thinned.

    Raises:
        DataError: if the runs differ in their cells, have fewer than ten draws per chain, a draw
            that is not finite, or only partly importance weights.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> runs = np.random.default_rng(0).normal(size=(2, 2, 50, 1))
    >>> concatenate_runs([name_array(run, ("LM0",)) for run in runs]).shape
    (4, 50)
    """
    runs = [as_draws(posterior) for posterior in posteriors]
    if len({(run.names, run.weighted) for run in runs}) > 1:
        problem = "the runs of one sampler must agree in variables and log_weight"
        raise DataError(problem, code="mismatch")
    length = min(run.shape[1] for run in runs)
    if length < _MIN_DRAWS:
        message = f"{length} draws per chain, but a comparison needs {_MIN_DRAWS}: raise draws"
        raise DataError(message, code="wrong-length")

    def together(arrays: Sequence[Arrays]) -> dict[str, npt.NDArray[Any]]:
        common = [name for name in arrays[0] if all(name in other for other in arrays)]
        thinned = {name: [_thin(other[name], length) for other in arrays] for name in common}
        return {name: np.concatenate(parts) for name, parts in thinned.items()}

    sites = {*runs[0].sites, *runs[0].main}
    values = together([{s: v for s, v in run.values.items() if s in sites} for run in runs])
    logs = together([{} if r.log_weight is None else {"log_weight": r.log_weight} for r in runs])
    k_hats = [run.record.figures.pareto_k for run in runs]
    largest = max((k_hat for k_hat in k_hats if k_hat is not None), default=None)
    figures = structs.replace(runs[0].record.figures, pareto_k=largest)
    return Draws(
        values,
        runs[0].kind,
        logs.get("log_weight"),
        statistics=together([run.statistics for run in runs]),
        sampled=tuple(site for site in runs[0].sites if site in values),
        main=runs[0].main,
        dims=runs[0].dims,
        coords=runs[0].coords,
        record=structs.replace(runs[0].record, figures=figures),
    )


def _thin(values: npt.ArrayLike, length: int) -> npt.NDArray[Any]:
    """Return so many draws of each chain, evenly spaced, (C, D, …) ↦ (C, length, …)."""
    array = np.asarray(values)
    return array[:, np.arange(length) * array.shape[1] // length]


def resample_independent(draws: Draws, count: int, rng: np.random.Generator) -> Float64:
    """Return `count` nearly independent draws, (count, Q), in random order.

    Chains are thinned evenly; weighted draws are resampled.
    """
    flat = draws.flat
    if draws.weighted:
        return flat[rng.choice(len(flat), size=count, p=draws.importance)]
    even = np.linspace(0, len(flat) - 1, count).round().astype(int)
    return np.asarray(flat[rng.permutation(even)])


def select_independent(draws: Draws, most: int, rng: np.random.Generator) -> Float64:
    """Return nearly independent draws without importance weights, (at most `most`, Q).

    Chains are thinned evenly, k autocorrelation times apart: those of the variable, or square of a
    variable, with the smallest ESS. Of a first-order process the autocorrelation that is left is
    exp(−2 k). A distance over Q variables sums it, so that k is at least 2, and with many variables
    such that Q exp(−2 k) is 0.3. Of weighted draws every second one, as proposals may
    come in antithetic pairs, is accepted with a probability proportional to its importance weight.
    The largest ones are the exception: so that half of the ESS is left, they may be accepted
    several times.

    >>> rng = np.random.default_rng(0)
    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array(rng.normal(size=(4, 100, 1)), ("LM0",))
    >>> len(select_independent(draws, 50, rng)), len(select_independent(draws, 500, rng)) <= 200
    (50, True)
    """
    flat = draws.flat
    if draws.weighted:
        start = int(rng.integers(2))
        share = draws.importance[start::2]
        # The count that rejection sampling gives, or half of the ESS, if that is more.
        count = max(share.sum() / share.max(), kish(share / share.sum()) / 2)
        copies = (count * share / share.sum() + rng.uniform(size=len(share))).astype(int)
        accepted = rng.permutation(np.repeat(flat[start::2], copies, axis=0))
        return np.asarray(accepted[:most])
    squares = (draws.array - flat.mean(axis=0)) ** 2
    moved = np.ptp(flat, axis=0) > 0
    sizes = [np.where(moved, np.nan_to_num(ess(x, "mean")), 0) for x in (draws.array, squares)]
    apart = max(2.0, np.log(len(draws.names) / _LEFT) / 2)
    count = int(min(np.min(sizes), len(flat)) / apart)
    return resample_independent(draws, max(1, min(count, most)), rng)

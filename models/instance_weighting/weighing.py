"""From counts and features to a phrase table that is weighted for a domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bpa_ppl.models.instance_weighting.fitting import Fitted, fit
from bpa_ppl.models.instance_weighting.mixture import PhiPrior, Variant
from bpa_ppl.models.instance_weighting.posterior import laplace, mean_probabilities
from bpa_ppl.models.instance_weighting.problem import problem_of
from bpa_ppl.nbest import Float32
from bpa_ppl.phrases.mixtures import DIRECTIONS, pairs_of_both
from bpa_ppl.phrases.pairs import PhrasePairs
from bpa_ppl.phrases.tables import PhraseCounts, PhraseTable

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


class WeightedTable(NamedTuple):
    """A weighted table and the fits that it was computed from.

    Attributes:
        table: the pairs of IN and OUT, with the columns `direct`, p(t|s), and `inverse`, p(s|t).
        fits: the fitted mixture of each column.
        posteriors: the posterior of each column's φ, if draws were requested.
    """

    table: PhraseTable
    fits: Mapping[str, Fitted]
    posteriors: Mapping[str, InferenceData]


def weigh(
    inside: PhraseCounts,
    outside: PhraseCounts,
    dev: PhraseCounts,
    features: Float32,
    names: tuple[str, ...],
    variant: Variant | None = None,
    *,
    prior: PhiPrior | None = None,
    draws: int = 0,
    seed: int = 0,
    batch: int = 1 << 19,
) -> WeightedTable:
    """Return the table of p(t|s) and p(s|t) under a weighted mixture, each fitted to dev.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        dev: counts of other text of the domain, to fit φ on.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        variant: the form of the mixture; None is the weighted MAP one.
        prior: of φ; None is maximum likelihood, as published.
        draws: of the posterior, around its mode; the probabilities are then means over them.
        seed: of the draws.
        batch: pairs whose probabilities are computed at once; their features in OUT are copied.

    Raises:
        DataError: if the tables and features do not fit, or no pair of dev is in the tables.
    """
    variant, fitted, posteriors, columns = variant or Variant(), {}, {}, {}
    pairs = pairs_of_both(inside, outside)
    for name, side in DIRECTIONS.items():
        problem = problem_of(inside, outside, dev, features, names, side)
        fitted[name] = fit(problem, variant, prior=prior)
        if draws:
            posteriors[name] = laplace(problem, variant, prior=prior, draws=draws, seed=seed)
        columns[name] = np.zeros(len(pairs))
        for rows in _batches(pairs.number("source" if side == "target" else "target"), batch):
            part = PhrasePairs(pairs.sources, pairs.targets, pairs.source[rows], pairs.target[rows])
            query = problem_of(inside, outside, part, features, names, side)
            columns[name][rows] = (
                mean_probabilities(posteriors[name], query, variant)
                if draws
                else fitted[name].probabilities(query)
            )
    return WeightedTable(PhraseTable.on(pairs, columns), fitted, posteriors)


def _batches(condition: np.ndarray, size: int) -> list[np.ndarray]:
    """Return the pairs in sorted batches of about this size; all pairs of one y are in one."""
    order = np.argsort(condition, kind="stable")
    starts = np.flatnonzero(np.diff(condition[order], prepend=-1))
    cuts = starts[np.searchsorted(starts, np.arange(size, len(order), size), side="right") - 1]
    return [np.sort(part) for part in np.split(order, np.unique(cuts)) if len(part)]

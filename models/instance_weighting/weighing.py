"""From counts and features to a table of probabilities that is weighted for a domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bpa_ppl.models.instance_weighting.fitting import Fitted, fit
from bpa_ppl.models.instance_weighting.priors import PhiPrior
from bpa_ppl.models.instance_weighting.problem import Problem, problem_of
from bpa_ppl.models.instance_weighting.variants import Variant
from bpa_ppl.nbest import Float32
from bpa_ppl.phrases.mixtures import DIRECTIONS, pairs_of_both
from bpa_ppl.phrases.pairs import PhrasePairs
from bpa_ppl.phrases.tables import PhraseCounts, PhraseTable

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Pairs whose probabilities are computed at once: their OUT rows are copied, features and all.
_PAIRS = 1 << 19


class Weighed(NamedTuple):
    """A weighted table and how it was made.

    Attributes:
        table: the pairs of IN and OUT, with the columns `direct`, p(t|s), and `inverse`, p(s|t).
        fits: the fitted mixture of each column.
        posteriors: the posterior of each column's φ, where asked for.
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
) -> Weighed:
    """Return the table of p(t|s) and p(s|t) under a weighted mixture, each fitted to dev.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        dev: counts of other text of the domain, to fit φ on.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        variant: the form of the mixture; None is the weighted MAP one.
        prior: of φ; None is maximum likelihood, as published.
        draws: of the posterior, around its mode: the probabilities are then the means over it.
        seed: of the draws.

    Raises:
        DataError: if the tables and features do not fit, or no pair of dev is in the tables.
    """
    form, fits, posteriors, columns = variant or Variant(), {}, {}, {}
    pairs = pairs_of_both(inside, outside)
    for name, side in DIRECTIONS.items():
        problem = problem_of(inside, outside, dev, features, names, side)
        fits[name] = fit(problem, form, prior=prior)
        if draws:
            from bpa_ppl.models.instance_weighting.posterior import laplace

            posteriors[name] = laplace(problem, form, prior=prior, draws=draws, seed=seed)
        columns[name] = np.zeros(len(pairs))
        given = pairs.number("source" if side == "target" else "target")
        for rows in _parts(given):
            part = PhrasePairs(pairs.sources, pairs.targets, pairs.source[rows], pairs.target[rows])
            asked = problem_of(inside, outside, part, features, names, side)
            columns[name][rows] = _probabilities(asked, fits[name], posteriors.get(name))
    return Weighed(PhraseTable.on(pairs, columns), fits, posteriors)


def _parts(given: np.ndarray) -> list[np.ndarray]:
    """Return the pairs in parts that are not large; those of one y are in one of them, sorted."""
    order = np.argsort(given, kind="stable")
    starts = np.flatnonzero(np.diff(given[order], prepend=-1))
    cuts = starts[np.searchsorted(starts, np.arange(_PAIRS, len(order), _PAIRS), side="right") - 1]
    return [np.sort(part) for part in np.split(order, np.unique(cuts)) if len(part)]


def _probabilities(problem: Problem, fitted: Fitted, posterior: InferenceData | None) -> np.ndarray:
    if posterior is None:
        return fitted.probabilities(problem)
    from bpa_ppl.models.instance_weighting.posterior import mean_probabilities

    return mean_probabilities(posterior, problem, fitted.variant)

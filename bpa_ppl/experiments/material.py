"""The lists of a domain, read once in each process and shared by all cells of the domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.experiments.grid import random_source
from bpa_ppl.experiments.study import Domain, Study, Text
from bpa_ppl.formats import read_nbest, read_weights
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality.statistics import COUNTED, statistics
from bpa_ppl.weights import Weights, match

_DOMAINS = 2  # kept in memory at once


@dataclass(frozen=True, eq=False)
class Material:
    """What the cells of a domain have in common.

    Attributes:
        pool: the lists from which A is drawn.
        test: the lists that are translated.
        weights: λ_T, for each feature of the lists.
        counts: for each metric (hypotheses of `test`, S), as `bpa_ppl.quality.statistics`.
    """

    pool: NBest
    test: NBest
    weights: Weights
    counts: dict[str, Float64]

    def counts_of(self, choice: Int64) -> dict[str, Float64]:
        """Return (sentences, S) of the hypotheses chosen, by metric."""
        rows = self.test.offsets[:-1] + choice
        return {metric: counts[rows] for metric, counts in self.counts.items()}


@lru_cache(_DOMAINS)
def material(study: Study, domain: Domain, size: int = 0) -> Material:
    """Read the lists of a domain, cut to their first `size` hypotheses unless it is 0.

    Raises:
        DataError: if the files are not as they should be, do not fit together, or have too few
            sentences.
    """
    pool = _read(domain.adapt, size)
    pool, test = (
        _split(study, domain, pool) if domain.test is None else (pool, _read(domain.test, size))
    )
    matched = match(read_weights(domain.weights), pool)
    if test.feature_names != pool.feature_names:
        raise DataError(f"{test.source} has other features than {pool.source}", domain.weights)
    _check_size(study, domain, pool)
    return Material(
        pool,
        test,
        Weights(zip(matched.names, matched.values, strict=True), str(domain.weights)),
        {metric: statistics(test, metric).counts for metric in COUNTED},
    )


@lru_cache(1)
def development(study: Study) -> NBest:
    """Return the lists of the out-of-domain development set.

    Raises:
        DataError: if the files are not as they should be.
        UsageError: if the study has none.
    """
    if study.development is None:
        raise UsageError("the study has no development set: add [development]")
    return _read(study.development)


def _read(text: Text, size: int = 0) -> NBest:
    """Read lists with references, cut to their first `size` hypotheses unless it is 0."""
    lists = read_nbest(text.nbest, references=list(text.references), first_id=text.first_id)
    return lists.truncate(size) if size else lists


def _split(study: Study, domain: Domain, pool: NBest) -> tuple[NBest, NBest]:
    """Take the held-out sentences from a pool."""
    if domain.held_out >= len(pool):
        raise DataError(
            f"{domain.held_out} of {len(pool)} sentences cannot be held out: hold out fewer",
            pool.source,
        )
    order = random_source(study, "held out", domain.name).permutation(len(pool))
    test, rest = np.split(order, [domain.held_out])
    return pool.select(np.sort(rest)), pool.select(np.sort(test))


def _check_size(study: Study, domain: Domain, pool: NBest) -> None:
    largest = max([*study.sizes, *(size for sweep in study.sweeps for size in sweep.sizes)])
    if largest > len(pool) and not study.replacement:
        raise DataError(
            f"the pool of {domain.name} has {len(pool)} sentences, too few to draw {largest} "
            "without replacement: ask for smaller sizes, or set replacement = true",
            pool.source,
        )

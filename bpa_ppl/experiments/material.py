"""The lists of a domain, read once in each process and shared by all cells of the domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.experiments.grid import random_source
from bpa_ppl.experiments.study import Domain, ListFiles, Study
from bpa_ppl.formats import read_nbest, read_weights
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality import by_name, demote_to_extras, statistics
from bpa_ppl.weights import Weights, match

_DOMAINS = 2  # kept in memory at once


@dataclass(frozen=True, eq=False)
class Material:
    """What the cells of a domain have in common.

    Attributes:
        adapt: the lists from which A is drawn.
        test: the lists that are translated.
        weights: λ_T, for each feature of the lists; None if there are none.
        counts: for each metric (hypotheses of `test`, S), as `bpa_ppl.quality.statistics`.
    """

    adapt: NBest
    test: NBest
    weights: Weights | None
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
    adapt = _read(domain.adapt, size, study.columns)
    if domain.test is None:
        adapt, test = _split(study, domain, adapt)
    else:
        test = _read(domain.test, size, study.columns)
    given = None if domain.weights is None else read_weights(domain.weights)
    matched, origin = match(given, adapt), str(domain.weights or "no weights")
    if test.feature_names != adapt.feature_names:
        raise DataError(f"{test.origin} has other features than {adapt.origin}", origin)
    largest = max(study.every_size)
    if largest > len(adapt) and not study.replacement:
        raise DataError(
            f"{domain.name} has {len(adapt)} sentences, too few to draw {largest} without "
            "replacement: ask for smaller sizes, or set replacement = true",
            adapt.origin,
        )
    return Material(
        adapt,
        test,
        None if given is None else Weights(zip(matched.names, matched.values, strict=True), origin),
        {metric: statistics(test, by_name(metric)).counts for metric in study.metrics},
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


def _read(files: ListFiles, size: int = 0, columns: tuple[str, ...] = ()) -> NBest:
    """Read lists with references, cut to their first `size` hypotheses unless it is 0.

    The columns are metrics, and no features.
    """
    references = list(files.references) or None
    lists = read_nbest(files.nbest, references=references, first_id=files.first_id)
    metrics = [by_name(column) for column in columns]
    apart = demote_to_extras(lists, [name for metric in metrics for name in metric.columns])
    return apart.truncate(size) if size else apart


def _split(study: Study, domain: Domain, lists: NBest) -> tuple[NBest, NBest]:
    """Take the sentences to be translated from the others: the others first."""
    if domain.held_out >= len(lists):
        raise DataError(
            f"{domain.held_out} of {len(lists)} sentences cannot be held out: hold out fewer",
            lists.origin,
        )
    order = random_source(study, "held out", domain.name).permutation(len(lists))
    test, rest = np.split(order, [domain.held_out])
    return lists.select(np.sort(rest)), lists.select(np.sort(test))

"""The table of probabilities under a weighted mixture, fitted in both directions."""

from __future__ import annotations

import numpy as np

from bpa_ppl.arrays import Float32
from bpa_ppl.models.instance_weighting.fitting import Fitted, fit
from bpa_ppl.models.instance_weighting.mixture import Variant, mixture_data
from bpa_ppl.phrases.mixtures import DIRECTIONS, check_tables, pairs_of_both
from bpa_ppl.phrases.tables import PhraseCounts, PhrasePairs, PhraseTable


def weigh(
    inside: PhraseCounts,
    outside: PhraseCounts,
    dev: PhraseCounts,
    features: Float32,
    names: tuple[str, ...],
    variant: Variant | None = None,
    *,
    prior_deviation: float | None = None,
    batch: int = 1 << 19,
) -> tuple[PhraseTable, dict[str, Fitted]]:
    """Return the table of p(t|s) and p(s|t) under a weighted mixture, each fitted to dev.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        dev: counts of other text of the domain, to fit φ on.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        variant: the form of the mixture; None is the weighted MAP one.
        prior_deviation: see `fit`; None is maximum likelihood, as published.
        batch: pairs whose probabilities are computed at once; their features in OUT are copied.

    Returns:
        the pairs of IN and OUT, with the columns `direct`, p(t|s), and `inverse`, p(s|t); and the
        fitted mixture of each column.

    Raises:
        DataError: if the tables and features do not fit, no pair of dev is in the tables, or
            languages are swapped.
        UsageError: if dev is IN itself, or IN and OUT are swapped.

    >>> from bpa_ppl.models.instance_weighting.mixture import variant_named
    >>> inside = PhraseCounts.of(["s", "s"], ["a", "b"], [3, 1])
    >>> outside = PhraseCounts.of(["s", "s"], ["b", "c"], [2, 2])
    >>> dev = PhraseCounts.of(["s", "s", "s"], ["a", "b", "c"], [4, 3, 1])
    >>> features = np.array([[1.0], [-1.0]], np.float32)
    >>> table, fits = weigh(inside, outside, dev, features, ("like-IN",), prior_deviation=1.0)
    >>> table.targets.to_pylist(), bool(np.isclose(table.columns["direct"].sum(), 1))
    (['a', 'b', 'c'], True)
    """
    check_tables(inside, outside, dev)
    variant, fitted, columns = variant or Variant(), {}, {}
    pairs = pairs_of_both(inside, outside)
    for name, side in DIRECTIONS.items():
        data = mixture_data(inside, outside, dev, features, names, side)
        fitted[name] = fit(data, variant, prior_deviation=prior_deviation)
        columns[name] = np.zeros(len(pairs))
        for rows in _batches(pairs.number("source" if side == "target" else "target"), batch):
            part = PhrasePairs(pairs.sources, pairs.targets, pairs.source[rows], pairs.target[rows])
            query = mixture_data(inside, outside, part, features, names, side)
            columns[name][rows] = fitted[name].probabilities(query)
    return PhraseTable.on(pairs, columns), fitted


def _batches(condition: np.ndarray, size: int) -> list[np.ndarray]:
    """Return the pairs in sorted batches of about this size; all pairs of one y are in one."""
    order = np.argsort(condition, kind="stable")
    changes = np.flatnonzero(np.diff(condition[order])) + 1
    after = np.searchsorted(changes, np.arange(size, len(order), size))
    cuts = changes[np.unique(after[after < len(changes)])]
    return [np.sort(part) for part in np.split(order, cuts)]

"""One feature of phrase pairs made of many: the side of a linear support vector machine."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bpa_ppl.errors import DataError, checked_seed, one_of
from bpa_ppl.nbest import Float32
from bpa_ppl.phrases.pair_features import normalised
from bpa_ppl.phrases.tables import PhraseCounts

#: What negative examples are: see `svm_feature`.
NEGATIVES = ("source", "no-common")
#: Of the column.
SVM = "svm"
_EXAMPLES = 100_000


def svm_feature(
    outside: PhraseCounts,
    inside: PhraseCounts,
    features: Float32,
    *,
    negatives: Literal["source", "no-common"] = "source",
    cost: float = 1.0,
    examples: int = _EXAMPLES,
    seed: int = 0,
) -> Float32:
    """Return the decision values of a linear SVM that tells pairs of IN from others.

    Foster et al. (2010), Section 3.4. Positive examples are the pairs that both tables have; both
    classes weigh the same.

    Args:
        outside: the counts of phrase pairs of OUT.
        inside: those of IN.
        features: (pairs of OUT, Q).
        negatives: `source`, the pairs of OUT that are not in IN and whose source phrase is;
            `no-common`, only those of them whose source phrase has no translation in common.
        cost: C of the SVM.
        examples: the most that are learned from; of more, so many are drawn.
        seed: of the draw.

    Returns:
        (pairs of OUT, 1) float32, with mean 0 and variance 1.

    Raises:
        DataError: if there are no examples of one of the two classes.
        UsageError: if the negative examples are of another kind.
    """
    from sklearn.svm import LinearSVC

    one_of(negatives, NEGATIVES, "negative examples")
    seed = checked_seed(seed)
    common = inside.rows_of(outside) >= 0
    known = inside.numbers_of("source", outside.sources)
    source_known = np.append(inside.source_count, 0)[known][outside.source] > 0
    negative = source_known & ~common
    if negatives == "no-common":
        shared = np.bincount(outside.source, common, len(outside.sources)) > 0
        negative &= ~shared[outside.source]
    if not common.any() or not negative.any():
        missing = (
            "is in both tables" if not common.any() else "is of OUT alone, with a source of IN"
        )
        raise DataError(f"an SVM needs examples of two kinds: no phrase pair {missing}")
    rows = np.flatnonzero(common | negative)
    if len(rows) > examples:
        rows = np.sort(np.random.default_rng(seed).choice(rows, examples, replace=False))
    machine = LinearSVC(C=cost, class_weight="balanced", dual=False, random_state=seed)
    machine.fit(features[rows], common[rows])
    decision = np.asarray(machine.decision_function(features), np.float64)
    return normalised(decision)[:, None].astype(np.float32)

"""Phrases: log-probabilities, in a phrase table, of the pairs that a candidate was built from."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np

from bpa_ppl.components import Share
from bpa_ppl.errors import DataError
from bpa_ppl.extras.phrases.spans import SEGMENTATION, number_pairs
from bpa_ppl.extras.phrases.table_files import read_table
from bpa_ppl.extras.phrases.tree import build_tree
from bpa_ppl.features.source import Features, FeatureSource, make_unknown_check
from bpa_ppl.lists.nbest import NBest

# A table of 500 sentence pairs of the domain lacks two thirds of the pairs of a large decoder.
_MOST_UNKNOWN = 0.9


class PhraseMixture(FeatureSource, frozen=True):
    """Sums of log-probabilities of phrase pairs over the segmentation of a candidate.

    The lists need their sources, and the extra `segmentation` with one text per candidate, as
    Moses prints it: `0-2=0-2 3=3 8=7`, source span = target span, positions from 0, in target
    order.

    The columns are named after those of the table: `phrases.direct` is Σ log p(t|s),
    `phrases.inverse` Σ log p(s|t); a log-linear table has a pair of columns for each of its own,
    `phrases.direct.in`. Logarithms are natural.

    Attributes:
        table: Parquet as `bpa phrases mix` writes it, or a phrase table of Moses.
        direction: `direct`, `inverse` or both.
        floor: the probability of a pair that is not in the table, such as an unknown word that the
            decoder copied, and the least probability of any pair. (On sentences held out of the
            adaptation sets of captions 0.01 was better than less.)
        unseen: add `phrases.unseen`, the number of pairs that are not in the table.
        name: the start of the names of the columns.
    """

    main: ClassVar[str | None] = "table"
    paths: ClassVar[tuple[str, ...]] = ("table",)
    needs: ClassVar[frozenset[str]] = frozenset({SEGMENTATION, "sources"})

    table: str
    direction: Literal["both", "direct", "inverse"] = "both"
    floor: Share = 0.01
    unseen: bool = False
    name: str = "phrases"

    def opened(self) -> Callable[[NBest], Features]:
        table = read_table(self.table)
        kinds = ("direct", "inverse") if self.direction == "both" else (self.direction,)
        names = [n for kind in kinds for n in table.columns if n.partition(".")[0] == kind]
        if not names:
            message = f"no column {' or '.join(kinds)}: give another table of phrases"
            raise DataError(message, self.table, parameter="table", code="missing-column")
        source, target = build_tree(table.sources), build_tree(table.targets)
        values = [table.columns[name] for name in names]
        in_table = np.maximum(np.transpose(values).reshape(-1, len(values)), self.floor)
        # The last row, number −1, is for pairs that are not in the table.
        logs = np.log(np.vstack([in_table, np.full((1, len(values)), self.floor)]))
        check = make_unknown_check("phrase pairs of the candidates", self.table, _MOST_UNKNOWN)

        def compute(lists: NBest) -> Features:
            first, second, owner = number_pairs(lists, source[0], target[0], add=False)
            rows = table.find(
                np.where(first >= 0, source[1][first], np.int32(-1)),
                np.where(second >= 0, target[1][second], np.int32(-1)),
            )
            candidates = len(lists.features)
            # Each candidate is summed separately: its sums do not depend on those before it.
            columns = {
                f"{self.name}.{name}": np.bincount(owner, column[rows], candidates)
                for name, column in zip(names, logs.T, strict=True)
            }
            unseen = np.bincount(owner[rows < 0], minlength=candidates)
            check(lists, int(unseen.sum()), len(owner))
            return columns | ({f"{self.name}.unseen": unseen} if self.unseen else {})

        return compute

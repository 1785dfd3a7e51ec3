"""Phrases: what a table of phrase pairs says of the pairs that a hypothesis was built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np

from bpa_ppl.component import Share
from bpa_ppl.errors import DataError
from bpa_ppl.features.base import Features, FeatureSource
from bpa_ppl.features.segmentations import SEGMENTATION, spans_of
from bpa_ppl.nbest import Float64, Int32, Int64, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.phrases.tables import PhraseTable, read_table
from bpa_ppl.phrases.tree import PhraseTree

# A table of 500 sentence pairs of the domain lacks two thirds of the pairs of a large decoder.
_FOREIGN = 0.9


class PhraseMixture(FeatureSource, frozen=True):
    """Sums of log-probabilities of phrase pairs over the segmentation of a hypothesis.

    The lists need their sources, and the extra `segmentation` with a text a hypothesis, as Moses
    prints it: `0-2=0-2 3=3 8=7`, source span = target span, positions from 0, in target order.

    The columns are named after those of the table: `phrases.direct` is Σ log p(t|s),
    `phrases.inverse` Σ log p(s|t); a log-linear table has a pair of columns for each of its own,
    `phrases.direct.in`. Logarithms are natural.

    Attributes:
        table: Parquet as `bpa phrases mix` writes it, or a phrase table of Moses.
        direction: `direct`, `inverse` or both.
        floor: the probability of a pair that the table does not have, and the least one of those
            that it has. A word that the decoder did not know, and copied, is such a pair. (On
            sentences held out of the adaptation sets of captions 0.01 was better than less.)
        unseen: give `phrases.unseen` too, the number of pairs that the table does not have.
        name: the start of the names of the columns.
    """

    main: ClassVar[str | None] = "table"
    paths: ClassVar[tuple[str, ...]] = ("table",)

    table: str
    direction: Literal["both", "direct", "inverse"] = "both"
    floor: Share = 0.01
    unseen: bool = False
    name: str = "phrases"

    @property
    def needs(self) -> frozenset[str]:
        """The segmentations, and the sources, which their spans are of."""
        return frozenset({SEGMENTATION, "sources"})

    def columns(self, nbest: NBest) -> Features:
        """Return the sums of log-probabilities.

        Raises:
            DataError: if the table cannot be read, or has no column that is asked for; if a
                segmentation is malformed, outside of its sentence, or not of the whole hypothesis.
        """
        return self.opened()(nbest)

    def opened(self) -> Callable[[NBest], Features]:
        """Read the table; the function that is returned computes the columns of any lists."""
        table = read_table(self.table)
        kinds = ("direct", "inverse") if self.direction == "both" else (self.direction,)
        names = [n for kind in kinds for n in table.columns if n.partition(".")[0] == kind]
        if not names:
            wanted = " or ".join(kinds)
            raise DataError(f"the table has no column {wanted}: make it again", self.table)
        scored = _ScoredPairs(table, names, self.floor)
        return lambda nbest: self._columns(scored, nbest)

    def _columns(self, scored: _ScoredPairs, nbest: NBest) -> Features:
        sums, pairs, unseen = scored.sums(nbest)
        self._check_seen(scored, nbest, int(pairs.sum()), int(unseen.sum()))
        names = [f"{self.name}.{column}" for column in scored.names]
        if not self.unseen:
            return names, sums
        return [*names, f"{self.name}.unseen"], np.column_stack([sums, unseen])

    def _check_seen(self, scored: _ScoredPairs, nbest: NBest, pairs: int, unseen: int) -> None:
        """Warn, once, where hardly a pair is in the table."""
        if scored.tells and pairs and unseen > _FOREIGN * pairs:
            scored.tells = False
            warn_user(
                f"{nbest.origin}: {unseen / pairs:.0%} of the phrase pairs of the hypotheses are "
                f"not in {self.table}: is it of these languages in this order, and tokenised and "
                "cased like the lists?"
            )


class _ScoredPairs:
    """A table of phrase pairs, ready to be asked for those of many lists.

    Args:
        table: the probabilities.
        names: of the columns that are wanted.
        floor: the least probability.
    """

    def __init__(self, table: PhraseTable, names: Sequence[str], floor: float):
        self.names = tuple(names)
        self.tells = True
        self._table = table
        self._sides = PhraseTree.of(table.sources), PhraseTree.of(table.targets)
        columns = [table.columns[name] for name in self.names]
        # The last row is that of a pair that is not there: number −1.
        known = np.maximum(np.transpose(columns).reshape(-1, len(columns)), floor)
        self._logs = np.log(np.vstack([known, np.full((1, len(columns)), floor)]))

    def sums(self, nbest: NBest) -> tuple[Float64, Int64, Int64]:
        """Return (hypotheses, columns) sums of logarithms, and how many pairs, and unseen ones."""
        sentence = np.repeat(np.arange(len(nbest)), nbest.sizes)
        sources = self._sides[0][0].known_words(text.encode() for text in nbest.sources or ())
        targets = self._sides[1][0].known_words(text.encode() for text in nbest.strings)
        spans, starts = spans_of(nbest, np.diff(sources[1])[sentence], np.diff(targets[1]))
        first = self._phrases(0, sources, sentence, starts, spans[:, :2])
        second = self._phrases(1, targets, nbest.string_index, starts, spans[:, 2:])
        rows = self._table.find(first, second)
        hypotheses, pairs = len(nbest.features), np.diff(starts)
        owner = np.repeat(np.arange(hypotheses), pairs)
        # Each hypothesis is summed for itself: its sums do not depend on those before it.
        summed = [np.bincount(owner, column[rows], hypotheses) for column in self._logs.T]
        return np.transpose(summed), pairs, np.bincount(owner[rows < 0], minlength=hypotheses)

    def _phrases(
        self, side: int, words: tuple[Int32, Int64], which: np.ndarray, starts: Int64, spans: Int32
    ) -> Int32:
        """Return the number in the table of the phrase in each span, or −1.

        Args:
            side: 0 for source, 1 for target phrases.
            words: of all sentences of that side.
            which: (hypotheses,) the sentence that the spans of each are of.
            starts: (hypotheses + 1,) where its spans begin.
            spans: (spans, 2) first word, and words.
        """
        tree, places = self._sides[side]
        begin, lengths = np.ascontiguousarray(spans.T)
        nodes = tree.found((words[0], words[1][which]), starts, begin, lengths)
        return np.where(nodes >= 0, places[nodes], np.int32(-1))

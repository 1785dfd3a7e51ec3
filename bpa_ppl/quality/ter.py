"""TER (Snover et al., 2006), as sacreBLEU defines it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.quality.base import Lists, References, SacreMetric, Score
from bpa_ppl.text.words import Vocabulary, starts_of


class TER(SacreMetric, frozen=True):
    """The translation edit rate, in percent of the mean reference length.

    The counts of a hypothesis are its edits to the nearest reference, and the mean length of the
    references in words.

    Args:
        normalized: split punctuation off, by Tercom's normalisation.
        no_punct: remove punctuation.
        asian_support: apply both of these to Chinese and Japanese text too.
        case_sensitive: distinguish upper and lower case.

    >>> TER(case_sensitive=True)
    TER(normalized=False, no_punct=False, asian_support=False, case_sensitive=True)
    >>> TER().value(np.array([[3.0, 12.0], [6.0, 12.0]])).tolist()
    [25.0, 50.0]
    """

    key: ClassVar[str] = "ter"
    lower_is_better: ClassVar[bool] = True
    threads: ClassVar[bool] = True  # the compiled code releases the GIL
    computed_by: ClassVar[tuple[str, ...]] = ("bpa_ppl.quality.tercom", "bpa_ppl.text.words")
    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    width = 2

    def scorer(self, *, sentence: bool = False) -> Any:
        """Return sacreBLEU's TER with these settings; it scores a sentence as a corpus."""
        from sacrebleu import metrics

        return metrics.TER(**self.settings())

    def corpus(self, hypotheses: Sequence[str], references: References, **sources: Any) -> Score:
        """Return the corpus score of one hypothesis per sentence."""
        edits, lengths = self.counts([[text] for text in hypotheses], references).T
        # Added from left to right, as sacreBLEU does; NumPy's sum rounds differently.
        total, length = float(edits.sum()), float(np.cumsum(lengths)[-1])
        value = float(self.value(np.array([total, length])))
        details = {"edits": total, "reference_length": length}
        return Score(value, self.key, "TER", self.signature(references), details)

    def sentences(
        self, lists: Lists, references: References, *, only_best: bool, **more: Any
    ) -> Float64:
        """Return the sentence score of each hypothesis of some lists, one list after the other."""
        return self.value(self._count(lists, references, only_best))

    def counts(self, lists: Lists, references: References) -> Float64:
        """Return (hypotheses, 2) edits and reference lengths, one list after the other."""
        return self._count(lists, references, only_best=False)

    def value(self, sums: Float64) -> Float64:
        """Return TER in percent, (…, 2) ↦ (…); without a reference word, 100 for any edit."""
        edits, lengths = sums[..., 0], sums[..., 1]
        empty = lengths == 0
        return 100 * np.where(empty, edits > 0, edits / np.where(empty, 1, lengths))

    def gain(self, counts: Float64) -> Float64:
        """Return minus the edits, (n, 2) ↦ (n,)."""
        return 0.0 - counts[..., 0]  # 0, not −0, for no edits

    def _count(self, lists: Lists, references: References, only_best: bool) -> Float64:
        """Return edits, infinite if pruned, and reference lengths of each hypothesis."""
        from bpa_ppl.quality import tercom

        split = self._splitter()
        hypotheses = [split(text) for text in chain.from_iterable(lists)]
        # As sacreBLEU does; tokenising twice differs from once, such as for `..3` if normalised.
        refs = [split(" ".join(split(text))) for text in chain.from_iterable(references)]
        vocabulary, refs_of = Vocabulary(), starts_of(references)
        text = vocabulary.number(hypotheses + refs)
        sentences = starts_of(lists), refs_of + len(hypotheses)
        edits = tercom.count_edits(*text, *sentences, len(vocabulary), only_best)
        total_lengths = np.add.reduceat([len(words) for words in refs], refs_of[:-1])
        lengths = np.repeat(total_lengths / np.diff(refs_of), [len(texts) for texts in lists])
        return np.column_stack([np.where(edits == tercom.PRUNED, np.inf, edits), lengths])

    def _splitter(self) -> Callable[[str], list[str]]:
        """Return the function that splits a text into words."""
        if not (self.normalized or self.no_punct):  # Tercom's tokeniser does the same
            return str.split if self.case_sensitive else lambda text: text.lower().split()
        from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

        tokenise = TercomTokenizer(
            self.normalized, self.no_punct, self.asian_support, self.case_sensitive
        )
        return lambda text: tokenise(text.rstrip()).split()

"""TER (Snover et al., 2006), as sacreBLEU defines it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.metrics.metric import Lists, Metric, References, sacrebleu_signature
from bpa_ppl.text.words import Vocabulary, find_starts


class TER(Metric, frozen=True):
    """The translation edit rate, in percent of the mean reference length.

    The counts of a candidate are its edits to the nearest reference, and the mean length of the
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
    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    width = 2

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return sacreBLEU's signature."""
        from sacrebleu import metrics

        return sacrebleu_signature(metrics.TER(**self.settings()), references)

    def counts(self, lists: Lists, references: References) -> Float64:
        """Return (candidates, 2) edits and reference lengths, one list after the other."""
        from bpa_ppl.metrics import tercom

        split = self._splitter()
        candidates = [split(text) for text in chain.from_iterable(lists)]
        # As sacreBLEU does; tokenising twice differs from once, such as for `..3` if normalised.
        refs = [split(" ".join(split(text))) for text in chain.from_iterable(references)]
        vocabulary, refs_of = Vocabulary(), find_starts(references)
        text = vocabulary.number(candidates + refs)
        sentences = find_starts(lists), refs_of + len(candidates)
        edits = tercom.count_edits(*text, *sentences, len(vocabulary))
        total_lengths = np.add.reduceat([len(words) for words in refs], refs_of[:-1])
        lengths = np.repeat(total_lengths / np.diff(refs_of), [len(texts) for texts in lists])
        return np.column_stack([edits, lengths])

    def value(self, sums: Float64) -> Float64:
        """Return TER in percent, (…, 2) ↦ (…); without a reference word, 100 for any edit."""
        edits, lengths = sums[..., 0], sums[..., 1]
        empty = lengths == 0
        return 100 * np.where(empty, edits > 0, edits / np.where(empty, 1, lengths))

    def gain(self, counts: Float64) -> Float64:
        """Return minus the edits, (n, 2) ↦ (n,)."""
        return 0.0 - counts[..., 0]  # 0, not −0, for no edits

    def _splitter(self) -> Callable[[str], list[str]]:
        """Return the function that splits a text into words."""
        if not (self.normalized or self.no_punct):  # Tercom's tokeniser does the same
            return str.split if self.case_sensitive else lambda text: text.lower().split()
        from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

        tokenise = TercomTokenizer(
            self.normalized, self.no_punct, self.asian_support, self.case_sensitive
        )
        return lambda text: tokenise(text.rstrip()).split()

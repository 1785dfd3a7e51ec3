"""TER (Snover et al., 2006), as sacreBLEU defines it, and the mean of 100 − TER and BLEU."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.gains.bleu import BLEU
from bpa_ppl.gains.metric import Lists, Metric, References, sacrebleu_signature
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
        from sacrebleu import metrics

        return sacrebleu_signature(metrics.TER(**self.settings()), references)

    def counts(self, lists: Lists, references: References) -> Float64:
        from bpa_ppl.gains import tercom

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


class TERAndBLEU(Metric, frozen=True):
    """(100 − TER + BLEU) / 2, in percent; its name is `ter+bleu`.

    The gain of a candidate is the mean of minus its edits and its sentence BLEU+1 times the
    reference length, in words. Its sentence score is (100 − TER + BLEU+1) / 2, so that with one
    reference the oracle is the candidate of the highest gain. The counts are those of TER, then
    those of BLEU.

    Studies and comparisons report TER and BLEU instead of their mean.

    Args:
        case_sensitive: distinguish upper and lower case, for both; default: BLEU does, TER does
            not.

    >>> metric = TERAndBLEU()
    >>> metric.value(metric.counts([["a b c d x"]], [("a b c d e",)])[0]).round(2).tolist()
    73.44
    """

    key: ClassVar[str] = "ter+bleu"
    reported: ClassVar[bool] = False

    case_sensitive: bool | None = None

    @property
    def parts(self) -> tuple[TER, BLEU]:
        """TER and BLEU, with the settings."""
        if self.case_sensitive is None:
            return TER(), BLEU()
        return TER(case_sensitive=self.case_sensitive), BLEU(lowercase=not self.case_sensitive)

    width = TER.width + BLEU.width

    title = "(100 − TER + BLEU) / 2"

    def signature(self, references: References, *, sentence: bool = False) -> str:
        ter, bleu = (part.signature(references, sentence=sentence) for part in self.parts)
        added = bleu.replace("eff:yes", "eff:no").replace("smooth:exp", "smooth:add-k[1.00]")
        return f"mean of 100 − TER ({ter}) and BLEU ({added if sentence else bleu})"

    def sentence_values(self, counts: Float64) -> Float64:
        return 100 * self.fraction(counts)

    def counts(self, lists: Lists, references: References) -> Float64:
        return np.concatenate([part.counts(lists, references) for part in self.parts], axis=1)

    def value(self, sums: Float64) -> Float64:
        ter, bleu = self._each("value", sums)
        return np.asarray((100 - ter + bleu) / 2)

    def details_of(self, sums: Float64) -> dict[str, float]:
        ter, bleu = self._each("value", sums)
        return {"ter": float(ter), "bleu": float(bleu)}

    def fraction(self, counts: Float64) -> Float64:
        ter, bleu = self._each("fraction", counts)
        return np.asarray((1 + ter + bleu) / 2)

    def gain(self, counts: Float64) -> Float64:
        """Return the mean of minus the edits and BLEU+1 times the reference length, in words."""
        return np.asarray(sum(self._each("gain", counts)) / 2)

    def background(self) -> Float64:
        return np.concatenate([part.background() for part in self.parts])

    def within(self, counts: Float64, background: Float64) -> Float64:
        return np.asarray(sum(self._each("within", counts, background)) / 2)

    def _each(self, method: str, *counts: Float64) -> list[Any]:
        """Return the results of a method of TER and of BLEU for their counts, (…, 11)."""
        ter, bleu = self.parts
        cut = ter.width
        return [
            getattr(ter, method)(*(part[..., :cut] for part in counts)),
            getattr(bleu, method)(*(part[..., cut:] for part in counts)),
        ]

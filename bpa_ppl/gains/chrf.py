"""chrF (Popović, 2015) and chrF++ (Popović, 2017), as sacreBLEU defines them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import punctuation
from typing import ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.components import Count, CountOrNone
from bpa_ppl.gains.metric import Lists, Metric, References, Score, sacrebleu_signature
from bpa_ppl.text.words import Vocabulary


class CHRF(Metric, frozen=True):
    """chrF, in percent.

    The counts of a candidate are, for each order, the matches, the n-grams of the candidate and the
    n-grams of the reference, followed by the mean length of the references in words. Of several
    references, the reference with the highest score counts.

    Args:
        char_order: length of the longest character n-grams, at least 1.
        word_order: length of the longest word n-grams; 2 for chrF++.
        beta: the weight of recall relative to precision, at least 1.

    Raises:
        UsageError: if a value is out of range.

    >>> CHRF(word_order=2)
    CHRF(char_order=6, word_order=2, beta=2)
    >>> CHRF(char_order=2).counts([["ab c"]], [("ab d",)]).tolist()
    [[2.0, 3.0, 3.0, 1.0, 2.0, 2.0, 2.0]]
    """

    key: ClassVar[str] = "chrf"
    reported: ClassVar[bool] = False

    char_order: Count = 6
    word_order: CountOrNone = 0
    beta: Count = 2

    @property
    def width(self) -> int:
        return 3 * (self.char_order + self.word_order) + 1

    def score(self, sums: Float64, references: References) -> Score:
        name = f"chrF{self.beta}{'+' * self.word_order}"
        return replace(super().score(sums, references), name=name)

    def signature(self, references: References, *, sentence: bool = False) -> str:
        from sacrebleu import metrics

        return sacrebleu_signature(metrics.CHRF(**self.settings()), references)

    def counts(self, lists: Lists, references: References) -> Float64:
        rows = [
            self._count_sentence(texts, refs)
            for texts, refs in zip(lists, references, strict=True)
            if len(texts)
        ]
        return np.concatenate(rows) if rows else np.zeros((0, self.width))

    def value(self, sums: Float64) -> Float64:
        matches, of_candidate, of_reference = (sums[..., k:-1:3] for k in range(3))
        defined = (of_candidate > 0) & (of_reference > 0)
        orders = np.maximum(defined.sum(axis=-1), 1)
        # Added from left to right, as sacreBLEU does.
        precision, recall = (
            np.where(defined, matches / np.maximum(total, 1), 0.0).cumsum(axis=-1)[..., -1] / orders
            for total in (of_candidate, of_reference)
        )
        factor = self.beta**2
        divisor = factor * precision + recall
        score = (1 + factor) * precision * recall / np.where(divisor > 0, divisor, 1.0)
        return np.asarray(100 * score)

    def gain(self, counts: Float64) -> Float64:
        return np.asarray(self.fraction(counts) * counts[:, -1])

    def _count_sentence(self, texts: Sequence[str], refs: Sequence[str]) -> Float64:
        """Return the counts of the candidates of a sentence, (texts, 3N + 1)."""
        strings = [*texts, *refs]
        parts = [_count_matches(["".join(s.split()) for s in strings], len(texts), self.char_order)]
        if self.word_order:
            parts.append(
                _count_matches([_split_words(s) for s in strings], len(texts), self.word_order)
            )
        length = np.mean([len(text.split()) for text in refs])
        flat = np.concatenate(parts, axis=2).reshape(len(texts), len(refs), -1)
        each = np.concatenate([flat, np.full((*flat.shape[:2], 1), length)], axis=2)
        best = self.value(each).argmax(axis=1)  # the first of equal ones, as in sacreBLEU
        return np.asarray(each[np.arange(len(texts)), best])


def _count_matches(units: Sequence[Sequence[str]], count: int, longest: int) -> Float64:
    """Return (texts, references, orders, 3) matches and n-grams of both.

    Args:
        units: the characters or words of `count` texts, then those of the references.
        count: the number of texts.
        longest: the number of orders.
    """
    from bpa_ppl.gains.pairwise_compiled import count_matches, count_ngrams

    text = Vocabulary().number([list(sequence) for sequence in units])
    rows, columns = np.arange(count), np.arange(count, len(units))
    matches = count_matches(count_ngrams(*text, longest), longest, rows, columns, False)
    totals = np.maximum(np.diff(text[1])[:, None] - np.arange(longest), 0)
    both = np.broadcast_arrays(matches, totals[:count, None], totals[None, count:])
    result = np.stack(both, axis=-1).astype(np.float64)
    result[..., 1] *= result[..., 2] > 0  # sacreBLEU leaves out orders that the reference lacks
    return result


def _split_words(text: str) -> list[str]:
    """Return the words of a text as chrF++ counts them: punctuation at one end is a word."""
    words = list[str]()
    for word in text.split():
        if len(word) > 1 and word[-1] in punctuation:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in punctuation:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words

"""Lexicons of subdomains: IBM Model 1 in both directions, of sentence pairs with weights."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.phrases.ibm1 import ParallelText
from bpa_ppl.phrases.tables import SIDES, Side
from bpa_ppl.text.words import NumberedText

_FIRST = 5  # iterations of the lexicon of the whole corpus


class Lexicons:
    """The pairs of words of a parallel corpus, numbered once, for any weights of its pairs.

    Memory for each pair of words that occur together: 24 bytes, and 8 bytes for each lexicon that
    is learned at the same time.

    Args:
        source: the source sentences.
        target: their translations.
        prior: pseudo-counts of each conditioning word, distributed by the lexicon of the whole
            corpus, so that words unseen in a subdomain are translated as elsewhere. Without them,
            a lexicon is the maximum-likelihood estimate, and unseen translations have probability
            0.

    Attributes:
        texts: the corpus, by conditioning side.
    """

    def __init__(self, source: NumberedText, target: NumberedText, prior: float = 1.0):
        self.prior = prior
        texts = ParallelText.of(source, target), ParallelText.of(target, source)
        self.texts: dict[Side, ParallelText] = dict(zip(SIDES, texts, strict=True))

    @cached_property
    def whole_corpus(self) -> dict[Side, Float64]:
        """The lexicon of the whole corpus by conditioning side: Model 1 from a flat start."""
        tables: dict[Side, Float64] = {}
        for side, text in self.texts.items():
            every = np.ones(len(text.lengths))
            tables[side] = text.flat()
            for _ in range(_FIRST):
                text.re_estimate(tables[side], text.sums(tables[side], every), every)
        return tables

    def learned(self, condition: Side, weights: Iterable[Float64]) -> Float64:
        """Return the lexicon after one step of EM for each of some weights of the sentence pairs.

        It starts from the lexicon of the whole corpus. A step sets each t to its expected count
        plus its pseudo-counts, normalised: the posterior density of the lexicon, or without
        pseudo-counts its likelihood, does not decrease.

        Args:
            condition: the conditioning side.
            weights: for each step (sentences,), not negative.

        Returns:
            (pairs of words,) t, in the order of the rows of the text.
        """
        text, mean = self.texts[condition], self.whole_corpus[condition]
        table, pseudo = mean.copy(), self.prior * mean if self.prior else None
        for of_step in weights:
            text.re_estimate(table, text.sums(table, of_step), of_step, pseudo)
        return table

    def log_probabilities(self, condition: Side, table: Float64, weights: Float64) -> Float64:
        """Return (sentences,) natural log p of the other side given one, as in `phrases.ibm1`.

        Args:
            condition: the conditioning side.
            table: the lexicon.
            weights: (sentences,); those with weight 0 get 0.
        """
        text = self.texts[condition]
        return text.log_probabilities(text.sums(table, weights), weights)

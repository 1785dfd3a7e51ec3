"""Lexicons of subdomains: IBM Model 1 in both directions, of sentence pairs with weights."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bpa_ppl.models.subdomains.lexicon_compiled import (
    expected_counts,
    log_probabilities,
    normalise,
    numbered_links,
)
from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.text.ibm1_compiled import co_occurring, sentences_of_words
from bpa_ppl.text.vocabulary import Ragged

#: A lexicon: t of each pair of words that occur together, and of each word given the empty one.
Table = tuple[Float64, Float64]

_FIRST = 5  # iterations of the lexicon of the whole corpus


class Lexicons:
    """The pairs of words of a parallel corpus, numbered once, for any weights of its pairs.

    Memory: 4 bytes for each link (a source and a target token of one sentence pair), which is 4
    bytes a token for each word of a sentence on the other side; 24 bytes for each pair of words
    that occur together.

    Args:
        source: the source sentences.
        target: their translations.
        prior: pseudo-counts of each given word, shared by the lexicon of the whole corpus: what
            a subdomain has not seen is translated as elsewhere. Without any, each lexicon is the
            one of greatest likelihood, and a translation that is new to it has probability 0.
    """

    def __init__(self, source: NumberedText, target: NumberedText, prior: float = 1.0):
        self.prior = prior
        self._pairs = len(source)
        self._sides = {"source": source.sentences, "target": target.sentences}
        self._sizes = {"source": len(source.words), "target": len(target.words)}
        where = sentences_of_words(source.sentences, len(source.words))
        there = sentences_of_words(target.sentences, len(target.words))
        rows = co_occurring(there, source.sentences, len(source.words))
        met = np.repeat(np.arange(len(source.words), dtype=np.int32), np.diff(rows[0]))
        self._words: dict[str, Int32] = {"source": met, "target": rows[1]}
        sides = source.sentences, target.sentences
        self._links: tuple[Int32, Int64] = numbered_links(rows, where, *sides, len(target.words))

    @cached_property
    def whole(self) -> dict[Side, Table]:
        """The lexicon of the whole corpus, by the side that is given: Model 1 from a flat start."""
        return {side: self._learned_whole(side) for side in ("source", "target")}

    def learned(self, given: Side, weights: Iterable[Float64]) -> Table:
        """Return the lexicon after one step of EM for each of some weights of the sentence pairs.

        It starts from the lexicon of the whole corpus. A step sets each t to its expected count
        and the pseudo-counts, normalised: with these the posterior density of the lexicon does not
        fall, and without them the likelihood.

        Args:
            given: the side that is given.
            weights: for each step (sentences,) from 0 on.
        """
        table = self.whole[given]
        for own in weights:
            table = self.step(given, table, own, self.prior)
        return table

    def step(self, given: Side, table: Table, weights: Float64, prior: float = 0.0) -> Table:
        """Return a lexicon after one step of EM."""
        found: Table = expected_counts(
            self._links, *self._ordered(given), given == "source", *table, weights
        )
        mean = self.whole[given] if prior else table
        normalise(*found, self._words[given], self._sizes[given], (*mean, prior))
        return found

    def log_probabilities(
        self, given: Side, table: Table, chosen: npt.NDArray[np.bool_] | None = None
    ) -> Float64:
        """Return (sentences,) natural log p of the other side given one, as in `text.ibm1`.

        Args:
            given: the side that is given.
            table: the lexicon.
            chosen: (sentences,) which are scored, the others get 0; None means all.
        """
        every = np.ones(self._pairs, bool) if chosen is None else chosen
        found: Float64 = log_probabilities(
            self._links, *self._ordered(given), given == "source", *table, every
        )
        return found

    def log_prior(self, given: Side, table: Table) -> float:
        """Return the log density of a lexicon under its pseudo-counts, up to a constant."""
        if not self.prior:
            return 0.0
        mean = self.whole[given]
        parts = (np.sum(m * np.log(t)) for m, t in zip(mean, table, strict=True))
        return float(self.prior * sum(parts))

    def flat(self, given: Side) -> Table:
        """Return the lexicon in which all words are equally probable."""
        size = self._sizes["target" if given == "source" else "source"]
        return np.full(len(self._words["source"]), 1 / size), np.full(size, 1 / size)

    def words_of_pairs(self) -> tuple[Int32, Int32]:
        """Return the source word and the target word of each pair, (pairs,) each."""
        return self._words["source"], self._words["target"]

    def _learned_whole(self, given: Side) -> Table:
        table, every = self.flat(given), np.ones(self._pairs)
        for _ in range(_FIRST):
            table = self.step(given, table, every)
        return table

    def _ordered(self, given: Side) -> tuple[Ragged, Ragged]:
        """Return the sentences of the side that is given, and those of the other."""
        other: Side = "target" if given == "source" else "source"
        return self._sides[given], self._sides[other]

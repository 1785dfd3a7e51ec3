"""The minimum-risk rule: the translation with the highest expected gain."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from bpa_ppl.decoding.predictive import Predictive
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality.pairs import pairs_of


class Mbr(Predictive, frozen=True):
    """argmax_e Σ_e' p(e'|f) gain(e, e') over a list (Kumar & Byrne 2004).

    p is the posterior predictive distribution, in which derivations of equal strings are one; the
    gain is sacreBLEU's score of a sentence, with e' as its reference: minus TER, BLEU or chrF. The
    choice is that of scoring every pair; bounds leave out what cannot change it.

    Of equally good translations the more probable is taken; the likeliest derivation stands for it.

    Args:
        gain: `ter`, `bleu` or `chrf`.
    """

    needs_texts: ClassVar[bool] = True
    gain: Literal["ter", "bleu", "chrf"] = "ter"

    @property
    def criterion(self) -> str:
        """The gain."""
        return self.gain

    def decide(self, lists: NBest, probabilities: Float64) -> Int64:
        """Return the choice from each list.

        >>> lists = NBest.from_lists([["a b", "a c", "a d", "e f"]], [[[0.0]] * 4], ["LM0"])
        >>> Mbr().decide(lists, np.array([0.2, 0.25, 0.2, 0.35])).tolist()
        [1]
        """
        choice = np.empty(len(lists), np.int64)
        for s in range(len(lists)):
            rows = lists.rows(s)
            strings, group = np.unique(lists.string_index[rows], return_inverse=True)
            texts, p = [lists.strings[i] for i in strings], probabilities[rows]
            summed: Float64 = np.bincount(group, weights=p).astype(np.float64)
            best, _ = pairs_of(texts, self.gain).best(summed)
            choice[s] = np.argmax(np.where(group == best, p, -1.0))
        return choice

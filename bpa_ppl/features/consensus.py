"""Consensus: how well a hypothesis agrees with the other hypotheses of its list."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from bpa_ppl.component import NotNegative
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.base import Features, FeatureSource
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.quality.pairs import pairs_of
from bpa_ppl.quality.scoring import distinct


class Consensus(FeatureSource, frozen=True):
    """Expected n-gram matches within the list, or the mean score against its other hypotheses.

    Without a metric there is one feature for each order n. `consensus.n` is Σ_w #_w(e) p(w): the
    number of occurrences of each n-gram w in the hypothesis, times the posterior probability that a
    translation has w, p(w) = Σ_e' p(e') [w in e']. With a weight for each order these sums are the
    linear gain of Tromble, Kumar, Och and Macherey (2008), *Lattice Minimum Bayes-Risk Decoding for
    Statistical Machine Translation*.

    With a metric there is one feature, such as `consensus.chrf`: the mean sentence score of the
    hypothesis, in percent, with each of the other hypotheses of its list as the reference; higher
    is better, so that TER, WER and CER are negated. Hypotheses of equal text count as others; a
    list of one has the value 0. It is the expected gain of the rule `mbr` if all other hypotheses
    are equally probable.

    Attributes:
        metric: `ter`, `bleu`, `chrf`, `wer` or `cer`; None for n-gram matches. The settings
            `order`, `scale` and `mean` are for n-gram matches only.
        order: the length of the longest n-grams.
        scale: p(e') ∝ exp(scale · total of the decoder); with 0 all hypotheses of a list are
            equally probable, and a string that occurs twice counts twice.
        mean: divide by the number of n-grams of the hypothesis, so that long ones have no
            advantage.
        name: the beginning of the names of the columns.
    """

    metric: Literal["ter", "bleu", "chrf", "wer", "cer"] | None = None
    order: Annotated[int, Meta(ge=1, le=9)] = 4
    scale: NotNegative = 0.0
    mean: bool = False
    name: str = "consensus"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric is not None and (self.order, self.scale, self.mean) != (4, 0.0, False):
            problem = f"consensus by the metric {self.metric} does not count n-grams"
            remedy = "leave out order, scale and mean"
            raise UsageError(f"{problem}: {remedy}", parameter="order", code="conflict")

    def columns(self, nbest: NBest) -> Features:
        """Return the features, computed once for each distinct string of a list.

        Raises:
            DataError: if `scale` needs totals that the lists do not have.

        >>> lists = NBest.from_lists([["a b", "a c"]], [[[0.0]] * 2], ["LM0"])
        >>> columns = Consensus(order=2).columns(lists)
        >>> {name: column.tolist() for name, column in columns.items()}
        {'consensus.1': [1.5, 1.5], 'consensus.2': [0.5, 0.5]}
        >>> Consensus(metric="ter").columns(lists)
        {'consensus.ter': array([-50., -50.])}
        """
        if self.metric is not None:
            return {f"{self.name}.{self.metric}": self._scores(nbest, self.metric)}
        from bpa_ppl.text.ngrams import expected_matches
        from bpa_ppl.text.words import Vocabulary, words_of

        group, string, inverse = distinct(nbest)
        weights = np.zeros(len(group))
        np.add.at(weights, inverse, self._probabilities(nbest))
        text = Vocabulary().number([words_of(string) for string in nbest.strings])
        columns = {}
        orders = expected_matches(text, group, string, weights, self.order)
        for n, matches in enumerate(orders, 1):
            if self.mean:
                matches = matches / np.maximum(np.diff(text[1])[string] - n + 1, 1)
            columns[f"{self.name}.{n}"] = matches[inverse]
        return columns

    def _scores(self, nbest: NBest, metric: str) -> Float64:
        """Return the mean score against the other hypotheses of the list, (hypotheses,)."""
        scores = np.zeros(len(nbest.string_index))
        for s in range(len(nbest)):
            rows = nbest.rows(s)
            strings, inverse, count = np.unique(
                nbest.string_index[rows], return_inverse=True, return_counts=True
            )
            if len(inverse) > 1:
                index = np.arange(len(strings))
                table = pairs_of([nbest.strings[i] for i in strings], metric).scores(index, index)
                others = table @ count - np.diag(table)
                scores[rows] = others[inverse] / (len(inverse) - 1)
        return scores

    def _probabilities(self, nbest: NBest) -> Float64:
        """Return (hypotheses,) p(e), which sums to 1 over each list."""
        if not self.scale:
            return np.repeat(1 / nbest.sizes, nbest.sizes)
        if nbest.totals is None:
            problem = f"no totals of the decoder, which {self.name} scales: leave scale out"
            raise DataError(problem, nbest.origin, parameter="scale", code="missing-column")
        scores = self.scale * nbest.totals.astype(np.float64)
        best = np.maximum.reduceat(scores, nbest.offsets[:-1]) if len(nbest) else scores
        weights = np.exp(scores - np.repeat(best, nbest.sizes))
        sums = np.bincount(np.repeat(np.arange(len(nbest)), nbest.sizes), weights, len(nbest))
        result: Float64 = weights / np.repeat(sums, nbest.sizes)
        return result

"""Invariance: how the phrases of a hypothesis spread over latent subdomains of a general corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from bpa_ppl.component import NotNegative, Positive
from bpa_ppl.errors import UsageError, one_of
from bpa_ppl.features.base import Features, FeatureSource
from bpa_ppl.features.segmentations import SEGMENTATION, numbered_pairs
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.phrases.invariance import (
    CountedPhrases,
    chebyshev,
    hellinger,
    kullback_leibler,
    posteriors,
    renyi_entropy,
)
from bpa_ppl.phrases.subdomains import Subdomains

#: What is measured of a phrase pair, in the order of the columns.
MEASURES = ("specificity", "coherence", "kullback-leibler", "hellinger", "subdomain")
_HALF = 32  # bits of the number of a target phrase
_FOREIGN = 0.5  # share of unknown phrase pairs from which a corpus is taken for another's


class Invariance(FeatureSource, frozen=True):
    """Specificity and coherence of the phrase pairs of a hypothesis, summed over its segmentation.

    The lists need their sources, and the extra `segmentation`: see `PhraseMixture`. From the
    occurrences of a phrase in the corpus comes P(z | phrase), its distribution over the subdomains
    z; see `bpa_ppl.phrases.invariance.posteriors`. Measures, after Cuong, Sima'an and Titov (2016):

    * `specificity`: the entropy of Rényi of P(z | phrase), of both sides: `.specificity.source` and
      `.specificity.target`. The higher, the less a phrase is bound to a subdomain.
    * `coherence`: the distance of Chebyshev between P(z | source phrase) and P(z | target phrase),
      the lower the more alike: `.coherence`.
    * `kullback-leibler` and `hellinger`: other such distances, `.kullback-leibler.source` being
      that of Σ p log(p/q) in which p is of the source phrase.
    * `subdomain`: P(z | source phrase), P(z | target phrase) and their absolute difference for a
      single z: `.z3.source`, `.z3.target`, `.z3.difference`.

    An unknown word, which the decoder copies, has P(z) on both sides: it is coherent, and neither
    typical of a subdomain nor safe; it is in all hypotheses of a list alike.

    Attributes:
        subdomains: Parquet as `bpa subdomains` writes it.
        features: which measures.
        alpha: the order of the entropy; 1 is that of Shannon.
        smoothing: how many occurrences P(z) is worth; as published none. `kullback-leibler`, which
            is infinite where only one phrase of a pair is never in a subdomain, needs some.
        z: the single subdomain, from 0.
        name: the start of the names of the columns.

    Raises:
        UsageError: if there is no such measure, or one lacks what it needs.
    """

    main: ClassVar[str | None] = "subdomains"
    paths: ClassVar[tuple[str, ...]] = ("subdomains",)

    subdomains: str
    features: tuple[str, ...] | str = ("specificity", "coherence")
    alpha: Positive = 2.0
    smoothing: NotNegative = 0.0
    z: Annotated[int, Meta(ge=0)] | None = None
    name: str = "invariance"

    def __post_init__(self) -> None:
        super().__post_init__()
        for measure in self.measures:
            one_of(measure, MEASURES, f"measure of {self.name}")
        if "kullback-leibler" in self.measures and not self.smoothing:
            raise UsageError(
                f"{self.name}: kullback-leibler is infinite where a phrase is never in a "
                "subdomain: give smoothing above 0, as in smoothing=1"
            )
        if ("subdomain" in self.measures) != (self.z is not None):
            raise UsageError(
                f"{self.name}: the measure subdomain and z go together, as in "
                "features=subdomain,z=3: give both or neither"
            )

    @property
    def needs(self) -> frozenset[str]:
        """The segmentations, and the sources, which their spans are of."""
        return frozenset({SEGMENTATION, "sources"})

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that are asked for."""
        return (self.features,) if isinstance(self.features, str) else self.features

    def columns(self, nbest: NBest) -> Features:
        """Return the sums of the measures.

        Raises:
            DataError: if the subdomains cannot be read; if a segmentation is malformed, outside of
                its sentence, or not of the whole hypothesis.
            UsageError: if there is no subdomain z.
        """
        return self.opened()(nbest)

    def opened(self) -> Callable[[NBest], Features]:
        """Read the subdomains; the function that is returned computes the columns of any lists.

        It counts the phrases that it meets for the first time in one pass over the corpus, and
        keeps their counts.
        """
        found = Subdomains.load(self.subdomains)
        if self.z is not None and self.z >= found.k:
            raise UsageError(
                f"{self.subdomains} has the subdomains 0 to {found.k - 1}, and not {self.z}"
            )
        pairs = _CountedPairs(found)
        return lambda nbest: self._columns(pairs, nbest)

    def _columns(self, pairs: _CountedPairs, nbest: NBest) -> Features:
        source, target, rows, owner = pairs.distinct(nbest)
        self._check_seen(pairs, nbest, ((source == 0).all(1) | (target == 0).all(1))[rows])
        spread = [posteriors(counts, pairs.weights, self.smoothing) for counts in (source, target)]
        # Each hypothesis is summed for itself: its sums do not depend on those before it.
        return {
            f"{self.name}.{column}": np.bincount(owner, values[rows], len(nbest.features))
            for column, values in self._measured(*spread).items()
        }

    def _measured(self, source: Float64, target: Float64) -> dict[str, Float64]:
        """Return (pairs,) columns by name, of (pairs, K) P(z | phrase)."""
        columns: dict[str, Float64] = {}
        for measure in sorted(set(self.measures), key=MEASURES.index):
            if measure == "coherence":
                columns[measure] = chebyshev(source, target)
            elif measure == "hellinger":
                columns[measure] = hellinger(source, target)
            elif measure == "specificity":
                columns |= {
                    f"{measure}.source": renyi_entropy(source, self.alpha),
                    f"{measure}.target": renyi_entropy(target, self.alpha),
                }
            elif measure == "kullback-leibler":
                columns |= {
                    f"{measure}.source": kullback_leibler(source, target),
                    f"{measure}.target": kullback_leibler(target, source),
                }
            else:
                one, other = source[:, self.z], target[:, self.z]
                columns |= {
                    f"z{self.z}.source": one,
                    f"z{self.z}.target": other,
                    f"z{self.z}.difference": np.abs(one - other),
                }
        return columns

    def _check_seen(self, pairs: _CountedPairs, nbest: NBest, unseen: np.ndarray) -> None:
        """Warn, once, where many phrases are not in the corpus."""
        if pairs.tells and len(unseen) and unseen.mean() > _FOREIGN:
            pairs.tells = False
            warn_user(
                f"{nbest.origin}: {unseen.mean():.0%} of the phrase pairs of the hypotheses have a "
                f"phrase that the corpus of {self.subdomains} does not have: is it of these "
                "languages in this order, and tokenised and cased like the lists?"
            )


class _CountedPairs:
    """Subdomains, ready to be asked for the phrase pairs of many lists."""

    def __init__(self, subdomains: Subdomains):
        self.weights = subdomains.weights
        self.tells = True
        self._source = CountedPhrases(subdomains, "source")
        self._target = CountedPhrases(subdomains, "target")

    def distinct(self, nbest: NBest) -> tuple[Float64, Float64, Int64, Int64]:
        """Return the distinct phrase pairs of some lists.

        Returns:
            (pairs, K) how often the source phrase of each occurs in each subdomain; the same of its
            target phrase; (uses,) the pair of each use, and the hypothesis.
        """
        trees = self._source.tree, self._target.tree
        first, second, starts = numbered_pairs(nbest, *trees)
        keys = (first.astype(np.int64) << _HALF) + second
        pairs, rows = np.unique(keys, return_inverse=True)
        owner = np.repeat(np.arange(len(nbest.features)), np.diff(starts))
        counts = self._source.counts(pairs >> _HALF), self._target.counts(pairs & (1 << _HALF) - 1)
        return *counts, rows, owner

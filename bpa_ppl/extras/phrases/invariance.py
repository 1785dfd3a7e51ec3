"""Invariance: how phrases of a candidate are spread over latent subdomains of a corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.components import Positive
from bpa_ppl.errors import wrong_value
from bpa_ppl.extras.phrases.spans import SEGMENTATION, number_pairs
from bpa_ppl.extras.phrases.subdomains import (
    Subdomains,
    chebyshev,
    hellinger,
    kullback_leibler,
    phrase_posteriors,
    renyi_entropy,
)
from bpa_ppl.extras.phrases.tables import SIDES
from bpa_ppl.extras.phrases.tree import PhraseTree
from bpa_ppl.features.source import Features, FeatureSource, make_unknown_check
from bpa_ppl.lists.nbest import NBest

#: The measures of a phrase pair, in the order of the columns.
_MEASURES = ("specificity", "coherence")
#: Distances for coherence, from the distributions of a source phrase and of its translation.
_DISTANCES: dict[str, Callable[[Float64, Float64], Float64]] = {
    "chebyshev": chebyshev,
    "hellinger": hellinger,
    "kullback-leibler": kullback_leibler,
    "reverse-kullback-leibler": lambda source, target: kullback_leibler(target, source),
}
#: Those that are infinite if a subdomain has no phrase.
_UNBOUNDED = ("kullback-leibler", "reverse-kullback-leibler")
_HALF = 32  # bits of the number of a target phrase


class Invariance(FeatureSource, frozen=True):
    """Specificity and coherence of the phrase pairs of a candidate, summed over its segmentation.

    The lists need their sources, and the extra `segmentation`: see `PhraseMixture`. The sentence
    pairs of the corpus that contain a phrase give P(z | phrase), its distribution over the
    subdomains z; see `phrase_posteriors` in `bpa_ppl.extras.phrases.subdomains`. A pair counts once
    in its subdomain if these are hard; if they are soft, it counts P(z | e, f) for each occurrence
    of the phrase. Measures, after Cuong, Sima'an and Titov (2016):

    * `specificity`: the Rényi entropy of P(z | phrase), of both sides: `.specificity.source` and
      `.specificity.target`. The higher, the less a phrase is bound to a subdomain, so a positive
      weight rewards invariance.
    * `coherence`: the distance between P(z | source phrase) and P(z | target phrase), lower if
      they are more similar: `.coherence`. A negative weight rewards coherence.

    An unknown word, which the decoder copies, has P(z) on both sides, in all candidates of a list.

    Attributes:
        subdomains: a Parquet file that `bpa subdomains` has written.
        features: the measures.
        alpha: the order of the entropy; 1 is Shannon's.
        distance: of coherence. `kullback-leibler` is D(P(z | source phrase) ‖ P(z | target
            phrase)), and `reverse-kullback-leibler` is the other direction. For these, P(z) is
            added to the counts, because the divergence may be infinite without.
        z: a single subdomain, from 0. The columns are then P(z | source phrase), P(z | target
            phrase) and their absolute difference, `.z3.source`, `.z3.target`, `.z3.difference`,
            instead of the measures.
        name: the start of the names of the columns.

    Raises:
        UsageError: if there is no such measure or subdomain.

    >>> from bpa_ppl import add_features, from_lists
    >>> from bpa_ppl.text.words import NumberedText
    >>> texts = NumberedText.of([["la", "loi"], ["chat"]]), NumberedText.of([["law"], ["cat"]])
    >>> Subdomains(*texts, [0, 1], [0.5, 0.5]).save("z.parquet")
    >>> lists = from_lists([["law", "cat"]], [[[0.0], [0.0]]], ["LM0"], sources=["la loi"])
    >>> lists = lists.with_extras(segmentation=["0-1=0", "0-1=0"])
    >>> extended = add_features(lists, Invariance(subdomains="z.parquet", features="coherence"))
    >>> extended.features[:, 1].tolist()
    [0.0, 1.0]
    """

    main: ClassVar[str | None] = "subdomains"
    paths: ClassVar[tuple[str, ...]] = ("subdomains",)
    needs: ClassVar[frozenset[str]] = frozenset({SEGMENTATION, "sources"})

    subdomains: str
    features: tuple[str, ...] | str = ("specificity", "coherence")
    alpha: Positive = 2.0
    distance: Literal["chebyshev", "hellinger", "kullback-leibler", "reverse-kullback-leibler"] = (
        "chebyshev"
    )
    z: Annotated[int, Meta(ge=0)] | None = None
    name: str = "invariance"

    def __post_init__(self) -> None:
        super().__post_init__()
        for measure in self.measures:
            require_one_of(measure, _MEASURES, f"measure of {self.name}", "features")

    @property
    def measures(self) -> tuple[str, ...]:
        """The chosen measures."""
        return (self.features,) if isinstance(self.features, str) else self.features

    def opened(self) -> Callable[[NBest], Features]:
        """Return the function; it counts phrases in one pass over the corpus, again if new."""
        subdomains = Subdomains.load(self.subdomains)
        if self.z is not None and self.z >= subdomains.k:
            rule = f"{self.subdomains} has the subdomains 0 to {subdomains.k - 1}"
            raise wrong_value(rule, self.z, "z", remedy="choose one of them")
        shares, repeated = subdomains.posteriors(), not subdomains.hard
        trees = PhraseTree(), PhraseTree()
        counted = [np.zeros((0, subdomains.k))] * len(SIDES)
        check = make_unknown_check(
            "phrase pairs of the candidates", f"the corpus of {self.subdomains}"
        )

        def compute(lists: NBest) -> Features:
            first, second, owner = number_pairs(lists, *trees)
            for n, (side, tree) in enumerate(zip(SIDES, trees, strict=True)):
                if len(tree) > len(counted[n]):
                    counted[n] = tree.count(subdomains.text(side), shares, repeated=repeated)
            keys = (first.astype(np.int64) << _HALF) + second
            pairs, rows = np.unique(keys, return_inverse=True)
            counts = counted[0][pairs >> _HALF], counted[1][pairs & (1 << _HALF) - 1]
            unseen = ((counts[0] == 0).all(1) | (counts[1] == 0).all(1))[rows]
            check(lists, unseen.sum(), len(unseen))
            # Each candidate is summed separately: its sums do not depend on those before it.
            return {
                f"{self.name}.{column}": np.bincount(owner, values[rows], len(lists.features))
                for column, values in self._measure(counts, subdomains.weights).items()
            }

        return compute

    def _measure(self, counts: tuple[Float64, Float64], weights: Float64) -> dict[str, Float64]:
        """Return the columns, (pairs,) each, from the counts of both sides, (pairs, K) each."""
        source, target = (phrase_posteriors(c, weights) for c in counts)
        if self.z is not None:
            p, q, name = source[:, self.z], target[:, self.z], f"z{self.z}"
            values = {"source": p, "target": q, "difference": np.abs(p - q)}
            return {f"{name}.{column}": value for column, value in values.items()}
        columns: dict[str, Float64] = {}
        if "specificity" in self.measures:
            columns["specificity.source"] = renyi_entropy(source, self.alpha)
            columns["specificity.target"] = renyi_entropy(target, self.alpha)
        if "coherence" in self.measures:
            if self.distance in _UNBOUNDED:
                source, target = (phrase_posteriors(c + weights, weights) for c in counts)
            columns["coherence"] = _DISTANCES[self.distance](source, target)
        return columns

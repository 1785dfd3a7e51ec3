"""The weight trace, the earliest published sampler: the weights that MERT visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from msgspec import structs

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.adapting.published import PublishedSampler, weight_vectors
from bpa_ppl.adapting.weights_target import require_lists
from bpa_ppl.components import Count, Positive
from bpa_ppl.densities.target import Sampled, Target
from bpa_ppl.errors import UsageError, wrong_value
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.formats.reading import read_nbest
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import match


class WeightTrace(PublishedSampler, frozen=True):
    """The set S(λ_T) is the trace of an optimiser: the earliest method.

    It is weighted as in Eq. 11 of Sanchis-Trilles & Casacuberta (2015).

    Args:
        lists: the out-of-domain lists that the canonical weights were tuned on, or their file: MERT
            for BLEU visits weights on them.
        references: files of references of the lists, if these have none.
        visited: (steps, Q) free weights that an optimiser visited, in place of lists.
        restarts: of MERT.
        delta: the leveraging factor δ.
    """

    title = "weights that MERT visited (published)"
    exact = False
    lists: Any = None
    references: str | tuple[str, ...] = ()
    visited: Any = None
    restarts: Count = 20
    delta: Positive = 1.0

    def fitted(self, weights: Mapping[str, float], *, fixed: Sequence[str], seed: int) -> Self:
        """Return the sampler with the free weights that MERT for BLEU visits, λ_T first.

        Each vector is scaled to the length of λ_T (Σ|λ|), because MERT determines directions only.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists(
        ...     [["a b c d", "a b c"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b c d"]]
        ... )
        >>> sampler = WeightTrace(lists, restarts=1).fitted({"LM0": 0.5}, fixed=[], seed=0)
        >>> sampler.visited.tolist()
        [[0.5], [-0.5]]
        """
        if self.lists is None or self.visited is not None:
            return self
        lists = self._read_lists()
        fixed = [name for name in fixed if name in lists.feature_names]
        options: dict[str, Any] = {"seed": seed, "restarts": self.restarts, "fixed": fixed}
        result = reestimate(lists, weights, tuner="mert", **options)
        free = set(match(weights, lists, fixed=fixed).free_names)
        names = list(result.weights)
        vectors = result.visited[:, [names.index(name) for name in weights if name in free]]
        length = sum(abs(weights[name]) for name in weights if name in free)
        if not length:
            message = "weight-trace needs canonical weights that are not all zero: give them"
            raise UsageError(message, parameter="weights")
        visited = vectors * length / np.abs(vectors).sum(axis=1, keepdims=True)
        return structs.replace(self, visited=visited)

    def _read_lists(self) -> NBest:
        if isinstance(self.lists, NBest):
            return self.lists
        names = (self.references,) if isinstance(self.references, str) else self.references
        return read_nbest(self.lists, references=list(names) or None)

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        """Return the visited weights with the logarithms of their weights."""
        if self.visited is None:
            message = (
                "weight-trace needs the lists that the canonical weights were tuned on: as in "
                "weight-trace:lists=news.nbest.gz,references=news.ref"
            )
            raise UsageError(message, parameter="sampler", code="missing-setting")
        vectors = np.asarray(self.visited, np.float64)
        features = len(require_lists(target, "the sampler weight-trace").prior.mean)
        if vectors.ndim != 2 or vectors.shape[1] != features:
            rule = f"visited weights have the shape (steps, {features}), with the free features"
            raise wrong_value(rule, vectors.shape, "visited")
        result = weight_vectors(target, vectors, self.delta)
        progress(1, 1, f"{result.z['weights'].shape[1]} visited weights")
        return result

    def settings(self) -> dict[str, Any]:
        values: dict[str, Any] = {"restarts": self.restarts, "delta": self.delta}
        if self.lists is not None:
            is_file = not isinstance(self.lists, NBest)
            values["lists"] = self.lists if is_file else self.lists.origin
        if self.references:
            values["references"] = self.references
        if self.visited is not None:
            values["visited"] = f"{len(self.visited)} vectors"
        return values

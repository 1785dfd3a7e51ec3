"""Weight-trace sampling: the weights that MERT visits while it tunes λ_T."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bpa_ppl.component import Count, Positive
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.heuristic import weighted_vectors
from bpa_ppl.tuning import reestimate
from bpa_ppl.weights import match


class WeightTrace(Sampler, frozen=True):
    """The set S(λ_T) is the trace of an optimiser, weighted as in Eq. 11: the earliest method.

    Args:
        development: the lists, with references, that λ_T was tuned on; MERT for BLEU runs on them.
        visited: (steps, Q) free weights that another optimiser visited, in place of `development`.
        restarts: of MERT.
        delta: the leveraging factor δ.
    """

    exact = False
    development: Any = None
    visited: Any = None
    restarts: Count = 20
    delta: Positive = 1.0

    def sample(self, target: Target) -> Sampled:
        """Return the visited weights with the logarithms of their weights.

        Raises:
            UsageError: if neither lists nor visited weights are given, or they do not fit.
        """
        vectors = self._visited(target)
        target.progress(1, 1, f"{len(vectors)} visited weights")
        return weighted_vectors(target, vectors, self.delta)

    def settings(self) -> dict[str, Any]:
        """Return the settings, with the origin of the lists and the number of visited weights."""
        settings: dict[str, Any] = {"restarts": self.restarts, "delta": self.delta}
        if self.development is not None:
            settings["development"] = self.development.origin
        if self.visited is not None:
            settings["visited"] = f"{len(self.visited)} vectors"
        return settings

    def _visited(self, target: Target) -> Float64:
        names = target.match.free_names
        if self.visited is not None:
            vectors = np.asarray(self.visited, np.float64)
            if vectors.ndim != 2 or vectors.shape[1] != len(names):
                raise UsageError(
                    f"visited must be (steps, {len(names)}), one per free feature, not an "
                    f"array of shape {vectors.shape}"
                )
            return vectors
        if not isinstance(self.development, NBest):
            raise UsageError(
                "weight-trace needs the lists that the canonical weights were tuned on "
                "(development), or weights that an optimiser visited (visited)"
            )
        canonical = dict(zip(target.match.names, target.match.values.tolist(), strict=True))
        columns = self.development.feature_names
        fixed = [name for name in canonical if name not in names and name in columns]
        return visited_weights(
            self.development, canonical, restarts=self.restarts, seed=target.seed, fixed=fixed
        )


def visited_weights(
    lists: NBest,
    weights: Mapping[str, float],
    *,
    restarts: int = 20,
    seed: int = 0,
    fixed: list[str] | None = None,
) -> Float64:
    """Return the free weights that MERT for BLEU visits, (steps, Q), λ_T first.

    Each vector is scaled to the length of λ_T (Σ|λ|), because MERT determines directions only.

    Args:
        lists: with references.
        weights: λ_T; the free features are returned in its order.
        restarts: of MERT.
        seed: of its random starting points.
        fixed: features that are not tuned; None means `UnknownWordPenalty0`.

    >>> lists = NBest.from_lists(
    ...     [["a b c d", "a b c"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b c d"]]
    ... )
    >>> visited_weights(lists, {"LM0": 0.5}, restarts=1).tolist()
    [[0.5], [-0.5]]
    """
    result = reestimate(lists, weights, tuner="mert", seed=seed, restarts=restarts, fixed=fixed)
    free = set(match(weights, lists, fixed=fixed).free_names)
    names = list(result.weights)
    vectors = result.visited[:, [names.index(name) for name in weights if name in free]]
    length = sum(abs(weights[name]) for name in weights if name in free)
    return np.asarray(vectors * length / np.abs(vectors).sum(axis=1, keepdims=True))

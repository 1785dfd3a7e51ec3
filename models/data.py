"""Adaptation: the arrays on which a model conditions, padded for JAX."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float32, NBest
from bpa_ppl.weights import Match

#: Score of a padded row: low enough never to count, finite because validation rejects −inf.
PADDING = -1e30


class Adaptation(NamedTuple):
    """What a model conditions on; a pytree of arrays (S sentences, N hypotheses, Q features).

    Everything is relative to the oracle e* of the list, because only differences matter:
    log p(e*|f,λ) = −log Σ_e exp((h(f,e) − h(f,e*))·λ). A list shorter than N is padded.

    Attributes:
        differences: (S, N, Q) float32, h(f,e) − h(f,e*), of the free features.
        base: (S, N) float32, what is added to every score: the held features' part of it;
            `PADDING` in the rows beyond the list.
        oracle: (S,) int32, the position of e* in its list.
        prior_mean: (Q,) float64, the canonical weights λ_T.
        prior_variance: (Q,) float64, the diagonal of σ_T I.
    """

    differences: Any
    base: Any
    oracle: Any
    prior_mean: Any
    prior_variance: Any


def tabulate(
    nbest: NBest,
    match: Match,
    oracle: npt.ArrayLike,
    prior_variance: npt.ArrayLike = 0.1,
) -> Adaptation:
    """Lay n-best lists out for a model.

    Without any sentence the table holds one list of one hypothesis, which has probability one
    whatever the weights, so that the posterior is the prior.

    Args:
        nbest: the lists of the adaptation sentences.
        match: the canonical weights, laid beside the features of `nbest`.
        oracle: (sentences,) position of e* in each list.
        prior_variance: σ_T, a variance: one number or one a free feature.

    Raises:
        UsageError: if a variance is not positive and finite.
    """
    free = match.free
    variance = np.broadcast_to(np.asarray(prior_variance, np.float64), (int(free.sum()),))
    if not (np.isfinite(variance).all() and (variance > 0).all()):
        raise UsageError(f"the prior variance must be positive and finite, not {variance.min()}")
    chosen = np.asarray(oracle, dtype=np.int32).reshape(-1)
    sentences, longest = max(len(nbest), 1), int(nbest.sizes.max(initial=1))
    differences = np.zeros((sentences, longest, int(free.sum())), np.float32)
    base = np.full((sentences, longest), PADDING, np.float32)
    base[:, 0] = 0.0
    for s in range(len(nbest)):
        _fill(differences[s], base[s], nbest.features[nbest.rows(s)], int(chosen[s]), match)
    return Adaptation(
        differences,
        base,
        chosen if len(nbest) else np.zeros(1, np.int32),
        match.values[free],
        variance.copy(),
    )


def _fill(
    differences: Float32, base: Float32, features: Float32, oracle: int, match: Match
) -> None:
    """Write one list into its place in the table."""
    relative = features.astype(np.float64) - features[oracle]
    differences[: len(features)] = relative[:, match.free]
    base[: len(features)] = relative[:, ~match.free] @ match.values[~match.free]

"""What an induction of subdomains is set to, and what it has found after each step."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bpa_ppl.component import Component, CountOrNone, NotNegative
from bpa_ppl.errors import checked_seed
from bpa_ppl.nbest import Float32, Float64
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.text.language_model import LONGEST

Order = Annotated[int, Meta(ge=1, le=LONGEST)]
Subdomain = npt.NDArray[np.int16]

_LEAST = 1e-7  # what float32 can tell from 0 beside 1; a smaller probability of a subdomain is 0


class Settings(Component, frozen=True, kw_only=True):
    """How subdomains are induced.

    Attributes:
        k: K, how many subdomains.
        em: `hard`, as published: each sentence pair belongs to the subdomain that wins it; or
            `soft`: to each with its probability.
        iterations: of the full model.
        lm_iterations: before them, of the language models alone.
        order: of the language models.
        smoothing: of the language models; `none` is maximum likelihood.
        prior: pseudo-counts of each given word of a lexicon; see `Lexicons`.
        folds: with 2 or more, a sentence pair is judged by models of the other folds alone, those
            that have not seen it; with 1, as published, by models that have.
        start: what the first language models are estimated on: `unigrams`, the posteriors of a
            mixture of unigram models, or `random`, which are posteriors at random.
        seed: of the start.
    """

    k: Annotated[int, Meta(ge=2, le=1000)] = 12
    em: Literal["hard", "soft"] = "hard"
    iterations: CountOrNone = 3
    lm_iterations: Annotated[int, Meta(ge=1)] = 1
    order: Order = 3
    smoothing: Literal["kneser-ney", "none"] = "kneser-ney"
    prior: NotNegative = 1.0
    folds: Annotated[int, Meta(ge=1)] = 1
    start: Literal["unigrams", "random"] = "unigrams"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_seed(self.seed)


class Found(NamedTuple):
    """What is known of the sentence pairs after one iteration.

    Attributes:
        posteriors: (pairs,) int16, the winners (hard), or (pairs, K) float32, P(z | e, f) (soft).
        shares: (pairs, K) float32, soft: the share of P(e|z) P(f|e,z) and P(f|z) P(e|f,z) in their
            sum that the second has, where the source is generated first; None is a half.
        weights: (K,) float64, P(z), estimated from the posteriors.
        log_likelihood: natural log p of all pairs under the models that the posteriors are of.
        log_prior: the log density of these models' lexicons, up to a constant.
    """

    posteriors: npt.NDArray[Any]
    shares: Float32 | None
    weights: Float64
    log_likelihood: float = 0.0
    log_prior: float = 0.0

    def of(self, z: int, given: Side | None = None) -> Float64:
        """Return (pairs,) the weights that the models of one subdomain are estimated with.

        Args:
            z: the subdomain.
            given: of a lexicon, the side that it is given; a language model takes every pair.
        """
        if self.posteriors.ndim == 1:
            result: Float64 = (self.posteriors == z).astype(np.float64)
            return result
        own = self.posteriors[:, z].astype(np.float64)
        if given is None:
            return own
        if self.shares is None:
            return 0.5 * own
        share = self.shares[:, z].astype(np.float64)
        return own * (share if given == "source" else 1.0 - share)


def found_in(joint: Float64, shares: Float64 | None, em: str, log_prior: float = 0.0) -> Found:
    """Return what (pairs, K) logs of P(z) p(e, f | z) tell: the E-step.

    Args:
        joint: the logs; one of each row at least is finite.
        shares: see `Found`.
        em: `hard` or `soft`.
        log_prior: see `Found`.

    >>> found_in(np.log([[0.1, 0.3], [0.2, 0.2]]), None, "hard").weights.tolist()
    [0.5, 0.5]
    >>> found_in(np.log([[0.1, 0.3], [0.2, 0.2]]), None, "soft").weights.tolist()
    [0.375, 0.625]
    """
    most = joint.max(axis=1, keepdims=True)
    posteriors = np.exp(joint - most)
    sums = posteriors.sum(axis=1, keepdims=True)
    likelihood = float((most + np.log(sums)).sum())
    if em == "hard":
        winners = joint.argmax(axis=1).astype(np.int16)
        weights = np.bincount(winners, minlength=joint.shape[1]) / len(winners)
        return Found(winners, None, weights, likelihood, log_prior)
    posteriors /= sums
    posteriors[posteriors < _LEAST] = 0.0
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    kept = None if shares is None else shares.astype(np.float32)
    weights = posteriors.mean(axis=0)
    return Found(posteriors.astype(np.float32), kept, weights, likelihood, log_prior)

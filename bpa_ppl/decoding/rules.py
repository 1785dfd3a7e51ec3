"""Decision rules: how the draws of a posterior decide on a translation."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from bpa_ppl.component import Component
from bpa_ppl.models.probabilities import exp2, log_probabilities
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.quality.pairs import pairs_of
from bpa_ppl.weights import match

_LARGEST = 1e24  # sums of exp(score) up to which 32 bits hold shares of them


class AlignedDraws(NamedTuple):
    """Weight vectors in the order of the columns of a table (D draws, K features).

    Attributes:
        weights: (D, K).
        log_weight: (D,) logarithm of the share of each draw in a sum over draws (Eq. 11, Eq. 13).
        log_joint: (D,) logarithm of p(A|λ) p(λ|T), with the same leverage, up to a constant.
        exponent: 1/δ, the exponent of p(e|f,λ); 1 for draws of the posterior itself.
    """

    weights: Any
    log_weight: Any
    log_joint: Any
    exponent: float

    def thinned(self, count: int) -> AlignedDraws:
        """Return some of the draws, by systematic sampling: each as often as its share is of them.

        >>> draws = AlignedDraws(np.eye(2), np.log([0.75, 0.25]), np.zeros(2), 1.0)
        >>> draws.thinned(4).weights[:, 0].tolist()
        [1.0, 1.0, 1.0, 0.0]
        """
        share = np.cumsum(np.exp(self.log_weight))
        index = np.searchsorted(share, (np.arange(count) + 0.5) / count * share[-1])
        equal = np.full(count, -np.log(count))
        return AlignedDraws(self.weights[index], equal, self.log_joint[index], self.exponent)

    def with_moments_of(self, other: AlignedDraws) -> AlignedDraws:
        """Return the draws moved and stretched so that mean and covariance are those of others.

        Choices depend on these two more than on the shape of the distribution. Where the draws are
        fewer than twice the features, only the mean is that of the others.

        >>> draws = AlignedDraws(np.array([[0.0], [2.0], [7.0]]), np.zeros(3), np.zeros(3), 1.0)
        >>> few = AlignedDraws(np.array([[0.0], [2.0]]), np.zeros(2), np.zeros(2), 1.0)
        >>> float(few.with_moments_of(draws).weights.mean().round(9)), float(draws.weights.mean())
        (3.0, 3.0)
        """
        (mean, covariance), (own_mean, own_covariance) = other._moments(), self._moments()
        centred = self.weights - own_mean
        if len(centred) >= 2 * centred.shape[1]:
            unit = np.sqrt(np.diag(covariance))
            unit[unit == 0] = 1.0
            scaled = np.outer(unit, unit)
            to_white = _power(own_covariance / scaled, -0.5)
            centred = centred / unit @ to_white @ _power(covariance / scaled, 0.5) * unit
        return self._replace(weights=centred + mean)

    def _moments(self) -> tuple[Float64, Float64]:
        """Return the weighted mean, (K,), and covariance, (K, K)."""
        share = np.exp(_normalised(self.log_weight))
        mean = share @ self.weights
        centred = self.weights - mean
        return mean, (share[:, None] * centred).T @ centred

    def in_groups(self, size: int) -> AlignedDraws:
        """Return the draws in groups of `size`, (groups, size, …); padding has weight 0."""
        draws, features = self.weights.shape
        fill = ((0, -draws % size),)
        return AlignedDraws(
            weights=np.pad(self.weights, (*fill, (0, 0))).reshape(-1, size, features),
            log_weight=np.pad(self.log_weight, fill, constant_values=-np.inf).reshape(-1, size),
            log_joint=np.pad(self.log_joint, fill, constant_values=-np.inf).reshape(-1, size),
            exponent=self.exponent,
        )


class Rule(Component, frozen=True):
    """A decision rule: how the scores of hypotheses under many draws become one score each.

    The exponentials of these scores, normalised, are probabilities, and the most probable
    hypothesis of a list is chosen. A rule that compares texts has `needs_texts` and chooses itself,
    by these probabilities (`decide`).

    Attributes:
        needs_density: whether it needs the density of each draw.
        needs_texts: whether it chooses by `decide`, with the texts of the lists.
        takes_numpy: whether `log_scores` takes arrays of NumPy as well, of 64 bits, and is faster
            with them than with JAX where lists are short.

    `Predictive` is an example; the guide to additions has another one.

    >>> from bpa_ppl.registry import RULES
    >>> RULES.resolve("mbr", {"gain": "chrf"}).criterion
    'chrf'
    """

    needs_density: ClassVar[bool] = False
    needs_texts: ClassVar[bool] = False
    takes_numpy: ClassVar[bool] = False

    @property
    def criterion(self) -> str | None:
        """The gain by which it compares candidates, such as `ter`; None if it does not."""
        return None

    def align(self, draws: Draws, nbest: NBest) -> AlignedDraws:
        """Return the draws that the rule uses, by default all of them.

        Raises:
            DataError: if the lists have a feature without a weight.
        """
        count = len(draws.flat)
        log_share = np.full(count, -np.log(count))
        if draws.log_weight is not None:
            log_share = _normalised(draws.log_weight)
        density = draws.log_weight if draws.log_weight is not None else draws.log_density
        return AlignedDraws(
            weights=draws.aligned(nbest),
            log_weight=log_share,
            log_joint=np.zeros(count) if density is None else _normalised(density),
            exponent=float(draws.attrs.get("likelihood_exponent", 1.0)),
        )

    def log_scores(self, features: Any, base: Any, draws: AlignedDraws) -> Any:
        """Return the scores of the hypotheses of one list under some draws, (N, K) ↦ (N,).

        JAX traces it; in a process that was forked after JAX was used it gets arrays of NumPy.

        Args:
            features: (N, K), relative to one hypothesis, whose scores are 0: the best one under the
                mean of all draws.
            base: (N,) 0, or `PADDING` for rows beyond the list: it is added to every score.
            draws: some of the draws.
        """
        raise NotImplementedError

    def combine(self, parts: jax.Array) -> jax.Array:
        """Combine the scores under groups of draws into those under all, (groups, N) ↦ (N,)."""
        raise NotImplementedError

    def decide(self, lists: NBest, probabilities: Float64) -> Int64:
        """Return the choice from each list, (S,), by a rule that needs texts.

        Args:
            lists: some lists (S of them), with texts, features, and nothing else.
            probabilities: (hypotheses,) the probabilities of derivations, which sum to 1 over each
                list; the rule decides how to treat equal strings.
        """
        return lists.best(probabilities)


def _power(matrix: Float64, exponent: float) -> Float64:
    """Return the power of a symmetric matrix, within the space that it spans."""
    values, vectors = np.linalg.eigh(matrix)
    spanned = values > 1e-10 * values[-1]
    powers = np.where(spanned, np.where(spanned, values, 1.0) ** exponent, 0.0)
    return np.asarray((vectors * powers) @ vectors.T)


def _normalised(log_values: Any) -> Float64:
    flat = np.asarray(log_values, np.float64).reshape(-1)
    shifted = flat - flat.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


class Predictive(Rule, frozen=True):
    """log Σ_λ w(λ) p(e|f,λ)^(1/δ): Eq. 13 with equal weights w and δ = 1.

    With w(λ) = p(A|λ)^(1/δ) p(λ|T) it is Eq. 11.
    """

    takes_numpy: ClassVar[bool] = True

    def log_scores(self, features: Any, base: Any, draws: AlignedDraws) -> Any:
        """Return the logarithm of the sum over these draws."""
        is_numpy = isinstance(features, np.ndarray)

        def carefully() -> Any:
            log_p = log_probabilities(features, draws.weights, base)
            log_joint = draws.exponent * log_p + draws.log_weight[None, :]
            return (logsumexp if is_numpy else jax.nn.logsumexp)(log_joint, axis=1)

        if draws.exponent != 1.0:
            return carefully()
        # Without the exponent one exponential a score is enough: the sum over draws is a product
        # with the vector of w(λ) / Z(λ). One hypothesis has the score 0 with every draw, so that
        # no Z(λ) is near 0; hardly ever is one too high to do without the highest score, the
        # search for which takes a quarter of the time. To `base`, 0 or huge, no unit matters.
        if is_numpy:
            unnormalised = features @ draws.weights.T
            unnormalised += base[:, None]
            with np.errstate(over="ignore", divide="ignore"):
                np.exp(unnormalised, out=unnormalised)
                totals = unnormalised.sum(axis=0)
                if totals.max() > _LARGEST:
                    return carefully()
                share = np.exp(draws.log_weight) / totals
                return np.log(np.einsum("nd,d->n", unnormalised, share))
        unnormalised = exp2((features / math.log(2)) @ draws.weights.T + base[:, None])
        # Both sums are products, whose bits do not depend on the number of threads.
        totals = jnp.ones_like(base) @ unnormalised
        share = jnp.exp(draws.log_weight) / totals
        finite = jnp.all(totals < _LARGEST)
        result: jax.Array = jax.lax.cond(finite, lambda: jnp.log(unnormalised @ share), carefully)
        return result

    def combine(self, parts: jax.Array) -> jax.Array:
        """Return the logarithm of the sum over groups."""
        return jax.nn.logsumexp(parts, axis=0)


class Map(Predictive, frozen=True):
    """The mode of the posterior decides."""

    takes_numpy: ClassVar[bool] = False

    def align(self, draws: Draws, nbest: NBest) -> AlignedDraws:
        """Return the mode.

        Raises:
            DataError: if the posterior does not record it, or the lists have a feature without a
                weight.
        """
        chosen = match(draws.at_point("mode"), nbest, fixed=())
        return AlignedDraws(chosen.values[None], np.zeros(1), np.zeros(1), 1.0)


class Mbr(Predictive, frozen=True):
    """argmax_e Σ_e' p(e'|f) gain(e, e') over a list (Kumar & Byrne 2004): minimum Bayes risk.

    p is the posterior predictive distribution, in which derivations of equal strings are one; the
    gain is the score of a sentence with e' as its reference: BLEU, chrF, minus TER, WER or CER. The
    choice is that of scoring every pair; bounds leave out what cannot change it.

    Of equally good translations the more probable is chosen, in its most probable derivation.

    Args:
        gain: `ter`, `bleu`, `chrf`, `wer` or `cer`.
    """

    needs_texts: ClassVar[bool] = True
    gain: Literal["ter", "bleu", "chrf", "wer", "cer"] = "ter"

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


class Mean(Rule, frozen=True):
    """p(e | f, E[λ]): the posterior mean of the weights decides.

    The average of p(e | f, λ) over wide posteriors prefers candidates with unusual features, for
    some draws rank them high by chance; the mean of the scores does not.
    """

    def log_scores(self, features: Any, base: Any, draws: AlignedDraws) -> Any:
        """Return the part of the mean score that comes from these draws."""
        share = features.__array_namespace__().exp(draws.log_weight)
        return features @ (share @ draws.weights) + base * share.sum()

    def combine(self, parts: jax.Array) -> jax.Array:
        """Return the sum over groups of draws."""
        return parts.sum(axis=0)


class Viterbi(Rule, frozen=True):
    """max_λ of log p(A|λ) p(λ|T) p(e|f,λ): the single best pair of weights and translation.

    For a weighted sample the likelihoods have its exponent 1/δ, as they do in Eq. 11.
    """

    needs_density = True

    def log_scores(self, features: Any, base: Any, draws: AlignedDraws) -> Any:
        """Return the maximum over these draws."""
        log_p = log_probabilities(features, draws.weights, base)
        return (draws.exponent * log_p + draws.log_joint[None, :]).max(axis=1)

    def combine(self, parts: jax.Array) -> jax.Array:
        """Return the maximum over groups."""
        return jnp.max(parts, axis=0)

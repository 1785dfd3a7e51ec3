"""Rule: how the draws of a posterior decide on a translation; and the votes that they cast."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from bpa_ppl.component import Component
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws


class Voters(NamedTuple):
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

    def thinned(self, count: int) -> Voters:
        """Return some of the draws, by systematic sampling: each as often as its share is of them.

        >>> voters = Voters(np.eye(2), np.log([0.75, 0.25]), np.zeros(2), 1.0)
        >>> voters.thinned(4).weights[:, 0].tolist()
        [1.0, 1.0, 1.0, 0.0]
        """
        share = np.cumsum(np.exp(self.log_weight))
        index = np.searchsorted(share, (np.arange(count) + 0.5) / count * share[-1])
        equal = np.full(count, -np.log(count))
        return Voters(self.weights[index], equal, self.log_joint[index], self.exponent)

    def in_groups(self, size: int) -> Voters:
        """Return the draws in groups of `size`, (groups, size, …); padding has weight 0."""
        draws, features = self.weights.shape
        fill = ((0, -draws % size),)
        return Voters(
            weights=np.pad(self.weights, (*fill, (0, 0))).reshape(-1, size, features),
            log_weight=np.pad(self.log_weight, fill, constant_values=-np.inf).reshape(-1, size),
            log_joint=np.pad(self.log_joint, fill, constant_values=-np.inf).reshape(-1, size),
            exponent=self.exponent,
        )


class Rule(Component, frozen=True):
    """A decision rule: who votes, and how votes are counted.

    Votes make probabilities of hypotheses, and the most probable one of a list is chosen. A rule
    that looks at texts, or at what hypotheses have to do with one another, has `needs_texts` and
    makes the choice itself from these probabilities (`decide`).

    Attributes:
        needs_density: whether it looks at how probable each draw is.
        needs_texts: whether it decides by `decide`, with the texts of the lists.

    The shortest is `predictive`; the guide to additions has another example.

    >>> from bpa_ppl.registry import RULES
    >>> RULES.resolve("mbr", {"gain": "chrf"}).criterion
    'chrf'
    """

    needs_density: ClassVar[bool] = False
    needs_texts: ClassVar[bool] = False

    @property
    def criterion(self) -> str:
        """The gain by which one choice is better than another: `ter`, `bleu` or `chrf`."""
        return "ter"

    def voters(self, draws: Draws, nbest: NBest) -> Voters:
        """Return who votes: every draw, unless a rule says otherwise.

        Raises:
            DataError: if the lists have a feature without a weight.
        """
        count = len(draws.flat)
        log_share = np.full(count, -np.log(count))
        if draws.log_weight is not None:
            log_share = _normalised(draws.log_weight)
        density = draws.log_weight if draws.log_weight is not None else draws.log_density
        return Voters(
            weights=draws.aligned(nbest),
            log_weight=log_share,
            log_joint=np.zeros(count) if density is None else _normalised(density),
            exponent=float(draws.attrs.get("likelihood_exponent", 1.0)),
        )

    def votes(self, features: Any, base: Any, voters: Voters) -> Any:
        """Return the votes of some draws for the hypotheses of one list, (N, K) ↦ (N,).

        JAX traces it; in a process that was forked after JAX was used it gets arrays of NumPy.

        Args:
            features: (N, K), relative to one hypothesis, whose scores are 0: the best one under the
                mean of all voters.
            base: (N,) 0, or `PADDING` for rows beyond the list: it is added to every score.
            voters: the draws.
        """
        raise NotImplementedError

    def combined(self, parts: jax.Array) -> jax.Array:
        """Combine the votes of groups of draws into those of all draws, (groups, N) ↦ (N,)."""
        raise NotImplementedError

    def decide(self, lists: NBest, probabilities: Float64) -> Int64:
        """Return the choice from each list, (S,), by a rule that needs texts.

        Args:
            lists: some lists (S of them), with texts, features, and nothing else.
            probabilities: (hypotheses,) exp(votes), which sum to 1 over each list, those of
                derivations; equal strings are the rule's own affair.
        """
        return lists.best(probabilities)


def _normalised(log_values: Any) -> Float64:
    flat = np.asarray(log_values, np.float64).reshape(-1)
    shifted = flat - flat.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))

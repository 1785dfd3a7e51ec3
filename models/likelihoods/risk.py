"""The expected loss as a replacement for a likelihood: a Gibbs posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bpa_ppl.components import Positive
from bpa_ppl.models.likelihoods.likelihood import Likelihood, OfLoss, ScoreFactor, buckets_with
from bpa_ppl.models.likelihoods.margin import GAMMA, Margin
from bpa_ppl.models.lists import Lists

if TYPE_CHECKING:
    import jax

#: Per standard deviation of the gain within the lists. With 0.5, 1 and 2 the choices on held-out
#: judged lists of the adaptation halves win the same, within 0.001 of the headroom.
_KAPPA = 1.0


class Risk(OfLoss, frozen=True):
    """log p_a = −κ Σ_e p(e | f_a, λ) loss(e), with loss(e) = max gain − gain(e) over the list.

    The posterior is proportional to p(λ) exp(−κ Σ_a E_λ[loss]) (Bissiri, Holmes & Walker 2016): it
    minimises the risk of choosing by a draw from p(e | f, λ), and κ sets the weight of a sentence.
    It is not a distribution of data and not log-concave: the search for the mode begins at that of
    `margin`. Where the Laplace approximation there is poor, `imh`, `nuts` and `rwm` fit their
    moments to the posterior. Four in five runs of `imh` with 100 Moses lists then pass their check;
    `auto` detects the others, and draws again or uses `nuts`. Pareto k̂ of `laplace` is 0.96 for 14
    weights, κ = 1 and 100 sentences of one domain. If chains end in different modes, their R̂ fails
    the check. `map` returns the mode near that of the margin.

    Args:
        kappa: κ per unit of the gain, as γ of the margin. None is 1 per edit, and for other gains
            1 per standard deviation within the lists.
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> Risk(kappa=2.0).log_concave_start().gamma
    4.0
    """

    factor: ClassVar[tuple[str, float]] = ("kappa", _KAPPA)
    kappa: Positive | None = None

    def log_concave_start(self) -> Likelihood:
        """Return a margin whose γ is proportional to κ; the default κ gives the default γ."""
        gamma = GAMMA * (self.kappa or _KAPPA) / _KAPPA
        return Margin(gamma)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Store κ loss(e) in place of each gain.

        Raises:
            UsageError: if the lists were tabulated without gains.
        """
        buckets = []
        for bucket in buckets_with(lists, "gain", "risk"):
            kept = {name: bucket[name] for name in bucket if name not in ("count", "share")}
            buckets.append({**kept, "gain": self.loss(bucket).astype(np.float32)})
        return lists._replace(buckets=tuple(buckets)), ScoreFactor(
            function=_minus_risk, columns=("gain",)
        )


def _minus_risk(scores: jax.Array, loss: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return −E[loss], and its derivative by the scores, −p(e) (loss(e) − E[loss])."""
    import jax.numpy as jnp

    from bpa_ppl.models.probabilities import normalise

    p = normalise(scores)[1]
    risk = jnp.einsum("sn,sn->s", p, loss)  # not a sum, see `_shared_log_p`
    return -risk, -p * (loss - risk[:, None])

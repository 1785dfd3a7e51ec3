"""The expected loss in place of a likelihood: a Gibbs posterior."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from bpa_ppl.component import Positive
from bpa_ppl.models.choice import each_sentence
from bpa_ppl.models.likelihoods.base import Likelihood, decided, with_gains, worse
from bpa_ppl.models.likelihoods.margin import GAMMA, Margin
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.probabilities import normalised

#: For one standard deviation of the gain within the lists. With 0.5, 1 and 2 the choices on judged
#: lists of the adaptation halves that were held out win the same, within 0.001 of the headroom.
KAPPA = 1.0


class Risk(Likelihood, frozen=True):
    """log p_a = −κ Σ_e p(e | f_a, λ) loss(e), with loss(e) = max gain − gain(e) over the list.

    The posterior is proportional to p(λ) exp(−κ Σ_a E_λ[loss]) (Bissiri, Holmes & Walker 2016):
    what is minimised is the risk of translating by a draw from p(e | f, λ), and κ says how much a
    sentence counts. No distribution of data, and not log-concave: the search for the mode begins
    at that of `margin`. `nuts` and `rwm` need no more than a start; `imh` and `laplace` draw
    around one mode, and their acceptance, or Pareto k̂, shows where that is not enough (k̂ is 0.96
    for 14 weights, κ = 1 and 100 sentences of one domain); `auto` looks first and takes `nuts`.
    Where chains have ended in different modes their R̂ fails the check.
    `map` returns the mode near that of the margin.

    Args:
        kappa: κ, for a unit of the gain, as γ of the margin. None is 1 an edit, and for other
            gains 1 for each standard deviation within the lists.

    >>> Risk().scaled(edit=4.0), Risk(kappa=2.0).start()
    (Risk(kappa=0.25), Margin(gamma=4.0))
    """

    needs_gains = True
    kappa: Positive | None = None

    def scaled(self, edit: float) -> Risk:
        """Return the likelihood with κ as a number."""
        return self if self.kappa is not None else Risk(kappa=decided(KAPPA / edit))

    def start(self) -> Likelihood:
        """Return a margin in proportion to κ, the default of one for that of the other."""
        return Margin(gamma=GAMMA * self._kappa / KAPPA)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Store κ loss(e) in place of each gain.

        Raises:
            UsageError: if the lists were laid out without gains.
        """
        buckets = tuple(
            bucket._replace(
                gain=(self._kappa * worse(bucket)).astype(np.float32), count=None, share=None
            )
            for bucket in with_gains(lists, "risk")
        )
        return lists._replace(buckets=buckets), _Gibbs()

    @property
    def _kappa(self) -> float:
        return KAPPA if self.kappa is None else self.kappa


class _Gibbs(Likelihood, frozen=True):
    """What observes lists with κ loss(e) in place of each gain."""

    def observe(self, lists: Lists, weights: Any) -> None:
        numpyro.factor("oracle", each_sentence(_minus_risk, lists, weights))


def _minus_risk(scores: jax.Array, loss: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return −E[loss], whose slope by the scores is −p(e) (loss(e) − E[loss])."""
    p = normalised(scores)[1]
    risk = jnp.einsum("sn,sn->s", p, loss)  # not a sum, see `_shared_log_p`
    return -risk, -p * (loss - risk[:, None])

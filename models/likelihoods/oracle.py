"""Likelihoods of the best candidates: the published one, softmax-margin, and the expected loss.

All are functions of the scores of a list. The published likelihood is the probability of the
oracle. With softmax-margin, worse candidates must score lower than the oracle by a margin. The
expected loss is a replacement for a likelihood; its posterior is a Gibbs posterior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import replace

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.components import NotNegative, Positive
from bpa_ppl.models.likelihoods.likelihood import (
    Likelihood,
    Observations,
    OfOracles,
    ScoreFactor,
    buckets_with,
    round_setting,
)
from bpa_ppl.models.likelihoods.lists import Lists

if TYPE_CHECKING:
    import jax

#: Per edit. Of 0 to 16, 2 and 4 have the best TER on held-out sentences of three domains; beyond 2
#: the outputs grow shorter and BLEU falls. The same holds for BLEU, chrF and `ter+bleu` as gains.
_GAMMA = 2.0
#: Per standard deviation of the gain within the lists. With 0.5, 1 and 2, choices from held-out
#: judged lists win the same share of the headroom, within 0.001.
_KAPPA = 1.0


class Oracle(OfOracles, frozen=True):
    """p(A | λ) = Π_a p(e*_a | f_a, λ), normalised over each n-best list; log-concave.

    Source: Sanchis-Trilles & Casacuberta (2015), Eq. 10.

    If k candidates of a list share the best gain and the tie is not broken, each counts 1/k:
    log p_a = (1/k) Σ log p(e* | f_a, λ). With a flat prior the mode is the estimate of a
    conditional logit (McFadden 1974).

    Args:
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> import numpy as np
    >>> import numpyro
    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.likelihoods.lists import tabulate
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 1.0}, lists), [1])
    >>> site = numpyro.handlers.trace(Oracle().observe).get_trace(lists, np.ones(1))["oracle"]
    >>> np.exp(site["fn"].log_prob(site["value"])).round(3).tolist()  # e / (1 + e)
    [0.731]
    """

    generative = True

    def observes_answers(self, *, of_two: bool) -> bool:
        return of_two

    def observe(self, lists: Lists, weights: Any) -> None:
        import numpyro

        from bpa_ppl.models.likelihoods.choice import OracleChoice

        numpyro.sample("oracle", OracleChoice(lists, weights), obs=lists.oracle)


class OfLoss(OfOracles, frozen=True):
    """A likelihood of how much worse the candidates of a list are than the best one."""

    observes = "gains"
    #: The setting that multiplies the loss, and its default per edit.
    factor: ClassVar[tuple[str, float]]

    def defaults(self, observed: Observations) -> OfLoss:
        name, value = self.factor
        if observed.edit is None or getattr(self, name) is not None:
            return self
        return replace(self, **{name: round_setting(value / observed.edit)})

    def loss(self, bucket: dict[str, Any]) -> Float64:
        """Return the best gain of a list minus that of each row, times the factor, (B, S, N).

        0 in rows beyond the list, so that nothing depends on them.
        """
        used, (name, default) = bucket["candidate"] >= 0, self.factor
        gain = np.where(used, bucket["gain"], -np.inf)
        best = gain.max(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):  # padding sentences have no best candidate
            deficit = np.where(used, best - gain, 0.0)
        factor = getattr(self, name)
        return np.asarray((default if factor is None else factor) * deficit)


class Margin(OfLoss, frozen=True):
    """log p_a = λ·h(e*) − log Σ_e exp(λ·h(e) + γ (gain(e*) − gain(e))) (Gimpel & Smith 2010).

    Log-concave in λ, and as fast as the published likelihood, because the margin is a constant of
    each row. With γ = 0 it is the published likelihood; otherwise oracles are not simulated from
    it.

    Args:
        gamma: γ per unit of the gain: an edit of TER; a word of BLEU, chrF and `ter+bleu`, see
            `gains`; the unit of a column. None is 2 per edit, and for other gains
            2 per standard deviation of the gain within the lists.
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.adapting.observe import observe
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> judged = lists.with_extras(quality=[1.0, 9.0])
    >>> scored = observe(prepare(judged, gain="quality", likelihood="margin"))
    >>> scored.edit, Margin().defaults(scored).gamma
    (4.0, 0.5)
    """

    factor: ClassVar[tuple[str, float]] = ("gamma", _GAMMA)
    gamma: NotNegative | None = None

    def evidence(self, *, canonical: bool) -> Likelihood:
        return self if canonical else super().evidence(canonical=canonical)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Add γ (gain(e*) − gain(e)) to the score of each row."""
        buckets = []
        for bucket in buckets_with(lists, "gain", "margin"):
            loss = self.loss(bucket)
            loss -= loss[..., :1]  # e* may be given, and not be the best
            used = bucket["candidate"] >= 0
            base = np.where(used, bucket["base"] + loss, bucket["base"])
            kept = {name: bucket[name] for name in bucket if name not in ("gain", "count")}
            buckets.append({**kept, "base": base.astype(bucket["base"].dtype)})
        return lists._replace(buckets=tuple(buckets)), Oracle()


class Risk(OfLoss, frozen=True):
    """log p_a = −κ Σ_e p(e | f_a, λ) loss(e), with loss(e) = max gain − gain(e) over the list.

    The posterior is proportional to p(λ) exp(−κ Σ_a E_λ[loss]) (Bissiri, Holmes & Walker 2016). It
    minimises the risk of choosing by a draw from p(e | f, λ), and κ is the weight of a sentence.

    It is not a distribution of data and not log-concave, so the search for the mode starts at the
    mode of `margin`, and `map` returns the mode near it. If the Laplace approximation there is
    poor, `imh`, `nuts` and `rwm` fit their moments to the posterior, and `auto` draws again or uses
    `nuts` if the draws fail the check. `laplace` alone is often poor (Pareto k̂ is 0.96 for 14
    weights, κ = 1 and 100 sentences of one domain). If chains end in different modes, R̂ fails the
    check.

    Args:
        kappa: κ per unit of the gain. None is 1 per edit, and for other gains 1 per standard
            deviation within the lists.
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> Risk(kappa=2.0).log_concave_start().gamma
    4.0
    """

    factor: ClassVar[tuple[str, float]] = ("kappa", _KAPPA)
    kappa: Positive | None = None

    def log_concave_start(self) -> Likelihood:
        """Return a margin whose γ is proportional to κ; the default κ gives the default γ."""
        gamma = _GAMMA * (self.kappa or _KAPPA) / _KAPPA
        return Margin(gamma)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Store κ loss(e) in place of each gain."""
        buckets = []
        for bucket in buckets_with(lists, "gain", "risk"):
            kept = {name: bucket[name] for name in bucket if name not in ("count", "share")}
            buckets.append({**kept, "gain": self.loss(bucket).astype(bucket["base"].dtype)})
        return lists._replace(buckets=tuple(buckets)), ScoreFactor(
            function=_minus_risk, columns=("gain",)
        )


def _minus_risk(scores: jax.Array, loss: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return −E[loss], and its derivative by the scores, −p(e) (loss(e) − E[loss])."""
    import jax.numpy as jnp

    from bpa_ppl.posterior.probabilities import normalise

    p = normalise(scores)[1]
    risk = jnp.einsum("sn,sn->s", p, loss)  # not a sum, see `_shared_log_p`
    return -risk, -p * (loss - risk[:, None])

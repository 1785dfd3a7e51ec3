"""Softmax-margin: worse candidates must score lower than the oracle by a margin."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bpa_ppl.components import NotNegative
from bpa_ppl.models.likelihoods.likelihood import Likelihood, OfLoss, buckets_with
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.lists import Lists

#: Per edit. Of 0 to 16, 2 and 4 have the best TER on held-out sentences of three domains; beyond 2
#: the outputs grow shorter and BLEU falls. The same holds for BLEU, chrF and `ter+bleu` as gains.
GAMMA = 2.0


class Margin(OfLoss, frozen=True):
    """log p_a = λ·h(e*) − log Σ_e exp(λ·h(e) + γ (gain(e*) − gain(e))) (Gimpel & Smith 2010).

    Log-concave in λ, and as fast as the published likelihood, because the margin is a constant of
    each row. With γ = 0 it is the published likelihood; otherwise oracles are not simulated from
    it.

    Args:
        gamma: γ per unit of the gain: an edit of TER; a word of BLEU, chrF and `ter+bleu`, see
            `bpa_ppl.gains`; the unit of a column. None is 2 per edit, and for other gains
            2 per standard deviation of the gain within the lists.
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.sampling.observations import observe
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> scored = observe(lists.with_extras(quality=[1.0, 9.0]), "quality", likelihood="margin")
    >>> scored.edit, Margin().defaults(scored).gamma
    (4.0, 0.5)
    """

    factor: ClassVar[tuple[str, float]] = ("gamma", GAMMA)
    gamma: NotNegative | None = None

    def evidence(self, *, canonical: bool) -> Likelihood:
        """Return this likelihood if there are canonical weights, else `pairs`."""
        return self if canonical else super().evidence(canonical=canonical)

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Add γ (gain(e*) − gain(e)) to the score of each row.

        Raises:
            UsageError: if the lists were tabulated without gains.
        """
        buckets = []
        for bucket in buckets_with(lists, "gain", "margin"):
            loss = self.loss(bucket)
            loss -= loss[..., :1]  # e* may be given, and not be the best
            used = bucket["candidate"] >= 0
            base = np.where(used, bucket["base"] + loss, bucket["base"])
            kept = {name: bucket[name] for name in bucket if name not in ("gain", "count")}
            buckets.append({**kept, "base": base.astype(np.float32)})
        return lists._replace(buckets=tuple(buckets)), Oracle()

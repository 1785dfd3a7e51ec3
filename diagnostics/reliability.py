"""How often choices between two candidates agree with a judge, and below which probability to ask.

Only posteriors of pairs have such probabilities. Those of gains of lists do not separate right
choices from wrong ones: docs/results/asking.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bpa_ppl._runtime.arrays import Float64, is_number, to_float
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.diagnostics.baselines import read_comparison
from bpa_ppl.errors import UsageError, quote
from bpa_ppl.posterior.draws import Draws, quantiles

#: The agreement is at least the promised one less this margin, but for this risk. That 95 of 100
#: promises are kept takes a smaller one than 5%, since answers that agree by luck make the
#: probabilities higher, too: docs/results/asking.md.
_MARGIN, _RISK = 0.02, 0.005
#: Slopes of the logits and shares of random answers, (curves,), with the log density of their
#: prior: log slope ~ N(0, 0.17²), share ~ Exp(mean 0.03). docs/results/asking.md has others.
SLOPES, RANDOM = (
    grid.ravel()
    for grid in np.meshgrid(np.exp(np.linspace(-1.5, 1.5, 61)), np.linspace(0.0, 0.48, 25))
)
_LOG_PRIOR = -((np.log(SLOPES) / 0.17) ** 2) / 2 - RANDOM / 0.03
_HIGHEST = 1 - 1e-9
_MOST = 500  # choices of nearly equal probability are merged beyond this number


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often choices between two candidates agree with a judge, by leave-one-out.

    A choice of probability p agrees with probability ε / 2 + (1 − ε) σ(a logit p), where the slope
    a is 1 and the share ε of random answers is 0 if the probabilities are right.

    Attributes:
        probability: (n,) of each choice, the highest first.
        agreement: (n,) 1 where the judge preferred the chosen candidate, 0 where the other one.
        weight: (n,) the number of lists.

    >>> p = np.linspace(0.99, 0.5, 50)
    >>> agreement = (np.arange(50) < 25) | (np.arange(50) % 4 > 0)
    >>> result = Reliability(p, agreement.astype(float), np.ones(50))
    >>> round(result.threshold(0.85), 2), result.threshold(0.98)
    (0.78, inf)
    """

    probability: Float64
    agreement: Float64
    weight: Float64

    @classmethod
    def of(cls, draws: Draws) -> Reliability | None:
        """Return the reliability that a posterior records, or None."""
        comparison = read_comparison(draws)
        if comparison is None or not comparison.predictions:
            return None
        preferred, weight = np.array(comparison.predictions).T
        choices = np.maximum(preferred, 1 - preferred), np.heaviside(preferred - 0.5, 0.5), weight
        order = np.argsort(-choices[0], kind="stable")
        return cls(*(column[order] for column in choices)).merged(_MOST)

    def merged(self, count: int) -> Reliability:
        """Return as many choices, or fewer, each the mean of some of nearly equal probability."""
        weight, count = self.weight, min(len(self.weight), count)
        starts = np.arange(count) * len(weight) // count
        total, *sums = (
            np.add.reduceat(weight * column, starts)
            for column in (np.ones_like(weight), self.probability, self.agreement)
        )
        return Reliability(sums[0] / total, sums[1] / total, total)

    def curves(self, probability: Float64) -> Float64:
        """Return the agreement of choices for each slope and share, (curves, probabilities)."""
        p = np.minimum(probability, _HIGHEST)
        share, odds = RANDOM[:, None], (p / (1 - p)) ** SLOPES[:, None]
        agreement = share / 2 + (1 - share) * odds / (1 + odds)
        return np.asarray(np.minimum(agreement, _HIGHEST))

    @cached_property
    def posterior(self) -> Float64:
        """The probability of each curve, (curves,)."""
        p = self.curves(self.probability)
        of_answers = self.agreement * np.log(p) + (1 - self.agreement) * np.log1p(-p)
        log_p = of_answers @ self.weight + _LOG_PRIOR
        shares = np.exp(log_p - log_p.max())
        return np.asarray(shares / shares.sum())

    def threshold(self, agree: float) -> float:
        """Return the lowest probability from which on choices have a promised agreement.

        The expected agreement of the choices from there on is at least the promised one, and its
        0.5% quantile at least that less two points. Infinite if there is no such probability.

        Args:
            agree: the promised agreement.
        """
        total = np.cumsum(self.weight)
        means = np.cumsum(self.curves(self.probability) * self.weight, axis=1) / total
        low = quantiles(means, (_RISK,), self.posterior)[0]
        reached = (self.posterior @ means >= agree) & (low >= agree - _MARGIN)
        return float(np.min(self.probability, initial=np.inf, where=reached))


def choose_threshold(draws: Draws, ask_below: float | None, agree: float | None) -> float | None:
    """Return the probability below which a person is asked; None if neither argument is given.

    Args:
        draws: of a posterior.
        ask_below: this probability.
        agree: or the promised agreement of the other choices, which is warned about if no
            probability is high enough.

    Raises:
        UsageError: if both are given, one is not above 0.5 and at most 1, or the posterior does not
            record how reliable its probabilities are.

    >>> choose_threshold(Draws({"weights": np.zeros((1, 4, 1))}, ("lm",)), 0.9, None)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: the posterior does not record how often its choices agree with a ...
    """
    name, value = ("ask_below", ask_below) if agree is None else ("agree", agree)
    if value is None:
        return None
    if ask_below is not None and agree is not None:
        problem = "a promised agreement determines below which probability to ask: give one of them"
        raise UsageError(problem, parameter=name, code="conflict")
    if not (is_number(value) and 0.5 < to_float(value) <= 1):
        problem = f"{name} must be a number above 0.5 and at most 1, not {quote(value)}"
        raise UsageError(problem, parameter=name)
    reliability = Reliability.of(draws)
    if reliability is None:
        reason = "the posterior does not record how often its choices agree with a judge"
        if draws.record.observed.kind in ("gains", "oracles"):
            reason = "probabilities of graded lists do not tell right choices from wrong ones"
        problem = f"{reason}: adapt to preferences between two candidates, with draws (not map)"
        raise UsageError(problem, parameter=name, code="not-supported")
    threshold = float(value) if agree is None else reliability.threshold(value)
    if threshold > 1:
        problem = f"no choice is sure enough for an agreement of {agree}"
        warn_user(f"{problem}: promise less, or give more answers")
    return threshold

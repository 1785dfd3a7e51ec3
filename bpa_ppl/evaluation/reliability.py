"""How often choices between two candidates agree with a judge, and below which probability to ask.

Only posteriors of pairs have such probabilities. Those of gains of lists do not separate right
choices from wrong ones: docs/results/asking.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64, is_number, to_float
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.errors import UsageError, wrong_value
from bpa_ppl.evaluation.compare_ways import read_comparison
from bpa_ppl.weight_draws import WeightDraws

#: Of a promised agreement, by default.
CONFIDENCE = 0.9
#: Slopes of the logits and shares of random answers, (curves,), with the log density of their
#: prior: log slope ~ N(0, 0.17²), share ~ Exp(mean 0.03). docs/results/asking.md has others.
SLOPES, RANDOM = (
    grid.ravel()
    for grid in np.meshgrid(np.exp(np.linspace(-1.5, 1.5, 61)), np.linspace(0.0, 0.48, 25))
)
_LOG_PRIOR = -((np.log(SLOPES) / 0.17) ** 2) / 2 - RANDOM / 0.03
_HIGHEST = 1 - 1e-9
_MAX_CHOICES = 500  # choices of nearly equal probability are merged beyond this number
#: The first test is to be passed with this probability. If it were that of the fewest choices, one
#: wrong choice among the most probable would end it, with however many labels:
#: docs/results/asking.md.
_PASSED = 0.9
_ROUNDING = 1e-6  # of sums of weights
_SIMULATIONS, _SIMULATED = 200, 20_000  # at most so many, and so many labels in all
#: Numbers of labels to plan with.
_LABELS = (20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)


@dataclass(frozen=True)
class Promise:
    """An agreement that choices between two candidates can be promised to have.

    Attributes:
        agree: the promised agreement.
        confidence: how sure the promise is.
        threshold: choices are sure from this probability on; None if nothing can be promised.
        share: of the choices that are sure.
        expected: this share with twice the labels, the mean of simulations.
    """

    agree: float
    confidence: float
    threshold: float | None
    share: float
    expected: float


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often choices between two candidates agree with a judge, by leave-one-out.

    A choice of probability p agrees with probability ε / 2 + (1 − ε) σ(a logit p), where the slope
    a is 1 and the share ε of random answers is 0 if the probabilities are right. Promises do not
    depend on this curve; pictures and plans do.

    Attributes:
        probability: (n,) of each choice, the highest first.
        agreement: (n,) 1 where the judge preferred the chosen candidate, 0 where the other one.
        weight: (n,) the number of lists.

    >>> right = np.arange(50) != 40
    >>> result = Reliability(np.linspace(0.99, 0.5, 50), right.astype(float), np.ones(50))
    >>> [round(result.threshold(agree), 2) for agree in (0.9, 0.93, 0.95)]
    [0.5, 0.6, inf]
    """

    probability: Float64
    agreement: Float64
    weight: Float64

    @classmethod
    def of(cls, record: AdaptationRecord) -> Reliability | None:
        """Return the reliability that a posterior records, or None."""
        comparison = read_comparison(record)
        if comparison is None or not comparison.predictions:
            return None
        preferred, weight = np.array(comparison.predictions).T
        probability = np.maximum(preferred, 1 - preferred)
        agreement = np.heaviside(preferred - 0.5, 0.5)
        order = np.argsort(-probability, kind="stable")
        return cls(probability[order], agreement[order], weight[order])

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
        return _find_agreement(probability, SLOPES[:, None], RANDOM[:, None])

    @cached_property
    def posterior(self) -> Float64:
        """The probability of each curve, (curves,)."""
        few = self.merged(_MAX_CHOICES)
        p = few.curves(few.probability)
        of_answers = few.agreement * np.log(p) + (1 - few.agreement) * np.log1p(-p)
        log_p = of_answers @ few.weight + _LOG_PRIOR
        shares = np.exp(log_p - log_p.max())
        return np.asarray(shares / shares.sum())

    def threshold(self, agree: float, confidence: float = CONFIDENCE) -> float:
        """Return the lowest probability from which on an agreement can be promised.

        With this confidence, choices of at least this probability agree with the judge as often as
        promised, or more often, if their lists are drawn like the judged ones. Infinite if nothing
        can be promised.

        The choices of the highest probabilities are tested, then more and more of them, as long as
        an exact binomial test rejects that they agree less often: always as soon as one more of
        them may be wrong. In a fixed sequence each test has the whole level (Angelopoulos, Bates,
        Candès, Jordan & Lei 2021, Learn then Test). This one is nearly fixed: probabilities by
        leave-one-out depend on the answers to other lists. The first test is the largest that, by
        the probabilities, is passed with 90 %, or else the one that is passed most probably.
        Several pairs of one list count once together.

        Args:
            agree: the promised agreement.
            confidence: 1 less the level of the tests.
        """
        last = np.flatnonzero(np.diff(self.probability, append=0.0))  # of equal probabilities
        lists = np.cumsum(self.weight)[last] + _ROUNDING
        wrong = np.cumsum(self.weight * (1 - self.agreement))[last] - _ROUNDING
        allowed = count_allowed(int(lists[-1]), agree, confidence)[lists.astype(int)]
        tested = np.diff(allowed, prepend=-1) > 0
        tested[allowed == allowed[-1]] = allowed[-1] >= 0
        if not tested.any():
            return np.inf
        expected = np.cumsum(self.weight * (1 - self.probability))[last] / lists
        expected = np.clip(expected, 1 - _HIGHEST, _HIGHEST)
        lists, wrong, allowed, expected = (
            column[tested] for column in (lists, wrong, allowed, expected)
        )
        sums = zip(allowed, lists.astype(int), expected, strict=True)
        passed = np.array([_sum_binomial(*one) for one in sums])
        likely = np.flatnonzero(passed >= _PASSED)
        first = likely[-1] if len(likely) else int(np.argmax(passed))
        kept = np.cumprod(wrong[first:] <= allowed[first:]).sum()
        return float(self.probability[last[tested][first + kept - 1]]) if kept else np.inf

    def share(self, threshold: float) -> float:
        """Return the share of the choices with at least a probability."""
        return float(self.weight @ (self.probability >= threshold) / self.weight.sum())

    def promise(self, agree: float, confidence: float = CONFIDENCE) -> Promise:
        """Return what can be promised now, and with twice the labels.

        Args:
            agree: the promised agreement.
            confidence: of the promise.
        """
        threshold = self.threshold(agree, confidence)
        twice = self.expect(2 * self.labels, agree, confidence)
        least = threshold if threshold <= 1 else None
        return Promise(agree, confidence, least, self.share(threshold), float(np.mean(twice)))

    @property
    def labels(self) -> int:
        """The number of judged lists."""
        return round(float(self.weight.sum()))

    def expect(self, labels: int, agree: float, confidence: float = CONFIDENCE) -> Float64:
        """Return shares of choices that are sure with so many labels, as far as these labels show.

        The probabilities of the choices are drawn again, with replacement, and answers are
        simulated by curves from their posterior.

        Args:
            labels: their number.
            agree: the promised agreement.
            confidence: of the promise.

        Returns:
            the share in each of 200 simulations, or fewer of many labels, but at least 20.
        """
        rng, weight = np.random.default_rng(0), self.weight / self.weight.sum()
        shares, count = [], int(np.clip(_SIMULATED // labels, 20, _SIMULATIONS))
        for curve in rng.choice(len(SLOPES), count, p=self.posterior):
            p = -np.sort(-rng.choice(self.probability, labels, p=weight))
            agreement = _find_agreement(p, SLOPES[curve], RANDOM[curve])
            right = (rng.random(labels) < agreement).astype(float)
            simulated = Reliability(p, right, np.ones(labels))
            shares.append(self.share(simulated.threshold(agree, confidence)))
        return np.array(shares)

    def labels_needed(self, agree: float, confidence: float = CONFIDENCE) -> int | None:
        """Return about how many labels a promise needs; None if more than 5,000.

        With so many, something can be promised in at least half of the simulations of `expect`.
        """
        for labels in _LABELS:
            if np.median(self.expect(labels, agree, confidence)) > 0:
                return labels
        return None


def _find_agreement(probability: Float64, slope: Float64, random: Float64) -> Float64:
    """Return how often choices agree if the probabilities have this slope and random answers."""
    p = np.minimum(probability, _HIGHEST)
    odds = (p / (1 - p)) ** slope
    return np.asarray(np.minimum(random / 2 + (1 - random) * odds / (1 + odds), _HIGHEST))


def _sum_binomial(most: int, count: int, chance: float) -> float:
    """Return the probability that at most so many of `count` events occur, of this chance each."""
    occurred = np.arange(most + 1)
    log_factorial = np.cumsum(np.log(np.maximum(np.arange(count + 1), 1)))
    log_p = log_factorial[count] - log_factorial[occurred] - log_factorial[count - occurred]
    log_p += occurred * np.log(chance) + (count - occurred) * np.log1p(-chance)
    return float(np.exp(log_p).sum())


@cache
def count_allowed(count: int, agree: float, confidence: float) -> Int64:
    """Return how many of 0, 1, …, `count` choices may be wrong, (count + 1,).

    With at most so many, a binomial test rejects that they agree less often than promised; −1 if it
    does not even with none.

    Args:
        count: the number of choices.
        agree: the promised agreement.
        confidence: 1 less the level of the test.

    >>> allowed = count_allowed(52, 0.9, 0.9)
    >>> allowed[[21, 22, 37, 38, 51, 52]].tolist()
    [-1, 0, 0, 1, 1, 2]
    """
    chance, allowed = np.zeros(count + 1), np.full(count + 1, -1)
    chance[0] = 1.0  # of each number of wrong choices
    for size in range(1, count + 1):
        chance[1:] = agree * chance[1:] + (1 - agree) * chance[:-1]
        chance[0] *= agree
        one_more = chance[: allowed[size - 1] + 2].sum() <= 1 - confidence
        allowed[size] = allowed[size - 1] + one_more
    return allowed


def choose_threshold(
    draws: WeightDraws,
    ask_below: float | None,
    agree: float | None,
    confidence: float | None = None,
) -> float | None:
    """Return the probability below which a person is asked; None if neither argument is given.

    Args:
        draws: of a posterior.
        ask_below: this probability.
        agree: or the promised agreement of the other choices, which is warned about if it cannot
            be promised.
        confidence: of the promise; None is 0.9.

    Raises:
        UsageError: if both are given, or a confidence without a promise; if one is not above 0.5
            and at most 1, or the confidence not between 0.5 and 1; or if the posterior does not
            record how reliable its probabilities are.

    >>> from bpa_ppl.weight_draws import name_weights
    >>> choose_threshold(name_weights(np.zeros((1, 4, 1)), ("lm",)), 0.9, None)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: the posterior does not record how often its choices agree with a ...
    """
    name, value = ("ask_below", ask_below) if agree is None else ("agree", agree)
    if confidence is not None and agree is None:
        message = "confidence needs a promised agreement: give agree as well"
        raise UsageError(message, parameter="confidence", code="conflict")
    if value is None:
        return None
    confidence = CONFIDENCE if confidence is None else confidence
    if ask_below is not None and agree is not None:
        message = "agree determines below which probability to ask: leave out one of them"
        raise UsageError(message, parameter=name, code="conflict")
    if not (is_number(value) and 0.5 < to_float(value) <= 1):
        raise wrong_value(f"{name} must be a number above 0.5 and at most 1", value, name)
    if not (is_number(confidence) and 0.5 <= to_float(confidence) < 1):
        raise wrong_value(
            "confidence must be a number from 0.5 to below 1", confidence, "confidence"
        )
    reliability = Reliability.of(draws.adaptation)
    if reliability is None:
        reason = "the posterior does not record how often its choices agree with a judge"
        if draws.adaptation.observed.kind in ("gains", "oracles"):
            reason = "probabilities of graded lists do not separate right choices from wrong ones"
        problem = f"{reason}: adapt to preferences between two candidates, with draws (not map)"
        raise UsageError(problem, parameter=name, code="not-supported")
    if agree is None:
        return float(value)
    threshold = reliability.threshold(to_float(value), to_float(confidence))
    if threshold > 1:
        warn_user(_refuse_promise(reliability, to_float(value), to_float(confidence)))
    return threshold


def _refuse_promise(reliability: Reliability, agree: float, confidence: float) -> str:
    """Say that nothing can be promised, and how many labels it would take."""
    labels = reliability.labels
    problem = (
        f"with {confidence:.0%} confidence an agreement of {agree:g} cannot be promised for any "
        f"choice from {labels} judged lists"
    )
    needed = reliability.labels_needed(agree, confidence)
    if needed is None:
        return f"{problem}, and, as far as these show, not from 5,000: promise less, or ask for all"
    if needed <= labels:
        return f"{problem}: too many of the most probable choices are wrong; promise less"
    return f"{problem}: as far as these show, about {needed} are needed; or promise less"

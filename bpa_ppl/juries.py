"""What each judge, or other feature, is worth: `judges`, which `bpa judges` prints and draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.adapting import build_problem
from bpa_ppl.diagnostics.baseline_comparison import predict_answers, leave_one_out
from bpa_ppl.diagnostics.baseline_table import ACCURACY
from bpa_ppl.diagnostics.baselines import BEST, RANDOM, Answers, Gains, judge
from bpa_ppl.diagnostics.check import refuse_unconverged
from bpa_ppl.diagnostics.pages.figures import NARROW, label
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.metrics.column import is_choice_of_two
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.names import matches, places_of
from bpa_ppl.nbest import NBest, centred
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import WEIGHTS, Draws, quantiles
from bpa_ppl.posterior.record import SamplerRecord
from bpa_ppl.problem import Problem
from bpa_ppl.sampling.laplace import Laplace
from bpa_ppl.sampling.mode import require_mode
from bpa_ppl.sampling.newton import Mode
from bpa_ppl.sampling.observations import Compared
from bpa_ppl.sampling.prior_choice import correlation_within
from bpa_ppl.sampling.repeating import recorded_options
from bpa_ppl.sampling.target import NUMPYRO_LOCK, Target, unflatten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.weights import AnyStart

Kept = npt.NDArray[np.bool_]

#: The variance of a weight that is left out, in units of that of its prior.
_FIXED = 1e-8
#: Draws of a refitted posterior; and those of weights and lists that uncertainties come from.
_DRAWS, _FEW = 1000, 200
_OF_WEIGHT, _OF_OTHERS = (0.025, 0.975), (0.05, 0.95)  # the ends of intervals
#: A judge counts if it is so many standard errors better than chance.
_CHANCE = 2.0
#: A jury is as good as the full one if it loses at most this gain, and its log evidence is at most
#: so much lower. With 50 pairs of RewardBench, one of ten such juries loses more than 0.005 on
#: held-out pairs; six of ten where the gain alone decides.
_TOLERANCE, _LEAST_EVIDENCE = 0.005, 1.0
#: What further labels should win, and the multiples of the present ones that are considered.
_AIM, _MULTIPLES = 0.01, np.geomspace(0.01, 100, 400)
_LEAST_PART = 4  # lists of a part of which the weights are learned, for the learning curve
_SURE = 1e-9  # the least probability of an answer, so that its logit is finite


class JudgeRow(NamedTuple):
    """What one judge, or other feature, is worth.

    Attributes:
        name: of the feature.
        weight: the posterior mean, per standard deviation of the feature within the lists.
        low: lower end of the 95 % interval of the weight.
        high: upper end.
        sign: the posterior probability that the weight has the sign of its mean.
        lost: the gain by leave-one-out that is lost without it.
        error: the standard error of that.
        evidence: the log Bayes factor of the posterior with it to that without it.
        nearest: the other feature with which it has the largest correlation within the lists.
        correlation: that correlation.
    """

    name: str
    weight: float
    low: float
    high: float
    sign: float
    lost: float
    error: float
    evidence: float
    nearest: str
    correlation: float


class Jury(NamedTuple):
    """Some of the judges.

    Attributes:
        judges: those that have a price.
        price: of all their scores for one list.
        lost: the gain by leave-one-out that is lost compared with all judges.
        error: the standard error of that.
        evidence: the log Bayes factor of the posterior of all judges to that of these.
    """

    judges: tuple[str, ...]
    price: float
    lost: float
    error: float
    evidence: float


class Cascade(NamedTuple):
    """The dear judges are asked only where the others are less sure than a probability.

    Attributes:
        dear: the judges with the highest price.
        below: the probability of the choice of the others.
        share: of the pairs that are passed on.
        gain: the accuracy by leave-one-out.
        price: of one list.
        of_all: the price if all judges are asked about each.
        worth: asking at this probability is worth its price if a wrong choice costs so much.
    """

    dear: tuple[str, ...]
    below: float
    share: float
    gain: float
    price: float
    of_all: float
    worth: float


@dataclass(frozen=True)
class Judges(Outcome):
    """What the judges of a posterior are worth; `str` gives the table.

    Attributes:
        rows: of the judges, in the order of the posterior.
        unit: of gains: `accuracy`, or `headroom`, the share of the difference between a random
            candidate and the best one.
        curve: the learning curve: numbers of judged lists, and the gain on other lists. The last is
            that of all lists, by leave-one-out.
        effective: the number of independent equal judges that are worth as much, its 90 % interval,
            and the number of judges that are better than chance.
        correlation: (Q, Q) of the features within the lists.
        remaining: the gain that exact weights would win, and its 90 % interval.
        further: how many further lists would win 0.01, and a 90 % interval; infinite if none do.
        juries: without one priced judge after the other, the cheapest first; empty without prices.
        cheapest: the place of the cheapest jury that is as good as all judges.
        cascade: if it was asked for.
    """

    rows: tuple[JudgeRow, ...]
    unit: str
    curve: tuple[tuple[int, float], ...]
    effective: tuple[float, float, float, int]
    correlation: tuple[tuple[float, ...], ...]
    remaining: tuple[float, float, float]
    further: tuple[float, float, float]
    juries: tuple[Jury, ...] = ()
    cheapest: int = 0
    cascade: Cascade | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON; infinite numbers are None."""
        named = {"rows": self.rows, "juries": self.juries}
        parts: dict[str, Any] = {n: [one._asdict() for one in part] for n, part in named.items()}
        parts["cascade"] = self.cascade and self.cascade._asdict()
        return dict(msgspec.json.decode(msgspec.json.encode({**vars(self), **parts})))

    def _shown(self) -> tuple[str, Table, list[str]]:
        """Return the table of the judges, and notes with the other results."""
        header = ("judge", "weight/sd", "95% interval", "P(sign)", "lost without it", "evidence")
        rows = [
            (row.name, f"{row.weight:+.2f}", f"{row.low:+.2f} to {row.high:+.2f}")
            + (f"{row.sign:.3f}", f"{row.lost:+.3f} ± {row.error:.3f}", f"{row.evidence:+.1f}")
            + (f"{row.correlation:+.2f} {row.nearest}",)
            for row in self.rows
        ]
        (size, gain), (number, low, high, count) = self.curve[-1], self.effective
        notes = [
            f"{count} judges better than chance, worth {number:.1f} independent ones (90% interval "
            f"{low:.1f} to {high:.1f})",
            f"learning curve: {', '.join(f'{size} lists {gain:.3f}' for size, gain in self.curve)}",
            self._labels,
        ]
        for place, jury in enumerate(self.juries):
            names = "all" if jury is self.juries[-1] else ", ".join(jury.judges) or "only free ones"
            good = ": the cheapest that is as good as all" if place == self.cheapest else ""
            lost = f"loses {jury.lost:+.3f} ± {jury.error:.3f}, evidence {-jury.evidence:+.1f}"
            notes.append(f"for {jury.price:g} a list, {names}: {lost}{good}")
        if (one := self.cascade) is not None:
            notes.append(
                f"ask {', '.join(one.dear)} where the others are less sure than {one.below:.2f}, "
                f"in {100 * one.share:.0f}% of the cases: accuracy {one.gain:.3f} for "
                f"{one.price:.3g} a list, saves {100 * (1 - one.price / one.of_all):.0f}%; ask "
                f"where they are surer if a wrong choice costs more than {one.worth:.3g}"
            )
        title = f"{size} judged lists, {self.unit} {gain:.3f} by leave-one-out"
        return title, Table((*header, "correlation"), rows), notes

    @property
    def _labels(self) -> str:
        """A sentence on what more labels would win."""
        won, low, high = self.remaining
        exact = f"exact weights would win {won:.3f} (90% interval {low:.3f} to {high:.3f})"
        count, least, most = (f"{n:,.0f}" if np.isfinite(n) else "never" for n in self.further)
        if np.isinf(self.further[0]):
            return f"more labels will not help: {exact}"
        return f"{count} more labels would win {_AIM:g} ({least} to {most}); {exact}"

    def figure(self) -> Figure:
        """Draw weights, what is lost without each judge, correlations, labels and juries."""
        from matplotlib.figure import Figure

        size, panels = len(self.rows), 3 + bool(self.juries)
        heights = [0.28 * size + 0.8, 0.28 * size + 0.8, 2.1, 2.1][:panels]
        figure = Figure((NARROW, sum(heights)), layout="constrained")
        grid = figure.add_gridspec(panels, 2, height_ratios=heights)
        names, place = [label(row.name, 20) for row in self.rows], np.arange(size)
        weight, low, high, _, lost, error = np.array([row[1:7] for row in self.rows], float).T
        left, first = figure.add_subplot(grid[0, 0]), (weight - low, high - weight)
        right = figure.add_subplot(grid[0, 1], sharey=left)
        parts = (left, "weight per sd", weight, first), (right, "lost without it", lost, error)
        for axes, title, values, bars in parts:
            axes.errorbar(values, place, xerr=bars, fmt="o")
            axes.axvline(0, color="0.6", linewidth=1)
            axes.set(title=title, yticks=place, yticklabels=names, ylim=(size - 0.5, -0.5))
        right.tick_params(labelleft=False)
        axes = figure.add_subplot(grid[1, :], title="correlation", xticks=place, yticks=place)
        image = axes.imshow(self.correlation, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        figure.colorbar(image, ax=axes)
        axes.set(xticklabels=place + 1, yticklabels=[f"{n} {k + 1}" for k, n in enumerate(names)])
        axes = figure.add_subplot(grid[2, :], xlabel="judged lists", ylabel=self.unit)
        axes.plot(*zip(*self.curve, strict=True), "o-")
        won, *ends = self.curve[-1][1] + np.array(self.remaining)
        axes.axhline(won, color="C2", linestyle="--", label="with exact weights, 90%")
        axes.axhspan(*ends, color="C2", alpha=0.2)
        axes.legend(loc="lower right")
        if self.juries:
            axes = figure.add_subplot(grid[3, :], xlabel="price of a list", ylabel="lost")
            _, price, lost, error, _ = zip(*self.juries, strict=True)
            axes.errorbar(price, lost, yerr=error, fmt="o-")
            axes.plot(price[self.cheapest], lost[self.cheapest], "*", color="C3", markersize=16)
        return figure


def judges(
    posterior: Posterior,
    lists: NBest,
    *,
    prices: Mapping[str, float] | None = None,
    cascade: bool = False,
) -> Judges:
    """Return what each judge of a posterior is worth, and what more labels would win.

    Gains are by leave-one-out: the accuracy on preferences, else the share of the headroom, which
    is the difference between a random candidate and the best one.

    * Without a judge, the posterior of the other weights is fitted again with their prior, by
      Laplace's approximation and importance sampling.
    * The mean loss of K judges, on lists whose losses have the mean correlation r between judges,
      varies as that of K / (1 + (K − 1) r) independent ones (Kish 1965). Only judges count that are
      2 standard errors better than chance.
    * Exact weights are draws of the posterior: what they win, by their own probabilities or scores,
      compared with the mean weights. Further lists add as much information as those before.
    * Dear judges are worth asking if their price is below the cost of a wrong choice times
      E max(p, 1 − p) − max(E p, 1 − E p), where p is the probability after their answer (the
      expected value of information; Raiffa & Schlaifer 1961).

    Args:
        posterior: of `adapt`.
        lists: the lists that it was adapted to.
        prices: of judges, by the name or label of their features, for one list; others are free.
        cascade: whether to find out when the judges with the highest price are worth asking.

    Raises:
        DataError: if these are other lists, the model or prior is not a default one, or there are
            no preferences for a cascade.
        UsageError: if a price makes no sense.
        NotConverged: if the posterior fails its check.

    >>> from bpa_ppl import adapt, from_lists
    >>> scores = np.random.default_rng(0).normal(size=(40, 2, 2)) + [[[1.5, 1.0], [0.0, 0.0]]]
    >>> lists = from_lists([["a", "b"]] * 40, scores, ["gpt", "tests"])
    >>> lists = lists.with_sentence_extras(preferences=[[[0, 1]]] * 40)
    >>> result = judges(adapt(lists, sampler="laplace"), lists)
    >>> [row.name for row in result.rows if row.sign > 0.95], result.unit
    (['gpt', 'tests'], 'accuracy')
    """
    draws, prices = as_draws(posterior), prices or {}
    require(lists, NBest, "judges are valued on n-best lists (NBest)", "lists")
    refuse_unconverged(draws)
    weights, options = recorded_options(draws)
    with capture_notes():  # those of `adapt`
        problem = build_problem(lists, weights, **options)
        target = problem.target
        if problem.record.data != draws.record.data:
            reason = "these are not the lists that the posterior was adapted to: give those"
            raise DataError(reason, lists.origin, code="mismatch")
        if target.model is not log_linear or target.prior.other is not None:
            reason = "only the default model with a Gaussian prior can be fitted without a judge"
            raise DataError(reason, code="not-supported")
        groups = _priced(target.features, prices)
        refits = _Refits(problem, _judged(problem))
        curve = _curve(refits, lists, weights, options)
        sample = refits.full if draws.kind == "point" else draws
        correlation, rows = _rows(refits, sample)
        remaining, further = _labels(refits, sample)
        juries = _juries(refits, groups, prices) if prices else ()
        good = [j.lost <= _TOLERANCE and j.evidence <= _LEAST_EVIDENCE for j in juries]
        found = _cascade(refits, groups, prices) if cascade else None
    unit, effective = (
        ACCURACY if isinstance(refits.judged, Answers) else "headroom",
        _effective(refits),
    )
    cheapest = good.index(True) if good else 0
    matrix = tuple(map(tuple, correlation.tolist()))
    return Judges(rows, unit, curve, effective, matrix, remaining, further, juries, cheapest, found)


def _judged(problem: Problem) -> Gains | Answers:
    """Return how the lists were judged; gains are shares of the headroom.

    A gain that says which of two candidates was chosen is a preference.
    """
    observed = problem.observed
    if isinstance(observed, Compared):
        return judge(problem.lists, None)
    lists, metric = observed.lists, observed.gain
    judged = judge(lists, metric, observed.gains)
    random, best = (judged.bounds()[name] for name in (RANDOM, BEST))
    if is_choice_of_two(metric, lists):
        pairs = zip(observed.oracles.index.tolist(), best > random, strict=True)
        preferences = [[[chosen, 1 - chosen]] if decided else None for chosen, decided in pairs]
        return judge(lists.with_sentence_extras(preferences=preferences), None)
    assert isinstance(judged, Gains)  # there is a metric
    shares = (judged.gains - np.repeat(random, judged.lists.sizes)) / (best - random).mean()
    return replace(judged, gains=shares)


@dataclass(frozen=True)
class _Refits:
    """The posterior of some of the features, as often as needed.

    A feature is left out by a prior that fixes its weight at 0, so that nothing is compiled again.
    """

    problem: Problem
    judged: Gains | Answers

    def target(self, kept: Kept) -> Target:
        """Return the posterior of the features that are kept."""
        target, left_out = self.problem.target, ~kept
        prior, covariance = target.prior, np.array(target.prior.full_covariance)
        fixed = _FIXED * np.diag(covariance)[left_out]
        covariance[left_out] = covariance[:, left_out] = 0.0
        covariance[left_out, left_out] = fixed
        mean = np.where(left_out, 0.0, prior.mean)
        degrees = None if prior.degrees is None else np.where(left_out, 0.0, prior.degrees)
        prior = prior._replace(mean=mean, variance=None, covariance=covariance, degrees=degrees)
        return replace(target, prior=prior, start={**target.start, WEIGHTS: mean})

    def mode(self, kept: Kept) -> Mode:
        """Return its mode."""
        with NUMPYRO_LOCK, jax.enable_x64(True):
            return require_mode(self.target(kept))

    def draws(self, kept: Kept) -> Draws:
        """Return weighted draws of it."""
        target = self.target(kept)
        with NUMPYRO_LOCK, jax.enable_x64(True):
            sampled = Laplace(draws=_DRAWS).sample(target)
        return replace(self.problem, target=target).plain_draws(sampled, SamplerRecord())

    def gains(self, draws: Draws) -> Float64:
        """Return the gain of each list by leave-one-out, (lists,)."""
        lists, by_mean = self.judged.lists, not draws.record.canonical
        scores = leave_one_out(draws, lists, by_mean=by_mean)[0]
        return self.judged.of_scores(np.concatenate(scores))

    def lost(self, kept: Kept) -> tuple[float, float, float]:
        """Return the gain that is lost with fewer features, its standard error, and evidence."""
        difference, weight = self.of_all - self.gains(self.draws(kept)), self.judged.weight
        lost = float(np.average(difference, weights=weight))
        error = np.sqrt(np.sum((weight * (difference - lost)) ** 2)) / weight.sum()
        evidence = self.mode(self.every).log_evidence - self.mode(kept).log_evidence
        return lost, float(error), evidence

    @cached_property
    def every(self) -> Kept:
        """(Q,) all features."""
        return np.ones(len(self.problem.target.features), bool)

    @cached_property
    def full(self) -> Draws:
        """The posterior of all features."""
        return self.draws(self.every)

    @cached_property
    def of_all(self) -> Float64:
        """(lists,) the gain of all features."""
        return self.gains(self.full)


def _curve(
    refits: _Refits, lists: NBest, weights: AnyStart, options: Mapping[str, Any]
) -> tuple[tuple[int, float], ...]:
    """Return the gain on the other lists of weights adapted to quarters, halves and all lists."""
    judged, curve = refits.judged, list[tuple[int, float]]()
    ids = np.random.default_rng(0).permutation(judged.lists.sentence_ids)
    for parts in (4, 2) if len(ids) >= 4 * _LEAST_PART else ():
        gains = []
        for part in np.array_split(ids, parts):
            rows = np.flatnonzero(np.isin(lists.sentence_ids, part))
            fewer = replace(refits, problem=build_problem(lists.select(rows), weights, **options))
            vector = unflatten(fewer.mode(refits.every).position, fewer.problem.target.start)
            scores = judged.lists.scores(refits.full.aligned(judged.lists, [vector[WEIGHTS]])[0])
            others = ~np.isin(judged.lists.sentence_ids, part)
            of_lists = judged.of_scores(scores)[others]
            gains.append(np.average(of_lists, weights=judged.weight[others]))
        curve.append((len(ids) // parts, float(np.mean(gains))))
    return *curve, (len(ids), float(np.average(refits.of_all, weights=judged.weight)))


def _rows(refits: _Refits, sample: Draws) -> tuple[Float64, tuple[JudgeRow, ...]]:
    """Return the correlations of the features within the lists, and the rows of the table."""
    names, lists, importance = sample.features, refits.problem.lists, sample.importance
    scaled = sample.flat * lists.spread[places_of(names, lists.feature_names)]
    low, high = quantiles(scaled, _OF_WEIGHT, importance)
    mean, positive = importance @ scaled, importance @ (scaled > 0)
    with np.errstate(invalid="ignore"):  # a feature may be constant within the lists
        table = correlation_within(lists, names)
    correlation, rows = np.nan_to_num([[table[a, b] for b in names] for a in names]), []
    others = correlation - np.diag(np.diag(correlation))
    for k, name in enumerate(names):
        near, sign = int(np.argmax(np.abs(others[k]))), max(positive[k], 1 - positive[k])
        weight = mean[k], low[k], high[k], sign
        loss = refits.lost(np.arange(len(names)) != k) if len(names) > 1 else (np.nan,) * 3
        nearest = names[near] if near != k else ""
        rows.append(JudgeRow(name, *map(float, (*weight, *loss)), nearest, others[k, near].item()))
    return correlation, tuple(rows)


def _effective(refits: _Refits) -> tuple[float, float, float, int]:
    """Return how many independent judges the judges are worth, its interval, and their number."""
    lists, losses = refits.judged.lists, list[Float64]()
    for name in refits.problem.target.features:
        scores = lists.features[:, lists.feature_names.index(name)].astype(np.float64)
        association = refits.judged.association(scores)
        if abs(association) >= _CHANCE:
            losses.append(-refits.judged.of_scores(np.sign(association) * scores))
    if not losses:
        return 0.0, 0.0, 0.0, 0
    table, rng = np.column_stack(losses), np.random.default_rng(0)
    again = [
        count_independent(table[rng.integers(len(table), size=len(table))]) for _ in range(_FEW)
    ]
    low, high = np.quantile(again, _OF_OTHERS).tolist()
    return count_independent(table), low, high, len(losses)


def count_independent(losses: Float64) -> float:
    """Return how many independent judges K judges are worth, from their losses, (lists, K).

    >>> losses = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> round(count_independent(losses[:, :2]), 6), round(count_independent(losses[:, 1:]), 6)
    (1.0, 2.0)
    """
    scale, count = losses.std(axis=0), losses.shape[1]
    unit = (losses - losses.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    correlation = unit.T @ unit / len(losses)
    np.fill_diagonal(correlation, 1.0)
    return float(count**2 / max(correlation.sum(), count))  # that of few lists may be negative


def _labels(
    refits: _Refits, sample: Draws
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return what exact weights would win, and how many further lists would win 0.01."""
    judged, every, start = refits.judged, refits.every, refits.problem.target.start
    lists, size = judged.lists, len(judged.lists)
    chosen = np.random.default_rng(0).choice(len(sample.flat), _FEW, p=sample.importance)
    vectors = sample.aligned(lists, np.vstack([sample.mean, sample.flat[chosen]]))
    scores = lists.features.astype(np.float64) @ vectors.T
    features = centred(
        lists.features[:, places_of(sample.features, lists.feature_names)], lists.sizes
    )
    if isinstance(judged, Answers):
        better, worse = judged.pairs.better, judged.pairs.worse
        features, margin = features[better] - features[worse], scores[better] - scores[worse]
        differ = np.sign(margin) != np.sign(margin[:, :1])
        each = np.abs(2 * expit(margin) - 1) * differ
        won = np.average(each, axis=0, weights=judged.pairs.weight)[1:]
    else:  # with the slope of the gains on the scores
        first, of_mean = lists.offsets[:-1], centred(scores[:, 0], lists.sizes)
        slope = max(of_mean @ centred(judged.gains, lists.sizes) / (of_mean @ of_mean), 0.0)
        best = np.maximum.reduceat(scores, first, axis=0)
        won = slope * (best - scores[first + lists.best(scores[:, 0])]).mean(axis=0)[1:]
    mode, prior = refits.mode(every), np.linalg.inv(refits.target(every).prior.covariance)
    place = unflatten(np.arange(len(mode.position)), start)[WEIGHTS]
    covariance = mode.covariance[np.ix_(place, place)]
    more = (1 + _MULTIPLES[:, None, None]) * (np.linalg.inv(covariance) - prior)
    left = np.sum(np.linalg.inv(prior + more) * (features.T @ features), axis=(1, 2))
    share = 1 - left / np.sum(covariance * (features.T @ features))

    def further(won: float) -> float:
        enough = won * share >= _AIM
        return float(np.ceil(size * _MULTIPLES[np.argmax(enough)])) if enough.any() else np.inf

    low, high = np.quantile(won, _OF_OTHERS).tolist()
    expected = float(won.mean())
    return (expected, low, high), (further(expected), further(high), further(low))


def _priced(names: Sequence[str], prices: Mapping[str, float]) -> dict[str, Kept]:
    """Return which features each priced judge has.

    Raises:
        UsageError: if a price is not a positive number, or of no judge, or of one with another.
    """
    groups = {name: np.array([matches(one, [name]) for one in names]) for name in prices}
    for name, group in groups.items():
        if not 0 < prices[name] < np.inf:
            reason = f"the price of {name} is {prices[name]:g}: give a positive number"
            raise UsageError(reason, parameter="prices", code="bad-number")
        if not group.any() or (group & (np.sum(list(groups.values()), axis=0) > 1)).any():
            reason = f"{name} is no judge, or has another price: choose from {', '.join(names)}"
            raise UsageError(reason, parameter="prices", code="missing-feature")
    return groups


def _juries(
    refits: _Refits, groups: Mapping[str, Kept], prices: Mapping[str, float]
) -> tuple[Jury, ...]:
    """Return juries without one priced judge after the other, the cheapest first.

    The next to leave is that whose loss of evidence is the smallest for its price. Evidence varies
    less than the gain of few lists.
    """
    kept, names, juries = refits.every, list(groups), [Jury(tuple(groups), 0.0, 0.0, 0.0, 0.0)]
    juries[0] = juries[0]._replace(price=sum(prices.values()))
    while names:
        rest = {name: kept & ~groups[name] for name in names}
        rest = {name: fewer for name, fewer in rest.items() if fewer.any()}
        if not rest:
            break
        evidence = refits.mode(kept).log_evidence
        loss = {n: (evidence - refits.mode(k).log_evidence) / prices[n] for n, k in rest.items()}
        worst = min(loss, key=lambda name: loss[name])
        names, kept = [name for name in names if name != worst], rest[worst]
        price = sum(prices[name] for name in names)
        juries.append(Jury(tuple(names), price, *refits.lost(kept)))
    return tuple(juries[::-1])


def _cascade(refits: _Refits, groups: Mapping[str, Kept], prices: Mapping[str, float]) -> Cascade:
    """Return when the judges with the highest price are worth asking."""
    judged = refits.judged
    if not isinstance(judged, Answers):
        reason = "a cascade needs preferences: the probabilities of graded lists are not calibrated"
        raise DataError(reason, judged.lists.origin, code="not-supported")
    dear = tuple(name for name in groups if prices[name] == max(prices.values()))
    others = ~np.any([groups[name] for name in dear], axis=0)
    if not dear or not others.any():
        reason = "a cascade needs a judge with a price and another one that costs less: give prices"
        raise UsageError(reason, parameter="prices", code="missing-setting")
    both = refits.draws(others), refits.full
    before, after = (np.clip(predict_answers(d, judged), _SURE, 1 - _SURE) for d in both)
    weight, sure = judged.pairs.weight, np.maximum(before, 1 - before)
    scale = fit_change(logit(sure), np.where(before < 0.5, -1, 1) * logit(after), weight)
    value, order = value_of_asking(sure, scale), np.argsort(sure)
    # Ask the least sure, until asking the rest is expected to win no more than the tolerance.
    unasked = np.append((weight * value)[order[::-1]].cumsum()[::-1], 0.0) / weight.sum()
    asked = order[: np.argmax(unasked <= _TOLERANCE)]
    p, share = before.copy(), len(asked) / len(order)
    p[asked] = after[asked]
    gain = np.average((p > 0.5) + 0.5 * (p == 0.5), weights=weight)
    below, of_all = float(sure[asked].max(initial=0.5)), sum(prices.values())
    extra = sum(prices[name] for name in dear)
    worth = extra / max(float(value_of_asking(np.array([below]), scale)[0]), 1e-9)
    price = of_all - (1 - share) * extra
    return Cascade(dear, below, share, float(gain), price, of_all, worth)


def fit_change(before: Float64, after: Float64, weight: Float64) -> float:
    """Return the standard deviation s of the logit of a probability after a further answer.

    Its mean is that before times √(1 + π s² / 8), so that the probability stays the same on average
    (MacKay 1992).

    Args:
        before: (n,) logits before the answer.
        after: (n,) logits after it.
        weight: (n,) of each.
    """
    variance = 0.0
    for _ in range(100):
        change = after - before * np.sqrt(1 + np.pi * variance / 8)
        variance = float(np.average(change**2, weights=weight))
    return float(np.sqrt(variance))


def value_of_asking(sure: Float64, scale: float) -> Float64:
    """Return by how much a further answer is expected to raise the probability of a right choice.

    Args:
        sure: (n,) the probability of the choice before it, at least ½.
        scale: the standard deviation of its logit after the answer.

    >>> value_of_asking(np.array([0.5, 0.9, 0.99]), 1.5).round(3).tolist()
    [0.238, 0.019, 0.0]
    """
    unit = np.linspace(-6, 6, 601)
    share, centre = np.exp(-(unit**2) / 2), logit(sure) * np.sqrt(1 + np.pi * scale**2 / 8)
    later = expit(centre[:, None] + scale * unit)
    return np.asarray(np.maximum(1 - 2 * later, 0.0) @ share / share.sum())

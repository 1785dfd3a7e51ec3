"""The value of each judge, or other feature: `judges`, which `bpa judges` prints and draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import capture_notes, format_count
from bpa_ppl._runtime.names import find_positions
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.adapting.prior import correlate_within
from bpa_ppl.adapting.settings import recorded_options
from bpa_ppl.adapting.weights_target import WeightsTarget, choose_coordinates
from bpa_ppl.densities.mode import require_mode
from bpa_ppl.densities.target import NUMPYRO_LOCK, unflatten
from bpa_ppl.diagnostics.check.report import refuse_unconverged
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.diagnostics.pages.figures import label
from bpa_ppl.errors import DataError
from bpa_ppl.evaluation.gain import ACCURACY
from bpa_ppl.evaluation.leave_one_out import leave_out
from bpa_ppl.evaluation.paired import estimate_error
from bpa_ppl.evaluation.reliability import Promise, Reliability
from bpa_ppl.evaluation.simple_ways import values_of
from bpa_ppl.gains.judged import Judged
from bpa_ppl.lists.nbest import NBest, centre, score_differences, subtract_first
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.samplers.laplace import Laplace
from bpa_ppl.sampling.finish import make_draws
from bpa_ppl.sampling.run_sampler import SamplerRun, draw
from bpa_ppl.weight_draws import WEIGHTS, WeightDraws, as_weight_draws

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bpa_ppl.posterior.arviz_data import Posterior
    from bpa_ppl.weights import AnyStart

#: (Q,) whether each feature is kept; True keeps all of them.
_Kept = npt.NDArray[np.bool_] | bool

#: The variance of a weight that is left out, as a share of its prior variance.
_FIXED = 1e-8
#: The number of draws of a refitted posterior, and of the samples that give uncertainties.
_DRAWS, _REFITTED_DRAWS = 1000, 200
_ENDS = (0.05, 0.95)  # the ends of 90% intervals
#: A judge counts if it is this many standard errors better than chance.
_CHANCE = 2.0
_PROMISES = (0.8, 0.85, 0.9)  # agreements with the judge
_AIM = 0.01  # the gain that further labels should win
_LEAST_PART = 5  # the least number of lists for a point of the learning curve


@dataclass(frozen=True)
class JudgeRow:
    """The value of one judge, or other feature.

    Attributes:
        name: the name of the feature.
        weight: the posterior mean, per standard deviation of the feature within the lists.
        low: the lower end of the 95 % interval of the weight.
        high: the upper end.
        sign: the posterior probability that the weight has the sign of its mean.
        lost: the gain by leave-one-out that is lost without the judge.
        error: the standard error of `lost`.
        evidence: the log Bayes factor for including the judge.

    >>> JudgeRow("gpt", 1.06, 0.4, 1.7, 0.99, 0.03, 0.02, 4.1).lost
    0.03
    """

    name: str
    weight: float
    low: float
    high: float
    sign: float
    lost: float
    error: float
    evidence: float


@dataclass(frozen=True)
class Judges(Outcome):
    """The value of the judges of a posterior; `str` gives the table.

    Attributes:
        rows: one row for each judge, in the order of the posterior.
        unit: the unit of gains: `accuracy`, or `headroom`, the share of the difference between a
            random candidate and the best one.
        curve: the learning curve: numbers of judged lists, and the gain on other lists. The last
            point has all lists, by leave-one-out.
        effective: the number of independent equal judges that are worth as much, its 90 % interval,
            and the number of judges that are better than chance.
        correlation: (Q, Q) the correlations of the features within the lists.
        remaining: the gain that exact weights would win, and its 90 % interval.
        further: the number of further lists that would win 0.01, and a 90 % interval; None if no
            number does.
        promises: how many choices can be promised to agree with the judge in 80, 85 and 90 %, now
            and with twice the labels; empty if the lists were not answers about pairs.

    >>> rows = [JudgeRow("gpt", 1.06, 0.4, 1.7, 0.99, 0.03, 0.02, 4.1)]
    >>> one, nothing = (1.0, 1.0, 1.0, 1), (0.0, 0.0, 0.0)
    >>> found = Judges(rows, "accuracy", ((50, 0.9),), one, ((1.0,),), nothing, (None,) * 3)
    >>> print(found)
    50 judged lists, accuracy 0.900 by leave-one-out
    ...
    - more labels will not help: exact weights would win 0.000 (90% interval 0.000 to 0.000)
    """

    rows: tuple[JudgeRow, ...]
    unit: str
    curve: tuple[tuple[int, float], ...]
    effective: tuple[float, float, float, int]
    correlation: tuple[tuple[float, ...], ...]
    remaining: tuple[float, float, float]
    further: tuple[int | None, ...]
    promises: tuple[Promise, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return dict(msgspec.to_builtins(self))

    def _summarise(self) -> tuple[str, Table, list[str]]:
        header = ("judge", "weight/sd", "95% interval", "P(sign)", "lost without it", "evidence")
        rows = []
        for place, row in enumerate(self.rows):
            nearest = max(np.delete(self.correlation[place], place), key=abs, default=0.0)
            weight = row.name, f"{row.weight:+.2f}", f"{row.low:+.2f} to {row.high:+.2f}"
            lost = f"{row.lost:+z.3f} ± {row.error:.3f}", f"{row.evidence:+.1f}"
            rows.append((*weight, f"{row.sign:.3f}", *lost, f"{nearest:+.2f}"))
        (size, gain), (number, low, high, count) = self.curve[-1], self.effective
        curve = ", ".join(f"{gain:.3f} with {format_count(n, 'list')}" for n, gain in self.curve)
        worth = f"worth {number:.1f} independent ones (90% interval {low:.1f} to {high:.1f})"
        notes = [
            f"{format_count(count, 'judge')} better than chance, {worth}",
            f"{self.unit} {curve}",
        ]
        against = []
        for row in (row for row in self.rows if row.evidence < 0):
            change, side = f"{abs(row.lost):.3f}", "lower" if row.lost > 0 else "higher"
            change = f"{change} ± {row.error:.3f} {side}" if float(change) else "the same"
            against.append(f"{row.name} (without it, the {self.unit} is {change})")
        if against:
            notes.append(f"the evidence is against these judges, each alone: {', '.join(against)}")
        won, low, high = self.remaining
        exact = f"exact weights would win {won:.3f} (90% interval {low:.3f} to {high:.3f})"
        expected, *ends = self.further
        labels = f"more labels will {'not help' if ends[0] is None else 'help little'}"
        if expected is not None:
            least, most = ("never" if n is None else f"{n:,}" for n in ends)
            labels = format_count(expected, "more label")
            labels += f" would win {_AIM:g} ({least} to {most})"
        notes.append(f"{labels}: {exact}")
        notes += [
            f"with {one.confidence:.0%} confidence, an agreement of {one.agree:.0%} can be "
            f"promised for {one.share:.0%} of the choices, and with {2 * size} labels for about "
            f"{one.expected:.0%}"
            for one in self.promises
        ]
        lists = format_count(size, "judged list")
        title = f"{lists}, {self.unit} {gain:.3f} by leave-one-out"
        return title, Table((*header, "largest correlation"), rows), notes

    def figure(self) -> Figure:
        """Draw weights, what is lost without each judge, correlations and labels."""
        from matplotlib import colormaps
        from matplotlib.figure import Figure

        names, place = [label(row.name) for row in self.rows], np.arange(len(self.rows))
        heights = [*[0.28 * len(place) + 1] * 2, 2.2]
        figure = Figure((5.6, sum(heights)), layout="constrained")
        parts: Any = figure.subfigures(len(heights), 1, height_ratios=heights)
        numbers = np.array([astuple(row)[1:] for row in self.rows]).T
        weight, low, high, _, lost, error, _ = numbers
        left, right = parts[0].subplots(1, 2, sharey=True)
        left.errorbar(weight, place, xerr=(weight - low, high - weight), fmt="o")
        right.errorbar(lost, place, xerr=error, fmt="o")
        left.set(xlabel="weight per sd, 95%", yticks=place, yticklabels=names)
        right.set(xlabel="lost without it (below 0: won)", ylim=(len(place) - 0.5, -0.5))
        for axes in (left, right):
            axes.axvline(0, color="0.6", linewidth=1)
        matrix, labels = [part.subplots() for part in parts[1:]]
        colours = colormaps["RdBu_r"].resampled(20)  # the image has few
        image = matrix.imshow(self.correlation, cmap=colours, vmin=-1, vmax=1, aspect="auto")
        parts[1].colorbar(image, ax=matrix, label="correlation")
        matrix.set(xticks=place, xticklabels=place + 1, yticks=place)
        matrix.set_yticklabels([f"{name} {k + 1}" for k, name in enumerate(names)])
        labels.set(xlabel="judged lists (green: exact weights, 90%)", ylabel=self.unit)
        labels.plot(*zip(*self.curve, strict=True), "o-")
        won, low, high = self.curve[-1][1] + np.array(self.remaining)
        labels.axhline(won, color="C2", linestyle="--")
        labels.axhspan(low, high, color="C2", alpha=0.2)
        return figure


def judges(posterior: Posterior, lists: NBest, *, unchecked: bool = False) -> Judges:
    """Return the value of each judge of a posterior, and how much more labels would win.

    Gains are by leave-one-out: the accuracy on preferences, otherwise the share of the headroom,
    which is the difference between a random candidate and the best one.

    * Without a judge, the posterior of the other weights is fitted again with their prior, by
      Laplace's approximation and importance sampling.
    * If the losses of K judges on the lists have the mean correlation r, their mean varies like the
      mean of K / (1 + (K − 1) r) independent judges (Kish 1965). Only judges that are 2 standard
      errors better than chance count. The interval comes from the bootstrap; for its lower end, all
      judges err in one more list.
    * Each draw of the posterior is taken as the exact weights, and compared with the mean weights
      by its own probabilities or scores. Further lists add as much information as the present ones.

    Args:
        posterior: a posterior of `adapt`.
        lists: the lists that it was adapted to.
        unchecked: use the posterior although it fails its check.

    Raises:
        DataError: if these are other lists, or the model or prior is not a default one.
        NotConverged: if the posterior fails `check` and `unchecked` is false.

    >>> from bpa_ppl import adapt, from_lists
    >>> scores = np.random.default_rng(0).normal(size=(40, 2, 2)) + [[[1.5, 1.0], [0.0, 0.0]]]
    >>> lists = from_lists([["a", "b"]] * 40, scores, ["gpt", "tests"])
    >>> lists = lists.with_sentence_extras(preferences=[[[0, 1]]] * 40)
    >>> result = judges(adapt(lists, sampler="laplace"), lists)
    >>> [row.name for row in result.rows if row.sign > 0.95], result.unit
    (['gpt', 'tests'], 'accuracy')
    """
    draws = as_weight_draws(posterior)
    require(lists, NBest, "judges are valued on n-best lists (NBest)", "lists")
    if not unchecked:
        refuse_unconverged(draws)
    start, options = recorded_options(draws)
    with capture_notes(), NUMPYRO_LOCK, jax.enable_x64(True):  # the notes are those of `adapt`
        target, reason = log_density(lists, start, **options), ""
        adaptation = require_adaptation(target)
        if adaptation.observed.hashes() != draws.adaptation.data:
            reason = "these are not the lists that the posterior was adapted to: pass those"
        if target.model is not log_linear or target.prior.other is not None:
            reason = "only the default model with a Gaussian prior can be fitted without a judge: "
            reason += "adapt with this model and prior"
        if not len(adaptation.observed.lists):
            reason = "the posterior was adapted to no lists: adapt to judgements or references"
        if reason:
            raise DataError(reason, lists.origin, code="mismatch")
        refits = _Refits(target)
        if not len(refits.judged.lists):
            message = "all answers are ties, which show nothing about judges: add preferences"
            raise DataError(message, lists.origin, code="no-data")
        sample = refits.full if draws.draws.kind == "point" else draws
        unit = ACCURACY if refits.judged.pairs is not None else "headroom"
        curve = refits.learn_curve(lists, start, options)
        remaining, further = refits.forecast(sample)
        rows, correlation, effective = *refits.make_rows(sample), refits.count_effective()
    reliability = Reliability.of(draws.adaptation)
    promises = () if reliability is None else tuple(map(reliability.promise, _PROMISES))
    return Judges(rows, unit, curve, effective, correlation, remaining, further, promises)


@dataclass(frozen=True)
class _Refits:
    """Posteriors of some of the features, and the values of judges that follow from them.

    A prior that fixes its weight at 0 leaves a feature out, so that nothing is compiled again.
    """

    target: WeightsTarget

    @cached_property
    def judged(self) -> Judged:
        """The judgements of the lists; gains are shares of the headroom."""
        adaptation = require_adaptation(self.target)
        gain, judged = adaptation.observed.gain, adaptation.judged
        judged = judged.scored(gain)
        if judged.gains is None:
            return judged
        above = judged.gains - np.repeat(judged.random, judged.lists.sizes)
        return Judged.by_gains(judged.lists, above / (judged.best - judged.random).mean())

    def build_target(self, kept: _Kept) -> WeightsTarget:
        """Return the posterior of the features that are kept."""
        target, prior = self.target, self.target.prior
        full, mean = prior.full_covariance, np.asarray(prior.mean) * kept
        covariance = np.where(np.outer(kept, kept), full, _FIXED * np.diag(np.diag(full)))
        scale = prior.scale
        if scale is not None and (shared := kept & np.asarray(scale.shared)).any():
            scale = scale._replace(shared=shared)
        prior = prior._replace(mean=mean, variance=None, covariance=covariance, scale=scale)
        data = target.data._replace(prior=prior)
        return replace(target, data=data, start={**target.start, WEIGHTS: mean})

    def draw(self, kept: _Kept) -> WeightDraws:
        """Return weighted draws of the posterior of the features that are kept."""
        target = self.build_target(kept)
        adaptation = require_adaptation(target)
        seed = adaptation.prepared.settings.seed
        sampled = draw(Laplace(draws=_DRAWS), target, seed)
        draws = make_draws(SamplerRun(target, sampled, seed=seed))
        values = {**draws.values, WEIGHTS: draws.values[WEIGHTS] * kept}
        return WeightDraws(replace(draws, values=values))

    @cached_property
    def full(self) -> WeightDraws:
        """The posterior of all features."""
        return self.draw(True)

    def compute_gains(self, draws: WeightDraws) -> Float64:
        """Return the gain of each list by leave-one-out, (lists,)."""
        return self.judged.gain_of(leave_out(draws, self.judged.lists).score())

    @cached_property
    def of_all(self) -> Float64:
        """(lists,) The gain of each list with all features."""
        return self.compute_gains(self.full)

    def measure_loss(self, kept: _Kept) -> tuple[float, float, float]:
        """Return the gain that is lost with fewer features, its standard error, and evidence."""
        fewer, accuracy = self.draw(kept), self.judged.pairs is not None
        difference = self.of_all - self.compute_gains(fewer)
        lost = estimate_error(difference, self.judged.weight, accuracy=accuracy)
        of_all, of_fewer = (d.record.figures.log_evidence for d in (self.full, fewer))
        assert of_all is not None  # the mode was found
        assert of_fewer is not None
        return *lost, of_all - of_fewer

    def learn_curve(
        self, lists: NBest, start: AnyStart, options: Mapping[str, Any]
    ) -> tuple[tuple[int, float], ...]:
        """Return the gain, on the other lists, of weights adapted to quarters, halves and all."""
        judged, curve = self.judged, list[tuple[int, float]]()
        ids = np.random.default_rng(0).permutation(judged.lists.sentence_ids)
        for parts in (4, 2) if len(ids) >= 4 * _LEAST_PART else ():
            gains = []
            for part in np.array_split(ids, parts):
                chosen = lists.select(np.isin(lists.sentence_ids, part))
                target = log_density(chosen, start, **options)
                chosen_target = choose_coordinates(target)
                z = unflatten(require_mode(chosen_target).position, chosen_target.start)
                mode = chosen_target.restore_sites(z)[WEIGHTS]
                pairs = zip(target.match.names, target.match.full(mode).tolist(), strict=True)
                # These lists may not separate all features.
                weights = dict.fromkeys(judged.lists.feature_names, 0.0) | dict(pairs)
                others = ~np.isin(judged.lists.sentence_ids, part)
                of_others = judged.gain_of(score_differences(judged.lists, weights))[others]
                gains.append(np.average(of_others, weights=judged.weight[others]))
            curve.append((len(ids) // parts, float(np.mean(gains))))
        return *curve, (len(ids), float(np.average(self.of_all, weights=judged.weight)))

    def make_rows(
        self, sample: WeightDraws
    ) -> tuple[tuple[JudgeRow, ...], tuple[tuple[float, ...], ...]]:
        """Return the rows of the table, and the correlations of the features within the lists."""
        names, lists = sample.features, require_adaptation(self.target).prepared.lists
        spread = lists.spread[find_positions(names, lists.feature_names)]
        # The weight of a constant feature is 0, not −0.
        ends = (x * spread + 0.0 for x in (sample.mean, *sample.marginal.interval(0.95)))
        positive = sample.importance @ (sample.flat > 0)
        columns = (x.tolist() for x in (*ends, np.maximum(positive, 1 - positive)))
        every = zip(names, *columns, ~np.eye(len(names), dtype=bool), strict=True)
        rows = tuple(
            JudgeRow(name, weight, low, high, sign, *self.measure_loss(kept))
            for name, weight, low, high, sign, kept in every
        )
        with np.errstate(invalid="ignore"):  # a feature may be constant within the lists
            matrix = np.nan_to_num(correlate_within(lists, names))
        return rows, tuple(map(tuple, matrix.tolist()))

    def count_effective(self) -> tuple[float, float, float, int]:
        """Return the number of independent judges, its interval, and how many judges count."""
        losses = []
        for name in self.target.features:
            scores = values_of(self.judged.lists, name)
            association = self.judged.association(scores)
            if abs(association) >= _CHANCE:
                losses.append(-self.judged.gain_of(np.sign(association) * scores))
        if not losses:
            return 0.0, 0.0, 0.0, 0
        table = np.column_stack(losses)
        return count_independent(table), *bound_independent(table), len(losses)

    def forecast(
        self, sample: WeightDraws
    ) -> tuple[tuple[float, float, float], tuple[int | None, ...]]:
        """Return the gain that exact weights would win, and how many more lists would win 0.01."""
        judged, lists = self.judged, self.judged.lists
        chosen = np.random.default_rng(0).choice(
            len(sample.flat), _REFITTED_DRAWS, p=sample.importance
        )
        vectors = sample.aligned(lists, np.vstack([sample.mean, sample.flat[chosen]]))
        scores = subtract_first(lists.features, lists.sizes) @ vectors.T
        if judged.pairs is not None:
            margin = scores[judged.pairs.better] - scores[judged.pairs.worse]
            differ = np.sign(margin) != np.sign(margin[:, :1])
            each = np.abs(2 * expit(margin) - 1) * differ
            won = np.average(each, axis=0, weights=judged.pairs.weight)[1:]
        else:  # with the slope of the gains on the scores
            assert judged.gains is not None
            first, of_mean = lists.offsets[:-1], centre(scores[:, 0], lists.sizes)
            slope = max(of_mean @ centre(judged.gains, lists.sizes) / (of_mean @ of_mean), 0.0)
            best = np.maximum.reduceat(scores, first, axis=0)
            won = slope * (best - scores[first + lists.best(scores[:, 0])]).mean(axis=0)[1:]
        low, high = np.quantile(won, _ENDS).tolist()
        expected, size = float(won.mean()), len(lists)
        # After n lists c / n is left to win, so N further lists win c / n − c / (n + N).
        further = (
            math.ceil(size * _AIM / (left - _AIM)) if left > _AIM else None
            for left in (expected, high, low)
        )
        return (expected, low, high), tuple(further)


def count_independent(losses: Float64) -> float:
    """Return how many independent judges K judges are worth, from their losses, (lists, K).

    >>> losses = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    >>> round(count_independent(losses[:, :2]), 6), round(count_independent(losses[:, 1:]), 6)
    (1.0, 2.0)
    """
    scale, count = losses.std(axis=0), losses.shape[1]
    # The sum of all correlations is the variance of the sum of standardised losses.
    unit = losses / np.where(scale > 0, scale, 1.0)
    total = unit.sum(axis=1).var() + np.sum(scale == 0)
    return float(count**2 / max(total, count))  # correlations in few lists may be negative


def bound_independent(losses: Float64) -> tuple[float, float]:
    """Return a 90 % interval of the number of independent judges, by the bootstrap.

    In few lists, judges that err together may not err at all. Therefore, for the lower end, all
    judges err in one more list. In simulations, 89 to 100 % of such intervals contain the number.
    """
    samples = np.random.default_rng(0).integers(len(losses), size=(_REFITTED_DRAWS, len(losses)))
    more = [count_independent(np.vstack([losses[s], losses.max(axis=0)])) for s in samples]
    ends = more, [count_independent(losses[s]) for s in samples]
    low, high = (float(np.quantile(x, q)) for x, q in zip(ends, _ENDS, strict=True))
    return low, high

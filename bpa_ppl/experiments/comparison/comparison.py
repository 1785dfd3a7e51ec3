"""Compare samplers of one posterior, each with a long reference run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.arrays import Int64
from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics.checks import check
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.diagnostics.provenance import different_data
from bpa_ppl.errors import DataError, NotConverged
from bpa_ppl.experiments.comparison.efficiency import Row, efficiency, shown
from bpa_ppl.experiments.comparison.statistics import (
    PROBABILITY,
    Distance,
    bias_bound,
    discrepancies,
    joint_distance,
)
from bpa_ppl.experiments.estimates import largest_r_hat, runs_together, smallest_ess
from bpa_ppl.labels import places_of
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.statistics import copied_chains
from bpa_ppl.quality import resolve
from bpa_ppl.quality.base import reported_metrics
from bpa_ppl.quality.bleu import LengthRatio
from bpa_ppl.quality.bootstrap import ScoreDifference, score_difference
from bpa_ppl.quality.scoring import one_each, statistics

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

#: The probability that a correct sampler is found to differ: half of it is for the marginal
#: distributions of the weights together, half for their joint distribution.
LEVEL = 0.01
#: A sampler agrees if the bias of every mean is below this, in posterior standard deviations.
MAX_BIAS = 0.1
_REFERENCE_MIN_ESS, _REFERENCE_MAX_R_HAT = 1000, 1.01

AGREES, DIFFERS = "agrees", "DIFFERS"
INCONCLUSIVE, NOT_CONVERGED = "inconclusive", "not converged"
FAILED = "failed"  # it raised an error
#: Verdicts of samplers that are not ranked by their cost.
UNRANKED = (DIFFERS, NOT_CONVERGED, FAILED)
_HEADER = ("sampler", "verdict", "R-hat", "ESS", "ESS/s", "95% interval", "ESS/evaluation")
_NOTE = (
    "ESS: effective draws for the posterior mean of the worst weight; interval: of the spread over "
    "runs; in brackets: not ranked, because of the verdict"
)
_PRIOR = {"prior_mean", "prior_variance", "prior_covariance", "prior_degrees"}
_MAX_NAMED = 3  # features that are named in a message


@dataclass(frozen=True)
class SamplerResult:
    """The result of the comparison for one sampler.

    Attributes:
        sampler: its name.
        efficiency: cost and quality of its draws, with the `COLUMNS` of `efficiency`.
        verdict: `agrees`, `DIFFERS`, `inconclusive`, `not converged`, or `failed` if it raised an
            error; empty without a reference.
        reason: of the verdict, one sentence.
        bound: that no mean's absolute bias exceeds, with a probability of 95%, in posterior
            standard deviations; None without a reference, or if the sampler has not converged.
        discrepancies: of each property of each weight from the reference.
        distance: of the joint distributions.
        downstream: its choices compared with those of the reference, see `changed_choices`.
    """

    sampler: str
    efficiency: Row
    verdict: str = ""
    reason: str = ""
    bound: float | None = None
    discrepancies: tuple[Row, ...] = ()
    distance: Distance | None = None
    downstream: dict[str, Any] | None = None

    @property
    def ranked(self) -> bool:
        """Whether its cost is comparable: its draws are not known to be of another distribution."""
        return self.verdict not in UNRANKED

    @property
    def agrees(self) -> bool | None:
        """Whether it agrees with the reference, or None if unknown."""
        return {AGREES: True, DIFFERS: False}.get(self.verdict)


@dataclass(frozen=True)
class Comparison(Outcome):
    """The results of all samplers; `bool` is true if each agrees with the reference.

    Attributes:
        samplers: in the order given.
        reference: a description of the reference run; empty if there was none.

    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> result = compare({"a": [Draws({"weights": drawn}, ("LM0",))]})  # no reference, no verdict
    >>> result.passed, result["a"].verdict, list(result.as_dict()["samplers"])
    (True, '', ['a'])
    """

    samplers: tuple[SamplerResult, ...]
    reference: str = ""

    @property
    def passed(self) -> bool:
        """Whether every sampler agrees; true without a reference, as there are no verdicts."""
        return all(result.verdict in (AGREES, "") for result in self.samplers)

    def __getitem__(self, sampler: str) -> SamplerResult:
        return {result.sampler: result for result in self.samplers}[sampler]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, for JSON."""
        return {"reference": self.reference, "passed": self.passed, "level": LEVEL} | {
            "samplers": {result.sampler: asdict(result) for result in self.samplers}
        }

    def _shown(self) -> tuple[str, Table, list[str]]:
        """Return no title, a row for each sampler, and notes with the reasons of the verdicts."""
        rows = []
        for r in self.samplers:
            names = (
                "r_hat",
                "ess",
                "ess_per_second",
                "ess_per_second_interval",
                "ess_per_evaluation",
            )
            cells = [shown(r.efficiency[name]) for name in names]
            if not r.ranked and r.efficiency["ess_per_second"] is not None:
                cells[2] = f"({cells[2]})"
            rows.append((r.sampler, r.verdict, *cells))
        table = Table(_HEADER, rows, passed=[result.agrees for result in self.samplers])
        return "", table, [*(f"{r.sampler}: {r.reason}" for r in self.samplers if r.reason), _NOTE]


def compare(
    posteriors: Mapping[str, Sequence[Posterior]],
    reference: Sequence[Posterior] | None = None,
    *,
    test: NBest | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare samplers of one posterior by their draws of the weights.

    Each sampler is compared with a long reference run: mean, standard deviation and quantiles of
    each weight in Monte-Carlo standard errors, with Holm's correction, and the joint distributions
    by a permutation test of nearly independent draws. The verdict is

    * `not converged` if all runs together fail `check`; then nothing else is concluded;
    * `DIFFERS` if there is a significant difference, which a correct sampler has with a probability
      of at most 1%;
    * `agrees` if there is none, and the absolute bias of every mean is below 0.1 posterior
      standard deviations, with a probability of 95%;
    * `inconclusive` otherwise: more draws are needed.

    Args:
        posteriors: for each sampler its runs with different seeds: from `adapt`, or any posterior
            with a variable `weights`. An attribute `sampling_time` of the draws, or of the group
            `posterior`, in seconds, gives the statistics per second.
        reference: long reference runs; None leaves verdicts out.
        test: lists that are reranked with the reference and with the first run of each sampler.
        seed: of permutations and resamples.

    Raises:
        DataError: if a sampler has no run, the same draws are given twice, as runs or as reference,
            or a posterior has other data or another model than the reference (the first posterior
            if there is none), as far as they record them.
        NotConverged: if the reference has too few effective draws, or its chains disagree.

    >>> rng = np.random.default_rng(0)
    >>> def draws(shift, count):
    ...     return Draws({"weights": rng.normal(shift, 1.0, (4, count, 2))}, ("LM0", "WP0"))
    >>> result = compare({"a": [draws(0.0, 900)], "b": [draws(0.3, 900)]}, [draws(0.0, 4000)])
    >>> result["a"].verdict, result["a"].reason, result["b"].verdict
    ('agrees', 'the bias of every mean is below 0.047 posterior sd with 95%', 'DIFFERS')
    """
    all_runs = {name: [as_draws(run) for run in runs] for name, runs in posteriors.items()}
    for name, runs in all_runs.items():
        if not runs:
            raise DataError(f"there is no run of {name} to compare", code="no-data")
    expected = as_draws(reference[0]) if reference else next(iter(all_runs.values()))[0]
    for name, runs in all_runs.items():
        for run in runs:
            check_same_posterior(name, run, expected)
    truth, description = None, ""
    if reference:
        truth = runs_together(reference)
        size, r_hat = smallest_ess(truth), largest_r_hat(truth)
        if not (r_hat <= _REFERENCE_MAX_R_HAT and size >= _REFERENCE_MIN_ESS):
            needed = f"at least {_REFERENCE_MIN_ESS} and at most {_REFERENCE_MAX_R_HAT}"
            reached = f"{size:.0f} effective draws and R-hat {r_hat:.3f}"
            raise NotConverged(f"the reference has {reached}, and needs {needed}: draw more")
        sampler = reference[0].attrs.get("sampler", "unknown sampler")
        description = f"{sampler}, {len(truth.flat)} draws, {size:.0f} effective"
    standard = rerank(test, reference[0], unchecked=True).choice if test and reference else None
    results = []
    for name, runs in all_runs.items():
        together = runs_together(runs)
        draws = together.reordered((truth or expected).features)
        result = SamplerResult(name, efficiency(runs, draws))
        if truth is not None:
            copies = copied_chains([*draws.weights, *truth.weights])
            if any(i < len(draws.weights) <= j for i, j in copies):
                problem = (
                    f"{name} has the draws of the reference, which they cannot be compared with"
                )
                raise DataError(f"{problem}: pass other runs", code="duplicate")
            result = _judged(result, together, truth, seed)
        if test is not None and standard is not None:
            choice = rerank(test, runs[0], unchecked=True).choice
            downstream = changed_choices(test, choice, standard, seed=seed)
            result = replace(result, downstream=downstream)
        results.append(result)
    return Comparison(tuple(results), description)


def _judged(result: SamplerResult, together: Draws, truth: Draws, seed: int) -> SamplerResult:
    """Return the result with its verdict, and with the differences that it is based on."""
    report = check(together)
    draws = together.reordered(truth.features)
    properties, distance = discrepancies(draws, truth), joint_distance(draws, truth, seed)
    result = replace(result, discrepancies=properties, distance=distance)
    if not report:
        d = max(properties, key=lambda d: abs(d["bias"]))
        status = f"{d['quantity']} of {d['weight']} is now off by {d['bias']:+.2f} posterior sd"
        reason = f"{report.failures[0].advice} (the {status})"
        return replace(result, verdict=NOT_CONVERGED, reason=reason)
    bound, weight = bias_bound(draws, truth)
    # Three decimals, rounded up, because it is a bound.
    size = f"{math.ceil(1000 * bound) / 1000:g} posterior sd with {PROBABILITY:.0%}"
    if reason := "; ".join(_differences(properties, distance)):
        verdict = DIFFERS
    elif bound <= MAX_BIAS:
        verdict, reason = AGREES, f"the bias of every mean is below {size}"
    else:
        verdict, times = INCONCLUSIVE, math.ceil((bound / MAX_BIAS) ** 2)
        reason = (
            f"no difference was found, but the bias of the mean of {weight} may be up to {size}, "
            f"more than {MAX_BIAS:g}; if there is none, {times} times as many draws are enough, of "
            "the sampler and of the reference"
        )
    return replace(result, verdict=verdict, reason=reason, bound=bound)


def _differences(properties: Sequence[Row], distance: Distance) -> Iterator[str]:
    """Yield in words the significant differences from the reference."""
    significant = [d for d in properties if d["p_value"] < LEVEL / 2]
    if significant:
        d = max(properties, key=lambda d: abs(d["z"]))
        yield (
            f"{len(significant)} of {len(properties)} marginal properties are off, most of all the "
            f"{d['quantity']} of {d['weight']}: by {d['bias']:+.2f} posterior sd "
            f"(z = {d['z']:+.1f}, p = {d['p_value']:.2g} after Holm)"
        )
    if distance.p_value < LEVEL / 2:
        yield (
            f"the joint distribution is off (p = {distance.p_value:.2g}), most of all "
            f"{distance.moment}: by {distance.difference:+.2f}; the energy distance is "
            f"{distance.value:.3f}, and at most {distance.largest_null:.3f} for random splits; "
            f"{distance.neighbours:.1%} of the nearest neighbours are draws of the same run"
        )


def changed_choices(lists: NBest, ours: Int64, theirs: Int64, *, seed: int = 0) -> dict[str, Any]:
    """Compare two choices from the same lists.

    Args:
        lists: with or without references.
        ours: (sentences,) positions of the hypotheses that are compared.
        theirs: (sentences,) positions of those that they are compared with.
        seed: of the bootstrap (Koehn 2004).

    Returns:
        how many texts `changed`, the number of `sentences`, and differences of `scores`: of the
        corpus, and of the ratio of lengths; none without references.

    >>> texts, features = [["a cat", "the cat"]], [[[1.0], [0.0]]]
    >>> lists = NBest.from_lists(texts, features, ["LM0"], references=["a cat"])
    >>> result = changed_choices(lists, np.array([0]), np.array([1]))
    >>> result["changed"], result["scores"][0].metric, result["scores"][0].difference
    (1, 'ter', -50.0)
    """
    texts = zip(lists.chosen(ours), lists.chosen(theirs), strict=True)
    scores: list[ScoreDifference] = []
    if lists.references is not None:
        for metric in (*map(resolve, reported_metrics()), LengthRatio()):
            a, b = (statistics(one_each(lists, choice), metric) for choice in (ours, theirs))
            scores.append(score_difference(a, b, metric, probability=PROBABILITY, seed=seed))
    changed = sum(a != b for a, b in texts)
    return {"changed": changed, "sentences": len(lists), "scores": tuple(scores)}


def check_same_posterior(name: str, draws: Draws, expected: Draws) -> None:
    """Refuse draws with other data or another model; properties that are not recorded are ignored.

    Args:
        name: of the draws, for the message.
        draws: the draws to check.
        expected: the draws that they are compared with.

    Raises:
        DataError: if they differ; the message says in what.

    >>> one = Draws({"weights": np.zeros((1, 2, 1))}, ("LM0",), attrs={"likelihood": "oracle"})
    >>> other = Draws({"weights": np.zeros((1, 2, 1))}, ("LM0",), attrs={"likelihood": "risk"})
    >>> check_same_posterior("mine", other, one)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: mine is a posterior of other data or another model: its likelihood ...
    """
    problems = []
    if odd := sorted(set(draws.features) ^ set(expected.features)):
        problems = [f"only one of both has the features {', '.join(odd[:_MAX_NAMED])}"]
    else:
        ours, theirs = (_recorded(one, expected.features) for one in (draws, expected))
        for what in ours.keys() & theirs.keys():
            value, other = ours[what], theirs[what]
            if not isinstance(value, np.ndarray):
                problems += [f"its {what} is {value}, not {other}"] if value != other else []
            elif value.shape != other.shape or not np.allclose(value, other, rtol=1e-5, atol=1e-9):
                problems.append(f"it has other values of {what}")
    if not problems and (other_data := different_data(draws, expected)):
        problems = [f"it was made from other {', '.join(other_data)}"]
    if problems:
        raise DataError(
            f"{name} is a posterior of other data or another model: {min(problems)}; only "
            "posteriors of the same lists, oracles, features, likelihood and prior can be compared",
            code="mismatch",
        )


def _recorded(draws: Draws, features: tuple[str, ...]) -> dict[str, Any]:
    """Return what draws record of their data and model, for features in this order."""
    attrs, ids = draws.attrs, draws.sentence_ids
    order = places_of(features, draws.features)
    count = attrs.get("adaptation_sentences", None if ids is None else len(ids))
    constants = {name: np.asarray(draws.constants[name]) for name in _PRIOR & set(draws.constants)}
    values = {
        "number of sentences": count,
        "sentence_ids": None if ids is None else np.asarray(ids),
        **{site: np.asarray(values) for site, values in draws.observed.items()},
        **{name: attrs[name] for name in ("likelihood", "prior") if name in attrs},
        **{name: value[np.ix_(*[order] * value.ndim)] for name, value in constants.items()},
    }
    return {what: value for what, value in values.items() if value is not None}

"""Compare samplers of one posterior, each with a long reference run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl.diagnostics.comparison.statistics import (
    Discrepancy,
    Distance,
    Efficiency,
    discrepancies,
    efficiency,
    sliced_wasserstein,
)
from bpa_ppl.diagnostics.estimates import largest_r_hat, runs_together, smallest_ess
from bpa_ppl.errors import DataError, NotConverged
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.quality import counted_metrics, resolve, statistics
from bpa_ppl.quality.base import References
from bpa_ppl.quality.bleu import LengthRatio
from bpa_ppl.quality.bootstrap import ScoreDifference, score_difference
from bpa_ppl.tables import text_table

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_PRIOR = {
    "prior_mean": "the mean of its prior",
    "prior_variance": "the variance of its prior",
    "prior_covariance": "the covariance of its prior",
}
_NAMED = 3  # features that are named


def check_same_posterior(name: str, draws: Draws, expected: Draws) -> None:
    """Refuse draws of other data or of another model; what one of them does not record is let pass.

    Args:
        name: of the draws, for the message.
        draws: to be compared.
        expected: with what they are compared.

    Raises:
        DataError: if they differ; the message says in what.

    >>> one = Draws({"weights": np.zeros((1, 2, 1))}, ("LM0",), attrs={"likelihood": "oracle"})
    >>> other = Draws({"weights": np.zeros((1, 2, 1))}, ("LM0",), attrs={"likelihood": "risk"})
    >>> check_same_posterior("mine", other, one)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: mine is a posterior of another model: its likelihood is risk, not ...
    """
    for what, differences in (("other data", _of_data), ("another model", _of_model)):
        if told := next(differences(draws, expected), ""):
            raise DataError(
                f"{name} is a posterior of {what}: {told}; only posteriors of the same lists, "
                "oracles, features, likelihood and prior are compared"
            )


def _of_data(draws: Draws, expected: Draws) -> Iterator[str]:
    if apart := sorted(set(draws.features) ^ set(expected.features)):
        more = f" and {len(apart) - _NAMED} more" if len(apart) > _NAMED else ""
        yield f"only one of both has the features {', '.join(apart[:_NAMED])}{more}"
    counts = [_sentences(one) for one in (draws, expected)]
    if None not in counts and counts[0] != counts[1]:
        yield f"it was adapted to {counts[0]} sentences, not to {counts[1]}"
    ids, others = draws.sentence_ids, expected.sentence_ids
    if ids is not None and others is not None and not np.array_equal(ids, others):
        yield "its sentences have other ids, or another order"
    for site in sorted(set(draws.observed) & set(expected.observed)):
        ours, theirs = np.asarray(draws.observed[site]), np.asarray(expected.observed[site])
        if ours.shape != theirs.shape:
            yield f"{site} has the shape {ours.shape}, not {theirs.shape}"
        elif differing := int(np.sum(ours != theirs)):
            goal = draws.attrs.get("oracle_metric", "a metric that it does not record")
            yield f"{differing} of its {ours.size} oracles, by {goal}, are others"


def _of_model(draws: Draws, expected: Draws) -> Iterator[str]:
    for key in ("likelihood", "prior"):
        ours, theirs = draws.attrs.get(key), expected.attrs.get(key)
        if None not in (ours, theirs) and ours != theirs:
            yield f"its {key} is {_in_words(ours)}, not {_in_words(theirs)}"
    places = [expected.features.index(name) for name in draws.features]
    for constant, what in _PRIOR.items():
        if constant not in draws.constants or constant not in expected.constants:
            continue
        ours, theirs = (np.asarray(one.constants[constant]) for one in (draws, expected))
        if not np.allclose(ours, theirs[np.ix_(*[places] * theirs.ndim)], rtol=1e-5, atol=1e-9):
            yield f"{what} is another"


def _sentences(draws: Draws) -> int | None:
    recorded = draws.attrs.get("adaptation_sentences")
    if recorded is not None:
        return int(recorded)
    return None if draws.sentence_ids is None else len(draws.sentence_ids)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        settings = [f"{key} {item}" for key, item in value.items() if key != "name"]
        more = f" ({', '.join(settings)})" if settings else ""
        return f"{value.get('name', 'one without a name')}{more}"
    return str(value)


PROBABILITY = 0.95


@dataclass(frozen=True)
class Downstream:
    """Translations chosen with one posterior, against those chosen with another.

    Attributes:
        changed: how many differ.
        sentences: of how many.
        scores: their corpus scores and the ratio of their length to that of the references, where
            there are some.
    """

    changed: int
    sentences: int
    scores: tuple[ScoreDifference, ...] = ()


def downstream(
    ours: Sequence[str],
    theirs: Sequence[str],
    references: References | None = None,
    *,
    seed: int = 0,
) -> Downstream:
    """Compare two choices of translations of the same sentences.

    Args:
        ours, theirs: (sentences,) texts.
        references: one tuple a sentence; None leaves scores out.
        seed: of the bootstrap (Koehn 2004).

    Raises:
        DataError: if the numbers of translations differ, or there are none.

    >>> found = downstream(["a cat", "b"], ["the cat", "b"], [("a cat",), ("b",)])
    >>> found.changed, found.scores[0].metric, round(found.scores[0].difference, 2)
    (1, 'ter', -33.33)
    """
    if len(ours) != len(theirs) or not ours:
        raise DataError(f"{len(ours)} translations cannot be compared with {len(theirs)}")
    changed = sum(a != b for a, b in zip(ours, theirs, strict=True))
    if references is None:
        return Downstream(changed, len(ours))
    texts = [[a, b] for a, b in zip(ours, theirs, strict=True)]
    pairs = NBest.from_lists(texts, [np.zeros((2, 1))] * len(ours), ["none"], references=references)
    scores = []
    for metric in (*map(resolve, counted_metrics()), LengthRatio()):
        # Two rows a sentence: ours, theirs.
        counts = statistics(pairs, metric).counts
        made, other = counts[::2], counts[1::2]
        scores.append(score_difference(made, other, metric, probability=PROBABILITY, seed=seed))
    return Downstream(changed, len(ours), tuple(scores))


#: The probability of finding fault with a sampler that is right; half of it for the marginal
#: distributions of the weights together, half for their joint distribution.
LEVEL = 0.01
#: With fewer effective draws their own Monte-Carlo error is not known.
FEWEST = 50
#: Nor is it where chains disagree more than this (Gelman et al. 2013, §11.5).
_R_HAT = 1.1
_REFERENCE_R_HAT, _REFERENCE_ESS = 1.01, 1000

AGREES, DIFFERS, UNDECIDED = "agrees", "DIFFERS", "undecided"
_HEADER = ("sampler", "verdict", "R-hat", "bulk ESS", "ESS/s", "ESS/evaluation")


@dataclass(frozen=True)
class Compared:
    """What the comparison found about one sampler.

    Attributes:
        sampler: its name.
        verdict: `agrees`, `DIFFERS` or `undecided`; empty without a reference.
        reason: one sentence.
        efficiency: what its draws cost and are worth.
        discrepancies: each property of each weight against the reference.
        distance: of the joint distributions.
        downstream: its translations against the reference's.
    """

    sampler: str
    verdict: str
    reason: str
    efficiency: Efficiency
    discrepancies: tuple[Discrepancy, ...] = ()
    distance: Distance | None = None
    downstream: Downstream | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether it agrees with the reference; None where that is not known."""
        return {AGREES: True, DIFFERS: False}.get(self.verdict)


@dataclass(frozen=True)
class Comparison:
    """All samplers side by side; `bool` is true if each agrees with the reference.

    Attributes:
        samplers: in the order given.
        reference: what the reference run was, in words; empty if there was none.

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> found = compare({"a": [Draws({"weights": drawn}, ("LM0",))]})  # no reference, no verdict
    >>> found.passed, found["a"].verdict, list(found.as_dict()["samplers"])
    (True, '', ['a'])
    """

    samplers: tuple[Compared, ...]
    reference: str = ""

    @property
    def passed(self) -> bool:
        """Whether no sampler differs or is left undecided."""
        return all(one.verdict in (AGREES, "") for one in self.samplers)

    def __bool__(self) -> bool:
        return self.passed

    def __getitem__(self, sampler: str) -> Compared:
        return {one.sampler: one for one in self.samplers}[sampler]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, for JSON."""
        return {"reference": self.reference, "passed": self.passed, "level": LEVEL} | {
            "samplers": {one.sampler: asdict(one) for one in self.samplers}
        }

    def _lines(self) -> tuple[list[tuple[str, ...]], list[str]]:
        """Return a row of the table for each sampler, and the reasons of the verdicts."""
        rows = []
        for one in self.samplers:
            cost = one.efficiency
            numbers = (cost.r_hat, cost.bulk_ess, cost.ess_per_second, cost.ess_per_evaluation)
            cells = ("–" if number is None else f"{number:.4g}" for number in numbers)
            rows.append((one.sampler, one.verdict, *cells))
        return rows, [f"{one.sampler}: {one.reason}" for one in self.samplers if one.reason]

    def __str__(self) -> str:
        rows, reasons = self._lines()
        return "\n".join([text_table(rows, _HEADER), *(f"- {reason}" for reason in reasons)])

    def _repr_html_(self) -> str:
        from bpa_ppl.diagnostics.pages.page import Items, Table

        rows, reasons = self._lines()
        table = Table(_HEADER, rows, passed=[one.agrees for one in self.samplers])
        return table.html() + (Items(reasons).html() if reasons else "")


def compare(
    posteriors: Mapping[str, Sequence[Posterior]],
    reference: Sequence[Posterior] | None = None,
    *,
    decode: Callable[[Posterior], Sequence[str]] | None = None,
    references: References | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare samplers of one posterior by their draws of the weights.

    Each sampler is compared with a long reference run: mean, standard deviation and quantiles of
    each weight in Monte-Carlo standard errors, Holm's correction for their number, and the sliced
    Wasserstein distance of the joint distributions with its null distribution. A sampler that is
    right is said to differ with a probability of at most 1%.

    Args:
        posteriors: for each sampler its runs from different seeds: from `adapt` or anybody's with
            a variable `weights`. An attribute `sampling_time` of the draws, or of the group
            `posterior`, in seconds, gives the statistics per second.
        reference: runs to be trusted, ten times as long or longer; None leaves verdicts out.
        decode: chooses translations with a posterior; the first run of each sampler is decoded.
        references: of those translations.
        seed: of random directions and resamples.

    Raises:
        DataError: if a sampler has no run, or a posterior is of other data or another model than
            the reference, or the first where there is none, as far as they record it.
        NotConverged: if the reference has too few effective draws, or its chains disagree.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def draws(shift, count):
    ...     return Draws({"weights": rng.normal(shift, 1.0, (4, count, 2))}, ("LM0", "WP0"))
    >>> found = compare({"a": [draws(0.0, 500)], "b": [draws(0.3, 500)]}, [draws(0.0, 4000)])
    >>> found["a"].verdict, found["b"].verdict
    ('agrees', 'DIFFERS')
    """
    _check_same(posteriors, reference)
    truth = None if reference is None else _trusted(runs_together(reference))
    together = {name: runs_together(_some(name, runs)) for name, runs in posteriors.items()}
    features = (truth or next(iter(together.values()))).features
    together = {name: draws.reordered(features) for name, draws in together.items()}
    standard = decode(reference[0]) if decode and reference else None
    samplers = []
    for name, runs in posteriors.items():
        draws = together[name]
        verdict = _Verdict() if truth is None else _verdict(draws, truth, seed)
        cost = efficiency([as_draws(run) for run in runs], draws, truth or draws)
        matters = None
        if decode and standard:
            matters = downstream(decode(runs[0]), standard, references, seed=seed)
        one = Compared(name, efficiency=cost, downstream=matters, **verdict._asdict())
        samplers.append(one)
    return Comparison(tuple(samplers), _described(reference, truth))


def _check_same(
    posteriors: Mapping[str, Sequence[Posterior]], reference: Sequence[Posterior] | None
) -> None:
    """Refuse draws of another posterior than the reference, or than the first."""
    every = [(name, as_draws(run)) for name, runs in posteriors.items() for run in runs]
    expected = [as_draws(run) for run in reference or ()] + [draws for _, draws in every]
    for name, draws in every:
        check_same_posterior(name, draws, expected[0])


class _Verdict(NamedTuple):
    verdict: str = ""
    reason: str = ""
    discrepancies: tuple[Discrepancy, ...] = ()
    distance: Distance | None = None


def _verdict(draws: Draws, truth: Draws, seed: int) -> _Verdict:
    found, distance = discrepancies(draws, truth), sliced_wasserstein(draws, truth, seed)
    unsure = _why_undecided(draws)
    if unsure:
        return _Verdict(UNDECIDED, f"{unsure} {_as_it_stands(found)}", found, distance)
    reasons = [_worst_of(found), _far_away(distance)]
    wrong = "; ".join(reason for reason in reasons if reason)
    return _Verdict(DIFFERS if wrong else AGREES, wrong, found, distance)


def _why_undecided(draws: Draws) -> str:
    ess, r_hat = smallest_ess(draws), largest_r_hat(draws)
    if r_hat > _R_HAT:
        return f"its chains disagree (R-hat {r_hat:.2f}): raise warmup, then draws"
    if ess < FEWEST:
        return f"{ess:.0f} effective draws are too few, and {FEWEST} are needed: raise draws"
    return ""


def _as_it_stands(found: Sequence[Discrepancy]) -> str:
    worst = max(found, key=lambda gap: abs(gap.bias))
    return f"(the {worst.quantity} of {worst.weight} is now off by {worst.bias:+.2f} posterior sd)"


def _worst_of(found: Sequence[Discrepancy]) -> str:
    worst = max(found, key=lambda gap: abs(gap.z))
    if worst.p_value >= LEVEL / 2:
        return ""
    count = sum(gap.p_value < LEVEL / 2 for gap in found)
    return (
        f"{count} of {len(found)} marginal properties are off, most of all the {worst.quantity} of "
        f"{worst.weight}: by {worst.bias:+.2f} posterior sd (z = {worst.z:+.1f}, "
        f"p = {worst.p_value:.2g} after Holm)"
    )


def _far_away(distance: Distance) -> str:
    if distance.p_value >= LEVEL / 2:
        return ""
    return (
        f"the joint distribution is {distance.value:.3f} posterior sd away, and parts of the "
        f"reference at most {distance.null[-1]:.3f} (p = {distance.p_value:.2g})"
    )


def _trusted(truth: Draws) -> Draws:
    ess, r_hat = smallest_ess(truth), largest_r_hat(truth)
    if not (r_hat <= _REFERENCE_R_HAT and ess >= _REFERENCE_ESS):
        raise NotConverged(
            f"the reference has {ess:.0f} effective draws and R-hat {r_hat:.3f}, and needs "
            f"{_REFERENCE_ESS} and at most {_REFERENCE_R_HAT}: make its run longer"
        )
    return truth


def _some(name: str, runs: Sequence[Posterior]) -> Sequence[Posterior]:
    if not runs:
        raise DataError(f"there is no run of {name} to compare")
    return runs


def _described(reference: Sequence[Posterior] | None, truth: Draws | None) -> str:
    if not reference or truth is None:
        return ""
    sampler = reference[0].attrs.get("sampler", "unknown sampler")
    return f"{sampler}, {len(truth.flat)} draws, {smallest_ess(truth):.0f} effective"

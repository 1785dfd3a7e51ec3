"""compare: samplers of one posterior side by side, each held against a long reference run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bpa_ppl.diagnostics.comparison.accuracy import Discrepancy, discrepancies
from bpa_ppl.diagnostics.comparison.distance import Distance, sliced_wasserstein
from bpa_ppl.diagnostics.comparison.downstream import Downstream, downstream
from bpa_ppl.diagnostics.comparison.efficiency import Efficiency, efficiency
from bpa_ppl.diagnostics.comparison.runs import Runs, runs_of
from bpa_ppl.errors import DataError, NotConverged
from bpa_ppl.quality.references import References

if TYPE_CHECKING:
    from arviz import InferenceData

#: The probability of finding fault with a sampler that is right; half of it for the marginal
#: distributions of the weights together, half for their joint distribution.
LEVEL = 0.01
#: Fewer effective draws do not tell their own Monte-Carlo error.
FEWEST = 50
#: Chains that disagree more than this do not tell it either (Gelman et al. 2013, §11.5).
_R_HAT = 1.1
_REFERENCE_R_HAT, _REFERENCE_ESS = 1.01, 1000

AGREES, DIFFERS, UNDECIDED = "agrees", "DIFFERS", "undecided"


@dataclass(frozen=True)
class Contestant:
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


@dataclass(frozen=True)
class Comparison:
    """All samplers side by side; `bool` is true if each agrees with the reference.

    Attributes:
        contestants: in the order given.
        reference: what the reference run was, in words; empty if there was none.
    """

    contestants: tuple[Contestant, ...]
    reference: str = ""

    @property
    def passed(self) -> bool:
        """Whether no sampler differs or is left undecided."""
        return all(one.verdict in (AGREES, "") for one in self.contestants)

    def __bool__(self) -> bool:
        return self.passed

    def __getitem__(self, sampler: str) -> Contestant:
        return {one.sampler: one for one in self.contestants}[sampler]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, for JSON."""
        return {"reference": self.reference, "passed": self.passed, "level": LEVEL} | {
            "samplers": {one.sampler: asdict(one) for one in self.contestants}
        }

    def __str__(self) -> str:
        header = ("sampler", "verdict", "R-hat", "bulk ESS", "ESS/s", "ESS/evaluation")
        rows: list[tuple[str, ...]] = [header]
        for one in self.contestants:
            told = one.efficiency
            cells = (told.r_hat, told.bulk_ess, told.ess_per_second, told.ess_per_evaluation)
            rows.append((one.sampler, one.verdict, *map(_shown, cells)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
        reasons = [f"- {one.sampler}: {one.reason}" for one in self.contestants if one.reason]
        return "\n".join([*lines, *reasons])


def compare(
    posteriors: Mapping[str, Sequence[InferenceData]],
    reference: Sequence[InferenceData] | None = None,
    *,
    decode: Callable[[InferenceData], Sequence[str]] | None = None,
    references: References | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare samplers of one posterior by their draws.

    Each sampler is held against a long reference run: mean, standard deviation and quantiles of
    each weight in Monte-Carlo standard errors, Holm's correction for their number, and the sliced
    Wasserstein distance of the joint distributions with its null distribution. A sampler that is
    right is said to differ with a probability of at most 1%.

    Args:
        posteriors: for each sampler its runs from different seeds: from `adapt` or anybody's with
            a variable `weights`. An attribute `sampling_time` of the group `posterior`, in
            seconds, gives the statistics per second.
        reference: runs to be trusted, ten times as long or longer; None leaves verdicts out.
        decode: chooses translations with a posterior; the first run of each sampler is decoded.
        references: of those translations.
        seed: of random directions and resamples.

    Raises:
        DataError: if a sampler has no run, or features differ from the reference's.
        NotConverged: if the reference has too few effective draws, or its chains disagree.

    >>> import numpy as np
    >>> from arviz import from_dict
    >>> rng = np.random.default_rng(0)
    >>> def draws(shift, count):
    ...     return from_dict(posterior={"weights": rng.normal(shift, 1.0, (4, count, 2))})
    >>> found = compare({"a": [draws(0.0, 500)], "b": [draws(0.3, 500)]}, [draws(0.0, 4000)])
    >>> found["a"].verdict, found["b"].verdict
    ('agrees', 'DIFFERS')
    """
    truth = None if reference is None else _trusted(runs_of(reference))
    pools = {name: runs_of(_some(name, runs)) for name, runs in posteriors.items()}
    names = (truth or next(iter(pools.values()))).names
    pools = {name: pool.ordered(names) for name, pool in pools.items()}
    standard = decode(reference[0]) if decode and reference else None
    contestants = []
    for name, pool in pools.items():
        verdict = _Verdict() if truth is None else _verdict(pool, truth, seed)
        effort = efficiency(posteriors[name], pool, truth or pool)
        matters = None
        if decode and standard:
            choice = decode(posteriors[name][0])
            matters = downstream(choice, standard, references, seed=seed)
        one = Contestant(name, efficiency=effort, downstream=matters, **verdict._asdict())
        contestants.append(one)
    return Comparison(tuple(contestants), _described(reference, truth))


class _Verdict(NamedTuple):
    verdict: str = ""
    reason: str = ""
    discrepancies: tuple[Discrepancy, ...] = ()
    distance: Distance | None = None


def _verdict(pool: Runs, truth: Runs, seed: int) -> _Verdict:
    found, distance = discrepancies(pool, truth), sliced_wasserstein(pool, truth, seed)
    unsure = _too_little_to_tell(pool)
    if unsure:
        return _Verdict(UNDECIDED, f"{unsure} {_as_it_stands(found)}", found, distance)
    reasons = [_worst_of(found), _far_away(distance)]
    wrong = "; ".join(reason for reason in reasons if reason)
    return _Verdict(DIFFERS if wrong else AGREES, wrong, found, distance)


def _too_little_to_tell(pool: Runs) -> str:
    ess, r_hat = pool.smallest_ess(), pool.largest_r_hat()
    if r_hat > _R_HAT:
        return f"its chains disagree (R-hat {r_hat:.2f}): raise warmup, then draws"
    if ess < FEWEST:
        return f"{ess:.0f} effective draws cannot tell, and {FEWEST} can: raise draws"
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


def _trusted(truth: Runs) -> Runs:
    ess, r_hat = truth.smallest_ess(), truth.largest_r_hat()
    if not (r_hat <= _REFERENCE_R_HAT and ess >= _REFERENCE_ESS):
        raise NotConverged(
            f"the reference has {ess:.0f} effective draws and R-hat {r_hat:.3f}, and needs "
            f"{_REFERENCE_ESS} and at most {_REFERENCE_R_HAT}: make its run longer"
        )
    return truth


def _some(name: str, runs: Sequence[InferenceData]) -> Sequence[InferenceData]:
    if not runs:
        raise DataError(f"there is no run of {name} to compare")
    return runs


def _described(reference: Sequence[InferenceData] | None, truth: Runs | None) -> str:
    if not reference or truth is None:
        return ""
    sampler = reference[0].attrs.get("sampler", "unknown sampler")
    return f"{sampler}, {len(truth.draws)} draws, {truth.smallest_ess():.0f} effective"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"

"""Diagnostics of chains: whether they agree, mix, and are long enough."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.components import Positive, Share
from bpa_ppl.diagnostics.check.advice import MORE, round_up
from bpa_ppl.diagnostics.check.diagnostic import FEWEST, REPORTED, Diagnostic, Run
from bpa_ppl.errors import list_names
from bpa_ppl.posterior.record import Finding
from bpa_ppl.posterior.statistics import POOR_PARETO_K, by_blocks, ess, mcse

#: A sequence of equal draws may be as long in a short chain as in one of so many draws.
_SHORT = 100
#: The probabilities of the quantiles of variables without a variance, of which so many are shown.
_QUANTILES, _SHOWN = (0.05, 0.5, 0.95), 3
#: The limit of R-hat of more chains depends on their number.
_MANY_CHAINS = 6
#: How often R-hat says by chance that chains disagree, of all components together.
_DISAGREE = 0.001
#: Effective draws that a chain seems to have in excess where its mean is subtracted.
_OF_MEAN = 5
#: Effective draws per degree of freedom of an estimated Monte-Carlo error.
_WINDOW = 10.0


class BurnIn(Diagnostic, frozen=True):
    """Whether the first tenth of the kept draws has the mean of their second half (Geweke 1992).

    Args:
        limit: the level of the test. All diagnostics together may fail 1% of good posteriors; this
            test and that of the chain means take half of it, with Bonferroni correction for the
            number of components and chains.
    """

    title = "burn-in (|z|)"
    limit: Share = 0.005

    def measure(self, run: Run) -> Finding:
        level, largest = _limit_z(run, self.limit)
        z = np.abs(by_blocks(partial(compare_beginning, level=level), run.values))
        remedy = _advise_agreement(run, settled=True)
        early = (
            f"the first tenth of the draws of {{where}} differs from their second half: {remedy}"
        )
        return self.find_worst(z, run.names, largest, early)


class Precision(Diagnostic, frozen=True):
    """The base class of diagnostics that more effective draws improve, and that say how many.

    The advice of each is to draw as many as all of them together call for.

    Attributes:
        problem: what is wrong at a `{value}` of the component `{where}`.
    """

    problem: ClassVar[str] = ""
    limit: Positive

    def values(self, run: Run) -> Float64:
        """Return the value of each component, (components,)."""
        raise NotImplementedError(f"{type(self).__name__} has no values")

    def shortage_of(self, run: Run) -> float:
        values = self.values(run)
        return self.shortage(float(values[self.index_worst(values)]))

    def measure(self, run: Run) -> Finding:
        remedy = _explain(run) or run.advice.more_draws(run.shortage)
        text = f"{self.problem}: {remedy}"
        return self.find_worst(self.values(run), run.names, self.limit, text)


class RHat(Precision, frozen=True):
    """Rank-normalised split R-hat (Vehtari et al. 2021).

    A single chain is compared with itself, in four parts. R-hat of m chains that do not differ is
    about √(1 + 2m / ESS) (Vats & Knudson 2021). That of more than six chains, such as the walkers
    of emcee, may therefore be as large as without a difference (`bound_r_hat`), but not larger than
    that of six chains at the limit with as many effective draws in all.

    Args:
        limit: its largest sound value, of up to six chains.
    """

    title = "R-hat"
    limit: Annotated[float, Meta(gt=1)] = 1.01

    def values(self, run: Run) -> Float64:
        """Return R-hat of as many effective draws of at most six chains."""
        return np.asarray(np.sqrt(1 + (run.r_hat**2 - 1) / _count_sixes(run)))

    def shortage(self, value: float) -> float:
        """Return the shortage: R-hat² − 1 is a ratio of variances, and falls with the ESS."""
        return (value**2 - 1) / (self.limit**2 - 1)

    def measure(self, run: Run) -> Finding:
        if (run.r_hat <= self.limit).all():
            return self.find_worst(run.r_hat, run.names, self.limit, "")
        of_more = np.sqrt(1 + (self.limit**2 - 1) * _count_sixes(run))
        bounds, effective = bound_r_hat(run.values, _DISAGREE / len(run.names))
        limits = np.clip(bounds, self.limit, of_more)
        k = self.index_worst(run.r_hat - limits)
        value, limit, bound, where = run.r_hat[k], float(limits[k]), bounds[k], run.names[k]
        tests = [run.measure(one) for one in run.diagnostics if isinstance(one, _OF_MEANS)]
        others = all(finding.passed for finding in tests if finding is not None)
        chains = run.draws.shape[0]
        if others and value <= bound and not _explain(run):
            enough = effective[k] * (bound**2 - 1) / (of_more**2 - 1)
            remedy = run.advice.more_draws(run.shortage)
            advice = (
                f"{effective[k] / chains:.0f} effective draws a chain of {where}, where R-hat "
                f"needs {round_up(enough / chains)}: {remedy}"
            )
        else:
            parts = "chains" if chains > 1 else "parts of the chain"
            remedy = _advise_agreement(run, run.settled)
            advice = f"the {parts} disagree ({value:.3f} for {where}): {remedy}"
        return self.finding(float(value), f"≤ {limit:.4g}", bool(value <= limit), advice, where)


class BulkESS(Precision, frozen=True):
    """The effective sample size of the bulk, of all chains together (Vehtari et al. 2021).

    Args:
        limit: its least sound value.
    """

    title = "bulk ESS"
    problem = "{value:.0f} effective draws of {where}"
    least = True
    limit: Positive = 400.0

    def values(self, run: Run) -> Float64:
        return run.bulk_ess

    def shortage(self, value: float) -> float:
        """Return the shortage; infinite if there are no effective draws."""
        return self.limit / value if value else np.inf


class TailESS(BulkESS, frozen=True):
    """The effective sample size of the tails, of all chains together (Vehtari et al. 2021).

    Args:
        limit: its least sound value.
    """

    title = "tail ESS"
    problem = "{value:.0f} effective draws in the tails"

    def values(self, run: Run) -> Float64:
        return run.tail_ess


class MCSE(Precision, frozen=True):
    """The Monte-Carlo standard error of each mean, in posterior standard deviations.

    Args:
        limit: its largest sound value.
    """

    title = "MCSE / sd"
    problem = "the mean of {where} is uncertain by {value:.2f} posterior sd"
    limit: Positive = 0.1

    def applies(self, run: Run) -> bool:
        return run.usable and not _lack_error(run).all()

    def values(self, run: Run) -> Float64:
        return np.where(_lack_error(run), 0.0, run.error)

    def shortage(self, value: float) -> float:
        """Return the shortage: the squared error falls with the effective draws."""
        return (value / self.limit) ** 2


class ChainMeans(Diagnostic, frozen=True):
    """Whether each chain has the mean of the others.

    Args:
        limit: the level of the test, as of `BurnIn`.
    """

    title = "chain means (|z|)"
    limit: Share = 0.005

    def applies(self, run: Run) -> bool:
        return run.usable and run.draws.shape[0] > 1 and not _lack_error(run).all()

    def measure(self, run: Run) -> Finding:
        level, largest = _limit_z(run, self.limit)
        z = np.abs(by_blocks(partial(compare_chains, level=level), run.values)).max(axis=0)
        z[_lack_error(run)] = 0.0
        apart = run.r_hat.max() > run.find(RHat).limit
        remedy = _advise_agreement(run, apart and run.settled)
        differ = f"the mean of {{where}} differs between chains: {remedy}"
        return self.find_worst(z, run.names, largest, differ)


class Tails(Diagnostic, frozen=True):
    """Pareto k̂ of the tails (Vehtari et al. 2024); see `estimate_tail_shapes`.

    With a k of at least 1/2 there is no variance, of at least 1 no mean, as of a Cauchy
    distribution. k̂ describes the draws: of a log-normal distribution with a large scale, whose
    moments all exist, it may be as large, and its means need as many draws. Weights of lists need
    means, and fail where those need too many draws. Other variables do not: they are named with
    their quantiles, and their means are left out of the check. Of other sites of a model of lists,
    such as scales of a horseshoe prior, the means need not exist.

    Args:
        limit: its largest sound value, of weights of lists.
    """

    title = "tails (Pareto k̂)"
    limit: Positive = POOR_PARETO_K

    def measure(self, run: Run) -> Finding:
        worst = int(run.tail_shapes.argmax())
        if run.draws.main:
            unsound = (
                "the tails of {where} are so heavy (k̂ {value:.2f}) that its mean is unreliable or "
                "does not exist: use a prior with lighter tails"
            )
            return self.find_worst(run.tail_shapes, run.names, self.limit, unsound)
        missing = (("mean and no sd", run.moments == 0), ("sd", run.moments == 1))
        parts = [
            f"no reliable {what} of {list_names(np.array(run.names)[of].tolist())}"
            for what, of in missing
            if of.any()
        ]
        note = ""
        if parts:
            heavy = np.flatnonzero(run.moments < 2)
            shown = heavy[np.argsort(-run.tail_shapes[heavy], kind="stable")][:_SHOWN]
            quantiles = np.quantile(run.values[..., shown], _QUANTILES, axis=(0, 1)).T
            listed = "; ".join(
                f"{run.names[k]} {', '.join(f'{one:.3g}' for one in of)}"
                for k, of in zip(shown, quantiles, strict=True)
            )
            note = (
                f"these draws have {' and '.join(parts)}, as their tails are so heavy (Pareto k̂ up "
                f"to {run.tail_shapes[worst]:.2f}): their means have no Monte-Carlo error, and "
                f"their quantiles are checked; 5%, 50% and 95%: {listed}"
            )
        return self.finding(float(run.tail_shapes[worst]), REPORTED, True, note, run.names[worst])


class EqualDraws(Diagnostic, frozen=True):
    """How long each chain stays at one draw, as a share of the chain, or of 100 draws if shorter.

    A chain of which one component never moves stays for all of it.

    Args:
        limit: its largest sound value. Chains with 100 effective draws have a longer sequence in
            fewer than 1% of runs.
    """

    title = "equal draws"
    limit: Share = 0.1

    def measure(self, run: Run) -> Finding:
        draws = run.draws.shape[1]
        starts, counts = _find_longest_equal(run.main)
        still = (np.ptp(run.main, axis=1) == 0).any(axis=1)
        counts = np.where(still, draws, counts)
        chain = int(counts.argmax())
        count, start = int(counts[chain]), int(starts[chain])
        if still[chain]:
            problem = f"chain {chain} does not move: {run.advice.movement()}"
        elif start + count == draws:
            problem = (
                f"the last {count} draws of chain {chain} are equal, as if it was padded or is "
                f"stuck: leave out what was padded; otherwise {run.advice.movement()}"
            )
        else:
            problem = (
                f"chain {chain} stays where it is for {count / draws:.0%} of its draws: "
                f"{run.advice.movement() if start else run.advice.agreement(MORE, settled=True)}"
            )
        stays = counts / max(draws, _SHORT)
        return self.find_worst(stays, run.chain_labels, self.limit, problem)


#: What says whether chains have the same mean.
_OF_MEANS = (BurnIn, ChainMeans)


def _count_sixes(run: Run) -> float:
    """Return how many times six chains there are, at least 1."""
    return max(run.draws.shape[0] / _MANY_CHAINS, 1.0)


def _lack_error(run: Run) -> npt.NDArray[np.bool_]:
    """Return which components have no variance, and so no error of the mean, (components,)."""
    return np.asarray(run.moments < 2)


def _advise_agreement(run: Run, settled: bool) -> str:
    """Return how to make chains agree; `settled`: a longer warm-up may help."""
    return _explain(run) or run.advice.agreement(max(run.shortage, MORE), settled)


def _explain(run: Run) -> str:
    """Return what to do first, where more draws or a longer warm-up do not help; empty elsewhere.

    It is the remedy of chains that stay where they are, or that are at different modes.
    """
    stays = run.measure(run.find(EqualDraws))
    if stays is not None and not stays.passed:
        return stays.advice.rpartition(": ")[2]
    return run.advice.other_modes() if run.at_several_modes else ""


def _limit_z(run: Run, level: float) -> tuple[float, float]:
    """Return the one-sided level of each test of means, and the limit of its |z|.

    Args:
        run: its components, and the chains if there are several, are compared.
        level: of all tests together.
    """
    from scipy.special import ndtri

    chains = run.draws.shape[0]
    tests = len(run.names) * (1 + chains if chains > 1 else 1)
    one_sided = level / (2 * tests)
    return one_sided, float(-ndtri(one_sided))


def compare_beginning(values: Float64, level: float = 0.005) -> Float64:
    """Return the z-score of the first tenth of the draws against the second half, (C, D, …) ↦ (…).

    It is the difference of their means of rank-normalised draws in units of its Monte-Carlo error
    (Geweke 1992), scaled as by `_z_score`. The error is that of the second half, by ArviZ, for as
    many draws as both parts have: draws that come from elsewhere vary much, and would hide it.

    Chains that come from four standard deviations away:

    >>> values = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> values[..., 0] += 4 * np.exp(-np.arange(1000) / 50)
    >>> np.abs(compare_beginning(values)).round().tolist()
    [23.0, 1.0]
    """
    values, count = _normalise_ranks(values), values.shape[1]
    first, second = values[:, : max(count // 10, FEWEST)], values[:, count // 2 :]
    shift = first.mean(axis=(0, 1)) - second.mean(axis=(0, 1))
    error, effective = _measure_error(second)
    both = error * np.sqrt(1 + second.shape[1] / first.shape[1])
    return _z_score(shift, both[None], effective[None], level)


def compare_chains(values: Float64, level: float = 0.005) -> Float64:
    """Return the z-score of each chain's mean minus that of the others, (C, D, …) ↦ (C, …).

    A chain of 1000 independent draws that is 0.25 standard deviations away:

    >>> values = np.random.default_rng(0).normal(size=(4, 1000))
    >>> values[2] += 0.25
    >>> compare_chains(values).round(1).tolist()
    [-3.5, -1.9, 5.6, -0.2]
    """
    chains = len(values)
    means = values.mean(axis=1)
    measured = [_measure_error(chain[None]) for chain in values]
    error, effective = map(np.array, zip(*measured, strict=True))
    others = np.sqrt((error**2).sum(axis=0) - error**2) / (chains - 1)
    shift = (means - means.mean(axis=0)) * chains / (chains - 1)
    remaining = effective.sum(axis=0) - effective
    return _z_score(shift, np.array([error, others]), np.array([effective, remaining]), level)


def bound_r_hat(values: Float64, level: float) -> tuple[Float64, Float64]:
    """Return what R-hat exceeds by chance where chains do not differ, (C, D, …) ↦ (…).

    R-hat² − 1 of p parts of chains, mostly halves, is then distributed as p / ESS · χ²(p − 1) /
    (p − 1). The effective draws are those by the autocorrelations within the parts: chains that
    differ have a small ESS, which would excuse them. The mean of a part, which is subtracted, hides
    slow movements: as simulated, the ESS of each is five too large.

    Args:
        values: the draws; a single chain has four parts.
        level: how often R-hat is larger by chance.

    Returns:
        R-hat, and the effective draws within all parts.

    R-hat of four chains with 50 effective draws each is mostly above 1.01:

    >>> noise = np.random.default_rng(0).normal(size=(4, 1020, 20)).cumsum(axis=1)
    >>> bound, effective = bound_r_hat(noise[:, 20:] - noise[:, :-20], 0.001)
    >>> round(float(bound.mean()), 2), round(float(effective.mean()))
    (1.08, 171)
    """
    from scipy.special import chdtri

    count = 2 if len(values) > 1 else 4
    length = values.shape[1] // count
    starts = np.linspace(0, values.shape[1] - length, count).round().astype(int)
    parts = np.concatenate([values[:, start : start + length] for start in starts])
    effective: Float64 = np.asarray(np.inf)
    for each in (parts, np.abs(parts - np.median(parts, axis=(0, 1)))):  # as R-hat does
        scores = _normalise_ranks(each)
        within = ess(scores - scores.mean(axis=1, keepdims=True), "mean") - _OF_MEAN * len(parts)
        effective = np.fmin(effective, within)
    effective, degrees = np.fmax(effective, len(parts)), len(parts) - 1
    return np.sqrt(1 + len(parts) / effective * chdtri(degrees, level) / degrees), effective


def _normalise_ranks(values: Float64) -> Float64:
    """Return the normal scores of the ranks of draws, (C, D, …), as for R-hat."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    draws = values.shape[0] * values.shape[1]
    ranks = rankdata(values.reshape(draws, *values.shape[2:]), axis=0).reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws + 0.25)))


def _z_score(shift: Float64, errors: Float64, effective: Float64, level: float) -> Float64:
    """Return the z-score of a difference (…) of two means.

    Errors, (n, …) of independent estimates, are estimated from windows of about ten autocorrelation
    times, so the ratio is nearly Student's t, with ESS / 10 degrees of freedom for each (Welch
    1947).
    It is scaled so that its one-sided quantile at the level is that of a normal distribution.
    """
    from scipy.special import ndtri, stdtrit

    variance = (errors**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = variance**2 / (errors**4 / np.fmax(effective / _WINDOW, 1.0)).sum(axis=0)
        z = shift / np.sqrt(variance)
        return np.asarray(z * ndtri(level) / stdtrit(degrees, level))


def _find_longest_equal(values: Float64) -> tuple[Int64, Int64]:
    """Return where each chain repeats one draw for longest, and how often, (C, D, Q) ↦ (C,) each.

    >>> [one.tolist() for one in _find_longest_equal(np.array([[[1.0], [2.0], [2.0], [1.0]]]))]
    [[1], [2]]
    """
    moved = (np.diff(values, axis=1) != 0).any(axis=2)
    edges = [np.flatnonzero(np.concatenate(([True], moves, [True]))) for moves in moved]
    longest = [int(np.diff(positions).argmax()) for positions in edges]
    starts = [positions[k] for positions, k in zip(edges, longest, strict=True)]
    counts = [np.diff(positions)[k] for positions, k in zip(edges, longest, strict=True)]
    return np.array(starts), np.array(counts)


def _measure_error(values: Float64) -> tuple[Float64, Float64]:
    """Return the MCSE of each mean, at least the one for independent draws, and effective draws.

    Chains whose draws alternate, as those of NUTS do, have an ESS beyond their number, but its
    estimate is then so noisy that one good chain in fifteen would seem to drift. Effective draws
    are as many independent ones as would give the mean this error.
    """
    deviation = values.std(axis=(0, 1), ddof=1)
    error = np.maximum(mcse(values), deviation / np.sqrt(values.shape[0] * values.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return error, (deviation / error) ** 2

"""What samplers begin with: proposals that fit a posterior, its moments, and starts of chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.densities.mode import (
    disperse_starts,
    may_have_several,
    mode_of,
    modes_of,
    require_mode,
    scatter_starts,
)
from bpa_ppl.densities.newton import Mode
from bpa_ppl.densities.target import Sites, Target, inspect_model, unflatten
from bpa_ppl.errors import DataError
from bpa_ppl.posterior.statistics import POOR_PARETO_K
from bpa_ppl.samplers.proposals import (
    AXES,
    MIXTURE_DRAWS,
    PILOT_DEGREES,
    PILOT_DRAWS,
    PILOT_SEED,
    SHARES,
    Proposal,
    Proposals,
    Skewed,
    SkewedProposal,
    can_be_fitted,
    draw_proposals,
    effective_share,
    fit_moments,
    fit_skewed,
    measure_k_hat,
)
from bpa_ppl.samplers.scale_mixture import ScaleMixture

#: The mode of a program of more values is not searched: its Hessian is expensive, and in so many
#: dimensions the typical draws lie far from the mode.
_MAX_SEARCHED = 100
#: Proposals around the mode are poor if less than this share of them is effective.
_POOR = 0.5


class Fit(NamedTuple):
    """How well proposals fit a posterior.

    Attributes:
        proposal: around the mode, or that of the posterior itself; None if there is none.
        pareto_k: k̂ of the importance ratios of a pilot sample; infinite without a proposal.
        what: where the proposals are, or why there are none.

    >>> print(Fit(None, np.inf, "there are 2 modes").describe())
    there are 2 modes
    """

    proposal: Proposal | None
    pareto_k: float
    what: str

    def describe(self, limit: float | None = None) -> str:
        """Return k̂ of the proposals in words, compared with a limit, or why there are none."""
        if self.proposal is None:
            return self.what
        k_hat = f"{self.pareto_k:.2f}" if limit is None else compare_k_hat(self.pareto_k, limit)
        return f"Pareto k̂ {k_hat} of proposals {self.what}"


def compare_k_hat(pareto_k: float, limit: float) -> str:
    """Return k̂ compared with a limit in words.

    >>> compare_k_hat(0.614, 0.5)
    '0.61 > 0.5'
    """
    return f"{pareto_k:.2f} {'≤' if pareto_k <= limit else '>'} {limit}"


def assess_proposals(target: Target, seed: int, progress: Reporter) -> Fit:
    """Assess proposals for a posterior, around its mode or of its own, by a pilot sample."""
    latent, size = inspect_model(target).latent, target.dimension
    if latent != target.main and size > _MAX_SEARCHED:
        reason = f"the mode of {size:,} values says little about them, and nuts needs none"
        return Fit(None, np.inf, reason)
    proposal = _propose_by_hint(target, seed, progress)
    fitted = proposal is not None
    if proposal is None:
        if len(modes_of(target)) > 1:
            return Fit(None, np.inf, f"there are {len(modes_of(target))} modes")
        if not mode_of(target).converged:
            reason = "the search for the mode did not converge, and nuts needs none"
            return Fit(None, np.inf, reason)
        proposal = _make_student(mode_of(target))
    k_hat = measure_k_hat(_draw_pilot(target, proposal, seed, progress), fitted=fitted)
    around = "for scales of the prior" if fitted else "around the mode"
    return Fit(proposal, k_hat, around)


def _propose_by_hint(target: Target, seed: int, progress: Reporter) -> Proposal | None:
    """Return the proposals that the posterior has of its own, if it has any."""
    propose = target.hints.propose
    return None if propose is None else propose(target, seed, progress)


def _make_student(mode: Mode) -> SkewedProposal:
    """Return a Student t around the mode; in many dimensions a Gaussian with a few draws of it.

    There the radius of a Gaussian is nearly the same in all draws, and that of a Student t is not.
    """
    share = 1.0 if len(mode.position) <= AXES else SHARES[1]
    return SkewedProposal(mode, Skewed(), PILOT_DEGREES, share)


def _draw_pilot(target: Target, proposal: Proposal, seed: int, progress: Reporter) -> Proposals:
    """Return a pilot sample of a proposal."""
    progress(0, 1, "pilot sample")
    # A separate seed: the pilot's draws are not among those of the sampler that it chooses.
    count = MIXTURE_DRAWS if isinstance(proposal, ScaleMixture) else PILOT_DRAWS
    return draw_proposals(target, proposal, (1, count), seed + PILOT_SEED)


def make_pilot_proposal(
    target: Target, degrees_of_freedom: float, seed: int, progress: Reporter
) -> Proposal:
    """Return a proposal around the mode with half of the draws from each component.

    It is that of the posterior itself, such as a mixture over scales, if it has one.

    Raises:
        DataError: if there is no mode, or there are several.
    """
    if (proposal := _propose_by_hint(target, seed, progress)) is not None:
        return proposal
    mode = require_mode(target)
    if len(modes_of(target)) > 1:
        message = (
            f"there are {len(modes_of(target))} modes, and proposals around one miss the others: "
            "use the samplers nuts or rwm, whose chains start at all of them"
        )
        raise DataError(message, parameter="sampler", code="not-supported")
    return SkewedProposal(mode, fit_skewed(target, mode), degrees_of_freedom, 0.5)


def _refit_proposals(
    target: Target, seed: int, progress: Reporter
) -> tuple[SkewedProposal, float] | None:
    """Return proposals fitted to a posterior for which those around its mode are poor.

    They are poor if fewer than half of a pilot sample are effective: 0.6 to 0.9 are with 14 weights
    and a log-concave likelihood, and 0.03 to 0.7 with `risk`.

    Returns:
        the proposal and the share of its draws that are effective (see `fit_moments`); None if the
        proposals around the mode suffice, or the fitted ones are no better.

    Raises:
        DataError: if there is no mode.
    """
    mode = require_mode(target)
    if not can_be_fitted(target) or {*target.start} != {*target.main}:
        return None
    pilot = _draw_pilot(target, _make_student(mode), seed, progress)
    around_mode = effective_share(pilot.log_weight[0])
    if around_mode >= _POOR:
        return None
    proposal, pareto_k, effective = fit_moments(target, mode, seed, progress)
    is_better = effective > around_mode and pareto_k <= POOR_PARETO_K
    return (proposal, effective) if is_better else None


def find_moments(target: Target, seed: int, progress: Reporter) -> Mode:
    """Return the mode and the Laplace covariance, or moments that describe the posterior better.

    Raises:
        DataError: if there is no mode.
    """
    # The mode of a Student t with many values is far from most of its draws.
    if (proposal := _propose_by_hint(target, seed, progress)) is not None:
        return proposal.mode
    refitted = _refit_proposals(target, seed, progress)
    return require_mode(target) if refitted is None else refitted[0].mode


def draw_starts(
    target: Target, chains: int, seed: int, progress: Reporter
) -> tuple[Sites, tuple[Mode | None, float, str]]:
    """Return z of a start for each chain, and the moments around which they are.

    These are the mode and its Laplace covariance, or fitted ones (see `find_moments`). If there
    is no mode, or its covariance is not a good metric, the result has no moments. Then, and where
    a program has so many values that no other modes are searched, see `scatter_starts`. With them
    come k̂ of proposals around them, and the finding in words.
    """
    if target.hints.gaussian_prior:
        mode = mode_of(target)
        fit: tuple[Mode | None, float, str] = None, np.inf, "there is no mode"
        if mode.converged:
            moments = find_moments(target, seed, progress)
            # A posterior whose moments are fitted is far from a Gaussian: the step is tuned.
            fit = moments, 0.0 if moments is mode else np.inf, ""
    else:
        found = assess_proposals(target, seed, progress)
        fit = None, found.pareto_k, found.describe()
        if found.proposal is not None and found.pareto_k <= POOR_PARETO_K:
            fit = found.proposal.mode, *fit[1:]
    if fit[0] is not None and (target.hints.one_mode or may_have_several(target)):
        return disperse_starts(target, fit[0], chains, seed), fit
    return unflatten(scatter_starts(target, chains, seed), target.start), fit

"""Independence Metropolis–Hastings: proposals around the mode, independent of the chain's state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Count, CountOrNone, Positive
from bpa_ppl.densities.target import Sampled, Sites, Target, with_evaluations
from bpa_ppl.posterior.statistics import POOR_PARETO_K
from bpa_ppl.samplers.proposals import (
    Proposal,
    Proposals,
    SkewedProposal,
    can_be_fitted,
    draw_proposals,
    fit_moments,
    measure_mixture,
)
from bpa_ppl.samplers.sampler import Sampler
from bpa_ppl.samplers.starting import make_pilot_proposal

_NEVER = -1e300
#: Share of proposals of the warm-up that is effective if they fit the posterior. It is 0.95 to 1
#: for 14 weights and a hundred lists, and 0.6 to 1 for ten lists, whose tails they may then miss.
_FITS = 0.95
#: Proposals that are fitted instead are wider than the posterior, and have heavier tails, so that
#: chains do not stay in its tails; and fewer of their draws are kept. With `risk` on a hundred
#: Moses lists 98 of 100 runs then pass their check; with the covariance of the posterior, 20
#: degrees of freedom, and one of two draws kept 83 do.
_WIDER, _DEGREES, _THINNING = 1.5, 5.0, 20
_SCALED_THINNING = 8  # because the tails of weights with an unknown scale are heavy


class IndependenceMetropolis(Sampler, frozen=True):
    """Chains of independent proposals around the mode, with its skew and with heavy tails.

    The warm-up is a pilot sample that tunes the proposal, which is then fixed: see
    `SkewedProposal`. No proposal depends on the state of a chain (Tierney 1994, §2.3.3), so all
    proposals are evaluated at once, and only accepting them is sequential. If they fit badly in the
    warm-up, proposals are fitted to mean and covariance of the posterior (see `fit_moments`), and
    made wider; one draw of twenty is then kept.

    If the prior of weights has an unknown scale, proposals are a mixture over scales (see
    `ScaleMixture`), without skew, and without a share to tune; one draw of eight is then kept.

    Args:
        warmup: proposals of each chain that tune the share of the Student t.
        draws: of each chain.
        chains: how many.
        degrees_of_freedom: of the Student t.

    >>> IndependenceMetropolis(draws=500)
    IndependenceMetropolis(warmup=100, draws=500, chains=4, degrees_of_freedom=20.0)
    """

    title = "independence Metropolis–Hastings, proposals around the mode"
    any_coordinates = True
    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    degrees_of_freedom: Positive = 20.0

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        proposal = make_pilot_proposal(target, self.degrees_of_freedom, seed, progress)
        # Parameters of a likelihood, such as slip rates, have tails that moments do not describe.
        fittable, pilot = can_be_fitted(target) and {*target.start} == {*target.main}, None
        if self.warmup and fittable:
            shape = self.chains, self.warmup
            pilot = draw_proposals(target, proposal, shape, seed, stream=1)
            if not measure_mixture(proposal, pilot) >= _FITS:
                fitted, pareto_k, _ = fit_moments(target, proposal.mode, seed, progress)
                if pareto_k <= POOR_PARETO_K:
                    covariance = _WIDER * fitted.mode.covariance
                    mode = fitted.mode._replace(covariance=covariance)
                    wider = replace(fitted, mode=mode, degrees_of_freedom=_DEGREES)
                    return self.sample_by(target, seed, progress, wider, _THINNING)
        return self.sample_by(target, seed, progress, proposal, pilot=pilot)

    def sample_by(
        self,
        target: Target,
        seed: int,
        progress: Reporter,
        proposal: Proposal,
        thinning: int | None = None,
        pilot: Proposals | None = None,
    ) -> Sampled:
        """Draw from the posterior with proposals of a given distribution.

        Args:
            target: the posterior.
            seed: the only source of randomness.
            progress: called with the steps that are done, their number, and a note.
            proposal: with half of the draws from each component; the warm-up tunes their shares.
            thinning: steps for each kept draw; None is 1, or 8 with a mixture over scales.
            pilot: the proposals of the warm-up, if they are drawn already.
        """
        progress(0, 1, "proposals")
        rng = np.random.default_rng([seed, 1])
        chain, last, warmup = np.arange(self.chains), None, Sites()
        if self.warmup:
            if pilot is None:
                pilot = draw_proposals(target, proposal, (self.chains, self.warmup), seed, stream=1)
            index = chain[:, None], accept(pilot.log_weight, rng)[0]
            warmup = {name: np.asarray(value)[index] for name, value in pilot.z.items()}
            last = pilot.position[index][:, -1]
        skewed = None
        if isinstance(proposal, SkewedProposal):
            proposal, skewed = proposal.tuned(pilot), proposal.skewed
        thinning = thinning or (_SCALED_THINNING if skewed is None else 1)
        mode, figures = proposal.report(target)
        steps = thinning * self.draws
        shape = self.chains, 2 * ((steps + 1) // 2 + 1)
        proposals = draw_proposals(target, proposal, shape, seed, first=last, antithetic=skewed)
        if proposals.log_weight_skewed is None:  # without antithetic partners
            position, acceptance = accept(proposals.log_weight[:, :steps], rng)
        else:
            position, acceptance = accept_pairs(
                proposals.log_weight, proposals.log_weight_skewed, steps, rng
            )
        steps += self.warmup
        progress(steps, steps, f"acceptance {acceptance.mean():.2f}")
        index = chain[:, None], position[:, thinning - 1 :: thinning]
        sampled = Sampled(
            z={name: np.asarray(value)[index] for name, value in proposals.z.items()},
            log_density=proposals.log_density[index],
            statistics={"acceptance_rate": acceptance[:, thinning - 1 :: thinning]},
            warmup=warmup,
            mode=mode,
            log_likelihood={name: v[index] for name, v in proposals.log_likelihood.items()},
            figures=figures,
        )
        return with_evaluations(sampled, thinning)


def accept(log_ratio: Float64, rng: np.random.Generator) -> tuple[Int64, Float64]:
    """Run the chains over precomputed proposals.

    Args:
        log_ratio: (chains, steps) log p(z)/q(z) of each proposal; a chain starts at its first.
        rng: generates the uniform numbers that decide on acceptance.

    Returns:
        (chains, steps) the index of each chain's proposal after each step, and the acceptance
        probability of the step.

    >>> position, acceptance = accept(np.array([[0.0, -np.inf, 3.0]]), np.random.default_rng(0))
    >>> position.tolist(), acceptance.tolist()
    ([[0, 0, 2]], [[1.0, 0.0, 1.0]])
    """
    chains, steps = log_ratio.shape
    position = np.zeros((chains, steps), np.int64)
    acceptance = np.ones((chains, steps))
    chain = np.arange(chains)
    # A proposal without a finite density is never accepted; a chain that starts there leaves it.
    ratio = np.where(np.isfinite(log_ratio), log_ratio, _NEVER)
    uniform = rng.uniform(size=(chains, steps))
    for step in range(1, steps):
        current = position[:, step - 1]
        change = ratio[:, step] - ratio[chain, current]
        acceptance[:, step] = np.exp(np.minimum(change, 0.0))
        position[:, step] = np.where(uniform[:, step] < acceptance[:, step], step, current)
    return position, acceptance


def accept_pairs(
    log_ratio: Float64, log_ratio_skewed: Float64, draws: int, rng: np.random.Generator
) -> tuple[Int64, Float64]:
    """Run the chains over antithetic pairs, alternating between proposals and their partners.

    A chain starts at its first proposal. A step to the antithetic partner of the current state has
    another acceptance ratio, because it is not an independent proposal (see `Skewed.antithetic`).

    Args:
        log_ratio: (chains, 2 pairs) log p(z)/q(z); each proposal is followed by its partner.
        log_ratio_skewed: (chains, 2 pairs) log p(z)/q(z), where q is the skewed Gaussian alone.
        draws: steps; two or one fewer than there are proposals and partners.
        rng: generates the uniform numbers that decide on acceptance.

    Returns:
        (chains, draws) as `accept`.

    >>> never, surely = -np.inf, 0.0
    >>> ratio = np.array([[surely, surely, never, never, surely, surely]])
    >>> accept_pairs(ratio, ratio, 4, np.random.default_rng(0))[0].tolist()
    [[0, 1, 4, 5]]
    """
    position = np.zeros((len(log_ratio), draws), np.int64)
    acceptance = np.ones((len(log_ratio), draws))
    chain, current = np.arange(len(log_ratio)), np.zeros(len(log_ratio), np.int64)
    ratios = [np.where(np.isfinite(r), r, _NEVER) for r in (log_ratio, log_ratio_skewed)]
    uniform = rng.uniform(size=position.shape)
    for step in range(draws):
        ratio = ratios[step % 2]
        proposed = current ^ 1 if step % 2 else np.full_like(current, step + 2)
        change = ratio[chain, proposed] - ratio[chain, current]
        acceptance[:, step] = np.exp(np.minimum(change, 0.0))
        current = np.where(uniform[:, step] < acceptance[:, step], proposed, current)
        position[:, step] = current
    return position, acceptance

"""Whether a posterior agrees with draws of its prior that are weighted by the likelihood."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.components import Share
from bpa_ppl.diagnostics.check.convergence import BulkESS, RHat, TailESS
from bpa_ppl.diagnostics.check.diagnostic import Diagnostic, Run, list_components
from bpa_ppl.posterior.draws import Draws, importance_weights, kish
from bpa_ppl.posterior.record import Finding, FromPrior
from bpa_ppl.posterior.statistics import count_moments, ess, estimate_tail_shapes

#: With fewer effective draws of the prior, nothing is compared.
_FEWEST_DRAWS = 100
#: The share of the draws of chains whose visits are counted on each side.
_OUTER = 0.01
#: How many times as far from the median as the chains a far mode is.
_FAR = 4.0
#: Effective draws per degree of freedom of an estimated standard error: those of chains come from
#: windows of about ten autocorrelation times, and weights vary.
_WINDOW = 10.0


class PriorDraws(Diagnostic, frozen=True):
    """Whether chains have the distribution of weighted draws of the prior (`compare_with_prior`).

    It finds modes that no chain has visited, as far as the prior has draws there.

    Args:
        limit: the level of the test, of all components together.
    """

    title = "draws of the prior (p)"
    least = True
    stored = False
    limit: Share = 0.001

    def applies(self, run: Run) -> bool:
        return run.draws.record.from_prior is not None

    def measure(self, run: Run) -> Finding | None:
        """Return the recorded p-value; None if its component is not among those of the run."""
        prior = run.draws.record.from_prior
        if prior is None or prior.where not in run.names:
            return None
        values = run.draws.components()[prior.where]
        problem = f"{prior.where} has another distribution than draws of the prior, weighted by "
        problem += f"the likelihood (ESS {prior.effective:.0f})"
        if run.moments[run.names.index(prior.where)] == 2:
            problem = (
                f"{prior.where} has the mean {values.mean():.3g} and the sd {values.std():.3g}, "
                f"but of draws of the prior, weighted by the likelihood (ESS {prior.effective:.0f})"
                f", the mean {prior.mean:.3g} and the sd {prior.deviation:.3g}"
            )
        if not prior.p_value >= self.limit and (run.at_several_modes or not self._are_short(run)):
            problem += f": {run.advice.other_modes()}"
        return self.find_worst(np.array([prior.p_value]), [prior.where], self.limit, problem)

    def _are_short(self, run: Run) -> bool:
        """Return whether chains have too few effective draws, which is why they may differ."""
        findings = map(run.measure, map(run.find, (RHat, BulkESS, TailESS)))
        return any(finding is not None and not finding.passed for finding in findings)


def compare_with_prior(draws: Draws, log_likelihood: Float64) -> FromPrior | None:
    """Compare chains with draws of the prior that are weighted by the likelihood.

    Both are replaced by their ranks among the draws of the chains, in (0, 1), so that one far draw
    of heavy tails does not decide. Compared are the means of the ranks, and of their distances from
    the middle, with the standard errors of both, by Student's t; and the number of draws of the
    prior that are above, or below, all draws of the chains, as a small mode that no chain has
    visited is (`_test_beyond`). Components whose draws of the prior do not differ are left out.

    Args:
        draws: chains, and draws of the prior.
        log_likelihood: (P,) of the draws of the prior.

    Returns:
        the component that differs most; None if there are fewer than 100 effective draws of the
        prior, none that differ, or no chains.

    >>> rng = np.random.default_rng(0)
    >>> values = {"x": rng.normal(size=(4, 1000))}
    >>> prior = {"x": rng.normal(size=(1, 1000))}
    >>> prior["x"][:, :500] = rng.normal(8, 0.1, size=500)
    >>> result = compare_with_prior(Draws(values, sampled=("x",), prior=prior), np.zeros(1000))
    >>> result.where, result.p_value < 1e-9, round(result.mean)
    ('x', True, 4)
    """
    from scipy.special import stdtr
    from scipy.stats import rankdata

    importance = importance_weights(log_likelihood)
    if draws.kind != "chains" or not (size := kish(importance)) >= _FEWEST_DRAWS:
        return None
    names, values = list_components(draws)
    moves = np.isfinite(values).all(axis=(0, 1)) & (np.ptp(values, axis=(0, 1)) > 0)
    of_prior = Draws(
        draws.prior,
        sampled=draws.sampled,
        main=draws.main,
        dims=draws.dims,
        coords=draws.coords,
    ).components()
    prior = np.stack([of_prior[name][0] for name in names], axis=-1)
    moves &= np.ptp(prior, axis=0) > 0
    if not moves.any():
        return None
    names, values, prior = np.array(names)[moves].tolist(), values[..., moves], prior[:, moves]
    flat = values.reshape(-1, len(names))
    ranks = (rankdata(flat, axis=0) - 0.5) / len(flat)
    expected_ranks = np.empty_like(prior)
    for k, ordered in enumerate(np.sort(flat, axis=0).T):
        sides = (
            np.searchsorted(ordered, prior[:, k]),
            np.searchsorted(ordered, prior[:, k], "right"),
        )
        expected_ranks[:, k] = np.mean(sides, axis=0) / len(flat)
    ranks, weighted = (np.stack([of, np.abs(of - 0.5)], axis=-1) for of in (ranks, expected_ranks))
    expected = np.tensordot(importance, weighted, 1)
    effective = np.fmin(ess(ranks.reshape(*values.shape, 2), "mean"), len(flat))
    of_chains = ranks.var(axis=0) / effective
    of_weighted = np.tensordot(importance**2, (weighted - expected) ** 2, 1)
    variance = of_chains + of_weighted
    degrees = variance**2 / (of_chains**2 / effective + of_weighted**2 / size) / _WINDOW
    z = (ranks.mean(axis=0) - expected) / np.sqrt(variance)
    of_ranks = 2 * stdtr(degrees, -np.abs(z)).min(axis=-1)
    beyond = _test_beyond(values, prior, importance)
    # Both kinds of tests, of two ranks each and of what is beyond, have half of the level.
    p_values = np.fmin(2 * len(names) * np.fmin(2 * of_ranks, beyond), 1.0)
    k = int(p_values.argmin())
    with np.errstate(over="ignore", invalid="ignore"):  # of a prior with heavy tails
        mean = float(importance @ prior[:, k])
        deviation = float(np.sqrt(importance @ (prior[:, k] - mean) ** 2))
    return FromPrior(
        effective=size,
        p_value=float(p_values[k]),
        where=names[k],
        mean=mean,
        deviation=deviation,
    )


def _test_beyond(values: Float64, prior: Float64, importance: Float64) -> Float64:
    """Return the p-value of as many draws of the prior beyond all draws of the chains, (K,).

    Of m draws and n of one distribution, j of the m are above all n with the probability of
    drawing them first, m / (m + n) · (m − 1) / (m + n − 1) … Four times as far from the median as
    the last of the n, where the tail has a variance, there are at most as many as above 16 n. The
    p-value is the smallest one of both distances and sides, times four. Weighted draws count as
    many as are effective, and so do draws of chains: by the indicators of their outer hundredths,
    as they visit a tail more seldom than the middle.

    Args:
        values: (C, D, K) the draws of the chains.
        prior: (P, K) the draws of the prior.
        importance: (P,) their importance weights.
    """
    flat, size = values.reshape(-1, values.shape[-1]), kish(importance)
    middle, p_values = np.median(flat, axis=0), np.ones(flat.shape[-1])
    for sign in (-1.0, 1.0):
        outer = sign * values >= np.quantile(sign * flat, 1 - _OUTER, axis=0)
        visits = np.fmin(np.nan_to_num(ess(outer, "mean")), np.nan_to_num(ess(values, "bulk")))
        visits = np.fmin(visits, len(flat))
        last = (sign * (flat - middle)).max(axis=0)
        for times in (1.0, _FAR):
            beyond = (sign * (prior - middle) > times * last) & (importance > 0)[:, None]
            tested = np.flatnonzero(beyond.any(axis=0))
            if times > 1 and tested.size:
                shares = visits[tested] / len(flat)
                shapes, counts = estimate_tail_shapes(values[..., tested], shares)
                tested = tested[count_moments(shapes, counts) == 2]
            for k in tested.tolist():
                inside = importance[beyond[:, k]]
                number = min(inside.sum() * size, kish(inside / inside.sum()))
                drawn = np.arange(int(number + 1e-9))
                chance = np.prod((size - drawn) / (size + visits[k] * times**2 - drawn))
                p_values[k] = min(p_values[k], float(chance))
    return p_values * 4

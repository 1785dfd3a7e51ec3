"""Whether a posterior agrees with draws of its prior that are weighted by the likelihood."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.components import Share
from bpa_ppl.diagnostics.check.diagnostic import Diagnostic, Run, list_components
from bpa_ppl.posterior.draws import Draws, importance_weights, kish
from bpa_ppl.posterior.record import Finding, FromPrior
from bpa_ppl.posterior.statistics import ess

#: With fewer effective draws of the prior, nothing is compared.
_FEWEST_DRAWS = 100
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
        problem = (
            f"{prior.where} has the mean {values.mean():.3g} and the sd {values.std():.3g}, but of "
            f"draws of the prior, weighted by the likelihood (ESS {prior.effective:.0f}), the mean "
            f"{prior.mean:.3g} and the sd {prior.deviation:.3g}"
        )
        return self.find_worst(
            np.array([prior.p_value]),
            [prior.where],
            self.limit,
            f"{problem}: {run.advice.other_modes()}",
        )


def compare_with_prior(draws: Draws, log_likelihood: Float64) -> FromPrior | None:
    """Compare chains with draws of the prior that are weighted by the likelihood.

    Both are replaced by their ranks among the draws of the chains, in (0, 1), so that one far draw
    of heavy tails does not decide. Compared are the means of the ranks, and of their distances from
    the middle, with the standard errors of both, by Student's t.

    Args:
        draws: chains, and draws of the prior.
        log_likelihood: (P,) of the draws of the prior.

    Returns:
        the component that differs most; None if there are fewer than 100 effective draws of the
        prior, or no chains.

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
    if not moves.any():
        return None
    names, values = np.array(names)[moves].tolist(), values[..., moves]
    of_prior = Draws(
        draws.prior,
        sampled=draws.sampled,
        main=draws.main,
        dims=draws.dims,
        coords=draws.coords,
    ).components()
    prior = np.stack([of_prior[name][0] for name in names], axis=-1)
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
    p_values = np.fmin(2 * z.size * stdtr(degrees, -np.abs(z)), 1.0).min(axis=-1)
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

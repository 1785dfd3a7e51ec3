"""The thresholds of the checks, each with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """What a posterior must reach.

    Attributes:
        r_hat: largest rank-normalised split R-hat (Vehtari et al. 2021).
        ess_per_chain: smallest bulk and tail effective sample size: 100 a chain, 400 for four
            chains (Vehtari et al. 2021); importance samples are held to 100.
        mcse: largest Monte-Carlo standard error of a mean, in posterior standard deviations.
        acceptance_low, acceptance_high: bounds on the acceptance rate; a random walk in many
            dimensions is best near 0.234 (Roberts, Gelman & Gilks 1997), and NUTS near its target.
        bfmi: smallest Bayesian fraction of missing information (Betancourt 2016).
        pareto_k: largest Pareto k̂ of importance weights (Vehtari et al. 2024).
        drift: level of the test that the first and second half of the kept draws have the same
            mean (after Geweke 1992), corrected for the number of weights (Bonferroni).
    """

    r_hat: float = 1.01
    ess_per_chain: float = 100.0
    mcse: float = 0.1
    acceptance_low: float = 0.1
    acceptance_high: float = 0.9
    bfmi: float = 0.3
    pareto_k: float = 0.7
    drift: float = 0.01

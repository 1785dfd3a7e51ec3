"""The heuristic sample of the papers: it looks at λ_T only, and weighs by the data afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.sampling.density import evaluate
from bpa_ppl.sampling.draws import Draws, Problem


@dataclass(frozen=True)
class Settings:
    """N_S = `draws` perturbed copies of λ_T beside itself; `delta` is the leveraging factor δ."""

    draws: int = 1000
    delta: float = 1.0


def perturbed(canonical: npt.ArrayLike, draws: int, rng: np.random.Generator) -> Float64:
    """Return the set S(λ_T), (draws + 1, Q): λ_T, then its perturbed copies.

    For s = 1..N_S: copy λ_T, add U(−0.5, 0.5) to component s mod Q, divide by Σ|λ_k|.

    >>> rng = np.random.default_rng(0)
    >>> perturbed([0.5, -0.5], 2, rng).round(2).tolist()
    [[0.5, -0.5], [0.58, -0.42], [0.35, -0.65]]
    """
    origin = np.asarray(canonical, dtype=np.float64)
    samples = np.tile(origin, (draws + 1, 1))
    turn = np.arange(1, draws + 1)
    samples[turn, turn % len(origin)] += rng.uniform(-0.5, 0.5, size=draws)
    samples[1:] /= np.abs(samples[1:]).sum(axis=1, keepdims=True)
    return samples


def sample(problem: Problem, settings: Settings) -> Draws:
    """Return S(λ_T) with the logarithm of the weights p(A|λ)^(1/δ) p(λ|T) of Eq. 11.

    Raises:
        UsageError: if the model has other sites than the weights.
    """
    if set(problem.start) != {"weights"}:
        raise UsageError("the heuristic sample is of weights alone: the model has other sites")
    canonical = np.asarray(problem.data.prior_mean)
    z = {"weights": perturbed(canonical, settings.draws, np.random.default_rng(problem.seed))[None]}
    energy, log_likelihood = evaluate(problem.model, problem.data, z)
    log_p_oracles = log_likelihood.sum(axis=-1, dtype=np.float64)
    log_prior = -energy - log_p_oracles
    problem.progress(settings.draws, settings.draws, "")
    return Draws(
        z=z,
        stats={"log_weight": log_p_oracles / settings.delta + log_prior, "lp": -energy},
        attrs={"power": 1.0 / settings.delta},
        log_likelihood=log_likelihood,
    )

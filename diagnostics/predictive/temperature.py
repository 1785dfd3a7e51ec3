"""The temperature of the predictive distribution: how much too sure of itself it is.

p_T(e|f) ∝ p(e|f)^(1/T) for derivations; those of equal strings are added up. T > 1 makes it less
sure (Guo et al. 2017). It is fitted to the oracles of the adaptation sentences, each predicted by a
posterior that has not seen it: importance samples of the posterior, smoothed (Vehtari et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from bpa_ppl.diagnostics.predictive.checks import adapted_lists
from bpa_ppl.diagnostics.predictive.left_out import left_out
from bpa_ppl.diagnostics.predictive.likelihood import GOOD_PARETO_K
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.posterior import as_draws, to_arviz

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

_RANGE = 20.0  # temperatures are looked for from 1 / this to this


@dataclass(frozen=True)
class Temperature:
    """A fitted temperature.

    Attributes:
        value: T; above 1 the predictive distribution was too sure of itself.
        before: mean log probability of the oracle's string of a sentence left out, in nats.
        after: the same at T.
        sentences: how many there were.
        doubtful: of how many of them the Pareto k̂ is above 0.7.

    >>> print(Temperature(value=1.4, before=-1.02, after=-0.98, sentences=50, doubtful=0))
    temperature 1.40: log probability of an oracle left out -1.020 → -0.980 nats, 50 sentences
    """

    value: float
    before: float
    after: float
    sentences: int
    doubtful: int

    def __str__(self) -> str:
        doubt = f"; {self.doubtful} in doubt (k̂ > 0.7)" if self.doubtful else ""
        return (
            f"temperature {self.value:.2f}: log probability of an oracle left out "
            f"{self.before:.3f} → {self.after:.3f} nats, {self.sentences} sentences{doubt}"
        )


def temperature(posterior: Posterior, nbest: NBest) -> Temperature:
    """Fit a temperature by leave-one-out on the adaptation sentences.

    Args:
        posterior: draws, with the log-likelihood of each sentence and the observed oracles.
        nbest: the lists that it was adapted to, in the same order.

    Raises:
        DataError: if the posterior is a point or records no log-likelihood of sentences, or if
            these are not its lists.

    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"]] * 4, [[[0.0], [np.log(9)]]] * 4, ["LM0"])
    >>> draws = Draws(
    ...     {"weights": np.ones((2, 50, 1))},
    ...     ("LM0",),
    ...     log_likelihood={"oracle": np.zeros((2, 50, 4))},
    ...     sentence_sites=("oracle",),
    ...     observed={"oracle": np.array([1, 1, 1, 0])},
    ... )
    >>> print(temperature(draws, lists))
    temperature 2.00: log probability of an oracle left out -0.655 → -0.562 nats, 4 sentences
    """
    draws = as_draws(posterior)
    lists, oracle = adapted_lists(draws, nbest)
    log_p, k_hat = left_out(draws, lists)
    of_oracle = [
        lists.string_index[lists.rows(s)] == lists.string_index[lists.offsets[s] + oracle[s]]
        for s in range(len(lists))
    ]

    def loss(log_t: float) -> float:
        return -_mean_log_score(log_p, of_oracle, float(np.exp(log_t)))

    bound = float(np.log(_RANGE))
    found = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
    value = float(np.exp(found.x))
    doubtful = int(np.sum(k_hat > GOOD_PARETO_K))
    return Temperature(value, -loss(0.0), -float(found.fun), len(lists), doubtful)


def calibrated(posterior: Posterior, nbest: NBest) -> InferenceData:
    """Return the posterior with its temperature among its attributes, where `rerank` finds it.

    Args:
        posterior: as for `temperature`, like the lists.
        nbest: see above.

    Raises:
        DataError: as `temperature`.

    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"]] * 4, [[[0.0], [np.log(9)]]] * 4, ["LM0"])
    >>> draws = Draws(
    ...     {"weights": np.ones((2, 50, 1))},
    ...     ("LM0",),
    ...     log_likelihood={"oracle": np.zeros((2, 50, 4))},
    ...     sentence_sites=("oracle",),
    ...     observed={"oracle": np.array([1, 1, 1, 0])},
    ... )
    >>> round(calibrated(draws, lists).attrs["temperature"], 2)
    2.0
    """
    draws = as_draws(posterior)
    found = temperature(draws, nbest)
    return to_arviz(replace(draws, attrs={**draws.attrs, "temperature": found.value}))


def _mean_log_score(
    log_p: Sequence[Float64], of_oracle: Sequence[np.ndarray], value: float
) -> float:
    """Return the mean of log p_T of the strings of the oracles."""
    total = 0.0
    for each, own in zip(log_p, of_oracle, strict=True):
        tempered = np.exp((each - each.max()) / value)
        total += float(np.log(tempered[own].sum() / tempered.sum()))
    return total / len(log_p)

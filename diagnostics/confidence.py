"""Fit a calibration temperature, and trade coverage against risk.

p_T(e|f) ∝ p(e|f)^(1/T) for derivations; probabilities of equal strings are added. T > 1 makes the
predictive distribution less confident (Guo et al. 2017). It is fitted to the oracles of the
adaptation sentences, each predicted by the posterior without the sentence, by Pareto-smoothed
importance sampling (Vehtari et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from bpa_ppl.diagnostics.leave_one_out import GOOD_PARETO_K, leave_one_out
from bpa_ppl.diagnostics.predictive_checks import adapted_lists
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.posterior import as_draws, to_arviz
from bpa_ppl.tables import text_table

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

_RANGE = 20.0  # the temperature is between 1 / this and this


@dataclass(frozen=True)
class Temperature:
    """A fitted calibration temperature.

    Attributes:
        value: T; above 1 the predictive distribution was overconfident.
        before: mean leave-one-out log probability of the text of the oracle, in nats.
        after: the same with the temperature T.
        sentences: the number of sentences.
        doubtful: the number of sentences with a Pareto k̂ above 0.7.

    >>> print(Temperature(value=1.4, before=-1.02, after=-0.98, sentences=50, doubtful=0))
    temperature 1.40: leave-one-out log probability of an oracle -1.020 → -0.980 nats, 50 sentences
    """

    value: float
    before: float
    after: float
    sentences: int
    doubtful: int

    def __str__(self) -> str:
        doubt = f"; {self.doubtful} unreliable (k̂ > 0.7)" if self.doubtful else ""
        return (
            f"temperature {self.value:.2f}: leave-one-out log probability of an oracle "
            f"{self.before:.3f} → {self.after:.3f} nats, {self.sentences} sentences{doubt}"
        )


def temperature(posterior: Posterior, nbest: NBest) -> Temperature:
    """Fit a temperature by leave-one-out on the adaptation sentences.

    Args:
        posterior: draws, with the log-likelihood of each sentence and the observed oracles.
        nbest: the lists that it was adapted to, in the same order.

    Raises:
        DataError: if the posterior is a point, records no log-likelihood of sentences, or belongs
            to other lists.

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
    temperature 2.00: leave-one-out log probability of an oracle -0.655 → -0.562 nats, 4 sentences
    """
    draws = as_draws(posterior)
    lists, oracle = adapted_lists(draws, nbest)
    left_out, tiny = leave_one_out(draws, lists), np.finfo(np.float64).tiny
    log_p = [np.log(np.maximum(p, tiny)) for p in left_out.probabilities(lists)]
    of_oracle = [
        lists.string_index[lists.rows(s)] == lists.string_index[lists.offsets[s] + oracle[s]]
        for s in range(len(lists))
    ]

    def loss(log_t: float) -> float:
        """Return the negative mean of log p_T of the texts of the oracles."""
        total = 0.0
        for log_probabilities, rows in zip(log_p, of_oracle, strict=True):
            tempered = np.exp((log_probabilities - log_probabilities.max()) / float(np.exp(log_t)))
            total += float(np.log(tempered[rows].sum() / tempered.sum()))
        return -(total / len(log_p))

    bound = float(np.log(_RANGE))
    optimum = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
    value = float(np.exp(optimum.x))
    doubtful = int(np.sum(left_out.pareto_k > GOOD_PARETO_K))
    return Temperature(value, -loss(0.0), -float(optimum.fun), len(lists), doubtful)


def calibrated(posterior: Posterior, nbest: NBest) -> InferenceData:
    """Return the posterior with its fitted temperature as an attribute, which `rerank` uses.

    Args:
        posterior: as for `temperature`.
        nbest: as for `temperature`.

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
    return to_arviz(draws.with_attrs(temperature=temperature(draws, nbest).value))


_SHOWN = (0.9, 0.7, 0.5)  # confidences in the printed table


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk and TER of a text if only the most confident changes are made.

    Attributes:
        better: (C,) the probability that a change improves the sentence, descending.
        coverage: (C + 1,) the share of the C changes that are made, from 0 to 1.
        risk: (C + 1,) the share of the changes made that make the sentence worse; 0 at first.
        ter: (C + 1,) TER of the whole text, in percent.

    >>> result = risk_coverage([0.9, 0.4, 0.8], [3, 2, 4], [1, 4, 4], [10, 5, 5])
    >>> coverage, risk, ter = result.at(min_confidence=0.5)
    >>> round(coverage, 2), risk, ter
    (0.67, 0.0, 35.0)
    """

    better: Float64
    coverage: Float64
    risk: Float64
    ter: Float64

    def at(self, min_confidence: float) -> tuple[float, float, float]:
        """Return coverage, risk and TER if only changes above a confidence are made."""
        count = int(np.sum(self.better > min_confidence))
        return float(self.coverage[count]), float(self.risk[count]), float(self.ter[count])

    def __str__(self) -> str:
        named = {"never": 1.0, **{f"> {c:g}": c for c in _SHOWN}, "always": -1.0}
        rows = []
        for name, confidence in named.items():
            coverage, risk, ter = self.at(confidence)
            rows.append((name, f"{coverage:.3f}", f"{risk:.3f}", f"{ter:.2f}"))
        return text_table(rows, ("confidence", "coverage", "risk", "TER"), align="rrrr", least=8)


def risk_coverage(
    better: npt.ArrayLike,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    lengths: npt.ArrayLike,
    changed: npt.ArrayLike | None = None,
) -> RiskCoverage:
    """Return the risk–coverage curve of changes (El-Yaniv & Wiener 2010).

    Args:
        better: (S,) the probability that the choice is better than the first-best.
        before: (S,) edits of the first-best, against the references.
        after: (S,) edits of the choice.
        lengths: (S,) of the references, in words.
        changed: (S,) bool, whether the choice differs from the first-best; None counts all.

    Raises:
        DataError: if the lengths differ, or there is no sentence.

    >>> result = risk_coverage([0.9, 0.4, 0.8], [3, 2, 4], [1, 4, 4], [10, 5, 5])
    >>> result.coverage.round(2).tolist(), result.risk.round(2).tolist(), result.ter.tolist()
    ([0.0, 0.33, 0.67, 1.0], [0.0, 0.0, 0.0, 0.33], [45.0, 35.0, 35.0, 45.0])
    >>> result.at(0.85)
    (0.3333333333333333, 0.0, 35.0)
    """
    columns = [np.asarray(part, np.float64) for part in (better, before, after, lengths)]
    if len({part.shape for part in columns}) != 1 or columns[0].ndim != 1 or not len(columns[0]):
        message = "a curve needs a probability, edits and a length for each sentence"
        raise DataError(message, code="wrong-length")
    p, old, new, words = columns
    mask = np.ones(len(p), bool) if changed is None else np.asarray(changed, bool)
    order = np.flatnonzero(mask)[np.argsort(-p[mask], kind="stable")]
    gained = np.concatenate([[0.0], np.cumsum((new - old)[order])])
    worse = np.concatenate([[0.0], np.cumsum((new > old)[order])])
    count = np.arange(len(order) + 1)
    return RiskCoverage(
        better=p[order],
        coverage=count / max(len(order), 1),
        risk=worse / np.maximum(count, 1),
        ter=100 * (old.sum() + gained) / max(words.sum(), 1.0),
    )

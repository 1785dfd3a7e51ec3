"""Predictive checks: does the model expect the oracles that it meets, and are its odds honest?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from bpa_ppl.diagnostics.significance import uniformity
from bpa_ppl.errors import DataError, checked_seed, one_of
from bpa_ppl.models import Preparation
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.quality import judged_lists
from bpa_ppl.tables import text_table

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

GROUPS = ("prior", "posterior")
_DRAWS = 500


@dataclass(frozen=True, eq=False)
class PredictiveCheck:
    """How the model's predictive distribution of each list meets the oracle (S sentences).

    Everything is about translations: derivations with the same text are one.

    Attributes:
        group: `prior` or `posterior`.
        rank: (S,) of the oracle by predictive probability; 1 is the likeliest.
        probability: (S,) of the oracle.
        entropy: (S,) of the predictive distribution, in nats.
        size: (S,) how many translations a list has.
        pit: (S,) the probability of all that is likelier than the oracle, plus a random share of
            the oracle's own: uniform if oracles are drawn from the predictive distribution.

    >>> one, half = np.ones(4, int), np.full(4, 0.5)
    >>> pit = np.array([0.1, 0.4, 0.6, 0.9])
    >>> found = PredictiveCheck("posterior", one, half, half, 2 * one, pit)
    >>> found.p_value > 0.5
    True
    >>> print(found)
    posterior predictive, 4 sentences: the oracle has median rank 1 of 2 and mean prob...
    """

    group: str
    rank: Int64
    probability: Float64
    entropy: Float64
    size: Int64
    pit: Float64

    @property
    def p_value(self) -> float:
        """The probability of PIT values so far from uniform; small if the model does not fit."""
        return uniformity(self.pit)

    def __str__(self) -> str:
        first = 100 * float(np.mean(self.rank == 1))
        return (
            f"{self.group} predictive, {len(self.rank)} sentences: the oracle has median rank "
            f"{np.median(self.rank):g} of {np.median(self.size):g} and mean probability "
            f"{self.probability.mean():.3f}, and is the likeliest in {first:.0f}%; entropy "
            f"{self.entropy.mean():.2f} nats; fit p = {self.p_value:.3g}"
        )


@dataclass(frozen=True, eq=False)
class Reliability:
    """Whether a probability of p is right p of the time, in B bins of equally many translations.

    Attributes:
        predicted: (B,) mean probability of the translations in a bin.
        observed: (B,) share of them that are the oracle.
        low: (B,) lower end of the 95% interval of the shares that honest probabilities would give.
        high: (B,) its upper end.
        count: (B,) translations.
        error: the expected calibration error, Σ count · |predicted − observed| / Σ count.
        brier: the mean squared error of the probabilities.

    >>> one, count = np.ones(1), np.array([40])
    >>> print(Reliability(0.75 * one, 0.7 * one, 0.6 * one, 0.9 * one, count, 0.05, 0.2))
    calibration error 0.050, Brier score 0.200
    predicted  observed  expected (95%)   count
        0.750     0.700  0.600 to 0.900      40
    """

    predicted: Float64
    observed: Float64
    low: Float64
    high: Float64
    count: Int64
    error: float
    brier: float

    def __str__(self) -> str:
        rows = [
            (f"{p:.3f}", f"{o:.3f}", f"{a:.3f} to {b:.3f}", f"{n:d}")
            for p, o, a, b, n in zip(
                self.predicted, self.observed, self.low, self.high, self.count, strict=True
            )
        ]
        header = ("predicted", "observed", "expected (95%)", "count")
        title = f"calibration error {self.error:.3f}, Brier score {self.brier:.3f}"
        return "\n".join([title, text_table(rows, header, align="rrlr", least=6)])


def predictive_check(
    posterior: Posterior,
    nbest: NBest,
    oracle: npt.ArrayLike | None = None,
    *,
    group: str = "posterior",
    seed: int = 0,
) -> PredictiveCheck:
    """Compare oracles with what the model expects of their lists (Gelman et al. 2013, §6.3).

    Before the data (`prior`) it shows whether the prior allows what is met at all. After them
    (`posterior`), on new lists, whether the model fits; on the adaptation lists themselves the
    data are used twice, so that a misfit is found later.

    Args:
        posterior: draws of the weights.
        nbest: lists, with the features of the posterior.
        oracle: (sentences,) position of the oracle in each; None takes those observed.
        group: whose draws: `prior` or `posterior`.
        seed: of the draws that are picked, at most 500, and of the PIT's random share.

    Raises:
        DataError: if features, oracles or the group of draws are missing.
        UsageError: if there is no such group.

    >>> posterior = Draws({"weights": np.ones((2, 10, 1))}, ("LM0",))
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"])
    >>> found = predictive_check(posterior, lists, [1])
    >>> found.rank.tolist(), found.probability.round(4).tolist()
    ([1], [0.75])
    """
    draws = as_draws(posterior)
    if oracle is None:
        nbest, index = adapted_lists(draws, nbest)
    else:
        nbest, index = _preparation(draws)(nbest), np.asarray(oracle, np.int64)
    rng = np.random.default_rng(checked_seed(seed))
    weights = _picked(draws, nbest, group, rng)
    columns = []
    for s, (p, string) in enumerate(_predictive(nbest, weights)):
        own = p[string[index[s]]]
        likelier = p[p > own].sum()
        entropy = -float(np.sum(p[p > 0] * np.log(p[p > 0])))
        pit = min(likelier + rng.uniform() * own, 1.0)
        columns.append((1 + int(np.sum(p > own)), own, entropy, len(p), pit))
    return PredictiveCheck(group, *(np.array(part) for part in zip(*columns, strict=True)))


def reliability(
    posterior: Posterior,
    nbest: NBest,
    oracle: npt.ArrayLike,
    *,
    bins: int = 10,
    seed: int = 0,
    temperature: float | None = None,
) -> Reliability:
    """Compare the probability of the chosen translations with how often they are the oracle.

    One translation a sentence is looked at: the likeliest, which reranking would choose.

    Args:
        posterior: draws of the weights.
        nbest: lists, best ones that the posterior has not seen.
        oracle: (sentences,) position of the oracle in each.
        bins: how many, of as many sentences each.
        seed: of the draws that are picked, at most 500.
        temperature: of the predictive distribution; None takes what the posterior records, else 1.

    Raises:
        DataError: if features are missing.

    >>> posterior = Draws({"weights": np.ones((2, 10, 1))}, ("LM0",))
    >>> lists = NBest.from_lists([["a", "b"]] * 4, [[[0.0], [np.log(3)]]] * 4, ["LM0"])
    >>> found = reliability(posterior, lists, [1, 1, 1, 0], bins=1)
    >>> found.predicted.round(4).tolist(), found.observed.tolist()
    ([0.75], [0.75])
    """
    draws, index = as_draws(posterior), np.asarray(oracle, np.int64)
    nbest = _preparation(draws)(nbest)
    weights = _picked(draws, nbest, "posterior", np.random.default_rng(checked_seed(seed)))
    value = draws.attrs.get("temperature", 1.0) if temperature is None else temperature
    lists = list(_predictive(nbest, weights, float(value)))
    p = np.array([shares.max() for shares, _ in lists])
    right = np.array([shares.argmax() == of[index[s]] for s, (shares, of) in enumerate(lists)])
    groups = np.array_split(np.argsort(p), min(bins, len(p)))
    predicted = np.array([p[group].mean() for group in groups])
    observed = np.array([right[group].mean() for group in groups])
    count = np.array([len(group) for group in groups])
    low, high = binom.interval(0.95, count, np.clip(predicted, 0, 1))
    error = float(np.average(np.abs(predicted - observed), weights=count))
    brier = float(np.mean((p - right) ** 2))
    return Reliability(predicted, observed, low / count, high / count, count, error, brier)


def _predictive(
    nbest: NBest, weights: Float64, temperature: float = 1.0
) -> Iterator[tuple[Float64, Int64]]:
    """Yield for each list the probability of its translations, and the one of each hypothesis."""
    from bpa_ppl.models.probabilities import log_probabilities

    for s in range(len(nbest)):
        rows = nbest.rows(s)
        features = nbest.features[rows].astype(np.float64)
        log_p = log_probabilities(features - features[:1], weights)
        _, string = np.unique(nbest.string_index[rows], return_inverse=True)
        p = np.exp(log_p).mean(axis=1)
        if temperature != 1.0:
            p = (p / p.max()) ** (1 / temperature)
            p /= p.sum()
        share: Float64 = np.bincount(string, weights=p).astype(np.float64)
        yield share, string


def _picked(draws: Draws, nbest: NBest, group: str, rng: np.random.Generator) -> Float64:
    """Return at most 500 draws in the order of the columns of the lists, (draws, K).

    Draws with importance weights are picked by them.
    """
    one_of(group, GROUPS, "group of draws")
    if group == "prior" and WEIGHTS not in draws.prior:
        raise DataError("the posterior holds no prior draws of the weights")
    known = draws.prior[WEIGHTS] if group == "prior" else draws.weights
    vectors = np.asarray(known, np.float64).reshape(-1, len(draws.features))
    p = draws.importance if draws.weighted and group == "posterior" else None
    count = min(_DRAWS, len(vectors))
    chosen = vectors[rng.choice(len(vectors), size=count, replace=p is not None, p=p)]
    return draws.aligned(nbest, chosen)


def adapted_lists(draws: Draws, nbest: NBest) -> tuple[NBest, Int64]:
    """Return the lists that a posterior was adapted to, with its features, and their oracles.

    Where the criterion is a column, only judged candidates are left.

    Raises:
        DataError: if these are not its lists, or it records no oracles.
    """
    prepared = _preparation(draws)
    lists = prepared.of_own(nbest).nbest
    if prepared.gain is not None:
        lists = judged_lists(lists, prepared.gain)[0]
    return lists, observed_oracles(draws, lists)


def _preparation(draws: Draws) -> Preparation:
    return Preparation.recorded(
        draws.attrs, draws.constants, free=draws.features, fixed=draws.fixed
    )


def observed_oracles(draws: Draws, nbest: NBest) -> Int64:
    """Return the position of the oracle in each of the lists that a posterior was adapted to.

    Raises:
        DataError: if the posterior records none, or those of other lists.
    """
    if "oracle" not in draws.observed:
        raise DataError("the posterior does not record oracles: give the position of each")
    index = np.asarray(draws.observed["oracle"], np.int64)
    if len(index) != len(nbest) or np.any(index >= nbest.sizes):
        raise DataError(
            f"the posterior's {len(index)} oracles are not of these {len(nbest)} lists: give the "
            "position of each",
            nbest.origin,
        )
    return index

"""Predictive checks: does the model expect the oracles, and are its probabilities calibrated?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float32, Float64, Int64
from bpa_ppl.diagnostics.pages.page import Table, Tabular
from bpa_ppl.diagnostics.uniformity import uniformity
from bpa_ppl.errors import DataError, checked_seed, one_of
from bpa_ppl.models import Preparation
from bpa_ppl.models.probabilities import normalised
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.quality.column import judged_lists

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

GROUPS = ("prior", "posterior")
_MAX_DRAWS = 500


@dataclass(frozen=True, eq=False)
class PredictiveCheck:
    """The oracle of each list under the predictive distribution of the model (S sentences).

    Derivations of the same text are one translation.

    Attributes:
        group: `prior` or `posterior`.
        rank: (S,) of the oracle by predictive probability; 1 is the most probable.
        probability: (S,) of the oracle.
        entropy: (S,) of the predictive distribution, in nats.
        size: (S,) the number of translations of a list.
        pit: (S,) the probability of all translations that are more probable than the oracle, plus
            a random share of that of the oracle: uniform if the model fits.

    >>> one, half = np.ones(4, int), np.full(4, 0.5)
    >>> pit = np.array([0.1, 0.4, 0.6, 0.9])
    >>> result = PredictiveCheck("posterior", one, half, half, 2 * one, pit)
    >>> result.p_value > 0.5
    True
    >>> print(result)
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
        """The p-value of uniform PIT values; small if the model does not fit."""
        return uniformity(self.pit)

    def __str__(self) -> str:
        first = 100 * float(np.mean(self.rank == 1))
        return (
            f"{self.group} predictive, {len(self.rank)} sentences: the oracle has median rank "
            f"{np.median(self.rank):g} of {np.median(self.size):g} and mean probability "
            f"{self.probability.mean():.3f}, and is the most probable in {first:.0f}%; entropy "
            f"{self.entropy.mean():.2f} nats; fit p = {self.p_value:.3g}"
        )


@dataclass(frozen=True, eq=False)
class Reliability(Tabular):
    """Predicted probabilities against observed frequencies, in B bins of equal size.

    Attributes:
        predicted: (B,) mean probability of the translations in a bin.
        observed: (B,) share of them that are the oracle.
        low: (B,) lower end of the 95% interval of the shares under calibrated probabilities.
        high: (B,) upper end.
        count: (B,) translations.
        error: the expected calibration error, Σ count · |predicted − observed| / Σ count.
        brier: the mean squared error of the probabilities.

    >>> one, count = np.ones(1), np.array([40])
    >>> print(Reliability(0.75 * one, 0.7 * one, 0.6 * one, 0.9 * one, count, 0.05, 0.2))
    calibration error 0.050, Brier score 0.200
    predicted  observed  expected (95%)  count
    0.750      0.700     0.600 to 0.900  40
    """

    predicted: Float64
    observed: Float64
    low: Float64
    high: Float64
    count: Int64
    error: float
    brier: float

    def _shown(self) -> tuple[str, Table, Sequence[str]]:
        columns = (self.predicted, self.observed, self.low, self.high, self.count)
        rows = [
            (f"{p:.3f}", f"{o:.3f}", f"{a:.3f} to {b:.3f}", f"{n:d}")
            for p, o, a, b, n in zip(*columns, strict=True)
        ]
        header = ("predicted", "observed", "expected (95%)", "count")
        title = f"calibration error {self.error:.3f}, Brier score {self.brier:.3f}"
        return title, Table(header, rows), ()


def predictive_check(
    posterior: Posterior,
    nbest: NBest,
    oracle: npt.ArrayLike | None = None,
    *,
    group: str = "posterior",
    seed: int = 0,
) -> PredictiveCheck:
    """Compare oracles with the predictive distribution of their lists (Gelman et al. 2013, §6.3).

    With prior draws it shows whether the prior is compatible with the oracles; with posterior
    draws, on new lists, whether the model fits. On the adaptation lists the data are used twice,
    so that the check is less sensitive.

    Args:
        posterior: draws of the weights.
        nbest: lists, with the features of the posterior.
        oracle: (sentences,) position of the oracle in each; None uses the observed ones.
        group: `prior` or `posterior` draws.
        seed: of the selection of at most 500 draws, and of the randomised PIT.

    Raises:
        DataError: if features, oracles or the group of draws are missing.
        UsageError: if there is no such group.

    >>> posterior = Draws({"weights": np.ones((2, 10, 1))}, ("LM0",))
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"])
    >>> result = predictive_check(posterior, lists, [1])
    >>> result.rank.tolist(), result.probability.round(4).tolist()
    ([1], [0.75])
    """
    draws = as_draws(posterior)
    if oracle is None:
        nbest, index = adapted_lists(draws, nbest)
    else:
        nbest, index = Preparation.recorded(draws)(nbest), np.asarray(oracle, np.int64)
    rng = np.random.default_rng(checked_seed(seed))
    weights, columns = _picked(draws, nbest, group, rng), []
    for s, (p, string) in enumerate(_predictive(nbest, weights)):
        p_oracle = p[string[index[s]]]
        likelier = p[p > p_oracle].sum()
        entropy = -float(np.sum(p[p > 0] * np.log(p[p > 0])))
        pit = min(likelier + rng.uniform() * p_oracle, 1.0)
        columns.append((1 + int(np.sum(p > p_oracle)), p_oracle, entropy, len(p), pit))
    return PredictiveCheck(group, *(np.array(part) for part in zip(*columns, strict=True)))


def reliability(
    posterior: Posterior,
    nbest: NBest,
    oracle: npt.ArrayLike,
    *,
    bins: int = 10,
    seed: int = 0,
) -> Reliability:
    """Compare the probability of the chosen translations with how often they are the oracle.

    Only the most probable translation of each sentence counts, which reranking would choose.

    Args:
        posterior: draws of the weights.
        nbest: lists, preferably not the adaptation lists.
        oracle: (sentences,) position of the oracle in each.
        bins: the number of bins.
        seed: of the selection of at most 500 draws.

    Raises:
        DataError: if features are missing.

    >>> posterior = Draws({"weights": np.ones((2, 10, 1))}, ("LM0",))
    >>> lists = NBest.from_lists([["a", "b"]] * 4, [[[0.0], [np.log(3)]]] * 4, ["LM0"])
    >>> result = reliability(posterior, lists, [1, 1, 1, 0], bins=1)
    >>> result.predicted.round(4).tolist(), result.observed.tolist()
    ([0.75], [0.75])
    """
    from scipy.stats import binom

    draws, index = as_draws(posterior), np.asarray(oracle, np.int64)
    nbest = Preparation.recorded(draws)(nbest)
    weights = _picked(draws, nbest, "posterior", np.random.default_rng(checked_seed(seed)))
    lists = list(_predictive(nbest, weights))
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


def _predictive(nbest: NBest, weights: Float64) -> Iterator[tuple[Float64, Int64]]:
    """Yield for each list the probabilities of translations, and their indices by hypothesis."""
    for s in range(len(nbest)):
        rows = nbest.rows(s)
        features = nbest.features[rows].astype(np.float64)
        p = normalised(features @ weights.T, axis=0)[1].mean(axis=1)
        _, string = np.unique(nbest.string_index[rows], return_inverse=True)
        yield np.bincount(string, weights=p).astype(np.float64), string


def _picked(draws: Draws, nbest: NBest, group: str, rng: np.random.Generator) -> Float64:
    """Return at most 500 draws in the order of the columns of the lists, (draws, K).

    Draws with importance weights are resampled.
    """
    one_of(group, GROUPS, "group of draws", "group")
    values = draws.prior.get(WEIGHTS) if group == "prior" else draws.weights
    if values is None:
        raise DataError("the posterior has no prior draws of the weights", code="no-data")
    vectors = np.asarray(values, np.float64).reshape(-1, len(draws.features))
    p = draws.importance if draws.weighted and group == "posterior" else None
    count = min(_MAX_DRAWS, len(vectors))
    chosen = vectors[rng.choice(len(vectors), size=count, replace=p is not None, p=p)]
    return draws.aligned(nbest, chosen)


def adapted_lists(draws: Draws, nbest: NBest) -> tuple[NBest, Int64]:
    """Return the lists that a posterior was adapted to, with its features, and their oracles.

    If the criterion is a column, only judged candidates are kept.

    Raises:
        DataError: if these are not its lists, or it records no oracles.
    """
    prepared = Preparation.recorded(draws)
    lists = prepared.for_training(nbest).nbest
    if prepared.gain is not None:
        lists = judged_lists(lists, prepared.gain)[0]
    if "oracle" not in draws.observed:
        message = "the posterior does not record oracles: give the position of each"
        raise DataError(message, code="no-data")
    index = np.asarray(draws.observed["oracle"], np.int64)
    if len(index) != len(lists) or np.any(index >= lists.sizes):
        message = f"the {len(index)} recorded oracles are not of these {len(lists)} lists"
        raise DataError(f"{message}: give the position of each", lists.origin, code="mismatch")
    return lists, index


#: Draws in a block, whose probabilities of a list fit into a processor cache.
_BLOCK = 64


def with_predictions(
    posterior: Posterior, nbest: NBest, *, gains: npt.ArrayLike | None = None, seed: int = 0
) -> InferenceData:
    """Return the posterior with the groups that predict the lists, for the checks of ArviZ.

    They are `posterior_predictive`, and `prior_predictive` from the recorded draws of the prior.

    Each draw λ predicts one hypothesis of each sentence, drawn from p(e|f,λ). Two variables
    describe the predictions, and the oracles in `observed_data`:

    * `oracle`: the position in the list from 0, plus a uniform random number in [0, 1), so that it
      is continuous: the probability integral transform (`loo_pit`) is then exactly uniform if the
      model is correct (randomised as by Smith 1985). Values below 1/2 on average mean that oracles
      rank higher in the lists than the model expects.
    * `gain`: its gain, if gains are given. The oracle has the best gain of its list, so that this
      measures the remaining headroom, not the fit of the model.

    Args:
        posterior: draws of the weights; draws with importance weights are resampled, because ArviZ
            treats all draws equally.
        nbest: the lists that it was adapted to, in the same order.
        gains: (hypotheses,) such as `bpa_ppl.gains(nbest)`.
        seed: of the predictions, and of the resampling.

    Returns:
        InferenceData, or a DataTree; (C, D, S) float32 each in the two groups.

    Raises:
        DataError: if these are other lists, features are missing, or there is not one gain for
            each hypothesis.

    >>> from bpa_ppl.posterior import Draws
    >>> lists = NBest.from_lists([["a", "b"]] * 2, [[[0.0], [np.log(3)]]] * 2, ["LM0"])
    >>> draws = Draws({"weights": np.ones((2, 500, 1))}, ("LM0",), observed={"oracle": [1, 0]})
    >>> drawn = as_draws(with_predictions(draws, lists)).predictive["oracle"]
    >>> drawn.shape, bool(abs((drawn >= 1).mean() - 0.75) < 0.03)
    ((2, 500, 2), True)
    """
    draws = as_draws(posterior).resampled(seed)
    lists, oracle = adapted_lists(draws, nbest)
    rng = np.random.default_rng(checked_seed(seed))
    drawn = _drawn(lists, draws.aligned(lists), rng).reshape(*draws.shape, len(lists))
    predicted, observed = {"oracle": drawn + rng.random(drawn.shape)}, {}
    observed["oracle"] = oracle + rng.random(len(oracle))
    if gains is not None:
        gain_values = np.asarray(gains, np.float64)
        if gain_values.shape != (len(lists.features),):
            message = f"{len(lists.features)} gains are needed, not an array of {gain_values.shape}"
            code = "wrong-length"
            raise DataError(message, lists.origin, parameter="gains", code=code)
        predicted["gain"], observed["gain"] = (
            gain_values[lists.offsets[:-1] + position] for position in (drawn, oracle)
        )
    from_prior = {}
    if WEIGHTS in draws.prior:
        prior = np.asarray(draws.prior[WEIGHTS], np.float64)
        vectors = draws.aligned(lists, prior.reshape(-1, prior.shape[-1]))
        positions = _drawn(lists, vectors, rng).reshape(*prior.shape[:2], len(lists))
        from_prior["oracle"] = _narrow(positions + rng.random(positions.shape))
        if gains is not None:
            from_prior["gain"] = _narrow(gain_values[lists.offsets[:-1] + positions])
    narrow = {name: _narrow(values) for name, values in predicted.items()}
    observed = {**draws.observed, **observed}
    return to_arviz(
        replace(draws, predictive=narrow, prior_predictive=from_prior, observed=observed)
    )


def _narrow(values: Float64) -> Float32:
    """Return float32 rounded towards zero: a position plus a fraction is below the next one."""
    rounded = values.astype(np.float32)
    lower = np.nextafter(rounded, np.float32(0))
    return np.where(np.abs(rounded) > np.abs(values), lower, rounded)


def _drawn(lists: NBest, weights: Float64, rng: np.random.Generator) -> Int64:
    """Return a hypothesis of each list for each vector of weights, (D, S) positions."""
    from bpa_ppl.models.probabilities import normalised

    choices = np.empty((len(weights), len(lists)), np.int64)
    vectors = weights.T.astype(np.float32)
    for s in range(len(lists)):
        rows, level = lists.features[lists.rows(s)], rng.random(len(weights))
        features = rows - rows[:1]
        for first in range(0, len(weights), _BLOCK):
            part = slice(first, first + _BLOCK)
            below = normalised(features @ vectors[:, part], axis=0)[1].cumsum(axis=0) < level[part]
            choices[part, s] = np.count_nonzero(below, axis=0)
    return choices.clip(max=lists.sizes - 1)

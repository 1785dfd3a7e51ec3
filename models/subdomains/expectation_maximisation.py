"""EM for the latent subdomains of a parallel corpus.

H. Cuong, K. Sima'an and I. Titov, "Adapting to all domains at once: rewarding domain invariance in
SMT", TACL 4, 2016. A sentence pair (f, e) of subdomain z has the probability (Eq. 3)

    p(f, e | z) = ½ P(e|z) P(f|e,z) + ½ P(f|z) P(e|f,z)

with n-gram models P(e|z), P(f|z) and IBM Model 1 for P(f|e,z), P(e|f,z) of each subdomain. Training
is hierarchical: one iteration with P(z|e,f) ∝ P(z) P(e|z) P(f|z); then the language models are
estimated once more and stay, and the lexicons and P(z) are trained for three iterations more.

Hard EM is as published: a pair belongs entirely to its most probable subdomain, in both lexicons.
Soft EM is exact: both the subdomain and the term of the sum that generated a pair are latent, and
each lexicon counts a pair by the probability of its own term. Its likelihood does not decrease.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import delayed
from msgspec import Meta

from bpa_ppl.component import Component, CountOrNone, NotNegative
from bpa_ppl.errors import checked_seed
from bpa_ppl.models.subdomains.lexicon import Lexicons
from bpa_ppl.models.subdomains.unigrams import unigram_posteriors
from bpa_ppl.nbest import Float32, Float64
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.phrases.tables import SIDES, Side
from bpa_ppl.progress import Reporter
from bpa_ppl.text.kneser_ney import WeightedText
from bpa_ppl.text.language_model import LONGEST
from bpa_ppl.workers import Parallel

_NEGLIGIBLE = 1e-7  # smaller posteriors are 0: float32 cannot represent them next to 1


class Settings(Component, frozen=True, kw_only=True):
    """Settings of the induction of subdomains.

    Attributes:
        k: K, the number of subdomains.
        em: `hard`, as published: each sentence pair belongs to its most probable subdomain; or
            `soft`: to each with its probability.
        iterations: of the full model.
        lm_iterations: before them, with the language models only.
        order: of the language models.
        smoothing: of the language models; `none` is maximum likelihood.
        prior: pseudo-counts of each conditioning word of a lexicon; see `Lexicons`.
        folds: with 2 or more, a sentence pair is scored by models of the other folds only; with 1,
            as published, by models that were also estimated on it.
        start: of the first language models: `unigrams`, the posteriors of a mixture of unigram
            models, or `random` posteriors.
        seed: of the start.
    """

    k: Annotated[int, Meta(ge=2, le=1000)] = 12
    em: Literal["hard", "soft"] = "hard"
    iterations: CountOrNone = 3
    lm_iterations: Annotated[int, Meta(ge=1)] = 1
    order: Annotated[int, Meta(ge=1, le=LONGEST)] = 3
    smoothing: Literal["kneser-ney", "none"] = "kneser-ney"
    prior: NotNegative = 1.0
    folds: Annotated[int, Meta(ge=1)] = 1
    start: Literal["unigrams", "random"] = "unigrams"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_seed(self.seed)


class Iteration(NamedTuple):
    """The posteriors of the sentence pairs after one iteration.

    Attributes:
        posteriors: (pairs,) int16, the most probable subdomain (hard), or (pairs, K) float32,
            P(z | e, f) (soft).
        shares: (pairs, K) float32, soft: the share of P(f|z) P(e|f,z), which generates the source
            first, in its sum with P(e|z) P(f|e,z); None is a half.
        weights: (K,) float64, P(z), estimated from the posteriors.
        log_likelihood: natural log p of all pairs under the models of the posteriors.
        log_prior: the log density of these models' lexicons, up to a constant.
    """

    posteriors: npt.NDArray[Any]
    shares: Float32 | None
    weights: Float64
    log_likelihood: float = 0.0
    log_prior: float = 0.0

    def pair_weights(self, z: int, condition: Side | None = None) -> Float64:
        """Return (pairs,) the weights for estimating the models of one subdomain.

        Args:
            z: the subdomain.
            condition: the conditioning side of a lexicon; None for a language model.
        """
        if self.posteriors.ndim == 1:
            return np.asarray(self.posteriors == z, np.float64)
        posterior: Float64 = self.posteriors[:, z].astype(np.float64)
        if condition is None:
            return posterior
        if self.shares is None:
            return 0.5 * posterior
        share = self.shares[:, z].astype(np.float64)
        return posterior * (share if condition == "source" else 1.0 - share)


def e_step(joint: Float64, shares: Float64 | None, em: str, log_prior: float = 0.0) -> Iteration:
    """Return the posteriors for (pairs, K) logs of P(z) p(e, f | z).

    Args:
        joint: the logs; at least one per row is finite.
        shares: see `Iteration`.
        em: `hard` or `soft`.
        log_prior: see `Iteration`.

    >>> e_step(np.log([[0.1, 0.3], [0.2, 0.2]]), None, "hard").weights.tolist()
    [0.5, 0.5]
    >>> e_step(np.log([[0.1, 0.3], [0.2, 0.2]]), None, "soft").weights.tolist()
    [0.375, 0.625]
    """
    highest = joint.max(axis=1, keepdims=True)
    posteriors = np.exp(joint - highest)
    sums = posteriors.sum(axis=1, keepdims=True)
    likelihood = float((highest + np.log(sums)).sum())
    if em == "hard":
        winners = joint.argmax(axis=1).astype(np.int16)
        weights = np.bincount(winners, minlength=joint.shape[1]) / len(winners)
        return Iteration(winners, None, weights, likelihood, log_prior)
    posteriors /= sums
    posteriors[posteriors < _NEGLIGIBLE] = 0.0
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    narrow = None if shares is None else shares.astype(np.float32)
    weights = posteriors.mean(axis=0)
    return Iteration(posteriors.astype(np.float32), narrow, weights, likelihood, log_prior)


def em(
    source: NumberedText,
    target: NumberedText,
    settings: Settings,
    parallel: Parallel,
    history: Sequence[Iteration] = (),
    report: Reporter = lambda done, total, note: None,
) -> Iterator[Iteration]:
    """Yield the posteriors of the sentence pairs: at the start, then after each iteration.

    The result does not depend on the workers: a task estimates the model of one subdomain on one
    side, and scores all sentence pairs by it.

    Args:
        source: the source sentences.
        target: their translations.
        settings: of the induction.
        parallel: workers, from `parallel_workers`.
        history: the earlier results of an interrupted run.
        report: receives the progress.
    """
    history = list(history)
    last = settings.lm_iterations  # the last entry with language models only
    progress = _Progress(settings, len(history), report)
    if not history:
        progress.begin("start")
        if settings.start == "random":
            rng = np.random.default_rng(settings.seed)
            posteriors = rng.dirichlet(np.ones(settings.k), len(source))
        else:
            posteriors = unigram_posteriors(source, target, settings.k, settings.seed)
        history.append(e_step(_log(posteriors), None, settings.em))
        yield history[-1]
    if len(history) > last + settings.iterations:
        return
    texts = [
        WeightedText.of(side.sentences, len(side.words), settings.order)
        for side in (source, target)
    ]
    while len(history) <= last:
        scores = _language_scores(parallel, (texts, settings), history[-1], progress)
        history.append(e_step(_log(history[-1].weights) + sum(scores), None, settings.em))
        yield history[-1]
    if not settings.iterations:
        return
    scores = _language_scores(parallel, (texts, settings), history[last], progress)
    del texts
    progress.begin("pairs of words")
    lexicons = Lexicons(source, target, settings.prior)
    assert set(lexicons.whole_corpus) == set(SIDES)  # computed here, once for all threads
    while len(history) <= last + settings.iterations:
        shared = lexicons, settings
        history.append(_full_model(parallel, shared, history[last:], scores, progress))
        yield history[-1]


def _language_scores(
    parallel: Parallel,
    models: tuple[list[WeightedText], Settings],
    iteration: Iteration,
    progress: _Progress,
) -> list[Float64]:
    """Return for each side (pairs, K) log p under the language models of the subdomains."""
    subdomains = range(len(iteration.weights))
    items = [(n, iteration.pair_weights(z)) for n, _ in enumerate(SIDES) for z in subdomains]
    columns = parallel(delayed(_score_language)(models, item) for item in items)
    return _by_side(list(progress.count("language models", columns)))


def _score_language(
    shared: tuple[list[WeightedText], Settings], item: tuple[int, Float64]
) -> Float64:
    """Estimate one language model and score the sentences of its side; runs in a worker."""
    texts, settings = shared
    side, weights = item
    scores = np.zeros(len(weights))
    for left_out, scored in _folds(len(weights), settings.folds):
        training = np.where(left_out, 0.0, weights)
        scores += texts[side].log_probabilities(training, settings.smoothing, scored)
    return scores


def _full_model(
    parallel: Parallel,
    shared: tuple[Lexicons, Settings],
    history: Sequence[Iteration],
    language: Sequence[Float64],
    progress: _Progress,
) -> Iteration:
    """Return the posteriors after one iteration of the full model.

    Args:
        parallel: workers, from `parallel_workers`.
        shared: the lexicons of the corpus, and the settings of EM.
        history: before each iteration of the lexicons. They start from that of the whole corpus and
            repeat all steps, so that none has to be stored.
        language: the scores of the language models, which are fixed.
        progress: receives the progress.
    """
    settings = shared[1]
    items = [
        (condition, [iteration.pair_weights(z, condition) for iteration in history])
        for condition in SIDES
        for z in range(settings.k)
    ]
    tasks = parallel(delayed(_score_lexicon)(shared, item) for item in items)
    scores, log_priors = zip(*progress.count("full model", tasks), strict=True)
    first, second = (a + b for a, b in zip(language, _by_side(scores), strict=True))
    both = np.logaddexp(first, second)
    with np.errstate(invalid="ignore"):
        shares = np.where(both > -np.inf, np.exp(first - both), 0.5)
    joint = _log(history[-1].weights) + np.log(0.5) + both
    return e_step(joint, shares, settings.em, sum(log_priors))


def _score_lexicon(
    shared: tuple[Lexicons, Settings], item: tuple[Side, Sequence[Float64]]
) -> tuple[Float64, float]:
    """Learn one lexicon and score all sentence pairs by it; runs in a worker."""
    lexicons, settings = shared
    condition, history = item
    scores, log_prior = np.zeros(len(history[0])), 0.0
    for left_out, scored in _folds(len(scores), settings.folds):
        training = (np.where(left_out, 0.0, weights) for weights in history)
        table = lexicons.learned(condition, training)
        scores += lexicons.log_probabilities(condition, table, scored)
        log_prior += lexicons.log_prior(condition, table) / settings.folds
    return scores, log_prior


def _folds(pairs: int, folds: int) -> Iterator[tuple[Any, Any]]:
    """Yield which sentence pairs are left out of the estimation, and which are scored."""
    if folds == 1:
        yield False, np.ones(pairs, bool)
        return
    number = np.arange(pairs) % folds
    for fold in range(folds):
        yield number == fold, number == fold


def _by_side(columns: Sequence[Float64]) -> list[Float64]:
    """Return (pairs, K) for each side from columns: those of the source, then of the target."""
    half = len(columns) // len(SIDES)
    return [np.stack(columns[:half], axis=1), np.stack(columns[half:], axis=1)]


def _log(probabilities: Float64) -> Float64:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


class _Progress:
    """Counts and reports the finished steps of an induction."""

    def __init__(self, settings: Settings, finished: int, report: Reporter):
        models = len(SIDES) * settings.k
        language = max(0, settings.lm_iterations + 1 - finished)
        full = min(settings.iterations, settings.lm_iterations + 1 + settings.iterations - finished)
        self._total = (finished == 0) + max(language, full > 0) * models
        self._total += (full > 0) * (1 + full * models)
        self._finished, self._report = 0, report

    def begin(self, note: str) -> None:
        """Report the beginning of a single step."""
        self._report(self._finished, self._total, note)
        self._finished += 1

    def count(self, note: str, results: Iterator[Any]) -> Iterator[Any]:
        """Yield results and report each."""
        for result in results:
            self._finished += 1
            self._report(min(self._finished, self._total), self._total, note)
            yield result

"""EM for latent subdomains of a parallel corpus.

H. Cuong, K. Sima'an and I. Titov, "Adapting to all domains at once: rewarding domain invariance in
SMT", TACL 4, 2016. A sentence pair (f, e) of subdomain z has the probability (Eq. 3)

    p(f, e | z) = ½ P(e|z) P(f|e,z) + ½ P(f|z) P(e|f,z)

with n-gram models P(e|z), P(f|z) and IBM Model 1 for P(f|e,z), P(e|f,z) of each subdomain. Training
is hierarchical: one iteration with P(z|e,f) ∝ P(z) P(e|z) P(f|z); then the language models are
estimated once more and stay, and the lexicons and P(z) are trained for three iterations more.

Hard EM is as published: the subdomain that wins a pair has all of it, in both lexicons. Soft EM is
exact: which of the two terms of the sum a pair comes from is as unknown as its subdomain, and each
lexicon counts a pair as much as its own term is probable. Its likelihood does not fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from joblib import delayed

from bpa_ppl.models.subdomains.lexicon import Lexicons
from bpa_ppl.models.subdomains.settings import Found, Settings, found_in
from bpa_ppl.models.subdomains.unigrams import unigram_posteriors
from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.progress import Reporter
from bpa_ppl.text.expected_kneser_ney import WeighedText
from bpa_ppl.workers import Parallel

SIDES: tuple[Side, Side] = ("source", "target")


def em(
    source: NumberedText,
    target: NumberedText,
    settings: Settings,
    parallel: Parallel,
    known: Sequence[Found] = (),
    report: Reporter = lambda done, total, note: None,
) -> Iterator[Found]:
    """Yield what is known of the sentence pairs: at the start, then after each iteration.

    The result is the same to the bit whatever the workers: a task estimates the model of one
    subdomain on one side, and scores all sentence pairs by it.

    Args:
        source: the source sentences.
        target: their translations.
        settings: see there.
        parallel: workers, from `parallel_workers`.
        known: what was yielded before, if the work goes on.
        report: is told of the progress.
    """
    history = list(known)
    last = settings.lm_iterations  # the entry of the history that language models alone end with
    steps = _Steps(settings, len(history), report)
    if not history:
        steps.done("start")
        history.append(_start(source, target, settings))
        yield history[-1]
    if len(history) > last + settings.iterations:
        return
    texts = [
        WeighedText.of(side.sentences, len(side.words), settings.order) for side in (source, target)
    ]
    models = texts, settings
    while len(history) <= last:
        scores = _language(parallel, models, history[-1], steps)
        history.append(found_in(_log(history[-1].weights) + sum(scores), None, settings.em))
        yield history[-1]
    if not settings.iterations:
        return
    scores = _language(parallel, models, history[last], steps)
    del texts, models
    steps.done("pairs of words")
    lexicons = Lexicons(source, target, settings.prior)
    assert set(lexicons.whole) == set(SIDES)  # computed here, once for all threads
    shared = lexicons, settings
    while len(history) <= last + settings.iterations:
        history.append(_full(parallel, shared, history[last:], scores, settings, steps))
        yield history[-1]


def _start(source: NumberedText, target: NumberedText, settings: Settings) -> Found:
    """Return the posteriors that the first language models are estimated with."""
    if settings.start == "random":
        rng = np.random.default_rng(settings.seed)
        drawn = rng.dirichlet(np.ones(settings.k), len(source))
    else:
        drawn = unigram_posteriors(source, target, settings.k, settings.seed)
    return found_in(_log(drawn), None, settings.em)


def _language(
    parallel: Parallel, models: tuple[list[WeighedText], Settings], found: Found, steps: _Steps
) -> list[Float64]:
    """Return for each side (pairs, K) log p under the language models of the subdomains."""
    items = [(n, found.of(z)) for n, _ in enumerate(SIDES) for z in range(len(found.weights))]
    results = parallel(delayed(_sentences)(models, item) for item in items)
    columns = list(steps.counted("language models", results))
    return _by_side(columns)


def _sentences(shared: tuple[list[WeighedText], Settings], item: tuple[int, Float64]) -> Float64:
    """Estimate one language model and score the sentences of its side: the work of a worker."""
    texts, settings = shared
    side, weights = item
    scores = np.zeros(len(weights))
    for left_out, judged in _folds(len(weights), settings.folds):
        own = np.where(left_out, 0.0, weights)
        scores += texts[side].log_probabilities(own, settings.smoothing, judged)
    return scores


def _full(
    parallel: Parallel,
    lexicons: tuple[Lexicons, Settings],
    history: Sequence[Found],
    language: Sequence[Float64],
    settings: Settings,
    steps: _Steps,
) -> Found:
    """Return what is known after one iteration of the full model.

    Args:
        parallel: workers, from `parallel_workers`.
        lexicons: of the corpus.
        history: what was known before each iteration of the lexicons; they begin with that of the
            whole corpus, and need no memory beyond the one at hand, because their steps are
            repeated.
        language: the scores of the language models, which stay.
        settings: of EM.
        steps: are told of the progress.
    """
    items = [
        (given, [found.of(z, given) for found in history])
        for given in SIDES
        for z in range(settings.k)
    ]
    results = parallel(delayed(_pairs)(lexicons, item) for item in items)
    done = list(steps.counted("full model", results))
    lexical = _by_side([scores for scores, _ in done])
    first, second = (own + more for own, more in zip(language, lexical, strict=True))
    both = np.logaddexp(first, second)
    with np.errstate(invalid="ignore"):
        shares = np.where(both > -np.inf, np.exp(first - both), 0.5)
    joint = _log(history[-1].weights) + np.log(0.5) + both
    return found_in(joint, shares, settings.em, sum(prior for _, prior in done))


def _pairs(
    shared: tuple[Lexicons, Settings], item: tuple[Side, Sequence[Float64]]
) -> tuple[Float64, float]:
    """Learn one lexicon and score all sentence pairs by it: the work of a worker."""
    lexicons, settings = shared
    given, history = item
    scores, log_prior = np.zeros(len(history[0])), 0.0
    for left_out, judged in _folds(len(scores), settings.folds):
        table = lexicons.learned(given, (np.where(left_out, 0.0, own) for own in history))
        scores += lexicons.log_probabilities(given, table, judged)
        log_prior += lexicons.log_prior(given, table) / settings.folds
    return scores, log_prior


def _folds(pairs: int, folds: int) -> Iterator[tuple[Any, Any]]:
    """Yield which sentence pairs models are not estimated on, and which they judge."""
    if folds == 1:
        yield False, np.ones(pairs, bool)
        return
    own = np.arange(pairs) % folds
    for fold in range(folds):
        yield own == fold, own == fold


def _by_side(columns: Sequence[Float64]) -> list[Float64]:
    """Return (pairs, K) for each side from columns: those of the source, then of the target."""
    half = len(columns) // len(SIDES)
    return [np.stack(columns[:half], axis=1), np.stack(columns[half:], axis=1)]


def _log(probabilities: Float64) -> Float64:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


class _Steps:
    """Counts what is done of an induction, and tells."""

    def __init__(self, settings: Settings, known: int, report: Reporter):
        models = len(SIDES) * settings.k
        before = max(0, settings.lm_iterations + 1 - known)
        after = min(settings.iterations, settings.lm_iterations + 1 + settings.iterations - known)
        self._total = (
            (known == 0) + max(before, after > 0) * models + (after > 0) * (1 + after * models)
        )
        self._done, self._report = 0, report

    def done(self, note: str) -> None:
        """Tell that something begins which is one step."""
        self._report(self._done, self._total, note)
        self._done += 1

    def counted(self, note: str, results: Iterator[Any]) -> Iterator[Any]:
        """Yield results and tell of each."""
        for result in results:
            self._done += 1
            self._report(min(self._done, self._total), self._total, note)
            yield result

"""From a parallel corpus to its latent subdomains, by EM or by LDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.formats.streams import AnyPath, origin_name
from bpa_ppl.models.subdomains.expectation_maximisation import em
from bpa_ppl.models.subdomains.settings import Found, Settings
from bpa_ppl.models.subdomains.state import State
from bpa_ppl.notes import warn_user
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.workers import check_backend, parallel_workers

#: A text: a file with one sentence a line, or sentences as sequences of words.
Text = AnyPath | Sequence[Sequence[str]] | NumberedText
INDUCTIONS = ("em", "lda")


def induce(
    source: Text,
    target: Text,
    k: int = 12,
    *,
    induction: Literal["em", "lda"] = "em",
    side: Side = "target",
    jobs: int = 1,
    backend: str = "local",
    scheduler: str | None = None,
    state: AnyPath | None = None,
    progress: bool | Reporter = False,
    **settings: Any,
) -> Subdomains:
    """Return the latent subdomains of a parallel corpus (Cuong, Sima'an & Titov 2016).

    Time and memory: an iteration of the full model visits each link (a source and a target token of
    one sentence pair) K times in both directions. Memory is 4 bytes a link; 24 bytes for each pair
    of words that occur together, and 16 more in each job; 80 bytes in each job for an n-gram, while
    language models are estimated; and 80 bytes for each sentence pair and subdomain.

    Args:
        source: one side, a file or sentences; text is used as it is, words between spaces.
        target: its translation, sentence by sentence.
        k: K, how many subdomains.
        induction: `em`, or `lda` for Latent Dirichlet Allocation over the sentences of one side.
        side: with `lda`, of which.
        jobs: threads that work; the result is the same. -1 takes every core.
        backend: `local`, or `dask` for the workers of an existing cluster.
        scheduler: the address of the cluster's scheduler.
        state: a file that keeps what was found after each iteration, from which an induction of the
            same text and settings goes on if it was killed. It stays until you remove it.
        progress: True for a bar, or a callback.
        settings: of `Settings`: em, iterations, order, prior, folds, start, seed, ….

    Raises:
        DataError: if a file cannot be read, the sides do not have equally many sentences, or there
            are fewer pairs with words than subdomains.
        UsageError: if a setting makes no sense.

    >>> found = induce([["la", "loi"], ["un", "chat"]] * 4, [["law"], ["cat"]] * 4, 2)
    >>> winners = found.winners().tolist()
    >>> winners == winners[:2] * 4, winners[0] != winners[1]
    (True, True)
    """
    one_of(induction, INDUCTIONS, "induction")
    one_of(side, ("source", "target"), "side")
    check_backend(backend, scheduler)
    chosen = Settings.configured("induction of subdomains", {"k": k, **settings})
    if induction == "lda" and set(settings) - {"seed"}:
        raise UsageError(f"{', '.join(sorted(set(settings) - {'seed'}))}: settings of EM, not LDA")
    with reporter(progress, "subdomains") as report:
        report(0, 1, "reading")
        texts = _text(source), _text(target)
        _check(texts, (source, target), k)
        if induction == "lda":
            return _topics(texts, chosen, side, report)
        kept = State(state, texts, chosen)
        history = kept.read()[: chosen.lm_iterations + chosen.iterations + 1]
        kind = "threads" if backend == "local" else backend  # threads share the corpus
        with parallel_workers(jobs, kind, scheduler) as parallel:
            for found in em(*texts, chosen, parallel, history, report):
                history.append(found)
                kept.write(history)
    return _subdomains(texts, history, chosen)


def _topics(
    texts: tuple[NumberedText, NumberedText], settings: Settings, side: Side, report: Reporter
) -> Subdomains:
    """Return the subdomains that are topics of one side."""
    from bpa_ppl.models.subdomains.topics import topic_posteriors

    report(0, 1, f"topics of the {side} sentences")
    text = texts[0 if side == "source" else 1]
    posteriors, bound = topic_posteriors(text, settings.k, settings.seed)
    told = {
        "induction": "lda",
        "k": settings.k,
        "side": side,
        "seed": settings.seed,
        "lower_bound": bound,
    }
    return Subdomains(*texts, posteriors.astype(np.float32), posteriors.mean(axis=0), told)


def _subdomains(
    texts: tuple[NumberedText, NumberedText], history: Sequence[Found], settings: Settings
) -> Subdomains:
    """Return what EM has found, with its settings and likelihoods."""
    found = history[-1]
    empty = int(np.count_nonzero(found.weights == 0))
    if empty:
        warn_user(f"{empty} of {settings.k} subdomains have no sentence pair: ask for fewer")
    told = {
        "induction": "em",
        **settings.settings(),
        "log_likelihoods": [entry.log_likelihood for entry in history[1:]],
        "log_priors": [entry.log_prior for entry in history[1:]],
    }
    return Subdomains(*texts, found.posteriors, found.weights, told)


def _text(given: Text) -> NumberedText:
    if isinstance(given, NumberedText):
        return given
    if isinstance(given, AnyPath):
        return NumberedText.read(given)
    if len(given) and isinstance(given[0], str):
        raise UsageError("a sentence is a sequence of its words: split the text first")
    return NumberedText.of(given)


def _check(texts: Sequence[NumberedText], given: Sequence[Text], k: int) -> None:
    """Refuse texts that make no sentence pairs, or too few.

    Raises:
        DataError: see `induce`.
    """
    names = [
        origin_name(one) if isinstance(one, AnyPath) else f"the {side} text"
        for one, side in zip(given, ("source", "target"), strict=True)
    ]
    lengths = [len(text) for text in texts]
    if lengths[0] != lengths[1]:
        raise DataError(
            f"{lengths[0]:,} sentences, and {names[1]} has {lengths[1]:,}: "
            "line n of the one must translate line n of the other",
            names[0],
        )
    for name, text in zip(names, texts, strict=True):
        words = np.count_nonzero(np.diff(text.starts))
        if words < k:
            raise DataError(
                f"{counted(int(words), 'sentence')} with words, too few for {k} subdomains: "
                "give more text, or ask for fewer",
                name,
            )

"""Induction of the latent subdomains of a parallel corpus, by EM or by LDA."""

from __future__ import annotations

import hashlib
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bpa_ppl import __version__
from bpa_ppl.caching import key_of
from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.formats.streams import AnyPath, atomic_path, origin_name
from bpa_ppl.models.subdomains.expectation_maximisation import Iteration, Settings, em
from bpa_ppl.notes import warn_user
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains
from bpa_ppl.phrases.tables import SIDES, Side
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.workers import check_backend, parallel_workers

#: A text: a file with one sentence a line, or sentences as sequences of words.
Text = AnyPath | Sequence[Sequence[str]] | NumberedText
INDUCTIONS = ("em", "lda")
_LDA_BATCH = 4096  # sentences per update
_LDA_PASSES = 5  # over the text


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
    one sentence pair) K times in both directions. Memory is 4 bytes per link; 24 bytes per pair of
    words that occur together, and 16 more in each job; 80 bytes in each job per n-gram, while
    language models are estimated; and 80 bytes per sentence pair and subdomain.

    Args:
        source: one side, a file or sentences; words are separated by spaces, text is not tokenised.
        target: its translation, sentence by sentence.
        k: K, the number of subdomains.
        induction: `em`, or `lda` for Latent Dirichlet Allocation over the sentences of one side.
        side: the side for `lda`.
        jobs: threads, which do not change the result. -1 uses every core.
        backend: `local`, or `dask` for the workers of an existing cluster.
        scheduler: the address of the cluster's scheduler.
        state: a file with the result of each iteration, from which an interrupted induction of the
            same text and settings continues. It is not removed at the end.
        progress: True for a bar, or a callback.
        settings: of `Settings`: em, iterations, order, prior, folds, start, seed, ….

    Raises:
        DataError: if a file cannot be read, the sides do not have equally many sentences, or there
            are fewer pairs with words than subdomains.
        UsageError: if a setting is invalid.

    >>> subdomains = induce([["la", "loi"], ["un", "chat"]] * 4, [["law"], ["cat"]] * 4, 2)
    >>> winners = subdomains.winners().tolist()
    >>> winners == winners[:2] * 4, winners[0] != winners[1]
    (True, True)
    """
    one_of(induction, INDUCTIONS, "induction")
    one_of(side, SIDES, "side")
    check_backend(backend, scheduler)
    chosen = Settings.configured("induction of subdomains", {"k": k, **settings})
    of_em = sorted(set(settings) - {"seed"})
    if induction == "lda" and of_em:
        message = f"{', '.join(of_em)}: settings of EM, not LDA"
        raise UsageError(message, parameter=of_em[0], code="conflict")
    with reporter(progress, "subdomains") as report:
        report(0, 1, "reading")
        texts = _text(source, "source"), _text(target, "target")
        _check(texts, (source, target), k)
        if induction == "lda":
            return _lda_subdomains(texts, chosen, side, report)
        saved = _State(state, texts, chosen)
        history = saved.read()[: chosen.lm_iterations + chosen.iterations + 1]
        kind = "threads" if backend == "local" else backend  # threads share the corpus
        with parallel_workers(jobs, kind, scheduler) as parallel:
            for iteration in em(*texts, chosen, parallel, history, report):
                history.append(iteration)
                saved.write(history)
    last = history[-1]
    if empty := int(np.count_nonzero(last.weights == 0)):
        warn_user(f"{empty} of {chosen.k} subdomains have no sentence pair: ask for fewer")
    record = {
        "induction": "em",
        **chosen.settings(),
        "log_likelihoods": [iteration.log_likelihood for iteration in history[1:]],
        "log_priors": [iteration.log_prior for iteration in history[1:]],
    }
    return Subdomains(*texts, last.posteriors, last.weights, record)


def _lda_subdomains(
    texts: tuple[NumberedText, NumberedText], settings: Settings, side: Side, report: Reporter
) -> Subdomains:
    """Return the subdomains that are topics of one side, by LDA.

    D. Blei, A. Ng and M. Jordan, "Latent Dirichlet allocation", JMLR 3, 2003; online variational
    Bayes of M. Hoffman, D. Blei and F. Bach (2010), from scikit-learn. Each sentence is a document,
    and the mean share of each topic in it is P(z | e, f). A sentence without words has the same
    share of each topic. The variational lower bound of the log-likelihood is recorded.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    report(0, 1, f"topics of the {side} sentences")
    counts = texts[SIDES.index(side)].word_counts()
    k, seed = settings.k, settings.seed
    model = LatentDirichletAllocation(
        k, learning_method="online", batch_size=_LDA_BATCH, max_iter=_LDA_PASSES, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations
        shares = np.asarray(model.fit_transform(counts), np.float64)
        bound = float(model.score(counts))
    posteriors = shares / shares.sum(axis=1, keepdims=True)
    record = {"induction": "lda", "k": k, "side": side, "seed": seed, "lower_bound": bound}
    return Subdomains(*texts, posteriors.astype(np.float32), posteriors.mean(axis=0), record)


def _text(text: Text, side: Side) -> NumberedText:
    if isinstance(text, NumberedText):
        return text
    if isinstance(text, AnyPath):
        return NumberedText.read(text)
    if len(text) and isinstance(text[0], str):
        message = "a sentence is a sequence of its words: split the text first"
        raise UsageError(message, parameter=side, code="wrong-type")
    return NumberedText.of(text)


def _check(texts: Sequence[NumberedText], sources: Sequence[Text], k: int) -> None:
    """Refuse texts that are not parallel, or too short.

    Raises:
        DataError: see `induce`.
    """
    names = [
        origin_name(source) if isinstance(source, AnyPath) else f"the {side} text"
        for source, side in zip(sources, SIDES, strict=True)
    ]
    if len(texts[0]) != len(texts[1]):
        message = f"{len(texts[0]):,} sentences, and {names[1]} has {len(texts[1]):,}: not parallel"
        raise DataError(message, names[0], code="wrong-length")
    for name, text in zip(names, texts, strict=True):
        words = np.count_nonzero(np.diff(text.starts))
        if words < k:
            message = f"{counted(int(words), 'sentence')} with words, too few for {k} subdomains"
            raise DataError(message, name, code="no-data")


class _State:
    """A file with the results of all iterations so far, from which an induction continues.

    It belongs to one corpus and its settings, except the number of iterations. A file of another
    induction, or a damaged one, is ignored with a warning.

    Args:
        path: the file; None saves nothing.
        texts: both sides of the corpus.
        settings: of the induction.
    """

    def __init__(self, path: AnyPath | None, texts: Sequence[NumberedText], settings: Settings):
        self._path = None if path is None else Path(path)
        content = hashlib.sha256()
        for text in texts if self._path else ():
            content.update(text.numbers.tobytes() + text.starts.tobytes())
            content.update("\n".join(text.words).encode())
        options = {n: value for n, value in settings.settings().items() if n != "iterations"}
        self._key = key_of([__version__, content.hexdigest(), sorted(options.items())])

    def read(self) -> list[Iteration]:
        """Return the saved iterations; none if there is no such file for this induction."""
        if self._path is None or not self._path.exists():
            return []
        try:
            with self._path.open("rb") as file, np.load(file) as arrays:
                if str(arrays["key"]) == self._key:
                    return [self._iteration(arrays, n) for n in range(int(arrays["steps"]))]
            reason = "belongs to other text or other settings"
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            reason = "is damaged"
        warn_user(f"{self._path} {reason}: the induction starts again")
        return []

    def write(self, history: Sequence[Iteration]) -> None:
        """Save the iterations; the file is replaced only when it is complete.

        Raises:
            DataError: if the file cannot be written.
        """
        if self._path is None:
            return
        arrays: dict[str, Any] = {"key": self._key, "steps": len(history)}
        for n, iteration in enumerate(history):
            for name, value in iteration._asdict().items():
                arrays[f"{name}{n}"] = np.zeros(0) if value is None else value
        with atomic_path(self._path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)

    @staticmethod
    def _iteration(arrays: Mapping[str, Any], n: int) -> Iteration:
        posteriors, shares, weights, *logs = (arrays[f"{name}{n}"] for name in Iteration._fields)
        return Iteration(posteriors, shares if shares.size else None, weights, *map(float, logs))

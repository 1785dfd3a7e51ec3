"""Induction of the latent subdomains of a parallel corpus, by EM or by LDA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.formats.streams import AnyPath, origin_name
from bpa_ppl.models.subdomains.expectation_maximisation import Settings, em
from bpa_ppl.models.subdomains.topics import LDASettings, lda
from bpa_ppl.notes import warn_user
from bpa_ppl.phrases.subdomains import Subdomains
from bpa_ppl.phrases.tables import SIDES
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.text.words import NumberedText
from bpa_ppl.workers import parallel_workers

#: A text: a file with one sentence a line, or sentences as sequences of words.
Text = AnyPath | Sequence[Sequence[str]] | NumberedText
#: What the documents of LDA are: sentences of one side, or sentence pairs.
DocumentSide = Literal["source", "target", "both"]


def induce(
    source: Text,
    target: Text,
    k: int = 12,
    *,
    induction: Literal["em", "lda"] = "em",
    side: DocumentSide = "target",
    jobs: int = 1,
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
        side: the side for `lda`: `source`, `target`, or `both`, where a sentence and its
            translation are one document.
        jobs: threads of `em`, which do not change the result. -1 uses every core.
        progress: True for a bar, or a callback.
        settings: of `Settings`: em, iterations, order, prior, folds, start, seed, …; with `lda` of
            `LDASettings`: alpha, beta, passes, seed.

    Raises:
        DataError: if a file cannot be read, the sides do not have equally many sentences, or there
            are fewer pairs with words than subdomains.
        UsageError: if a setting is invalid.

    >>> subdomains = induce([["la", "loi"], ["un", "chat"]] * 4, [["law"], ["cat"]] * 4, 2)
    >>> winners = subdomains.winners().tolist()
    >>> winners == winners[:2] * 4, winners[0] != winners[1]
    (True, True)
    """
    one_of(side, get_args(DocumentSide), "side")
    chosen = configured(induction, {"k": k, **settings})
    with reporter(progress, "subdomains") as report:
        report(0, 1, "reading")
        texts = _text(source), _text(target)
        _check(texts, (source, target), k)
        if isinstance(chosen, LDASettings):
            sides = texts if side == "both" else (texts[SIDES.index(side)],)
            report(0, 1, "topics")
            shares = lda(sides, chosen)
            record = {"induction": "lda", "side": side, **chosen.settings()}
            return Subdomains(*texts, shares.astype(np.float32), shares.mean(axis=0), record)
        with parallel_workers(jobs, threads=True) as parallel:  # they share the corpus
            history = em(*texts, chosen, parallel, report)
    last = history[-1]
    if empty := int(np.count_nonzero(last.weights == 0)):
        warn_user(f"{empty} of {chosen.k} subdomains have no sentence pair: ask for fewer")
    record = {
        "induction": "em",
        **chosen.settings(),
        "log_likelihoods": [iteration.log_likelihood for iteration in history[1:]],
    }
    return Subdomains(*texts, last.posteriors, last.weights, record)


def configured(induction: str, settings: Mapping[str, Any]) -> Settings | LDASettings:
    """Return the settings of an induction.

    Args:
        induction: `em` or `lda`.
        settings: by name; k, seed, ….

    Raises:
        UsageError: if one does not exist, or is invalid.

    >>> configured("lda", {"k": 4, "alpha": 0.1}).passes
    20
    """
    kinds: dict[str, type[Settings | LDASettings]] = {"em": Settings, "lda": LDASettings}
    kind = kinds[one_of(induction, kinds, "induction")]
    return kind.configured(f"induction of subdomains by {induction.upper()}", settings)


def _text(text: Text) -> NumberedText:
    if isinstance(text, AnyPath):
        return NumberedText.read(text)
    if isinstance(text, NumberedText):
        return text
    if len(text) and isinstance(text[0], str):
        message = "a sentence is a sequence of its words: split the text first"
        raise UsageError(message, code="wrong-type")
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
    with_words = [int(np.count_nonzero(np.diff(text.starts))) for text in texts]
    if min(with_words) < k:
        message = f"{min(with_words)} sentences with words are too few for {k} subdomains"
        raise DataError(message, names[int(np.argmin(with_words))], code="no-data")

"""Induction of the latent subdomains of a parallel corpus, by EM or by LDA.

Cuong, Sima'an and Titov (2016) compare their induction with topics of Latent Dirichlet Allocation
(Blei, Ng & Jordan 2003), with α = β = 0.01. Each sentence is a document, and its shares of the
topics are the probabilities of its subdomain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

import numpy as np
from msgspec import Meta

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.streams import AnyPath, origin_name, require_parallel
from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.components import Component, Count, Positive
from bpa_ppl.errors import DataError, UsageError, wrong_type
from bpa_ppl.extras.phrases.subdomain_em import EMSettings, fit_em
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.extras.phrases.tables import SIDES
from bpa_ppl.text.words import NumberedText

#: A text: a file with one sentence a line, or sentences as sequences of words.
Text = AnyPath | Sequence[Sequence[str]] | NumberedText
#: What the documents of LDA are: sentences of one side, or sentence pairs.
DocumentSide = Literal["source", "target", "both"]


class LDASettings(Component, frozen=True, kw_only=True):
    """Settings of Latent Dirichlet Allocation, fitted by scikit-learn's variational Bayes.

    Attributes:
        k: K, the number of topics.
        alpha: α of the Dirichlet prior of the topics of a sentence.
        beta: β of the Dirichlet prior of the words of a topic.
        passes: over the text.
        seed: of the start.

    >>> LDASettings(k=4, alpha=0.1).passes
    20
    """

    k: Annotated[int, Meta(ge=2, le=1000)] = 12
    alpha: Positive = 0.01
    beta: Positive = 0.01
    passes: Count = 20
    seed: Annotated[int, Meta(ge=0, lt=2**32)] = 0


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
        settings: of `EMSettings`: em, iterations, order, prior, folds, start, seed, …; with `lda`
            of `LDASettings`: alpha, beta, passes, seed.

    Raises:
        DataError: if a file cannot be read, the sides do not have equally many sentences, or there
            are fewer pairs with words than subdomains.
        UsageError: if a setting is invalid.

    >>> subdomains = induce([["la", "loi"], ["un", "chat"]] * 4, [["law"], ["cat"]] * 4, 2)
    >>> winners = subdomains.winners().tolist()
    >>> winners == winners[:2] * 4, winners[0] != winners[1]
    (True, True)
    """
    if require_one_of(side, get_args(DocumentSide), "side") != "target" and induction != "lda":
        message = f"the induction {induction} uses both sides: leave out the side, or choose lda"
        raise UsageError(message, parameter="side", code="conflict")
    chosen = parse_settings(induction, {"k": k, **settings})
    with reporter(progress, "subdomains") as report:
        report(0, 1, "reading")
        texts = _text(source), _text(target)
        _check(texts, (source, target), k)
        if isinstance(chosen, LDASettings):
            sides = texts if side == "both" else (texts[SIDES.index(side)],)
            report(0, 1, "topics")
            shares = _fit_lda(sides, chosen)
            record = {"induction": "lda", "side": side, **chosen.settings()}
            return Subdomains(*texts, shares.astype(np.float32), shares.mean(axis=0), record)
        with parallel_workers(jobs, require="sharedmem") as parallel:  # of the corpus
            history = fit_em(*texts, chosen, parallel, report)
    last = history[-1]
    if empty := int(np.count_nonzero(last.weights == 0)):
        warn_user(f"{empty} of {chosen.k} subdomains have no sentence pair: ask for fewer")
    record = {
        "induction": "em",
        **chosen.settings(),
        "log_likelihoods": [iteration.log_likelihood for iteration in history[1:]],
    }
    return Subdomains(*texts, last.posteriors, last.weights, record)


def parse_settings(induction: str, settings: Mapping[str, Any]) -> EMSettings | LDASettings:
    """Return the settings of an induction.

    Raises:
        UsageError: if one does not exist, or is invalid.

    >>> parse_settings("lda", {"k": 4, "alpha": 0.1}).passes
    20
    """
    kinds: dict[str, type[EMSettings | LDASettings]] = {"em": EMSettings, "lda": LDASettings}
    kind = kinds[require_one_of(induction, kinds, "induction")]
    return kind.configured(f"induction of subdomains by {induction.upper()}", settings)


def _text(text: Text) -> NumberedText:
    if isinstance(text, AnyPath):
        return NumberedText.read(text)
    if isinstance(text, NumberedText):
        return text
    if len(text) and isinstance(text[0], str):
        remedy = "split the text first"
        raise wrong_type("a sentence is a sequence of its words", text[0], remedy=remedy)
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
    require_parallel(list(map(len, texts)), names)
    with_words = [int(np.count_nonzero(np.diff(text.starts))) for text in texts]
    if min(with_words) < k:
        raise DataError(
            f"{min(with_words)} sentences with words, but {k} subdomains need as many: give more "
            "text",
            names[int(np.argmin(with_words))],
            code="no-data",
        )


def _fit_lda(texts: Sequence[NumberedText], settings: LDASettings) -> Float64:
    """Return (sentences, K) the expected shares of the topics in each sentence.

    A sentence without words has the same share of each topic.

    Args:
        texts: one text; or two, where a sentence and its translation are one document.
        settings: of LDA.

    >>> text = NumberedText.of([["a", "b"], ["c", "d"]] * 20)
    >>> winners = _fit_lda([text], LDASettings(k=2)).argmax(axis=1).tolist()
    >>> winners == winners[:2] * 20, winners[0] != winners[1]
    (True, True)
    """
    from scipy.sparse import hstack
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        settings.k,
        doc_topic_prior=settings.alpha,
        topic_word_prior=settings.beta,
        max_iter=settings.passes,
        random_state=settings.seed,
    )
    counts = hstack([text.word_counts() for text in texts], format="csr")
    counts.sum_duplicates()
    return np.asarray(model.fit_transform(counts))

"""Topics of the sentences of a corpus by Latent Dirichlet Allocation (Blei, Ng & Jordan 2003).

Each sentence is a document, and its shares of the topics are the probabilities of its subdomain.
Cuong, Sima'an and Titov (2016) compare their induction with such topics, with α = β = 0.01.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta

from bpa_ppl.arrays import Float64
from bpa_ppl.component import Component, Count, Positive
from bpa_ppl.text.words import NumberedText


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


def lda(texts: Sequence[NumberedText], settings: LDASettings) -> Float64:
    """Return (sentences, K) the expected shares of the topics in each sentence.

    A sentence without words has the same share of each topic.

    Args:
        texts: one text; or two, where a sentence and its translation are one document.
        settings: of LDA.

    >>> text = NumberedText.of([["a", "b"], ["c", "d"]] * 20)
    >>> winners = lda([text], LDASettings(k=2)).argmax(axis=1).tolist()
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

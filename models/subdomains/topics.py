"""Subdomains as the topics of Latent Dirichlet Allocation, over the sentences of one side.

D. Blei, A. Ng and M. Jordan, "Latent Dirichlet allocation", JMLR 3, 2003; online variational Bayes
of M. Hoffman, D. Blei and F. Bach (2010), as scikit-learn has it. Each sentence is a document, and
its posterior over topics stands for P(z | e, f).
"""

from __future__ import annotations

import warnings

import numpy as np

from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.subdomains import NumberedText

_BATCH = 4096  # sentences of one update
_PASSES = 5  # over the text


def topic_posteriors(text: NumberedText, k: int, seed: int) -> tuple[Float64, float]:
    """Return (sentences, K) the mean share of each topic in each sentence, and a bound.

    A sentence without words has the same share of each topic.

    Args:
        text: the sentences.
        k: how many topics.
        seed: of the start.

    Returns:
        The shares, and the variational lower bound of the log-likelihood of the text.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    counts = text.word_counts()
    model = LatentDirichletAllocation(
        k, learning_method="online", batch_size=_BATCH, max_iter=_PASSES, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of versions to come
        shares = np.asarray(model.fit_transform(counts), np.float64)
        bound = float(model.score(counts))
    return shares / shares.sum(axis=1, keepdims=True), bound

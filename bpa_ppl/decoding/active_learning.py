"""next_sentences: active learning, the sentences whose references would be most informative."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.decoding.reranking import with_defaults
from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.errors import UsageError
from bpa_ppl.models import Preparation
from bpa_ppl.models.probabilities import entropy, normalised
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import as_draws
from bpa_ppl.progress import Reporter, reporter

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior


@dataclass(frozen=True, eq=False)
class SentenceRanking:
    """How informative a reference of each sentence of a pool would be (S sentences).

    Attributes:
        sentence_ids: (S,) as printed in the file.
        information: (S,) the expected information gain about the weights, in nats.
        ids: (S,) the ids of the user: texts, or the integers of `sentence_ids`.
    """

    sentence_ids: Int64
    information: Float64
    ids: list[int | str] = field(default_factory=list)

    @property
    def ranking(self) -> Int64:
        """(S,) positions in the pool, the most informative sentence first.

        >>> SentenceRanking(np.array([4, 7]), np.array([0.1, 0.3])).ranking.tolist()
        [1, 0]
        """
        return np.argsort(-self.information, kind="stable")


def next_sentences(
    pool: NBest | Iterable[NBest],
    posterior: Posterior,
    *,
    draws: int = 500,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
    unchecked: bool = False,
    progress: bool | Reporter = False,
) -> SentenceRanking:
    """Rank sentences by how informative their references would be.

    The expected information gain of a sentence is the mutual information between its oracle e* and
    the weights, H[E_λ p(e|f,λ)] − E_λ H[p(e|f,λ)]: the part of the predictive uncertainty that
    comes from the weights (Lindley 1956; Houlsby et al. 2011). With the published likelihood that
    is how much the posterior is expected to shrink; the margin of a sentence is unknown without
    its references. Sentences are ranked one by one, and similar sentences rank alike: take few at
    a time, and update the posterior in between.

    Measured on three domains, from 10 sentences on and 10 at a time: with the published likelihood
    TER is 0.4 below that of random sentences at 20 and 50, 0.2 at 100, and varies half as much from
    draw to draw. With a margin, where random sentences do as well, it is 0.1 below at 20 and 50 and
    the same at 100: better on one domain, and no better on the two others.

    Args:
        pool: lists, or a stream of them, of which few are in memory at a time.
        posterior: from `adapt` or `update`, with a sampler that draws.
        draws: how many draws of the posterior are used, at most. The information is at most
            log(draws) nats.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.
        unchecked: use the posterior although it fails its check.
        progress: True draws a bar on standard error.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not have the same features.
        UsageError: if there is no list, or the posterior is a single point.

    >>> from bpa_ppl import Draws
    >>> drawn = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> lists = NBest.from_lists([["a", "b"]] * 2, [[[0.0], [0.1]], [[0.0], [9.0]]], ["LM0"])
    >>> next_sentences(lists, Draws({"weights": drawn}, ("LM0",))).ranking.tolist()
    [1, 0]
    """
    if draws < 2:
        raise UsageError(f"the ranking needs at least 2 draws, not {draws}", parameter="draws")
    full = with_defaults(as_draws(posterior), defaults)
    if full.kind == "point":
        raise UsageError(
            "the posterior holds a single point, without uncertainty: adapt again with a sampler "
            "that draws, such as imh or laplace",
            parameter="posterior",
            code="not-supported",
        )
    if not unchecked:
        refuse_unconverged(full)
    flat = full.resampled().flat  # draws of equal importance, thinned at equal distances
    subset = flat[np.linspace(0, len(flat) - 1, min(draws, len(flat))).round().astype(int)]
    prepared = Preparation.recorded(full, moved_files)
    total = len(pool) if isinstance(pool, NBest) else 0
    numbers, ids, gains = list[Int64](), list[int | str](), list[float]()
    with reporter(progress, "next") as report:
        for lists in prepared.stream([pool] if isinstance(pool, NBest) else pool, progress):
            vectors = full.aligned(lists, subset).astype(np.float32)
            for table in lists:
                gains.append(information(table.features, vectors))
                report(len(gains), max(total, len(gains)), "sentences")
            numbers.append(lists.sentence_ids)
            ids += lists.ids
    if not gains:
        raise UsageError("there is no list to choose from", parameter="pool", code="no-data")
    return SentenceRanking(np.concatenate(numbers), np.array(gains), ids)


def information(features: np.ndarray, weights: np.ndarray) -> float:
    """Return the information that the choice from one list has on the weights, in nats.

    Args:
        features: (N, K) of the hypotheses.
        weights: (D, K), draws of equal importance.

    >>> features, weights = np.array([[0.0], [1.0]]), np.array([[-99.0], [99.0]])
    >>> round(information(features, weights), 3)  # log 2
    0.693
    """
    # Relative to the first hypothesis: the smaller numbers keep float32 exact.
    scores = (features - features[:1]) @ weights.T
    log_total, p = normalised(scores, axis=0)
    entropies = log_total[0].astype(np.float64) - np.einsum("nd,nd->d", p, scores, dtype=np.float64)
    total = float(entropy(p.mean(axis=1, dtype=np.float64)))
    return max(total - float(entropies.mean()), 0.0)

"""Sufficient statistics of corpus BLEU and TER: counted once, summed for any choice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.bleu import BLEU, ORDER
from bpa_ppl.quality.candidates import distinct
from bpa_ppl.quality.references import References, check_references
from bpa_ppl.quality.registry import resolve
from bpa_ppl.quality.ter import TER, ter_edits
from bpa_ppl.quality.words import Vocabulary, starts_of

#: The metrics that are a function of counts that are summed over sentences.
COUNTED = (TER.key, BLEU.key)


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a corpus score is a function of, for each hypothesis of some lists.

    Attributes:
        metric: "bleu" or "ter".
        counts: (hypotheses, S) float64. BLEU: matches of order 1 to 4, n-grams of order 1 to 4,
            reference length. TER: edits, reference length. Lengths are in words.
    """

    metric: str
    counts: Float64

    def corpus(self, rows: npt.ArrayLike) -> float:
        """Return the corpus score, in percent, of one hypothesis a sentence.

        Args:
            rows: (sentences,) rows of the table.

        >>> pool = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=[["b"]])
        >>> statistics(pool, "ter").corpus([1])
        0.0
        """
        return float(corpus_values(self.metric, self.counts[np.asarray(rows)].sum(axis=0)))


def statistics(nbest: NBest, metric: str | Metric = "bleu") -> Statistics:
    """Count what BLEU or TER needs to know of every hypothesis, with sacreBLEU's definitions.

    Args:
        nbest: lists with references.
        metric: "bleu" or "ter", or settings of TER; BLEU is that of tokenised text, "none".

    Raises:
        DataError: if a sentence has no reference.
        UsageError: if the corpus score of the metric is no function of such counts.

    >>> pool = NBest.from_lists(
    ...     [["the cat sat", "cat"]], [[[0.0], [1.0]]], ["LM0"], references=[["the cat sat down"]]
    ... )
    >>> statistics(pool, "ter").counts.tolist()
    [[1.0, 4.0], [3.0, 4.0]]
    """
    config = resolve(metric)
    if nbest.references is None:
        raise DataError("the lists have no references: read them with references", nbest.source)
    check_references(nbest.references, nbest.source)
    candidates = distinct(nbest)
    if isinstance(config, TER):
        counts = _ter_counts(candidates.lists, nbest.references, config)
    elif config == BLEU():
        counts = _bleu_counts(candidates.lists, nbest.references)
    else:
        raise UsageError(f"{config} has no statistics to sum: choose {' or '.join(COUNTED)}")
    return Statistics(config.key, counts[candidates.inverse])


def corpus_values(metric: str, sums: Float64) -> Float64:
    """Return corpus scores in percent, as sacreBLEU computes them from sums of counts.

    Args:
        metric: "bleu" or "ter".
        sums: (…, S) counts summed over the sentences of a text.

    >>> corpus_values("ter", np.array([[3.0, 12.0], [6.0, 12.0]])).tolist()
    [25.0, 50.0]
    """
    return _bleu_values(sums) if metric == BLEU.key else _ter_values(sums)


def _ter_values(sums: Float64) -> Float64:
    edits, length = sums[..., 0], sums[..., 1]
    rate = edits / np.where(length == 0, 1, length)
    return 100 * np.where(length == 0, np.sign(edits), rate)


def _bleu_values(sums: Float64) -> Float64:
    """Return BLEU with exponential smoothing: 1/2, 1/4, … in place of orders without a match."""
    matches, totals = sums[..., :ORDER], sums[..., ORDER : 2 * ORDER]
    none = matches == 0
    smooth = 0.5 ** np.cumsum(none, axis=-1)
    safe = np.maximum(totals, 1)
    precision = np.log(np.where(none, smooth, matches) / safe).mean(axis=-1)
    length = np.maximum(totals[..., 0], 1)
    brevity = np.minimum(0, 1 - sums[..., 2 * ORDER] / length)
    undefined = none.all(axis=-1) | (totals == 0).any(axis=-1)
    return 100 * np.where(undefined, 0, np.exp(precision + brevity))


def _ter_counts(lists: list[list[str]], references: References, config: TER) -> Float64:
    refs = list(chain.from_iterable([r] * len(h) for h, r in zip(lists, references, strict=True)))
    return np.column_stack(ter_edits(list(chain.from_iterable(lists)), refs, config))


def _bleu_counts(lists: list[list[str]], references: References) -> Float64:
    from bpa_ppl.quality.ngrams import count_matches

    vocabulary = Vocabulary()
    hyps = vocabulary.number([text.split() for text in chain.from_iterable(lists)])
    refs = vocabulary.number([text.split() for text in chain.from_iterable(references)])
    owner = np.repeat(np.arange(len(lists)), [len(texts) for texts in lists])
    counts: Float64 = count_matches(hyps, refs, owner, starts_of(references))
    return counts

"""Consensus: how well a candidate agrees with the other candidates of its list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.features.source import Features, FeatureSource
from bpa_ppl.gains.pairwise import TIE, NgramPairs, make_pairs, split_characters
from bpa_ppl.lists.candidate_columns import require_answers
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.text.words import split_words

_AGREEMENT = (
    "chrf3",
    "chrf5",
    "words",
    "weighted",
    "lone_words",
    "missed_words",
    "length_gap",
    "length",
)
_COMMON_TENTHS = 7  # a common word is one that 70 % of the candidates have
#: The columns of the distinct texts of a list, given their numbers and how often each occurs.
_OfList = Callable[[Int64, Int64], Float64]


class Consensus(FeatureSource, frozen=True):
    """Agreement with the list: eight features of its texts, or one by a metric.

    Without settings the features are those below, of which none needs a score of the decoder.
    Others are the other candidates of the list, those of equal text included. A list of one has the
    value 0 in each column. Words are separated by spaces; characters of lengths include them.

    | column | value |
    |---|---|
    | `consensus.chrf3` | mean chrF (percent) of n-grams up to 3 with each other as the reference |
    | `consensus.chrf5` | the same with n-grams up to 5 |
    | `consensus.words` | mean F1 (percent) of the bags of words; 0 for two without words |
    | `consensus.weighted` | mean of the chrF of `chrf5`; each other has the weight exp(z) |
    | `consensus.lone_words` | share of the words of the candidate that no other has |
    | `consensus.missed_words` | share of common words that it lacks; at least 70 % have them |
    | `consensus.length_gap` | distance to the median length in characters, relative to the median |
    | `consensus.length` | log of (length + 1) / (median length + 1) |

    Here z is the other's own `consensus.chrf5`, standardised within the list: outliers count less.
    If all are equal, so are the weights. A median length of 0 counts as 1 in the gap.

    With a metric there is one feature, such as `consensus.chrf`: the mean sentence score of the
    candidate, in percent, with each of the others as the reference; higher is better, so that TER,
    WER and CER are negated. It is the expected gain of the rule `mbr` if all other candidates are
    equally probable.

    Attributes:
        metric: `ter`, `bleu`, `chrf`, `wer` or `cer`.
        name: the beginning of the names of the columns.
    """

    metric: Literal["ter", "bleu", "chrf", "wer", "cer"] | None = None
    name: str = "consensus"

    def columns(self, lists: NBest) -> Features:
        """Return the features, computed once for each distinct string of a list.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a b", "a c"]], [[[0.0]] * 2], ["LM0"])
        >>> columns = Consensus().columns(lists)
        >>> columns["consensus.words"].tolist(), columns["consensus.lone_words"].tolist()
        ([50.0, 50.0], [0.5, 0.5])
        >>> Consensus(metric="ter").columns(lists)
        {'consensus.ter': array([-50., -50.])}
        """
        require_answers(lists, self.name)
        if self.metric is not None:
            names: Sequence[str] = [self.metric]
            values = _compute_by_list(lists, 1, _prepare_mean_scores(lists, self.metric))
        else:
            names = _AGREEMENT
            values = _compute_by_list(lists, len(names), _prepare_agreement(lists))
        return {f"{self.name}.{name}": values[:, i] for i, name in enumerate(names)}


def _compute_by_list(lists: NBest, width: int, columns: _OfList) -> Float64:
    """Return (candidates, width) columns; the function computes those of a list of several."""
    values = np.zeros((len(lists.string_index), width))
    for s in range(len(lists)):
        rows = lists.rows(s)
        strings, inverse, count = np.unique(
            lists.string_index[rows], return_inverse=True, return_counts=True
        )
        if len(inverse) > 1:
            values[rows] = columns(strings.astype(np.int64), count)[inverse]
    return values


def _prepare_mean_scores(lists: NBest, metric: str) -> _OfList:
    """Return the function that computes the mean score against the others."""

    def columns(strings: Int64, count: Int64) -> Float64:
        index = np.arange(len(strings))
        table = make_pairs([lists.strings[i] for i in strings], metric).scores(index, index)
        return _average_others(table, count, np.ones(len(count)))[:, None]

    return columns


def _prepare_agreement(lists: NBest) -> _OfList:
    """Return the function that computes the columns `_AGREEMENT`."""
    characters = split_characters(lists.strings)
    words = list(map(split_words, lists.strings))
    lengths = np.fromiter(map(len, lists.strings), np.int64, len(lists.strings))

    def columns(strings: Int64, count: Int64) -> Float64:
        chrf = NgramPairs([characters[i] for i in strings], 5).f_scores([3, 5])
        bags = NgramPairs([words[i] for i in strings], 1)
        equal = np.ones(len(strings))
        means = [
            _average_others(table, count, equal) for table in (*chrf, *bags.f_scores([1], beta=1))
        ]
        weighted = _average_others(chrf[1], count, _weigh_texts(means[1], count))
        median = np.median(np.repeat(lengths[strings], count))
        gap = np.abs(lengths[strings] - median) / (median or 1)
        relative = np.log((lengths[strings] + 1) / (median + 1))
        return np.column_stack(
            [*means, weighted, *_measure_lone_and_missed(bags, count), gap, relative]
        )

    return columns


def _average_others(table: Float64, count: Int64, weight: Float64) -> Float64:
    """Return (U,) the weighted mean score of each text against the other members of its list.

    The table is (U, U), with each text as the reference, for (U,) counts and weights of members.
    """
    others = np.tile(weight * count, (len(count), 1))
    np.fill_diagonal(others, weight * (count - 1))
    mean: Float64 = (table * others).sum(axis=1) / others.sum(axis=1)
    return mean


def _weigh_texts(scores: Float64, count: Int64) -> Float64:
    """Return exp of the scores standardised within the list, 1 if all are equal."""
    deviation = scores - np.average(scores, weights=count)
    spread = np.sqrt(np.average(deviation**2, weights=count))
    return np.exp(deviation / spread) if spread > TIE else np.ones(len(scores))


def _measure_lone_and_missed(words: NgramPairs, count: Int64) -> tuple[Float64, Float64]:
    """Return the shares of lone words and of missed words of each distinct text of a list."""
    kinds, counts, begins, _, size = words.bags
    text = np.repeat(np.arange(len(count)), np.diff(begins))
    holders = np.bincount(kinds, count[text], len(size))  # how many members have each word

    def summed(values: Float64) -> Float64:
        return np.bincount(text, values * size[kinds], len(count)).astype(np.float64)

    common = 10 * holders >= _COMMON_TENTHS * count.sum()
    lone = summed(counts * (holders[kinds] == 1)) / np.maximum(words.lengths, 1)
    total = max(int(size[common].sum()), 1)
    missed = int(size[common].sum()) - summed(common[kinds])
    return lone, missed / total

"""Lists: the n-best lists on which a model conditions, in the layout that computes fastest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float32, Float64, Int64, NBest
from bpa_ppl.weights import Match

#: Score of a padded row: low enough never to count, finite because validation rejects −inf.
PADDING = -1e30
_MAX_BUCKETS = 4
_BLOCK_ROWS = 4096
_ODD = 0x9E3779B97F4A7C15


class Bucket(NamedTuple):
    """Lists of similar length, padded to one, in B blocks (S sentences, N rows, Q features).

    Row 0 is the oracle e*, or the first hypothesis where no oracle is given. Only differences
    within a list matter, so that features are stored relative to those of row 0. Another row
    stands for all derivations with its features (and its gain), so that it carries the logarithm
    of their number. A block is worked on at a time, and is so small that a processor's cache holds
    it with its scores. In a block features come first, because scores are then one product of a
    few weight vectors with one wide matrix.

    Attributes:
        features: (B, Q, S, N) float32, h(f,e) − h(f,e*), of the free features.
        base: (B, S, N) float32, what is added to every score: the fixed features' part of it and
            the logarithm of the multiplicity; `PADDING` in the rows beyond the list.
        hypothesis: (B, S, N) int32, the position in its list of the (first) hypothesis that a row
            stands for, or −1.
        gain: (B, S, N) float32, what a hypothesis is worth under a metric, higher is better; None
            where no likelihood asked for it.
        count: (B, S, N) int32, how many derivations a row stands for, 0 beyond the list; None
            where there are no gains.
        share: (B, S, N) float32, how much of the observation falls on a row: 1 / k for each of the
            k best hypotheses of a list that ties leave undecided; None where every list has one.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a", "b"]], [[[1.0], [3.0], [0.0]]], ["LM0"])
    >>> matched = match({"LM0": 0.5}, nbest)
    >>> (bucket,) = tabulate(nbest, matched, [1], gains=[-1.0, 0.0, -1.0]).buckets
    >>> bucket.features.tolist(), bucket.gain.tolist()
    ([[[[0.0, -2.0, -3.0]]]], [[[0.0, -1.0, -1.0]]])
    >>> bucket.without_gains().gain is None
    True
    """

    features: Any
    base: Any
    hypothesis: Any
    gain: Any = None
    count: Any = None
    share: Any = None

    def without_gains(self) -> Bucket:
        """Return the bucket without gains, as the published likelihood takes it."""
        return self._replace(gain=None, count=None)


class Lists(NamedTuple):
    """What a model observes; a pytree of arrays.

    Sentences stand in the order of the buckets; the shapes are rounded up, so that data of
    similar size share one compilation, by sentences of one hypothesis, which weigh nothing.

    Attributes:
        buckets: the lists.
        oracle: (S,) int32, the row of the observed choice in its list: 0.
        sentence: (S,) int32, the position of each sentence in the n-best table, or −1.
        domain: (S,) int32, the number of the domain of each sentence, from 0 on.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 0.5}, nbest))
    >>> lists.features, lists.oracle.tolist(), lists.sentence.tolist()
    (1, [0], [0])
    """

    buckets: tuple[Bucket, ...]
    oracle: Any
    sentence: Any
    domain: Any

    @property
    def features(self) -> int:
        """The number Q of free features."""
        return int(self.buckets[0].features.shape[1])


def tabulate(
    nbest: NBest,
    match: Match,
    oracle: npt.ArrayLike | None = None,
    *,
    gains: npt.ArrayLike | None = None,
    share: npt.ArrayLike | None = None,
    domain: npt.ArrayLike | None = None,
    multiple: int = 1,
) -> Lists:
    """Lay n-best lists out for a model.

    Without any sentence the table holds one list of one hypothesis, which has probability one
    whatever the weights, so that the posterior is the prior.

    Args:
        nbest: the lists of the adaptation sentences.
        match: the canonical weights, laid beside the features of `nbest`.
        oracle: (sentences,) position of e* in each list; None takes the first of each.
        gains: (hypotheses,) what each is worth, for likelihoods that look at it.
        share: (hypotheses,) how much of the observation falls on each, see `Oracles.share`; None
            is all of it on the oracle.
        domain: (sentences,) number of the domain of each; None is one domain, 0.
        multiple: the number of sentences in a block is a multiple of this.

    Raises:
        DataError: if an oracle is no hypothesis, gains or domains do not fit, or the table does
            not fit into memory.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 0.5}, nbest), [1])
    >>> lists.buckets[0].features.tolist(), lists.buckets[0].hypothesis.tolist()
    ([[[[0.0, -2.0]]]], [[[1, 0]]])
    """
    groups = _grouped(nbest.sizes)
    shapes = [_shape(len(members), width, multiple) for width, members in groups]
    _check_memory(shapes, int(match.free.sum()))
    table = _Table(
        nbest,
        match,
        _checked(np.zeros(len(nbest)) if oracle is None else oracle, nbest),
        None if gains is None else _one_each(gains, len(nbest.features), "gains", nbest),
        None if share is None else _one_each(share, len(nbest.features), "shares", nbest),
    )
    domains = _one_each(
        np.zeros(len(nbest)) if domain is None else domain, len(nbest), "domains", nbest
    )
    buckets, places = [], []
    for shape, (_, members) in zip(shapes, groups, strict=True):
        buckets.append(_bucket(table, members, shape))
        unused = shape[0] * shape[1] - len(members)
        places.append(np.pad(members, (0, unused), constant_values=-1))
    sentence = np.concatenate(places).astype(np.int32)
    padded = np.append(domains, 0).astype(np.int32)  # −1, no sentence, is of domain 0
    return Lists(tuple(buckets), np.zeros_like(sentence), sentence, padded[sentence])


def in_order(lists: Lists) -> Int64:
    """Return where each sentence of the n-best table stands in the lists, (sentences,).

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"], ["c"]], [[[1.0], [3.0]], [[0.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 0.5}, nbest))
    >>> lists.sentence.tolist(), in_order(lists).tolist()  # shorter lists stand first
    ([1, 0], [1, 0])
    """
    sentence = np.asarray(lists.sentence)
    return np.argsort(sentence, kind="stable")[int((sentence < 0).sum()) :]


class _Table(NamedTuple):
    nbest: NBest
    match: Match
    oracle: Int64
    gains: Float64 | None
    share: Float64 | None


def _one_each(given: npt.ArrayLike, count: int, what: str, nbest: NBest) -> Float64:
    values = np.asarray(given, np.float64)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise DataError(
            f"{what} must be {count} finite numbers, not an array of shape {values.shape}",
            nbest.origin,
        )
    return values


def _checked(oracle: npt.ArrayLike, nbest: NBest) -> Int64:
    chosen = np.asarray(oracle, dtype=np.int64).reshape(-1)
    if chosen.shape != nbest.sizes.shape:
        raise DataError(f"{len(chosen)} oracles for {len(nbest)} sentences", nbest.origin)
    outside = (chosen < 0) | (chosen >= nbest.sizes)
    if outside.any():
        at = int(np.argmax(outside))
        raise DataError(
            f"the oracle of sentence {nbest.sentence_ids[at]} is said to be hypothesis "
            f"{chosen[at]} of a list of {nbest.sizes[at]}",
            nbest.origin,
        )
    return chosen


def _bucket(table: _Table, members: Int64, shape: tuple[int, int, int]) -> Bucket:
    blocks, sentences, width = shape
    features = np.zeros((blocks, int(table.match.free.sum()), sentences, width), np.float32)
    base = np.full(shape, PADDING, np.float32)
    base[:, :, 0] = 0.0
    hypothesis = np.full(shape, -1, np.int32)
    multiplicity = np.zeros(shape, np.int32)
    gain = None if table.gains is None else np.zeros(shape, np.float32)
    share = None if table.share is None else np.zeros(shape, np.float32)
    for place, sentence in enumerate(members):
        block, at = divmod(place, sentences)
        own = table.nbest.features[table.nbest.rows(sentence)]
        oracle = table.oracle[sentence]
        gains = None if table.gains is None else table.gains[table.nbest.rows(sentence)]
        shares = None if table.share is None else table.share[table.nbest.rows(sentence)]
        rows, count, first = _relative(own, oracle, table.match, gains, shares)
        used = slice(1, len(rows) + 1)
        features[block, :, at, used] = rows[:, : features.shape[1]].T
        base[block, at, used] = rows[:, features.shape[1]] + np.log(count)
        hypothesis[block, at, 0] = oracle
        hypothesis[block, at, used] = first
        multiplicity[block, at, 0], multiplicity[block, at, used] = 1, count
        if gain is not None and gains is not None:
            gain[block, at, 0] = gains[oracle]
            gain[block, at, used] = gains[first]
        if share is not None and shares is not None:
            share[block, at, 0] = shares[oracle]
            share[block, at, used] = shares[first]
    counts = None if gain is None else multiplicity
    return Bucket(features, base, hypothesis, gain, counts, share)


def _relative(
    features: Float32,
    oracle: int,
    match: Match,
    gains: Float64 | None,
    shares: Float64 | None,
) -> tuple[Float32, Int64, Int64]:
    """Return the distinct rows h − h* of a list but its oracle, how often each occurs, and where.

    The last column but that of the gains, where there are any, is the fixed features' part of
    the score. Where ties are shared, equal derivations stay apart: the logarithm of their number
    is no part of the score of one of them.
    """
    position = np.delete(np.arange(len(features)), oracle)
    relative = features[position].astype(np.float64) - features[oracle]
    fixed = relative[:, ~match.free] @ match.values[~match.free]
    columns = [relative[:, match.free], fixed, *([] if gains is None else [gains[position]])]
    rows = np.column_stack(columns).astype(np.float32)
    # In an order that depends on the rows alone, the order of a list changes no sum.
    hashes = _hashes(rows)
    order = np.argsort(hashes, kind="stable")
    all_differ = not (np.diff(hashes[order]) == 0).any()
    # Equal derivations are rare, and to find them by sorting rows takes far longer than this.
    if all_differ or (shares is not None and shares[oracle] < 1):
        return rows[order], np.ones(len(rows), np.int64), position[order]
    distinct, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return distinct, count, position[first]


def _hashes(rows: Float32) -> npt.NDArray[np.uint64]:
    """Return a number for each row, which is equal for rows that are equal to the bit.

    >>> first, second, third = _hashes(np.float32([[1, 2], [1, 2], [2, 1]])).tolist()
    >>> first == second, second == third
    (True, False)
    """
    words = np.ascontiguousarray(rows).view(np.uint32)
    # Sums of 64-bit words times powers of an odd number, which wrap around; column by column, for
    # all words at once would be twice the table.
    hashes = np.zeros(len(rows), np.uint64)
    for column, power in zip(
        words.T, np.cumprod(np.full(len(words.T), _ODD, np.uint64)), strict=True
    ):
        hashes += column * power
    return hashes


def _shape(sentences: int, width: int, multiple: int) -> tuple[int, int, int]:
    """Return (blocks, sentences a block, rows a list) with room for so many lists."""
    wanted = _rounded_up(sentences)
    each = min(max(_BLOCK_ROWS // width, 1), wanted)
    each = -(-each // multiple) * multiple
    return -(-wanted // each), each, width


def _grouped(sizes: Int64) -> list[tuple[int, Int64]]:
    """Return (width, sentences) of at most four buckets that waste little padding."""
    if not len(sizes):
        return [(1, np.zeros(0, np.int64))]
    rounded = np.array([_rounded_up(int(size)) for size in sizes])
    widths, counts = (part.tolist() for part in np.unique(rounded, return_counts=True))
    while len(widths) > _MAX_BUCKETS:
        waste = [n * (wider - w) for n, w, wider in zip(counts, widths, widths[1:], strict=False)]
        at = int(np.argmin(waste))
        widths.pop(at)
        moved = counts.pop(at)
        counts[at] += moved
    bucket = np.searchsorted(widths, rounded)
    return [(width, np.flatnonzero(bucket == i)) for i, width in enumerate(widths)]


def _rounded_up(number: int) -> int:
    """Return a number at most an eighth larger, of few that occur."""
    grain = 1 << max(0, max(number, 1).bit_length() - 4)
    return max(-(-number // grain) * grain, 1)


def _check_memory(shapes: list[tuple[int, int, int]], features: int) -> None:
    # The table, with base and hypothesis, and its copy on JAX's device while it is moved.
    needed = sum(b * s * n for b, s, n in shapes) * 4 * 2 * (features + 2)
    free = psutil.virtual_memory().available
    if needed > free:
        raise DataError(
            f"the table of the adaptation sentences needs {needed / 2**30:.1f} GiB and "
            f"{free / 2**30:.1f} GiB are free: use fewer sentences or shorter lists (truncate)"
        )

"""Lists: the n-best lists that a model conditions on, in a layout for fast computation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil

from bpa_ppl.arrays import Float32, Float64, Int64
from bpa_ppl.columns import to_floats
from bpa_ppl.errors import DataError, UsageError, require
from bpa_ppl.nbest import NBest
from bpa_ppl.weights import Match

#: Score of a padding row: too low to matter, and finite because validation rejects −inf.
PADDING = -1e30
_MAX_BUCKETS = 4
_BLOCK_ROWS = 4096
_ODD = 0x9E3779B97F4A7C15


class Bucket(NamedTuple):
    """Lists of similar length, padded to one, in B blocks (S sentences, N rows, Q features).

    Row 0 is the oracle e*, or the first hypothesis if there is no oracle. Only differences within a
    list matter, so features are stored relative to those of row 0. Another row represents all
    derivations with its features (and its gain), and includes the logarithm of their number. Blocks
    are processed one at a time, and are so small that a processor's cache holds one with its
    scores. The axes of sentences come first, so that the scores of a sentence and their gradient
    are products of matrices without a transposition.

    Attributes:
        features: (B, S, Q, N) float32, h(f,e) − h(f,e*), of the free features.
        base: (B, S, N) float32, added to every score: the contribution of the fixed features and
            the logarithm of the multiplicity; `PADDING` in the rows beyond the list.
        hypothesis: (B, S, N) int32, the position in its list of the (first) hypothesis that a row
            represents, or −1.
        gain: (B, S, N) float32, the gain of a hypothesis under a metric, higher is better; None if
            the likelihood needs no gains.
        count: (B, S, N) int32, the number of derivations that a row represents, 0 beyond the list;
            None without gains.
        share: (B, S, N) float32, the share of the observation of a row: 1 / k for each of the k
            tied best hypotheses of a list; None if every list has one best.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a", "b"]], [[[1.0], [3.0], [0.0]]], ["LM0"])
    >>> matched = match({"LM0": 0.5}, nbest)
    >>> (bucket,) = tabulate(nbest, matched, [1], gains=[-1.0, 0.0, -1.0]).buckets
    >>> bucket.features.tolist(), bucket.gain.tolist()
    ([[[[0.0, -2.0, -3.0]]]], [[[0.0, -1.0, -1.0]]])
    """

    features: Any
    base: Any
    hypothesis: Any
    gain: Any = None
    count: Any = None
    share: Any = None


class Lists(NamedTuple):
    """The data that a model observes; a pytree of arrays.

    Sentences are in the order of the buckets. Shapes are rounded up with padding sentences of one
    hypothesis, which have no effect, so that data of similar size share one compilation.

    Attributes:
        buckets: the lists.
        oracle: (S,) int32, the row of the observed choice in its list: 0.
        sentence: (S,) int32, the position of each sentence in the n-best table, or −1.
        domain: (S,) int32, the number of the domain of each sentence, from 0.
        weight: (S,) float32, the exponent of the probability of each observation; None if all are
            1.
        rater: (R, S) float32, 1 where one of R raters made an observation, else 0, so that the
            product with R values is the value of each observation; None if raters are not given.

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
    weight: Any = None
    rater: Any = None

    @property
    def features(self) -> int:
        """The number Q of free features."""
        return int(self.buckets[0].features.shape[2])


def tabulate(
    nbest: NBest,
    match: Match,
    oracle: npt.ArrayLike | None = None,
    *,
    gains: npt.ArrayLike | None = None,
    share: npt.ArrayLike | None = None,
    domain: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
    rater: npt.ArrayLike | None = None,
    multiple: int = 1,
) -> Lists:
    """Convert n-best lists into the tables of a model.

    Without any sentence the table holds one list of one hypothesis, which has probability one for
    all weights, so that the posterior is the prior.

    Args:
        nbest: the lists of the adaptation sentences.
        match: the canonical weights, matched to the features of `nbest`.
        oracle: (sentences,) position of e* in each list; None takes the first of each.
        gains: (hypotheses,) the gain of each, for likelihoods that need it.
        share: (hypotheses,) the share of the observation of each, see `Oracles.share`; None gives
            all of it to the oracle.
        domain: (sentences,) number of the domain of each; None is one domain, 0.
        weight: (sentences,) the exponent of the probability of each observation; None is 1.
        rater: (sentences,) number of the rater of each, for likelihoods that need it; every number
            from 0 to the largest stands for a rater.
        multiple: the number of sentences in a block is a multiple of this.

    Raises:
        DataError: if an oracle is out of range, another array does not fit the lists, or the table
            does not fit into memory.
        UsageError: if an argument has another type.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 0.5}, nbest), [1])
    >>> lists.buckets[0].features.tolist(), lists.buckets[0].hypothesis.tolist()
    ([[[[0.0, -2.0]]]], [[[1, 0]]])
    """
    require(nbest, NBest, "the table is made from n-best lists (NBest)", "nbest")
    require(match, Match, "weights are matched to the lists by bpa_ppl.weights.match", "match")
    if multiple < 1:
        raise UsageError(f"multiple must be at least 1, not {multiple}", parameter="multiple")
    groups = _grouped(nbest.sizes)
    shapes = [_shape(len(members), width, multiple) for width, members in groups]
    _check_memory(shapes, int(match.free.sum()))
    count, zeros = len(nbest.features), np.zeros(len(nbest))
    given = {"gain": gains, "share": share}
    columns = {n: _checked(c, count, n, nbest) for n, c in given.items() if c is not None}
    domains = _numbers(zeros if domain is None else domain, "domain", nbest)
    raters = None if rater is None else _numbers(rater, "rater", nbest)
    weights = None if weight is None else _exponents(weight, nbest)
    index = _checked(zeros if oracle is None else oracle, len(nbest), "oracle", nbest)
    best = index.astype(int)
    if len(outside := np.flatnonzero((best < 0) | (best >= nbest.sizes) | (best != index))):
        s = outside[0]
        raise DataError(
            f"oracle index {index[s]:g} is out of range for sentence {nbest.sentence_ids[s]} "
            f"({nbest.sizes[s]} hypotheses)",
            nbest.origin,
            parameter="oracle",
            code="mismatch",
        )
    buckets, members_of_buckets = [], []
    for shape, (_, members) in zip(shapes, groups, strict=True):
        buckets.append(_bucket(nbest, match, best, columns, members, shape))
        unused = shape[0] * shape[1] - len(members)
        members_of_buckets.append(np.pad(members, (0, unused), constant_values=-1))
    sentence = np.concatenate(members_of_buckets).astype(np.int32)
    # Padding sentences, −1, are of domain and rater 0 and have weight 1.
    return Lists(
        tuple(buckets),
        np.zeros_like(sentence),
        sentence,
        np.append(domains, 0).astype(np.int32)[sentence],
        None if weights is None else np.append(weights, np.float32(1))[sentence],
        None if raters is None else one_hot(np.append(raters, 0)[sentence]),
    )


def one_hot(number: npt.NDArray[np.integer], count: int | None = None) -> Float32:
    """Return the raters of some observations, (S,), in the form of `Lists.rater`, (R, S).

    Args:
        number: of the rater of each.
        count: R; None is the largest number plus one.

    >>> one_hot(np.array([1, 0, 1])).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    raters = np.arange(int(number.max(initial=0)) + 1 if count is None else count)
    return np.asarray(raters[:, None] == number, np.float32)


def in_order(lists: Lists) -> Int64:
    """Return the position of each sentence of the n-best table in the lists, (sentences,).

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"], ["c"]], [[[1.0], [3.0]], [[0.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 0.5}, nbest))
    >>> lists.sentence.tolist(), in_order(lists).tolist()  # shorter lists come first
    ([1, 0], [1, 0])
    """
    sentence = np.asarray(lists.sentence)
    return np.argsort(sentence, kind="stable")[int((sentence < 0).sum()) :]


def _checked(column: npt.ArrayLike, count: int, name: str, nbest: NBest) -> Float64:
    values = to_floats(column, name)
    if values.shape != (count,) or not np.isfinite(values).all():
        problem = f"{name} must be {count} finite numbers, not an array of shape {values.shape}"
        raise DataError(problem, nbest.origin, parameter=name, code="wrong-length")
    return values


def _numbers(column: npt.ArrayLike, name: str, nbest: NBest) -> npt.NDArray[np.int32]:
    """Return the number of the domain or the rater of each sentence."""
    values = _checked(column, len(nbest), name, nbest)
    if (values < 0).any():
        problem = f"{name}s are numbered from 0: there is {values.min():g}"
        raise DataError(problem, nbest.origin, parameter=name, code="mismatch")
    return values.astype(np.int32)


def _exponents(column: npt.ArrayLike, nbest: NBest) -> Float32 | None:
    """Return the weight of each sentence; None if all are 1."""
    values = _checked(column, len(nbest), "weight", nbest)
    if (values <= 0).any():
        problem = f"weights of observations are above 0: there is {values.min():g}"
        raise DataError(problem, nbest.origin, parameter="weight", code="mismatch")
    return None if (values == 1).all() else values.astype(np.float32)


def _bucket(
    nbest: NBest,
    match: Match,
    oracle: Int64,
    columns: dict[str, Float64],
    members: Int64,
    shape: tuple[int, int, int],
) -> Bucket:
    blocks, sentences, width = shape
    features = np.zeros((blocks, sentences, int(match.free.sum()), width), np.float32)
    base = np.full(shape, PADDING, np.float32)
    base[:, :, 0] = 0.0
    hypothesis = np.full(shape, -1, np.int32)
    count = np.zeros(shape, np.int32)
    optional = {name: np.zeros(shape, np.float32) for name in columns}
    for number, sentence in enumerate(members):
        index, best, of_list = divmod(number, sentences), oracle[sentence], nbest.rows(sentence)
        own = {name: column[of_list] for name, column in columns.items()}
        rows, counts, first = _relative(nbest.features[of_list], best, match, own)
        used = slice(1, len(rows) + 1)
        features[*index, :, used] = rows[:, : features.shape[2]].T
        base[*index, used] = rows[:, features.shape[2]] + np.log(counts)
        hypothesis[*index, 0], hypothesis[*index, used] = best, first
        count[*index, 0], count[*index, used] = 1, counts
        for name, table in optional.items():
            table[*index, 0], table[*index, used] = own[name][best], own[name][first]
    counted = count if "gain" in optional else None
    return Bucket(features, base, hypothesis, count=counted, **optional)


def _relative(
    features: Float32, oracle: int, match: Match, columns: dict[str, Float64]
) -> tuple[Float32, Int64, Int64]:
    """Return the distinct rows h − h* of a list without its oracle, their counts and positions.

    The columns after the features are the score of the fixed features and, if there are any, the
    gains. With shared ties equal derivations stay separate: the logarithm of their number is not
    part of the score of one of them.
    """
    position = np.delete(np.arange(len(features)), oracle)
    relative = features[position].astype(np.float64) - features[oracle]
    fixed = relative[:, ~match.free] @ match.values[~match.free]
    gain = [columns["gain"][position]] if "gain" in columns else []
    rows = np.column_stack([relative[:, match.free], fixed, *gain]).astype(np.float32)
    # Rows are sorted by their content, so that sums do not depend on the order of the list.
    hashes = _hashes(rows)
    order = np.argsort(hashes, kind="stable")
    all_differ = not (np.diff(hashes[order]) == 0).any()
    # Equal derivations are rare, and sorting whole rows to find them takes far longer.
    if all_differ or ("share" in columns and columns["share"][oracle] < 1):
        return rows[order], np.ones(len(rows), np.int64), position[order]
    distinct, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return distinct, count, position[first]


def _hashes(rows: Float32) -> npt.NDArray[np.uint64]:
    """Return a hash of each row; rows that are equal to the bit have equal hashes.

    >>> first, second, third = _hashes(np.float32([[1, 2], [1, 2], [2, 1]])).tolist()
    >>> first == second, second == third
    (True, False)
    """
    words = np.ascontiguousarray(rows).view(np.uint32)
    # Sums of the words times powers of an odd number, modulo 2^64; column by column, because all
    # products at once would need twice the memory of the table.
    hashes = np.zeros(len(rows), np.uint64)
    powers = np.cumprod(np.full(len(words.T), _ODD, np.uint64))
    for column, power in zip(words.T, powers, strict=True):
        hashes += column * power
    return hashes


def _shape(sentences: int, width: int, multiple: int) -> tuple[int, int, int]:
    """Return (blocks, sentences per block, rows per list) that hold so many lists."""
    rounded = _rounded_up(sentences)
    per_block = min(max(_BLOCK_ROWS // width, 1), rounded)
    per_block = -(-per_block // multiple) * multiple
    return -(-rounded // per_block), per_block, width


def _grouped(sizes: Int64) -> list[tuple[int, Int64]]:
    """Return (width, sentences) of at most four buckets with little padding."""
    if not len(sizes):
        return [(1, np.zeros(0, np.int64))]
    rounded = np.array([_rounded_up(int(size)) for size in sizes])
    widths, counts = (part.tolist() for part in np.unique(rounded, return_counts=True))
    while len(widths) > _MAX_BUCKETS:
        waste = [n * (wider - w) for n, w, wider in zip(counts, widths, widths[1:], strict=False)]
        narrowest = int(np.argmin(waste))
        widths.pop(narrowest)
        moved = counts.pop(narrowest)
        counts[narrowest] += moved
    bucket = np.searchsorted(widths, rounded)
    return [(width, np.flatnonzero(bucket == i)) for i, width in enumerate(widths)]


def _rounded_up(number: int) -> int:
    """Round up to one of few numbers, by at most an eighth.

    >>> [_rounded_up(number) for number in (0, 7, 17, 33, 100)]
    [1, 7, 18, 36, 104]
    """
    grain = 1 << max(0, max(number, 1).bit_length() - 4)
    return max(-(-number // grain) * grain, 1)


def _check_memory(shapes: list[tuple[int, int, int]], features: int) -> None:
    # The table, with base and hypothesis, and its copy on JAX's device while it is moved.
    needed = sum(b * s * n for b, s, n in shapes) * 4 * 2 * (features + 2)
    free = psutil.virtual_memory().available
    if needed > free:
        raise DataError(
            f"the table of the adaptation sentences needs {needed / 2**30:.1f} GiB of memory, and "
            f"{free / 2**30:.1f} GiB are free: use fewer sentences or shorter lists (truncate)",
            code="too-large",
        )

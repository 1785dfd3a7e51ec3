"""Adaptation: the arrays on which a model conditions, in the layout that computes fastest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float32, Float64, Int64, NBest
from bpa_ppl.weights import Match

#: Score of a padded row: low enough never to count, finite because validation rejects −inf.
PADDING = -1e30
_MAX_BUCKETS = 4
_BLOCK_ROWS = 4096


class Bucket(NamedTuple):
    """Lists of similar length, padded to one, in B blocks (S sentences, N rows, Q features).

    Row 0 is the oracle e*. Another row stands for all derivations with its features, so that it
    carries the logarithm of their number. A block is worked on at a time, and is so small that a
    processor's cache holds it with its scores. In a block features come first, because scores are
    then one product of a few weight vectors with one wide matrix.

    Attributes:
        differences: (B, Q, S, N) float32, h(f,e) − h(f,e*), of the free features.
        base: (B, S, N) float32, what is added to every score: the held features' part of it and
            the logarithm of the multiplicity; `PADDING` in the rows beyond the list.
    """

    differences: Any
    base: Any


class Adaptation(NamedTuple):
    """What a model conditions on; a pytree of arrays.

    Only differences to the oracle matter: log p(e*|f,λ) = −log Σ_e exp((h(f,e) − h(f,e*))·λ).
    Sentences stand in the order of the buckets; the shapes are rounded up, so that data of
    similar size share one compilation, by sentences of one hypothesis, which weigh nothing.

    Attributes:
        buckets: the lists.
        oracle: (S,) int32, the row of the observed choice in its list: 0.
        sentence: (S,) int32, the position of each sentence in the n-best table, or −1.
        prior_mean: (Q,) float64, the canonical weights λ_T.
        prior_variance: (Q,) float64, the diagonal of σ_T I.
    """

    buckets: tuple[Bucket, ...]
    oracle: Any
    sentence: Any
    prior_mean: Any
    prior_variance: Any


def tabulate(
    nbest: NBest,
    match: Match,
    oracle: npt.ArrayLike,
    prior_variance: npt.ArrayLike = 0.1,
    *,
    multiple: int = 1,
) -> Adaptation:
    """Lay n-best lists out for a model.

    Without any sentence the table holds one list of one hypothesis, which has probability one
    whatever the weights, so that the posterior is the prior.

    Args:
        nbest: the lists of the adaptation sentences.
        match: the canonical weights, laid beside the features of `nbest`.
        oracle: (sentences,) position of e* in each list.
        prior_variance: σ_T, a variance: one number or one a free feature.
        multiple: the number of sentences in a block is a multiple of this.

    Raises:
        DataError: if an oracle is no hypothesis, or the table does not fit into memory.
        UsageError: if a variance is not positive and finite, or there are too few or many.
    """
    features = int(match.free.sum())
    variance = _variance(prior_variance, features)
    groups = _grouped(nbest.sizes)
    shapes = [_shape(len(members), width, multiple) for width, members in groups]
    _check_memory(shapes, features)
    chosen = _checked(oracle, nbest)
    buckets, places = [], []
    for shape, (_, members) in zip(shapes, groups, strict=True):
        buckets.append(_bucket(nbest, match, chosen, members, shape))
        unused = shape[0] * shape[1] - len(members)
        places.append(np.pad(members, (0, unused), constant_values=-1))
    sentence = np.concatenate(places).astype(np.int32)
    return Adaptation(
        tuple(buckets), np.zeros_like(sentence), sentence, match.values[match.free], variance
    )


def _variance(given: npt.ArrayLike, features: int) -> Float64:
    variance = np.asarray(given, np.float64)
    if variance.shape not in ((), (features,)):
        raise UsageError(
            f"the prior variance must be one number or {features}, one for each free feature, "
            f"not an array of shape {variance.shape}"
        )
    if not (np.isfinite(variance).all() and (variance > 0).all()):
        raise UsageError(f"the prior variance must be positive and finite, not {variance.min()}")
    return np.array(np.broadcast_to(variance, (features,)))


def _checked(oracle: npt.ArrayLike, nbest: NBest) -> Int64:
    chosen = np.asarray(oracle, dtype=np.int64).reshape(-1)
    if chosen.shape != nbest.sizes.shape:
        raise DataError(f"{len(chosen)} oracles for {len(nbest)} sentences", nbest.source)
    outside = (chosen < 0) | (chosen >= nbest.sizes)
    if outside.any():
        at = int(np.argmax(outside))
        raise DataError(
            f"the oracle of sentence {nbest.sentence_ids[at]} is said to be hypothesis "
            f"{chosen[at]} of a list of {nbest.sizes[at]}",
            nbest.source,
        )
    return chosen


def in_order(data: Adaptation) -> Int64:
    """Return where each sentence of the n-best table stands in the data, (sentences,)."""
    sentence = np.asarray(data.sentence)
    return np.argsort(sentence, kind="stable")[int((sentence < 0).sum()) :]


def _bucket(
    nbest: NBest, match: Match, oracle: Int64, members: Int64, shape: tuple[int, int, int]
) -> Bucket:
    blocks, sentences, width = shape
    differences = np.zeros((blocks, int(match.free.sum()), sentences, width), np.float32)
    base = np.full(shape, PADDING, np.float32)
    base[:, :, 0] = 0.0
    for place, sentence in enumerate(members):
        rows, count = _relative(nbest.features[nbest.rows(sentence)], oracle[sentence], match)
        block, at = divmod(place, sentences)
        differences[block, :, at, 1 : len(rows) + 1] = rows[:, :-1].T
        base[block, at, 1 : len(rows) + 1] = rows[:, -1] + np.log(count)
    return Bucket(differences, base)


def _shape(sentences: int, width: int, multiple: int) -> tuple[int, int, int]:
    """Return (blocks, sentences a block, rows a list) with room for so many lists."""
    wanted = _rounded_up(sentences)
    each = min(max(_BLOCK_ROWS // width, 1), wanted)
    each = -(-each // multiple) * multiple
    return -(-wanted // each), each, width


def _relative(features: Float32, oracle: int, match: Match) -> tuple[Float32, Int64]:
    """Return the distinct rows h − h* of a list but its oracle, and how often each occurs.

    The last column is the held features' share of the score.
    """
    relative = np.delete(features, oracle, axis=0).astype(np.float64) - features[oracle]
    held = relative[:, ~match.free] @ match.values[~match.free]
    rows = np.column_stack([relative[:, match.free], held]).astype(np.float32)
    # Equal derivations are rare, and sorting to find them takes ten times as long as to see that.
    if len({row.tobytes() for row in rows}) == len(rows):
        return rows, np.ones(len(rows), np.int64)
    distinct, count = np.unique(rows, axis=0, return_counts=True)
    return distinct, count


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
    # The table, and its copy on JAX's device while it is moved.
    needed = sum(b * s * n for b, s, n in shapes) * 4 * 2 * (features + 1)
    free = psutil.virtual_memory().available
    if needed > free:
        raise DataError(
            f"the table of the adaptation sentences needs {needed / 2**30:.1f} GiB and "
            f"{free / 2**30:.1f} GiB are free: use fewer sentences or shorter lists (truncate)"
        )

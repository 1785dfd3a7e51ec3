"""Lists that grow by a sentence at a time: stored one by one, and stacked in few shapes.

`tabulate` makes tables as small as possible, so that a few more sentences have another shape and
need another compilation. Here a single sentence has its own shape, and several fill whole blocks,
whose number is a power of two: a hundred sentences of 500 hypotheses, added one by one, have six
shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.models import Lists, tabulate
from bpa_ppl.models.lists import PADDING, Bucket, one_hot
from bpa_ppl.nbest import NBest
from bpa_ppl.weights import Match

#: Rows of a block: a processor's cache holds one block.
_BLOCK_ROWS = 4096
_STORED = "added_{}"
#: The constants of a posterior with one value per observation; the last two only if they matter.
SCORE, WEIGHT, RATER_NUMBER = "oracle_score", "observation_weight", "observation_rater"
OF_OBSERVATIONS = (SCORE, WEIGHT, RATER_NUMBER)
#: The stored columns of a bucket, with type and value of padding; the last three are optional.
_COLUMNS: dict[str, tuple[type, float]] = {
    "features": (np.float32, 0.0),
    "base": (np.float32, PADDING),
    "gain": (np.float32, 0.0),
    "count": (np.int32, 0),
    "share": (np.float32, 0.0),
}


@dataclass(frozen=True, eq=False)
class ObservedSentences:
    """The observations of some sentences (S).

    Attributes:
        buckets: the tabulated list of each, or empty if the lists are not stored.
        index: (S,) the observed hypothesis.
        score: (S,) the sentence score of the oracle, nan if it is not recorded.
        ids: (S,) of the sentences, as in the file.
        weight: (S,) the exponent of the probability of each.
        rater: (S,) the number of the rater of each.
    """

    buckets: Sequence[Bucket]
    index: Int64
    score: Float64
    ids: npt.NDArray[Any]
    weight: Float64
    rater: Int64

    @classmethod
    def empty(cls) -> Self:
        """Return no sentences."""
        none = np.zeros(0, np.int64)
        return cls((), none, np.zeros(0), none, np.ones(0), none)

    def __len__(self) -> int:
        return len(self.index)

    def __add__(self, other: ObservedSentences) -> ObservedSentences:
        return ObservedSentences(
            (*self.buckets, *other.buckets),
            np.concatenate([self.index, other.index]),
            np.concatenate([self.score, other.score]),
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.rater, other.rater]),
        )

    def __getitem__(self, part: slice) -> ObservedSentences:
        """Return some of the sentences, without their lists."""
        columns: tuple[Any, ...] = (self.index, self.score, self.ids, self.weight, self.rater)
        return ObservedSentences((), *(column[part] for column in columns))

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """Return scores, weights and raters as a posterior stores them."""
        constants = {SCORE: self.score} if np.isfinite(self.score).all() else {}
        return constants | weight_constants(self.weight, self.rater)


def weight_constants(weight: Float64, rater: Int64) -> dict[str, npt.NDArray[Any]]:
    """Return the weights and raters of observations as a posterior stores them.

    >>> sorted(weight_constants(np.ones(2), np.array([0, 1])))
    ['observation_rater']
    """
    constants: dict[str, npt.NDArray[Any]] = {WEIGHT: weight} if (weight != 1).any() else {}
    return {**constants, RATER_NUMBER: rater} if rater.any() else constants


def sentence_buckets(
    nbest: NBest,
    match: Match,
    oracle: npt.ArrayLike,
    gains: npt.ArrayLike | None = None,
    share: npt.ArrayLike | None = None,
) -> list[Bucket]:
    """Return a bucket without padding for each sentence, with shapes (1, 1, …, N).

    Arguments and errors are those of `tabulate`.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> sentence_buckets(nbest, match({"LM0": 0.5}, nbest), [1])[0].features.tolist()
    [[[[0.0, -2.0]]]]
    """
    index = np.asarray(oracle, np.int64)
    buckets = []
    for s in range(len(nbest)):
        gain, part = (None if c is None else np.asarray(c)[nbest.rows(s)] for c in (gains, share))
        lists = tabulate(nbest[s], match, index[s : s + 1], gains=gain, share=part)
        bucket = lists.buckets[0]
        used = bucket.hypothesis[0, 0] >= 0
        buckets.append(Bucket(*(None if c is None else c[..., used] for c in bucket)))
    return buckets


def stack_buckets(
    buckets: Sequence[Bucket],
    features: int,
    *,
    weight: Float64 | None = None,
    rater: Int64 | None = None,
    raters: int = 1,
) -> Lists:
    """Combine the buckets of single sentences for a model, in order, padded to one of few shapes.

    Args:
        buckets: at least one, all with gains or all without.
        features: Q.
        weight: (sentences,) the exponent of the probability of each; None is 1.
        rater: (sentences,) the number of the rater of each; None is 0.
        raters: how many there are.

    >>> one = Bucket(np.zeros((1, 1, 2, 3), np.float32), np.zeros((1, 1, 3), np.float32), None)
    >>> [stack_buckets([one] * n, 2).buckets[0].features.shape for n in (1, 2, 1024)]
    [(1, 1, 2, 4), (1, 1024, 2, 4), (1, 1024, 2, 4)]
    """
    width = _power_of_two(max(bucket.base.shape[-1] for bucket in buckets))
    per_block = 1 if len(buckets) == 1 else max(_BLOCK_ROWS // width, 1)
    blocks = _power_of_two(-(-len(buckets) // per_block))
    columns = {}
    for name, (dtype, fill) in _COLUMNS.items():
        if all(getattr(bucket, name) is None for bucket in buckets):
            continue
        leading = (features,) if name == "features" else ()
        column = np.full((blocks * per_block, *leading, width), fill, dtype)
        for row, bucket in zip(column, buckets, strict=False):
            row[..., : bucket.base.shape[-1]] = _column(bucket, name)[0, 0]
        columns[name] = column.reshape(blocks, per_block, *column.shape[1:])
    used = columns["base"] > PADDING
    columns["base"][:, :, 0] = 0.0
    hypothesis = np.where(used, np.arange(width), -1).astype(np.int32)
    sentence = np.arange(blocks * per_block, dtype=np.int32)
    sentence[len(buckets) :] = -1
    zeros, unused = np.zeros_like(sentence), len(sentence) - len(buckets)
    exponents = None
    if weight is not None and (weight != 1).any():
        exponents = np.append(weight, np.ones(unused)).astype(np.float32)
    return Lists(
        (Bucket(hypothesis=hypothesis, **columns),),
        zeros,
        sentence,
        zeros,
        exponents,
        one_hot(zeros if rater is None else np.pad(rater, (0, unused)), raters),
    )


def _column(bucket: Bucket, name: str) -> Any:
    """Return a column of a bucket; without shares row 0 has the whole observation."""
    values = getattr(bucket, name)
    return np.eye(1, bucket.base.shape[-1], dtype=np.float32)[None] if values is None else values


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def bucket_arrays(buckets: Sequence[Bucket]) -> dict[str, npt.NDArray[Any]]:
    """Return buckets as arrays by name, for a posterior to store; `buckets_from` reads them."""
    if not buckets:
        return {}
    arrays = {
        name: np.concatenate([_column(bucket, name) for bucket in buckets], axis=-1)
        for name in _COLUMNS
        if any(getattr(bucket, name) is not None for bucket in buckets)
    }
    stored = {name: values.squeeze((0, 1)) for name, values in arrays.items()}
    stored["size"] = np.array([bucket.base.shape[-1] for bucket in buckets])
    return {_STORED.format(name): values for name, values in stored.items()}


def buckets_from(constants: Mapping[str, Any]) -> list[Bucket]:
    """Return the buckets that a posterior stores.

    Raises:
        DataError: if their arrays do not fit together.

    >>> one = Bucket(np.zeros((1, 1, 2, 3), np.float32), np.zeros((1, 1, 3), np.float32), None)
    >>> [bucket.features.shape for bucket in buckets_from(bucket_arrays([one, one]))]
    [(1, 1, 2, 3), (1, 1, 2, 3)]
    """
    sizes = np.asarray(constants.get(_STORED.format("size"), ()), np.int64)
    columns = {name: constants.get(_STORED.format(name)) for name in _COLUMNS}
    lengths = {np.shape(values)[-1] for values in columns.values() if values is not None}
    if len(sizes) and (lengths != {int(sizes.sum())} or sizes.min() < 1):
        problem = "the sentences stored in the posterior are inconsistent: adapt again"
        raise DataError(problem, parameter="posterior", code="damaged")
    ends = np.cumsum(sizes).tolist()

    def part(values: Any, end: int, size: int) -> Any:
        return None if values is None else np.asarray(values)[None, None, ..., end - size : end]

    return [
        Bucket(hypothesis=None, **{n: part(values, end, size) for n, values in columns.items()})
        for end, size in zip(ends, sizes.tolist(), strict=True)
    ]

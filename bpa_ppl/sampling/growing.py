"""Lists that grow by a sentence at a time: kept one by one, laid out in shapes that hardly change.

`tabulate` lays a table out as tightly as it can, so that a few sentences more are another shape and
another compilation. Here a sentence alone has a shape, and several are whole blocks, of which there
are a power of two: a hundred sentences of 500 hypotheses, added singly, meet six.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError
from bpa_ppl.models import Bucket, Lists, tabulate
from bpa_ppl.models.lists import PADDING
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.weights import Match

#: Rows of a block: what is worked on at a time fits into a processor's cache.
_BLOCK_ROWS = 4096
_STORED = "added_{}"
#: The columns that a list may lack, and their types.
_OPTIONAL = {"gain": np.float32, "count": np.int32, "share": np.float32}


class OneList(NamedTuple):
    """What a model sees of one sentence: a `Bucket` of one list, without padding (N rows).

    Attributes:
        features: (Q, N) float32, h(f,e) − h(f,e*); row 0 is the oracle.
        base: (N,) float32, what is added to every score.
        gain: (N,) float32, what a hypothesis is worth, or None.
        count: (N,) int32, how many derivations a row stands for, or None.
        share: (N,) float32, how much of the observation falls on a row, or None.
    """

    features: Any
    base: Any
    gain: Any = None
    count: Any = None
    share: Any = None


def one_by_one(
    nbest: NBest,
    match: Match,
    oracle: npt.ArrayLike,
    gains: npt.ArrayLike | None = None,
    share: npt.ArrayLike | None = None,
) -> list[OneList]:
    """Return what a model sees of each sentence; arguments and errors are those of `tabulate`.

    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> one_by_one(nbest, match({"LM0": 0.5}, nbest), [1])[0].features.tolist()
    [[0.0, -2.0]]
    """
    positions: Int64 = np.asarray(oracle, np.int64)
    worth, shares = (None if c is None else np.asarray(c, np.float64) for c in (gains, share))
    found = []
    for s in range(len(nbest)):
        rows = nbest.rows(s)
        own = (None if column is None else column[rows] for column in (worth, shares))
        found.append(_one(nbest[s], match, positions[s : s + 1], *own))
    return found


def _one(
    nbest: NBest, match: Match, oracle: Int64, gains: Float64 | None, share: Float64 | None
) -> OneList:
    bucket = tabulate(nbest, match, oracle, gains=gains, share=share).buckets[0]
    used = bucket.hypothesis[0, 0] >= 0
    optional = {name: getattr(bucket, name) for name in _OPTIONAL}
    return OneList(
        bucket.features[0, :, 0, used].T,
        bucket.base[0, 0, used],
        **{name: None if of is None else of[0, 0, used] for name, of in optional.items()},
    )


def stacked(lists: Sequence[OneList], features: int) -> Lists:
    """Lay lists out for a model, in their order, padded to one of few shapes.

    Args:
        lists: at least one, all with gains or all without.
        features: Q.

    >>> one = OneList(np.zeros((2, 3), np.float32), np.zeros(3, np.float32))
    >>> [stacked([one] * n, 2).buckets[0].features.shape for n in (1, 2, 1024)]
    [(1, 2, 1, 4), (1, 2, 1024, 4), (1, 2, 1024, 4)]
    """
    width = _power_of_two(max(len(one.base) for one in lists))
    each = 1 if len(lists) == 1 else max(_BLOCK_ROWS // width, 1)
    shape = (_power_of_two(-(-len(lists) // each)), each, width)
    table = np.zeros((shape[0], features, *shape[1:]), np.float32)
    base = np.full(shape, PADDING, np.float32)
    base[:, :, 0] = 0.0
    hypothesis = np.full(shape, -1, np.int32)
    optional = {
        name: np.zeros(shape, kind)
        for name, kind in _OPTIONAL.items()
        if any(getattr(one, name) is not None for one in lists)
    }
    for place, one in enumerate(lists):
        block, at = divmod(place, each)
        used = slice(len(one.base))
        table[block, :, at, used] = one.features
        base[block, at, used] = one.base
        hypothesis[block, at, used] = np.arange(len(one.base))
        for name, values in optional.items():
            values[block, at, used] = _column(one, name)
    sentence = np.full(shape[0] * each, -1, np.int32)
    sentence[: len(lists)] = np.arange(len(lists))
    zeros = np.zeros_like(sentence)
    return Lists((Bucket(table, base, hypothesis, **optional),), zeros, sentence, zeros)


def _column(one: OneList, name: str) -> Any:
    """Return a column of a list; without shares all of the observation falls on row 0."""
    values = getattr(one, name)
    return np.eye(1, len(one.base), dtype=np.float32)[0] if values is None else values


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def stored(lists: Sequence[OneList]) -> dict[str, npt.NDArray[Any]]:
    """Return lists as arrays by name, for a posterior to carry; `restored` reads them."""
    if not lists:
        return {}
    joined = {
        name: np.concatenate([_column(one, name) for one in lists], axis=-1)
        for name in OneList._fields
        if any(getattr(one, name) is not None for one in lists)
    }
    joined["size"] = np.array([len(one.base) for one in lists])
    return {_STORED.format(name): values for name, values in joined.items()}


def restored(constants: Mapping[str, Any]) -> list[OneList]:
    """Return the lists that a posterior carries.

    Raises:
        DataError: if their arrays do not fit one another.

    >>> one = OneList(np.zeros((2, 3), np.float32), np.zeros(3, np.float32))
    >>> [len(same.base) for same in restored(stored([one, one]))]
    [3, 3]
    """
    sizes = np.asarray(constants.get(_STORED.format("size"), ()), np.int64)
    found = {name: constants.get(_STORED.format(name)) for name in OneList._fields}
    lengths = {np.shape(values)[-1] for values in found.values() if values is not None}
    if len(sizes) and (lengths != {int(sizes.sum())} or sizes.min() < 1):
        raise DataError("the sentences that the posterior carries do not fit: adapt again")
    ends = np.cumsum(sizes).tolist()
    parts = [slice(end - size, end) for end, size in zip(ends, sizes.tolist(), strict=True)]
    return [
        OneList(**{n: None if v is None else v[..., part] for n, v in found.items()})
        for part in parts
    ]


def is_stored(name: str) -> bool:
    """Say whether a name is one that `stored` gives."""
    return name in {_STORED.format(field) for field in (*OneList._fields, "size")}

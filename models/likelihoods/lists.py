"""Lists: the n-best lists that a model conditions on, in a layout for fast computation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64, to_floats
from bpa_ppl.errors import DataError, bad_value
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import Match

#: Score of a padding row: too low to matter, and finite because validation rejects −inf.
PADDING = -1e30
#: The columns of a bucket, with their types, None for that of the scores, and the values beyond a
#: list.
_COLUMNS: dict[str, tuple[type | None, float]] = {
    "features": (None, 0.0),
    "base": (None, PADDING),
    "candidate": (np.int32, -1),
    "gain": (np.float64, 0.0),
    "tie": (None, 0.0),
    "count": (np.int32, 0),
    "share": (None, 0.0),
}
#: The differences of a feature that suit 32 bits: also the squares of the features and weights do.
_SMALL, _LARGE = 1e-15, 1e15
_MAX_BUCKETS = 4
#: Rows of a block: a processor's cache holds one block.
_BLOCK_ROWS = 4096
#: Rows of padding that cost as much time as the compilation of the programs for another bucket.
ROWS_OF_BUCKET = 2 * _BLOCK_ROWS
_ODD = 0x9E3779B97F4A7C15


class Lists(NamedTuple):
    """The data that a model observes; a pytree of arrays.

    A bucket is a dictionary of arrays. It has lists of similar length, padded to one, in B blocks
    (S sentences, N rows, Q features). Row 0 is the oracle e*, or the first candidate if there is
    no oracle. Only differences within a list matter, so features are stored relative to those of
    row 0. Another row represents all derivations with its features (and its gain), and includes the
    logarithm of their number. Blocks are processed one at a time, and are so small that a
    processor's cache holds one with its scores. The axes of sentences come first, so that the
    scores of a sentence and their gradient are products of matrices without a transposition.
    Numbers for scores are float32, which is twice as fast; if the differences of a feature are all
    below 1e-15 or some above 1e15, they are float64. The arrays are

    * `features`, (B, S, Q, N): h(f,e) − h(f,e*), of the free features;
    * `base`, (B, S, N): added to every score; the contribution of the fixed features and
      the logarithm of the multiplicity; `PADDING` in the rows beyond the list;
    * `candidate`, (B, S, N) int32: the position in its list of the (first) candidate that a row
      represents, or −1;
    * `gain`, (B, S, N) float64, if the likelihood needs it: the gain of a candidate under a
      metric, higher is better;
    * `tie`, (B, S, N), of comparisons: 1 for a row that stands for "no difference", else 0;
    * `count`, (B, S, N) int32, with gains or ties: the number of derivations that a row represents,
      0 beyond the list;
    * `share`, (B, S, N), unless every list has one best candidate: the share of the
      observation of a row, 1 / k for each of the k tied best candidates of a list.

    Sentences are in the order of the buckets. Shapes are rounded up with padding sentences of one
    candidate, which have no effect, so that data of similar size share one compilation.

    Attributes:
        buckets: the lists, by their length.
        oracle: (S,) int32, the row of the observed choice in its list: 0.
        sentence: (S,) int32, the position of each sentence in the n-best table, or −1.
        domain: (S,) int32, the number of the domain of each sentence, from 0.
        domains: (K,) int32, the number of sentences of each domain.
        weight: (S,) float32, the exponent of the probability of each observation; None if all are
            1.
        rater: (R, S) float32, 1 where one of R raters made an observation, else 0, so that the
            product with R values is the value of each observation; None if raters are not given.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 0.5}, lists), gains=[0.0, -1.0])
    >>> lists.features, lists.oracle.tolist(), lists.sentence.tolist()
    (1, [0], [0])
    >>> lists.buckets[0]["gain"].tolist()
    [[[0.0, -1.0]]]
    """

    buckets: tuple[dict[str, Any], ...]
    oracle: Any
    sentence: Any
    domain: Any
    domains: Any
    weight: Any = None
    rater: Any = None

    @property
    def features(self) -> int:
        """The number Q of free features."""
        return int(self.buckets[0]["features"].shape[2])


def tabulate(
    lists: NBest,
    match: Match,
    oracle: npt.ArrayLike | None = None,
    *,
    gains: npt.ArrayLike | None = None,
    tie: npt.ArrayLike | None = None,
    share: npt.ArrayLike | None = None,
    domain: npt.ArrayLike | None = None,
    weight: npt.ArrayLike | None = None,
    rater: npt.ArrayLike | None = None,
) -> Lists:
    """Convert n-best lists into the tables of a model.

    Without any sentence the table holds one list of one candidate, which has probability one for
    all weights, so that the posterior is the prior.

    Args:
        lists: the lists of the adaptation sentences.
        match: the canonical weights, matched to the features of `lists`.
        oracle: (sentences,) position of e* in each list; None takes the first of each.
        gains: (candidates,) the gain of each, for likelihoods that need it.
        tie: (candidates,) 1 for rows that stand for the answer "no difference", else 0.
        share: (candidates,) the share of the observation of each, see `Oracles.share`; None gives
            all of it to the oracle.
        domain: (sentences,) number of the domain of each; None is one domain, 0.
        weight: (sentences,) the exponent of the probability of each observation; None is 1.
        rater: (sentences,) number of the rater of each, for likelihoods that need it; every number
            from 0 to the largest stands for a rater.

    Raises:
        DataError: if an oracle is out of range, or another array does not fit the lists.
        UsageError: if an argument has another type.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a b", "a"]], [[[1.0], [3.0]]], ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 0.5}, lists), [1])
    >>> lists.buckets[0]["features"].tolist(), lists.buckets[0]["candidate"].tolist()
    ([[[[0.0, -2.0]]]], [[[1, 0]]])
    """
    require(lists, NBest, "the table is made from n-best lists (NBest)", "lists")
    require(match, Match, "weights are matched to the lists by bpa_ppl.weights.match", "match")
    groups = _group(lists.sizes)
    shapes = [_choose_shape(len(members), width) for width, members in groups]
    domains = _to_sentence_column(
        np.zeros(len(lists)) if domain is None else domain, "domain", lists
    )
    raters = None if rater is None else _to_sentence_column(rater, "rater", lists)
    weights = None if weight is None else _to_sentence_column(weight, "weight", lists)
    optional = {"gain": gains, "tie": tie, "share": share}
    columns = {
        n: _check(c, len(lists.features), n, lists) for n, c in optional.items() if c is not None
    }
    best = _find_oracles(oracle, lists)
    absent = optional.keys() - columns.keys()
    if gains is None and tie is None:
        absent.add("count")
    names = [name for name in _COLUMNS if name not in absent]
    kind = _choose_type(lists, match)
    buckets, members_of_buckets = [], []
    for shape, (_, members) in zip(shapes, groups, strict=True):
        rows = (_rows_of_list(lists, match, s, best[s], columns, kind) for s in members)
        buckets.append(_pad(rows, names, int(match.free.sum()), shape, kind))
        unused = shape[0] * shape[1] - len(members)
        members_of_buckets.append(np.pad(members, (0, unused), constant_values=-1))
    sentence = np.concatenate(members_of_buckets).astype(np.int32)
    # Padding sentences, −1, are of domain and rater 0 and have weight 1.
    if weights is not None and (weights == 1).all():
        weights = None
    numbers = None if raters is None else np.append(raters, 0).astype(np.int64)[sentence]
    return Lists(
        tuple(buckets),
        np.zeros_like(sentence),
        sentence,
        np.append(domains, 0).astype(np.int32)[sentence],
        np.bincount(domains.astype(np.int32), minlength=1).astype(np.int32),
        None if weights is None else np.append(weights, 1).astype(np.float32)[sentence],
        None if numbers is None else np.float32(np.arange(numbers.max() + 1)[:, None] == numbers),
    )


def _rows_of_list(
    lists: NBest,
    match: Match,
    sentence: int,
    oracle: int,
    columns: dict[str, Float64],
    kind: type,
) -> dict[str, Any]:
    """Return the rows of one list: (Q, N) features, (N,) others.

    Args:
        lists: as for `tabulate`.
        match: as for `tabulate`.
        sentence: the position of the list.
        oracle: the position of e* in it.
        columns: of the candidates of all lists: `gain`, `tie` and `share`, if given.
        kind: of scores.
    """
    of_list = slice(*lists.offsets[sentence : sentence + 2])
    size = int(match.free.sum())
    parts = {name: column[of_list] for name, column in columns.items()}
    others, count, position = _subtract_oracle(lists.features[of_list], oracle, match, parts, kind)
    position = np.append(oracle, position)
    count = np.append(1, count)
    base = np.append(0.0, others[:, size] + np.log(count[1:]))
    return {
        "features": np.concatenate([np.zeros((1, size), kind), others[:, :size]]).T,
        "base": base,
        "candidate": position,
        "count": count,
        **{name: column[position] for name, column in parts.items()},
    }


def _find_oracles(oracle: npt.ArrayLike | None, lists: NBest) -> Int64:
    """Return the position of e* in each list, by default the first."""
    if oracle is None:
        return np.zeros(len(lists), np.int64)
    index = _check(oracle, len(lists), "oracle", lists)
    best = index.astype(np.int64)
    if len(outside := np.flatnonzero((best < 0) | (best >= lists.sizes) | (best != index))):
        s = outside[0]
        raise DataError(
            f"oracle index {index[s]:g} is out of range for sentence {lists.sentence_ids[s]} "
            f"({lists.sizes[s]} candidates)",
            lists.origin,
            parameter="oracle",
            code="mismatch",
        )
    return best


def _choose_type(lists: NBest, match: Match) -> type:
    """Return the type of scores: float32, unless the features of some weights are too odd for it.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]], [[[1e12, 0.0], [1e12 + 1, 1e-46]]], ["LM0", "p"])
    >>> start = {"LM0": 0.5}, {"LM0": 0.5, "p": 0.5}
    >>> tables = lists.without("p"), lists
    >>> [_choose_type(t, match(w, t)).__name__ for w, t in zip(start, tables, strict=True)]
    ['float32', 'float64']
    """
    if not len(lists):
        return np.float32
    highest, lowest = (
        function.reduceat(lists.features, lists.offsets[:-1])
        for function in (np.maximum, np.minimum)
    )
    largest = (highest - lowest).max(axis=0)
    of_fixed = largest[~match.free] @ np.abs(match.values[~match.free])
    sizes = largest[match.free]
    suits = of_fixed <= _LARGE and np.all((sizes == 0) | ((sizes >= _SMALL) & (sizes <= _LARGE)))
    return np.float32 if suits else np.float64


def _pad(
    rows: Iterable[dict[str, Any]],
    names: Sequence[str],
    features: int,
    shape: tuple[int, int, int],
    kind: type,
) -> dict[str, Any]:
    """Return the bucket of single lists, which fill one block after the other."""
    blocks, sentences, width = shape
    tables = {}
    for name in names:
        leading = (blocks, sentences, *((features,) if name == "features" else ()))
        of_column, beyond = _COLUMNS[name]
        tables[name] = np.full((*leading, width), beyond, of_column or kind)
    for number, row in enumerate(rows):
        for name, table in tables.items():
            table[*divmod(number, sentences), ..., : row[name].shape[-1]] = row[name]
    tables["base"][:, :, 0] = 0.0
    return tables


def find_order(lists: Lists) -> Int64:
    """Return the position of each sentence of the n-best table in the lists, (sentences,).

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.weights import match
    >>> sizes = [500] + [2] * 20
    >>> lists = from_lists([["a"] * n for n in sizes], [[[0.0]] * n for n in sizes], ["LM0"])
    >>> lists = tabulate(lists, match({"LM0": 0.5}, lists))
    >>> find_order(lists).tolist()[:3], lists.sentence.tolist()[20]  # shorter lists come first
    ([20, 0, 1], 0)
    """
    sentence = np.asarray(lists.sentence)
    return np.argsort(sentence, kind="stable")[int((sentence < 0).sum()) :]


def _check(column: npt.ArrayLike, count: int, name: str, lists: NBest) -> Float64:
    values = to_floats(column, name)
    if values.shape != (count,) or not np.isfinite(values).all():
        problem = f"{name} must be {count} finite numbers, not an array of shape {values.shape}"
        raise DataError(problem, lists.origin, parameter=name, code="wrong-length")
    return values


def _to_sentence_column(column: npt.ArrayLike, name: str, lists: NBest) -> Float64:
    """Return the weight of each sentence, or the number of its domain or rater."""
    values = _check(column, len(lists), name, lists)
    is_weight = name == "weight"
    if (values < 0).any() or (is_weight and not values.all()):
        expected = "above 0" if is_weight else "a number from 0"
        least, origin = float(values.min()), lists.origin
        raise bad_value(f"a {name}", least, expected, origin, parameter=name, code="mismatch")
    return values


def _subtract_oracle(
    features: Float64, oracle: int, match: Match, columns: dict[str, Float64], kind: type
) -> tuple[npt.NDArray[Any], Int64, Int64]:
    """Return the distinct rows h − h* of a list without its oracle, their counts and positions.

    The columns after the features are the score of the fixed features and, if there are any, ties
    and the ranks of gains. With shared ties equal derivations stay separate: the logarithm of their
    number is not part of the score of one of them.
    """
    position = np.delete(np.arange(len(features)), oracle)
    relative = features[position] - features[oracle]
    # Not by BLAS: equal rows have equal scores.
    fixed = np.einsum("nq,q->n", relative[:, ~match.free], match.values[~match.free])
    parts: list[Any] = [relative[:, match.free], fixed]
    if "tie" in columns:
        parts.append(columns["tie"][position])
    if "gain" in columns:
        parts.append(np.unique(columns["gain"][position], return_inverse=True)[1])
    rows: npt.NDArray[Any] = np.column_stack(parts).astype(kind)
    # Rows are sorted by their content, so that sums do not depend on the order of the list.
    hashes = _hash_rows(rows)
    order = np.argsort(hashes, kind="stable")
    all_differ = not (np.diff(hashes[order]) == 0).any()
    # Equal derivations are rare, and sorting whole rows to find them takes far longer.
    if all_differ or ("share" in columns and columns["share"][oracle] < 1):
        return rows[order], np.ones(len(rows), np.int64), position[order]
    distinct, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return distinct, count, position[first]


def _hash_rows(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a hash of each row; rows that are equal to the bit have equal hashes.

    >>> first, second, third = _hash_rows(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])).tolist()
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


def _choose_shape(sentences: int, width: int) -> tuple[int, int, int]:
    """Return (blocks, sentences per block, rows per list) that hold so many lists."""
    rounded = _round_up(sentences)
    per_block = min(max(_BLOCK_ROWS // width, 1), rounded)
    return -(-rounded // per_block), per_block, width


def _group(sizes: Int64) -> list[tuple[int, Int64]]:
    """Return (width, sentences) of at most four buckets with little padding.

    Each bucket is compiled in every program, so small data have one bucket.

    >>> [(width, members.tolist()) for width, members in _group(np.array([2, 500, 2]))]
    [(512, [0, 1, 2])]
    >>> [(width, len(members)) for width, members in _group(np.repeat([2, 500], 50))]
    [(2, 50), (512, 50)]
    """
    if not len(sizes):
        return [(1, np.zeros(0, np.int64))]
    rounded = np.array([_round_up(int(size)) for size in sizes])
    widths, counts = (part.tolist() for part in np.unique(rounded, return_counts=True))
    while len(widths) > 1:
        waste = [n * (wider - w) for n, w, wider in zip(counts, widths, widths[1:], strict=False)]
        least = int(np.argmin(waste))
        if len(widths) <= _MAX_BUCKETS and waste[least] > ROWS_OF_BUCKET:
            break
        widths.pop(least)
        moved = counts.pop(least)
        counts[least] += moved
    bucket = np.searchsorted(widths, rounded)
    return [(width, np.flatnonzero(bucket == i)) for i, width in enumerate(widths)]


def _round_up(number: int) -> int:
    """Round up to one of few numbers, by at most an eighth.

    >>> [_round_up(number) for number in (0, 7, 17, 33, 100)]
    [1, 7, 18, 36, 104]
    """
    grain = 1 << max(0, max(number, 1).bit_length() - 4)
    return max(-(-number // grain) * grain, 1)

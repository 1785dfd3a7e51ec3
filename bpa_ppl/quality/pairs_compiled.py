"""Texts of one list against one another, compiled: each is the reference of the others in turn.

What is added up is p(e') · score(e, e') over the texts e' of a list; bounds leave out what cannot
change which text e is the best one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.quality.pairs import TIE

UInt64 = npt.NDArray[np.uint64]
#: The kinds of n-grams of texts, how often each n-gram of a kind occurs there, and where each text
#: begins; then of each kind n − 1, and how many n-grams it has.
Bags = tuple[Int32, Int32, Int64, Int32, Int32]


@njit
def _mixed(value: np.uint64) -> np.uint64:
    """Return a number whose bits all depend on all bits of another (Steele et al. 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit
def _place(keys: UInt64, key: np.uint64) -> np.int64:
    """Return where a key other than 0 stands in a table of open addressing, or where it goes."""
    mask = len(keys) - 1
    at = np.int64(_mixed(key) & np.uint64(mask))
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(nogil=True, cache=True)
def bags_of(units: Int32, starts: Int64, longest: int) -> Bags:
    """Return the n-grams of some texts, those that occur in the same texts equally often as one.

    Hypotheses of a list share most of what they say: there are far fewer kinds than n-grams. What
    an n-gram occurs in is told by 64 random bits; two of a million that are unlike get the same
    ones by a chance of 1 in 10⁷.

    Args:
        units: the words or characters of all texts, numbered from 0.
        starts: (texts + 1,) where each text begins.
        longest: the longest n-grams.

    >>> units, starts = np.array([0, 1, 0, 0, 1], np.int32), np.array([0, 3, 5])
    >>> kinds, counts, begins, order_of, size_of = bags_of(units, starts, 2)
    >>> kinds.tolist(), counts.tolist(), begins.tolist()  # a; b and a b have one kind an order; b a
    ([0, 1, 2, 3, 0, 1, 2], [2, 1, 1, 1, 1, 1, 1], [0, 4, 7])
    >>> order_of.tolist(), size_of.tolist()
    ([0, 0, 1, 1], [1, 1, 1, 1])
    """
    room = 1
    while room < 2 * longest * len(units) + 2:
        room *= 2
    base = 1
    for unit in units:
        base = max(base, unit + 1)
    limit = base + longest * len(units)
    keys, found = np.zeros(room, np.uint64), np.empty(room, np.int32)
    order, sign = np.zeros(limit, np.int32), np.zeros(limit, np.uint64)
    last, slot = np.full(limit, -1, np.int32), np.empty(limit, np.int32)
    grams = np.empty(longest * len(units), np.int32)
    counts, begins = np.empty(longest * len(units), np.int32), np.zeros(len(starts), np.int64)
    number, entries = base, 0
    current = units.copy()
    for t in range(len(starts) - 1):
        for n in range(longest):
            for i in range(starts[t], starts[t + 1] - n):
                if n:
                    key = np.uint64(current[i]) * np.uint64(base) + np.uint64(units[i + n] + 1)
                    at = _place(keys, key)
                    if keys[at] == 0:
                        keys[at], found[at], order[number] = key, number, n
                        number += 1
                    current[i] = found[at]
                gram = current[i]
                if last[gram] != t:
                    last[gram], slot[gram] = t, entries
                    grams[entries], counts[entries] = gram, 0
                    entries += 1
                counts[slot[gram]] += 1
        for k in range(begins[t], entries):
            seen = np.uint64(t + 1) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(counts[k])
            sign[grams[k]] += _mixed(_mixed(seen))
        begins[t + 1] = entries
    return _kinds(grams[:entries], counts[:entries], begins, order[:number], sign[:number])


@njit
def _kinds(grams: Int32, counts: Int32, begins: Int64, order: Int32, sign: UInt64) -> Bags:
    """Return bags of kinds of n-grams instead of n-grams: those of one order and one sign."""
    room = 1
    while room < 2 * len(sign):
        room *= 2
    keys, found = np.zeros(room, np.uint64), np.empty(room, np.int32)
    kind_of = np.full(len(sign), -1, np.int32)
    order_of, size_of = np.empty(len(sign), np.int32), np.zeros(len(sign), np.int32)
    last, ends = np.full(len(sign), -1, np.int32), np.zeros(len(begins), np.int64)
    number, entries = 0, 0
    for t in range(len(begins) - 1):
        for k in range(begins[t], begins[t + 1]):
            gram = grams[k]
            if kind_of[gram] < 0:
                key = _mixed(sign[gram] + np.uint64(order[gram])) | np.uint64(1)
                at = _place(keys, key)
                if keys[at] == 0:
                    keys[at], found[at], order_of[number] = key, number, order[gram]
                    number += 1
                kind_of[gram] = found[at]
                size_of[found[at]] += 1
            kind = kind_of[gram]
            if last[kind] != t:
                last[kind] = t
                grams[entries], counts[entries] = kind, counts[k]
                entries += 1
        ends[t + 1] = entries
    return grams[:entries], counts[:entries], ends, order_of[:number], size_of[:number]


@njit
def preferred(score: float, p: float, u: int, best: float, best_p: float, first: int) -> bool:
    """Return whether text u is better: by expected score, then probability, then its place."""
    if abs(score - best) > TIE:
        return score > best
    return u < first if p == best_p else p > best_p


@njit
def _bleu(matches: Int64, hyp: int, ref: int) -> float:
    """Return sacreBLEU's sentence BLEU: effective order, missing matches smoothed by halving."""
    if matches[0] == 0:
        return 0.0
    total, smooth, order = 0.0, 1.0, 0
    for n in range(len(matches)):
        possible = hyp - n
        if possible <= 0:
            break
        order += 1
        if matches[n] == 0:
            smooth *= 2.0
            total -= np.log(smooth * possible)
        else:
            total += np.log(matches[n] / possible)
    brevity = 1.0 - ref / hyp if hyp < ref else 0.0
    score: float = 100.0 * np.exp(brevity + total / order)
    return score


@njit
def _chrf(matches: Int64, hyp: int, ref: int) -> float:
    """Return sacreBLEU's sentence chrF, β = 2, of characters that are not spaces."""
    precision, recall, orders = 0.0, 0.0, 0
    for n in range(len(matches)):
        if hyp - n > 0 and ref - n > 0:
            precision += matches[n] / (hyp - n)
            recall += matches[n] / (ref - n)
            orders += 1
    if precision + recall == 0.0:
        return 0.0
    precision, recall = precision / orders, recall / orders
    return 100.0 * 5.0 * precision * recall / (4.0 * precision + recall)


@njit
def _similar(bags: Bags, lengths: Int64, there: Int32, matches: Int64, u: int, v: int) -> float:
    """Return BLEU, or chrF where n-grams are longer, of text u with the reference v.

    `there` says how often each n-gram stands in v; `matches` is room to count in.
    """
    kinds, counts, begins, order_of, size_of = bags
    matches[:] = 0
    for i in range(begins[u], begins[u + 1]):
        kind = kinds[i]
        matches[order_of[kind]] += size_of[kind] * min(counts[i], there[kind])
    if len(matches) > 4:
        return _chrf(matches, lengths[u], lengths[v])
    return _bleu(matches, lengths[u], lengths[v])


@njit(nogil=True, cache=True)
def scores_between(
    bags: Bags, lengths: Int64, longest: int, rows: Int64, columns: Int64
) -> Float64:
    """Return the BLEU or chrF, (rows, columns), of some texts with others as their references.

    Args:
        bags: the n-grams of all texts.
        lengths: (texts,) in words or characters.
        longest: the longest n-grams: 4 for BLEU, 6 for chrF.
        rows: the texts.
        columns: the references.
    """
    kinds, counts, begins, order_of, _ = bags
    there = np.zeros(len(order_of), np.int32)
    matches = np.zeros(longest, np.int64)
    scores = np.empty((len(rows), len(columns)))
    for j in range(len(columns)):
        v = columns[j]
        for i in range(begins[v], begins[v + 1]):
            there[kinds[i]] = counts[i]
        for i in range(len(rows)):
            scores[i, j] = _similar(bags, lengths, there, matches, rows[i], v)
        for i in range(begins[v], begins[v + 1]):
            there[kinds[i]] = 0
    return scores


@njit(nogil=True, cache=True)
def most_similar(
    bags: Bags, lengths: Int64, longest: int, p: Float64, references: Int64
) -> tuple[int, float]:
    """Return which text has the highest expected BLEU or chrF, and how much it is.

    A text is given up once the references that are left, at 100 each, could not bring it back to
    the front.

    Args:
        bags: as for `scores_between`, like what follows.
        lengths: see above.
        longest: see above.
        p: (texts,) their probabilities.
        references: texts that are not impossible, the most probable first.
    """
    kinds, counts, begins, order_of, _ = bags
    there = np.zeros(len(order_of), np.int32)
    matches = np.zeros(longest, np.int64)
    found, alive = np.zeros(len(p)), np.arange(len(p))
    number, left = len(p), 0.0
    for v in references:
        left += p[v]
    for v in references:
        for i in range(begins[v], begins[v + 1]):
            there[kinds[i]] = counts[i]
        left, front = left - p[v], 0.0
        for i in range(number):
            score = _similar(bags, lengths, there, matches, alive[i], v)
            found[alive[i]] += p[v] * score
            front = max(front, found[alive[i]])
        for i in range(begins[v], begins[v + 1]):
            there[kinds[i]] = 0
        kept = 0
        for i in range(number):
            if found[alive[i]] + 100.0 * left >= front - TIE:
                alive[kept] = alive[i]
                kept += 1
        number = kept
    best = alive[0]
    for u in alive[1:number]:
        if preferred(found[u], p[u], u, found[best], p[best], best):
            best = u
    return best, found[best]

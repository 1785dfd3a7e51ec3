"""Compiled n-gram scores of the texts of a list with each other as references.

The expected score of e is Σ_e' p(e') score(e, e') over the texts e' of a list; bounds exclude texts
that cannot have the best one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl._runtime.arrays import Float64, Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.text.ngrams import FREE, find_slot

_UInt64 = npt.NDArray[np.uint64]
#: N-grams that occur equally often in the same texts are one kind. The kinds in each text, their
#: counts, and where each text begins; then n − 1 of each kind, and its number of n-grams.
_Bags = tuple[Int32, Int32, Int64, Int32, Int32]


@njit
def _hash(value: np.uint64) -> np.uint64:
    """Return a hash of 64 bits (SplitMix64, Steele et al. 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def count_ngrams(units: Int32, starts: Int64, longest: int) -> _Bags:
    """Return the kinds of n-grams of some texts.

    Candidates of a list share most n-grams: there are far fewer kinds than n-grams. The occurrences
    of an n-gram are represented by a hash of 64 bits; the probability of a collision among a
    million n-grams is about 10⁻⁷.

    Args:
        units: the words or characters of all texts, numbered from 0.
        starts: (texts + 1,) where each text begins.
        longest: the longest n-grams.

    >>> units, starts = np.array([0, 1, 0, 0, 1], np.int32), np.array([0, 3, 5])
    >>> kinds, counts, begins, order_of, size_of = count_ngrams(units, starts, 2)
    >>> kinds.tolist(), counts.tolist(), begins.tolist()  # a; b and a b have one kind an order; b a
    ([0, 1, 2, 3, 0, 1, 2], [2, 1, 1, 1, 1, 1, 1], [0, 4, 7])
    >>> order_of.tolist(), size_of.tolist()
    ([0, 0, 1, 1], [1, 1, 1, 1])
    """
    size = 1
    while size < 2 * longest * len(units) + 2:
        size *= 2
    base = 1
    for unit in units:
        base = max(base, unit + 1)
    limit = base + longest * len(units)
    slots, keys = np.full(size, FREE, np.int32), np.empty(limit, np.int64)
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
                    key = (int(current[i]) << 32) | int(units[i + n])
                    slot_of_key = find_slot(slots, keys, key)
                    if slots[slot_of_key] == FREE:
                        slots[slot_of_key], keys[number], order[number] = number, key, n
                        number += 1
                    current[i] = slots[slot_of_key]
                gram = current[i]
                if last[gram] != t:
                    last[gram], slot[gram] = t, entries
                    grams[entries], counts[entries] = gram, 0
                    entries += 1
                counts[slot[gram]] += 1
        for k in range(begins[t], entries):
            occurrence = np.uint64(t + 1) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(counts[k])
            sign[grams[k]] += _hash(_hash(occurrence))
        begins[t + 1] = entries
    return _count_kinds(grams[:entries], counts[:entries], begins, order[:number], sign[:number])


@njit
def _count_kinds(grams: Int32, counts: Int32, begins: Int64, order: Int32, sign: _UInt64) -> _Bags:
    """Return bags of kinds from bags of n-grams; a kind is an order and a hash."""
    size = 1
    while size < 2 * len(sign):
        size *= 2
    slots, keys = np.full(size, FREE, np.int32), np.empty(len(sign), np.int64)
    kind_of = np.full(len(sign), -1, np.int32)
    order_of, size_of = np.empty(len(sign), np.int32), np.zeros(len(sign), np.int32)
    last, ends = np.full(len(sign), -1, np.int32), np.zeros(len(begins), np.int64)
    number, entries = 0, 0
    for t in range(len(begins) - 1):
        for k in range(begins[t], begins[t + 1]):
            gram = grams[k]
            if kind_of[gram] < 0:
                key: Any = np.int64(_hash(sign[gram] + np.uint64(order[gram])))
                slot = find_slot(slots, keys, key)
                if slots[slot] == FREE:
                    slots[slot], keys[number], order_of[number] = number, key, order[gram]
                    number += 1
                kind_of[gram] = slots[slot]
                size_of[slots[slot]] += 1
            kind = kind_of[gram]
            if last[kind] != t:
                last[kind] = t
                grams[entries], counts[entries] = kind, counts[k]
                entries += 1
        ends[t + 1] = entries
    return grams[:entries], counts[:entries], ends, order_of[:number], size_of[:number]


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
def _f_score(matches: Int64, hyp: int, ref: int, beta: float) -> float:
    """Return F_β of mean precision and recall of n-grams; of characters, sacreBLEU's chrF."""
    precision, recall, orders = 0.0, 0.0, 0
    for n in range(len(matches)):
        if hyp - n > 0 and ref - n > 0:
            precision += matches[n] / (hyp - n)
            recall += matches[n] / (ref - n)
            orders += 1
    if precision + recall == 0.0:
        return 0.0
    precision, recall = precision / orders, recall / orders
    return 100.0 * (1.0 + beta**2) * precision * recall / (beta**2 * precision + recall)


@njit
def _count_matches(bags: _Bags, in_reference: Int32, matches: Int64, u: int) -> None:
    """Set the matches of each order of text u with a reference that has kinds so often."""
    kinds, counts, begins, order_of, size_of = bags
    matches[:] = 0
    for i in range(begins[u], begins[u + 1]):
        kind = kinds[i]
        matches[order_of[kind]] += size_of[kind] * min(counts[i], in_reference[kind])


@njit
def _set_reference(bags: _Bags, in_reference: Int32, v: int, present: bool) -> None:
    """Set how often each kind of text v occurs in the reference, or set that to zero."""
    kinds, counts, begins, _, _ = bags
    for i in range(begins[v], begins[v + 1]):
        in_reference[kinds[i]] = counts[i] if present else 0


@njit
def _score(matches: Int64, hyp: int, ref: int) -> float:
    """Return BLEU, or chrF if n-grams are longer, of a text with the length of a reference."""
    return _f_score(matches, hyp, ref, 2.0) if len(matches) > 4 else _bleu(matches, hyp, ref)


@compiled
def score_all_pairs(bags: _Bags, lengths: Int64, orders: Int64, beta: float) -> Float64:
    """Return F_β for some maximum orders, (orders, texts, texts), with each text as the reference.

    Matches of two texts are the same in both directions, and are counted once for all orders.

    Args:
        bags: the n-grams of all texts, from `count_ngrams`, up to the longest of `orders`.
        lengths: (texts,) in words or characters.
        orders: the lengths of the longest n-grams.
        beta: the weight of recall relative to precision.
    """
    in_reference = np.zeros(len(bags[3]), np.int32)
    matches = np.zeros(orders.max(), np.int64)
    scores = np.empty((len(orders), len(lengths), len(lengths)))
    for v in range(len(lengths)):
        _set_reference(bags, in_reference, v, True)
        for u in range(v + 1):
            _count_matches(bags, in_reference, matches, u)
            for k, n in enumerate(orders):
                scores[k, u, v] = _f_score(matches[:n], lengths[u], lengths[v], beta)
                scores[k, v, u] = _f_score(matches[:n], lengths[v], lengths[u], beta)
        _set_reference(bags, in_reference, v, False)
    return scores


@compiled
def count_matches(bags: _Bags, longest: int, rows: Int64, columns: Int64, together: bool) -> Int64:
    """Return the matches of n-grams, (rows, columns, longest), of some texts with others.

    An n-gram matches as often as it occurs in both texts.

    Args:
        bags: the n-grams of all texts, from `count_ngrams`.
        longest: the length of the longest n-grams.
        rows: the texts.
        columns: the others.
        together: match with all others at once, in one column: an n-gram counts as often as in the
            one that has it most often (the clipped matches of BLEU, Papineni et al. 2002).

    >>> units, starts = np.array([0, 1, 0, 0, 1], np.int32), np.array([0, 3, 5])
    >>> both = np.arange(2)
    >>> count_matches(count_ngrams(units, starts, 2), 2, both, both, False).tolist()
    [[[3, 2], [2, 1]], [[2, 1], [2, 1]]]
    >>> count_matches(count_ngrams(units, starts, 2), 2, both, both, True).tolist()
    [[[3, 2]], [[2, 1]]]
    """
    kinds, counts, begins, order_of, _ = bags
    in_reference = np.zeros(len(order_of), np.int32)
    matches = np.zeros((len(rows), 1 if together else len(columns), longest), np.int64)
    for j in range(len(columns)):
        v = columns[j]
        for i in range(begins[v], begins[v + 1]):
            in_reference[kinds[i]] = max(in_reference[kinds[i]], counts[i])
        if together and j < len(columns) - 1:
            continue
        for i in range(len(rows)):
            _count_matches(bags, in_reference, matches[i, 0 if together else j], rows[i])
        _set_reference(bags, in_reference, v, False)
    return matches


@compiled
def score_matches(matches: Int64, candidates: Int64, references: Int64) -> Float64:
    """Return BLEU or chrF, (rows, columns), of some texts with others as references.

    Args:
        matches: from `count_matches`: of n-grams up to 4 for BLEU, up to 6 for chrF.
        candidates: (rows,) the lengths of the texts in words or characters.
        references: (columns,) those of the references.
    """
    scores = np.empty(matches.shape[:2])
    for i in range(len(candidates)):
        for j in range(len(references)):
            scores[i, j] = _score(matches[i, j], candidates[i], references[j])
    return scores


@compiled
def find_most_similar(
    bags: _Bags, lengths: Int64, longest: int, p: Float64, references: Int64, tie: float
) -> tuple[int, float]:
    """Return the text with the highest expected BLEU or chrF, and this score.

    A text is excluded once it could not have the best score even with 100 for all remaining
    references.

    Args:
        bags: the n-grams of all texts, from `count_ngrams`.
        lengths: (texts,) in words or characters.
        longest: the length of the longest n-grams: 4 for BLEU, 6 for chrF.
        p: (texts,) their probabilities.
        references: the texts of positive probability, the most probable first.
        tie: expected scores that differ by no more are equal.
    """
    in_reference = np.zeros(len(bags[3]), np.int32)
    matches = np.zeros(longest, np.int64)
    expected, alive = np.zeros(len(p)), np.arange(len(p))
    number, left = len(p), 0.0
    for v in references:
        left += p[v]
    for v in references:
        _set_reference(bags, in_reference, v, True)
        left, leading = left - p[v], 0.0
        for i in range(number):
            u = alive[i]
            _count_matches(bags, in_reference, matches, u)
            expected[u] += p[v] * _score(matches, lengths[u], lengths[v])
            leading = max(leading, expected[u])
        _set_reference(bags, in_reference, v, False)
        kept = 0
        for i in range(number):
            if expected[alive[i]] + 100.0 * left >= leading - tie:
                alive[kept] = alive[i]
                kept += 1
        number = kept
    best = alive[0]
    for u in alive[1:number]:  # by expected score, then probability, then position
        if abs(expected[u] - expected[best]) > tie:
            better = expected[u] > expected[best]
        else:
            better = u < best if p[u] == p[best] else p[u] > p[best]
        if better:
            best = u
    return best, expected[best]

"""Texts of one list against one another, compiled: each is the reference of the others in turn.

What is added up is p(e') · score(e, e') over the texts e' of a list; bounds leave out what cannot
change which text e is the best one.
"""

from __future__ import annotations

import numpy as np

from bpa_ppl.compiled import compiled, inner
from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.quality.pairs import TIE

#: The different n-grams of texts, how often each occurs there, and where each text begins.
Bags = tuple[Int32, Int32, Int64]


@inner
def preferred(score: float, p: float, u: int, best: float, best_p: float, first: int) -> bool:
    """Return whether text u is better: by expected score, then probability, then its place."""
    if abs(score - best) > TIE:
        return score > best
    return u < first if p == best_p else p > best_p


@inner
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
    return 100.0 * np.exp(brevity + total / order)


@inner
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


@inner
def _similar(
    bags: Bags, order_of: Int32, lengths: Int64, there: Int32, matches: Int64, u: int, v: int
) -> float:
    """Return BLEU, or chrF where n-grams are longer, of text u with the reference v.

    `there` says how often each n-gram stands in v; `matches` is room to count in.
    """
    grams, counts, begins = bags
    matches[:] = 0
    for i in range(begins[u], begins[u + 1]):
        matches[order_of[grams[i]]] += min(counts[i], there[grams[i]])
    if len(matches) > 4:
        return _chrf(matches, lengths[u], lengths[v])
    return _bleu(matches, lengths[u], lengths[v])


@compiled
def scores_between(
    bags: Bags, order_of: Int32, lengths: Int64, longest: int, rows: Int64, columns: Int64
) -> Float64:
    """Return the BLEU or chrF, (rows, columns), of some texts with others as their references.

    Args:
        bags: the n-grams of all texts.
        order_of: (n-grams,) n − 1 of each.
        lengths: (texts,) in words or characters.
        longest: the longest n-grams: 4 for BLEU, 6 for chrF.
        rows: the texts.
        columns: the references.
    """
    grams, counts, begins = bags
    there = np.zeros(len(order_of), np.int32)
    matches = np.zeros(longest, np.int64)
    scores = np.empty((len(rows), len(columns)))
    for j in range(len(columns)):
        v = columns[j]
        for i in range(begins[v], begins[v + 1]):
            there[grams[i]] = counts[i]
        for i in range(len(rows)):
            scores[i, j] = _similar(bags, order_of, lengths, there, matches, rows[i], v)
        for i in range(begins[v], begins[v + 1]):
            there[grams[i]] = 0
    return scores


@compiled
def most_similar(
    bags: Bags, order_of: Int32, lengths: Int64, longest: int, p: Float64, references: Int64
) -> tuple[int, float]:
    """Return which text has the highest expected BLEU or chrF, and how much it is.

    A text is given up once the references that are left, at 100 each, could not bring it back to
    the front.

    Args:
        bags: as for `scores_between`, like what follows.
        order_of: see above.
        lengths: see above.
        longest: see above.
        p: (texts,) their probabilities.
        references: texts that are not impossible, the most probable first.
    """
    grams, counts, begins = bags
    there = np.zeros(len(order_of), np.int32)
    matches = np.zeros(longest, np.int64)
    found, alive = np.zeros(len(p)), np.arange(len(p))
    number, left = len(p), 0.0
    for v in references:
        left += p[v]
    for v in references:
        for i in range(begins[v], begins[v + 1]):
            there[grams[i]] = counts[i]
        left, front = left - p[v], 0.0
        for i in range(number):
            score = _similar(bags, order_of, lengths, there, matches, alive[i], v)
            found[alive[i]] += p[v] * score
            front = max(front, found[alive[i]])
        for i in range(begins[v], begins[v + 1]):
            there[grams[i]] = 0
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

"""Decision rules: how the draws of a posterior decide on the choice from each list."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import DataError
from bpa_ppl.gains.pairwise import make_pairs, sort_by_probability
from bpa_ppl.lists.nbest import NBest, score_differences
from bpa_ppl.weight_draws import WeightDraws
from bpa_ppl.weights import match

#: Multiplications in one product of matrices. NumPy's library, OpenBLAS, computes products of this
#: size in one thread, so that their bits do not depend on the number of threads.
_PRODUCT = 1 << 18
_SCORES = 1 << 18  # scores in one block: 2 MB
_FEWEST_DRAWS = 16  # draws in one block at least
_NEGLIGIBLE_PROBABILITY = 1e-6  # of a text
_LISTS_PER_CALL = 16  # in a thread
_THREADS = 8  # at most
_FEW_SCORES = 1_000_000  # candidates times draws up to which threads take longer than they save
#: Draws that rules which average use by default, moved to the mean and covariance of all.
_FEW_DRAWS: Final = 800
#: Up to this relative difference of the two highest probabilities, all draws decide.
_TIE = 0.02

#: (S,) choices, (S,) canonical choices, (H,) probabilities, and (H,) those of derivations.
Decided: TypeAlias = tuple[Int64, Int64, Float64, Float64]


class AlignedDraws(NamedTuple):
    """Weight vectors in the order of the columns of a table (D draws, K features).

    Attributes:
        weights: (D, K).
        log_weight: (D,) logarithm of the share of each draw in a sum over draws.
        log_joint: (D,) logarithm of p(A|λ) p(λ|T), with the same leverage, up to a constant.
        exponent: 1/δ, the exponent of p(e|f,λ); 1 for draws of the posterior itself.
    """

    weights: Float64
    log_weight: Float64
    log_joint: Float64
    exponent: float

    def thin(self, count: int) -> AlignedDraws:
        """Return some of the draws, by systematic sampling: each as often as its share is of them.

        >>> draws = AlignedDraws(np.eye(2), np.log([0.75, 0.25]), np.zeros(2), 1.0)
        >>> draws.thin(4).weights[:, 0].tolist()
        [1.0, 1.0, 1.0, 0.0]
        """
        share = np.cumsum(np.exp(self.log_weight))
        index = np.searchsorted(share, (np.arange(count) + 0.5) / count * share[-1])
        equal = np.full(count, -np.log(count))
        return AlignedDraws(self.weights[index], equal, self.log_joint[index], self.exponent)

    def with_moments_of(self, other: AlignedDraws) -> AlignedDraws:
        """Return the draws moved and stretched so that mean and covariance are those of others.

        Choices depend on these two more than on the shape of the distribution. Where the draws are
        fewer than twice the features, only the mean is that of the others.

        >>> draws = AlignedDraws(np.array([[0.0], [2.0], [7.0]]), np.zeros(3), np.zeros(3), 1.0)
        >>> few = AlignedDraws(np.array([[0.0], [2.0]]), np.zeros(2), np.zeros(2), 1.0)
        >>> float(few.with_moments_of(draws).weights.mean().round(9)), float(draws.weights.mean())
        (3.0, 3.0)
        """
        (mean, covariance), (own_mean, own_covariance) = other._moments(), self._moments()
        centred = self.weights - own_mean
        if len(centred) >= 2 * centred.shape[1]:
            unit = np.sqrt(np.diag(covariance))
            unit[unit == 0] = 1.0
            scaled = np.outer(unit, unit)
            to_white = _matrix_power(own_covariance / scaled, -0.5)
            centred = centred / unit @ to_white @ _matrix_power(covariance / scaled, 0.5) * unit
        return self._replace(weights=centred + mean)

    def _moments(self) -> tuple[Float64, Float64]:
        """Return the weighted mean, (K,), and covariance, (K, K)."""
        share = np.exp(_normalise(self.log_weight))
        mean = share @ self.weights
        centred = self.weights - mean
        return mean, (share[:, None] * centred).T @ centred

    def blocks(self, features: Float64) -> Iterator[tuple[AlignedDraws, Float64]]:
        """Yield a few draws at a time, with the scores that they give to the candidates of a list.

        Args:
            features: (N, K) of the candidates, up to a constant of each column.

        Yields:
            d of the draws, and (N, d) scores, of which the highest is 0 for each draw.

        >>> draws = AlignedDraws(np.array([[1.0], [-2.0]]), np.log([0.5, 0.5]), np.zeros(2), 1.0)
        >>> [scores.tolist() for _, scores in draws.blocks(np.array([[0.0], [1.0]]))]
        [[[-1.0, 0.0], [0.0, -2.0]]]
        """
        count, width = features.shape
        size = min(max(_SCORES // count, _FEWEST_DRAWS), len(self.weights))
        rows = max(_PRODUCT // max(size * width, 1), 1)
        for first in range(0, len(self.weights), size):
            part = slice(first, first + size)
            vectors = self.weights[part].T
            scores = np.empty((count, vectors.shape[1]))
            for row in range(0, count, rows):
                np.matmul(features[row : row + rows], vectors, out=scores[row : row + rows])
            scores -= scores.max(axis=0)
            block = self.weights[part], self.log_weight[part], self.log_joint[part], self.exponent
            yield AlignedDraws(*block), scores


class Rule(Component, frozen=True):
    """A decision rule: how the scores of candidates under many draws become one score each.

    The exponentials of these scores, normalised, are probabilities, and the most probable
    candidate of a list is chosen. A rule that compares texts has `needs_texts` and chooses itself,
    by these probabilities (`decide`).

    Attributes:
        averages: whether it averages over the draws, so that a few of them with the mean and
            covariance of all make the same choices.
        needs_density: whether it needs the density of each draw.
        needs_texts: whether it chooses by `decide`, with the texts of the lists.

    `Predictive` is an example; docs/how-to/additions.md has another one.

    >>> from bpa_ppl.decoding.rules import RULES
    >>> RULES.resolve("mbr", {"gain": "chrf"})
    Mbr(gain='chrf')
    """

    averages: ClassVar[bool] = False
    needs_density: ClassVar[bool] = False
    needs_texts: ClassVar[bool] = False

    def align(self, draws: WeightDraws, lists: NBest) -> AlignedDraws:
        """Return the draws that the rule uses, by default all of them.

        Raises:
            DataError: if the lists have a feature without a weight.
        """
        count = len(draws.flat)
        log_share = np.full(count, -np.log(count))
        log_weight, density = draws.draws.log_weight, draws.draws.log_density
        if log_weight is not None:
            log_share, density = _normalise(log_weight), log_weight
        return AlignedDraws(
            weights=draws.aligned(lists),
            log_weight=log_share,
            log_joint=np.zeros(count) if density is None else _normalise(density),
            exponent=draws.record.figures.likelihood_exponent,
        )

    def log_scores(self, features: Float64, draws: AlignedDraws) -> Float64:
        """Return the score of each candidate of one list, (N,), from its features, (N, K).

        The features are relative to the first candidate; `draws.blocks` computes the scores under
        draws.
        """
        raise NotImplementedError

    def explain(self, draws: WeightDraws) -> str:
        """Return a sentence for the log on what the rule takes from a posterior, or nothing."""
        return ""

    def decide(self, lists: NBest, probabilities: Float64) -> Int64:
        """Return the choice from each of S lists, (S,), by a rule that needs texts.

        `probabilities`, (candidates,), are those of derivations, and sum to 1 over each list.
        """
        return lists.best(probabilities)


def find_distinct_texts(
    lists: NBest, sentence: int, probabilities: Float64
) -> tuple[list[str], Int64, Float64]:
    """Return the distinct texts of a list, the text of each candidate, and their probabilities.

    `probabilities` are those of the derivations of all lists, (candidates,).

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["b", "a", "b"]], [[[0.0]] * 3], ["LM0"])
    >>> texts, group, p = find_distinct_texts(lists, 0, np.array([0.25, 0.25, 0.5]))
    >>> [(texts[i], float(p[i])) for i in group]
    [('b', 0.75), ('a', 0.25), ('b', 0.75)]
    """
    rows = lists.rows(sentence)
    strings, group = np.unique(lists.string_index[rows], return_inverse=True)
    p: Float64 = np.bincount(group, weights=probabilities[rows]).astype(np.float64)
    return [lists.strings[i] for i in strings], group, p


def choose_references(p: Float64) -> tuple[Int64, Float64]:
    """Return the texts that count as references, the most probable first, and their shares.

    The others are too improbable to matter, and too many to be compared.

    >>> choose_references(np.array([0.25, 1e-9, 0.75]))[0].tolist()
    [2, 0]
    """
    references = sort_by_probability(np.where(p > _NEGLIGIBLE_PROBABILITY, p, 0.0))
    return references, p[references] / p[references].sum()


def _matrix_power(matrix: Float64, exponent: float) -> Float64:
    """Return the power of a symmetric matrix, within the space that it spans."""
    values, vectors = np.linalg.eigh(matrix)
    spanned = values > 1e-10 * values[-1]
    powers = np.where(spanned, np.where(spanned, values, 1.0) ** exponent, 0.0)
    return np.asarray((vectors * powers) @ vectors.T)


def _normalise(log_values: Any) -> Float64:
    flat = np.asarray(log_values, np.float64).reshape(-1)
    shifted = flat - flat.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


class Predictive(Rule, frozen=True):
    """log Σ_λ w(λ) p(e|f,λ)^(1/δ): the average probability over the draws.

    With equal weights w and δ = 1 it is Eq. 13 of Sanchis-Trilles & Casacuberta (2015), with w(λ) =
    p(A|λ)^(1/δ) p(λ|T) it is their Eq. 11 of 2015, which is Eq. 13 of COLING 2010.
    """

    averages: ClassVar[bool] = True

    def log_scores(self, features: Float64, draws: AlignedDraws) -> Float64:
        """Return the logarithm of the sum over the draws; −inf where it is too small."""
        total = np.zeros(len(features))
        for part, scores in draws.blocks(features):
            unnormalised = np.exp(scores, out=scores)
            share = unnormalised.sum(axis=0)
            if draws.exponent != 1.0:
                unnormalised = (unnormalised / share) ** draws.exponent
                share = np.ones_like(share)
            total += np.einsum("nd,d->n", unnormalised, np.exp(part.log_weight) / share)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(total))


class Map(Predictive, frozen=True):
    """The mode of the posterior decides."""

    def align(self, draws: WeightDraws, lists: NBest) -> AlignedDraws:
        """Return the mode."""
        chosen = match(draws.at_point("mode"), lists, fixed=())
        return AlignedDraws(chosen.values[None], np.zeros(1), np.zeros(1), 1.0)


class Mbr(Predictive, frozen=True):
    """argmax_e Σ_e' p(e'|f) gain(e, e') over a list (Kumar & Byrne 2004): minimum Bayes risk.

    p is the posterior predictive distribution, in which derivations of equal strings are one; the
    gain is the score of a sentence with e' as its reference: BLEU, chrF, minus TER, WER or CER. The
    choice is that of scoring every pair; bounds leave out what cannot change it.

    Of equally good texts the more probable is chosen, in its most probable derivation.

    Args:
        gain: `ter`, `bleu`, `chrf`, `wer` or `cer`.
    """

    needs_texts: ClassVar[bool] = True
    gain: Literal["ter", "bleu", "chrf", "wer", "cer"] = "ter"

    def decide(self, lists: NBest, probabilities: Float64) -> Int64:
        """Return the choice from each list.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a b", "a c", "a d", "e f"]], [[[0.0]] * 4], ["LM0"])
        >>> Mbr().decide(lists, np.array([0.2, 0.25, 0.2, 0.35])).tolist()
        [1]
        """
        choice = np.empty(len(lists), np.int64)
        for s in range(len(lists)):
            texts, group, p = find_distinct_texts(lists, s, probabilities)
            best, _ = make_pairs(texts, self.gain).best(p)
            choice[s] = np.argmax(np.where(group == best, probabilities[lists.rows(s)], -1.0))
        return choice


class Mean(Rule, frozen=True):
    """p(e | f, E[λ]): the posterior mean of the weights decides.

    The average of p(e | f, λ) over wide posteriors prefers candidates with unusual features, for
    some draws rank them high by chance; the mean of the scores does not. Of two candidates both
    prefer the same one, if the posterior is symmetric, and the average is calibrated: it decides.
    """

    def log_scores(self, features: Float64, draws: AlignedDraws) -> Float64:
        """Return the scores under the mean; of two candidates, those of `Predictive`."""
        if len(features) == 2:
            return Predictive().log_scores(features, draws)
        share = np.exp(draws.log_weight)
        return np.asarray(features @ (share @ draws.weights))


class Viterbi(Rule, frozen=True):
    """max_λ of log p(A|λ) p(λ|T) p(e|f,λ): the single best pair of weights and candidate.

    For a weighted sample the likelihoods have its exponent 1/δ, as they do in Eq. 11 of
    Sanchis-Trilles & Casacuberta (2015).
    """

    needs_density: ClassVar[bool] = True

    def log_scores(self, features: Float64, draws: AlignedDraws) -> Float64:
        best = np.full(len(features), -np.inf)
        for part, scores in draws.blocks(features):
            log_p = scores - np.log(np.exp(scores).sum(axis=0))
            best = np.maximum(best, (part.exponent * log_p + part.log_joint).max(axis=1))
        return best


RULES: Registry[Rule] = Registry(
    "rule",
    "bpa_ppl.rules",
    Rule,
    {
        "predictive": "bpa_ppl.decoding.rules:Predictive",
        "viterbi": "bpa_ppl.decoding.rules:Viterbi",
        "map": "bpa_ppl.decoding.rules:Map",
        "mean": "bpa_ppl.decoding.rules:Mean",
        "mbr": "bpa_ppl.decoding.rules:Mbr",
        "best": "bpa_ppl.decoding.best:Best",
    },
)


@dataclass(frozen=True, eq=False)
class Decider:
    """The draws of a posterior, in the order of certain columns, and the rule that chooses by them.

    Attributes:
        rule: the decision rule.
        draws: the draws.
        every_draw: the draws that decide between candidates of nearly equal probability, if they
            are not `draws`.
        canonical: (K,) the canonical weights; None where they are not known, and lists have the
            order of the decoder.
        derivations: `separate` or `summed`.
    """

    rule: Rule
    draws: AlignedDraws
    every_draw: AlignedDraws | None = None
    canonical: Float64 | None = None
    derivations: str = "separate"

    @classmethod
    def of(
        cls,
        draws: WeightDraws,
        lists: NBest,
        rule: Rule,
        count: int | str | None = None,
        derivations: str = "separate",
    ) -> Decider:
        """Return the decider for lists with these columns.

        Args:
            draws: of a posterior.
            lists: with the columns.
            rule: the decision rule.
            count: how many draws to use, or `all`; None takes what the rule needs.
            derivations: `separate` or `summed`.

        Raises:
            DataError: if lists and posterior do not have the same features, or the rule needs
                what the posterior does not record.
        """
        has_density = draws.draws.weighted or draws.draws.log_density is not None
        if rule.needs_density and not has_density:
            name = RULES.name_of(rule)
            message = (
                f"the rule {name} needs the density of each draw (lp): use the rule predictive"
            )
            raise DataError(message, parameter="rule", code="not-supported")
        aligned, every_draw = rule.align(draws, lists), None
        if count is None and rule.averages and len(aligned.weights) > _FEW_DRAWS:
            count, every_draw = _FEW_DRAWS, aligned
        if isinstance(count, Integral):
            few = aligned.thin(count)
            aligned = few if rule.needs_density else few.with_moments_of(aligned)
        canonical = None
        if draws.canonical is not None and not draws.lacks_canonical:
            canonical = draws.aligned(lists, draws.canonical[None])[0]
        return cls(rule, aligned, every_draw, canonical, derivations)

    def strip(self, lists: NBest) -> NBest:
        """Return lists with no more than the decider uses, to be sent to a worker process."""
        extras = *lists.extras, *lists.sentence_extras
        lists = lists.without("totals", "references", "sources", *extras)
        if self.rule.needs_texts:
            return lists
        return replace(lists, strings=("",) * len(lists.strings))

    def choose(self, lists: NBest, *, threads: int = _THREADS) -> Decided:
        """Choose from each list.

        Args:
            lists: some lists.
            threads: how many compute at once, at most.
        """
        if self.rule.needs_texts:
            lists = self.strip(lists)
        threads = min(threads, os.cpu_count() or 1)
        small = len(lists.features) * len(self.draws.weights) <= _FEW_SCORES
        if small or threads == 1 or len(lists) <= _LISTS_PER_CALL:
            return self._choose(lists)
        with ThreadPoolExecutor(threads) as pool:
            parts = zip(*pool.map(self._choose, lists.chunks(_LISTS_PER_CALL)), strict=True)
            choice, canonical, probabilities, of_derivations = map(np.concatenate, parts)
            return choice, canonical, probabilities, of_derivations

    def _choose(self, lists: NBest) -> Decided:
        probabilities, of_derivations = np.empty((2, len(lists.features)))
        choice, canonical = np.zeros((2, len(lists)), np.int64)
        for s in range(len(lists)):
            rows = lists.rows(s)
            decided = self.decide(lists.features[rows], lists.string_index[rows])
            choice[s], probabilities[rows], of_derivations[rows] = decided
        if self.rule.needs_texts:
            choice = self.rule.decide(lists, of_derivations)
        if self.canonical is not None:
            canonical = lists.best(score_differences(lists, self.canonical))
        return choice, canonical, probabilities, of_derivations

    def decide(
        self, features: Float64, strings: npt.NDArray[np.integer]
    ) -> tuple[int, Float64, Float64]:
        """Choose from one list.

        Args:
            features: (N, K) of the candidates.
            strings: (N,) numbers that are equal for equal strings.

        Returns:
            the position of the choice; (N,) the probabilities of the candidates, of their strings
            where equal ones are summed; and (N,) those of their derivations.
        """
        decided = self._decide(features, strings, self.draws)
        if self.every_draw is not None:
            probabilities = decided[1]
            best = probabilities[decided[0]]
            if probabilities[probabilities < best].max(initial=0.0) > (1 - _TIE) * best:
                return self._decide(features, strings, self.every_draw)
        return decided

    def _decide(
        self, features: Float64, strings: npt.NDArray[np.integer], draws: AlignedDraws
    ) -> tuple[int, Float64, Float64]:
        # Relative to the first candidate, so that a large constant costs no digits.
        differences = features - features[:1]
        # The bits of a product depend on the order of its arrays in memory.
        scores = self.rule.log_scores(np.ascontiguousarray(differences, np.float64), draws)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        if self.derivations == "separate":
            return int(p.argmax()), p, p
        group = np.unique(strings, return_inverse=True)[1]
        summed: Float64 = np.bincount(group, weights=p)[group].astype(np.float64)
        # The best derivation of the winning string represents it.
        return int(np.where(summed == summed.max(), p, -1.0).argmax()), summed, p

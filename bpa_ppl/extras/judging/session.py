"""Session: comparisons of candidates by one rater, and the posterior after each answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from bpa_ppl._runtime.arguments import check_seed, require
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.names import find_positions
from bpa_ppl.adapting.adapt import adapt
from bpa_ppl.adapting.observe import observe
from bpa_ppl.adapting.prepare import prepare
from bpa_ppl.adapting.prior import choose_prior, log_scale
from bpa_ppl.adapting.warn import warn_about
from bpa_ppl.errors import DataError, UsageError, list_names, quote
from bpa_ppl.extras.judging.answers import Gaussian, fit_posterior, integrate_scales
from bpa_ppl.extras.judging.questions import (
    ABOUT,
    Candidates,
    Outlook,
    choose_informative,
    estimate_outlook,
)
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.formats.journal import (
    INFORMATION,
    PLACES,
    RANDOM,
    REPEAT,
    SKIP,
    Journal,
    JournalFile,
    Judgement,
    with_judgements,
)
from bpa_ppl.gains.gains import default_gain
from bpa_ppl.gains.judged import Judged
from bpa_ppl.lists.nbest import NBest, content_hash, subtract_first
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.weights import AnyStart, StartingWeights, Weights

if TYPE_CHECKING:
    from bpa_ppl.features.source import AnySource
    from bpa_ppl.posterior.arviz_data import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Every twelfth question repeats an earlier pair with the sides exchanged.
_REPEAT_EVERY = 12
#: Scales of the prior with a lower posterior probability are left out.
_NEGLIGIBLE_PROBABILITY = 1e-3
_MOST_LISTS = 200  # of the outlook


@dataclass(frozen=True)
class Question:
    """Two candidates to compare.

    Attributes:
        id: the id of the list.
        sentence: the position of the list.
        candidates: the positions of the candidates in the list, in the order shown.
        texts: the texts of the candidates.
        source: the source of the list, or None.
        asked: why the pair is asked: `random`, `information` or `repeat`.
        number: the line of the journal that the answer will have; it identifies the question.

    >>> Question(7, 0, (1, 0), ("a cat", "cat"), "un chat", "random", 2).texts[0]
    'a cat'
    """

    id: int | str
    sentence: int
    candidates: tuple[int, int]
    texts: tuple[str, str]
    source: str | None
    asked: str
    number: int


class Session:
    """Comparisons of two candidates, and the posterior of the weights after each.

    Half of the questions are random, so that predictions of their answers are an unbiased test of
    the weights. Each of the others is the most informative of some random pairs (Lindley 1956),
    alternately about the weights and about the choices of all lists. Every twelfth question repeats
    an earlier one in the opposite order.

    Args:
        lists: lists with features. A list of fewer than two different texts is never asked about.
        weights: where the weights start, as in `adapt`. With None, the mean is 0 except for
            log-probabilities; with `"equal"`, it is the mean of the standardised features; weights
            by feature are the mean itself. `StartingWeights` can also fix weights.
        prior: a `Prior`, or a posterior, whose mean and covariance are used.
        unchecked: use the posterior although it fails its check.
        journal: a file to which each answer is appended before `answer` returns. If it exists, the
            session continues after its last answer.
        rater: the name of the rater, for the journal.
        seed: the seed of the questions.
        slip: the probability of a random answer, see `preference:slip_prior`.
        features: the columns that are features, as for `adapt`.
        exclude: columns that are not features.
        categorical: columns whose values become features.
        add: sources of further features.

    Attributes:
        lists: the lists.
        features: the names of the features with a free weight.
        weights: (K + 1) the Gaussian approximation of the posterior of the weights; log ν is the
            last value.
        start: the same approximation before the first answer.

    Raises:
        DataError: if there is no pair to compare, or the journal belongs to other lists.
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        UsageError: if the value of an option is not allowed.

    >>> from bpa_ppl import from_lists
    >>> texts, quality = [["a cat", "cat the"], ["the dog", "dog"]], [[[2.0], [0.0]]] * 2
    >>> session = Session(from_lists(texts, quality, ["quality"]))
    >>> for _ in range(4):
    ...     better = session.next().candidates.index(0)
    ...     _ = session.answer(("first", "second")[better])
    >>> bool(session.weights.mean[0] > 0), session.choices().tolist(), len(session.judgements)
    (True, [0, 0], 4)
    >>> session.outlook().answers
    4
    >>> session.undo().answer in ("first", "second"), len(session.judgements)
    (True, 3)
    >>> for question in session.batch(2):  # for another annotation tool
    ...     _ = session.add(Judgement(question.id, question.candidates, "tie"))
    >>> sum(map(len, filter(None, session.judged.sentence_extras["ties"])))
    2
    >>> session.posterior.posterior["weights"].shape
    (4, 1000, 1)
    """

    def __init__(
        self,
        lists: NBest,
        weights: AnyStart = None,
        *,
        prior: Prior | Posterior | None = None,
        unchecked: bool = False,
        journal: str | Path | None = None,
        rater: str | None = None,
        seed: int = 0,
        slip: float = 0.05,
        features: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        categorical: str | Iterable[str] = (),
        add: AnySource | Iterable[AnySource] = (),
    ) -> None:
        require(lists, NBest, "a session compares candidates of n-best lists (NBest)", "lists")
        self.lists, self.rater, self.seed, self.slip = lists, rater, check_seed(seed), slip
        header = {"lists": Path(lists.origin).name, "sha256": content_hash(lists), "seed": seed}
        header |= {} if rater is None else {"rater": rater}
        self._file = None if journal is None else JournalFile(journal, header)
        self._likelihood, self._start = Preference(slip=slip), StartingWeights.of(weights)
        self._options: dict[str, Any] = {"features": features, "exclude": exclude}
        self._options |= {"categorical": categorical, "add": add}
        if not isinstance(prior, Prior | None):
            prior = Prior.of(prior, unchecked=unchecked)
        self.prior, self._recipe, self._fixed = _prepare(
            lists, self._start, prior, self._likelihood, self._options
        )
        self.features = tuple(self.prior.names or ())
        self._candidates = _prepare_candidates(lists, self._recipe, self._fixed)
        texts, starts = self._candidates.text, self._candidates.offsets[:-1]
        low, high = (extreme.reduceat(texts, starts) for extreme in (np.minimum, np.maximum))
        self._pool = np.flatnonzero(low != high)  # lists with two different texts
        if not len(self._pool):
            message = "no list with two different candidates: there is nothing to compare"
            raise DataError(message, lists.origin, code="no-data")
        self._position = {identifier: s for s, identifier in enumerate(lists.ids)}
        self._start_scales()
        nothing = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        self._fit_weights(*nothing, keep=True)
        self.start = self._fit_weights(*nothing)
        recorded = Journal(header) if self._file is None else self._file.journal
        self._lines, self._judgements = recorded.lines, dict(recorded.judgements)
        for number, judgement in self._judgements.items():
            self._check(judgement, number)
        self._question: Question | None = None
        self._update()

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """The answers that were not taken back, including `skip`."""
        return tuple(self._judgements.values())

    def next(self) -> Question:
        """Return the next question; the same one until it is answered."""
        if self._question is None:
            self._question = self._choose(self._lines)
        return self._question

    def answer(self, answer: str, *, correction: str | None = None) -> Judgement:
        """Record `first`, `second`, `tie` or `skip`, and update the posterior.

        A correction that is blank, or equals the text of the better candidate, is left out.

        Raises:
            DataError: if the journal cannot be written; the answer then does not count.
            UsageError: if there is no such answer.
        """
        asked = self.next()
        better = dict(zip(PLACES, asked.texts, strict=True)).get(answer, "")
        if (correction or "").strip() in ("", better.strip()):
            correction = None
        judgement = Judgement(asked.id, asked.candidates, answer, asked.asked, None, self.rater)
        return self.add(replace(judgement, correction=correction))

    def add(self, judgement: Judgement) -> Judgement:
        """Record an answer to any question, for example from another annotation tool.

        Args:
            judgement: the answer. Its prediction is computed; without a time, it gets the present.

        Returns:
            the judgement as it was recorded.

        Raises:
            DataError: if the lists do not have the candidates, or the journal cannot be written;
                the answer then does not count.
        """
        self._check(judgement)
        first, second = softmax(self._score(judgement, self.weights)).round(4).tolist()
        time = judgement.time or datetime.now(UTC).isoformat(timespec="seconds")
        judgement = replace(judgement, predicted=(first, second), time=time)
        record = {name: value for name, value in vars(judgement).items() if value not in (None, "")}
        record.pop("rater", None)  # the header has it
        self._judgements[self._append(record)] = judgement
        self._question = None
        self._update()
        return judgement

    def batch(self, count: int) -> list[Question]:
        """Return several questions at once, for another annotation tool; see `add`.

        They are chosen with the present weights, so small batches are more informative.
        """
        return [self._choose(self._lines + more) for more in range(count)]

    def undo(self) -> Judgement:
        """Take the last answer back, and ask the same question again.

        Raises:
            DataError: if the journal cannot be written.
            UsageError: if there is no answer.
        """
        if not self._judgements:
            raise UsageError("there is no answer to take back", code="no-data")
        number = max(self._judgements)
        self._append({"undo": number})
        undone = self._judgements.pop(number)
        self._question = self._ask(undone.id, undone.candidates, undone.asked)
        self._update()
        return undone

    def choices(self, lists: NBest | None = None) -> Int64:
        """Return the position of the candidate of each list that the mean weights choose, (S,).

        Args:
            lists: other lists with the same features; by default the lists of the session.

        Raises:
            DataError: if the lists do not have the features.
        """
        table = (
            self._candidates
            if lists is None
            else _prepare_candidates(lists, self._recipe, self._fixed)
        )
        return table.choices(self.weights)

    def outlook(self) -> Outlook:
        """Return what the answers so far have changed, and what more answers would change."""
        rng, pool = np.random.default_rng(0), self._pool
        table = self._candidates.lists(rng.choice(pool, min(_MOST_LISTS, len(pool)), replace=False))
        best, headroom, least, further = estimate_outlook(table, self.weights, rng, self.slip)
        changed = self.choices() != self._candidates.choices(self.start)
        answers = [judgement for judgement in self.judgements if judgement.answer != SKIP]
        random, repeated, agreed, predicted, predicted_before = 0, 0, 0, 0.0, 0.0
        first: dict[Any, int | None] = {}  # the best candidate of each question
        for judgement in answers:
            question, chosen = (judgement.id, frozenset(judgement.candidates)), judgement.best
            if judgement.asked == REPEAT and question in first:
                repeated += 1
                agreed += first[question] == chosen
            first.setdefault(question, chosen)
            if judgement.asked == RANDOM and chosen is not None:
                random += 1
                sign = 1 if chosen == judgement.candidates[0] else -1
                scores = self._score(judgement, self.start)
                for_first, for_second = judgement.predicted or (0.5, 0.5)
                # A prediction of two equal candidates counts as half right.
                predicted += float(np.heaviside(sign * (for_first - for_second), 0.5))
                predicted_before += float(np.heaviside(sign * (scores[0] - scores[1]), 0.5))
        counts = len(answers), len(changed), int(changed.sum()), best, headroom, least, further
        return Outlook(*counts, predicted, predicted_before, random, repeated, agreed)

    @property
    def judged(self) -> NBest:
        """The lists with the answers so far as `preferences` and `ties`."""
        return with_judgements(self.lists, [Journal({}, self._judgements)])

    @property
    def posterior(self) -> InferenceData:
        """The posterior given all answers, drawn by `adapt`.

        Raises:
            DataError: if all answers so far are `skip`.
        """
        start = self._start if self._start.is_equal else replace(self._start, weights=None)
        return adapt(
            self.judged,
            start,
            likelihood=self._likelihood,
            prior=self.prior,
            seed=self.seed,
            **self._options,
        )

    def _append(self, record: Mapping[str, Any]) -> int:
        """Add a line to the journal and return its number."""
        if self._file is not None:
            self._file.append(record)
        self._lines += 1
        return self._lines

    def _update(self) -> None:
        """Compute the posterior from the prior and all answers.

        The probable scales of the prior are found from all of the first seven answers, later from
        more than three quarters of the answers. How many depends only on the number of answers, so
        that a session that is resumed from a journal has the same scales.
        """
        answered = [judgement for judgement in self.judgements if judgement.chosen is not None]
        count, rows = (
            len(answered),
            np.array(list(map(self._find_rows, answered)), np.int64).reshape(-1, 2),
        )
        chosen = np.array([judgement.chosen for judgement in answered], np.int64)
        rounded = count - count % (1 << max(0, count.bit_length() - 3))
        if rounded != self._learned:
            self._start_scales(rounded)
            self._fit_weights(rows[:rounded], chosen[:rounded], keep=True)
        self.weights = self._fit_weights(rows, chosen)

    def _start_scales(self, learned: int = -1) -> None:
        """Use all scales of the prior, until the answers have shown which are probable.

        Args:
            learned: the number of answers that are about to show it.
        """
        scale = self.prior.scale
        self._scales = np.zeros(1) if scale is None else scale.log_scales
        self._learned = learned

    def _fit_weights(self, rows: Int64, chosen: Int64, *, keep: bool = False) -> Gaussian:
        """Return the posterior given some answers.

        Args:
            rows: (n, 2) the rows of the candidates.
            chosen: (n,) the answers.
            keep: whether to use only the scales that are probable in this posterior from now on.
        """
        answers = self._candidates.alternatives(rows), chosen
        scale = self.prior.scale
        if scale is None:
            return fit_posterior(answers, _to_gaussian(self.prior), self.slip)[0]

        def prior_of(value: float) -> Gaussian:
            return _to_gaussian(self.prior.with_scale(value))

        weights = integrate_scales(answers, prior_of, scale, self._scales, self.slip)
        if keep:
            kept = np.flatnonzero(weights.shares > _NEGLIGIBLE_PROBABILITY)
            self._scales = self._scales[kept[0] : kept[-1] + 1]
        return weights

    def _find_rows(self, judgement: Judgement) -> Int64:
        """Return the rows of the candidates of an answer."""
        start = self._candidates.offsets[self._position[judgement.id]]
        return np.asarray(start + np.array(judgement.candidates, np.int64))

    def _score(self, judgement: Judgement, weights: Gaussian) -> Float64:
        """Return the scores of the candidates of an answer by the mean of the weights."""
        rows, table = self._find_rows(judgement), self._candidates
        return np.asarray(table.features[rows] @ weights.mean[:-1] + table.base[rows])

    def _check(self, judgement: Judgement, line: int | None = None) -> None:
        """Raise a DataError if an answer is not about the lists."""
        sentence = self._position.get(judgement.id)
        if sentence is None or max(judgement.candidates) >= self.lists.sizes[sentence]:
            raise DataError(
                f"no candidates {judgement.candidates} of the list {quote(judgement.id)}: give "
                "judgements of these lists",
                None if line is None or self._file is None else self._file.path,
                line,
                code="mismatch",
            )

    def _choose(self, lines: int) -> Question:
        """Return the question after some number of lines of the journal."""
        rng = np.random.default_rng([self.seed, lines])
        earlier = [j for j in self.judgements if j.answer != SKIP and j.asked != REPEAT]
        if lines % _REPEAT_EVERY == 0 and earlier:
            repeated = earlier[rng.integers(len(earlier))]
            return self._ask(repeated.id, repeated.candidates[::-1], REPEAT)
        table, pool = self._candidates, self._pool
        if self.rater is None:  # raters with names get the same random questions
            pairs = [s for j in earlier if self.lists.sizes[s := self._position[j.id]] == 2]
            left = np.setdiff1d(pool, pairs)
            pool = left if len(left) else pool
        if self._is_informative(lines):
            asked, about = INFORMATION, ABOUT[lines // 2 % 2]
            sentence, rows = choose_informative(table, pool, self.weights, rng, self.slip, about)
        else:
            asked, sentence = RANDOM, int(rng.choice(pool))
            rows = table.random_pair(sentence, rng)
        first, second = (rng.permutation(rows) - table.offsets[sentence]).tolist()
        return self._ask(self.lists.ids[sentence], (first, second), asked)

    def _is_informative(self, lines: int) -> bool:
        """Return whether a question is an informative one; the others are random."""
        return lines % 2 == 1

    def _ask(self, identifier: int | str, shown: tuple[int, int], asked: str) -> Question:
        """Return the next question."""
        sentence = self._position[identifier]
        texts, sources = self.lists.texts(sentence), self.lists.sources
        source = None if sources is None else sources[sentence]
        pair = texts[shown[0]], texts[shown[1]]
        return Question(identifier, sentence, shown, pair, source, asked, self._lines + 1)


def _prepare(
    lists: NBest,
    start: StartingWeights,
    prior: Prior | None,
    likelihood: Preference,
    options: Mapping[str, Any],
) -> tuple[Prior, Recipe, Weights]:
    """Return the prior of the free weights as in `adapt`, the recipe of features, fixed weights."""
    weights: Any = {} if start.weights is None or start.is_equal else start.weights
    named = Weights(weights)
    if named:  # initial weights, because canonical weights have a narrower prior
        initial = {**dict.fromkeys(lists.feature_names, 0.0), **named, **(start.defaults or {})}
        start = replace(start, weights=None, defaults=initial)
    gain = default_gain(lists, canonical=False)
    family = Isotropic() if prior is None else prior
    prepared = prepare(lists, start, gain=gain, likelihood=likelihood, prior=family, **options)
    warn_about(prepared)
    match = prepared.match
    if unknown := [name for name in named if name not in match.names]:
        warn_user(f"{list_names(unknown)} left out, because the lists do not have it")
    nothing = replace(prepared, judged=Judged.by_gains(prepared.lists[:0]))  # no question yet
    chosen = choose_prior(observe(nothing), nothing)
    log_scale(chosen.record, match)
    recipe = replace(prepared.matched.recipe, free=match.free_names, fixed=match.fixed_names)
    fixed = Weights(zip(match.fixed_names, match.fixed_values.tolist(), strict=True))
    return chosen._replace(posterior=None, record=None), recipe, fixed


def _to_gaussian(prior: Prior) -> Gaussian:
    return Gaussian.prior(np.asarray(prior.mean), prior.full_covariance)


def _prepare_candidates(lists: NBest, recipe: Recipe, fixed: Weights) -> Candidates:
    """Return the free features of all candidates, and the scores by the fixed features.

    Both are relative to the first candidate of each list.
    """
    table = recipe.apply(lists)
    features = subtract_first(table.features, table.sizes)
    columns = find_positions(recipe.free, table.feature_names)
    base = np.array([fixed.get(name, 0.0) for name in table.feature_names])
    numbers: dict[str, int] = {}
    text = [numbers.setdefault(_simplify(value), len(numbers)) for value in table.strings]
    return Candidates(
        features=features[:, columns],
        base=features @ base,
        offsets=np.asarray(table.offsets, np.int64),
        text=np.array(text, np.int64)[table.string_index],
    )


def _simplify(text: str) -> str:
    """Return a text without case, blanks and punctuation, unless nothing else is left.

    >>> _simplify("A cat, a dog!") == _simplify("a cat a dog"), _simplify("?!") == _simplify("?")
    (True, False)
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or folded

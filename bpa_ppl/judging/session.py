"""Session: comparisons of candidates by one rater, and the posterior after each answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.caching import content_hash
from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, UsageError, checked_seed, one_of, quoted, require
from bpa_ppl.judging.answers import Answers, Gaussian, learn_scale, posterior
from bpa_ppl.judging.journal import (
    INFORMATION,
    RANDOM,
    REPEAT,
    SKIP,
    Journal,
    JournalFile,
    Judgement,
)
from bpa_ppl.judging.merging import with_judgements
from bpa_ppl.judging.outlook import Outlook, outlook
from bpa_ppl.judging.questions import ABOUT, Candidates, informative
from bpa_ppl.models import Preference, Preparation, Prior
from bpa_ppl.models.priors.isotropic import OF_ANSWERS
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import capture_notes, log_info, replay, warn_user
from bpa_ppl.posterior import Draws
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.sampling.adapting import EQUALS_PRIOR, adapt, problem_of
from bpa_ppl.sampling.options import AdaptOptions
from bpa_ppl.sampling.target import Sampled

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: Every so many questions an earlier pair is asked again, with the sides exchanged.
_REPEAT_EVERY = 12


@dataclass(frozen=True)
class Question:
    """Two candidates to compare.

    Attributes:
        id: of the list.
        sentence: its position.
        candidates: their positions in the list, in the order in which they are shown.
        texts: of the candidates.
        source: of the list, or None.
        asked: why: `random`, `information` or `repeat`.
        number: of the line of the journal that the answer will have, which identifies it.

    >>> Question(7, 0, (1, 0), ("a cat", "cat"), "un chat", "random", 2).texts[0]
    'a cat'
    """

    id: int | str
    sentence: int
    candidates: tuple[int, ...]
    texts: tuple[str, ...]
    source: str | None
    asked: str
    number: int


class Session:
    """Comparisons of two candidates, and the posterior of the weights after each.

    Every other question is the one of some random ones from which most is expected to be learned
    (Lindley 1956), in turn about the weights and about the choices of all lists. The others are
    random, so that predictions of their answers are an unbiased test of the weights. Every twelfth
    question repeats an earlier one in the opposite order.

    Args:
        lists: with features; a list of fewer than two different texts is never asked about.
        prior: where the weights start. None is mean 0 but for log-probabilities, and `"equal"` the
            mean of the standardised features, both as in `adapt`; weights by feature are the mean
            of the same Gaussian; or a `Prior`, or a posterior, whose mean and covariance are used.
        journal: a file to which each answer is appended before `answer` returns. If it exists, the
            session goes on from its last answer.
        rater: the name of the rater, for the journal.
        seed: of the questions.
        slip: the probability of a random answer, see `bpa_ppl.models.Preference`.
        **options: options of `adapt` that say what the features are: `features`, `exclude`,
            `categorical`, `add`, `fixed`, `defaults`, `lower_is_better`.

    Attributes:
        lists: as given.
        features: names of the features with a free weight.
        weights: (K + 1) the Gaussian approximation of their posterior; log ν is the last value.

    Raises:
        DataError: if there is no pair to compare, or the journal is of other lists.
        UsageError: if an option makes no sense.

    >>> texts, quality = [["a cat", "cat the"], ["the dog", "dog"]], [[[2.0], [0.0]]] * 2
    >>> session = Session(NBest.from_lists(texts, quality, ["quality"]))
    >>> for _ in range(4):
    ...     better = session.next().candidates.index(0)
    ...     _ = session.answer(("first", "second")[better])
    >>> bool(session.weights.mean[0] > 0), session.choices().tolist(), len(session.judgements)
    (True, [0, 0], 4)
    >>> session.outlook().answers, bool(session.probabilities(0)[0] > 0.5)
    (4, True)
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
        prior: str | Mapping[str, float] | Prior | Posterior | None = None,
        *,
        journal: str | Path | None = None,
        rater: str | None = None,
        seed: int = 0,
        slip: float = 0.05,
        **options: Any,
    ) -> None:
        require(lists, NBest, "a session compares candidates of n-best lists (NBest)", "lists")
        self.lists, self.rater, self.seed, self.slip = lists, rater, checked_seed(seed), slip
        header = {
            "lists": Path(lists.origin).name,
            "sha256": content_hash(lists),
            "seed": self.seed,
        }
        if rater is not None:
            header["rater"] = rater
        same = [name for name in ("sha256", "rater") if name in header]
        self._file = None if journal is None else JournalFile(journal, header, same)
        self._likelihood = Preference(slip=slip)
        self._options = options
        start = _start(lists, prior, self._likelihood, options)
        self._weights_start, self._prior_of, self._scaled, self._draws = start
        self.prior = self._prior_of(OF_ANSWERS.median(self._scaled))
        self.features = tuple(self.prior.names or ())
        self._candidates = _candidates(lists, self._draws)
        texts, starts = self._candidates.text, self._candidates.offsets[:-1]
        low, high = (extreme.reduceat(texts, starts) for extreme in (np.minimum, np.maximum))
        self._pool = np.flatnonzero(low != high)  # lists with two different texts
        if not len(self._pool):
            problem = "no list has two different candidates: there is nothing to compare"
            raise DataError(problem, lists.origin, code="no-data")
        if skipped := len(lists) - len(self._pool):
            log_info(
                f"{counted(skipped, 'list')} of {len(lists)} left out: all candidates are alike"
            )
        self._position = {identifier: s for s, identifier in enumerate(lists.ids)}
        self._before = _gaussian(self.prior)
        self._choices_before = self._candidates.choices(self._before)
        self._restore(Journal(header) if self._file is None else self._file.journal)

    def _restore(self, journal: Journal) -> None:
        """Start from the answers of a journal."""
        self._lines = 1 + len(journal.lines)
        self._judgements = journal.kept
        for number, judgement in self._judgements.items():
            self._check(judgement, number)
        undone = journal.undone
        self._question = None if undone is None else self._asked(undone)
        self._recompute()

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """The answers that were not taken back, with those that were skipped."""
        return tuple(self._judgements.values())

    def next(self) -> Question:
        """Return the next question; the same one until it is answered."""
        if self._question is None:
            self._question = self._choose(self._lines)
        return self._question

    def answer(self, answer: str, *, correction: str | None = None) -> Judgement:
        """Record the answer to the question that `next` returned, and update the posterior.

        Args:
            answer: the place of the better candidate, `first` or `second`; `tie`; or `skip`.
            correction: a text that the rater wrote for the source.

        Raises:
            DataError: if the journal cannot be written; the answer then does not count.
            UsageError: if there is no such answer.
        """
        question = self.next()
        return self.add(
            Judgement(
                id=question.id,
                candidates=question.candidates,
                answer=answer,
                asked=question.asked,
                rater=self.rater,
                correction=correction,
            )
        )

    def add(self, judgement: Judgement) -> Judgement:
        """Record an answer to any question, such as one of another annotation tool.

        Args:
            judgement: its prediction is computed, and its time is now if it has none.

        Returns:
            the judgement as it was recorded.

        Raises:
            DataError: if the lists do not have the candidates, or the journal cannot be written;
                the answer then does not count.
        """
        self._check(judgement)
        predicted = softmax(self._scores(judgement, self.weights))
        judgement = replace(
            judgement,
            predicted=tuple(predicted.round(4).tolist()),
            time=judgement.time or datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self._judgements[self._append(judgement.record())] = judgement
        self._question = None
        self._update()
        return judgement

    def batch(self, count: int) -> list[Question]:
        """Return several questions at once, for another annotation tool; see `add`.

        They are chosen by the present weights, so that small batches tell more.
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
        judgement = self._judgements.pop(number)
        self._question = self._asked(judgement)
        self._recompute()
        return judgement

    def probabilities(self, sentence: int) -> Float64:
        """Return the probability that each candidate of a list is the best, (N,)."""
        table = self._candidates.lists(np.array([sentence]))
        draws = self.weights.sample(np.random.default_rng(0), 400)[:, :-1]
        best = table.best(table.scores(draws))[0]
        return np.bincount(best, minlength=len(table.base)) / len(draws)

    def choices(self, lists: NBest | None = None) -> Int64:
        """Return the position of the candidate of each list that the mean weights choose, (S,).

        Args:
            lists: others than those of the session, with the same features.

        Raises:
            DataError: if they do not have the features.
        """
        table = self._candidates if lists is None else _candidates(lists, self._draws)
        return table.choices(self.weights)

    def outlook(self) -> Outlook:
        """Return what the answers so far have changed, and what further ones would."""
        table, before = self._candidates, self._choices_before
        answers = [(j, self._scores(j, self._before)) for j in self.judgements]
        return outlook(table, self._pool, before, self.weights, answers)

    @property
    def judged(self) -> NBest:
        """The lists with the answers so far as `preferences` and `ties`."""
        return with_judgements(self.lists, [Journal({}, self.judgements)])

    @property
    def posterior(self) -> InferenceData:
        """The posterior given all answers, drawn by `adapt`.

        Raises:
            DataError: if there is no answer but `skip` yet.
        """
        return adapt(
            self.judged,
            self._weights_start,
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

    def _recompute(self) -> None:
        """Compute the posterior from the prior and all answers."""
        self.weights, self._learned = self._before, 0
        self.prior = self._prior_of(OF_ANSWERS.median(self._scaled))
        self._update()

    def _update(self) -> None:
        """Compute the posterior; learn the scale of the prior again if it is due.

        The scale is learned after each of the first seven answers, then each time their number has
        grown by an eighth to a quarter. This depends on the number alone, so that a session that is
        resumed from a journal has the same scale.
        """
        given = [judgement for judgement in self.judgements if judgement.chosen is not None]
        count, rows = len(given), np.array(list(map(self._rows, given)), np.int64).reshape(-1, 2)
        chosen = np.array([judgement.chosen for judgement in given], np.int64)

        def answers(end: int) -> Answers:
            return self._candidates.alternatives(rows[:end]), chosen[:end]

        rounded = count - count % (1 << max(0, count.bit_length() - 3))
        if self._scaled and rounded != self._learned:
            scale = learn_scale(
                answers(rounded),
                lambda scale: _gaussian(self._prior_of(scale)),
                self._scaled,
                self.slip,
            )
            self.prior, self._learned = self._prior_of(scale), rounded
        start = self.weights.mean
        self.weights = posterior(answers(count), _gaussian(self.prior), self.slip, start)

    def _rows(self, judgement: Judgement) -> Int64:
        """Return the rows of the candidates of an answer."""
        start = self._candidates.offsets[self._position[judgement.id]]
        return np.asarray(start + np.array(judgement.candidates, np.int64))

    def _scores(self, judgement: Judgement, weights: Gaussian) -> Float64:
        """Return the scores of the candidates of an answer by the mean of the weights."""
        rows, table = self._rows(judgement), self._candidates
        return np.asarray(table.features[rows] @ weights.mean[:-1] + table.base[rows])

    def _check(self, judgement: Judgement, line: int | None = None) -> None:
        """Raise a DataError if an answer is not about the lists."""
        sentence = self._position.get(judgement.id)
        if sentence is None or max(judgement.candidates) >= self.lists.sizes[sentence]:
            problem = f"the list {quoted(judgement.id)} has no candidates {judgement.candidates}"
            path = None if line is None or self._file is None else self._file.path
            raise DataError(problem, path, line, code="mismatch")

    def _choose(self, lines: int) -> Question:
        """Return the question after some number of lines of the journal."""
        rng = np.random.default_rng([self.seed, lines])
        if lines % _REPEAT_EVERY == 0:
            earlier = [j for j in self.judgements if j.answer != SKIP and j.asked != REPEAT]
            if earlier:
                repeated = earlier[rng.integers(len(earlier))]
                return self._asked(Judgement(repeated.id, repeated.candidates[::-1], SKIP, REPEAT))
        table, pool = self._candidates, self._pool
        if self._is_informative(lines):
            asked, about = INFORMATION, ABOUT[lines // 2 % 2]
            sentence, rows = informative(table, pool, self.weights, rng, self.slip, about)
        else:
            asked, sentence = RANDOM, int(rng.choice(pool))
            rows = table.random_pair(sentence, rng)
        shown = rng.permutation(rows) - table.offsets[sentence]
        return self._asked(Judgement(self.lists.ids[sentence], tuple(shown.tolist()), SKIP, asked))

    def _is_informative(self, lines: int) -> bool:
        """Return whether a question is one of those that tell most; the others are random."""
        return lines % 2 == 1

    def _asked(self, judgement: Judgement) -> Question:
        """Return the question that a judgement answers."""
        sentence, shown = self._position[judgement.id], judgement.candidates
        texts, sources = self.lists.texts(sentence), self.lists.sources
        source, number = None if sources is None else sources[sentence], self._lines + 1
        chosen = tuple(texts[position] for position in shown)
        return Question(judgement.id, sentence, shown, chosen, source, judgement.asked, number)


def _start(
    lists: NBest, prior: Any, likelihood: Preference, options: Mapping[str, Any]
) -> tuple[str | None, Callable[[float], Prior], int, Draws]:
    """Return where the weights of a session start: the prior is the one that `adapt` builds.

    Returns:
        the initial weights for `adapt`; a function that returns the prior of the free weights with
        a scale τ of those that it scales; how many these are; and draws that record how the
        features of the lists are made.

    Raises:
        UsageError: if the prior is of another type.
    """
    start = prior if prior is None or isinstance(prior, str) else None
    if isinstance(start, str):
        one_of(start, ("equal",), "prior")
    family = prior if isinstance(prior, Prior) else "isotropic"
    if start is None and prior is not None and not isinstance(prior, Prior | Mapping):
        family = Prior.of(prior)
    if isinstance(prior, Mapping):  # as initial weights: the prior of canonical ones is narrower
        initial = dict.fromkeys(lists.feature_names, 0.0) | {**prior}
        options = {**options, "defaults": initial | (options.get("defaults") or {})}
    settings = AdaptOptions(
        sampler="map", likelihood=likelihood, prior=family, prior_only=True, **options
    )
    with capture_notes() as notes:
        problem = problem_of(lists, start, settings)
    replay([note for note in notes if note.message != EQUALS_PRIOR])  # answers are added later
    mean = np.asarray(problem.target.prior.mean, np.float64)
    draws = problem.draws(Sampled({WEIGHTS: mean[None, None]}, kind="point"), {})
    if isinstance(prior, Mapping):
        _require_features(prior, (*draws.features, *draws.fixed))
    return start, problem.prior_of, problem.scaled, draws


def _gaussian(prior: Prior) -> Gaussian:
    return Gaussian.prior(np.asarray(prior.mean), prior.full_covariance)


def _require_features(weights: Mapping[str, float], names: Sequence[str]) -> None:
    """Warn of weights of features that the lists do not have.

    Raises:
        DataError: if they have none of them.
    """
    if unknown := [name for name in weights if name not in names]:
        if len(unknown) == len(weights):
            problem = f"the lists have no feature {unknown[0]}: choose from {', '.join(names)}"
            raise DataError(problem, parameter="prior", code="missing-feature")
        warn_user(f"{', '.join(unknown)} left out, because the lists do not have it")


def _candidates(lists: NBest, draws: Draws) -> Candidates:
    """Return the weighted features of all candidates, and the score of the fixed ones."""
    table = Preparation.recorded(draws)(lists)
    columns = [table.feature_names.index(name) for name in draws.features]
    fixed = draws.aligned(table, np.zeros((1, len(columns))))[0]
    numbers: dict[str, int] = {}
    text = [numbers.setdefault(_plain(value), len(numbers)) for value in table.strings]
    return Candidates(
        features=table.features[:, columns].astype(np.float64),
        base=table.features @ fixed,
        offsets=np.asarray(table.offsets, np.int64),
        text=np.array(text, np.int64)[table.string_index],
    )


def _plain(text: str) -> str:
    """Return a text without case, blanks and punctuation, if anything is left.

    >>> _plain("A cat, a dog!") == _plain("a cat a dog"), _plain("?!") == _plain("?")
    (True, False)
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or folded

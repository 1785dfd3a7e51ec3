"""Descriptions of lists: what was read, what looks wrong, and what `adapt` would do with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl.adapting.likelihood import UNUSED, choose_likelihood
from bpa_ppl.adapting.propose import PLACEHOLDER, Proposal, find_gains, propose
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import DataError, locate
from bpa_ppl.formats.block import JUDGEMENTS
from bpa_ppl.formats.roles import to_patterns
from bpa_ppl.gains.column import find_judged, select_judged
from bpa_ppl.gains.gains import AnyGain, default_gain, resolve
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.misplaced import describe_misplaced, warn_of_misplaced
from bpa_ppl.gains.oracles import oracles
from bpa_ppl.gains.preferences import has_preferences, iter_choices
from bpa_ppl.lists.columns import (
    LIST,
    TEXT,
    TRUTH,
    CandidateColumn,
    ColumnSummary,
    Example,
    describe_outliers,
    read_column,
    read_columns,
    read_examples,
)
from bpa_ppl.lists.nbest import NBest, demote_to_extras, promote_to_features
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.weights import CANONICAL, describe_totals, initial_weights

if TYPE_CHECKING:  # it loads JAX
    from bpa_ppl.adapting.prepare import Prepared

_HEADER = ("column", "type", "kind", "min", "median", "max", "within lists", "missing", "different")


class Plan(NamedTuple):
    """What `adapt` does with lists by default, without canonical weights.

    Attributes:
        gain: the metric or column; None for preferences.
        likelihood: the name of the likelihood.
        prior: the name of the prior.
        sampler: the name of the sampler.
        ties: the policy for ties between oracles.
        start: the features that start with a weight, because they are log-probabilities.
        judged: the number of lists with at least two candidates that have a gain.
        tied: in how many of them several candidates are the best.
        equal: in how many of them all candidates are equally good.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [1.5]]], ["lm"], references=["b"])
    >>> describe(lists).plan.gain, describe(lists).plan.likelihood
    ('chrf', 'margin')
    """

    gain: str | None
    likelihood: str
    prior: str
    sampler: str
    ties: str
    start: tuple[str, ...]
    judged: int = 0
    tied: int = 0
    equal: int = 0


@dataclass(frozen=True)
class Description(Outcome):
    """What is in lists.

    Attributes:
        origin: where the lists are from.
        sentences: the number of lists.
        candidates: the number of candidates.
        sizes: the minimum, the median and the maximum number of candidates of a list.
        missing_ids: the number of sentences between the first and the last id without a list.
        columns: the columns of the candidates, features first.
        texts: the number of different values of each column of texts.
        lists: the names of the columns of lists.
        verdicts: of each column of true and false, how many are true, and known.
        gains: the columns that may be the gain: extras of numbers, and of true and false, that vary
            within lists.
        of_sentences: the names of extras of sentences.
        sources: the number of sentences with a source.
        references: the number of sentences with a reference.
        among: in how many of them a reference is among the candidates.
        duplicates: the number of candidates with the text of another one before them in the list.
        empty: the number of candidates whose text is empty or blank.
        examples: the first candidates of the first list that has several.
        plan: what `adapt` does in the call that is proposed; None if there is nothing to learn
            from, the user has to choose the gain, or `adapt` refuses the preferences.
        warnings: what looks wrong, with a remedy.
        proposal: the call of `adapt` to paste, and why it leaves out columns.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.5]]], ["lm"])
    >>> describe(lists).warnings
    ('lm is constant within each list, so its weight has no effect',)
    """

    origin: str
    sentences: int
    candidates: int
    sizes: tuple[int, float, int]
    missing_ids: int
    columns: tuple[ColumnSummary, ...]
    texts: dict[str, int]
    lists: tuple[str, ...]
    verdicts: dict[str, tuple[int, int]]
    gains: tuple[str, ...]
    of_sentences: tuple[str, ...]
    sources: int
    references: int
    among: int
    duplicates: int
    empty: int
    examples: tuple[Example, ...]
    plan: Plan | None
    warnings: tuple[str, ...]
    proposal: Proposal

    @property
    def passed(self) -> bool:
        """Whether nothing looks wrong.

        >>> from bpa_ppl import from_lists
        >>> describe(from_lists([["a", "b"]], [[[0.5], [-1.5]]], ["lm"])).passed
        True
        """
        return not self.warnings

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain data, for JSON.

        >>> from bpa_ppl import from_lists
        >>> describe(from_lists([["a", "b"]], [[[0.5], [1.5]]], ["lm"])).as_dict()["sizes"]
        (2, 2.0, 2)
        """
        plain = asdict(self)
        plain["columns"] = [
            {name: _finite_or_none(value) for name, value in column._asdict().items()}
            for column in self.columns
        ]
        plain["examples"] = [example._asdict() for example in self.examples]
        plain["plan"] = None if self.plan is None else self.plan._asdict()
        plain["proposal"] = self.proposal._asdict()
        return plain

    def _summarise(self) -> tuple[str, Table, list[str]]:
        low, median, high = self.sizes
        each = f"{low}" if low == high else f"{low} to {high}, median {median:g},"
        lists = format_count(self.sentences, "list")
        candidates = format_count(self.candidates, "candidate")
        title = f"{locate(self.origin)}{lists}, {candidates}, {each} per list"
        rows = [
            (
                *(column.name, column.type, column.kind),
                *("" if value != value else f"{value:.4g}" for value in column[2:6]),
                f"{column.missing / self.candidates:.0%}",
                "" if column.different is None else f"{column.different:,}",
            )
            for column in self.columns
        ]
        notes = (self._notes(), self._plan_notes(), self._proposal_notes())
        return title, Table(_HEADER, rows), [*chain.from_iterable(notes)]

    def _notes(self) -> Iterator[str]:
        lists = format_count(self.sentences, "list")
        yield from (f"example: {example}" for example in self.examples)
        yield f"sources for {self.sources} of {lists}"
        among = f", which is a candidate in {self.among}" if self.references else ""
        yield f"a reference for {self.references} of {lists}{among}"
        for name, (right, known) in self.verdicts.items():
            yield f"{name}: true in {right} of {known}"
        if self.of_sentences:
            yield f"columns of whole lists: {', '.join(self.of_sentences)}"
        if self.missing_ids:
            missing = format_count(self.missing_ids, "id")
            yield f"{missing} between the first and the last without a list"
        if self.duplicates:
            duplicates = format_count(self.duplicates, "candidate")
            yield f"{duplicates} with the text of another of the list"
        if self.empty:
            yield f"{format_count(self.empty, 'candidate')} with an empty text"
        yield from (f"warning: {warning}" for warning in self.warnings)

    def _plan_notes(self) -> Iterator[str]:
        plan = self.plan
        if plan is None:
            return
        gain = "preferences" if plan.gain is None else f"gain {plan.gain}"
        yield (
            f"adapt: {gain}, likelihood {plan.likelihood}, prior {plan.prior}, sampler "
            f"{plan.sampler}; without canonical weights ties are {plan.ties}, and weights start at "
            + (f"1 / spread for {', '.join(plan.start)}, else 0" if plan.start else "0")
        )
        if plan.gain is not None:
            lists = f"{plan.judged} of {format_count(self.sentences, 'list')}"
            yield (
                f"{plan.gain} is known in {lists}: several candidates are the best in {plan.tied} "
                f"of them, and all are equally good in {plan.equal}"
            )
            if not set(self.of_sentences).isdisjoint(JUDGEMENTS):
                yield UNUSED

    def _proposal_notes(self) -> Iterator[str]:
        yield from (f"left out: {sentence}" for sentence in self.proposal.left_out)
        if self.proposal.command:
            yield f"proposed: {self.proposal.command}"
        if self.proposal.note:
            yield self.proposal.note


def _finite_or_none(value: Any) -> Any:
    """Return a value as JSON has it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def describe(
    lists: NBest, gain: str | Metric | None = None, *, exclude: str | Iterable[str] = ()
) -> Description:
    """Describe lists: what is there, what looks wrong, and which call of `adapt` suits them.

    Args:
        lists: the lists.
        gain: the gain, as for `adapt`. None is, where there are references, chrF, or TER of lists
            with totals; else the preferences of the lists.
        exclude: names, labels and patterns of columns that are not proposed as features.

    Raises:
        UsageError: if there is no such metric or column.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat", "the cat"], ["hi", "hey"]],
    ...     [[[-2.0, 0.7], [-1.0, 0.8], [-4.0, 0.6]], [[-1.0, 0.5], [-2.0, 0.6]]],
    ...     ["logprob", "comet"],
    ...     references=["the cat", "hello"],
    ... )
    >>> print(describe(lists))
    2 lists, 5 candidates, 2 to 3, median 2.5, per list
    column   type    kind     min  median  max  within lists  missing  different
    logprob  number  feature  -4   -2      -1   1.017         0%
    comet    number  feature  0.5  0.6     0.8  0.07071       0%
    - example: list 0: "a cat" (logprob -2, comet 0.7)
    ...
    - proposed: bpa.adapt(lists)
    >>> describe(lists).plan.likelihood, describe(lists, "comet").plan.likelihood
    ('margin', 'pairs')
    """
    require(
        lists, NBest, "describe takes n-best lists (NBest): read a file with read_nbest", "lists"
    )
    with_reference = [place for place, known in enumerate(lists.references or ()) if known]
    metric = resolve(default_gain(lists, canonical=False) if gain is None else gain, lists)
    needy = "references" in metric.needs and not with_reference
    refusal = _explain_refusal(lists) if needy else ""
    columns = read_columns(lists, metric.columns)
    proposal = propose(
        lists,
        columns,
        None if gain is None else _write(gain),
        observed=not needy or has_preferences(lists),
        exclude=to_patterns(exclude, "exclude"),
    )
    numbers = {c.name: c.numbers for c in columns if c.numbers is not None}
    adapted = promote_to_features(lists, {name: numbers[name] for name in proposal.features})
    plan, problem = None, refusal
    if not refusal and proposal.command and proposal.gain != PLACEHOLDER:
        metric = resolve(proposal.gain, lists) if proposal.gain else metric
        plan, problem = _plan(adapted, metric, with_reference)
    if problem:
        proposal = proposal._replace(command="", note="")
    used = dict.fromkeys([*adapted.feature_names, *metric.columns])
    warnings = (problem, *_warnings(adapted, columns, used, with_reference, metric))
    return Description(
        **_count(lists, with_reference),
        **_list_by_type(columns),
        columns=tuple(column.summary for column in columns),
        gains=tuple(column.name for column in find_gains(lists, columns)),
        examples=read_examples(lists, columns),
        plan=plan,
        warnings=tuple(filter(None, warnings)),
        proposal=proposal,
    )


def warn_about(prepared: Prepared) -> None:
    """Warn of what looks wrong with the lists of an adaptation.

    Values of features or gains far from all others, totals of other weights, and references of
    other lists.

    Args:
        prepared: from `prepare`.
    """
    lists, match = prepared.lists, prepared.match
    if match.origin == CANONICAL and (note := describe_totals(lists, match.values)):
        warn_user(note)
    if prepared.oracles is None and prepared.likelihood.observes != "preferences":
        warn_of_misplaced(prepared.judged, prepared.gain)
    for note in _find_outliers(lists, (*lists.feature_names, *prepared.gain.columns)):
        warn_user(f"{locate(lists.origin)}{note}")


def _find_outliers(lists: NBest, columns: Iterable[str]) -> Iterator[str]:
    """Yield a sentence about each column with values far from all others."""
    yield from filter(None, (describe_outliers(lists, name) for name in columns))


def _count(lists: NBest, with_reference: Iterable[int]) -> dict[str, Any]:
    """Return what is counted of lists, by attribute of the description."""
    sizes, ids, references = lists.sizes, lists.sentence_ids, lists.references or ()
    texts = [lists.texts(sentence) for sentence in range(len(lists))]
    return {
        "origin": lists.origin,
        "sentences": len(lists),
        "candidates": len(lists.features),
        "sizes": (int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        "missing_ids": int(np.ptp(ids)) + 1 - len(ids),
        "of_sentences": tuple(lists.sentence_extras),
        "sources": 0 if lists.sources is None else len(lists),
        "references": sum(map(bool, references)),
        "among": sum(not set(references[s]).isdisjoint(texts[s]) for s in with_reference),
        "duplicates": sum(len(members) - len(set(members)) for members in texts),
        "empty": sum(not text.strip() for members in texts for text in members),
    }


def _list_by_type(columns: Iterable[CandidateColumn]) -> dict[str, Any]:
    """Return the columns that have no numbers, by attribute of the description."""
    of_type: dict[str, list[CandidateColumn]] = {TEXT: [], LIST: [], TRUTH: []}
    for column in columns:
        of_type.setdefault(column.summary.type, []).append(column)
    truths = [(c.name, c.numbers) for c in of_type[TRUTH] if c.numbers is not None]
    return {
        "texts": {column.name: column.summary.different for column in of_type[TEXT]},
        "lists": tuple(column.name for column in of_type[LIST]),
        "verdicts": {n: (int(np.nansum(of)), int(np.isfinite(of).sum())) for n, of in truths},
    }


def _write(gain: AnyGain) -> str:
    """Return a gain as it is written in Python."""
    return str(getattr(gain, "__name__", repr(gain)))


def _plan(lists: NBest, gain: Metric, with_reference: list[int]) -> tuple[Plan, str]:
    """Return what `adapt` does, and why it has nothing to learn from, or an empty text."""
    preferences = False
    if "references" in gain.needs:
        preferences = not with_reference
        lists = lists.select(with_reference) if with_reference else lists
    weights = initial_weights(demote_to_extras(lists, gain.columns))
    found = find_judged(lists, gain)
    plan = Plan(
        gain=None if preferences else gain.key,
        likelihood=LIKELIHOODS.name_of(choose_likelihood(gain, lists, of_two=found.of_two)),
        prior="isotropic",
        sampler="auto",
        ties="shared" if lists.totals is None else "canonical",
        start=tuple(name for name, value in weights.items() if value),
    )
    unjudged = bool(gain.columns) and not found.marked.any()
    if preferences:
        return plan, ""
    if unjudged:
        return plan, f"no list has two candidates with a value of {gain.key}: judge more"
    judged, _ = select_judged(lists, gain, found)
    tied = oracles(judged, gain, ties="shared").tied
    equal = np.count_nonzero((tied == judged.sizes) & (tied > 1))
    several = np.count_nonzero(tied > 1)
    plan = plan._replace(judged=len(judged), tied=int(several), equal=int(equal))
    if (tied < judged.sizes).any():
        return plan, ""
    why = f"all candidates of each list are equally good by {gain.key}"
    return plan, f"{why}: nothing can be learned"


def _explain_refusal(lists: NBest) -> str:
    """Return why `adapt` refuses the preferences, or an empty text."""
    try:
        list(iter_choices(lists))
    except DataError as error:
        return f"adapt refuses the preferences: {error.message.removeprefix(locate(error.path))}"
    return ""


def _warnings(
    lists: NBest,
    columns: Iterable[CandidateColumn],
    used: Iterable[str],
    with_reference: list[int],
    gain: Metric,
) -> Iterator[str]:
    """Yield what looks wrong, with a remedy."""
    if singles := int(np.count_nonzero(lists.sizes == 1)):
        what = f"{format_count(singles, 'list')} of one candidate: nothing can be chosen or learned"
        yield what
    if 0 < len(with_reference) < len(lists):
        missing = format_count(len(lists) - len(with_reference), "list")
        yield f"no reference for {missing}: adapt to the others, or name a column as the gain"
    features = [column for column in columns if column.summary.kind == "feature"]
    equal: dict[bytes, str] = {}
    for column in features:
        values = read_column(lists, column.name).tobytes()
        if (other := equal.setdefault(values, column.name)) != column.name:
            yield f"{column.name} is equal to {other}: exclude one"
    for column in features:
        if not column.summary.within:
            yield f"{column.name} is constant within each list, so its weight has no effect"
    yield describe_misplaced(lists, gain)
    yield from _find_outliers(lists, used)

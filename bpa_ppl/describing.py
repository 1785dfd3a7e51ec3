"""Descriptions of lists: what was read, what looks wrong, and what `adapt` would do with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import as_numbers
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import DataError, locate
from bpa_ppl.formats.block import ID, JUDGEMENTS
from bpa_ppl.formats.samples import COUNT, STATISTICS
from bpa_ppl.formats.values import as_verdicts
from bpa_ppl.metrics.column import (
    describe_outliers,
    numeric_columns,
    read_column,
    select_judged,
    select_marked,
)
from bpa_ppl.metrics.gains import default_gain, resolve, resolve_without_lists
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.oracles import oracles
from bpa_ppl.metrics.preferences import has_preferences, iter_choices
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.nbest import NBest, demote_to_extras, find_feature, measure_deviation
from bpa_ppl.sampling.observations import UNUSED, choose_likelihood
from bpa_ppl.weights import initial_weights

_HEADER = ("column", "kind", "min", "median", "max", "within lists", "missing")


class ColumnSummary(NamedTuple):
    """A column of numbers.

    Attributes:
        name: of the column.
        kind: "feature"; "gain", the column that is the gain; or "extra", which has no weight and
            can be the gain.
        minimum: the lowest value.
        median: of all values.
        maximum: the highest value.
        within: the standard deviation within lists.
        missing: the number of candidates without a value.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [1.5]]], ["lm"])
    >>> describe(lists).columns[0].minimum
    0.5
    """

    name: str
    kind: str
    minimum: float
    median: float
    maximum: float
    within: float
    missing: int


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
        columns: the columns of numbers, features first.
        texts: the number of different values of each column of texts.
        lists: the names of the columns of lists.
        verdicts: of each column of verdicts, such as true and false, how many are true, and known.
        gains: the columns that may be judgements: extras of numbers, and columns of verdicts.
        of_sentences: the names of extras of sentences.
        sources: the number of sentences with a source.
        references: the number of sentences with a reference.
        among: in how many of them a reference is among the candidates.
        duplicates: the number of candidates with the text of another one before them in the list.
        empty: the number of candidates whose text is empty or blank.
        plan: what `adapt` does; None if it needs a gain, or refuses the preferences.
        warnings: what looks wrong, with a remedy.

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
    plan: Plan | None
    warnings: tuple[str, ...]

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
            {name: None if value != value else value for name, value in column._asdict().items()}
            for column in self.columns
        ]
        plain["plan"] = None if self.plan is None else self.plan._asdict()
        return plain

    def _summarise(self) -> tuple[str, Table, list[str]]:
        """Return the sizes, the columns, and the rest as notes."""
        low, median, high = self.sizes
        each = f"{low}" if low == high else f"{low} to {high}, median {median:g},"
        lists = format_count(self.sentences, "list")
        candidates = format_count(self.candidates, "candidate")
        title = f"{locate(self.origin)}{lists}, {candidates}, {each} per list"
        rows = [
            (c.name, c.kind, *(f"{v:.4g}" for v in c[2:6]), f"{c.missing / self.candidates:.0%}")
            for c in self.columns
        ]
        return title, Table(_HEADER, rows), [*self._notes(), *self._plan_notes()]

    def _notes(self) -> Iterator[str]:
        lists = format_count(self.sentences, "list")
        yield f"sources for {self.sources} of {lists}"
        among = f", which is a candidate in {self.among}" if self.references else ""
        yield f"a reference for {self.references} of {lists}{among}"
        for name, values in self.texts.items():
            yield f"{name}: {format_count(values, 'different text')}"
        for name in self.lists:
            yield f"{name}: lists"
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
            use = "adapt needs judgements: preferences, references, or a column to name as the gain"
            yield f"{use}: {', '.join(self.gains) or 'none here'}"
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


def describe(nbest: NBest, gain: str | Metric | None = None) -> Description:
    """Describe lists: what was read, what looks wrong, and what `adapt` does with them by default.

    Args:
        nbest: the lists.
        gain: the gain, as for `adapt`. None is, where there are references, chrF, or TER of lists
            with totals; else the preferences of the lists.

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
    column   kind     min  median  max  within lists  missing
    logprob  feature  -4   -2      -1   1.017         0%
    comet    feature  0.5  0.6     0.8  0.07071       0%
    - sources for 0 of 2 lists
    ...
    >>> describe(lists).plan.likelihood, describe(lists, "comet").plan.likelihood
    ('margin', 'risk')
    """
    require(
        nbest, NBest, "describe takes n-best lists (NBest): read a file with read_nbest", "nbest"
    )
    sizes = nbest.sizes
    references = nbest.references or ()
    texts = [nbest.texts(sentence) for sentence in range(len(nbest))]
    with_reference = [place for place, known in enumerate(references) if known]
    plan = _plan(nbest, gain, with_reference)
    refusal = _explain_refusal(nbest) if plan is not None and plan.gain is None else ""
    plan = None if refusal else plan
    judged = () if plan is None or plan.gain is None else resolve_without_lists(plan.gain).columns
    # Lists without columns, whose judged candidates are selected for each column.
    plain = nbest.without(*nbest.feature_names, *nbest.extras, *nbest.sentence_extras)
    columns = tuple(_summary(nbest, plain, name, judged) for name in numeric_columns(nbest))
    ids = nbest.sentence_ids
    extras = nbest.extras.items()
    verdicts = {name: as_verdicts(column) for name, column in extras}
    lists = [name for name, of in extras if any(isinstance(v, list | tuple) for v in of)]
    known = [column for column in columns if column.missing < len(nbest.features)]
    numbers = [column.name for column in known if column.kind != "feature"]
    numbers += [name for name, of in verdicts.items() if of is not None]
    return Description(
        origin=nbest.origin,
        sentences=len(nbest),
        candidates=len(nbest.features),
        sizes=(int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        missing_ids=int(np.ptp(ids)) + 1 - len(ids),
        columns=columns,
        texts={
            name: len(set(filter(None, values)))
            for name, values in extras
            if as_numbers(values) is None
            and verdicts[name] is None
            and name not in lists
            and all(isinstance(v, str | None) for v in values)
        },
        lists=tuple(lists),
        verdicts={
            name: (int(np.nansum(values)), int(np.isfinite(values).sum()))
            for name, values in verdicts.items()
            if values is not None
        },
        gains=tuple(name for name in numbers if name not in (ID, COUNT, *STATISTICS)),
        of_sentences=tuple(nbest.sentence_extras),
        sources=0 if nbest.sources is None else len(nbest),
        references=len(with_reference),
        among=sum(not set(references[place]).isdisjoint(texts[place]) for place in with_reference),
        duplicates=sum(len(members) - len(set(members)) for members in texts),
        empty=sum(not text.strip() for members in texts for text in members),
        plan=plan,
        warnings=tuple(filter(None, (refusal, *_warnings(nbest, columns, plan, with_reference)))),
    )


def _summary(nbest: NBest, plain: NBest, name: str, gain: tuple[str, ...]) -> ColumnSummary:
    kind = "extra" if find_feature(nbest, name) is None else "feature"
    values = read_column(nbest, name)
    is_known = ~np.isnan(values)
    lists, rows = select_marked(plain, is_known)
    if is_known.all():  # lists of one, too, as in the spread that weights are scaled by
        lists, rows = plain, np.arange(len(values))
    finite = values[is_known] if is_known.any() else np.array([np.nan])
    return ColumnSummary(
        name,
        "gain" if name in gain else kind,
        float(finite.min()),
        float(np.median(finite)),
        float(finite.max()),
        measure_deviation(lists, values[rows]) if len(rows) else 0.0,
        int(np.count_nonzero(~is_known)),
    )


def _plan(nbest: NBest, gain: str | Metric | None, with_reference: list[int]) -> Plan | None:
    """Return what `adapt` does; None if it needs a gain."""
    chosen = resolve(default_gain(nbest, canonical=False) if gain is None else gain, nbest)
    preferences = False
    if "references" in chosen.needs:
        if not with_reference and not (preferences := has_preferences(nbest)):
            return None
        nbest = nbest.select(with_reference) if with_reference else nbest
    weights = initial_weights(demote_to_extras(nbest, chosen.columns))
    start = tuple(name for name, value in weights.items() if value)
    likelihood = choose_likelihood(chosen, nbest)
    plan = Plan(
        gain=None if preferences else chosen.key,
        likelihood=LIKELIHOODS.name_of(likelihood),
        prior="isotropic",
        sampler="auto",
        ties="shared" if nbest.totals is None else "canonical",
        start=start,
    )
    columns = [np.isfinite(read_column(nbest, name)) for name in chosen.columns]
    unjudged = any(not select_marked(nbest, marked)[1].size for marked in columns)
    if preferences or unjudged:
        return plan
    lists, _ = select_judged(nbest, chosen)
    tied = oracles(lists, chosen, ties="shared").tied
    equal = np.count_nonzero((tied == lists.sizes) & (tied > 1))
    several = np.count_nonzero(tied > 1)
    return plan._replace(judged=len(lists), tied=int(several), equal=int(equal))


def _explain_refusal(nbest: NBest) -> str:
    """Return why `adapt` refuses the preferences, or an empty text."""
    try:
        list(iter_choices(nbest))
    except DataError as error:
        return f"adapt refuses the preferences: {error.message.removeprefix(locate(error.path))}"
    return ""


def _warnings(
    nbest: NBest, columns: tuple[ColumnSummary, ...], plan: Plan | None, with_reference: list[int]
) -> Iterator[str]:
    """Yield what looks wrong, with a remedy."""
    features = [column for column in columns if column.kind == "feature"]
    if not features:
        yield "no features: add some that need only texts, such as length and consensus"
    if singles := int(np.count_nonzero(nbest.sizes == 1)):
        what = f"{format_count(singles, 'list')} of one candidate: nothing can be chosen or learned"
        yield what
    if 0 < len(with_reference) < len(nbest):
        missing = format_count(len(nbest) - len(with_reference), "list")
        yield f"no reference for {missing}: adapt to the others, or name a column as the gain"
    equal: dict[bytes, str] = {}
    for name in (column.name for column in features):
        if (other := equal.setdefault(read_column(nbest, name).tobytes(), name)) != name:
            yield f"{name} is equal to {other}: exclude one"
    for column in features:
        if not column.within:
            yield f"{column.name} is constant within each list, so its weight has no effect"
        elif note := _describe_running(nbest, column.name):
            yield note
    used = (column.name for column in columns if column.kind != "extra")
    yield from filter(None, (describe_outliers(nbest, name) for name in used))
    if plan is not None and plan.gain is not None and not plan.judged:
        yield f"no list has two candidates with a value of {plan.gain}: judge more"
    elif plan is not None and plan.judged == plan.equal > 0:
        yield f"all candidates of each list are equally good by {plan.gain}: nothing can be learned"


def _describe_running(nbest: NBest, name: str) -> str:
    """Return a note on a feature that counts candidates or rows, or an empty text."""
    if name in (COUNT, *STATISTICS):  # of samples, as `bpa_ppl` computes them
        return ""
    values = read_column(nbest, name)
    steps = np.delete(np.diff(values), nbest.offsets[1:-1] - 1)
    # In lists of two, other steps than 1 may be those of ratings.
    is_long = abs(steps[0]) == 1 or nbest.sizes.max() > 2
    if is_long and not np.ptp(steps) and float(steps[0]).is_integer():
        return f"{name} counts the candidates of each list: exclude it, unless their order matters"
    rows = np.sort(values) - np.arange(len(values))
    if len(rows) > 3 and len(set(np.sign(steps))) == 1 and not (np.ptp(rows) or rows[0] % 1):
        return f"{name} numbers the rows: exclude it"
    return ""

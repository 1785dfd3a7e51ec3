"""Descriptions of lists: what was read, what looks wrong, and the call of `adapt` that suits them.

The call changes nothing: it is printed for the user. Without a gain, references or preferences it
has capital letters in place of the columns that only the user can choose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, are_finite, as_numbers, read_number
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.errors import DataError, escape_controls, locate, quote, write_option
from bpa_ppl.features.recipe import OF_TEXTS
from bpa_ppl.formats.roles import Patterns, to_patterns
from bpa_ppl.gains.gains import AnyGain, default_gain, resolve
from bpa_ppl.gains.judged import find_judged
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.oracles import oracles
from bpa_ppl.gains.preferences import has_preferences, iter_choices
from bpa_ppl.gains.problems import describe_misplaced, describe_repeated, find_outliers
from bpa_ppl.lists.candidate_columns import (
    describe_singles,
    find_names,
    is_absent,
    read_column,
    select_marked,
)
from bpa_ppl.lists.nbest import NBest, find_feature, measure_deviation, promote_to_features

#: What the values of a column are.
NUMBER, TRUTH, TEXT, LIST, OTHER, EMPTY = "number", "true/false", "text", "list", "other", "empty"
_MOST_SHOWN = 3  # candidates
#: Characters of a text, and of other values, in an example; and columns in a line of one.
_OF_TEXT, _OF_VALUE, _COLUMNS_SHOWN = 60, 30, 8
#: In place of the features and of the gain that the user has to choose.
FEATURES, GAIN = "COLUMNS", "COLUMN"
_HEADER = ("column", "type", "kind", "min", "median", "max", "within lists", "missing", "different")
_UNJUDGED = "adapt needs references, preferences, or a column that says how good a candidate is"
_FEWEST_STEPS = 3  # between candidates; fewer may be equal by chance
_CATEGORIES = 20  # different texts of a column that are proposed as categories
_JUDGED = {0.0, 0.5, 1.0}  # numbers of a judgement: wrong, partly right, right
#: Texts that are judgements: a number, also of a scale or with a word next to it, or a verdict.
_VERDICT = re.compile(
    r"(\w+\s*[:=]\s*)?[-+]?\d+([.,]\d+)?(st|nd|rd|th|\s*(%|/\s*\d+|(out )?of \d+)| \w+)?"
    r"|yes|no|true|false|pass(ed)?|fail(ed)?|(in)?correct|good|bad|(ir)?relevant",
    re.IGNORECASE,
)


class ColumnSummary(NamedTuple):
    """A column of the candidates.

    Attributes:
        name: of the column.
        kind: "feature"; "gain", the column that is the gain; or "extra", which has no weight.
        minimum: the lowest number, with false as 0 and true as 1; NaN if there are no numbers.
        median: of all numbers.
        maximum: the highest number.
        within: the standard deviation within lists.
        missing: the number of candidates without a value.
        type: of the values: "number", "true/false", "text", "list", "other", or "empty", if all are
            missing.
        different: the number of different texts; None for other types.

    >>> from bpa_ppl import describe, from_lists
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
    type: str
    different: int | None


@dataclass(frozen=True)
class Description(Outcome):
    """What is in lists.

    Attributes:
        origin: where the lists are from.
        sentences: the number of lists.
        candidates: the number of candidates.
        sizes: the minimum, the median and the maximum number of candidates of a list.
        columns: the columns of the candidates, features first.
        facts: the first candidates of the first list that has several, and what else there is, one
            sentence each.
        gain: what `adapt` learns from in the call: a metric, a column or `preferences`; `COLUMN`,
            if the user has to choose it; empty, if there is nothing to learn from.
        choices: the columns that the user has to choose the gain, and the features, from.
        features: the columns of numbers that the call names as features; `COLUMNS`, if the user has
            to choose them.
        categorical: columns of texts that it makes features of.
        add: sources of features that it adds.
        left_out: a sentence for each column that it leaves out.
        warnings: what looks wrong, with a remedy.
        command: the call of `adapt` to paste; empty if there is nothing to learn from.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [0.5]]], ["lm"])
    >>> describe(lists).warnings
    ('lm is constant within each list, so its weight has no effect',)
    """

    origin: str
    sentences: int
    candidates: int
    sizes: tuple[int, float, int]
    columns: tuple[ColumnSummary, ...]
    facts: tuple[str, ...]
    gain: str
    choices: tuple[str, ...]
    features: tuple[str, ...]
    categorical: tuple[str, ...]
    add: tuple[str, ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    command: str

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
        columns = [
            {
                n: None if v != v or v in (math.inf, -math.inf) else v
                for n, v in of._asdict().items()
            }
            for of in self.columns
        ]
        return {**asdict(self), "columns": columns}

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
        return title, Table(_HEADER, rows), list(self._notes())

    def _notes(self) -> Iterator[str]:
        yield from self.facts
        yield from (f"warning: {warning}" for warning in self.warnings)
        yield from (f"left out: {sentence}" for sentence in self.left_out)
        if self.command and self.choices:
            yield f"to adapt, with your columns: {self.command}"
            yield f"columns to choose from: {', '.join(self.choices)}"
        elif self.command:
            learned = "the preferences" if self.gain == "preferences" else self.gain
            yield f"to learn from {learned}: {self.command}"
        elif not self.gain:
            yield _UNJUDGED


def describe(
    lists: NBest, gain: str | Metric | None = None, *, exclude: str | Iterable[str] = ()
) -> Description:
    """Describe lists: what is there, what looks wrong, and which call of `adapt` suits them.

    The call names all columns of numbers as features, except the gain and those that cannot be
    features, or may be judgements.

    Args:
        lists: the lists.
        gain: the gain, as for `adapt`. None is, where there are references, chrF, or TER of lists
            with totals; else the preferences of the lists. Without them the call has `COLUMNS` and
            `COLUMN` in place of the features and the gain.
        exclude: names, labels and patterns of columns that are not named as features.

    Raises:
        UsageError: if there is no such metric or column.

    >>> from bpa_ppl import from_lists, from_records
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
    - to learn from chrf: bpa.adapt(lists)
    >>> rows = [{"id": 0, "text": text, "lm": lm} for text, lm in (("a", -1.0), ("b", -2.5))]
    >>> describe(from_records(rows)).command
    "bpa.adapt(lists, add=['consensus', 'length'], gain='COLUMN')"
    """
    require(
        lists, NBest, "describe takes n-best lists (NBest): read a file with read_nbest", "lists"
    )
    with_reference = [place for place, texts in enumerate(lists.references or ()) if texts]
    metric = resolve(default_gain(lists, canonical=False) if gain is None else gain, lists)
    needs_references = "references" in metric.needs and not with_reference
    preferences = needs_references and has_preferences(lists)
    columns, numbers = _read_columns(lists, metric.columns)
    excluded = Patterns.of(to_patterns(exclude, "exclude"))
    reasons = _explain_columns(lists, columns, numbers, excluded)
    sizes = lists.sizes.tolist()
    parallel = [n for n, of in lists.sentence_extras.items() if _fits(of, sizes)]
    features = tuple(name for name, reason in reasons.items() if not reason)
    choices: tuple[str, ...] = ()
    learned, problem, counts = metric.key, "", None
    if preferences:
        learned, problem = "preferences", _explain_refusal(lists)
    elif not needs_references:
        counts, problem = _count_judged(lists, metric)
    elif gain is not None:
        learned, problem = "", f"the gain {metric.key} needs references"
    else:
        numeric = [n for n, r in reasons.items() if not r or r.startswith(_JUDGEMENT)]
        choices = (*numeric, *parallel)
        learned = GAIN if choices else ""
        features = (FEATURES,) if len(choices) > 1 else ()
    if lists.feature_names:
        features = ()
        named = "is not named as a feature"
        reasons |= {name: named for name, reason in reasons.items() if not reason}
    names = None if lists.feature_names or features else find_names(lists)
    categorical = (names,) if names else ()
    add = () if lists.feature_names or features or names else OF_TEXTS
    command = ""
    if learned and not problem:
        chosen = {"features": features, "categorical": categorical, "add": add}
        arguments = [f"{name}={list(values)!r}" for name, values in chosen.items() if values]
        if learned == GAIN or gain is not None:
            arguments.append(f"gain={GAIN!r}" if gain is None else f"gain={_write(gain)}")
        command = f"bpa.adapt({', '.join(['lists', *arguments])})"
    adapted = promote_to_features(lists, {n: numbers[n] for n in features if n in numbers})
    used = dict.fromkeys([*adapted.feature_names, *metric.columns])
    warnings = (problem, *_find_problems(adapted, columns, used, with_reference, metric))
    for name in parallel:
        reasons[name] = "is a list with a value for each candidate: "
        reasons[name] += f"make a column of it ({write_option('features', [name])}, or --gain)"
    if alone := describe_singles(lists):
        warnings, reasons, command = (alone,), {}, ""
    facts = [*_show_examples(lists, columns, numbers), *_list_facts(lists, with_reference)]
    if counts is not None:
        judged_lists, tied, equal = counts
        facts.append(
            f"{learned} is known in {judged_lists} of {format_count(len(lists), 'list')}: several "
            f"candidates are the best in {tied} of them, and all are equally good in {equal}"
        )
    return Description(
        origin=lists.origin,
        sentences=len(lists),
        candidates=len(lists.features),
        sizes=(min(sizes), float(np.median(sizes)), max(sizes)),
        columns=columns,
        facts=tuple(facts),
        gain=learned,
        choices=choices,
        features=features,
        categorical=categorical,
        add=add,
        left_out=tuple(
            f"{name} {reason}"
            for name, reason in reasons.items()
            if reason and name not in (*choices, names)
        ),
        warnings=tuple(filter(None, warnings)),
        command=command,
    )


def _read_columns(
    lists: NBest, gain: Iterable[str]
) -> tuple[tuple[ColumnSummary, ...], dict[str, Float64]]:
    """Return the columns of the candidates, features first, and the numbers of those that have any.

    Args:
        lists: the lists.
        gain: the names of columns that are the gain.
    """
    # Lists without columns, whose judged candidates are selected for each column.
    plain = lists.without(*lists.feature_names, *lists.extras, *lists.sentence_extras)
    columns, numbers_of = [], {}
    for name in (*lists.feature_names, *lists.extras):
        feature = find_feature(lists, name)
        values = lists.extras[name] if feature is None else feature
        kind = "gain" if name in gain else "extra" if feature is None else "feature"
        of_type, numbers = _find_type(values, cells=name in lists.cells)
        range_, different = (np.nan,) * 4, None
        if numbers is None:
            present = [value for value in values if not is_absent(value)]
            missing = len(values) - len(present)
            different = len(set(present)) if of_type == TEXT else None
        else:
            numbers_of[name] = numbers
            missing, range_ = int(np.count_nonzero(np.isnan(numbers))), _measure(plain, numbers)
        columns.append(ColumnSummary(name, kind, *range_, missing, of_type, different))
    return tuple(columns), numbers_of


def _find_type(
    values: Sequence[Any] | npt.NDArray[Any], *, cells: bool
) -> tuple[str, Float64 | None]:
    """Return the type of a column, and its numbers."""
    numbers = as_numbers(values, cells=cells)
    if numbers is not None:
        return NUMBER, numbers
    present = [value for value in values if not is_absent(value)]
    kinds = {TRUTH: bool | np.bool_, TEXT: str, LIST: list | tuple | np.ndarray}
    of_type = (name for name, kind in kinds.items() if all(isinstance(v, kind) for v in present))
    type_name = next(of_type, OTHER) if present else EMPTY
    return type_name, as_numbers(values, truths=True) if type_name == TRUTH else None


def _measure(plain: NBest, numbers: Float64) -> tuple[float, float, float, float]:
    """Return the minimum, the median, the maximum and the spread within lists of known numbers."""
    is_known = ~np.isnan(numbers)
    if not is_known.any():
        return np.nan, np.nan, np.nan, 0.0
    present = numbers[is_known]
    lists, rows = select_marked(plain, is_known)
    if is_known.all():  # lists of one, too, as in the spread that weights are scaled by
        lists, rows = plain, np.arange(len(numbers))
    within = np.nan
    if are_finite(present):
        within = measure_deviation(lists, numbers[rows]) if len(rows) else 0.0
    return float(present.min()), float(np.median(present)), float(present.max()), within


def _show_examples(
    lists: NBest, columns: Sequence[ColumnSummary], numbers: Mapping[str, Float64]
) -> Iterator[str]:
    """Yield the first candidates of the first list that has several, else of the first list."""

    def show(column: ColumnSummary, row: int) -> str:
        if column.name not in numbers:
            value = lists.extras[column.name][row]
            text = value if isinstance(value, str) else quote(value, _OF_VALUE)
            return f"{column.name} {_shorten(text, _OF_VALUE)}" if not is_absent(value) else ""
        number = numbers[column.name][row]
        value = bool(number) if column.type == TRUTH else f"{number:.4g}"
        return "" if np.isnan(number) else f"{column.name} {value}"

    sentence = int(np.argmax(lists.sizes > 1))
    for row in range(len(lists.features))[lists.rows(sentence)][:_MOST_SHOWN]:
        shown = list(filter(None, (show(column, row) for column in columns)))
        shown = [*shown[:_COLUMNS_SHOWN], "…"] if len(shown) > _COLUMNS_SHOWN else shown
        text = f'list {lists.ids[sentence]}: "{_shorten(lists.text(row), _OF_TEXT)}"'
        yield f"example: {text}" + (f" ({', '.join(shown)})" if shown else "")


def _shorten(text: str, length: int) -> str:
    r"""Return the beginning of a text as a line.

    >>> _shorten("a cat\nsat", 8)
    'a cat\\n…'
    """
    line = escape_controls(text[: 2 * length])
    return line if len(line) <= length else f"{line[: length - 1]}…"


#: How the reason begins of columns that may be the gain, but are not named as features.
_JUDGEMENT = "may be a judgement: "


def _explain_columns(
    lists: NBest,
    columns: Sequence[ColumnSummary],
    numbers: Mapping[str, Float64],
    excluded: Patterns,
) -> dict[str, str]:
    """Return why extras are not named as features, by their names; empty for those that are."""
    extras = {column.name: column for column in columns if column.kind == "extra"}
    reasons = {
        name: "is excluded" if excluded.fit(name) else _explain(lists, column, numbers.get(name))
        for name, column in extras.items()
    }
    others = [column.name for column in columns if column.kind != "extra"]
    others += [name for name, reason in reasons.items() if not reason]
    equal = _find_equal({name: numbers[name] for name in others if name in numbers})
    return reasons | {n: f"is equal to {other}" for n, other in equal.items() if n in reasons}


def _find_equal(numbers: Mapping[str, Float64]) -> dict[str, str]:
    """Return the columns that are equal to one before, which is the value, by their names."""
    first: dict[bytes, str] = {}
    same = {name: first.setdefault(values.tobytes(), name) for name, values in numbers.items()}
    return {name: other for name, other in same.items() if name != other}


def _explain(lists: NBest, column: ColumnSummary, numbers: Float64 | None) -> str:
    """Return why a column is not named as a feature; an empty text if it is."""
    name, count = column.name, len(lists.features)
    if column.missing == count:
        return "has no values"
    if column.type == TEXT:
        return _explain_texts(lists, column)
    if numbers is None:
        return f"has {'lists' if column.type == LIST else 'values of other types'}"
    present = numbers[~np.isnan(numbers)]
    if np.isnan(column.within):
        return "has numbers that are not finite, or beyond 1e60"
    if not column.within:
        return "is constant in each list"
    if counting := _explain_counting(lists, numbers):
        return counting
    if escape_controls(name) != name or not name:
        return "has a name that cannot be typed: rename the column"
    if column.missing:
        of = format_count(count, "candidate")
        remedy = f"({write_option('missing', [name], number='VALUE')})"
        problem = f"{_JUDGEMENT}it is missing for {column.missing:,} of {of}"
        return f"{problem}: give a value if it is a feature {remedy}"
    if column.type == TRUTH:
        return f"{_JUDGEMENT}it is true or false"
    if _JUDGED.issuperset(np.unique(present).tolist()):
        return f"{_JUDGEMENT}it has no numbers but 0, 0.5 and 1: name it if it is a feature"
    return ""


def _explain_texts(lists: NBest, column: ColumnSummary) -> str:
    """Return what can be done with a column of texts."""
    name, values, different = column.name, lists.extras[column.name], column.different or 0
    if all(len(set(values[a:b])) == 1 for a, b in pairwise(lists.offsets.tolist())):
        return "is constant in each list"
    texts = [value for value in values if not is_absent(value)]
    words = [text for text in texts if read_number(text, cells=name in lists.cells) is None]
    if 2 * len(words) < len(texts):
        remedy = "write numbers, and leave cells empty where there is none"
        return f"has texts among its numbers, such as {quote(words[0])}: {remedy}"
    if all(map(_VERDICT.fullmatch, map(str.strip, texts))):
        return f"has judgements as texts, such as {quote(texts[0])}: write numbers"
    what = f"has texts ({different:,} different)"
    # As names of systems, each of which has one candidate of a list, and of many lists.
    of_lists = [values[a:b] for a, b in pairwise(lists.offsets.tolist())]
    once = all(len(set(of_list)) == len(of_list) for of_list in of_lists)
    if not once or len(texts) < len(values) or different > min(_CATEGORIES, len(values) // 2):
        return what
    return f"{what}: make a feature of each ({write_option('categorical', [name])})"


def _explain_counting(lists: NBest, numbers: Float64) -> str:
    """Return whether a column numbers the rows, or counts candidates; an empty text for others."""
    if not are_finite(numbers):
        return ""
    steps = np.delete(np.diff(numbers), lists.offsets[1:-1] - 1)
    if len(steps) < _FEWEST_STEPS or not steps[0]:
        return ""
    if (steps > 0).all() and not np.ptp(np.sort(numbers) - np.arange(len(numbers))):
        return "numbers the rows"
    return "" if np.ptp(steps) else "counts the candidates of each list"


def _write(gain: AnyGain) -> str:
    """Return a gain as it is written in Python."""
    return str(getattr(gain, "__name__", repr(gain)))


def _count_judged(lists: NBest, gain: Metric) -> tuple[tuple[int, int, int], str]:
    """Return `Description.known`, and why nothing can be learned, or an empty text."""
    judged = find_judged(lists, gain).lists
    if gain.columns and not len(judged):
        return (0, 0, 0), f"no list has two candidates with a value of {gain.key}: judge more"
    tied = oracles(judged, gain, ties="shared").tied
    equal, several = (tied == judged.sizes) & (tied > 1), tied > 1
    counts = len(judged), int(np.count_nonzero(several)), int(np.count_nonzero(equal))
    if (tied < judged.sizes).any():
        return counts, ""
    why = f"all candidates of each list are equally good by {gain.key}"
    return counts, f"{why}: nothing can be learned"


def _explain_refusal(lists: NBest) -> str:
    """Return why `adapt` refuses the preferences, or an empty text."""
    try:
        list(iter_choices(lists))
    except DataError as error:
        return f"adapt refuses the preferences: {error.message.removeprefix(locate(error.path))}"
    return ""


def _list_facts(lists: NBest, with_reference: Sequence[int]) -> Iterator[str]:
    """Yield what lists have in addition to columns of candidates."""
    count, ids = format_count(len(lists), "list"), lists.sentence_ids
    texts = [lists.texts(sentence) for sentence in range(len(lists))]
    yield f"sources for {0 if lists.sources is None else len(lists)} of {count}"
    references = lists.references or ()
    among = sum(not set(references[s]).isdisjoint(texts[s]) for s in with_reference)
    among_candidates = f", which is a candidate in {among}" if with_reference else ""
    yield f"a reference for {len(with_reference)} of {count}{among_candidates}"
    if lists.sentence_extras:
        yield f"columns of whole lists: {', '.join(lists.sentence_extras)}"
    if missing := int(np.ptp(ids)) + 1 - len(ids):
        yield f"{format_count(missing, 'id')} between the first and the last without a list"
    if duplicates := sum(len(members) - len(set(members)) for members in texts):
        yield f"{format_count(duplicates, 'candidate')} with the text of another of the list"
    if empty := sum(not text.strip() for members in texts for text in members):
        yield f"{format_count(empty, 'candidate')} with an empty text"


def _fits(values: Iterable[Any], sizes: Iterable[int]) -> bool:
    """Return whether each value is a list with a number, or true or false, for each candidate."""
    pairs = [(of, n) for of, n in zip(values, sizes, strict=True) if of is not None]
    kinds = {int, float, bool, type(None)}
    return bool(pairs) and all(
        isinstance(of, list | tuple) and len(of) == n and kinds.issuperset(map(type, of))
        for of, n in pairs
    )


def _find_problems(
    lists: NBest,
    columns: Iterable[ColumnSummary],
    used: Iterable[str],
    with_reference: Sequence[int],
    gain: Metric,
) -> Iterator[str]:
    """Yield what looks wrong, with a remedy."""
    if singles := int(np.count_nonzero(lists.sizes == 1)):
        yield f"{format_count(singles, 'list')} of one candidate: nothing can be chosen or learned"
    if 0 < len(with_reference) < len(lists):
        missing = format_count(len(lists) - len(with_reference), "list")
        yield f"no reference for {missing}: adapt to the others, or name a column as the gain"
    features = {column.name: column.within for column in columns if column.kind == "feature"}
    for name, other in _find_equal({name: read_column(lists, name) for name in features}).items():
        yield f"{name} is equal to {other}: exclude one"
    for name, within in features.items():
        if not within:
            yield f"{name} is constant within each list, so its weight has no effect"
    yield describe_misplaced(lists, gain)
    yield describe_repeated(lists, gain)
    yield from find_outliers(lists, used)

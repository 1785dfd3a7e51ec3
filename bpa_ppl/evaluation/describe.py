"""Descriptions of lists: counts, the columns of the candidates, and examples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, are_finite, as_numbers
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.errors import escape_controls, locate, quote
from bpa_ppl.gains.example import describe_pair
from bpa_ppl.gains.gains import resolve
from bpa_ppl.gains.judged import find_judged
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.oracles import judge_candidates, rank_candidates
from bpa_ppl.lists.candidate_columns import is_absent, select_marked
from bpa_ppl.lists.nbest import NBest, find_feature, measure_deviation

#: What the values of a column are.
NUMBER, TRUTH, TEXT, LIST, OTHER, EMPTY = "number", "true/false", "text", "list", "other", "empty"
_MOST_SHOWN = 2  # candidates
#: Characters of a text, and of other values, in an example; and columns in a line of one.
_OF_TEXT, _OF_VALUE, _COLUMNS_SHOWN = 60, 30, 8
_HEADER = ("column", "type", "kind", "min", "median", "max", "within lists", "missing", "different")


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

    >>> from bpa_ppl import describe, from_lists
    >>> describe(from_lists([["a", "b"]], [[[0.5], [0.5]]], ["lm"])).facts[-1]
    'a reference for 0 of 1 list'
    """

    origin: str
    sentences: int
    candidates: int
    sizes: tuple[int, float, int]
    columns: tuple[ColumnSummary, ...]
    facts: tuple[str, ...]

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

    def _summarise(self) -> tuple[str, Table, Sequence[str]]:
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
        return title, Table(_HEADER, rows), self.facts


def describe(lists: NBest, gain: str | Metric | None = None) -> Description:
    """Describe lists: how many there are, their columns, and examples.

    Args:
        lists: the lists.
        gain: the gain, as for `adapt`: which of two candidates is better by it, and in how many
            lists it is known; None shows neither.

    Raises:
        DataError: if the gain needs references, and there are none.
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
    - example: list 0: "the cat" (logprob -1, comet 0.8)
    - sources for 0 of 2 lists
    - a reference for 2 of 2 lists, which is a candidate in 1
    - 1 candidate with the text of another of the list
    """
    require(
        lists, NBest, "describe takes n-best lists (NBest): read a file with read_nbest", "lists"
    )
    metric = None if gain is None else resolve(gain, lists)
    columns, numbers = _read_columns(lists, () if metric is None else metric.columns)
    facts = [*_show_examples(lists, columns, numbers), *_list_facts(lists)]
    if metric is not None:
        facts += _describe_judged(lists, metric)
    sizes = lists.sizes.tolist()
    return Description(
        origin=lists.origin,
        sentences=len(lists),
        candidates=len(lists.features),
        sizes=(min(sizes), float(np.median(sizes)), max(sizes)),
        columns=columns,
        facts=tuple(facts),
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


def _describe_judged(lists: NBest, gain: Metric) -> Iterator[str]:
    """Yield a pair of which one is better, and in how many lists a gain is known and tied."""
    judged = find_judged(lists, gain).lists
    known = f"{gain.key} is known in {len(judged)} of {format_count(len(lists), 'list')}"
    if not len(judged):
        yield known
        return
    ranking = rank_candidates(judged, None)
    best, scores = judge_candidates(judged, gain, ranking, "shared")
    if example := describe_pair(judged, gain, scores):
        yield example
    tied = best.tied
    several = int(np.count_nonzero(tied > 1))
    equal = int(np.count_nonzero((tied == judged.sizes) & (tied > 1)))
    yield (
        f"{known}: several candidates are the best in {several} of them, and all are equally good "
        f"in {equal}"
    )


def _list_facts(lists: NBest) -> Iterator[str]:
    """Yield what lists have in addition to columns of candidates."""
    count, ids = format_count(len(lists), "list"), lists.sentence_ids
    texts = [lists.texts(sentence) for sentence in range(len(lists))]
    yield f"sources for {0 if lists.sources is None else len(lists)} of {count}"
    references = lists.references or ()
    with_reference = [place for place, texts in enumerate(references) if texts]
    among = sum(not set(references[s]).isdisjoint(texts[s]) for s in with_reference)
    among_candidates = f", which is a candidate in {among}" if with_reference else ""
    yield f"a reference for {len(with_reference)} of {count}{among_candidates}"
    if lists.sentence_extras:
        yield f"columns of whole lists: {', '.join(lists.sentence_extras)}"
    if singles := int(np.count_nonzero(lists.sizes == 1)):
        yield f"{format_count(singles, 'list')} of one candidate"
    if missing := int(np.ptp(ids)) + 1 - len(ids):
        yield f"{format_count(missing, 'id')} between the first and the last without a list"
    if duplicates := sum(len(members) - len(set(members)) for members in texts):
        yield f"{format_count(duplicates, 'candidate')} with the text of another of the list"
    if empty := sum(not text.strip() for members in texts for text in members):
        yield f"{format_count(empty, 'candidate')} with an empty text"

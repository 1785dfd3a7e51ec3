"""Sampled answers to prompts: statistics of their tokens, repeats, and answers that are left out.

Columns of the candidates:

    logprob.sum, logprob.mean, logprob.min   of the log-probabilities of the tokens
    length                                   the number of tokens
    count                                    how often the answer was sampled for its prompt

A column without any value is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.arrays import Float64, Int32, Int64
from bpa_ppl.columns import counted, intern
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.rows.base import Columns
from bpa_ppl.rows.names import ID, OF_SENTENCE, SOURCE, TEXT

#: Names of the statistics of tokens.
STATISTICS = ("logprob.sum", "logprob.mean", "logprob.min", "length")
COUNT = "count"
_SHOWN = 5  # names of prompts that a message lists
_ROUNDING = 0.01  # by which sums of log-probabilities may be positive
_UNLIKELY = -9999.0  # what OpenAI writes for a token that is not among the most probable ones

Statistics = tuple[float, ...]


def token_statistics(logprobs: Sequence[float]) -> Statistics | None:
    """Return sum, mean and minimum of the log-probabilities of tokens, and their number.

    None if there are no tokens.

    >>> token_statistics([-1.0, -0.5])
    (-1.5, -0.75, -1.0, 2)
    """
    if not logprobs:
        return None
    total = sum(logprobs)
    return total, total / len(logprobs), min(logprobs), len(logprobs)


class Prompt(NamedTuple):
    """A prompt.

    Attributes:
        line: the line, or the number, of its first answer.
        identifier: its name, or None.
        source: the source text, or None.

    >>> Prompt(3).label, Prompt(3, "request-1").label
    ('line 3', 'request-1')
    """

    line: int
    identifier: str | None = None
    source: str | None = None

    @property
    def label(self) -> str:
        """What messages call the prompt."""
        return f"line {self.line}" if self.identifier is None else self.identifier


class Answers:
    """Answers to prompts, in columns.

    Attributes:
        texts: of the answers.
        statistics: numbers, of which the first one is the log-probability of the answer, or None.
        parts: consecutive answers: the number of their prompt, how many they are, and what equal
            ones must have in common to be merged, such as their model.

    >>> answers = Answers()
    >>> answers.add(0, ["a cat", "cat"], [(-2.0,), None])
    >>> answers.texts, answers.parts
    (['a cat', 'cat'], [(0, 2, None)])
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.statistics: list[Statistics | None] = []
        self.parts: list[tuple[int, int, str | None]] = []

    def add(
        self,
        prompt: int,
        texts: Sequence[str],
        statistics: Sequence[Statistics | None],
        origin: str | None = None,
    ) -> None:
        """Add answers to one prompt."""
        self.texts += texts
        self.statistics += statistics
        self.parts.append((prompt, len(texts), origin))


class LeftOut:
    """Answers that cannot be candidates, by the reason.

    Args:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave them out with a warning.

    >>> left_out = LeftOut("out.jsonl", "error")
    >>> left_out.add("refusals", "request-7", 3)
    >>> left_out.report()
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: out.jsonl:3: refusals: 1 (request-7); repeat these requests, or ...
    """

    def __init__(self, origin: str, bad: str):
        self._origin, self._bad = origin, bad
        self._labels: dict[str, list[str]] = {}
        self._details: dict[str, str] = {}
        self._first = 0  # line

    def add(self, reason: str, label: str, line: int, detail: str = "") -> None:
        """Record that an answer cannot be a candidate.

        Args:
            reason: in words, the same for all such answers.
            label: what messages call the prompt.
            line: of the answer.
            detail: more about this answer; the message repeats the first one.
        """
        self._labels.setdefault(reason, []).append(label)
        self._first = self._first or line
        if detail:
            self._details.setdefault(reason, f"; the first one says {quoted(detail)}")

    def add_unfinished(self, reason: str, label: str, line: int) -> None:
        """Record that an answer ended for some reason, such as its length."""
        self.add(f"answers whose finish_reason is {quoted(reason)}", label, line)

    def report(self) -> None:
        """Report the numbers of such answers, and the prompts that they belong to.

        Raises:
            DataError: if there are any, and the policy is not to leave them out.
        """
        if not self._labels:
            return
        parts = [
            f"{reason}: {named(labels)}{self._details.get(reason, '')}"
            for reason, labels in self._labels.items()
        ]
        if self._bad != "drop":
            problem = f"{'; '.join(parts)}; repeat these requests, or leave out such answers"
            raise DataError(
                f"{problem} (bad: drop)",
                self._origin,
                self._first,
                parameter="bad",
                code="bad-response",
            )
        warn_user(f"{self._origin}: left out: {'; '.join(parts)}")


def named(labels: Sequence[str]) -> str:
    """Return a number of prompts with the names of the first ones.

    >>> named(["a", "b"]), named(list("abcdefg"))
    ('2 (a, b)', '7 (a, b, c, d, e, …)')
    """
    distinct = list(dict.fromkeys(labels))
    shown = [quoted(label)[1:-1] for label in distinct[:_SHOWN]]
    more = ["…"] if len(distinct) > _SHOWN else []
    return f"{len(labels):,} ({', '.join([*shown, *more])})"


def extractor(pattern: str, parameter: str = "extract") -> Callable[[str], str | None]:
    """Return a function that finds the wanted part of a text; None if it is not there.

    Args:
        pattern: a regular expression; the part is its first group, or the whole match if it has
            none. Empty takes the whole text. Blanks around the part are removed.
        parameter: the name of the parameter, for messages.

    Raises:
        UsageError: if it is not a regular expression.

    >>> extractor("<t>(.*)</t>")("Here you are: <t>a cat</t>"), extractor("")(" a cat ")
    ('a cat', 'a cat')
    """
    if not pattern:
        return str.strip
    try:
        compiled = re.compile(pattern, re.DOTALL)
    except re.error as error:
        problem = f"{quoted(pattern)} is not a regular expression: {error}"
        raise UsageError(problem, parameter=parameter, code="invalid-setting") from error
    group = min(compiled.groups, 1)

    def find(text: str) -> str | None:
        found = compiled.search(text)
        part = found and found[group]
        return None if part is None else part.strip()

    return find


def sample_columns(
    answers: Answers,
    prompts: Sequence[Prompt],
    ids: Sequence[int],
    file: str,
    names: Sequence[str] = STATISTICS,
    origins: str | None = None,
) -> Columns:
    """Return the columns of answers; of equal ones to a prompt the most probable one is kept.

    Args:
        answers: to the prompts.
        prompts: those without an answer are sentences without candidates.
        ids: the id of the sentence of each prompt.
        file: the name of the file, for messages.
        names: of the statistics.
        origins: the name of the extra with the origins of the answers, or None.

    Raises:
        DataError: if there are no answers at all.

    >>> answers = Answers()
    >>> answers.add(0, ["a cat", "a cat"], [token_statistics([-1.0, -2.0]), None])
    >>> columns = sample_columns(answers, [Prompt(1, "request-1")], [7], "out.jsonl").hypotheses
    >>> columns["logprob.sum"], columns["count"]
    (array([-3.]), array([2.]))
    """
    if not answers.texts:
        problem = "no answer in it that can be a candidate: repeat the requests"
        raise DataError(problem, file, code="no-data")
    order = np.argsort(ids, kind="stable")
    place = np.empty_like(order)  # of each prompt in this order
    place[order] = np.arange(len(order))
    of_parts, sizes, models = zip(*answers.parts, strict=True)
    parents = np.repeat(place[list(of_parts)], sizes)
    labels, numbers = intern(models)
    origin = np.repeat(numbers, sizes)
    strings, index = intern(answers.texts)
    table = np.full((len(index), len(names)), np.nan)
    if any(answers.statistics):
        present = [row for row, values in enumerate(answers.statistics) if values is not None]
        table[present] = [answers.statistics[row] for row in present]
    _warn_about(dict(zip(names, table.T, strict=True)), file)
    rows, counts = _merged(table[:, 0], parents, index, origin)
    if repeats := len(index) - len(rows):
        repeated = f"{repeats:,} of {counted(len(index), 'answer')} repeat another one of their"
        what = f"{repeated} prompt: they are merged, and {COUNT} is their number"
        log_info(f"{file}: {what}")
    hypotheses: dict[str, Any] = {TEXT: index[rows]}
    for name, column in zip(names, table[rows].T, strict=True):
        if not np.isnan(column).all():
            hypotheses[name] = column
    hypotheses[COUNT] = counts.astype(np.float64)
    if names[0] not in hypotheses:
        features = " and ".join(list(hypotheses)[1:])
        warn_user(
            f"{file}: no log-probabilities in it, only {features}: request them, or add "
            "features such as consensus and length"
        )
    if origins is not None:
        hypotheses[origins] = list(map(labels.__getitem__, origin[rows].tolist()))
    ordered = [prompts[number] for number in order.tolist()]
    sentences: dict[str, Sequence[Any]] = {ID: np.asarray(ids)[order].tolist()}
    if any(prompt.source is not None for prompt in ordered):
        sentences[SOURCE] = [prompt.source for prompt in ordered]
    names_of = [prompt.identifier for prompt in ordered]
    if not {None, *map(str, sentences[ID])}.issuperset(names_of):
        sentences[OF_SENTENCE + ID] = names_of
    lines = np.array([prompt.line for prompt in ordered], np.int64)
    return Columns(hypotheses, sentences, parents[rows], lines, nested=True, strings=strings)


def _warn_about(columns: Mapping[str, Float64], origin: str) -> None:
    """Warn about log-probabilities that cannot be, or that stand for an unknown one."""
    none = np.empty(0)
    sums, minima = (columns.get(STATISTICS[place], none) for place in (0, 2))
    answers = counted(len(sums), "answer")
    if number := np.count_nonzero(sums > _ROUNDING):
        problem = f"the log-probabilities of {number:,} of {answers} are positive"
        warn_user(f"{origin}: {problem}: check whether the server writes costs in their place")
    if number := np.count_nonzero(minima == _UNLIKELY):
        problem = f"{number:,} of {answers} have a token of log-probability {_UNLIKELY:g}"
        remedy = "repeat these requests, or exclude the columns logprob.sum, .mean and .min"
        warn_user(f"{origin}: {problem}, which servers write for an unknown one: {remedy}")


def _merged(logprobs: Float64, parents: Int64, index: Int32, origins: Int32) -> tuple[Int64, Int64]:
    """Return the most probable of equal answers to each prompt, and the number of equal ones.

    Args:
        logprobs: (answers,) NaN is missing.
        parents: (answers,) the prompt of each.
        index: (answers,) the number of its text.
        origins: (answers,) the number of its origin.

    Returns:
        rows, by prompt and then in the order in which texts first appear, and (rows,) counts.
    """
    order = np.lexsort((-np.nan_to_num(logprobs, nan=-np.inf), origins, index, parents))
    same = [np.diff(key[order]) == 0 for key in (parents, index, origins)]
    starts = np.flatnonzero(np.append(True, ~np.logical_and.reduce(same)))
    first = np.lexsort((np.minimum.reduceat(order, starts), parents[order[starts]]))
    return order[starts][first], np.diff(np.append(starts, len(order)))[first]

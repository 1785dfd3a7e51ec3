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
from itertools import chain
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import (
    Float64,
    Int32,
    Int64,
    flatten,
    intern,
    to_floats,
    to_members,
    to_texts,
)
from bpa_ppl._runtime.messages import format_count, log_info, warn_user
from bpa_ppl.errors import DataError, Remedy, UsageError, quote, wrong_type
from bpa_ppl.formats.block import ID, OF_SENTENCE, SOURCE, TEXT, Block
from bpa_ppl.lists.nbest import DROP, NBest

#: Names of the statistics of tokens.
STATISTICS = ("logprob.sum", "logprob.mean", "logprob.min", "length")
COUNT = "count"
_NAMES_SHOWN = 5  # names of prompts that a message lists
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


def build_block(texts: Any, logprobs: Any) -> Block:
    """Return the columns of samples in memory; the arguments are those of `from_samples`.

    >>> build_block([["a", "a"]], [[[-0.5], [-0.5]]]).candidates["count"]
    array([2.])
    """
    lists = [to_texts(group, "texts", "sample") for group in to_members(texts, "texts")]
    sizes = list(map(len, lists))
    if not sum(sizes):
        raise UsageError("a list needs at least one text", parameter="texts", code="no-data")
    tokens = [()] * sum(sizes) if logprobs is None else flatten(logprobs, sizes, "logprobs")
    samples = Samples(NBest.origin, "error")
    for number in range(len(lists)):
        samples.add_prompt(number + 1)
    parents = np.repeat(np.arange(len(lists)), sizes)
    for prompt, text, values in zip(parents, chain.from_iterable(lists), tokens, strict=True):
        numbers = to_floats(() if values is None else values, "logprobs")
        if numbers.ndim != 1:
            rule = "logprobs must be a list of one number per token for each text, as "
            raise wrong_type(
                f"{rule}[[[-1.5, -0.5]]] for one text of two tokens", values, "logprobs"
            )
        if not np.isfinite(numbers).all():
            problem = f"a log-probability of {quote(text)} is missing or not finite: give None "
            problem += "in place of those of the text, or leave it out"
            raise DataError(problem, parameter="logprobs", code="bad-number")
        samples.add(int(prompt), text.strip(), token_statistics(numbers.tolist()))
    return samples.columns(range(len(lists)))


class Samples:
    """Collects answers to the prompts of one file, or of data in memory.

    Args:
        origin: the name of the file, for messages.
        bad: what to do about answers that cannot be candidates: "error", or "drop" to leave them
            out with a warning.

    Attributes:
        lines: of each prompt, the line, or the number, of its first answer; 0 if there is none.
        names: of the prompts, or None.
        sources: the source texts of the prompts, or None.

    >>> samples = Samples("out.jsonl", "error")
    >>> prompt = samples.add_prompt(1, "request-1")
    >>> for logprobs in ([-1.0, -2.0], []):
    ...     samples.add(prompt, "a cat", token_statistics(logprobs))
    >>> columns = samples.columns([7]).candidates
    >>> columns["logprob.sum"], columns["count"]
    (array([-3.]), array([2.]))
    >>> samples.leave_out("refusals", prompt, 3)
    >>> samples.columns([7])
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: out.jsonl:3: refusals: 1 (request-1): repeat these requests
    """

    def __init__(self, origin: str, bad: str):
        self._file, self._bad = origin, bad
        self.lines: list[int] = []
        self.names: list[str | int | None] = []
        self.sources: list[str | None] = []
        # Prompt, text, statistics and origin of each answer.
        self._answers: list[tuple[int, str, Statistics | None, str | None]] = []
        # Labels of prompts whose answers are left out, by the reason.
        self._left_out: dict[str, list[str]] = {}
        self._details: dict[str, str] = {}
        self._first: tuple[str, int | None] | None = None  # file and line of what is left out

    def add_prompt(
        self, line: int, name: str | int | None = None, source: str | None = None
    ) -> int:
        """Add a prompt and return its place."""
        self.lines.append(line)
        self.names.append(name)
        self.sources.append(source)
        return len(self.lines) - 1

    def add(
        self, prompt: int, text: str, statistics: Statistics | None, origin: str | None = None
    ) -> None:
        """Add an answer to a prompt, by its place, with statistics that begin with its log p.

        Equal answers are merged only if their origin is equal, such as the model.
        """
        self._answers.append((prompt, text, statistics, origin))

    def leave_out(
        self, reason: str, prompt: int, line: int | None, detail: str = "", origin: str = ""
    ) -> None:
        """Record an answer that cannot be a candidate, by a reason that all such answers share.

        The message has the details of the first one.
        """
        self._left_out.setdefault(reason, []).append(self.label(prompt))
        self._first = self._first or (origin or self._file, line)
        if detail:
            self._details.setdefault(reason, f"; the first one says {quote(detail)}")

    def label(self, prompt: int) -> str:
        """Return what messages call a prompt."""
        name = self.names[prompt]
        return f"line {self.lines[prompt]}" if name in (None, "") else str(name)

    def columns(
        self,
        ids: Sequence[int],
        statistics: Sequence[str] = STATISTICS,
        origins: str | None = None,
        with_logprobs: bool = True,
    ) -> Block:
        """Return the columns of the answers; of equal ones to a prompt the most probable is kept.

        Prompts without an answer are sentences without candidates.

        Args:
            ids: the id of the sentence of each prompt.
            statistics: the names of the statistics.
            origins: the name of the extra with the origins of the answers, where there are any.
            with_logprobs: whether to warn where there are no log-probabilities.

        Raises:
            DataError: if there are no answers, or some cannot be candidates and `bad` is "error".
        """
        self._report()
        file = self._file
        if not self._answers:
            message = "no answer that can be a candidate: repeat the requests"
            raise DataError(message, file, code="no-data")
        order = np.argsort(ids, kind="stable")
        place = np.argsort(order)  # of each prompt in this order
        prompts, texts, numbers, models = zip(*self._answers, strict=True)
        parents = place[list(prompts)]
        labels, origin = intern(models)
        _, index = intern(texts)
        missing = (np.nan,) * len(statistics)
        table = np.array([missing if of is None else of for of in numbers], np.float64)
        _warn_about(dict(zip(statistics, table.T, strict=True)), file)
        rows, counts = _merge(table[:, 0], parents, index, origin)
        if repeats := len(index) - len(rows):
            repeated = (
                f"{repeats:,} of {format_count(len(index), 'answer')} repeat another one of their"
            )
            log_info(f"{file}: {repeated} prompt: they are merged, and {COUNT} is their number")
        candidates: dict[str, Any] = {TEXT: [texts[row] for row in rows.tolist()]}
        for name, column in zip(statistics, table[rows].T, strict=True):
            if not np.isnan(column).all():
                candidates[name] = column
        candidates[COUNT] = counts.astype(np.float64)
        if with_logprobs and candidates.keys().isdisjoint(statistics):
            what = f"no log-probabilities in it, only {' and '.join(list(candidates)[1:])}"
            what += ": request them, or add features such as consensus and length"
            warn_user(f"{file}: {what}")
        if origins is not None and labels != (None,):
            candidates[origins] = list(map(labels.__getitem__, origin[rows].tolist()))
        sentences: dict[str, Any] = {ID: np.asarray(ids)[order].tolist()}
        named = [self.names[number] for number in order.tolist()]
        names = [None if name is None else str(name) for name in named]
        if any(source is not None for source in self.sources):
            sentences[SOURCE] = [self.sources[number] for number in order.tolist()]
        if not {None, *map(str, sentences[ID])}.issuperset(names):
            sentences[OF_SENTENCE + ID] = names
        lines = np.array(self.lines, np.int64)[order]
        return Block(candidates, sentences, parents[rows], lines)

    def _report(self) -> None:
        """Report the answers that are left out, and the prompts that they belong to."""
        if not self._left_out:
            return
        reasons = self._left_out.items()
        parts = [
            f"{reason}: {name_prompts(of)}{self._details.get(reason, '')}" for reason, of in reasons
        ]
        if self._bad == "drop":
            warn_user(f"{self._file}: left out: {'; '.join(parts)}")
            return
        drop = Remedy("leave out such answers", DROP.arguments)
        details: Any = {"parameter": "bad", "code": "bad-response"}
        remedies: list[str | Remedy] = ["repeat these requests", drop]
        raise DataError("; ".join(parts), *(self._first or ()), remedies=remedies, **details)


def name_prompts(labels: Sequence[str]) -> str:
    """Return how many prompts there are, with the names of the first few.

    >>> name_prompts(["a", "b"]), name_prompts(list("abcdefg"))
    ('2 (a, b)', '7 (a, b, c, d, e, …)')
    """
    distinct = list(dict.fromkeys(labels))
    shown = [quote(label)[1:-1] for label in distinct[:_NAMES_SHOWN]]
    more = ["…"] if len(distinct) > _NAMES_SHOWN else []
    return f"{len(labels):,} ({', '.join([*shown, *more])})"


def make_extractor(pattern: str, parameter: str = "extract") -> Callable[[str], str | None]:
    """Return a function that extracts a part of a text; None if it is not there.

    Args:
        pattern: a regular expression; the part is its first group, or the whole match if it has
            none. Empty takes the whole text. Blanks around the part are removed.
        parameter: the name of the parameter, for messages.

    Raises:
        UsageError: if it is not a regular expression.

    >>> make_extractor("<t>(.*)</t>")("Here you are: <t>a cat</t>"), make_extractor("")(" a cat ")
    ('a cat', 'a cat')
    """
    if not pattern:
        return str.strip
    try:
        compiled = re.compile(pattern, re.DOTALL)
    except re.error as error:
        problem = f"{quote(pattern)} is not a regular expression: {error}"
        raise UsageError(problem, parameter=parameter, code="invalid-setting") from error
    group = min(compiled.groups, 1)

    def find(text: str) -> str | None:
        matched = compiled.search(text)
        part = matched and matched[group]
        return None if part is None else part.strip()

    return find


def _warn_about(columns: Mapping[str, Float64], origin: str) -> None:
    """Warn about log-probabilities that cannot be, or that stand for an unknown one."""
    none = np.empty(0)
    sums, minima = (columns.get(STATISTICS[place], none) for place in (0, 2))
    answers = format_count(len(sums), "answer")
    if number := np.count_nonzero(sums > _ROUNDING):
        problem = f"the log-probabilities of {number:,} of {answers} are positive"
        warn_user(f"{origin}: {problem}: check whether the server writes costs in their place")
    if number := np.count_nonzero(minima == _UNLIKELY):
        problem = f"{number:,} of {answers} have a token of log-probability {_UNLIKELY:g}"
        remedy = "repeat these requests, or exclude the columns logprob.sum, .mean and .min"
        warn_user(f"{origin}: {problem}, which servers write for an unknown one: {remedy}")


def _merge(logprobs: Float64, parents: Int64, index: Int32, origins: Int32) -> tuple[Int64, Int64]:
    """Return the most probable of equal answers to each prompt, and the number of equal ones.

    Arguments are (answers,): log-probabilities, NaN if missing, and the numbers of prompts, texts
    and origins. Rows are by prompt and then in the order in which texts first appear.
    """
    order = np.lexsort((-np.nan_to_num(logprobs, nan=-np.inf), origins, index, parents))
    same = [np.diff(key[order]) == 0 for key in (parents, index, origins)]
    starts = np.flatnonzero(np.append(True, ~np.logical_and.reduce(same)))
    first = np.lexsort((np.minimum.reduceat(order, starts), parents[order[starts]]))
    return order[starts][first], np.diff(np.append(starts, len(order)))[first]

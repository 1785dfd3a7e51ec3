"""Sampled answers to prompts: statistics of their tokens, repeats, and answers that are left out.

Columns of the candidates:

    logprob.sum, logprob.mean, logprob.min   of the log-probabilities of the tokens
    length                                   the number of tokens
    count                                    how often the answer was sampled for its prompt

A column without any value is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.rows.base import ID, SOURCE, TEXT, Rows
from bpa_ppl.rows.schema import Fields, SchemaReader

#: Names of the statistics of tokens.
STATISTICS = ("logprob.sum", "logprob.mean", "logprob.min", "length")
COUNT = "count"
_ABSENT = (math.nan,) * len(STATISTICS)
_SHOWN = 5  # names of prompts that a message lists

Statistics = tuple[float, ...]


def token_statistics(logprobs: Sequence[float]) -> Statistics:
    """Return sum, mean and minimum of the log-probabilities of tokens, and their number.

    Without any tokens all of them are missing.

    >>> token_statistics([-1.0, -0.5])
    (-1.5, -0.75, -1.0, 2)
    """
    if not logprobs:
        return _ABSENT
    total = sum(logprobs)
    return total, total / len(logprobs), min(logprobs), len(logprobs)


class Prompt:
    """The candidates of one prompt; equal ones are merged.

    Args:
        line: the line, or the number, of its first answer.
        identifier: the name of the prompt, or None.
        source: the source text, or None.

    >>> prompt = Prompt(1, "request-1")
    >>> for text, logprobs in (("a cat", [-2.0]), ("a cat", [-1.0]), ("cat", [-3.0])):
    ...     prompt.add(text, token_statistics(logprobs))
    >>> prompt.candidates
    {('a cat', None): ((-1.0, -1.0, -1.0, 1), 2), ('cat', None): ((-3.0, -3.0, -3.0, 1), 1)}
    """

    def __init__(self, line: int, identifier: str | None = None, source: str | None = None):
        self.line, self.identifier, self.source = line, identifier, source
        #: Text and origin of each candidate -> its statistics, and how often there is one.
        self.candidates: dict[tuple[str, Any], tuple[Statistics, int]] = {}

    @property
    def label(self) -> str:
        """What messages call the prompt."""
        return f"line {self.line}" if self.identifier is None else self.identifier

    def add(self, text: str, statistics: Statistics, origin: Any = None) -> None:
        """Add an answer; of equal ones the statistics of the most probable are kept.

        Args:
            text: the answer.
            statistics: numbers, of which the first one is its log-probability.
            origin: what answers must have in common to be merged, such as their model.
        """
        key = (text, origin)
        before = self.candidates.get(key)
        if before is None:
            self.candidates[key] = statistics, 1
            return
        best, count = before
        better = statistics[0] > best[0] or math.isnan(best[0])
        self.candidates[key] = statistics if better else best, count + 1


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


def sample_rows(
    prompts: Sequence[Prompt],
    ids: Sequence[int],
    schema: SchemaReader,
    names: Sequence[str] = STATISTICS,
    origins: str | None = None,
) -> Rows:
    """Return the candidates of prompts as rows.

    Args:
        prompts: those without a candidate are left out, with a warning.
        ids: the id of the sentence of each.
        schema: checks the columns.
        names: of the statistics.
        origins: the name of the extra with the origins of the candidates, or None.

    Raises:
        DataError: if there are no candidates at all.

    >>> prompt = Prompt(1, "request-1")
    >>> prompt.add("a cat", token_statistics([-1.0, -2.0]))
    >>> rows = sample_rows([prompt], [7], SchemaReader("out.jsonl"))
    >>> rows.names, rows.features.tolist()
    (('logprob.sum', 'logprob.mean', 'logprob.min', 'length', 'count'), [[-3.0, -1.5, -2.0, 2.0, 1.0]])
    """  # noqa: E501
    kept = [(one, number) for one, number in zip(prompts, ids, strict=True) if one.candidates]
    absent = [one.label for one in prompts if not one.candidates]
    if not kept:
        problem = "no answer in it that can be a candidate: repeat the requests"
        raise DataError(problem, schema.origin, code="no-data")
    if absent:
        warn_user(f"{schema.origin}: prompts without a candidate: {named(absent)}: no list of them")
    keys = [key for one, _ in kept for key in one.candidates]
    values = [value for one, _ in kept for value in one.candidates.values()]
    table = np.array([statistics for statistics, _ in values], np.float64)
    counts = np.array([count for _, count in values], np.float64)
    if repeats := int(counts.sum()) - len(counts):
        answers = counted(int(counts.sum()), "answer")
        repeated = f"{repeats:,} of {answers} repeat another one of their prompt"
        log_info(f"{schema.origin}: {repeated}: they are merged, and {COUNT} is their number")
    hypotheses: dict[str, Any] = {TEXT: [text for text, _ in keys]}
    for name, column in zip(names, table.T, strict=True):
        if not np.isnan(column).all():
            hypotheses[name] = column
    hypotheses[COUNT] = counts
    if names[0] not in hypotheses:
        features = " and ".join(list(hypotheses)[1:])
        warn_user(
            f"{schema.origin}: no log-probabilities in it, only {features}: request them, or add "
            "features such as consensus and length"
        )
    sentences: dict[str, Sequence[Any]] = {ID: [number for _, number in kept]}
    sources = [one.source for one, _ in kept]
    if any(source is not None for source in sources):
        sentences[SOURCE] = sources
    parents = np.repeat(np.arange(len(kept)), [len(one.candidates) for one, _ in kept])
    lines = np.array([one.line for one, _ in kept], np.int64)
    rows = schema.rows(Fields(hypotheses, sentences, parents, lines, nested=True))
    if origins is not None:
        rows = rows._replace(extras={origins: tuple(origin for _, origin in keys)})
    names_of = [one.identifier for one, _ in kept]
    if any(
        name not in (None, str(number)) for name, (_, number) in zip(names_of, kept, strict=True)
    ):
        extras = {ID: [names_of[parent] for parent in parents.tolist()]}
        rows = rows._replace(sentence_extras={**rows.sentence_extras, **extras})
    return rows

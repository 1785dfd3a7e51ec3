"""Proposals: a call of `adapt` that suits the columns of some lists.

All guesses about columns are in this module. They are printed for the user to decide, and change
nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from glob import escape
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64, are_finite, read_number
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.components import read_name
from bpa_ppl.errors import escape_controls, list_names, quote
from bpa_ppl.formats.roles import Patterns, is_pattern
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.lists.columns import LIST, TEXT, TRUTH, CandidateColumn, is_absent
from bpa_ppl.lists.nbest import NBest

#: In the place of the gain, if it is not clear which column it is.
PLACEHOLDER = "COLUMN"
#: Sources of features that need only texts.
_OF_TEXTS = ("consensus", "length")
_OF_ROWS = "numbers the rows"
_STEPS = 3  # between candidates; fewer may be equal by chance
_CATEGORIES = 20  # different texts of a column that are proposed as categories
_UNJUDGED = "adapt needs references, preferences, or a column that says how good a candidate is"


class Proposal(NamedTuple):
    """A call of `adapt` that suits some lists.

    Attributes:
        command: the call, to paste; empty if there is nothing to learn from.
        left_out: a sentence for each column that it leaves out.
        note: what to replace in the command, or what is needed; else empty.
        features: the columns of numbers that it names as features; none if the lists have features.
        add: sources of features, if there are no other ones.
        gain: the column that it names as the gain; COLUMN, if the user has to choose; or None.

    >>> from bpa_ppl import describe, from_records
    >>> rows = [{"id": 0, "text": text, "lm": lm} for text, lm in (("a", -1.0), ("b", -2.5))]
    >>> describe(from_records(rows, references=["a"])).proposal.command
    "bpa.adapt(lists, features=['lm'])"
    """

    command: str
    left_out: tuple[str, ...]
    note: str
    features: tuple[str, ...]
    add: tuple[str, ...]
    gain: str | None

    def for_shell(self, words: Sequence[str], weights: str = "none") -> Proposal:
        """Return the same with the command line in place of the call in Python.

        Args:
            words: the arguments of `bpa lists` that name files and say how they are read.
            weights: the canonical weights.

        >>> proposal = Proposal("bpa.adapt(lists)", (), "", ("lm", "-x"), (), "human")
        >>> proposal.for_shell(["my lists.csv"]).command
        "bpa adapt 'my lists.csv' --weights none --features=lm --features=-x --gain human -o ..."
        """
        if not self.command:
            return self
        names = list(map(_typed, self.features))
        named = ["--features", *names] if names else []
        if any(name.startswith("-") for name in names):  # else they are read as options
            named = [f"--features={name}" for name in names]
        added = [word for source in self.add for word in ("--add", source)]
        gain = [] if self.gain is None else ["--gain", self.gain]
        options = ["--weights", weights, *named, *added, *gain, "-o", "posterior.nc"]
        end = words.index("--") if "--" in words else len(words)
        line = shlex.join(["bpa", "adapt", *words[:end], *options, *words[end:]])
        return self._replace(command=line)


def propose(
    lists: NBest,
    columns: Sequence[CandidateColumn],
    gain: str | None = None,
    *,
    observed: bool = False,
    exclude: Iterable[str] = (),
) -> Proposal:
    """Return the call of `adapt` that suits some lists.

    Args:
        lists: the lists.
        columns: of their candidates; a column that the user chose as the gain has that kind.
        gain: what the user chose, as it is written in Python; None if nothing.
        observed: whether there is something to learn from: the gain that the user chose, or without
            one references or preferences.
        exclude: names, labels and patterns of columns that are not proposed as features.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.lists.columns import read_columns
    >>> lists = from_lists([["a", "b"]], [[[]] * 2], []).with_extras(lm=[1, 3], ok=[True, False])
    >>> propose(lists, read_columns(lists)).command
    "bpa.adapt(lists, features=['lm'], gain='ok')"
    """
    gains = () if observed or gain is not None else find_gains(lists, columns)
    chosen = _choose_gain(gains)
    reasons = _explain_columns(lists, columns, chosen, tuple(exclude))
    features = tuple(name for name, reason in reasons.items() if not reason)
    declared = any(column.summary.kind == "feature" for column in columns)
    if declared:
        reasons |= {name: f"{name} is not named as a feature" for name in features}
    if declared or (len(gains) == 1 and features == (gains[0].name,)):
        features = ()  # in the second case the only column is the gain
    left_out = tuple(filter(None, reasons.values()))
    if not (observed or gains):
        note = _UNJUDGED if gain is None else f"the gain {gain} needs references"
        return Proposal("", left_out, note, (), (), None)
    add, note = () if features or declared else _OF_TEXTS, ""
    named = None if observed else PLACEHOLDER if chosen is None else _write_gain(chosen.name)
    if named == PLACEHOLDER:
        note = f"replace {named} by the column that says how good a candidate is, such as "
        note += list_names(_write_gain(column.name) or quote(column.name) for column in gains)
    command = _write_call(features, add, gain if named is None else repr(named))
    return Proposal(command, left_out, note, features, add, named)


def _write_call(features: Iterable[str], add: Iterable[str], gain: str | None) -> str:
    """Return a call of `adapt` in Python."""
    lists = {"features": list(map(_typed, features)), "add": list(add)}
    arguments = [f"{name}={values}" for name, values in lists.items() if values]
    arguments += [] if gain is None else [f"gain={gain}"]
    return f"bpa.adapt({', '.join(['lists', *arguments])})"


def find_gains(lists: NBest, columns: Iterable[CandidateColumn]) -> tuple[CandidateColumn, ...]:
    """Return the columns that may be the gain, those first that are like one.

    They are extras that vary within lists: true or false, or numbers, except numbers of the rows.
    """
    found = [c for c in columns if c.may_be_gain and _describe_steps(lists, c.numbers) != _OF_ROWS]
    return tuple(sorted(found, key=lambda column: not column.like_gain))


def _choose_gain(gains: Iterable[CandidateColumn]) -> CandidateColumn | None:
    """Return the only column that is like a gain, or None."""
    like = [column for column in gains if column.like_gain]
    return like[0] if len(like) == 1 and _write_gain(like[0].name) else None


def _write_gain(name: str) -> str:
    """Return how a column is named as the gain; an empty text if it cannot be named.

    >>> _write_gain("human"), _write_gain("TER")
    ('human', 'column:column=TER')
    """
    metric = read_name(name)
    if metric not in GAINS and metric.lower() not in GAINS:
        return "" if _is_untyped(name) else name
    return f"column:column={name}" if metric == name else ""


def _typed(name: str) -> str:
    """Return a name as an option that takes patterns needs it.

    >>> _typed("lm"), _typed("why?")
    ('lm', 'why[?]')
    """
    return escape(name) if is_pattern(name) else name


def _is_untyped(name: str) -> bool:
    """Return whether a name cannot be typed: it is empty, or has control characters."""
    return not name or escape_controls(name) != name


def _explain_columns(
    lists: NBest,
    columns: Iterable[CandidateColumn],
    gain: CandidateColumn | None,
    exclude: tuple[str, ...],
) -> dict[str, str]:
    """Return why extras are not features, by their names; an empty text for those that can be.

    Args:
        lists: the lists.
        columns: of their candidates.
        gain: the one that is proposed, or None.
        exclude: names, labels and patterns of columns that are not features.
    """
    equal, extras, excluded = {}, [], Patterns.of_excluded(exclude)
    for column in columns:
        if column.summary.kind == "extra" and column is not gain:
            extras.append(column)
        elif column.numbers is not None:
            equal[column.numbers.tobytes()] = column.name
    reasons = {}
    for column in extras:
        name = column.name
        reason = f"{name} is excluded" if excluded.fit(name) else _explain(lists, column)
        if not reason and column.numbers is not None:
            other = equal.setdefault(column.numbers.tobytes(), name)
            reason = "" if other == name else f"{name} is equal to {other}"
        reasons[name] = reason
    return reasons


def _explain(lists: NBest, column: CandidateColumn) -> str:
    """Return why a column is no feature by itself; an empty text if it can be one."""
    name, summary = column.name, column.summary
    if summary.missing == len(column.values):
        return f"{name} has no values"
    if summary.type == TEXT:
        return _explain_texts(lists, column)
    if column.numbers is None:
        return f"{name} has {'lists' if summary.type == LIST else 'values of other types'}"
    if np.isnan(summary.within):
        return f"{name} has numbers that are not finite, or beyond 1e60"
    if not summary.within:
        return f"{name} is constant in each list"
    if summary.missing:
        count = format_count(len(column.values), "candidate")
        value = shlex.quote(f"{name}=VALUE")
        use = f"it can be the gain, or a feature with --missing {value}"
        return f"{name} is missing for {summary.missing:,} of {count}: {use}"
    if summary.type == TRUTH:
        return f"{name} is true or false: it can be the gain"
    if steps := _describe_steps(lists, column.numbers):
        return f"{name} {steps}"
    return f"{quote(name)} cannot be typed: rename the column" if _is_untyped(name) else ""


def _explain_texts(lists: NBest, column: CandidateColumn) -> str:
    """Return what can be done with a column of texts."""
    name, values, different = column.name, column.values, column.summary.different or 0
    if all(len(set(values[a:b])) == 1 for a, b in pairwise(lists.offsets.tolist())):
        return f"{name} is constant in each list"
    texts = [value for value in values if not is_absent(value)]
    words = [text for text in texts if read_number(text, cells=name in lists.cells) is None]
    if 2 * len(words) < len(texts):
        remedy = "write numbers, and leave cells empty where there is none"
        return f"{name} has texts among its numbers, such as {quote(words[0])}: {remedy}"
    what = f"{name} has texts ({different:,} different)"
    if len(texts) < len(values) or different > min(_CATEGORIES, len(values) // 2):
        return what
    return f"{what}: --categorical {shlex.quote(name)} makes a feature of each"


def _describe_steps(lists: NBest, numbers: Float64 | None) -> str:
    """Return whether a column numbers the rows, or counts candidates; an empty text for others."""
    if numbers is None or not are_finite(numbers):
        return ""
    steps = np.delete(np.diff(numbers), lists.offsets[1:-1] - 1)
    if len(steps) < _STEPS or not steps[0]:
        return ""
    if (steps > 0).all() and not np.ptp(np.sort(numbers) - np.arange(len(numbers))):
        return _OF_ROWS
    return "" if np.ptp(steps) else "counts the candidates of each list"

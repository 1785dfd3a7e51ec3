"""Rules of values, in one table: what breaks each, and a sentence with its remedy.

A new rule is a new entry of `RULES`; `refuse` finds the first value that breaks one.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from bpa_ppl._runtime.arrays import FINITE, LARGEST, NUL_IN_TEXT, is_missing, read_number
from bpa_ppl._runtime.values import RECIPES, abbreviate
from bpa_ppl.errors import DataError, Remedy
from bpa_ppl.formats.block import CANDIDATES, TEXT
from bpa_ppl.lists.nbest import DROP

#: How texts begin that may be lists or objects.
_OBJECT = re.compile(r"\s*(\[\s*[\[{'\"]|\{\s*['\"])")


class Rule(NamedTuple):
    """A rule of the values of a column.

    Attributes:
        breaks: whether a value breaks it.
        problem: what follows the name of the column, with `{value}` for the value.
        code: of the error.
        parameter: that the error is about.
        remedies: of the error, by the name of the column in the file.
    """

    breaks: Callable[[Any], bool]
    problem: str
    code: str = "bad-data"
    parameter: str | None = None
    remedies: Callable[[str], Sequence[str | Remedy]] = lambda _: ()


def _is_object(value: Any) -> bool:
    """Return whether a text is a list or an object, as Python or JSON prints it."""
    if not isinstance(value, str) or not _OBJECT.match(value):
        return False
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return isinstance(parse(value), list | dict)
    return False


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


_NUL = Rule(
    lambda value: "\0" in value if isinstance(value, str) else "\0" in "".join(value or ()),
    f"has {NUL_IN_TEXT}",
    "bad-encoding",
)


def _number_rules(parameter: str, *, cells: bool) -> tuple[Rule, Rule]:
    """Return the rules of numbers of features, or of judgements, which may be true or false."""
    is_feature = parameter == "bad"
    drop = [DROP] if is_feature else []
    read = partial(read_number, cells=cells, truths=not is_feature)
    write = "write numbers, and nothing where there is none" if cells else "write numbers"

    def write_numbers(column: str) -> list[str | Remedy]:
        without = Remedy("leave the column out", {"exclude": [column]})
        return [write, *([without] if is_feature else []), *drop]

    def is_none(value: Any) -> bool:
        return read(value) is None or (is_feature and is_missing(value))

    def is_large(value: Any) -> bool:
        number = read(value)
        return number is not None and (abs(number) > LARGEST or (is_feature and number != number))

    return (
        Rule(is_none, "is {value}, not a number", "bad-number", parameter, write_numbers),
        Rule(
            is_large,
            f"is {{value}}, not {FINITE}",
            "bad-number",
            parameter,
            lambda _: ["correct it", *drop],
        ),
    )


_MISSING_TEXT = Rule(lambda value: value is None, "is missing: give each candidate a text")
_NO_TEXT = Rule(
    lambda value: not isinstance(value, str), "is {value}, not a text: write it as a text"
)
#: By what the values are: rules, in the order in which they are tried.
RULES: dict[str, tuple[Rule, ...]] = {
    "id": (
        Rule(
            lambda value: value is None or value == "" or value != value,
            "is missing, and other rows have one: give each row one",
        ),
        Rule(
            lambda value: isinstance(value, list | tuple | dict),
            "{value} is not an integer or a text: write it as one",
        ),
        Rule(lambda value: isinstance(value, str) and "\0" in value, _NUL.problem, "bad-encoding"),
    ),
    "text of a row": (
        _MISSING_TEXT,
        Rule(
            lambda value: isinstance(value, list | tuple),
            "is a list, not a text",
            remedies=lambda column: [
                "write a text",
                Remedy(
                    "name it as the candidates in the format",
                    settings={CANDIDATES: column, TEXT: None},
                ),
            ],
        ),
        _NO_TEXT,
        _NUL,
    ),
    "text of a candidate": (_MISSING_TEXT, _NO_TEXT, _NUL),
    "cell": (
        Rule(
            _is_object,
            "is {value}, a list or an object as a text",
            remedies=lambda _: ["write the rows as JSON lines", RECIPES],
        ),
    ),
    "source": (
        Rule(
            lambda value: not (value is None or isinstance(value, str)),
            "is {value}, not a text: write it as one",
        ),
        _NUL,
    ),
    "references": (
        Rule(
            lambda value: not (value is None or isinstance(value, str) or _are_texts(value)),
            "is {value}, not a text or a list of texts: write texts",
        ),
        _NUL,
    ),
    "feature": _number_rules("bad", cells=False),
    "feature in a cell": _number_rules("bad", cells=True),
    "judgement": _number_rules("gain", cells=False),
    "judgement in a cell": _number_rules("gain", cells=True),
    "finite": (
        Rule(
            lambda value: isinstance(value, float) and not math.isfinite(value),
            "is {value}, not a finite number: correct it",
        ),
    ),
}


def refuse(
    kind: str, values: Sequence[Any], error: Callable[..., DataError], column: str = ""
) -> None:
    """Raise the error of the first value that breaks a rule.

    Args:
        kind: of the values, in `RULES`.
        values: of a column.
        error: makes the error of a place among the values, a problem, a code and a parameter.
        column: the name of the column in the file.

    >>> refuse("source", ["a cat", 7], lambda row, problem, **_: DataError(problem))
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: is 7, not a text: write it as one
    """
    for rule in RULES[kind]:
        row = next((row for row, value in enumerate(values) if rule.breaks(value)), None)
        if row is not None:
            problem = rule.problem.format(value=abbreviate(values[row]))
            details: Any = {"code": rule.code, "parameter": rule.parameter}
            raise error(row, problem, remedies=rule.remedies(column), **details)

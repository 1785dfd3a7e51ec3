"""JSON lines of sockeye-translate, written by `--output-type json`, or `nbest` with `--nbest-size`.

    {"sentence_id": 1, "translation": "a cat", "score": 0.5,
     "translations": ["a cat", "the cat"], "scores": [[0.5], [0.7]]}

Without `translations` (n = 1) the list has one hypothesis, `translation`. A score is a number, the
feature `score`, or a list of numbers, the features `score[0]`, `score[1]`, …. Any other field,
which Sockeye copies from its input, becomes an extra of the sentence.

Sockeye prints costs: negative log-probabilities, divided by a power of the length. They are
negated, so that higher is better, and a note says so; `costs=false` keeps the sign. Sockeye counts
sentences from 1 (set the first id to 1); ids of the input may be texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from operator import neg
from typing import Any, ClassVar, TextIO

import numpy as np

from bpa_ppl.arrays import Int64
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.jsonl import json_values
from bpa_ppl.formats.streams import InputFile
from bpa_ppl.labels import expand
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.schema import NUMBER, kind_of, shown

_NAME = "score"
_OWN = ("sentence_id", "translation", "score", "translations", "scores")
_SHAPE = (
    '{"sentence_id": 1, "translation": "…", "score": 0.5, "translations": ["…"], "scores": [0.5]}'
)


class Sockeye(NBestFormat, frozen=True):
    """The format of Sockeye.

    Attributes:
        costs: whether lower scores are better, as Sockeye prints them; they are then negated.
    """

    required: ClassVar[tuple[tuple[str, ...], ...]] = (("sentence_id", "translation"),)

    costs: bool = True

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: with file and line, if a line is not one of Sockeye's, or hypotheses
                differ in the number of their scores.

        >>> file = InputFile(b'{"sentence_id": 1, "translation": "a cat", "score": 0.5}')
        >>> columns = next(Sockeye(costs=False).columns(file, ReadOptions("out.json")))
        >>> columns.hypotheses, columns.sentences
        ({'text': ['a cat'], 'score': array([0.5])}, {'id': [1]})
        """
        width = 0
        for records, numbers in json_values(file.blocks(), options.origin):
            pairs = zip(records, numbers, strict=True)
            lists = [_checked_list(record, number, options) for record, number in pairs]
            sizes = [len(scores) for _, scores in lists]
            parents = np.repeat(np.arange(len(records)), sizes)
            lines = np.array(numbers, np.int64)
            listed = list(chain.from_iterable(scores for _, scores in lists))
            if self.costs and not width:
                warn_user(
                    f"{options.origin}: scores are treated as costs: they are negated, so that "
                    "higher is better (costs=false keeps the sign)"
                )
            width = width or (len(listed[0]) or 1 if isinstance(listed[0], list) else 1)
            columns = _columns(listed, width, options, lines[parents])
            if self.costs:
                columns = [list(map(neg, column)) for column in columns]
            texts = list(chain.from_iterable(texts for texts, _ in lists))
            named = zip(expand(_NAME, width), map(_array, columns), strict=True)
            hypotheses = {"text": texts, **dict(named)}
            others = [n for n in dict.fromkeys(chain.from_iterable(records)) if n not in _OWN]
            sentences: dict[str, Any] = {n: [of.get(n) for of in records] for n in others}
            sentences["id"] = [of["sentence_id"] for of in records]
            yield Columns(hypotheses, sentences, parents, lines, nested=True)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, with the extras of the sentences.

        Raises:
            DataError: if an extra of a sentence cannot be written as JSON.
            UsageError: if there are features other than scores, or totals.

        >>> import sys
        >>> lists = NBest.from_lists([["a", "b"]], [[[-0.5], [-2]]], ["score"])
        >>> Sockeye().write(lists, sys.stdout)  # doctest: +NORMALIZE_WHITESPACE
        {"sentence_id": 0, "translation": "a", "score": 0.5, "translations": ["a", "b"],
        "scores": [0.5, 2.0]}
        """
        _check_writable(nbest)
        table = -nbest.features if self.costs else nbest.features
        values = table[:, 0] if table.shape[1] == 1 else table
        extras = {n: np.asarray(c, object).tolist() for n, c in nbest.sentence_extras.items()}
        printed = extras.pop("id", nbest.sentence_ids.tolist())
        for s in range(len(nbest)):
            texts, scores = nbest.texts(s), _exact(values[nbest.rows(s)])
            line = {"sentence_id": printed[s], "translation": texts[0], "score": scores[0]}
            if len(texts) > 1:
                line |= {"translations": texts, "scores": scores}
            line |= {name: column[s] for name, column in extras.items()}
            try:
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                problem = f"an extra of sentence {printed[s]} cannot be written as JSON ({error})"
                raise DataError(problem, nbest.origin, code="not-supported") from error


def _check_writable(nbest: NBest) -> None:
    taken = [name for name in nbest.sentence_extras if name in _OWN]
    if nbest.feature_names != expand(_NAME, len(nbest.feature_names)):
        names = ", ".join(nbest.feature_names)
        problem = f"Sockeye's lists have the features {_NAME}, or {_NAME}[0], …, not {names}"
    elif nbest.totals is not None:
        problem = "Sockeye's lists have no totals: leave them out with without('totals')"
    elif taken:
        problem = f"{taken[0]} is a field of Sockeye's own: rename the extra of the sentences"
    else:
        return
    problem = f"{problem}; or choose another format, such as jsonl"
    raise UsageError(problem, parameter="format", code="not-supported")


def _exact(values: np.ndarray) -> list[Any]:
    """Return 32-bit floats as the shortest decimals that read back as the same."""
    return [_exact(v) if np.ndim(v) else float(str(v)) for v in values]


def _checked_list(record: Any, number: int, options: ReadOptions) -> tuple[list[Any], list[Any]]:
    """Return texts and scores of a line with the fields of Sockeye."""
    message, code = "", "bad-line"
    if not isinstance(record, dict) or not {"sentence_id", "translation", "score"} <= record.keys():
        message = f"not a line of Sockeye: a line reads {_SHAPE}"
    elif not isinstance(record["translation"], str):
        message = f"translation is {shown(record['translation'])}, not a text"
    elif "id" in record and isinstance(record["sentence_id"], str):
        message, code = "a field id next to a sentence_id that is a text: rename it", "bad-name"
    else:
        texts, scores = record.get("translations"), record.get("scores")
        if (texts is None) is not (scores is None):
            message = "translations and scores must both be there, or neither"
        elif texts is not None and not (
            isinstance(texts, list) and isinstance(scores, list) and 0 < len(texts) == len(scores)
        ):
            message, code = "translations and scores must be lists of one length", "wrong-length"
        if not message:
            return texts or [record["translation"]], scores or [record["score"]]
    raise options.error(message, number, code)


def _columns(scores: list[Any], width: int, options: ReadOptions, lines: Int64) -> list[list[Any]]:
    """Return the scores column by column."""
    if set(map(type, scores)) <= {float, int} and width == 1:
        return [scores]
    rows = [score if isinstance(score, list) else [score] for score in scores]
    for row, line in zip(rows, lines.tolist(), strict=True):
        if len(row) != width:
            problem = f"a hypothesis has {len(row)} scores, the first one of the file {width}"
            raise options.error(problem, line, "wrong-length")
        odd = [score for score in row if kind_of(score) != NUMBER]
        if odd:
            raise options.error(f"a score is {shown(odd[0])}, not a number", line, "bad-number")
    return [list(column) for column in zip(*rows, strict=True)]


def _array(column: list[Any]) -> Any:
    """Return scores as an array if they are finite; others are checked one by one."""
    try:
        values = np.array(column, np.float64)
    except OverflowError:
        return column
    return values if np.isfinite(values).all() else column

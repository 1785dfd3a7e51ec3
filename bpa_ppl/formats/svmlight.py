"""SVMlight: lines of learning to rank, as LETOR, XGBoost and scikit-learn keep them.

    2 qid:7 1:-1.5 2:0.25 # a cat

The label is the column `label`, which is the gain (`--gain label`) and never a feature. The feature
with the number 3 is called `f3`, and is 0 in lines that lack it. The text of a candidate is the
comment, or else its number in the list. Lines of one `qid` form a list; other comments are skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TextIO

import numpy as np

from bpa_ppl.columns import as_numbers
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.moses import broken_text
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.formats.streams import InputFile, text_lines
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.names import ID, TEXT

LABEL = "label"
_LINE = re.compile(rb"[ \t]*[-+\d.][^\s:]*[ \t]+qid:\S+([ \t]+\d+:\S+)*[ \t]*\r?(#.*|$)")
_COMMENTS = re.compile(rb"([ \t]*#[^\n]*\n)+")
_INTEGER = re.compile("[0-9]{1,18}")
_NAME = re.compile("f(0|[1-9][0-9]{0,17})")
_SHAPE = "label qid:7 1:0.5"


class Svmlight(NBestFormat, frozen=True):
    """The format of SVMlight, with a `qid` in each line.

    Attributes:
        label: the column that is written as the label.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".svmlight", ".letor")
    judgements: ClassVar[tuple[str, ...]] = (LABEL,)

    label: str = LABEL

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has a label, a `qid` and features.

        >>> Svmlight().detect(b"2 qid:7 1:0.5 # a cat"), Svmlight().detect(b"2 1:0.5")
        (True, False)
        """
        return _LINE.match(first_line) is not None

    def detect_within(self, beginning: bytes) -> bool:
        """Return whether such a line follows comments."""
        comments = _COMMENTS.match(beginning)
        return comments is not None and self.detect(beginning[comments.end() :].split(b"\n")[0])

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of the whole file, whose last line may be the first with a feature.

        Raises:
            DataError: with file and line, if a line has no label or no `qid`, or a feature is not a
                number or occurs twice.

        >>> file = InputFile(b"2 qid:7 1:-1.5 # a cat\n0 qid:7 3:1")
        >>> columns = next(Svmlight().columns(file, ReadOptions("dev")))
        >>> columns.hypotheses["text"], columns.hypotheses["f1"].tolist()
        (['a cat', '2'], [-1.5, 0.0])
        """
        ids: list[int | str] = []
        texts, labels, rows, numbers = list[str](), list[float](), list[dict[int, float]](), []
        ranks = Counter[int | str]()
        for number, line in enumerate(text_lines(file.blocks(), options.origin), 1):
            content, mark, comment = line.partition("#")
            if not (tokens := content.split()):
                continue
            if len(tokens) < 2 or not tokens[1].startswith("qid:") or tokens[1] == "qid:":
                problem = f"no qid after the label: a line reads {_SHAPE}"
                raise options.error(problem, number)
            qid = tokens[1].removeprefix("qid:")
            ids.append(int(qid) if _INTEGER.fullmatch(qid) else qid)
            ranks[ids[-1]] += 1
            texts.append(comment.removeprefix(" ") if mark else str(ranks[ids[-1]]))
            labels.append(options.number(tokens[0], number, "the label "))
            rows.append(_features(tokens[2:], options, number))
            numbers.append(number)
        if not rows:
            raise options.error("empty: there are no n-best lists in it", code="no-data")
        columns: dict[str, Any] = {TEXT: texts, LABEL: np.array(labels)}
        for feature in sorted(set().union(*rows)):
            columns[f"f{feature}"] = np.array([row.get(feature, 0.0) for row in rows])
        yield Columns(columns, {ID: ids}, np.arange(len(rows)), np.array(numbers))

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, without zeros but in the first line; features are numbered from 1.

        Those called `f3` keep their number if all have such names, in ascending order.

        Raises:
            DataError: if a candidate has no label, or an id or a text does not fit the format.
            UsageError: if the lists have no column of labels.

        >>> import sys
        >>> lists = NBest.from_lists([["a", "b"]], [[[-3, 0], [0, 1]]], ["f1", "f3"])
        >>> Svmlight().write(lists.with_extras(label=[2, 0]), sys.stdout)
        2 qid:0 1:-3 3:0 # a
        0 qid:0 3:1 # b
        """
        if self.label not in (*nbest.feature_names, *nbest.extras):
            problem = f"the lists have no column {self.label}, which a line begins with"
            remedy = "name the judgement, svmlight:label=COLUMN, or choose jsonl"
            raise UsageError(f"{problem}: {remedy}", parameter="format", code="missing-column")
        names = list(nbest.feature_names)
        labelled = names.index(self.label) if self.label in names else None
        values = nbest.features[:, labelled] if labelled is not None else nbest.extras[self.label]
        labels = as_numbers(values)
        if labels is None or not np.isfinite(labels).all():
            problem = f"a candidate has no number as its {self.label}: write jsonl"
            raise DataError(problem, nbest.origin, code="not-supported")
        kept = [k for k in range(len(names)) if k != labelled]
        names = [names[k] for k in kept]
        numbers = _numbers(names)
        for sentence, identifier in enumerate(nbest.ids):
            if len(str(identifier).split()) != 1 or "#" in str(identifier):
                problem = f"the id {quoted(identifier)} has a blank or #: write jsonl"
                raise DataError(problem, nbest.origin, code="not-supported")
            for row in range(*nbest.rows(sentence).indices(len(nbest.features))):
                text, values = nbest.text(row), nbest.features[row, kept]
                if "\n" in text or text.endswith("\r"):
                    raise broken_text(nbest, int(nbest.sentence_ids[sentence]))
                shown = values.view(np.int32) != 0  # only +0 is omitted
                pairs = [
                    f" {number}:{shortest(value)}"
                    for number, value, show in zip(numbers, values, shown, strict=True)
                    if show or row == 0
                ]
                label = shortest(labels[row])
                file.write(f"{label} qid:{identifier}{''.join(pairs)} # {text}\n")
        if names != [f"f{number}" for number in numbers]:
            renamed = f"{names[0]} is f1" + (", and so on" if len(names) > 1 else "")
            warn_user(f"{nbest.origin}: features are numbered in their order, so {renamed}")


def _features(tokens: Sequence[str], options: ReadOptions, line: int) -> dict[int, float]:
    """Return the features of a line by their numbers."""
    features: dict[int, float] = {}
    for token in tokens:
        index, colon, value = token.partition(":")
        if not (colon and _INTEGER.fullmatch(index)):
            problem = f"{quoted(token)} is not a number and a value, such as 3:0.5: correct it"
            raise options.error(problem, line)
        if int(index) in features:
            problem = f"the feature {index} occurs twice: leave one out"
            raise options.error(problem, line, "duplicate")
        features[int(index)] = options.number(value, line, f"feature {index}: ")
    return features


def _numbers(names: Sequence[str]) -> list[int]:
    """Return the numbers of features: those of their names, if they ascend, or their places."""
    numbers = [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]
    ascending = len(numbers) == len(names) and sorted(set(numbers)) == numbers
    return numbers if ascending else list(range(1, len(names) + 1))

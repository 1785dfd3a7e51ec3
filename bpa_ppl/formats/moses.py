"""N-best lists of Moses, `id ||| text ||| Name0= v v … ||| total`, and of Marian.

Fields added by -n-best-list-include-segmentation and -print-alignment-info-in-n-best,
`||| 0-2=0-2 3=3 ||| 0-0 1-2`, become the extras `segmentation` and `alignment`, as printed. The
same reader accepts variants of the format: glued labels (`F0=-1.5`), no total, the total before the
features, alignments or word scores between text and features.

Marian prints a label for each scorer of an ensemble, `F0= v F1= v`, glued to its value where there
is one scorer (`F0=-1.2`). `--alignment` adds a field between text and features, hard (`0-0 1-2`) or
soft (a vector of the source positions for each word, `0.9,0.1 0.2,0.8`), which becomes the extra
`alignment`. `--word-scores` adds `WordScores=` with a value for each word, which is left out with a
warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, TextIO

import numpy as np

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, UsageError, list_names, locate, quote
from bpa_ppl.formats.block import Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.moses_blocks import (
    ALIGNMENT,
    EXAMPLES,
    FEATURES,
    HARD,
    SEGMENTATION,
    SEPARATOR,
    SOFT,
    read_lines,
)
from bpa_ppl.formats.streams import InputFile
from bpa_ppl.formats.values import format_numbers
from bpa_ppl.formats.writing import require_plain_texts, warn_about_ids
from bpa_ppl.names import count_by_label, find_repeated
from bpa_ppl.nbest import NBest

_SCORE = re.compile(rb"F(\d{1,9})= ?[^\s=]+")


class Moses(NBestFormat, frozen=True):
    """The format of Moses and its variants; lists are written as Moses prints them."""

    texts: ClassVar[tuple[str, ...]] = (SEGMENTATION, ALIGNMENT)

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line of a file looks like this format.

        >>> Moses().detect(b"0 ||| a cat ||| LM0= -1 ||| -1"), Moses().detect(b'{"id": 0}')
        (True, False)
        """
        return SEPARATOR.search(first_line) is not None

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: with file and line, if a line does not have the columns of the first one,
                or cannot be read.

        >>> file = InputFile(b"0 ||| a cat ||| TM0= -1 0.5 ||| -1")
        >>> columns = next(Moses().blocks(file, ReadOptions("dev")))
        >>> columns.candidates["TM0[1]"].tolist(), columns.strings
        ([0.5], ['a cat'])
        """
        return read_lines(file, options)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, with their totals and positions if they have any.

        Raises:
            DataError: if a name, a text or a position would be ambiguous in the format.
            UsageError: if an empty segmentation or alignment would be read as the total.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"])
        >>> Moses().write(lists, sys.stdout)
        0 ||| a cat ||| TM0= -1 0.5
        """
        after = positions(nbest, [SEGMENTATION, ALIGNMENT], HARD)
        if nbest.totals is None and any(column[:1] == ("",) for column in after[:1]):
            problem = f"without totals an empty {SEGMENTATION} or {ALIGNMENT} would be read as one"
            advice = "write the lists with weights, which adds totals"
            raise UsageError(f"{nbest.origin}: {problem}: {advice}", parameter="weights")
        write_lines(nbest, file, _moses_labels(nbest), after=after)


class Marian(NBestFormat, frozen=True):
    """The format of Marian, as `marian-decoder --n-best` prints it.

    The last field is the score by which Marian ranks: the weighted sum of the features, divided by
    a power of the length with `--normalize`. A file does not show whether it is.

    Attributes:
        normalised: whether the totals may be divided by a length, as with `--normalize`; otherwise
            λ·h is compared with them when weights are adapted.
    """

    texts: ClassVar[tuple[str, ...]] = (SEGMENTATION, ALIGNMENT)

    normalised: bool = True

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has the labels F0, F1, … alone, as only Marian prints.

        >>> Marian().detect(b"0 ||| a cat ||| F0= -1 F1= -2 ||| -0.75")
        True
        >>> Marian().detect(b"0 ||| a cat ||| LM0= -1 ||| -1")
        False
        """
        fields = SEPARATOR.split(first_line.rstrip(b"\r"))
        scores = fields[-2].strip() if len(fields) > 3 else b""
        numbers = [int(number) for number in _SCORE.findall(scores)]
        rest = _SCORE.sub(b"", scores).strip()
        return not rest and bool(numbers) and numbers == list(range(len(numbers)))

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: with file and line, if a line does not have the columns of the first one,
                or cannot be read.

        >>> file = InputFile(b"0 ||| a cat ||| 0-0 1-1 ||| F0= -3 F1= -2 ||| -1.25")
        >>> columns = next(Marian().blocks(file, ReadOptions("dev")))
        >>> columns.candidates["alignment"], columns.normalised
        (['0-0 1-1'], True)
        """
        for columns in read_lines(file, options, SOFT):
            yield columns._replace(normalised=self.normalised)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists as Marian does, with alignments and totals if they have any.

        Raises:
            DataError: if a name, a text or an alignment would be ambiguous in the format.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat"]], [[[-3, -2]]], ["F0", "F1"], totals=[[-1.25]])
        >>> Marian().write(lists, sys.stdout)
        0 ||| a cat ||| F0= -3 F1= -2 ||| -1.25
        """
        alignments = positions(nbest, [ALIGNMENT], SOFT)
        write_lines(nbest, file, _plain_labels(nbest), between=alignments)


def write_lines(
    nbest: NBest,
    file: TextIO,
    labels: list[str],
    between: Sequence[Sequence[str]] = (),
    after: Sequence[Sequence[str]] = (),
) -> None:
    """Write one line per candidate.

    Args:
        nbest: the lists.
        file: where to write.
        labels: the text before the value of each feature.
        between: columns of fields to write before the features.
        after: columns of fields to write after the total.

    Raises:
        DataError: if there is no feature, or a text would not read back.
    """
    if not labels:
        problem = "no features, without which a line is not one of a list: write jsonl"
        raise DataError(problem, nbest.origin, code="not-supported")
    require_plain_texts(nbest, blanks=False)
    warn_about_ids(nbest)
    for sentence, identifier in enumerate(nbest.sentence_ids):
        rows = nbest.rows(sentence)
        values = [format_numbers(column, json=False) for column in nbest.features[rows].T]
        scores = [" ".join(map(str.__add__, labels, of)) for of in zip(*values, strict=True)]
        totals = [] if nbest.totals is None else [format_numbers(nbest.totals[rows], json=False)]
        before = [nbest.texts(sentence), *(column[rows] for column in between)]
        columns = [*before, scores, *totals, *(column[rows] for column in after)]
        for fields in zip(*columns, strict=True):
            file.write(f"{identifier} ||| {' ||| '.join(fields)}\n")


def positions(
    nbest: NBest, names: Sequence[str], patterns: Mapping[str, bytes]
) -> list[tuple[str, ...]]:
    """Return the segmentations or alignments of all candidates, if there are any.

    Args:
        nbest: the lists.
        names: of the extras: "segmentation" or "alignment".
        patterns: of the fields that the format can have, by name.

    Raises:
        DataError: if one does not fit the format.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[-1]]], ["LM0"], extras={"alignment": [["0-0"]]})
    >>> positions(lists, ["segmentation", "alignment"], HARD)
    [('0-0',)]
    """
    columns = {name: tuple(nbest.extras[name]) for name in names if name in nbest.extras}
    for name, column in columns.items():
        for row, field in enumerate(column):
            text = field if isinstance(field, str) else "?"
            if text != text.strip(" ") or not re.fullmatch(patterns[name], text.encode()):
                sentence = int(np.searchsorted(nbest.offsets, row, side="right")) - 1
                identifier = nbest.sentence_ids[sentence]
                problem = f"the {name} {quote(field)} of sentence {identifier} does not read"
                advice = f"`{EXAMPLES[name]}`: correct it, or leave it out with without({name!r})"
                raise DataError(f"{problem} {advice}", nbest.origin, code="not-supported")
    return list(columns.values())


def _moses_labels(nbest: NBest) -> list[str]:
    """Return the text before the value of each column, with `.` for `_` in names, as Moses needs.

    Raises:
        DataError: as `_plain_labels`, or if two names become one.

    >>> from bpa_ppl import from_lists
    >>> _moses_labels(from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"]))
    ['TM0= ', '']
    """
    labels = _plain_labels(nbest)
    renamed = [label.replace("_", ".") for label in labels]
    if renamed == labels:
        return labels
    if find_repeated(filter(None, renamed)):
        problem = "two features have the same name once `_` is `.`, as Moses needs: rename one"
        raise DataError(problem, nbest.origin, code="duplicate")
    names = list_names(sorted({label.strip("= ") for label in labels if "_" in label}))
    warn_user(
        f"{locate(nbest.origin)}`_` written as `.` in {names}, because Moses takes a name "
        "with `_` for a sparse feature and leaves it out"
    )
    return renamed


def _plain_labels(nbest: NBest) -> list[str]:
    """Return the text before the value of each column: a label, or nothing inside a group.

    Raises:
        DataError: if a name would be ambiguous in the format.

    >>> from bpa_ppl import from_lists
    >>> _plain_labels(from_lists([["a cat"]], [[[-1]]], ["my_lm"]))
    ['my_lm= ']
    """
    shape = count_by_label(nbest.feature_names)
    labels = [text for label, count in shape for text in (f"{label}= ", *[""] * (count - 1))]
    bad = [label for label in labels if label and not FEATURES.fullmatch(label.strip().encode())]
    if bad:
        problem = f"{quote(bad[0])} cannot be a Moses label: rename the feature"
        raise DataError(problem, nbest.origin, code="bad-name")
    return labels

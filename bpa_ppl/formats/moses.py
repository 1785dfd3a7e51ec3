"""Moses n-best lists, `id ||| text ||| Name0= v v … ||| total`, read and written.

What Moses adds with -n-best-list-include-segmentation and -print-alignment-info-in-n-best,
`||| 0-2=0-2 3=3 ||| 0-0 1-2`, is kept in the extras `segmentation` and `alignment`, as printed. The
same reader serves the relatives of the format: glued labels (`F0=-1.5`), no total, the total
before the features, alignments or word scores between text and features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, TextIO

import numpy as np

from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.moses_lines import (
    ALIGNMENT,
    EXAMPLES,
    FEATURES,
    SEGMENTATION,
    SEPARATOR,
    LineParser,
    fits,
)
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.formats.streams import line_count
from bpa_ppl.labels import printed_labels
from bpa_ppl.nbest import Float32, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.rows import Rows

if TYPE_CHECKING:
    from bpa_ppl.formats.moses_blocks import BlockParser

# Files of up to so many blocks (of 1 MiB) are not worth loading the compiled parser.
_PLAIN_BLOCKS = 1


class Moses(NBestFormat, frozen=True):
    """The format of Moses and its relatives; lists are written as Moses prints them."""

    def detect(self, first_line: bytes) -> bool:
        """Say whether the first line of a file looks like this format.

        >>> Moses().detect(b"0 ||| a cat ||| LM0= -1 ||| -1"), Moses().detect(b'{"id": 0}')
        (True, False)
        """
        return SEPARATOR.search(first_line) is not None

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file and line, if a line is not as the first one is, or not as it
                should be.

        >>> lines = b"0 ||| a cat ||| TM0= -1 0.5 ||| -1\n"
        >>> rows = next(Moses().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.features.tolist(), rows.strings
        (('TM0[0]', 'TM0[1]'), [[-1.0, 0.5]], ('a cat',))
        """
        return read_blocks(blocks, LineParser(options))

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, with their totals and positions where they have them.

        Raises:
            DataError: if a name, a text or a position cannot be told apart from the separators of
                the format.
            UsageError: if positions follow without totals, and could be taken for those.

        >>> import sys
        >>> lists = NBest.from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"])
        >>> Moses().write(lists, sys.stdout)
        0 ||| a cat ||| TM0= -1 0.5
        """
        kinds = [name for name in (SEGMENTATION, ALIGNMENT) if name in nbest.extras]
        after = [positions(nbest, name) for name in kinds]
        if nbest.totals is None and any(column[:1] == ("",) for column in after[:1]):
            raise UsageError(
                f"{nbest.origin}: without totals an empty {SEGMENTATION} or {ALIGNMENT} would be "
                "taken for one: write the lists with weights, which gives them totals"
            )
        write_lines(nbest, file, moses_labels(nbest), [], after)


def read_blocks(blocks: Iterable[bytes], lines: LineParser) -> Iterator[Rows]:
    """Yield the rows of each block of whole lines; the first line shows the columns.

    Raises:
        DataError: as `LineParser.rows`.
    """
    rest = iter(blocks)
    begun = list(islice(rest, _PLAIN_BLOCKS + 1))
    compiled: BlockParser | None = None
    if len(begun) > _PLAIN_BLOCKS:
        from bpa_ppl.formats.moses_blocks import BlockParser

        compiled = BlockParser(lines.columns(begun[0]))
    first = 1
    for block in chain(begun, rest):
        rows = None if compiled is None else compiled.rows(block, first)
        yield lines.rows(block, first) if rows is None else rows
        first += line_count(block)


def write_lines(
    nbest: NBest,
    file: TextIO,
    labels: list[str],
    between: list[tuple[str, ...]],
    after: list[tuple[str, ...]],
) -> None:
    """Write one line a hypothesis.

    Args:
        nbest: the lists.
        file: where to write.
        labels: what stands before the value of each feature.
        between: columns of one field a hypothesis, to be written before the features.
        after: the same, to be written after the total.

    Raises:
        DataError: if a text has a line break.
    """
    labelled = [*labels, "||| "]
    for sentence, identifier in enumerate(nbest.sentence_ids):
        rows = nbest.rows(sentence)
        columns = [_printed(nbest.features[rows, m]) for m in range(len(labels))]
        if nbest.totals is not None:
            columns.append(_printed(nbest.totals[rows]))
        values = zip(*columns, strict=True)
        sides = zip(_joined(between, rows), _joined(after, rows), strict=False)  # perhaps endless
        for text, printed, (first, last) in zip(nbest.texts(sentence), values, sides, strict=False):
            if "\n" in text:
                raise DataError(f"a text of sentence {identifier} has a line break", nbest.origin)
            # Without totals `printed` is the shorter, and the last separator is left out.
            scores = " ".join(map(str.__add__, labelled, printed))
            file.write(f"{identifier} ||| {text}{first} ||| {scores}{last}\n")


def _joined(columns: list[tuple[str, ...]], rows: slice) -> Iterable[str]:
    """Return the fields of some rows, each after its separator."""
    fields = zip(*(column[rows] for column in columns), strict=True)
    return ("".join(f" ||| {f}" for f in row) for row in fields) if columns else repeat("")


def positions(nbest: NBest, name: str, soft: bool = False) -> tuple[str, ...]:
    """Return the segmentations or alignments of all hypotheses, to be written.

    Args:
        nbest: the lists.
        name: of the extra: "segmentation" or "alignment".
        soft: whether an alignment may have a vector for each word.

    Raises:
        DataError: if one is not as the format prints it.

    >>> lists = NBest.from_lists([["a"]], [[[-1]]], ["LM0"], extras={"alignment": [["0-0"]]})
    >>> positions(lists, "alignment")
    ('0-0',)
    """
    column = tuple(nbest.extras[name])
    for row, field in enumerate(column):
        text = field if isinstance(field, str) else "?"
        if text != text.strip(" ") or not fits(text.encode(), name, soft):
            s = int(np.searchsorted(nbest.offsets, row, side="right")) - 1
            raise DataError(
                f"the {name} {quoted(field)} of sentence {nbest.sentence_ids[s]} cannot be "
                f"written: it must read `{EXAMPLES[name]}`, or leave the column out "
                f"with without({name!r})",
                nbest.origin,
            )
    return column


def moses_labels(nbest: NBest) -> list[str]:
    """Return what Moses prints before the value of each column: `_` in a name is written as `.`.

    Raises:
        DataError: as `plain_labels`, or if two names become one.

    >>> moses_labels(NBest.from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"]))
    ['TM0= ', '']
    """
    labels = plain_labels(nbest)
    renamed = [label.replace("_", ".") for label in labels]
    if renamed != labels:
        _warn_renamed(nbest, labels, renamed)
    return renamed


def plain_labels(nbest: NBest) -> list[str]:
    """Return what to print before the value of each column: a label, or nothing inside a group.

    Raises:
        DataError: if a name cannot be told apart from a value or a separator.

    >>> plain_labels(NBest.from_lists([["a cat"]], [[[-1]]], ["my_lm"]))
    ['my_lm= ']
    """
    shape = printed_labels(nbest.feature_names)
    labels = [text for label, count in shape for text in (f"{label}= ", *[""] * (count - 1))]
    bad = [label for label in labels if label and not FEATURES.fullmatch(label.strip().encode())]
    if bad:
        raise DataError(
            f"{quoted(bad[0])} cannot be a Moses label: rename the feature", nbest.origin
        )
    return labels


def _warn_renamed(nbest: NBest, labels: list[str], renamed: list[str]) -> None:
    shown = [label for label in renamed if label]
    if len(set(shown)) != len(shown):
        raise DataError(
            "two features have the same name once `_` is `.`, as Moses needs: rename one",
            nbest.origin,
        )
    names = ", ".join(sorted({old.strip("= ") for old in labels if "_" in old}))
    warn_user(
        f"{nbest.origin}: `_` written as `.` in {names}, because Moses takes a name with `_` for "
        "a sparse feature and leaves it out"
    )


def _printed(values: Float32) -> list[str]:
    """Return the shortest decimals that read back as the same 32-bit floats."""
    # As integers, so that −0 keeps its sign.
    distinct, index = np.unique(values.view(np.int32), return_inverse=True)
    texts = [shortest(value) for value in distinct.view(np.float32)]
    return [texts[i] for i in index]

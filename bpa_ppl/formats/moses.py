"""Moses n-best lists, `id ||| text ||| Name0= v v … ||| total`, read and written.

The same reader serves the relatives of the format: glued labels (`F0=-1.5`), no total, the total
before the features (Travatar), alignments or word scores between text and features (Marian),
alignments or segmentations after the total.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

import numpy as np

from bpa_ppl.errors import BpaWarning, DataError
from bpa_ppl.formats.base import NBestFormat, ReadOptions, Rows
from bpa_ppl.formats.moses_lines import FEATURES, SEPARATOR, LineParser
from bpa_ppl.formats.numbers import shortest
from bpa_ppl.labels import printed_labels
from bpa_ppl.nbest import Float32, NBest

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
        """Yield the rows of each block of whole lines.

        Raises:
            DataError: with file and line, if a line is not as the first one is, or not as it
                should be.

        >>> lines = b"0 ||| a cat ||| TM0= -1 0.5 ||| -1\\n"
        >>> rows = next(Moses().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.features.tolist(), rows.strings
        (('TM0[0]', 'TM0[1]'), [[-1.0, 0.5]], ('a cat',))
        """
        lines = LineParser(options)
        compiled: BlockParser | None = None
        first = 1
        for count, block in enumerate(blocks):
            if count == _PLAIN_BLOCKS and lines.layout is not None:
                from bpa_ppl.formats.moses_blocks import BlockParser

                compiled = BlockParser(lines.layout)
            rows = None if compiled is None else compiled.rows(block, first, lines.extra)
            yield lines.rows(block, first) if rows is None else rows
            first += block.count(b"\n")

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists, with their totals where they have them.

        Raises:
            DataError: if a name or a text cannot be told apart from the separators of the format.

        >>> import sys
        >>> lists = NBest.from_lists([["a cat"]], [[[-1, 0.5]]], ["TM0[0]", "TM0[1]"])
        >>> Moses().write(lists, sys.stdout)
        0 ||| a cat ||| TM0= -1 0.5
        """
        labels = _printed_labels(nbest)
        for sentence, identifier in enumerate(nbest.sentence_ids):
            rows = nbest.rows(sentence)
            columns = [_printed(nbest.features[rows, m]) for m in range(len(labels))]
            if nbest.totals is not None:
                columns.append(_printed(nbest.totals[rows]))
            labelled = [*labels, "||| "]
            for text, values in zip(nbest.texts(sentence), zip(*columns, strict=True), strict=True):
                if "\n" in text:
                    raise DataError(
                        f"a text of sentence {identifier} has a line break", nbest.origin
                    )
                # Without totals `values` is the shorter, and the last separator is not printed.
                scores = " ".join(map(str.__add__, labelled, values))
                file.write(f"{identifier} ||| {text} ||| {scores}\n")


def _printed_labels(nbest: NBest) -> list[str]:
    """Return what to print before the value of each column: a label, or nothing inside a group."""
    shape = printed_labels(nbest.feature_names)
    labels = [text for label, count in shape for text in (f"{label}= ", *[""] * (count - 1))]
    renamed = [label.replace("_", ".") for label in labels]
    if renamed != labels:
        _warn_renamed(nbest, labels, renamed)
    bad = [label for label in renamed if label and not FEATURES.fullmatch(label.strip().encode())]
    if bad:
        raise DataError(f"{bad[0]!r} cannot be a Moses label: rename the feature", nbest.origin)
    return renamed


def _warn_renamed(nbest: NBest, labels: list[str], renamed: list[str]) -> None:
    shown = [label for label in renamed if label]
    if len(set(shown)) != len(shown):
        raise DataError(
            "two features have the same name once `_` is `.`, as Moses needs: rename one",
            nbest.origin,
        )
    names = ", ".join(sorted({old.strip("= ") for old in labels if "_" in old}))
    warnings.warn(
        f"{nbest.origin}: `_` written as `.` in {names}, because Moses takes a name with `_` for "
        "a sparse feature and leaves it out",
        BpaWarning,
        stacklevel=3,
    )


def _printed(values: Float32) -> list[str]:
    """Return the shortest decimals that read back as the same 32-bit floats."""
    # As integers, so that −0 keeps its sign.
    distinct, index = np.unique(values.view(np.int32), return_inverse=True)
    texts = [shortest(value) for value in distinct.view(np.float32)]
    return [texts[i] for i in index]

"""References: one tuple a sentence, checked, and turned into what sacreBLEU takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from bpa_ppl.errors import DataError

#: One tuple of references a sentence; their numbers may differ.
References = Sequence[Sequence[str]]

#: The same as sacreBLEU takes it: the first reference of each sentence, the second, …; None
#: where a sentence has no more. (Its own annotation leaves the None out.)
Streams = list[Any]


def streams_of(references: References) -> Streams:
    """Return references as sacreBLEU takes them.

    >>> streams_of([("a", "b"), ("c",)])
    [['a', 'c'], ['b', None]]
    """
    return [list(stream) for stream in zip_longest(*references)]


def check_parallel(hypotheses: Sequence[str], references: References) -> None:
    """Raise a DataError unless there is a tuple of references for each hypothesis.

    >>> check_parallel(["a", "b"], [("a",), ("b", "c")])
    """
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} hypotheses and references for {len(references)} sentences: "
            "there must be as many"
        )
    check_references(references)


def check_references(references: References, source: str | None = None) -> None:
    """Raise a DataError unless there are sentences, each with at least one reference.

    >>> check_references([("a",), ("b", "c")])
    """
    if not len(references):
        raise DataError("there are no sentences to score", source)
    for sentence, refs in enumerate(references):
        if isinstance(refs, str):
            raise DataError(
                f"the references of sentence {sentence} are one string: give a tuple of strings",
                source,
            )
        if not len(refs):
            raise DataError(f"sentence {sentence} has no reference: give at least one", source)

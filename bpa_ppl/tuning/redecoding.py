"""The outer loop of re-estimation: tune, decode with the new weights, merge the lists, repeat."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.formats import write_weights
from bpa_ppl.nbest import NBest
from bpa_ppl.tuning.reestimation import Reestimation, reestimate
from bpa_ppl.weights import AnyWeights, Weights

#: Turns weights into the n-best lists of the tuning sentences.
Decoder = Callable[[Weights], NBest]


def redecode(
    nbest: NBest,
    weights: AnyWeights,
    decode: Decoder,
    *,
    iterations: int = 25,
    report: Callable[[int, Reestimation, int], None] | None = None,
    **options: Any,
) -> Reestimation:
    """Re-estimate until decoding with the new weights brings no new hypothesis.

    Source: Och (2003), section 5. Each iteration starts from the weights of the one before, on
    the lists of all decodings so far.

    Args:
        nbest: the lists of a first decoding, with references.
        weights: those of that decoding.
        decode: what decodes the same sentences with other weights.
        iterations: stop after so many, with a warning.
        report: called after each with its number, what it found, and how many hypotheses the
            decoder added to the lists.
        options: of `reestimate`: `tuner`, `metric`, `seed`, …

    Raises:
        DataError: as `reestimate`, and if the decoder's lists do not fit the first ones.
        UsageError: as `reestimate`, and if there is no iteration.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]])
    >>> found = redecode(lists, {"LM0": 1.0}, lambda weights: lists, metric="ter")
    >>> found.weights["LM0"] < 0
    True
    """
    if iterations < 1:
        raise UsageError(f"iterations must be 1 or more, not {iterations}")
    lists = nbest
    for iteration in range(1, iterations + 1):
        found = reestimate(lists, weights, **options)
        weights = found.weights
        lists, added = merge(lists, decode(found.weights))
        if report is not None:
            report(iteration, found, added)
        if not added:
            return found
    warnings.warn(
        f"the decoder still finds new hypotheses after {iterations} iterations: allow more of them",
        BpaWarning,
        stacklevel=2,
    )
    return found


@dataclass(frozen=True)
class Command:
    """A shell command that reads weights from a file and writes n-best lists to another.

    Args:
        line: the command; `{weights}` and `{nbest}` stand for the two files.
        read: reads the lists.
        template: a moses.ini: the weights are then written as a copy of it with new weights,
            and else one label a line, `Name0= value …`.

    Raises:
        UsageError: if the command does not say where the two files go.
    """

    line: str
    read: Callable[[Path], NBest]
    template: Path | None = None

    def __post_init__(self) -> None:
        for place in ("{weights}", "{nbest}"):
            if place not in self.line:
                raise UsageError(
                    f"the decoder command has no {place}: write it where the command takes the "
                    "name of that file"
                )

    def __call__(self, weights: Weights) -> NBest:
        """Run the command in a shell, with files in a folder that is removed afterwards.

        Raises:
            DataError: if it fails, or writes no lists that can be read.
        """
        with tempfile.TemporaryDirectory(prefix="bpa-") as folder:
            given, made = Path(folder) / "weights", Path(folder) / "nbest"
            write_weights(weights, given, template=self.template, format=self._format)
            places = {"{weights}": given, "{nbest}": made}
            line = self.line
            for place, path in places.items():
                line = line.replace(place, shlex.quote(str(path)))
            _run(line)
            if not made.is_file():
                raise DataError(f"the decoder command wrote no n-best lists: {self.line}")
            return self.read(made)

    @property
    def _format(self) -> str:
        return "dense" if self.template is None else "moses.ini"


def _run(line: str) -> None:
    done = subprocess.run(
        line, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise DataError(
            f"the decoder command failed with exit code {done.returncode}: "
            f"{said[-1] if said else 'it said nothing'}; try it by hand: {line}"
        )


class Merged(NamedTuple):
    """Lists of several decodings.

    Attributes:
        nbest: each list: the old hypotheses, then the new ones; exact duplicates once.
        added: how many were new.
    """

    nbest: NBest
    added: int


def merge(old: NBest, new: NBest) -> Merged:
    """Add to lists what another decoding of the same sentences has found.

    A hypothesis is new unless one with the same text and the same features is there. The
    decoders' totals are left out, since they were made with different weights.

    Args:
        old: the lists so far; their references stay.
        new: lists of the same sentences, known by their ids; some may be missing.

    Raises:
        DataError: if the features differ, or a sentence is unknown.

    >>> old = NBest.from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"], references=[["a"]])
    >>> new = NBest.from_lists([["b", "a"]], [[[2.0], [3.0]]], ["LM0"])
    >>> both, added = merge(old, new)
    >>> both.texts(0), added
    (['a', 'b', 'a'], 1)
    """
    if set(new.feature_names) != set(old.feature_names):
        raise DataError(
            f"the new lists have the features {', '.join(new.feature_names)}, those of "
            f"{old.origin} have {', '.join(old.feature_names)}: decode with the same model",
            new.origin,
        )
    both = NBest.concatenate(
        [_without(old, new), _without(new, old).with_sentences_of(old)], renumber=True
    )
    places = {identifier: len(old) + s for s, identifier in enumerate(new.sentence_ids.tolist())}
    rows: list[int] = []
    sizes, added = [], 0
    for sentence, identifier in enumerate(old.sentence_ids.tolist()):
        known = _distinct_rows(both, {}, sentence)
        union = _distinct_rows(both, known, places.get(identifier))
        rows += union.values()
        sizes.append(len(union))
        added += len(union) - len(known)
    merged = both.regroup(np.arange(len(old)), np.array(rows), sizes)
    return Merged(replace(merged, sentence_ids=old.sentence_ids, origin=old.origin), added)


def _without(lists: NBest, others: NBest) -> NBest:
    """Leave out the totals, and columns that the others do not have."""
    return lists.without("totals", *(name for name in lists.extras if name not in others.extras))


def _distinct_rows(
    lists: NBest, known: dict[tuple[str, bytes], int], sentence: int | None
) -> dict[tuple[str, bytes], int]:
    """Return the first row of each text with its features, bit for bit: known ones come first."""
    found = dict(known)
    if sentence is not None:
        for row in range(*lists.rows(sentence).indices(len(lists.features))):
            found.setdefault((lists.text(row), lists.features[row].tobytes()), row)
    return found

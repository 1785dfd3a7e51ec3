"""The outer loop of re-estimation: tune, decode with the new weights, merge the lists, repeat."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.formats import read_nbest, read_weights, write_nbest, write_weights
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_writer, read_text
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.quality import Metric, demote_to_extras, resolve
from bpa_ppl.tuning.reestimation import Reestimation, laid_out, reestimate, scores_of
from bpa_ppl.weights import AnyWeights, Weights, match

_LOOP = "loop.json"


class Rounds:
    """The weights and the decoded lists of each iteration, one file each.

    `weights.3.json` holds the weights that iteration 3 found, and `nbest.3.jsonl.zst` what was
    decoded with them. Each appears when it is complete; `loop.json` says of which loop they are.

    Args:
        folder: is made if it is not there; None keeps nothing.
        loop: what makes the loop, see `identity`.

    Raises:
        DataError: if the folder cannot be made, or is of another loop.
    """

    def __init__(self, folder: Path | None, loop: Mapping[str, str]):
        self._folder = folder
        if folder is None:
            return
        make_folder(folder)
        if (folder / _LOOP).exists():
            self._check(folder / _LOOP, loop)
            return
        with atomic_writer(folder / _LOOP) as file:
            file.write(json.dumps(dict(loop), indent=1) + "\n")

    def _check(self, path: Path, loop: Mapping[str, str]) -> None:
        try:
            known = json.loads(read_text(path))
        except (ValueError, RecursionError):
            known = None
        if known != loop:
            old = known if isinstance(known, dict) else {}
            other = ", ".join(what for what in loop if old.get(what) != loop[what])
            raise DataError(
                f"this folder is of a loop with other {other or 'settings'}: remove the folder, or "
                "name another one for the iterations (folder)",
                path.parent,
            )

    def weights(self, iteration: int) -> Weights | None:
        """Return the weights that an iteration found; None if it did not come so far."""
        path = self._file(f"weights.{iteration}.json")
        return None if path is None or not path.exists() else read_weights(path)

    def keep_weights(self, iteration: int, weights: Weights) -> None:
        """Keep the weights that an iteration found."""
        path = self._file(f"weights.{iteration}.json")
        if path is not None:
            write_weights(weights, path)

    def nbest(self, iteration: int) -> NBest | None:
        """Return what was decoded with the weights of an iteration; None if nothing was."""
        path = self._file(f"nbest.{iteration}.jsonl.zst")
        return None if path is None or not path.exists() else read_nbest(path)

    def keep_nbest(self, iteration: int, nbest: NBest) -> None:
        """Keep what was decoded with the weights of an iteration."""
        path = self._file(f"nbest.{iteration}.jsonl.zst")
        if path is not None:
            write_nbest(nbest, path)

    def _file(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / name


def identity(nbest: NBest, weights: Weights, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what makes a loop, in words or as a hash: two that agree in it are one.

    Args:
        nbest: the lists that it begins with.
        weights: the weights that it begins with.
        options: of `reestimate`, and what decodes.
    """
    digest = hashlib.sha256()
    for part in (nbest.features, nbest.offsets, nbest.sentence_ids, nbest.string_index):
        digest.update(part.tobytes())
    texts = [nbest.feature_names, nbest.strings, nbest.references, nbest.sources]
    digest.update(json.dumps(texts).encode())
    settings = {name: value for name, value in options.items() if name != "progress"}
    second = settings.pop("extra", None)
    if second is not None:
        settings["extra"] = identity(second, Weights({}), {})
    return {
        "lists": digest.hexdigest(),
        "weights": json.dumps(dict(weights)),
        "settings": ", ".join(f"{name}={settings[name]!r}" for name in sorted(settings)),
    }


#: Which weights a loop returns.
RETURNED = ("best", "last")

#: Turns weights into the n-best lists of the tuning sentences.
Decoder = Callable[[Weights], NBest]


@dataclass(frozen=True, eq=False)
class Redecoded(Reestimation):
    """What a loop of decodings found, from its start to its end.

    `before` and `after` are scores of the lists of all decodings together, `visited` the weights
    of each iteration, after those at the start.

    Attributes:
        iteration: which one found the weights; 0 if they are those of the start.
        iterations: how many there were.
    """

    iteration: int = 0
    iterations: int = 0

    def __str__(self) -> str:
        found = f"with the weights of iteration {self.iteration} of {self.iterations}"
        if not self.iteration:
            found = f"no iteration of {self.iterations} was better than the start"
        scores = super().__str__().replace("of the lists", "of the whole loop", 1)
        return f"{scores}, {found}"


def redecode(
    nbest: NBest,
    weights: AnyWeights,
    decode: Decoder,
    *,
    iterations: int = 25,
    returned: str = "best",
    folder: str | Path | None = None,
    report: Callable[[int, Reestimation, int], None] | None = None,
    **options: Any,
) -> Redecoded:
    """Re-estimate until decoding with the new weights brings no new hypothesis.

    Source: Och (2003), section 5. Each iteration starts from the weights of the one before, on
    the lists of all decodings so far.

    Args:
        nbest: the lists of a first decoding, with references.
        weights: those of that decoding.
        decode: what decodes the same sentences with other weights.
        iterations: stop after so many, with a warning.
        returned: `best` returns the weights, of all iterations and the start, whose first-best of
            all decodings scores best; `last` those of the last iteration.
        folder: keep weights and lists of each iteration there: the same loop, started again, goes
            on where it was killed.
        report: called after each with its number, what it found, and how many hypotheses the
            decoder added to the lists.
        options: of `reestimate`: `tuner`, `metric`, `seed`, …

    Raises:
        DataError: as `reestimate`, if the decoder's lists do not fit the first ones, or the folder
            is of another loop.
        UsageError: as `reestimate`, and if there is no iteration.

    >>> lists = NBest.from_lists([["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]])
    >>> found = redecode(lists, {"LM0": 1.0}, lambda weights: lists, metric="ter")
    >>> found.weights["LM0"] < 0
    True
    >>> print(found)  # doctest: +NORMALIZE_WHITESPACE
    TER of the whole loop: 50.00 → 0.00, BLEU 0.00 → 0.00, length 0.500 → 1.000, with the weights of
    iteration 1 of 1
    """
    if iterations < 1:
        raise UsageError(f"iterations must be 1 or more, not {iterations}")
    one_of(returned, RETURNED, "choice of weights")
    goal = resolve(options.get("metric", "bleu"), nbest)
    path = [_named(nbest, weights, goal, options)]
    what = {**options, "decoder": getattr(decode, "line", "a function")}
    kept = Rounds(None if folder is None else Path(folder), identity(nbest, path[0], what))
    lists, added = nbest, 0
    for iteration in range(1, iterations + 1):
        step = _step(iteration, lists, path[-1], kept, decode, options)
        path.append(step.weights)
        lists, added = merge(lists, step.decoded)
        if report is not None and step.found is not None:
            report(iteration, step.found, added)
        if not added:
            break
    if added:
        warn_user(
            f"the limit of {iterations} iterations is reached, and the decoder still finds new "
            "hypotheses: allow more (iterations)"
        )
    return _chosen(lists, path, returned, goal, options)


class _Step(NamedTuple):
    """One iteration: its weights, what was decoded with them, and how they were found, if now."""

    weights: Weights
    decoded: NBest
    found: Reestimation | None


def _step(
    iteration: int,
    lists: NBest,
    weights: Weights,
    kept: Rounds,
    decode: Decoder,
    options: Mapping[str, Any],
) -> _Step:
    """Tune and decode, or take what was found before."""
    found, known = None, kept.weights(iteration)
    if known is None:
        found = reestimate(lists, weights, **options)
        known = found.weights
        kept.keep_weights(iteration, known)
    decoded = kept.nbest(iteration)
    if decoded is None:
        decoded = decode(known)
        kept.keep_nbest(iteration, decoded)
    return _Step(known, decoded, found)


def _named(nbest: NBest, weights: AnyWeights, goal: Metric, options: Mapping[str, Any]) -> Weights:
    """Return the weights of the start, one a feature that is no column of the metric."""
    matching = {name: options.get(name) for name in ("fixed", "defaults")}
    matched = match(weights, demote_to_extras(nbest, goal.columns), **matching)
    return Weights(zip(matched.names, matched.values.tolist(), strict=True))


def _chosen(
    lists: NBest,
    path: list[Weights],
    returned: str,
    goal: Metric,
    options: Mapping[str, Any],
) -> Redecoded:
    """Return the weights of one iteration; all are compared on the lists of all decodings."""
    matched, laid = laid_out(lists, path[0], goal, options.get("fixed"))
    visited = np.array([[weights[name] for name in matched.names] for weights in path])
    gains = [laid.gain(goal, point[matched.free]) for point in visited]
    last = len(path) - 1
    # Of equally good ones the latest, which was tuned on the most.
    best = last if returned == "last" else last - int(np.argmax(gains[::-1]))
    return Redecoded(
        path[best],
        goal.key,
        goal.signed(gains[0]),
        goal.signed(gains[best]),
        visited,
        goal.decimals,
        scores_of(lists, laid, goal, *(visited[k][matched.free] for k in (0, best))),
        best,
        last,
    )


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
        """Run the command in a shell, with files in a folder that is removed if it does its work.

        Raises:
            DataError: if it fails, or writes no lists that can be read: the folder then stays.
        """
        folder = Path(tempfile.mkdtemp(prefix="bpa-"))
        given, made = folder / "weights", folder / "nbest"
        line = self.line
        for place, path in {"{weights}": given, "{nbest}": made}.items():
            line = line.replace(place, shlex.quote(str(path)))
        remedy = f"try it by hand: {line}"
        try:
            write_weights(weights, given, template=self.template, format=self._format)
            _run(line, remedy)
            if not made.is_file():
                raise DataError(f"the decoder command wrote no n-best lists; {remedy}")
            lists = self.read(made)
        except DataError:
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return lists

    @property
    def _format(self) -> str:
        return "dense" if self.template is None else "moses.ini"


def _run(line: str, remedy: str) -> None:
    done = subprocess.run(
        line, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise DataError(
            f"the decoder command failed with exit code {done.returncode}: "
            f"{said[-1] if said else 'it said nothing'}; {remedy}"
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

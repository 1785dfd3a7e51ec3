"""The outer loop of re-estimation: tune, decode with the new weights, merge the lists, repeat."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.components import Count
from bpa_ppl.diagnostics.ways.paired import compare_choices
from bpa_ppl.errors import DataError, UsageError, list_names, wrong_value
from bpa_ppl.extras.studies.tuning.reestimation import Reestimation, reestimate
from bpa_ppl.extras.studies.tuning.tuner import TuningProblem, make_tuning_lists
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.formats.reading import read_nbest
from bpa_ppl.formats.streams import atomic_writer, output_folder, read_text
from bpa_ppl.formats.weight_files import read_weights, write_weights
from bpa_ppl.formats.writing import write_nbest
from bpa_ppl.gains.gains import resolve
from bpa_ppl.lists.nbest import NBest, demote_to_extras
from bpa_ppl.weights import AnyWeights, Weights, match


@dataclass(frozen=True, eq=False)
class Redecoded(Reestimation):
    """The result of a loop of decodings.

    `before` and `after` are scores on the lists of all decodings, and `visited` has the initial
    weights and those of each iteration.

    Attributes:
        iteration: the number of the iteration that found the weights; 0 for the initial weights.
        iterations: the number of iterations.
    """

    iteration: int = 0
    iterations: int = 0

    def __str__(self) -> str:
        outcome = f"with the weights of iteration {self.iteration} of {self.iterations}"
        if not self.iteration:
            outcome = f"none of {self.iterations} iterations was better than the start"
        scores = super().__str__().replace("of the lists", "of the whole loop", 1)
        return f"{scores}, {outcome}"


def redecode(
    lists: NBest,
    weights: AnyWeights,
    decode: Callable[[Weights], NBest],
    *,
    iterations: int = 25,
    returned: str = "best",
    folder: str | Path | None = None,
    report: Callable[[int, Reestimation, int], None] | None = None,
    decoder: str = "a function",
    **options: Any,
) -> Redecoded:
    """Re-estimate until decoding with the new weights finds no new candidate.

    Source: Och (2003), section 5. Each iteration starts from the weights of the one before, on
    the lists of all decodings so far.

    Args:
        lists: the lists of a first decoding, with references.
        weights: those of that decoding.
        decode: decodes the same sentences with other weights.
        iterations: the maximum number of iterations; a warning says if it is reached.
        returned: `best` returns the weights, of all iterations and the start, with the best score
            on the lists of all decodings; `last` those of the last iteration.
        folder: for the weights and lists of each iteration: the same loop, started again, resumes
            where it was interrupted.
        report: called after each iteration with its number, its result, and the number of new
            candidates.
        decoder: what decodes, recorded in the folder.
        options: of `reestimate`: `tuner`, `gain`, `seed`, …

    Raises:
        DataError: as `reestimate`; if the lists of the decoder do not match the first ones, or the
            folder belongs to another loop.
        UsageError: as `reestimate`, or if `iterations` is below 1.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a b", "a"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b"]])
    >>> result = redecode(lists, {"LM0": 1.0}, lambda weights: lists, gain="ter")
    >>> result.weights["LM0"] < 0
    True
    >>> print(result)  # doctest: +NORMALIZE_WHITESPACE
    scores of the whole loop: TER 50.00 → 0.00 (−50.00); ..., with the weights of
    iteration 1 of 1
    """
    if iterations < 1:
        raise wrong_value("iterations must be 1 or more", iterations, "iterations")
    require_one_of(returned, ("best", "last"), "choice of weights", "returned")
    metric = resolve(options.get("gain", "bleu"), lists)
    matching = {name: options.get(name) for name in ("fixed", "defaults")}
    matched = match(weights, demote_to_extras(lists, metric.columns), **matching)
    path = [Weights(zip(matched.names, matched.values.tolist(), strict=True))]
    store = None if folder is None else Path(folder)
    identity = lists, path[0], {**options, "decoder": decoder}
    merged, added = lists, 0
    with nullcontext() if store is None else _claim_folder(store, *identity):
        for iteration in range(1, iterations + 1):
            tuned: Reestimation | None = None
            files = (f"weights.{iteration}.json", f"nbest.{iteration}.jsonl.zst")
            weights_file, lists_file = (store / name if store else None for name in files)
            if weights_file and weights_file.exists():
                path.append(read_weights(weights_file))
            else:
                tuned = reestimate(merged, path[-1], **options)
                path.append(tuned.weights)
                if weights_file:
                    write_weights(path[-1], weights_file)
            if lists_file and lists_file.exists():
                decoded = read_nbest(lists_file)
            else:
                decoded = decode(path[-1])
                if lists_file:
                    write_nbest(decoded, lists_file)
            merged, added = merge(merged, decoded)
            if report is not None and tuned is not None:
                report(iteration, tuned, added)
            if not added:
                break
    if added:
        reason = "although the decoder still finds new candidates: allow more iterations"
        warn_user(f"stopped after {iterations} iterations, {reason}")
    # All weights are compared on the lists of all decodings.
    matched, all_lists = make_tuning_lists(merged, path[0], metric, options.get("fixed"))
    visited = np.array([[point[name] for name in matched.names] for point in path])
    problem = TuningProblem(all_lists, metric, matched.free_values)
    gains = [problem.gain(point[matched.free]) for point in visited]
    last = len(path) - 1
    # Of equally good ones the latest, which was tuned on the most candidates.
    best = last if returned == "last" else last - int(np.argmax(gains[::-1]))
    points = (visited[k][matched.free] for k in (0, best))
    first, chosen = (all_lists.best(point) - all_lists.offsets[:-1] for point in points)
    scores = compare_choices(merged, first, chosen, metric, titles=("canonical", "tuned"))
    return Redecoded(path[best], scores, visited, iteration=best, iterations=last)


class Decoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A shell command that reads weights from a file and writes n-best lists to another.

    Args:
        command: `{weights}`, `{nbest}` and `{sources}` are replaced by the names of files.
        template: a moses.ini file, which is copied with the new weights; without it, the file of
            weights has one label a line, `Name0= value …`.
        iterations: the maximum number of decodings in the loop of a tuner.
        folder: where the command runs.

    Raises:
        UsageError: if the command lacks the name of the file of weights or lists.
    """

    command: str
    template: Path | None = None
    iterations: Count = 25
    folder: Path = Path()

    def __post_init__(self) -> None:
        for name in ("{weights}", "{nbest}"):
            if name not in self.command:
                message = f"the decoder command needs {name}: write it for the name of that file"
                raise UsageError(message, parameter="command", code="missing-argument")

    def function(
        self, sources: Sequence[str] | None = None, read: Callable[[Path], NBest] = read_nbest
    ) -> Callable[[Weights], NBest]:
        """Return the command as a function from weights to lists.

        Args:
            sources: written to a file, one a line, whose name replaces `{sources}`.
            read: reads the lists.

        Raises:
            UsageError: if the command reads sources, and there are none.
            DataError: if it reads sources, and one has a line break.
        """
        if "{sources}" in self.command and not sources:
            message = "the decoder command needs source texts for its {sources}: give them"
            raise UsageError(message, parameter="sources", code="missing-argument")
        if "{sources}" in self.command and any("\n" in s or "\r" in s for s in sources or ()):
            message = "a source has a line break, and the decoder reads one a line: remove it"
            raise DataError(message, parameter="sources", code="not-supported")
        return partial(self._run, sources=sources or (), read=read)

    def _run(
        self, weights: Weights, sources: Sequence[str], read: Callable[[Path], NBest]
    ) -> NBest:
        """Run the command in a shell, with files in a temporary folder.

        Raises:
            DataError: if it fails, or its lists cannot be read: the folder is then kept.
        """
        folder = Path(tempfile.mkdtemp(prefix="bpa-"))
        inputs, texts, output = folder / "weights", folder / "sources", folder / "nbest"
        if sources:
            texts.write_text("".join(f"{text}\n" for text in sources), "utf-8")
        line = self.command
        for path in (inputs, texts, output):
            line = line.replace(f"{{{path.name}}}", shlex.quote(str(path)))
        remedy = f"run it manually: {line}"
        format = "dense" if self.template is None else "moses.ini"
        write_weights(weights, inputs, template=self.template, format=format)
        streams: Any = {"stdin": subprocess.DEVNULL, "capture_output": True}
        try:
            result = subprocess.run(line, shell=True, check=False, cwd=self.folder, **streams)
        except KeyboardInterrupt:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if result.returncode:
            messages = result.stderr.decode(errors="replace").strip().splitlines()
            last = messages[-1] if messages else "without a message"
            code = result.returncode
            raise DataError(f"the decoder command failed with exit code {code}: {last}; {remedy}")
        if not output.is_file():
            message = f"no n-best lists from the decoder command: {remedy}"
            raise DataError(message, code="missing-file")
        lists = read(output)
        shutil.rmtree(folder, ignore_errors=True)
        return lists


def merge(old: NBest, new: NBest) -> tuple[NBest, int]:
    """Add the candidates of another decoding of the same sentences to lists.

    A candidate is new unless the list has one with the same text and the same features. Totals
    of the decoder are dropped, because they were computed with different weights.

    Args:
        old: the lists so far, with references.
        new: lists of the same sentences, identified by their ids; some may be missing.

    Returns:
        in each list the old candidates, then the new ones, without duplicates; and the number of
        new candidates.

    Raises:
        DataError: if the features differ, or a sentence is unknown.

    >>> from bpa_ppl import from_lists
    >>> old = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"], references=[["a"]])
    >>> new = from_lists([["b", "a"]], [[[2.0], [3.0]]], ["LM0"])
    >>> both, added = merge(old, new)
    >>> both.texts(0), added
    (['a', 'b', 'a'], 1)
    """
    if set(new.feature_names) != set(old.feature_names):
        names, others = (list_names(lists.feature_names) for lists in (new, old))
        message = f"the features {names}, but the old lists have {others}: use the same model"
        raise DataError(message, new.origin, code="mismatch")
    number = {identifier: s for s, identifier in enumerate(old.sentence_ids.tolist())}
    if unknown := set(new.sentence_ids.tolist()) - set(number):
        problem = f"sentence id {min(unknown)} is not in {old.origin}: give lists of the same text"
        raise DataError(problem, new.origin, code="mismatch")
    of_new = [number[identifier] for identifier in new.sentence_ids.tolist()]
    both = join(old, with_sentences_of(new, old[of_new]))
    sentence = np.repeat([*range(len(old)), *of_new], both.sizes)
    first: dict[tuple[int, str, bytes], int] = {}
    for row in np.argsort(sentence, kind="stable").tolist():
        key = int(sentence[row]), both.text(row), both.features[row].tobytes()
        first.setdefault(key, row)
    rows = np.array(list(first.values()), np.int64)
    sizes = np.bincount(sentence[rows], minlength=len(old))
    merged = both.regroup(np.arange(len(old)), rows, sizes)
    added = int(np.count_nonzero(rows >= len(old.features)))
    return replace(merged, sentence_ids=old.sentence_ids, origin=old.origin), added


def join(lists: NBest, others: NBest) -> NBest:
    """Return the lists of both, numbered from 0, with the columns that both have, but no totals.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[1.0]]], ["LM0"])
    >>> join(lists, lists.with_extras(quality=[0.5])).sentence_ids.tolist()
    [0, 1]
    """
    return concatenate(
        [_drop_unshared(lists, others), _drop_unshared(others, lists)], renumber=True
    )


def with_sentences_of(lists: NBest, others: NBest) -> NBest:
    """Return lists with the ids, references and other columns of the sentences of others.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]], [[[1.0]]], ["LM0"])
    >>> with_sentences_of(lists, lists.with_references(["A"])).references
    (('A',),)
    """
    return replace(
        lists,
        sentence_ids=others.sentence_ids,
        references=others.references,
        sources=others.sources,
        sentence_extras=others.sentence_extras,
    )


def _drop_unshared(lists: NBest, others: NBest) -> NBest:
    """Drop the totals, and columns that the others do not have."""
    return lists.without("totals", *(name for name in lists.extras if name not in others.extras))


@contextmanager
def _claim_folder(
    folder: Path, lists: NBest, weights: Weights, options: Mapping[str, Any]
) -> Iterator[None]:
    """Prepare a folder for the weights and the decoded lists of each iteration of a loop.

    `weights.3.json` contains the weights of iteration 3, and `lists.3.jsonl.zst` the lists that
    were decoded with them. Files are written atomically; `loop.json` identifies the loop by the
    first lists and weights, and the options. A new folder is removed after an error before the
    first weights.

    Args:
        folder: created if it does not exist.
        lists: the first lists.
        weights: the first weights.
        options: of `reestimate`, and the decoder.

    Raises:
        DataError: if the folder cannot be made, contains other files, or belongs to another loop.
    """
    digest = hashlib.sha256()
    for part in (lists.features, lists.offsets, lists.sentence_ids, lists.string_index):
        digest.update(part.tobytes())
    texts = [lists.feature_names, lists.strings, lists.references, lists.sources]
    digest.update(json.dumps(texts).encode())
    names = sorted(name for name in options if name != "progress")
    loop = {
        "lists": digest.hexdigest(),
        "weights": json.dumps(dict(weights)),
        "settings": ", ".join(f"{name}={options[name]!r}" for name in names),
    }
    path = folder / "loop.json"
    with output_folder(folder):
        first = not path.exists()
        if first and any(folder.iterdir()):
            message = "contains files, but no loop: choose an empty or a new folder"
            raise DataError(message, folder, parameter="folder", code="cannot-write")
        try:
            if first:
                with atomic_writer(path) as file:
                    file.write(json.dumps(loop, indent=1) + "\n")
            recorded: dict[str, str] = {}
            with suppress(msgspec.MsgspecError):
                recorded = msgspec.json.decode(read_text(path), type=dict[str, str])
            if changed := [key for key in loop if recorded.get(key) != loop[key]]:
                message = f"this folder was created with other {', '.join(changed)}: choose another"
                raise DataError(message, folder, parameter="folder", code="mismatch")
            yield
        except BaseException:
            if first and not any(folder.glob("weights.*")):
                path.unlink(missing_ok=True)
            raise

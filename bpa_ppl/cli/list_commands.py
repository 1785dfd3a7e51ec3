"""`bpa lists`, `bpa oracle` and `bpa features`: commands on lists alone."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import Annotated

from cyclopts import Parameter

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import BpaError, UsageError, list_names
from bpa_ppl.gains.preferences import has_preferences
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import NONE

#: Of lists with totals, where no file of weights is found.
_CANONICAL = "- canonical weights are those that the decoder used for these lists, for example in "
_CANONICAL += "its moses.ini: if you have the file, pass it to --weights"


def lists_(
    *nbest: shared.NBestPaths,
    reading: shared.Reading = shared.Reading(),
    columns: shared.ColumnFlags = shared.ColumnFlags(),
    gain: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Gain of the candidates: show which of two is better by it, and in how many lists "
            "it is known.",
        ),
    ] = None,
    unchecked: shared.UncheckedReferences = False,
    as_json: shared.AsJson = False,
) -> None:
    """Show what is in n-best lists: counts, columns, examples, and how `bpa adapt` reads them.

    Example: `bpa lists dev.jsonl`
    """
    from bpa_ppl.evaluation.describe import describe
    from bpa_ppl.formats.reading import format_name
    from bpa_ppl.gains.gains import default_gain, resolve
    from bpa_ppl.gains.misplaced import check_references

    lists = reading.read_together(nbest, roles=columns.roles(gain))
    description = describe(lists, gain)
    if any(lists.references or ()):
        chosen = resolve(gain or default_gain(lists, canonical=False), lists)
        check_references(lists, chosen, unchecked=unchecked)
    # A pipe cannot be read twice.
    paths = shared.expand_patterns(nbest)
    files = [path for path in paths if os.path.isfile(path) or os.path.isdir(path)]
    formats = [format_name(path, reading.formats.arguments()["format"]) for path in files]
    words = [word for word in sys.argv[2:] if word.partition("=")[0] != "--json"]
    weights = _find_weights(nbest[0], lists)
    command = _write_command(words, lists, weights or NONE, gain)
    if as_json:
        fields = {**description.as_dict(), "formats": formats, "command": command}
        print(json.dumps(fields, indent=2, ensure_ascii=False))
    else:
        if formats:
            print(f"read as {', '.join(dict.fromkeys(formats))}")
        print(description)
        print(f"- to adapt, with your columns in capital letters: {command}")
        if lists.totals is not None and weights is None:
            print(_CANONICAL)


def _write_command(words: list[str], lists: NBest, weights: str, gain: str | None) -> str:
    """Return the line of `bpa adapt`, in which the user names the columns that have no role yet.

    Args:
        words: the arguments of `bpa lists` that name files and say how they are read.
        lists: what was read.
        weights: the canonical weights.
        gain: the gain that was given.
    """
    named = [] if lists.feature_names else ["--features", "COLUMNS"]
    learned = gain or has_preferences(lists) or any(lists.references or ())
    options = ["--weights", weights, *named, *([] if learned else ["--gain", "COLUMN"])]
    end = words.index("--") if "--" in words else len(words)
    return shlex.join(["bpa", "adapt", *words[:end], *options, "-o", "posterior.nc", *words[end:]])


def _find_weights(path: str, lists: NBest) -> str | None:
    """Return the moses.ini next to the lists, if it has the weights of their features."""
    from bpa_ppl.formats.weight_files import read_weights
    from bpa_ppl.weights import match

    file = os.path.join(os.path.dirname(path), "moses.ini")
    if lists.totals is None or not os.path.isfile(file):
        return None
    try:
        match(read_weights(file), lists)
    except BpaError:
        return None
    return file


def oracle(
    nbest: shared.NBestPath,
    /,
    *,
    reading: shared.Reading = shared.Reading(),
    columns: shared.ColumnFlags = shared.ColumnFlags(),
    output: shared.Output | None = None,
    weights: Annotated[str | None, Parameter(alias="-w")] = None,
    gain: shared.Gain = None,
    unchecked: shared.UncheckedReferences = False,
    quiet: shared.Quiet = False,
) -> None:
    """Find oracles, and print the scores of first-best, oracle and anti-oracle.

    With a column of judgements as the gain, also print the scores of simple baselines.

    Example: `bpa oracle dev.nbest --references dev.ref --gain bleu`

    Args:
        output: Oracle texts, one per line; or JSON lines if the name ends in .jsonl, which texts
            with line breaks need; - for stdout.
        weights: Canonical weights, to break ties.
    """
    from bpa_ppl._runtime.progress import reporter
    from bpa_ppl._runtime.streams import atomic_writer
    from bpa_ppl.decoding.writing import format_texts
    from bpa_ppl.evaluation.compare_ways import compare_baselines
    from bpa_ppl.evaluation.headroom import headroom
    from bpa_ppl.gains.column import Column
    from bpa_ppl.gains.gains import default_gain, resolve
    from bpa_ppl.gains.misplaced import check_references
    from bpa_ppl.lists.nbest import demote_to_extras, score_differences
    from bpa_ppl.weights import match

    lists = reading.read(nbest, columns.roles(gain))
    gain = gain or default_gain(lists, canonical=weights is not None)
    chosen = resolve(gain, lists)
    check_references(lists, chosen, unchecked=unchecked)
    scores = None
    if weights is not None:
        lists = demote_to_extras(lists, chosen.columns)
        matched = match(shared.parse_weights(weights), lists, fixed=())
        scores = score_differences(lists, matched.values)
    ties = "shared" if scores is None and lists.totals is None else "canonical"
    with reporter(not quiet, "oracle") as report:
        room = headroom(lists, scores, chosen, ties=ties, progress=report)
    if output is not None:
        texts = zip(lists.ids, lists.chosen(room.oracles.index), strict=True)
        rows = list(format_texts(texts, output))
        with atomic_writer(output) as file:
            file.writelines(rows)
    shared.print_result(room, output)
    if isinstance(chosen, Column) and len(lists) > 1 and lists.feature_names:
        shared.print_result(f"\n{compare_baselines(lists, gain=chosen)}", output)


def features(
    nbest: shared.NBestPath,
    /,
    *,
    output: shared.OutputPath,
    add: shared.Add = None,
    reading: shared.Reading = shared.Reading(),
    columns: shared.ColumnFlags = shared.ColumnFlags(),
    quiet: shared.Quiet = False,
) -> None:
    """Add features to n-best lists, for tuners and programs that read lists.

    Features that are learned from the adaptation sentences (self) are learned from these lists.
    `bpa adapt --add` does not need this command: the posterior records how to compute the features
    of new lists.

    Example: `bpa features dev.nbest --add lm=domain.txt --output dev.jsonl`

    Args:
        output: N-best lists; the ending of the name gives the format, such as .jsonl.
    """
    from bpa_ppl.features.source import add_features
    from bpa_ppl.formats.writing import write_nbest

    if not add:
        raise UsageError("name the features to add", parameter="add")
    lists = reading.read(nbest, columns.roles())
    extended = add_features(lists, add, progress=not quiet)
    write_nbest(extended, output)
    new = list_names(extended.feature_names[len(lists.feature_names) :])
    shared.echo_status(f"added {new} to {len(extended.features):,} candidates", quiet)

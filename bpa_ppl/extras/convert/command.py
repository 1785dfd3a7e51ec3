"""`bpa convert`: files of other tools become JSON lines of lists."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from cyclopts import Parameter

import bpa_ppl.extras.convert as kinds
from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import format_count, log_info
from bpa_ppl._runtime.streams import require_writable
from bpa_ppl.cli import options as shared
from bpa_ppl.components import read_name
from bpa_ppl.errors import DataError, unknown_name
from bpa_ppl.extras.convert.records import read_json, read_text_lines, write_lists
from bpa_ppl.extras.convert.servers import ANSWERS
from bpa_ppl.formats.advice import advise
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.formats.reading import read_nbest
from bpa_ppl.formats.writing import write_nbest

#: The box of the command in `bpa --help`.
HELP_BOX = "Lists and priors"
#: Kinds that are functions of their name.
_FUNCTIONS = tuple(name for name in kinds.__all__ if name != "answers")
#: Formats of the core whose files are lists of other programs.
_CORE_FORMATS = ("espnet", "fairseq", "kaldi", "marian", "moses", "plain")
#: Kinds that are formats of the core, with their settings.
_FORMATS = sorted((*ANSWERS, *_CORE_FORMATS))
#: Kinds whose files are lines of text; the others are JSON.
_OF_LINES = ("icefall", "letor", "trec", "wmt")
#: The kinds that have each setting.
_SETTINGS: dict[str, tuple[str, ...]] = {
    "baseline": ("arenahard",),
    "question": ("argilla", "ranked"),
    "first": ("argilla", "labelstudio", "ranked"),
    "second": ("argilla", "labelstudio", "ranked"),
    "qrels": ("trec",),
    "bad": ("alpacaeval", "arenahard", "mtbench", "promptfoo", *_FORMATS),
    "prompt_id": (*ANSWERS,),
    "extract": (*ANSWERS,),
}


def convert(
    kind: Annotated[
        str,
        Parameter(
            help=f"What the files are: {shared.format_names(_FUNCTIONS)}; or a format of "
            f"--format, with its settings: {shared.format_names(_FORMATS)}."
        ),
    ],
    /,
    *files: Annotated[str, Parameter(required=True)],
    output: shared.Output,
    bad: Literal["error", "drop"] | None = None,
    prompt_id: str | None = None,
    extract: str | None = None,
    qrels: str | None = None,
    baseline: str | None = None,
    question: str | None = None,
    first: str | None = None,
    second: str | None = None,
) -> None:
    """Convert files of another tool to JSON lines of lists.

    Example: `bpa convert anthropic answers.jsonl -o lists.jsonl`

    Args:
        files: Files of this kind, read one after another; JSON, also an array, or lines of text.
        output: JSON lines; .gz, .xz and .zst are compressed, - is the standard output.
        bad: What to do about answers, judgements and results that failed: error, or drop to leave
            them out (default: error).
        prompt_id: Answers of LLMs: a regular expression that finds the name of the prompt in the
            name of a request, as (.*)-sample in doc-7-sample-2.
        extract: Answers of LLMs: a regular expression that finds the candidate in an answer, by
            its first group or the whole match.
        qrels: trec: judgements of the documents.
        baseline: arenahard: the name of the baseline of files without a field baseline (default:
            baseline).
        question: argilla: the name of the question (default: better); ranked: the field of the
            prompt (default: prompt).
        first: labelstudio, argilla: the field of the first text (default: first); ranked: that of
            the chosen answers (default: chosen).
        second: labelstudio, argilla: the field of the second text (default: second); ranked: that
            of the rejected answers (default: rejected).
    """
    name = read_name(kind)
    kind_name = name if name in _FORMATS else kind
    require_one_of(kind_name, (*_FUNCTIONS, *_FORMATS), "kind of file", "kind")
    values = baseline, question, first, second, qrels, bad, prompt_id, extract
    pairs = zip(_SETTINGS, values, strict=True)
    settings: dict[str, Any] = {name: value for name, value in pairs if value is not None}
    for setting in settings:
        if kind_name not in _SETTINGS[setting]:
            allowed = [one for one, of in _SETTINGS.items() if kind_name in of]
            raise unknown_name("setting", setting, allowed, setting, owner=kind)
    require_writable(output)
    paths = shared.expand_patterns(files)
    if name in _CORE_FORMATS:
        tables = [read_nbest(path, format=kind, **settings) for path in paths]
        converted = concatenate(tables, fill_missing=True)
        write_nbest(converted, output, format="jsonl")
        count, candidates = len(converted), len(converted.features)
    else:
        function: Any = getattr(kinds, kind, None)
        read: Any = read_text_lines if kind in _OF_LINES else read_json
        if name in ANSWERS:  # a server may write NaN, which is a missing number there
            function, read = partial(kinds.answers, server=kind), partial(read_json, finite=False)
        if qrels is not None:
            settings["qrels"] = read_text_lines(qrels)

        def run(changes: Mapping[str, Any]) -> list[dict[str, Any]]:
            records = (one for path in paths for one in read(path))
            converted: list[dict[str, Any]] = function(records, **settings, **changes)
            return converted

        try:
            lists = run({})
        except DataError as error:
            raise advise(error, lambda changes: iter(run(changes))) from error.__cause__
        write_lists(lists, output)
        count, candidates = len(lists), sum(len(of["candidates"]) for of in lists)
    log_info(f"{output}: {format_count(count, 'list')} of {format_count(candidates, 'candidate')}")

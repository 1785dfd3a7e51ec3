"""Answers of LLMs in the forms of their servers: see `bpa_ppl.formats.answers`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, cast

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl.components import read_name
from bpa_ppl.extras.convert.records import Lists, drop_missing
from bpa_ppl.formats.answers import MODEL, Answers, find_numbers
from bpa_ppl.formats.block import CANDIDATES, ID, ID_NUMBER, SOURCE, TEXT
from bpa_ppl.formats.format import NBEST_FORMATS, OPENAI, SERVERS
from bpa_ppl.formats.located import iter_records
from bpa_ppl.formats.samples import COUNT, STATISTICS
from bpa_ppl.formats.schema import Schema

#: The formats of answers.
ANSWERS = (OPENAI, *SERVERS)


def answers(
    records: Iterable[Any],
    server: str,
    *,
    bad: str = "error",
    prompt_id: str | None = None,
    extract: str | None = None,
) -> Lists:
    """Return the lists of answers of LLMs, one a prompt.

    `bpa_ppl.read_nbest` reads the same files with `format=server`, as lists whose features have no
    missing values.

    Args:
        records: answers of a server, one by one or in the lines of a batch, which name their
            prompts: lines of the server, or `{"custom_id": "…", "response": ANSWER}`.
        server: the name of its format, with settings as in "gemini:prompt_id=(.*)-sample".
        bad: what to do about answers that are errors, not complete or without a text: "error", or
            "drop" to leave them out.
        prompt_id: a regular expression that finds the name of the prompt in a `custom_id`, where
            several requests have the same prompt, as `(.*)-sample` in `doc-7-sample-2`.
        extract: a regular expression that finds the candidate in an answer: its first group, or the
            whole match.

    Raises:
        DataError: if a record is not such an answer, or an answer cannot be a candidate.
        UsageError: if there is no such server, or a setting has a wrong value.

    >>> content = [{"type": "text", "text": "a cat"}]
    >>> message = {"content": content, "stop_reason": "end_turn", "model": "claude"}
    >>> line = {"custom_id": "q", "result": {"type": "succeeded", "message": message}}
    >>> answers([line], "anthropic")
    [{'id': 'q', 'candidates': [{'text': 'a cat', 'features': {'count': 1}, 'model': 'claude'}]}]
    """
    require_one_of(read_name(server), ANSWERS, "server", "server")
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    settings = drop_missing({"prompt_id": prompt_id, "extract": extract})
    format = cast("Answers", NBEST_FORMATS.resolve(server, settings))
    located = iter_records(records)
    first = next(located)
    samples, _ = format.collect(chain([first], located), Schema(first.origin, bad))
    counted = range(format.first_id, format.first_id + len(samples.names))
    block = samples.columns(counted, origins=MODEL, with_logprobs=False)
    numbers = counted if format.requests else find_numbers(samples.names)
    lists: Lists = []
    for place, (name, source) in enumerate(zip(samples.names, samples.sources, strict=True)):
        number = numbers[place] if numbers is not None and isinstance(name, str) else None
        fields = {ID: counted[place] if name is None else name, ID_NUMBER: number, SOURCE: source}
        lists.append({**drop_missing(fields), CANDIDATES: []})
    columns = block.candidates
    for row, parent in enumerate(block.parents.tolist()):
        features = {n: columns[n][row].item() for n in (*STATISTICS, COUNT) if n in columns}
        features = {
            n: int(v) if n in (COUNT, STATISTICS[3]) else v for n, v in features.items() if v == v
        }
        model = columns[MODEL][row] if MODEL in columns else None
        candidate = {TEXT: columns[TEXT][row], "features": features, MODEL: model}
        lists[parent][CANDIDATES].append(drop_missing(candidate))
    return lists

"""Answers of LLMs in the forms of their servers: see `bpa_ppl.formats.answers`.

A record is an answer, or a line of a batch that names its prompt: one of the server, or
`{"custom_id": "…", "response": ANSWER}`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl.extras.convert.records import Lists, drop_missing
from bpa_ppl.formats.answers import MODEL, Server
from bpa_ppl.formats.block import TEXT, ReadOptions
from bpa_ppl.formats.located import iter_records
from bpa_ppl.formats.samples import COUNT, STATISTICS


def _convert(format: Server, records: Iterable[Any], bad: str) -> Lists:
    """Return the lists of the answers in some records."""
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    located = iter_records(records)
    first = next(located)
    samples, _ = format.collect(chain([first], located), ReadOptions(first.origin, bad))
    names = [place if name is None else name for place, name in enumerate(samples.names)]
    block = samples.columns(range(len(names)), origins=MODEL, with_logprobs=False)
    lists: Lists = [
        {**drop_missing({"id": name, "source": source}), "candidates": []}
        for name, source in zip(names, samples.sources, strict=True)
    ]
    columns, strings = block.candidates, block.strings or ()
    for row, parent in enumerate(block.parents.tolist()):
        numbers = {n: columns[n][row].item() for n in (*STATISTICS, COUNT) if n in columns}
        numbers = {
            n: int(v) if n in (COUNT, STATISTICS[3]) else v for n, v in numbers.items() if v == v
        }
        model = columns[MODEL][row] if MODEL in columns else None
        candidate = {"text": strings[columns[TEXT][row]], "features": numbers, MODEL: model}
        lists[parent]["candidates"].append(drop_missing(candidate))
    return lists


def anthropic(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of messages of Anthropic, one by one or in the lines of a batch.

    Args:
        records: messages, or lines of a batch.
        bad: what to do about answers that are errors, not complete or without a text: "error", or
            "drop" to leave them out.
        prompt_id: a regular expression that finds the name of the prompt in a `custom_id`, where
            several requests have the same prompt, as `(.*)-sample` in `doc-7-sample-2`.
        extract: a regular expression that finds the candidate in an answer: its first group, or the
            whole match.

    Raises:
        DataError: if a record is not such an answer, or an answer cannot be a candidate.

    >>> content = [{"type": "text", "text": "a cat"}]
    >>> message = {"content": content, "stop_reason": "end_turn", "model": "claude"}
    >>> anthropic([{"custom_id": "q", "result": {"type": "succeeded", "message": message}}])
    [{'id': 'q', 'candidates': [{'text': 'a cat', 'features': {'count': 1}, 'model': 'claude'}]}]
    """
    return _convert(Server(tool="anthropic", prompt_id=prompt_id, extract=extract), records, bad)


def gemini(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of answers of Gemini and Vertex AI, one by one or in the lines of a batch.

    The source is the last message of the request, if a line has it.

    Args:
        records: answers, with names in camel case or as Python's packages write them; or lines.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.

    Raises:
        DataError: as `anthropic`.

    >>> one = {"content": {"parts": [{"text": "a cat"}]}, "finishReason": "STOP"}
    >>> gemini([{"candidates": [one, one], "modelVersion": "g"}])
    [{'id': 0, 'candidates': [{'text': 'a cat', 'features': {'count': 2}, 'model': 'g'}]}]
    """
    return _convert(Server(tool="gemini", prompt_id=prompt_id, extract=extract), records, bad)


def bedrock(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of answers of Amazon Bedrock: of Converse, or of models in a batch.

    Args:
        records: answers of Converse or Nova, or as models of Anthropic, Meta and Mistral write
            them; or lines of a batch with these.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.

    Raises:
        DataError: as `anthropic`.

    >>> answer = {"generation": " a cat", "stop_reason": "stop"}
    >>> bedrock([{"recordId": "r-1", "modelInput": {}, "modelOutput": answer}])
    [{'id': 'r-1', 'candidates': [{'text': 'a cat', 'features': {'count': 1}}]}]
    """
    return _convert(Server(tool="bedrock", prompt_id=prompt_id, extract=extract), records, bad)


def cohere(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of answers of Cohere's chat (version 2).

    Args:
        records: answers, or lines `{"custom_id": …, "response": ANSWER}`.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.

    Raises:
        DataError: as `anthropic`.

    >>> message = {"content": [{"type": "text", "text": "a cat"}]}
    >>> answer = {"message": message, "finish_reason": "COMPLETE", "logprobs": [{"logprobs": [-1]}]}
    >>> cohere([answer])[0]["candidates"][0]["features"]["logprob.sum"]
    -1.0
    """
    return _convert(Server(tool="cohere", prompt_id=prompt_id, extract=extract), records, bad)


def ollama(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of answers of Ollama to chats and prompts.

    Args:
        records: answers that were not streamed; as they do not name their prompt, several answers
            to one are lines `{"custom_id": …, "response": ANSWER}`.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.

    Raises:
        DataError: as `anthropic`.

    >>> answer = {"model": "m", "response": "a cat", "done": True, "done_reason": "stop"}
    >>> ollama([{"custom_id": 7, "response": answer}])
    [{'id': 7, 'candidates': [{'text': 'a cat', 'features': {'count': 1}, 'model': 'm'}]}]
    """
    return _convert(Server(tool="ollama", prompt_id=prompt_id, extract=extract), records, bad)


def llamacpp(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of answers of llama.cpp to `/completion`.

    Answers to one prompt, which is their source, are the candidates of a list.

    Args:
        records: answers that were not streamed.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.

    Raises:
        DataError: as `anthropic`.

    >>> answer = {"content": " a cat", "stop": True, "stop_type": "eos", "prompt": "Un chat ="}
    >>> llamacpp([answer, answer])
    [{'id': 0, 'source': 'Un chat =', 'candidates': [{'text': 'a cat', 'features': {'count': 2}}]}]
    """
    return _convert(Server(tool="llamacpp", prompt_id=prompt_id, extract=extract), records, bad)


def responses(
    records: Iterable[Any], *, bad: str = "error", prompt_id: str = "", extract: str = ""
) -> Lists:
    """Return the lists of answers of the Responses API, one by one or in the lines of a batch.

    Args:
        records: answers, or lines of a batch.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.

    Raises:
        DataError: as `anthropic`.

    >>> content = [{"type": "output_text", "text": "a cat", "logprobs": [{"logprob": -1}]}]
    >>> answer = {"output": [{"type": "message", "content": content}], "status": "completed"}
    >>> responses([answer])[0]["candidates"][0]["features"]["logprob.sum"]
    -1.0
    """
    return _convert(Server(tool="responses", prompt_id=prompt_id, extract=extract), records, bad)

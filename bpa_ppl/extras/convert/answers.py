"""Answers of LLMs in the forms of their servers, which are not those of OpenAI's chats.

    anthropic  {"content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn"}
    gemini     {"candidates": [{"content": {"parts": […]}, "finishReason": "STOP"}]}
    bedrock    {"output": {"message": {"content": […]}}, "stopReason": "end_turn"}
    cohere     {"message": {"content": […]}, "finish_reason": "COMPLETE"}
    ollama     {"message": {"content": "…"}, "done": true}, {"response": "…", "done": true}
    llamacpp   {"content": "…", "stop": true, "completion_probabilities": […]}
    responses  {"output": [{"type": "message", "content": […]}], "status": "completed"}

A record is an answer, or a line of a batch that names its prompt: one of the server, or
`{"custom_id": "…", "response": ANSWER}`. Answers with one name, or without names those to one
prompt that the record repeats, are the candidates of a list; any other answer is a list of its own.
They are collected as those of `bpa_ppl.formats.openai`: equal answers of a model are merged, and
`count` is their number. The log-probabilities are those of all tokens that the server has written.

`TOOLS` says where the fields are. A path has names that are separated by dots; `[]` is each member
of a list, `[type=message]` each of this type, and `?` follows a field that may be absent. Thoughts
are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl.errors import quote
from bpa_ppl.extras.convert.records import Lists, drop_missing
from bpa_ppl.formats.block import TEXT
from bpa_ppl.formats.located import LocatedRecord, iter_records
from bpa_ppl.formats.samples import COUNT, STATISTICS, Samples, make_extractor, token_statistics
from bpa_ppl.formats.values import abbreviate

# Fields of lines of batches: the name of the prompt, and what is around the answer.
_BATCHES = (
    ("custom_id", "result"),  # Anthropic
    ("custom_id", "response"),
    ("key", "response"),  # Gemini
    ("recordId", "modelOutput"),  # Bedrock
    ("recordId", "error"),
    ("custom_id", "error"),
    ("key", "error"),
)
_STEP = re.compile(r"(\w+)(\??)(\[(?:(\w+)=(\w+))?\])?")
_CAMEL = re.compile("(?<=[a-z])([A-Z])")
_MODEL = "model"


class Form(NamedTuple):
    """Where the answers are in a response.

    Attributes:
        text: the path of the texts of an answer, which are joined.
        reason: that of the reason of its end.
        done: reasons of complete answers.
        answers: the path of the answers; empty, if the response is one.
        logprobs: of the log-probabilities of an answer.
        mean: of their mean, used if they are unknown.
        whole: of what is true unless a part of an answer was streamed.
        refusal: of what only a refusal has.
        model: of the model, in the response.
        source: of the prompt, in the response.
    """

    text: str
    reason: str
    done: tuple[str, ...]
    answers: str = ""
    logprobs: str = ""
    mean: str = ""
    whole: str = ""
    refusal: str = ""
    model: str = "model?"
    source: str = ""


_ENDED = ("end_turn", "stop_sequence", "stop")
_OF_ANTHROPIC = Form("content[].text?", "stop_reason", _ENDED[:2])
_OF_OLLAMA = Form("response", "done_reason?", ("stop",), "", "logprobs?[].logprob", whole="done")
_MESSAGE = "output[type=message].content?"
#: By kind: what a record is called, and the forms of its response, the last one if no other fits.
TOOLS: dict[str, tuple[str, tuple[Form, ...]]] = {
    "anthropic": ("a message of Anthropic", (_OF_ANTHROPIC,)),
    "gemini": (
        "an answer of Gemini",
        (
            Form(
                "content?.parts?[].text?",
                "finishReason",
                ("STOP",),
                "candidates[]",
                "logprobsResult?.chosenCandidates?[].logProbability",
                "avgLogprobs?",
                model="modelVersion?",
            ),
        ),
    ),
    "bedrock": (
        "an answer of Bedrock",
        (
            Form("generation", "stop_reason", _ENDED, model=""),
            Form("text", "stop_reason", _ENDED, "outputs[]", model=""),
            _OF_ANTHROPIC._replace(done=_ENDED, model=""),
            Form("output.message.content[].text?", "stopReason", _ENDED, model=""),
        ),
    ),
    "cohere": (
        "an answer of Cohere",
        (
            Form(
                "message.content[].text?",
                "finish_reason",
                ("COMPLETE", "STOP_SEQUENCE"),
                logprobs="logprobs?[].logprobs?[]",
            ),
        ),
    ),
    "ollama": ("an answer of Ollama", (_OF_OLLAMA._replace(text="message.content"), _OF_OLLAMA)),
    "llamacpp": (
        "an answer of llama.cpp",
        (
            Form(
                "content",
                "stop_type?",
                ("eos", "word"),
                logprobs="completion_probabilities?[].logprob",
                whole="stop",
                source="prompt?",
            ),
        ),
    ),
    "responses": (
        "an answer of the Responses API",
        (
            Form(
                f"{_MESSAGE}[].text?",
                "status",
                ("completed",),
                logprobs=f"{_MESSAGE}[].logprobs?[].logprob",
                refusal=f"{_MESSAGE}[type=refusal].type",
                source="input?",
            ),
        ),
    ),
}


class _Answer(NamedTuple):
    """One answer of a model: why it cannot be a candidate, or its text and statistics."""

    problem: str = ""
    text: str | None = None
    statistics: tuple[float, ...] | None = None
    model: str | None = None


def find(value: Any, path: str) -> Iterator[Any]:
    """Yield what is at a path.

    Raises:
        LookupError: if a field is missing, or is not the object or list that the path says.

    >>> message = {"content": [{"text": "a "}, {"type": "tool"}, {"text": "cat"}]}
    >>> list(find(message, "content[].text?"))
    ['a ', 'cat']
    """
    step, _, rest = path.partition(".")
    match = _STEP.fullmatch(step)
    if match is None:
        yield value
        return
    name, optional, is_list, kind, wanted = match.groups()
    if not isinstance(value, dict):
        raise LookupError(f"{abbreviate(value)} is not an object with a field `{name}`")
    name = name if name in value else _CAMEL.sub(r"_\1", name).lower()
    if name not in value and not optional:
        raise LookupError(f"no field `{match[1]}`")
    inner = value.get(name)
    if inner is None and (optional or is_list):
        return
    if not is_list:
        yield from find(inner, rest)
        return
    if not isinstance(inner, list):
        raise LookupError(f"`{name}` is {abbreviate(inner)}, not a list")
    for member in inner:
        fields = member if isinstance(member, dict) else {}
        if not fields.get("thought") and (kind is None or fields.get(kind) == wanted):
            yield from find(member, rest)


def _find_one(value: Any, path: str, *kinds: type) -> Any:
    """Return what is at a path, which is of one of some types; None if there is nothing."""
    return next(iter(_find_all(value, path, *kinds)), None)


def _find_all(value: Any, path: str, *kinds: type) -> list[Any]:
    """Return what is at a path, each missing or of one of some types."""
    found = list(find(value, path)) if path else []
    for one in found:
        if one is not None and not (isinstance(one, kinds) and (bool in kinds or one is not True)):
            raise LookupError(f"`{path.replace('?', '')}` is {abbreviate(one)}")
    return found


def _read(body: LocatedRecord, forms: Iterable[Form]) -> Iterator[_Answer]:
    """Yield the answers in a response."""
    form = _choose(body, forms)
    value = body.value
    if form.whole and not _find_one(value, form.whole, bool):
        raise body.error("a part of an answer that was streamed: set stream to false")
    refused = bool(form.refusal) and any(find(value, form.refusal))
    model = _find_one(value, form.model, str)
    answers = list(find(value, form.answers))
    if not answers:
        yield _Answer("a response without answers")
    for answer in answers:
        texts = [text for text in _find_all(answer, form.text, str) if text is not None]
        reason = _find_one(answer, form.reason, str)
        logprobs = _find_all(answer, form.logprobs, int, float)
        mean = _find_one(answer, form.mean, int, float)
        problem = "a refusal" if refused else "an answer that has not ended"
        if not refused and reason is not None:
            ended = f"an answer that ended with {quote(reason)}"
            problem = "" if reason in form.done else ended
        known = [value for value in logprobs if value is not None]
        statistics = token_statistics(known) if len(known) == len(logprobs) else None
        if statistics is None and mean is not None:
            statistics = (math.nan, mean, math.nan, math.nan)
        yield _Answer(problem, "".join(texts) if texts else None, statistics, model)


def _choose(body: LocatedRecord, forms: Iterable[Form]) -> Form:
    """Return the form whose first field a response has; the last one if it has none."""
    form = Form("", "", ())
    for form in forms:
        match = _STEP.match(form.answers or form.text)
        if match is not None and body.has(match[1]):
            break
    return form


def _find_source(record: LocatedRecord, body: LocatedRecord, form: Form) -> str | None:
    """Return the prompt that a record repeats, or the last turn of it; None if it has none."""
    if record.has("request", "response"):  # of Gemini
        contents = list(find(record.value, "request.contents?[]"))
        return "".join(_find_all({"of": contents[-1:]}, "of[].parts?[].text?", str)) or None
    source = _find_one(body.value, form.source, str, list)
    if isinstance(source, list):
        source = _find_one(source[-1], "content", str) if source else None
    return None if source is None else str(source)


def _collect(records: Iterable[Any], kind: str, bad: str, prompt_id: str, extract: str) -> Lists:
    """Return the lists of the answers in some records.

    Args:
        records: answers, or lines of batches.
        kind: of the answers.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.
    """
    find_name, find_text = make_extractor(prompt_id, "prompt_id"), make_extractor(extract)
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    located = list(iter_records(records))
    samples, places = Samples(located[0].origin, bad), dict[Any, int]()
    names: list[str | int] = []
    what, forms = TOOLS[kind]
    for position, record in enumerate(located, 1):
        name, body, problem = _unwrap(record)
        if isinstance(name, str) and prompt_id:
            part = find_name(name)
            if part is None:
                problem = f"the pattern of the prompt is not found in {quote(name)}: correct it"
                raise record.error(problem, "mismatch", "prompt_id")
            name = part
        try:
            source = None if problem else _find_source(record, body, _choose(body, forms))
            key = (name,) if name is not None else source or position
            if key not in places:
                label = None if name is None else str(name)
                places[key] = samples.add_prompt(position, label, source)
                names.append(len(names) if name is None else name)
            place = places[key]
            for answer in [_Answer(problem)] if problem else _read(body, forms):
                text = None if answer.text is None else find_text(answer.text)
                why = answer.problem or ("an answer without a text" if text is None else "")
                if why or text is None:
                    samples.leave_out(why, place, record.line, origin=record.origin)
                else:
                    samples.add(place, text, answer.statistics, answer.model)
        except LookupError as error:
            body.refuse(what, str(error.args[0]))
    return _make_lists(samples, names)


def _make_lists(samples: Samples, names: Iterable[str | int]) -> Lists:
    """Return the lists of answers that were collected, whose prompts have some ids."""
    block = samples.columns(range(len(samples.names)), origins=_MODEL, with_logprobs=False)
    lists: Lists = [
        {**drop_missing({"id": name, "source": source}), "candidates": []}
        for name, source in zip(names, samples.sources, strict=True)
    ]
    columns, strings = block.candidates, block.strings or ()
    for row, parent in enumerate(block.parent.tolist()):
        numbers = {n: columns[n][row].item() for n in (*STATISTICS, COUNT) if n in columns}
        numbers = {
            n: int(v) if n in (COUNT, STATISTICS[3]) else v for n, v in numbers.items() if v == v
        }
        model = columns[_MODEL][row] if _MODEL in columns else None
        candidate = {"text": strings[columns[TEXT][row]], "features": numbers, _MODEL: model}
        lists[parent]["candidates"].append(drop_missing(candidate))
    return lists


def _unwrap(record: LocatedRecord) -> tuple[str | int | None, LocatedRecord, str]:
    """Return the name of a prompt, the answer without what a batch has around it, and its error."""
    name, body = None, record
    around = next((of for of in _BATCHES if record.has(*of)), None)
    if around is not None:
        name, body = record.value[around[0]], record.get(around[1])
    elif record.has("request", "response"):  # Vertex AI
        body = record.get("response")
    if not isinstance(name, str | int | None) or isinstance(name, bool):
        raise record.error(f"{around and around[0]} is {quote(name)}: name prompts by texts")
    error = record.get("error").value or body.get("error").value
    if around == _BATCHES[0]:
        kind, body = body.get("type").value, body.get("message")
        error = error or (None if kind == "succeeded" else kind)
    elif body.has("status_code", "body"):  # OpenAI
        status, body = body.value["status_code"], body.get("body")
        error = error or (None if status == 200 else f"status {status}")
    if isinstance(error, dict):
        error = error.get("message") or error.get("errorMessage") or error
    problem = f"an error instead of an answer ({quote(str(error))})" if error else ""
    return name, body, problem


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
    return _collect(records, "anthropic", bad, prompt_id, extract)


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
    return _collect(records, "gemini", bad, prompt_id, extract)


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
    return _collect(records, "bedrock", bad, prompt_id, extract)


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
    return _collect(records, "cohere", bad, prompt_id, extract)


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
    return _collect(records, "ollama", bad, prompt_id, extract)


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
    return _collect(records, "llamacpp", bad, prompt_id, extract)


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
    return _collect(records, "responses", bad, prompt_id, extract)

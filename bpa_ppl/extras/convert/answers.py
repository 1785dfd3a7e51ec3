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
Equal answers of a model are merged, and `count` is their number. The log-probabilities are those of
all tokens that the server has written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import quote
from bpa_ppl.extras.convert.records import Lists, LocatedRecord, Turn, find_last_text, iter_records
from bpa_ppl.formats.samples import COUNT, STATISTICS, make_extractor, token_statistics

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
_SNAKE = re.compile("_([a-z])")


class _Token(msgspec.Struct):
    logprob: float | None


class _Part(msgspec.Struct):
    text: str | None = None
    thought: bool | None = None  # of Gemini


class Answer(NamedTuple):
    """One answer of a model.

    Attributes:
        text: None if there is none.
        problem: why the answer is not complete, or empty.
        logprobs: of its tokens; None is an unknown one.
        model: that has answered.
        source: its prompt, if the record has it.
        mean: of the log-probabilities, if those of the tokens are unknown.
    """

    text: str | None
    problem: str = ""
    logprobs: Sequence[float | None] = ()
    model: str | None = None
    source: str | None = None
    mean: float | None = None

    @property
    def features(self) -> dict[str, float]:
        """Statistics of the tokens; none if a log-probability is unknown."""
        known = [value for value in self.logprobs if value is not None]
        statistics = token_statistics(known) if len(known) == len(self.logprobs) else None
        if statistics is not None:
            return dict(zip(STATISTICS, statistics, strict=True))
        return {} if self.mean is None else {STATISTICS[1]: self.mean}


def _join(parts: Iterable[_Part]) -> str | None:
    """Return the texts of the parts of an answer as one, without thoughts; None if no part has."""
    texts = [part.text for part in parts if part.text is not None and not part.thought]
    return "".join(texts) if texts else None


def _end(reason: str | None, *complete: str) -> str:
    """Return why an answer is not complete, by what the server says of its end; or nothing."""
    if reason is None:
        return "an answer that has not ended"
    return "" if reason in complete else f"an answer that ended with {quote(reason)}"


def _collect(
    records: Iterable[Any],
    parse: Callable[[LocatedRecord], Iterator[Answer]],
    bad: str,
    prompt_id: str,
    extract: str,
) -> Lists:
    """Return the lists of the answers in some records.

    Args:
        records: answers, or lines of batches.
        parse: yields the answers of the response in a record.
        bad: as of `anthropic`.
        prompt_id: as of `anthropic`.
        extract: as of `anthropic`.
    """
    require_one_of(bad, ("error", "drop"), "policy", "bad")
    find_name, find_text = make_extractor(prompt_id, "prompt_id"), make_extractor(extract)
    lists: dict[Any, dict[str, Any]] = {}
    merged: dict[Any, dict[str, Any]] = {}
    dropped = Counter[str]()
    for record in iter_records(records):
        name, body, problem = _unwrap(record)
        if isinstance(name, str) and prompt_id:
            part = find_name(name)
            if part is None:
                problem = f"the pattern of the prompt is not found in {quote(name)}: correct it"
                raise record.error(problem, "mismatch", "prompt_id")
            name = part
        for answer in [Answer(None, problem)] if problem else parse(body):
            own = (record.origin, record.line)
            key = (name,) if name is not None else answer.source or own
            of_list = lists.setdefault(key, {"id": len(lists) if name is None else name})
            if answer.source is not None:
                of_list["source"] = answer.source
            candidates = of_list.setdefault("candidates", [])
            text = None if answer.text is None else find_text(answer.text)
            problem = answer.problem or ("" if text is not None else "an answer without a text")
            if problem and bad == "error":
                remedy = "repeat the request, or leave out such answers (bad: drop)"
                raise record.error(f"{problem}: {remedy}", "bad-response", "bad")
            if problem:
                dropped[problem] += 1
                continue
            model = {} if answer.model is None else {"model": answer.model}
            features = {**answer.features, COUNT: 1}
            same = merged.setdefault((key, text, answer.model), {})
            if not same:
                same |= {"text": text, "features": features, **model}
                candidates.append(same)
                continue
            features[COUNT] += same["features"][COUNT]
            most = max(features, same["features"], key=lambda of: of.get(STATISTICS[0], -1e300))
            same["features"] = {**most, COUNT: features[COUNT]}
    if dropped:
        warn_user(f"left out: {', '.join(f'{of} ({n})' for of, n in dropped.items())}")
    return list(lists.values())


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


# --- Anthropic -----------------------------------------------------------------------------------


class _Message(msgspec.Struct):
    content: list[_Part]
    stop_reason: str | None
    model: str | None = None


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

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        message = record.parse(_Message, "a message of Anthropic")
        problem = _end(message.stop_reason, "end_turn", "stop_sequence")
        yield Answer(_join(message.content), problem, model=message.model)

    return _collect(records, parse, bad, prompt_id, extract)


# --- Gemini --------------------------------------------------------------------------------------


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _GeminiToken(msgspec.Struct, rename="camel"):
    log_probability: float | None


class _Chosen(msgspec.Struct, rename="camel"):
    chosen_candidates: list[_GeminiToken] = []


class _Candidate(msgspec.Struct, rename="camel"):
    finish_reason: str | None
    content: _Content | None = None
    logprobs_result: _Chosen | None = None
    avg_logprobs: float | None = None


class _Gemini(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None
    model_version: str | None = None


class _Contents(msgspec.Struct):
    contents: list[_Content]


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
    what = "an answer of Gemini"

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        response = record.parse(_Gemini, what)
        for one in response.candidates or ():
            tokens = one.logprobs_result.chosen_candidates if one.logprobs_result else ()
            yield Answer(
                _join((one.content and one.content.parts) or ()),
                _end(one.finish_reason, "STOP"),
                [token.log_probability for token in tokens],
                response.model_version,
                record.value.get("source"),
                one.avg_logprobs,
            )
        if not response.candidates:
            yield Answer(None, "a response without answers")

    def prepare() -> Iterator[LocatedRecord]:
        for record in iter_records(records):
            value = _to_camel(record.value)
            if record.has("request", "response") and isinstance(value["response"], dict):
                asked = record.get("request").parse(_Contents, "a request of Gemini").contents
                source = _join((asked[-1].parts if asked else None) or ())
                value["response"]["source"] = source
            yield record._replace(value=value)

    return _collect(prepare(), parse, bad, prompt_id, extract)


def _to_camel(value: Any) -> Any:
    """Return a value of JSON with the names of fields in camel case, but for `custom_id`."""
    if isinstance(value, list):
        return list(map(_to_camel, value))
    if not isinstance(value, dict):
        return value
    names = {n: n if n == "custom_id" else _SNAKE.sub(lambda m: m[1].upper(), n) for n in value}
    return {names[name]: _to_camel(of) for name, of in value.items()}


# --- Bedrock -------------------------------------------------------------------------------------


class _ConverseMessage(msgspec.Struct):
    content: list[_Part]


class _ConverseOutput(msgspec.Struct):
    message: _ConverseMessage


class _Converse(msgspec.Struct, rename="camel"):
    output: _ConverseOutput
    stop_reason: str | None


class _Llama(msgspec.Struct):
    generation: str
    stop_reason: str | None


class _MistralOutput(msgspec.Struct):
    text: str
    stop_reason: str | None


class _Mistral(msgspec.Struct):
    outputs: list[_MistralOutput]


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
    what, done = "an answer of Bedrock", ("end_turn", "stop_sequence", "stop")

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        if record.has("generation"):
            llama = record.parse(_Llama, what)
            yield Answer(llama.generation, _end(llama.stop_reason, *done))
        elif record.has("outputs"):
            for one in record.parse(_Mistral, what).outputs:
                yield Answer(one.text, _end(one.stop_reason, *done))
        elif record.has("content"):
            message = record.parse(_Message, what)
            yield Answer(_join(message.content), _end(message.stop_reason, *done))
        else:
            of_converse = record.parse(_Converse, what)
            content = of_converse.output.message.content
            yield Answer(_join(content), _end(of_converse.stop_reason, *done))

    return _collect(records, parse, bad, prompt_id, extract)


# --- Cohere --------------------------------------------------------------------------------------


class _CohereTokens(msgspec.Struct):
    logprobs: list[float | None] | None = None


class _Cohere(msgspec.Struct):
    message: _ConverseMessage
    finish_reason: str | None
    logprobs: list[_CohereTokens] | None = None
    model: str | None = None


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

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        answer = record.parse(_Cohere, "an answer of Cohere")
        values = [value for of in answer.logprobs or () for value in of.logprobs or ()]
        problem = _end(answer.finish_reason, "COMPLETE", "STOP_SEQUENCE")
        yield Answer(_join(answer.message.content), problem, values, answer.model)

    return _collect(records, parse, bad, prompt_id, extract)


# --- Ollama and llama.cpp ------------------------------------------------------------------------


class _OllamaMessage(msgspec.Struct):
    content: str


class _Ollama(msgspec.Struct):
    model: str
    done: bool
    done_reason: str | None = None
    message: _OllamaMessage | None = None
    response: str | None = None
    logprobs: list[_Token] | None = None


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
    what = "an answer of Ollama"

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        answer = record.parse(_Ollama, what)
        if not answer.done:
            raise record.error("a part of an answer that was streamed: set stream to false")
        if (answer.message is None) == (answer.response is None):
            record.refuse(what, "it needs one of the fields message and response")
        values = [token.logprob for token in answer.logprobs or ()]
        text = answer.response if answer.message is None else answer.message.content
        yield Answer(text, _end(answer.done_reason, "stop"), values, answer.model)

    return _collect(records, parse, bad, prompt_id, extract)


class _LlamaCpp(msgspec.Struct):
    content: str
    stop: bool
    stop_type: str | None = None
    completion_probabilities: list[_Token] = []
    prompt: str | None = None
    model: str | None = None


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

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        answer = record.parse(_LlamaCpp, "an answer of llama.cpp")
        if not answer.stop:
            raise record.error("a part of an answer that was streamed: set stream to false")
        values = [token.logprob for token in answer.completion_probabilities]
        problem = _end(answer.stop_type, "eos", "word")
        yield Answer(answer.content, problem, values, answer.model, answer.prompt)

    return _collect(records, parse, bad, prompt_id, extract)


# --- the Responses API ---------------------------------------------------------------------------


class _OutputPart(msgspec.Struct):
    type: str
    text: str | None = None
    logprobs: list[_Token] | None = None


class _Item(msgspec.Struct):
    type: str
    content: list[_OutputPart] | None = None


class _Responses(msgspec.Struct):
    output: list[_Item]
    status: str
    model: str | None = None
    input: str | list[Turn] | None = None


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

    def parse(record: LocatedRecord) -> Iterator[Answer]:
        answer = record.parse(_Responses, "an answer of the Responses API")
        items = [item for item in answer.output if item.type == "message"]
        parts = [part for item in items for part in item.content or ()]
        values = [token.logprob for part in parts for token in part.logprobs or ()]
        refused = any(part.type == "refusal" for part in parts)
        problem = "a refusal" if refused else _end(answer.status, "completed")
        texts = [part.text for part in parts if part.text is not None]
        source = find_last_text(answer.input)
        yield Answer("".join(texts) if texts else None, problem, values, answer.model, source)

    return _collect(records, parse, bad, prompt_id, extract)

"""Answers of LLMs, one by one or in the lines of batches, of all servers.

    openai     {"choices": [{"message": {"content": "…"}, "logprobs": {"content":
               [{"logprob": -0.1}]}, "finish_reason": "stop"}], "model": "…"}
               {"choices": [{"text": "…", "logprobs": {"token_logprobs": [-0.1]}}]}
    anthropic  {"content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn"}
    gemini     {"candidates": [{"content": {"parts": […]}, "finishReason": "STOP"}]}
    bedrock    {"output": {"message": {"content": […]}}, "stopReason": "end_turn"}
    cohere     {"message": {"content": […]}, "finish_reason": "COMPLETE"}
    ollama     {"message": {"content": "…"}, "done": true}, {"response": "…", "done": true}
    llamacpp   {"content": "…", "stop": true, "completion_probabilities": […]}
    responses  {"output": [{"type": "message", "content": […]}], "status": "completed"}

The first is that of chats and completions of OpenAI, vLLM, SGLang, llama.cpp, Ollama, TGI, Mistral
and gateways such as LiteLLM. Each answer is a candidate, with the features of
`bpa_ppl.formats.samples` and the extra `model`.

A line of a batch names its prompt: that of the server, or `{"custom_id": "…", "response": ANSWER}`.
A line without a name may keep the prompt, `{"messages": […], "response": ANSWER}`, with `prompt` or
`request` in place of `messages`. Lines with one name, or without names those with the same prompt,
belong to one prompt, at any place in the file, so the candidates of the whole file are held in
memory; any other line is a prompt of its own. A request has one prompt.

The log-probabilities are those of all tokens that the server has written; an unknown one makes
those of the answer missing.

The ids of the sentences are the places of the prompts in the file of requests, if it is given. Else
they are the numbers at the ends of the names, if these are equal before; else prompts are counted
as they appear. A name that is not such a number alone is kept as the extra `id`.

`FORMS` says where the fields of most servers are. A path has names that are separated by dots; `[]`
is each member of a list, `[type=message]` each of this type, and `?` follows a field that may be
absent; `|` separates paths of which one leads to something. Thoughts are left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import LARGEST
from bpa_ppl._runtime.messages import format_count, log_info, warn_user
from bpa_ppl._runtime.streams import InputFile, origin_name, read_chunks
from bpa_ppl._runtime.values import RECIPES, abbreviate, json_object
from bpa_ppl.errors import quote
from bpa_ppl.formats.block import Block
from bpa_ppl.formats.format import NAME_SERVER, OPENAI, NBestFormat
from bpa_ppl.formats.located import LocatedRecord, find, iter_json
from bpa_ppl.formats.samples import Samples, make_extractor, name_prompts, token_statistics
from bpa_ppl.formats.schema import Schema

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
_SEVERAL = "choices of several prompts: send a request for each prompt"
_STREAMED = """a part of an answer that was streamed: do not stream, or join the parts as
docs/how-to/llm-samples.md shows""".replace("\n", " ")
#: The extra of the names of models.
MODEL = "model"
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


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
        refusal: of what only a refusal has, in an answer.
        calls: of calls of tools, next to which an empty text is none.
        part: of what only a part of an answer has that was streamed.
        model: of the model, in the response.
        source: of the prompt, in the response.
    """

    text: str
    reason: str
    done: tuple[str | None, ...]
    answers: str = ""
    logprobs: str = ""
    mean: str = ""
    whole: str = ""
    refusal: str = ""
    calls: str = ""
    part: str = ""
    model: str = "model?"
    source: str = ""


_ENDED = ("end_turn", "stop_sequence", "stop")
_OF_ANTHROPIC = Form("content[].text?", "stop_reason", _ENDED[:2])
_OF_OLLAMA = Form("response", "done_reason?", ("stop",), "", "logprobs?[].logprob", whole="done")
_MESSAGE = "output[type=message].content?"
#: By kind: what a record is called, and the forms of its response, the last one if no other fits.
FORMS: dict[str, tuple[str, tuple[Form, ...]]] = {
    OPENAI: (
        "a response of a chat or completion API",
        (
            Form(
                "text?|message?.content?[].text?",
                "finish_reason?",
                (None, "stop", "eos", "eos_token", "stop_sequence"),
                "choices[]",
                "logprobs?.content?[].logprob|logprobs?.token_logprobs?[]",
                refusal="message?.refusal?",
                calls="message?.tool_calls?[]",
                part="delta?",
            ),
        ),
    ),
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


class Answer(NamedTuple):
    """One answer of a model.

    Attributes:
        text: None if it has none.
        problem: why it cannot be a candidate; empty if it can.
        logprobs: of its tokens; None is an unknown one.
        mean: of the log-probabilities, if they are not known.
    """

    text: str | None
    problem: str = ""
    logprobs: Sequence[float | None] = ()
    mean: float | None = None


class Response(NamedTuple):
    """What a record says: the answers to a prompt.

    Attributes:
        answers: in their order.
        name: of the prompt; None if it has none.
        source: its text; None if it is not known.
        error: that of the server, in place of answers; empty if there is none.
        model: the name of the model.
        key: of answers without a name that belong to one prompt; None if there are no others.
        batch: whether the record is a line of a batch, in which order is not that of the requests.
        part: the id of what may be a part of a stream; None if it is none.
    """

    answers: Sequence[Answer]
    name: str | int | None = None
    source: str | None = None
    error: str = ""
    model: str | None = None
    key: str | None = None
    batch: bool = False
    part: str | None = None


def _find_all(value: Any, path: str, *kinds: type) -> list[Any]:
    """Return what is at a path, each None or of one of some types; nothing, if it is empty."""
    values = [find(value, part, server=True) for part in path.split("|") if part]
    return _require(list(chain.from_iterable(values)), path, *kinds)


def _require(values: list[Any], path: str, *kinds: type) -> list[Any]:
    """Return values, each of which is None or of one of some types."""
    for kind in set(map(type, values)):
        if kind not in kinds and kind is not type(None):
            wrong = next(one for one in values if type(one) is kind)
            raise LookupError(f"`{path.replace('?', '')}` is {abbreviate(wrong)}")
    return values


def _find_one(value: Any, path: str, *kinds: type) -> Any:
    """Return what is at a path, of one of some types; None if there is nothing."""
    return next(iter(_find_all(value, path, *kinds)), None)


def _join(texts: Iterable[str | None]) -> str | None:
    """Return the parts of a text as one; None if there are none."""
    parts = [text for text in texts if text is not None]
    return "".join(parts) if parts else None


def _read_response(record: LocatedRecord, forms: Sequence[Form]) -> Response:
    """Return what a record of a server says."""
    name, body, error = _unwrap(record)
    batch = body is not record and name is not None
    value = body.value
    is_empty = value is None or (isinstance(value, dict) and not any(value.values()))
    is_empty = is_empty or (record.get("response").value is None and not body.has("choices"))
    if error or (is_empty and forms[0].part and record.has("response")):
        return Response((), name, error=error, batch=batch)
    if forms[0].part and not body.has("choices"):
        problem = "no field choices, so this is not a response of a chat or completion API"
        raise record.error(problem, parameter="format", remedies=[*NAME_SERVER, RECIPES])
    form = next(
        (of for of in forms if body.has(re.split(r"\W", of.answers or of.text)[0])), forms[-1]
    )
    if form.whole and not _find_one(value, form.whole, bool):
        raise record.error(_STREAMED, "not-supported")
    source = _find_source(record, body, form)
    key = source if form.source or record.has("request", "response") else None
    if form.part and body is not record:  # whole conversations, not their last turns
        request = _find_request(record)
        turns = request.get("messages").value or request.get("prompt").value
        key = None if turns is None else json.dumps(turns)
    answers = []
    choices = find(value, form.answers, server=True)
    if len(choices) > 1:
        choices.sort(key=lambda choice: _find_one(choice, "index?", int) or 0)
        offsets = (_find_all(choice, "logprobs?.text_offset?[]", int)[:1] for choice in choices)
        if form.part and len(set(chain.from_iterable(offsets))) > 1:
            raise record.error(_SEVERAL, "bad-response")
    for answer in choices:
        if _find_all(answer, form.part, dict):
            raise record.error(_STREAMED, "not-supported")
        text = _join(_find_all(answer, form.text, str))
        text = None if not text and form.calls and _find_all(answer, form.calls, dict) else text
        reason = _find_one(answer, form.reason, str)
        problem = "" if reason in form.done else _explain_end(reason)
        if form.refusal and any(find(answer, form.refusal, server=True)):
            problem = "refusals"
        logprobs = _find_all(answer, form.logprobs, int, float)
        answers.append(Answer(text, problem, logprobs, _find_one(answer, form.mean, int, float)))
    model = _find_one(value, form.model, str)
    # What may be a part of a stream of a completion.
    is_part = body.get("object").value == "text_completion" and body.get("id").value is not None
    is_part = is_part and not any(_find_one(one, "finish_reason?", str) for one in choices)
    return Response(
        answers,
        name,
        source,
        model=model,
        key=key,
        batch=batch,
        part=str(value["id"]) if is_part else None,
    )


def _explain_end(reason: str | None) -> str:
    """Return why answers that ended for some reason, such as their length, are left out."""
    return (
        "answers that have not ended"
        if reason is None
        else f"answers that ended with {quote(reason)}"
    )


def _find_source(record: LocatedRecord, body: LocatedRecord, form: Form) -> str | None:
    """Return the prompt that a record repeats, or the last turn of it; None if it has none."""
    if form.mean and record.has("request", "response"):  # of Gemini
        contents = find(record.value, "request.contents?[]")
        return "".join(_find_all({"of": contents[-1:]}, "of[].parts?[].text?", str)) or None
    if not form.source:
        return _find_prompt(_find_request(record))
    source = _find_one(body.value, form.source, str, list)
    if isinstance(source, list):
        source = _find_one(source[-1], "content", str) if source else None
    return None if source is None else str(source)


def _unwrap(record: LocatedRecord) -> tuple[str | int | None, LocatedRecord, str]:
    """Return the name of a prompt, the answer without what a batch has around it, and its error."""
    name, body = record.get("custom_id").value, record
    around = next((of for of in _BATCHES if record.has(*of)), None)
    if around is not None:
        name, body = record.value[around[0]], record.get(around[1])
    elif record.has("request", "response") or isinstance(record.get("response").value, dict):
        body = record.get("response")  # of Vertex AI, or of a program that keeps prompts
    if not isinstance(name, str | int | None) or isinstance(name, bool):
        raise record.error(f"{around and around[0]} is {quote(name)}: name prompts by texts")
    error = record.get("error").value or body.get("error").value
    if around == _BATCHES[0]:
        kind, body = body.get("type").value, body.get("message")
        error = error or (None if kind == "succeeded" else kind)
    elif body.has("body"):  # OpenAI
        status, body = body.value.get("status_code", 200), body.get("body")
        error = error or body.get("error").value or (None if status == 200 else f"status {status}")
    if body.has("object") and body.value["object"] == "error":  # vLLM
        error = error or body.value.get("message")
    if isinstance(error, dict):
        error = error.get("message") or error.get("errorMessage") or error
    return name, body, str(error) if error else ""


def _find_request(record: LocatedRecord) -> LocatedRecord:
    """Return the request that a record repeats, or the record if its fields are in it.

    >>> _find_request(LocatedRecord({"request": "ein Haus", "response": {}})).value
    {'prompt': 'ein Haus'}
    """
    if not record.has("request"):
        return record
    request = record.get("request")
    if isinstance(request.value, str | list):
        field = "prompt" if isinstance(request.value, str) else "messages"
        return request._replace(value={field: request.value})
    return request


def _find_prompt(record: LocatedRecord) -> str | None:
    """Return the text of the prompt of a request, or the last turn of its user.

    >>> _find_prompt(LocatedRecord({"prompt": ["ein Haus"]}))
    'ein Haus'
    """
    request = record.value
    if record.get("echo").value:
        problem = "the answers repeat their prompts: request them without echo"
        raise record.error(problem, "not-supported")
    if record.get("messages").value is not None:
        turns = find(request, "messages[]", server=True)
        of_user = [turn for turn in turns if _find_one(turn, "role?", str) == "user"]
        return _join(_find_all(of_user[-1], "content?[].text?", str)) if of_user else None
    prompt = _find_one(request, "prompt?", str, list)
    if isinstance(prompt, list) and len(prompt) > 1 and {str, list} & set(map(type, prompt)):
        raise record.error(_SEVERAL, "bad-response")
    prompt = prompt[0] if isinstance(prompt, list) and prompt else prompt
    return prompt if isinstance(prompt, str) else None


def _is_line(value: Any) -> bool:
    """Return whether an object is a response, a line of a batch, a request, or an error.

    >>> _is_line({"custom_id": "r-1", "response": None, "error": {"message": "too slow"}})
    True
    >>> _is_line({"id": 0, "text": "a cat", "choices": ["a", "b"]})
    False
    """
    match value:
        case {"text": _} | {"candidates": _}:
            return False
        case {"custom_id": _, "response": {} | None} | {"custom_id": _, "error": {}}:
            return True
        case {"response": {"choices": [{"message": {}} | {"text": str()}, *_]}}:
            return True
        case {"custom_id": _, "body": {}} | {"error": {}} | {"object": "error"}:
            return True
        case {"choices": None | [] | [{"message": {}}, *_] | [{"delta": {}}, *_]}:
            return True
        case {"choices": [{"text": str(), "index": _} | {"text": str(), "finish_reason": _}, *_]}:
            return True
        case {"choices": [{"text": str(), "logprobs": _}, *_]}:
            return True
    return False


# The collector of answers, and the formats.


def find_numbers(names: Iterable[str | int | None]) -> list[int] | None:
    """Return the numbers at the ends of names, if these are equal before; else None.

    >>> find_numbers(["request-7", "request-3"]), find_numbers(["request-7", "r-3"])
    ([7, 3], None)
    """
    texts = ["" if name is None else str(name) for name in names]
    matched = [of for text in texts if (of := _NUMBERED.fullmatch(text))]
    numbers = [int(of[2]) for of in matched]
    alike = len({of[1] for of in matched}) == 1 and len(set(numbers)) == len(texts)
    return numbers if alike else None


def _measure(answer: Answer) -> tuple[float, ...] | None:
    """Return the statistics of the tokens of an answer; None if one is unknown."""
    present = [value for value in answer.logprobs if value is not None]
    try:
        numbers, mean = [*map(float, present)], None if answer.mean is None else float(answer.mean)
    except OverflowError:  # an integer of hundreds of digits
        numbers, mean = [math.inf], None
    is_known = len(present) == len(answer.logprobs) and not any(map(math.isnan, numbers))
    statistics = token_statistics(numbers) if is_known else None
    if statistics is None and mean is not None:
        return math.nan, mean, math.nan, math.nan
    return statistics


class Answers(NBestFormat, frozen=True):
    """Answers of a server; they are only read.

    Attributes:
        requests: the file of the requests, which has the prompts and their order.
        extract: a regular expression that finds the candidate in an answer: its first group, or
            the whole match.
        field: the field of the candidate, where an answer is a JSON object.
        source: a regular expression that finds the source text in a prompt.
        prompt_id: a regular expression that finds the name of the prompt in that of a request,
            where several requests have the same prompt, as `(.*)-sample` in `doc-7-sample-2`.
        server: the name of the server, which is that of the format.

    >>> from bpa_ppl.formats.format import NBEST_FORMATS
    >>> NBEST_FORMATS.resolve("gemini"), NBEST_FORMATS.name_of(Answers(server="ollama"))
    (Answers(server='gemini'), 'ollama')
    """

    nan_is_missing: ClassVar[bool] = True

    requests: str = ""
    extract: str = ""
    field: str = ""
    source: str = ""
    prompt_id: str = ""
    server: str = OPENAI

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of(self.server, FORMS, "server", "server")
        for name in ("extract", "source", "prompt_id"):
            make_extractor(getattr(self, name), name)

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line is of OpenAI's API: a response, a request, or an error.

        >>> Answers().detect(b'{"id": "chatcmpl-1", "choices": []}')
        True
        >>> Answers().detect(b'{"id": 0, "candidates": []}')
        False

        Lines that are cut off, or hold a number that JSON lacks, are recognised too:

        >>> Answers().detect(b'{"choices": [{"logprob": -Infinity}'), Answers().detect(b'{"id": 0,')
        (True, False)
        >>> Answers().detect(b'{"custom_id": "p-1", "resp')
        True
        """
        if self.server != OPENAI:
            return False
        record = json_object(first_line)
        if not record and first_line.lstrip().startswith(b"{"):
            # With -Infinity, or cut off: reading it says what is wrong.
            return b'"choices"' in first_line or b'"custom_id"' in first_line
        return _is_line(record)

    def read(self, record: LocatedRecord) -> Response:
        """Return what a record says.

        Raises:
            DataError: with file and line, if it is not of this server, or a part of an answer.
        """
        what, forms = FORMS[self.server]
        try:
            return _read_response(record, forms)
        except LookupError as error:
            record.refuse(what, str(error.args[0]))

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of all answers, when the last one is read.

        Raises:
            DataError: with file and line, if a record is not an answer; or if there are answers
                that cannot be candidates and `bad` is "error": errors, refusals, answers without
                a text or not finished, answers without the part to extract.

        >>> line = b'{"choices": [{"text": " a cat", "logprobs": {"token_logprobs": [-1, -3]}}]}'
        >>> columns = next(Answers().blocks(InputFile(line), Schema("out.jsonl")))
        >>> columns.candidates["text"], columns.candidates["logprob.sum"]
        (['a cat'], array([-4.]))
        >>> part = b'{"choices": [{"delta": {"content": "a"}}]}'
        >>> next(Answers().blocks(InputFile(part), Schema("out.jsonl")))
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: out.jsonl:1: a part of an answer that was streamed: do not ...
        """
        records = iter_json(file.chunks(), schema.origin, finite=False)
        samples, batch = self.collect(records, schema)
        if not any(samples.lines):
            raise schema.error("empty: there are no responses in it", code="no-data")
        yield samples.columns(self._ids(samples, schema, batch), origins=MODEL)

    def collect(self, records: Iterable[LocatedRecord], schema: Schema) -> tuple[Samples, bool]:
        """Return the answers in records, and whether these are lines of a batch.

        Raises:
            DataError: as `blocks`.
        """
        samples, places = Samples(schema.origin, schema.bad), dict[Any, int]()
        if self.requests:
            self._read_requests(samples, places)
        parts: set[str] = set()  # ids of completions without a reason of their end
        batch, unknown = False, 0
        extract = make_extractor(self.extract)
        for number, record in enumerate(records, 1):
            response = self.read(record)
            batch = batch or response.batch
            place, line = self._find_place(samples, places, response, record, number), record.line
            samples.lines[place] = samples.lines[place] or line or number
            if response.error or not response.answers:
                reason = "errors instead of responses" if response.error else None
                reason = reason or "responses without answers"
                samples.leave_out(reason, place, line, response.error, record.origin)
                continue
            if isinstance(record.value, dict) and str(record.value.get("id")) in parts:
                raise record.error(_STREAMED, "not-supported")
            parts |= {response.part} - {None}  # type: ignore[arg-type]
            for answer in response.answers:
                statistics = _measure(answer)
                unknown += statistics is None and len(answer.logprobs) > 0
                part = None if answer.text is None else self._find_part(answer.text, extract)
                problem = answer.problem or self._explain(answer.text, part, statistics)
                if problem or part is None:
                    samples.leave_out(problem, place, line, origin=record.origin)
                else:
                    samples.add(place, part, statistics, response.model)
        if unknown:
            what = f"a log-probability of {format_count(unknown, 'answer')} is unknown (null)"
            log_info(f"{schema.origin}: {what}: all of theirs are missing")
        return samples, batch

    def _explain(
        self, text: str | None, part: str | None, statistics: Sequence[float] | None
    ) -> str:
        """Return why an answer that has ended cannot be a candidate; empty if it can."""
        if text is None:
            return "answers without a text"
        if part is None:
            target = f"a text in the field {quote(self.field)}" if self.field else "the pattern"
            return f"answers without {target}"
        if statistics is not None and not abs(max(statistics[1::-1], key=abs)) <= LARGEST:
            return "log-probabilities that are not finite"
        return ""

    def _find_part(self, text: str, extract: Any) -> str | None:
        """Return the candidate in an answer; None if it is not there."""
        if not self.field:
            return extract(text)  # type: ignore[no-any-return]
        fenced = _FENCE.fullmatch(text)
        try:
            value = json.loads(fenced[1] if fenced else text)[self.field]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        return extract(value) if isinstance(value, str) else None

    def _find_place(
        self,
        samples: Samples,
        places: dict[Any, int],
        response: Response,
        record: LocatedRecord,
        number: int,
        *,
        is_request: bool = False,
    ) -> int:
        """Return the place of the prompt of a record, among all prompts; a new one is added.

        Raises:
            DataError: if its name or its prompt does not agree with other requests.
        """
        name = response.name
        if name is not None and self.prompt_id:
            name = make_extractor(self.prompt_id, "prompt_id")(str(name))
            if name is None:
                problem = f"the pattern of the prompt is not found in {quote(str(response.name))}"
                raise record.error(f"{problem}: correct it", "mismatch", "prompt_id")
        find_source = make_extractor(self.source) if self.source else str
        source = None if response.source is None else find_source(response.source)
        key = (response.key or number,) if name is None else str(name)
        if self.requests and key not in places and not is_request:
            shown = "no name" if name is None else f"the custom_id {quote(str(name))}"
            problem = f"{shown}, which is not in {self.requests}"
            advice = "give the requests of these responses"
            raise record.error(f"{problem}: {advice}", "mismatch", "requests")
        if key not in places:
            places[key] = samples.add_prompt(0, name, source)
        elif len({source, samples.sources[places[key]], None}) > 2 and not self.prompt_id:
            problem = f"a second prompt of the custom_id {quote(str(name))}: give each prompt"
            raise record.error(f"{problem} its own custom_id", "duplicate")
        return places[key]

    def _read_requests(self, samples: Samples, places: dict[Any, int]) -> None:
        """Add the prompts in the file of requests.

        Raises:
            DataError: with file and line, if a line is not a request.
        """
        origin = origin_name(self.requests)
        records = iter_json(read_chunks(self.requests), origin, finite=False)
        for number, record in enumerate(records, 1):
            try:
                body = next(iter(find(record.value, "body?") + find(record.value, "params?")), None)
                request = record.value if body is None else body
                source = _find_prompt(record._replace(value=request))
                name = _find_one(record.value, "custom_id?", str, int)
            except LookupError as error:
                record.refuse("a request", str(error.args[0]))
            has_prompt = any(request.get(field) is not None for field in ("messages", "prompt"))
            if name is None or not has_prompt:
                lacking = "custom_id" if has_prompt else "body.messages or body.prompt"
                problem = f"no field {lacking}, so this is not a request: correct the line"
                raise record.error(problem, parameter="requests")
            response = Response((), name, source)
            self._find_place(samples, places, response, record, number, is_request=True)
        if not samples.lines:
            schema = Schema(origin)
            problem = "empty: there are no requests in it"
            raise schema.error(problem, code="no-data", parameter="requests")

    def _ids(self, samples: Samples, schema: Schema, batch: bool) -> list[int]:
        """Return the ids of the sentences of the prompts."""
        if absent := [samples.label(place) for place, at in enumerate(samples.lines) if not at]:
            problem = f"requests without a response: {name_prompts(absent)}"
            warn_user(f"{schema.origin}: {problem}: no list of them")
        if not self.requests:
            numbers = find_numbers(samples.names)
            if numbers is not None:
                return numbers
            if batch:
                what = "sentences are counted in the order of the responses, which need not be "
                what += "that of the requests: name the file of requests by the setting requests"
                warn_user(f"{schema.origin}: {what}")
        return list(range(schema.first_id, schema.first_id + len(samples.names)))

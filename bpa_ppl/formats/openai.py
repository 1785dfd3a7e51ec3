"""JSON lines of responses of chat and completion APIs, from batches or one by one.

    {"custom_id": "request-7", "response": {"status_code": 200, "body": {"model": "…", "choices":
     [{"index": 0, "message": {"content": "a cat"}, "logprobs": {"content": [{"logprob": -0.1}]},
       "finish_reason": "stop"}]}}}
    {"model": "…", "choices": [{"text": "a cat", "logprobs": {"token_logprobs": [-0.1]}}]}

OpenAI, vLLM, SGLang, llama.cpp, Ollama, TGI, Mistral and gateways such as LiteLLM write them; `bpa
convert` makes lists of other forms. Each choice is a candidate, with the features of
`bpa_ppl.formats.samples` and the extra `model`. Lines with one `custom_id` belong to one prompt,
wherever they are in the file, so the candidates of the whole file are held in memory; a line
without `custom_id` is a prompt of its own. If one request has several prompts, the choices are
divided among them in equal parts.

The log-probabilities are those of all tokens that the server has written; an unknown one makes
those of the answer missing.

The ids of the sentences are the places of the prompts in the file of requests, if it is given. Else
they are the numbers at the ends of the `custom_id`s, if these are alike before; else prompts are
counted as they appear. A `custom_id` that is not such a number alone is kept as the extra `id`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from bpa_ppl._runtime.arrays import LARGEST
from bpa_ppl._runtime.messages import format_count, log_info, warn_user
from bpa_ppl.errors import DataError, quote
from bpa_ppl.formats.block import CONVERT, Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.samples import (
    Samples,
    explain_unfinished,
    make_extractor,
    name_prompts,
    token_statistics,
)
from bpa_ppl.formats.streams import InputFile, origin_name, read_chunks
from bpa_ppl.formats.values import check_pairs, is_strict_json, json_keys, parse_strictly

#: Values of `finish_reason` for complete answers, by server.
_DONE = ("stop", "eos", "eos_token", "stop_sequence")
_PROMPTS = """write the prompts into the line, as a list in the field prompt, or name the file of
requests by the setting requests""".replace("\n", " ")
_MODEL = "model"
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


class _Token(msgspec.Struct, gc=False):
    """A token of an answer."""

    logprob: float | None = None


class _Part(msgspec.Struct, gc=False):
    """A part of a message."""

    text: str | None = None


class _Message(msgspec.Struct, gc=False):
    """A message of a chat."""

    role: str | None = None
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: Any = None

    @property
    def text(self) -> str | None:
        """The text; None if there is none, or only calls of tools."""
        text = self.content
        if isinstance(text, list):
            texts = [part.text for part in text if part.text is not None]
            text = "".join(texts) if texts else None
        return None if self.tool_calls and not text else text


class _Logprobs(msgspec.Struct, gc=False):
    """The tokens of an answer, objects in chats and two lists in completions.

    Some servers count the characters from the beginning of the prompt (`text_offset`).
    """

    content: list[_Token] | None = None
    token_logprobs: list[float | None] | None = None
    text_offset: list[int | None] | None = None


class _Choice(msgspec.Struct, gc=False):
    """One of the answers to a prompt."""

    index: int | None = None
    message: _Message | None = None
    text: str | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    delta: Any = None

    @property
    def answer(self) -> _Message:
        """The message, also that of a completion."""
        if self.message is None or self.text is not None:
            return _Message(content=self.text)
        return self.message

    @property
    def token_logprobs(self) -> Sequence[float | None]:
        """The log-probabilities of the tokens; None is an unknown one."""
        logged = self.logprobs or _Logprobs()
        if logged.content is None:
            return logged.token_logprobs or ()
        return [token.logprob for token in logged.content]

    @property
    def start(self) -> int | None:
        """Where the text begins, after its prompt; None if the server does not write it."""
        return ((self.logprobs and self.logprobs.text_offset) or [None])[0]


class _Line(msgspec.Struct, gc=False):
    """A line, and the objects in it: a response, its body, and a request that is repeated."""

    id: Any = None
    object: Any = None
    custom_id: str | int | None = None
    response: _Line | msgspec.UnsetType | None = msgspec.UNSET
    request: _Line | None = None
    body: _Line | None = None
    messages: list[_Message] | None = None
    prompt: str | list[Any] | None = None
    echo: Any = None
    choices: list[_Choice] | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    error: Any = None
    message: Any = None
    status_code: int | None = None

    @property
    def parts(self) -> list[_Line]:
        """The objects that may have the answers."""
        response = self.response or None
        body = response.body if response else None
        return [part for part in (self, response, body) if part is not None]

    @property
    def answer(self) -> _Line | None:
        """The part with the field of the answers, which may be null; None for another object."""
        if self.response is None or self.parts[1:] in ([_Line()], [self.response, _Line()]):
            return _Line(choices=None)  # nothing is in it
        return next((part for part in self.parts if part.choices is not msgspec.UNSET), None)

    @property
    def problem(self) -> str | None:
        """The message of an error that the parts have instead of a response."""
        errors = [part.message if part.object == "error" else part.error for part in self.parts]
        codes = [part.status_code for part in self.parts]
        errors += [f"status {code}" for code in codes if code not in (None, 200)]
        error = next(filter(None, errors), None)
        if isinstance(error, dict):
            error = error.get("message") or error
        return None if error is None else str(error)


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
        case {"custom_id": _, "body": {}} | {"error": {}} | {"object": "error"}:
            return True
        case {"choices": None | [] | [{"message": {}}, *_] | [{"delta": {}}, *_]}:
            return True
        case {"choices": [{"text": str(), "index": _} | {"text": str(), "finish_reason": _}, *_]}:
            return True
        case {"choices": [{"text": str(), "logprobs": _}, *_]}:
            return True
    return False


_DECODER = msgspec.json.Decoder(_Line)


class Openai(NBestFormat, frozen=True):
    """Responses of chat and completion APIs; they are only read.

    Attributes:
        requests: the file of the requests, which has the prompts and their order.
        extract: a regular expression that finds the candidate in an answer: its first group, or
            the whole match.
        field: the field of the candidate, where an answer is a JSON object.
        source: a regular expression that finds the source text in a prompt.
        prompt_id: a regular expression that finds the name of the prompt in a `custom_id`, where
            several requests have the same prompt, as `(.*)-sample` in `doc-7-sample-2`.
    """

    required: ClassVar[tuple[tuple[str, ...], ...]] = (("choices",), ("custom_id", "response"))
    nan_is_missing: ClassVar[bool] = True

    requests: str = ""
    extract: str = ""
    field: str = ""
    source: str = ""
    prompt_id: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("extract", "source", "prompt_id"):
            make_extractor(getattr(self, name), name)

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line is a response of an API, a request, or an error in its place.

        >>> Openai().detect(b'{"id": "chatcmpl-1", "choices": []}')
        True
        >>> Openai().detect(b'{"id": 0, "candidates": []}')
        False

        Lines that are cut off, or hold a number that JSON lacks, are recognised too:

        >>> Openai().detect(b'{"choices": [{"logprob": -Infinity}'), Openai().detect(b'{"id": 0,')
        (True, False)
        >>> Openai().detect(b'{"custom_id": "p-1", "resp')
        True
        """
        keys = set(json_keys(first_line))
        if not keys and first_line.lstrip().startswith(b"{"):
            # With -Infinity, or cut off: reading it says what is wrong.
            return b'"choices"' in first_line or b'"custom_id"' in first_line
        return bool(keys) and _is_line(json.loads(first_line))

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        r"""Yield the columns of all answers, when the last one is read.

        Raises:
            DataError: with file and line, if a line is not a response; or if there are answers that
                cannot be candidates and `bad` is "error": errors instead of responses, responses
                without choices, refusals, answers without a text or not finished, answers without
                the wanted part.

        >>> line = b'{"choices": [{"text": " a cat", "logprobs": {"token_logprobs": [-1, -3]}}]}'
        >>> columns = next(Openai().blocks(InputFile(line), ReadOptions("out.jsonl")))
        >>> columns.strings, columns.candidates["logprob.sum"]
        (('a cat',), array([-4.]))
        >>> part = b'{"choices": [{"delta": {"content": "a"}}]}'
        >>> next(Openai().blocks(InputFile(part), ReadOptions("out.jsonl")))
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: out.jsonl:1: a part of an answer that was streamed: do not ...
        """
        yield _Reader(self, options).columns(file.chunks())


class _Reader:
    """Collects the answers of one file.

    Args:
        format: the settings.
        options: how to read.
    """

    def __init__(self, format: Openai, options: ReadOptions):
        self._format, self._options = format, options
        self._source = make_extractor(format.source) if format.source else lambda text: text
        self._prompt_id = make_extractor(format.prompt_id, "prompt_id")
        self._extract = make_extractor(format.extract)
        self._part = self._field if format.field else self._extract
        self._samples = Samples(options.origin, options.bad)
        self._places: dict[str | int, list[int]] = {}  # of the prompts of each request
        if format.requests:
            self._read_requests()
        self._batch = False  # whether lines are those of a batch
        self._unfinished: set[str] = set()  # ids of completions without a reason of their end
        self._together = 0  # completions of several choices and of an unknown prompt
        self._missing = 0  # answers with an unknown log-probability

    def columns(self, blocks: Iterable[bytes]) -> Block:
        """Return the columns of all answers."""
        for line, number in _decode(blocks, self._options.origin):
            self._read(line, number)
        samples, origin = self._samples, self._options.origin
        if self._together and not self._format.requests:
            what = f"choices are read as answers to one prompt; if there were several, {_PROMPTS}"
            log_info(f"{origin}: {what}")
        if self._missing:
            what = f"a log-probability of {format_count(self._missing, 'answer')} is unknown (null)"
            log_info(f"{origin}: {what}: all of theirs are missing")
        if not any(samples.lines):
            raise self._options.error("empty: there are no responses in it", code="no-data")
        if absent := [samples.label(place) for place, at in enumerate(samples.lines) if not at]:
            problem = f"requests without a response: {name_prompts(absent)}"
            warn_user(f"{origin}: {problem}: no list of them")
        return samples.columns(self._ids(), origins=_MODEL)

    def _read(self, line: _Line, number: int) -> None:
        """Collect the candidates of a line."""
        answer, error, samples = line.answer, line.problem, self._samples
        if error is None and answer is None:
            problem = "no field choices, so this is not a response of a chat or completion API"
            remedy = "name a file of requests by the setting requests, or convert other answers: "
            remedy += CONVERT
            raise self._options.error(f"{problem}: {remedy}", number, parameter="format")
        self._batch = self._batch or line.response is not msgspec.UNSET
        request = line if _find_prompts(line) != [None] or line.request is None else line.request
        places = self._places_of(line.custom_id, request, number, self._options)
        for place in places:
            samples.lines[place] = samples.lines[place] or number
        if error is not None or answer is None or not answer.choices:
            reason = "responses without choices" if error is None else "errors instead of responses"
            for place in places:
                samples.leave_out(reason, place, number, error or "")
            return
        choices = sorted(answer.choices, key=lambda choice: choice.index or 0)
        first = choices[0]
        if first.delta is not None or str(line.id) in self._unfinished:
            problem = "a part of an answer that was streamed: do not stream, or join the parts as "
            problem += "docs/how-to/llm-samples.md shows"
            raise self._options.error(problem, number, "not-supported")
        if line.id and line.object == "text_completion" and first.finish_reason is None:
            self._unfinished.add(str(line.id))
        size, rest = divmod(len(choices), len(places))
        if len(choices) > len(places) == 1 and choices[0].text is not None and not request.prompt:
            if len({choice.start for choice in choices} - {None}) > 1:
                problem = f"choices of several prompts: {_PROMPTS}"
                raise self._options.error(problem, number, "bad-response", "requests")
            self._together += 1
        if rest or (len(places) > 1 and choices[-1].index not in (None, len(choices) - 1)):
            problem = f"{format_count(len(choices), 'choice')} of {len(places)} prompts"
            advice = "give the whole response, with as many for each prompt"
            raise self._options.error(f"{problem}: {advice}", number, "bad-response")
        for k, place in enumerate(places):
            self._add(choices[k * size : (k + 1) * size], answer.model, place, number)

    def _places_of(
        self, custom_id: str | int | None, request: _Line, number: int, options: ReadOptions
    ) -> list[int]:
        """Return the places of the prompts of a request, among all prompts; new ones are added.

        Raises:
            DataError: if its name or its prompts do not agree with other requests.
        """
        name = None if custom_id is None else str(custom_id)
        if name is not None and self._format.prompt_id:
            name = self._prompt_id(name)
            if name is None:
                problem = f"the pattern of the prompt is not found in {quote(str(custom_id))}"
                raise options.error(problem, number, "mismatch", "prompt_id")
        if request.echo:
            problem = "the answers repeat their prompts: request them without echo"
            raise options.error(problem, number, "not-supported")
        prompts = _find_prompts(request)
        sources = [None if prompt is None else self._source(prompt) for prompt in prompts]
        places = self._places.setdefault(number if name is None else name, [])
        if self._format.requests and not places and options is self._options:
            shown = "no custom_id" if name is None else f"the custom_id {quote(name)}"
            problem = f"{shown}, which is not in {self._format.requests}"
            advice = "give the requests of these responses"
            raise options.error(f"{problem}: {advice}", number, "mismatch", "requests")
        for place, source in zip(places, sources, strict=False):
            known = {source, self._samples.sources[place], None}
            if len(known) > 2 and not self._format.prompt_id:
                problem = f"a second prompt of the custom_id {quote(str(name))}: give each prompt"
                raise options.error(f"{problem} its own custom_id", number, "duplicate")
        if places:
            return places
        for k, source in enumerate(sources):
            label = name if name is None or len(prompts) == 1 else f"{name}[{k}]"
            places.append(self._samples.add_prompt(0, label, source))
        return places

    def _add(self, choices: Sequence[_Choice], model: str | None, place: int, number: int) -> None:
        """Add choices to the candidates of their prompt."""
        for choice in choices:
            text = choice.answer.text
            part = None if text is None else self._part(text)
            statistics = self._statistics(choice)
            if choice.answer.refusal:
                self._samples.leave_out("refusals", place, number)
            elif (choice.finish_reason or "stop") not in _DONE:
                self._samples.leave_out(explain_unfinished(choice.finish_reason), place, number)
            elif text is None:
                self._samples.leave_out("answers without a text", place, number)
            elif part is None:
                field = self._format.field
                target = f"a text in the field {quote(field)}" if field else "the pattern"
                self._samples.leave_out(f"answers without {target}", place, number)
            elif statistics is not None and not abs(max(statistics[1::-1], key=abs)) <= LARGEST:
                self._samples.leave_out("log-probabilities that are not finite", place, number)
            else:
                self._samples.add(place, part, statistics, model)

    def _statistics(self, choice: _Choice) -> tuple[float, ...] | None:
        """Return the statistics of the tokens of an answer; None if one is unknown."""
        logprobs = choice.token_logprobs
        known = [value for value in logprobs if value is not None and not math.isnan(value)]
        if len(known) == len(logprobs):
            return token_statistics(known)
        self._missing += 1
        return None

    def _field(self, text: str) -> str | None:
        """Return the field of the candidate in an answer that is a JSON object.

        None for any other answer, and for an object that has a key twice.
        """
        fenced = _FENCE.fullmatch(text)
        try:
            content = fenced[1] if fenced else text
            value = json.loads(content, object_pairs_hook=check_pairs)[self._format.field]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        return self._extract(value) if isinstance(value, str) else None

    def _read_requests(self) -> None:
        """Add the prompts in the file of requests.

        Raises:
            DataError: with file and line, if a line is not a request.
        """
        options = ReadOptions(origin_name(self._format.requests))
        for line, number in _decode(read_chunks(options.origin), options.origin):
            request = line.body or line
            has_prompt = request.messages is not None or request.prompt is not None
            if line.custom_id is None or not has_prompt:
                lacking = "body.messages or body.prompt" if not has_prompt else "custom_id"
                problem = f"no field {lacking}, so this is not a request: correct the line"
                raise options.error(problem, number, parameter="requests")
            self._places_of(line.custom_id, request, number, options)
        if not self._samples.lines:
            problem = "empty: there are no requests in it"
            raise options.error(problem, code="no-data", parameter="requests")

    def _ids(self) -> list[int]:
        """Return the ids of the sentences of the prompts."""
        first, names = self._options.first_id, self._samples.names
        if not self._format.requests:
            matched = [of for name in names if name and (of := _NUMBERED.fullmatch(name))]
            numbers = [int(of[2]) for of in matched]
            if len({of[1] for of in matched}) == 1 and len(set(numbers)) == len(names):
                return numbers
            if self._batch:
                what = "sentences are counted in the order of the responses, which need not be "
                what += "that of the requests: name the file of requests by the setting requests"
                warn_user(f"{self._options.origin}: {what}")
        return list(range(first, first + len(names)))


def _find_prompts(request: _Line) -> list[str | None]:
    """Return the texts of the prompts of a request; None if one is not a text.

    >>> _find_prompts(_Line(prompt=["ein Haus", "eine Katze"])), _find_prompts(_Line(prompt=[5, 7]))
    (['ein Haus', 'eine Katze'], [None])
    """
    if request.messages is not None:
        return [None, *(one.text for one in request.messages if one.role == "user")][-1:]
    prompts = request.prompt
    if not isinstance(prompts, list) or not {str, list}.issuperset(map(type, prompts)):
        prompts = [prompts]
    return [one if isinstance(one, str) else None for one in prompts] or [None]


def _decode(blocks: Iterable[bytes], origin: str) -> Iterator[tuple[_Line, int]]:
    """Yield what each line says, and its number; blank lines are left out.

    Raises:
        DataError: with file and line, if one is not JSON, or a field is of another type.
    """
    number = 0
    for block in blocks:
        for line in block[:-1].split(b"\n"):
            number += 1
            if line.strip():
                yield _one(line, origin, number), number


def _one(line: bytes, origin: str, number: int) -> _Line:
    """Return what a line says.

    Raises:
        DataError: with file and line, if it is not JSON, an object has a key twice, or a field is
            of another type.
    """
    with suppress(ValueError, RecursionError):
        decoded = _DECODER.decode(line)
        if is_strict_json(line, msgspec.json.decode(line)):
            return decoded
    values, _ = parse_strictly(line + b"\n", origin, number)
    try:
        return msgspec.convert(values[0], _Line)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        problem, _, place = str(error).partition(" - at `$")
        where = f"{place.strip('.`')}: " if place else ""
        advice = "write it as chat and completion APIs do"
        raise DataError(f"{where}{problem}: {advice}", origin, number, code="bad-line") from error

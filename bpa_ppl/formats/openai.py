"""JSON lines of responses of chat and completion APIs, from batches or one by one.

    {"custom_id": "request-7", "response": {"status_code": 200, "body": {"model": "…", "choices":
     [{"index": 0, "message": {"content": "a cat"}, "logprobs": {"content": [{"logprob": -0.1}]},
       "finish_reason": "stop"}]}}}
    {"model": "…", "choices": [{"text": "a cat", "logprobs": {"token_logprobs": [-0.1]}}]}

OpenAI, vLLM, SGLang, llama.cpp and LiteLLM write them. Each choice is a candidate, with the
features of `bpa_ppl.formats.samples` and the extra `model`. Lines with one `custom_id` belong to
one prompt, wherever they are in the file, so the candidates of the whole file are held in memory; a
line without `custom_id` is a prompt of its own.

The ids of the sentences are the places of the prompts in the file of requests, if it is given. Else
they are the numbers at the ends of the `custom_id`s, if these are alike before; else prompts are
counted as they appear. A `custom_id` that is not such a number alone is kept as the extra `id`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, quote
from bpa_ppl.formats.block import Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.samples import Samples, extractor, named, token_statistics, unfinished
from bpa_ppl.formats.streams import InputFile, origin_name, read_chunks
from bpa_ppl.formats.values import TOO_LARGE, json_keys, strict_values

#: Values of `finish_reason` for complete answers, by server.
_FINISHED = (None, "stop", "eos", "eos_token", "end_turn", "stop_sequence")
_MODEL = "model"
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


class _Part(msgspec.Struct, gc=False):
    """A part of a text, or a token."""

    text: str | None = None
    logprob: float | None = None


class _Content(msgspec.Struct, gc=False):
    """A message, or the log-probabilities of its tokens."""

    role: str | None = None
    content: str | list[_Part] | None = None
    refusal: str | None = None
    token_logprobs: list[float | None] | None = None

    @property
    def text(self) -> str | None:
        """The text of a message."""
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content

    @property
    def logprobs(self) -> list[float]:
        """The log-probabilities of the tokens; none if one is missing.

        The first one of a completion may be null: nothing precedes the first token of a prompt that
        is repeated. In a chat all tokens are generated.
        """
        values: Sequence[float | None] = self.token_logprobs or ()
        if isinstance(self.content, list):
            values = [token.logprob for token in self.content]
        elif values and values[0] is None:
            values = values[1:]
        present = [value for value in values if value is not None]
        return present if len(present) == len(values) else []


class _Choice(msgspec.Struct, gc=False):
    index: int | None = None
    message: _Content | None = None
    text: str | None = None
    logprobs: _Content | None = None
    finish_reason: str | None = None
    delta: Any = None


class _Line(msgspec.Struct, gc=False):
    """A line, and the objects in it: a response, its body, and a request that is repeated."""

    custom_id: str | int | None = None
    response: _Line | str | None = None
    request: _Line | None = None
    body: _Line | str | None = None
    messages: list[_Content] | None = None
    prompt: str | list[Any] | None = None
    choices: list[_Choice] | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    error: Any = None
    status_code: int | None = None


_DECODER = msgspec.json.Decoder(_Line)


class Openai(NBestFormat, frozen=True):
    """Responses of chat and completion APIs; they are only read.

    Attributes:
        requests: the file of the requests, which has the prompts and their order.
        extract: a regular expression that finds the candidate in an answer: its first group, or
            the whole match.
        field: the field of the candidate, where an answer is an object of JSON.
        source: a regular expression that finds the source text in a prompt.
        prompt_id: a regular expression that finds the name of the prompt in a `custom_id`, where
            several requests have the same prompt, as `(.*)-sample` in `doc-7-sample-2`.
    """

    required: ClassVar[tuple[tuple[str, ...], ...]] = (("choices",), ("custom_id", "response"))
    texts: ClassVar[tuple[str, ...]] = (_MODEL,)

    requests: str = ""
    extract: str = ""
    field: str = ""
    source: str = ""
    prompt_id: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("extract", "source", "prompt_id"):
            extractor(getattr(self, name), name)

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
        batch = "custom_id" in keys and not keys.isdisjoint(("response", "error", "body"))
        other = {"object", "output"} <= keys or ("error" in keys and "text" not in keys)
        return batch or "choices" in keys or other

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
        bpa_ppl.errors.DataError: out.jsonl:1: a part of an answer that was streamed: join ...
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
        self._source = extractor(format.source) if format.source else lambda text: text
        self._prompt_id = extractor(format.prompt_id, "prompt_id")
        self._extract = extractor(format.extract)
        self._part = self._field if format.field else self._extract
        self._samples = Samples(options.origin, options.bad)
        self._numbers: dict[str | int, int] = {}  # places of prompts
        for name, source in (self._read_requests() if format.requests else {}).items():
            self._numbers[name] = self._samples.add_prompt(0, name, source)
        self._batch = False  # whether lines are those of a batch

    def columns(self, blocks: Iterable[bytes]) -> Block:
        """Return the columns of all answers."""
        for line, number in _decoded(blocks, self._options.origin):
            self._read(line, number)
        samples = self._samples
        if not any(samples.lines):
            raise self._options.error("empty: there are no responses in it", code="no-data")
        if absent := [samples.label(place) for place, at in enumerate(samples.lines) if not at]:
            problem = f"requests without a response: {named(absent)}"
            warn_user(f"{self._options.origin}: {problem}: no list of them")
        return samples.columns(self._ids(), origins=_MODEL)

    def _read(self, line: _Line, number: int) -> None:
        """Collect the candidates of a line."""
        answer = line if line.response is None else line.response
        if isinstance(answer, _Line) and answer.body is not None and not _has_choices(answer):
            answer = answer.body
        error = _error_in([line, line.response, answer])
        if error is None and not _has_choices(answer):
            problem = "no field choices, so this is not a response of a chat or completion API"
            remedy = "give such responses; a file of requests is named by the setting requests"
            raise self._options.error(f"{problem}: {remedy}", number, parameter="format")
        place = self._place(line, number)
        if error is not None or not isinstance(answer, _Line):
            self._samples.leave_out("errors instead of responses", place, number, error or "")
        elif not answer.choices:
            self._samples.leave_out("responses without choices", place, number)
        else:
            choices = sorted(answer.choices, key=lambda choice: choice.index or 0)
            self._add(choices, answer.model, place, number)

    def _place(self, line: _Line, number: int) -> int:
        """Return the place of the prompt that a line belongs to, among all prompts."""
        self._batch = self._batch or line.response is not None
        has_name = line.custom_id is not None
        name = self._name(line.custom_id, self._options, number) if has_name else None
        key = number if name is None else name
        if self._format.requests and key not in self._numbers:
            shown = "no custom_id" if name is None else f"the custom_id {quote(name)}"
            problem = f"{shown}, which is not in {self._format.requests}"
            advice = "give the requests of these responses"
            raise self._options.error(f"{problem}: {advice}", number, "mismatch", "requests")
        place = self._numbers.get(key)
        source = self._text_of(line) or self._text_of(line.request)
        if place is None:
            place = self._numbers[key] = self._samples.add_prompt(number, name, source)
        elif name is not None:
            first = self._samples.sources[place]
            self._check_source(name, first, source, self._options, number)
        self._samples.lines[place] = self._samples.lines[place] or number
        return place

    def _check_source(
        self, name: str, first: str | None, source: str | None, options: ReadOptions, number: int
    ) -> None:
        """Refuse two requests of one id with different prompts, of which one would be dropped."""
        if None not in (first, source) and first != source and not self._format.prompt_id:
            problem = f"a second prompt of the custom_id {quote(name)}: give each prompt its own"
            raise options.error(f"{problem} custom_id", number, "duplicate")

    def _name(self, custom_id: str | int | None, options: ReadOptions, number: int) -> str:
        """Return the name of the prompt of a request."""
        if not self._format.prompt_id:
            return str(custom_id)
        name = self._prompt_id(str(custom_id))
        if name is None:
            problem = f"the pattern of the prompt is not found in {quote(str(custom_id))}"
            raise options.error(problem, number, "mismatch", "prompt_id")
        return name

    def _add(self, choices: Sequence[_Choice], model: str | None, place: int, number: int) -> None:
        """Add choices to the candidates of their prompt."""
        samples = self._samples
        for choice in choices:
            message = choice.message or _Content()
            text = message.text if choice.text is None else choice.text
            if text is None and choice.delta is not None:
                problem = "a part of an answer that was streamed: join the parts, or do not stream"
                raise self._options.error(problem, number, "not-supported")
            part = None if text is None else self._part(text)
            statistics = None
            if choice.logprobs is not None:
                statistics = token_statistics(choice.logprobs.logprobs)
            if message.refusal:
                samples.leave_out("refusals", place, number)
            elif choice.finish_reason not in _FINISHED:
                samples.leave_out(unfinished(choice.finish_reason), place, number)
            elif text is None:
                samples.leave_out("answers without a text", place, number)
            elif part is None:
                field = self._format.field
                target = f"the field {quote(field)}" if field else "the pattern"
                samples.leave_out(f"answers without {target}", place, number)
            elif statistics is not None and not abs(statistics[0]) < TOO_LARGE:
                samples.leave_out("log-probabilities that are not finite", place, number)
            else:
                samples.add(place, part, statistics, model)

    def _field(self, text: str) -> str | None:
        """Return the field of the candidate in an answer that is an object of JSON."""
        fenced = _FENCE.fullmatch(text)
        try:
            value = json.loads(fenced[1] if fenced else text)[self._format.field]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        return self._extract(value) if isinstance(value, str) else None

    def _text_of(self, prompted: _Line | None) -> str | None:
        """Return the source text in a prompt."""
        if prompted is None:
            return None
        text = prompted.prompt
        if prompted.messages is not None:
            users = [one.text for one in prompted.messages if one.role == "user"]
            text = users[-1] if users else None
        return self._source(text) if isinstance(text, str) else None

    def _read_requests(self) -> dict[str, str | None]:
        """Return the sources of the prompts in the file of requests, by name.

        Raises:
            DataError: with file and line, if a line is not a request.
        """
        options = ReadOptions(origin_name(self._format.requests))
        sources: dict[str, str | None] = {}
        for line, number in _decoded(read_chunks(options.origin), options.origin):
            prompted = line.body if isinstance(line.body, _Line) else line
            has_prompt = prompted.messages is not None or prompted.prompt is not None
            if line.custom_id is None or not has_prompt:
                lacking = "body.messages or body.prompt" if not has_prompt else "custom_id"
                problem = f"no field {lacking}, so this is not a request: correct the line"
                raise options.error(problem, number, parameter="requests")
            name = self._name(line.custom_id, options, number)
            source = self._text_of(prompted)
            self._check_source(name, sources.setdefault(name, source), source, options, number)
        if not sources:
            problem = "empty: there are no requests in it"
            raise options.error(problem, code="no-data", parameter="requests")
        return sources

    def _ids(self) -> list[int]:
        """Return the ids of the sentences of the prompts."""
        first, names = self._options.first_id, list(self._numbers)
        if not self._format.requests:
            texts = [name for name in names if isinstance(name, str)]
            matched = [of for name in texts if (of := _NUMBERED.fullmatch(name))]
            numbers = [int(of[2]) for of in matched]
            if len({of[1] for of in matched}) == 1 and len(set(numbers)) == len(names):
                return numbers
            if self._batch:
                warn_user(
                    f"{self._options.origin}: sentences are counted in the order of the responses, "
                    "which need not be that of the requests: name the file of requests by the "
                    "setting requests"
                )
        return list(range(first, first + len(names)))


def _has_choices(answer: _Line | str | None) -> bool:
    """Return whether a part of a line has the field of the answers, which may be null."""
    return isinstance(answer, _Line) and answer.choices is not msgspec.UNSET


def _error_in(parts: Sequence[_Line | str | None]) -> str | None:
    """Return the message of an error that the parts of a line have instead of a response."""
    errors = [one if isinstance(one, str) else one.error for one in parts if one is not None]
    codes = [one.status_code or 0 for one in parts if isinstance(one, _Line)]
    errors += [f"status {code}" for code in codes if code >= 400]
    error = next(filter(None, errors), None)
    error = error.get("message", error) if isinstance(error, dict) else error
    return None if error is None else str(error)


def _decoded(blocks: Iterable[bytes], origin: str) -> Iterator[tuple[_Line, int]]:
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
        DataError: with file and line, if it is not JSON, or a field is of another type.
    """
    with suppress(ValueError, RecursionError):
        return _DECODER.decode(line)
    values, _ = strict_values(line + b"\n", origin, number)
    try:
        return msgspec.convert(values[0], _Line)
    except (msgspec.ValidationError, OverflowError) as error:
        problem, _, place = str(error).partition(" - at `$")
        where = f"{place.strip('.`')}: " if place else ""
        advice = "write it as chat and completion APIs do"
        raise DataError(f"{where}{problem}: {advice}", origin, number, code="bad-line") from error

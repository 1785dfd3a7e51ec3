"""JSON lines of responses of servers of LLMs, from batches or one by one.

    {"custom_id": "request-7", "response": {"status_code": 200, "body": {"model": "…", "choices":
     [{"index": 0, "message": {"content": "a cat"}, "logprobs": {"content": [{"logprob": -0.1}]},
       "finish_reason": "stop"}]}}}
    {"model": "…", "choices": [{"text": "a cat", "logprobs": {"token_logprobs": [-0.1]}}]}

OpenAI, vLLM, SGLang, llama.cpp, Mistral and LiteLLM write them; `bpa_ppl.formats.responses` has the
forms of others. Each choice is a candidate, with the features of `bpa_ppl.formats.samples` and the
extra `model`. Lines with one `custom_id` belong to one prompt, wherever they are in the file, so
the candidates of the whole file are held in memory; a line without `custom_id` is a prompt of its
own. If one request has several prompts, the choices are divided among them in equal parts.

Text and log-probabilities are those of the answer: reasoning and a prompt that is repeated are left
out of both. In a chat each token is generated, and an unknown log-probability makes those of the
answer missing. The first one of a completion is unknown if the prompt is repeated (`echo`).

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
from bpa_ppl.formats.block import Block, ReadOptions
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.responses import (
    Choice,
    Line,
    compare_tokens,
    find_choices,
    find_numbers,
    find_start,
    is_line,
    parse_line,
    without_reasoning,
)
from bpa_ppl.formats.samples import (
    Samples,
    explain_unfinished,
    make_extractor,
    name_prompts,
    token_statistics,
)
from bpa_ppl.formats.streams import InputFile, origin_name, read_chunks
from bpa_ppl.formats.values import check_pairs, has_all_keys, json_keys, parse_strictly

#: Values of `finish_reason` for complete answers, by server.
_DONE = ("stop", "complete", "completed", "end_turn", "stop_sequence", "eos", "eos_token", "word")
_CHECKED = 100  # lines in which other numbers are looked for
_ARRAY = """an array of responses: `jq -c '.[]'` writes one per line; or, if all answer one prompt,
`jq -c '.[] | {custom_id: "0", response: .}'`""".replace("\n", " ")
_PROMPTS = """write the prompts into the line, as a list in the field prompt, or name the file of
requests by the setting requests""".replace("\n", " ")
_MODEL = "model"
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


_DECODER = msgspec.json.Decoder(Line)


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
        line: Any = {}
        with suppress(ValueError, RecursionError):
            line = json.loads(first_line) if keys or first_line[:1] == b"[" else {}
        if isinstance(line, list):
            return bool(line) and all(find_choices(body) is not None for body in line)
        return is_line(line)

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
        self._prompts: list[tuple[str | None, Any]] = []  # and whether answers repeat them
        if format.requests:
            self._read_requests()
        self._batch = False  # whether lines are those of a batch
        self._unfinished: set[str] = set()  # ids of completions without a reason of their end
        self._numbers: dict[str, None] = {}  # names of numbers that are not read
        self._array = 0  # answers in the last line, if it is an array of responses
        self._together = 0  # completions of several choices and of an unknown prompt
        # Numbers of answers whose tokens are those of more than their texts, or may be.
        self._shortened = self._longer = self._unknown = self._missing = 0
        self._stopped = self._partial = 0

    def columns(self, blocks: Iterable[bytes]) -> Block:
        """Return the columns of all answers."""
        for line, number in _decode(blocks, self._options.origin, self._numbers):
            self._read(line, number)
        samples = self._samples
        if self._numbers:
            problem = f"not read: the numbers {', '.join(self._numbers)}, since a response has only"
            problem += " log-probabilities: write the answers with them as lists, such as "
            problem += '{"id": 0, "candidates": [{"text": "…", "score": 0.5}]}'
            warn_user(f"{self._options.origin}: {problem}")
        if self._array > 1 and len(self._prompts) == 1:
            raise self._options.error(_ARRAY, 1, "bad-response", "format")
        if self._together and not self._format.requests:
            what = f"choices are read as answers to one prompt; if there were several, {_PROMPTS}"
            log_info(f"{self._options.origin}: {what}")
        self._report_tokens()
        if not any(samples.lines):
            raise self._options.error("empty: there are no responses in it", code="no-data")
        if absent := [samples.label(place) for place, at in enumerate(samples.lines) if not at]:
            problem = f"requests without a response: {name_prompts(absent)}"
            warn_user(f"{self._options.origin}: {problem}: no list of them")
        return samples.columns(self._ids(), origins=_MODEL)

    def _report_tokens(self) -> None:
        """Report answers whose tokens are those of more than their texts, or may be."""
        origin = self._options.origin
        if self._shortened:
            what = (
                f"reasoning or a repeated prompt before {format_count(self._shortened, 'answer')}"
            )
            log_info(f"{origin}: {what} is left out of text and log-probabilities")
        if self._longer:
            what = f"the log-probabilities of {format_count(self._longer, 'answer')} are also "
            what += "those of the reasoning or prompt before, which the texts lack: exclude the "
            warn_user(f"{origin}: {what}columns logprob.sum, logprob.mean, logprob.min and length")
        if self._stopped:
            what = f"the tokens of {format_count(self._stopped, 'answer')} go on after their texts"
            log_info(f"{origin}: {what}, as those of a stop sequence: only the first one counts")
        if self._partial:
            what = f"the tokens of {format_count(self._partial, 'answer')} are a part of their "
            what += "texts: repeat these requests, or exclude the columns logprob.sum, "
            warn_user(f"{origin}: {what}logprob.mean, logprob.min and length")
        if self._unknown:
            what = (
                f"the first log-probability of {format_count(self._unknown, 'answer')} is unknown: "
            )
            what += "if the prompts are repeated (echo), name the file of requests by the setting "
            warn_user(f"{origin}: {what}requests, or keep the field usage of the responses")
        elif self._missing:
            what = f"a log-probability of {format_count(self._missing, 'answer')} is unknown (null)"
            log_info(f"{origin}: {what}: all of theirs are missing")

    def _read(self, line: Line, number: int) -> None:
        """Collect the candidates of a line."""
        answer, error, samples = line.answer, line.problem, self._samples
        if error is None and answer is None:
            problem = "no field choices, so this is not a response of a chat or completion API"
            remedy = "give such responses; a file of requests is named by the setting requests"
            raise self._options.error(f"{problem}: {remedy}", number, parameter="format")
        self._batch = self._batch or line.response is not None
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
            server = first.delta if isinstance(first.delta, str) else "chats and completions"
            problem = "a part of an answer that was streamed: do not stream, or join the parts as "
            problem += f"docs/how-to/llm-samples.md shows for {server}"
            raise self._options.error(problem, number, "not-supported")
        if line.id and line.object == "text_completion" and first.finish_reason is None:
            self._unfinished.add(str(line.id))
        size, rest = divmod(len(choices), len(places))
        self._array = len(choices) if line.array else 0
        if line.array > 1:
            raise self._options.error(_ARRAY, number, "bad-response", "format")
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
            of_prompt = choices[k * size : (k + 1) * size]
            prompt = self._find_echo(of_prompt, place, answer.usage if len(places) == 1 else None)
            self._add(of_prompt, prompt, answer.model, place, number)

    def _places_of(
        self, custom_id: str | int | None, request: Line, number: int, options: ReadOptions
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
        for k, (prompt, source) in enumerate(zip(prompts, sources, strict=True)):
            label = name if name is None or len(prompts) == 1 else f"{name}[{k}]"
            places.append(self._samples.add_prompt(0, label, source))
            self._prompts.append((prompt, request.echo))
        return places

    def _find_echo(self, choices: Sequence[Choice], place: int, usage: Any) -> str:
        """Return the prompt that completions repeat before their answers; nothing if they do not.

        The log-probability of its first token is unknown, because nothing precedes it.
        """
        texts = [choice.text for choice in choices if choice.text is not None]
        if len(texts) < len(choices):
            return ""
        prompt, echo = self._prompts[place]
        logprobs = [choice.token_logprobs for choice in choices]
        if not (echo or all(values[:1] == [None] for values in logprobs)):
            return ""
        if prompt and all(text.startswith(prompt) for text in texts):
            return prompt
        match usage:
            case {"prompt_tokens": int(size), "completion_tokens": int(generated)} if size and (
                sum(map(len, logprobs)) == size * len(choices) + generated
            ):
                ends = ["".join(choice.tokens[size:]) for choice in choices]
                prompts = {t.removesuffix(end) for t, end in zip(texts, ends, strict=True) if end}
                if len(prompts) == 1 and prompts.isdisjoint(texts):
                    return prompts.pop()
        self._unknown += len(choices)
        return ""

    def _add(
        self, choices: Sequence[Choice], prompt: str, model: str | None, place: int, number: int
    ) -> None:
        """Add choices to the candidates of their prompt."""
        for choice in choices:
            text = choice.answer.text
            answer = without_reasoning((text or "").removeprefix(prompt))
            parts = [] if text is None else map(self._part, (answer, text))
            part = next((one for one in parts if one is not None), None)  # may be in the reasoning
            reason = (choice.finish_reason or "stop").lower()
            statistics = self._statistics(choice, text or "", answer, prompt)
            if choice.answer.is_refusal:
                self._samples.leave_out("refusals", place, number)
            elif reason not in _DONE:
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

    def _statistics(
        self, choice: Choice, text: str, answer: str, prompt: str
    ) -> tuple[float, ...] | None:
        """Return the statistics of the tokens of an answer; None if one is unknown.

        Args:
            choice: with all tokens that were generated.
            text: of the choice.
            answer: the end of the text, without a prompt and reasoning.
            prompt: before the answer, which then begins with its blanks.
        """
        logprobs, logged = choice.token_logprobs, choice.logprobs
        is_end = len(answer) < len(text) or choice.answer.has_reasoning
        is_thought = without_reasoning(generated := "".join(choice.tokens)) != generated
        before, place = compare_tokens(answer, choice.tokens)[0], None
        if is_end or is_thought or before > 0 or 2 * len(logprobs) > len(text) + 2:  # too many
            place = find_start(answer if prompt else answer.strip(), choice.tokens)
            self._shortened += len(answer) < len(text) or bool(place)
            is_end |= bool(text) and len(logprobs) > 4 * len(text) + 2  # a token for each byte
            self._longer += is_end and place is None and bool(logprobs or (logged and logged.mean))
            logprobs = logprobs[place or 0 :]
        used = compare_tokens(answer, choice.tokens[place or 0 :])[1]
        self._partial += before < 0
        self._stopped += used < len(logprobs)
        logprobs = logprobs[:used] if generated else logprobs
        present = [value for value in logprobs if value is not None]
        statistics = token_statistics(present)
        if statistics and len(present) == len(logprobs) and not math.isnan(statistics[0]):
            return statistics
        self._missing += bool(logprobs)
        if logged is None or logged.mean is None:
            return None
        return logged.mean * (length := logged.length or math.nan), logged.mean, math.nan, length

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
            request = line.body if isinstance(line.body, Line) else line.request or line
            has_prompt = request.messages is not None or request.prompt is not None
            if line.custom_id is None or not has_prompt:
                lacking = "body.messages or body.prompt" if not has_prompt else "custom_id"
                problem = f"no field {lacking}, so this is not a request: correct the line"
                raise options.error(problem, number, parameter="requests")
            self._places_of(line.custom_id, request, number, options)
        if not self._prompts:
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


def _find_prompts(request: Line) -> list[str | None]:
    """Return the texts of the prompts of a request; None if one is not a text.

    >>> _find_prompts(Line(prompt=["ein Haus", "eine Katze"])), _find_prompts(Line(prompt=[5, 7]))
    (['ein Haus', 'eine Katze'], [None])
    """
    if request.messages is not None:
        return [None, *(one.text for one in request.messages if one.role == "user")][-1:]
    prompts = request.prompt
    if not isinstance(prompts, list) or not {str, list}.issuperset(map(type, prompts)):
        prompts = [prompts]
    return [one if isinstance(one, str) else None for one in prompts] or [None]


def _decode(
    blocks: Iterable[bytes], origin: str, numbers: dict[str, None] | None = None
) -> Iterator[tuple[Line, int]]:
    """Yield what each line says, and its number; blank lines are left out.

    Args:
        blocks: of lines.
        origin: the name of the file.
        numbers: where the names of numbers that are not read are entered.

    Raises:
        DataError: with file and line, if one is not JSON, or a field is of another type.
    """
    number = 0
    for block in blocks:
        for line in block[:-1].split(b"\n"):
            number += 1
            if line.strip():
                yield _one(line, origin, number), number
            if numbers is not None and number <= _CHECKED:
                with suppress(ValueError, RecursionError):
                    numbers |= dict.fromkeys(find_numbers(msgspec.json.decode(line)))


def _one(line: bytes, origin: str, number: int) -> Line:
    """Return what a line says.

    Raises:
        DataError: with file and line, if it is not JSON, an object has a key twice, or a field is
            of another type.
    """
    with suppress(ValueError, RecursionError):
        decoded = _DECODER.decode(line)
        usual = decoded.answer and (decoded.custom_id is not None or decoded.response is None)
        if usual and has_all_keys(line, msgspec.json.decode(line)):
            return decoded
    values, _ = parse_strictly(line + b"\n", origin, number)
    try:
        return parse_line(values[0])
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        problem, _, place = str(error).partition(" - at `$")
        where = f"{place.strip('.`')}: " if place else ""
        advice = "write it as chat and completion APIs do"
        raise DataError(f"{where}{problem}: {advice}", origin, number, code="bad-line") from error

"""Responses of servers of LLMs, and lines of batches of requests, in one form: choices.

Most servers write the choices of the chat and completion APIs of OpenAI. Other answers become
choices here:

    {"status": "completed", "output": [{"type": "message", "content": […]}]}     Responses API
    {"content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn"}      Anthropic
    {"candidates": [{"content": {"parts": […]}, "finishReason": "STOP"}]}        Gemini, Vertex AI
    {"message": {"content": "…"}, "done": true}, {"response": "…", "done": true} Ollama
    {"content": "…", "stop": true, "completion_probabilities": […]}              llama.cpp
    {"text": "…", "meta_info": {"output_token_logprobs": […]}}                   SGLang
    {"generated_text": "…", "details": {"tokens": […], "best_of_sequences": […]}}  TGI
    {"prompt": "…", "outputs": [{"text": "…", "finish_reason": "stop"}]}         vLLM in Python
    {"message": {"content": […]}, "finish_reason": "COMPLETE", "usage": …}       Cohere
    {"output": {"message": {"content": […]}}, "stopReason": "end_turn"}          Bedrock

Their batches have other names for `custom_id`, `response` and the `body` of a request. An array of
responses has the answers to one prompt. An object that lacks some of these fields is a record of
the user.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import msgspec

from bpa_ppl.formats.preference_rows import find_answer_fields
from bpa_ppl.formats.values import NUMBER, kind_of

# Names of fields in the lines of batches, by those of OpenAI.
_FIELDS = {
    "custom_id": ("key", "recordId"),
    "response": ("result", "modelOutput"),
    "body": ("params",),
    "request": ("modelInput",),
}
#: Ends of reasoning, whose beginning may be in the prompt.
_THOUGHT = (
    *("</think>", "[/THINK]", "<|channel|>final<|message|>"),
    *("</seed:think>", "<|END_THINKING|>", "<|end_of_thought|>"),
)
#: How reasoning begins; elsewhere in an answer, tags are text.
_BEGUN = re.compile(
    r"\s*(?:<(think|thinking|thoughts?|reasoning)>|<seed:think>|\[THINK\]|<\|START_THINKING\|>"
    r"|<\|begin_of_thought\|>)"
)
#: What some models write around an answer after reasoning.
_AROUND = re.compile(
    r"\A\s*(<\|(START_RESPONSE|begin_of_solution)\|>\s*)?"
    r"|\s*<\|(return|end|END_RESPONSE|end_of_solution)\|>\s*\Z"
)
# Blanks in texts, and as tokenizers write them, and numbers in place of tokens.
_BLANKS = re.compile(r"[\s▁ĠĊ]+|token_id:[0-9]+")
_OUTPUT = {"index", "text", "token_ids", "cumulative_logprob", "logprobs", "finish_reason"}
_OUTPUT |= {"stop_reason", "lora_request", "routed_experts"}
# Fields of Ollama, and of llama.cpp, one of which is in each of their answers.
_OF_OLLAMA = {"model", "created_at", "done_reason", "context", "eval_count"}
_OF_LLAMA = {"generation_settings", "stop_type", "stopped_eos", "tokens_predicted", "id_slot"}
_PART = {"delta": "Ollama and llama.cpp"}  # of an answer that is streamed
# Fields that may be next to the text of an error.
_OF_ERROR = {"error", "error_type", "custom_id", "code", "status", "status_code", "type", "message"}
# Numbers, and objects of numbers, that servers write.
_BOOKKEEPING = re.compile(
    r"(n|id|custom_id|key|recordId|index|seed|created|code|status|status_code|stop_reason|timings|"
    r"matched_stop|spend|temperature|top_[pk]|slot_id|id_slot|max_tool_calls|(prompt_)?eval_count|stats|"
    r"model_info|tokenCount|tokens_\w+|time_\w+|latency\w*|usage\w*|\w*[cC]ost|\w*Logprobs|_\w+|"
    r"(\w+_)?(at|ms|time|duration|penalty|tokens|token_count|logprobs?))"
)
_ANSWERS = {"response", "body", "result", "message", "modelOutput", "choices", "candidates"}
_ANSWERS |= {"outputs", "output"}


class Token(msgspec.Struct, gc=False):
    """A token of an answer."""

    token: str | int | None = None
    logprob: float | None = None


class _Part(msgspec.Struct, gc=False):
    """A part of a message."""

    text: str | None = None
    refusal: str | None = None
    thought: Any = None
    thinking: Any = None


class _Message(msgspec.Struct, gc=False):
    """A message of a chat."""

    role: str | None = None
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    reasoning_details: Any = None
    thinking: Any = None
    thinking_blocks: Any = None
    tool_calls: Any = None

    @property
    def text(self) -> str | None:
        """The text; None if there is none, or only calls of tools, or reasoning without an end."""
        text = self.content
        if isinstance(text, list):
            texts = [part.text for part in text if part.text is not None and not part.thought]
            text = "".join(texts) if texts else None
        is_thought = text is not None and _BEGUN.match(text) and without_reasoning(text) == text
        return None if is_thought or (self.tool_calls and not text) else text

    @property
    def has_reasoning(self) -> bool:
        """Whether the server has taken reasoning out of the text."""
        parts = isinstance(self.content, list) and any(part.thinking for part in self.content)
        texts = self.reasoning or self.reasoning_content or self.thinking
        return bool(parts or texts or self.reasoning_details or self.thinking_blocks)

    @property
    def is_refusal(self) -> bool:
        """Whether the model refuses to answer."""
        parts = self.content if isinstance(self.content, list) else ()
        return bool(self.refusal or any(part.refusal for part in parts))


class _Logprobs(msgspec.Struct, gc=False):
    """The tokens of an answer, objects in chats and two lists in completions; or their mean.

    Some servers count the characters from the beginning of the prompt (`text_offset`).
    """

    content: list[Token] | None = None
    tokens: list[str | int | None] | None = None
    token_logprobs: list[float | None] | None = None
    text_offset: list[int | None] | None = None
    mean: float | None = None
    length: int | None = None


class Choice(msgspec.Struct, gc=False):
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

    @property
    def tokens(self) -> list[str]:
        """The tokens; nothing for those that the server does not write as texts."""
        logged = self.logprobs or _Logprobs()
        tokens = [token.token for token in logged.content or ()] or logged.tokens or ()
        return [token if isinstance(token, str) else "" for token in tokens]


class Line(msgspec.Struct, gc=False):
    """A line, and the objects in it: a response, its body, and a request that is repeated."""

    id: Any = None
    object: Any = None
    custom_id: str | int | None = None
    response: Line | str | None = None
    request: Line | None = None
    body: Line | str | None = None
    messages: list[_Message] | None = None
    prompt: str | list[Any] | None = None
    echo: Any = None
    choices: list[Choice] | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    usage: Any = None
    error: Any = None
    status_code: int | None = None
    array: int = 0  # prompts of responses in an array

    @property
    def parts(self) -> list[Line | str]:
        """The objects that may have the answers, and texts in their place."""
        body = self.response.body if isinstance(self.response, Line) else None
        return [part for part in (self, self.response, body) if part is not None]

    @property
    def answer(self) -> Line | None:
        """The part with the field of the answers, which may be null."""
        lines = [part for part in self.parts if isinstance(part, Line)]
        return next((part for part in lines if part.choices is not msgspec.UNSET), None)

    @property
    def problem(self) -> str | None:
        """The message of an error that the parts have instead of a response."""
        errors = [part if isinstance(part, str) else part.error for part in self.parts]
        codes = [part.status_code or 0 for part in self.parts if isinstance(part, Line)]
        errors += [f"status {code}" for code in codes if code >= 400]
        error = next(filter(None, errors), None)
        names = ("message", "error", "errorMessage")
        while isinstance(error, dict) and (inner := [error[n] for n in names if error.get(n)]):
            error = inner[0]
        return None if error is None else str(error)


def parse_line(value: Any) -> Line:
    """Return what a line of any server or batch says, with its answers as choices.

    Raises:
        msgspec.ValidationError: if a field is of another type.

    >>> line = {"response": "a cat", "done": True, "done_reason": "stop"}
    >>> parse_line(line).choices[0].message.text
    'a cat'
    >>> parse_line({"key": "r-1", "error": {"message": "too slow"}}).custom_id
    'r-1'
    >>> [choice.answer.text for choice in parse_line([{"generated_text": t} for t in "ab"]).choices]
    ['a', 'b']
    """
    if value and isinstance(value, list) and all(answers := list(map(find_choices, value))):
        prompts = {f"{_get(of, 'prompt')} {_get(of, 'meta_info', 'prompt_tokens')}" for of in value}
        shared = {name: _get(value[0], name) for name in ("model", "prompt")}
        value = {**shared, "choices": list(chain(*answers)), "array": len(prompts)}
    fields: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    for usual, names in _FIELDS.items():
        for name in filter(fields.__contains__, names):
            fields.setdefault(usual, fields.pop(name))
    for name in ("body", "request"):
        fields[name] = _find_request(fields.get(name))
    response = fields.get("response")
    bodies: tuple[Any, ...] = (value, response, _get(response, "body"), _get(response, "message"))
    if any("choices" in body for body in bodies[:3] if isinstance(body, dict)):
        return msgspec.convert(fields, Line)
    for body in bodies:
        if (choices := find_choices(body)) is not None:
            shared = {n: body[n] for n in ("error", "prompt", "usage") if body.get(n) is not None}
            shared["model"] = _get(body, "model") or _get(body, "model_version")
            answered = {"response": None, "body": None, "choices": choices}
            return msgspec.convert(fields | shared | answered, Line)
    if isinstance(status := fields.get("status") or _get(response, "type"), str):
        fields["error"] = fields.get("error") or _get(response, "error") or status
    elif fields.get("object") == "error":
        fields["error"] = fields.get("message") or "error"
    inner = response.get("body", response) if isinstance(response, dict) else response
    if "response" in fields and not inner:
        fields["choices"] = None
    return msgspec.convert(fields if isinstance(value, dict) else value, Line)


def is_line(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a response, a line of a batch, or an error in its place.

    >>> is_line({"custom_id": "r-1", "response": None, "error": {"message": "too slow"}})
    True
    >>> is_line({"id": 0, "text": "a cat", "choices": ["a", "b"]})
    False
    """
    match value:
        case {"text": str()} if "id" in value or "meta_info" not in value:
            return False
        case {"candidates": [str() | {"text": str()}, *_]}:
            return False
        case {"error": {}} | {"object": "error"}:
            return True
    if (pair := find_answer_fields(value.keys(), {})) and {*pair[:2]} <= value.keys():
        return False
    inside = [value[n] for n in ("response", "result", "modelOutput", "body") if n in value]
    is_log = isinstance(value.get("request"), dict) and "response" in value
    if inside and (is_log or "custom_id" in value or "modelOutput" in value):
        return "error" in value or not isinstance(inside[0], str)
    if value.get("error") and value.keys() <= _OF_ERROR:
        return True
    return any(find_choices(body) is not None for body in (value, *inside))


def find_numbers(value: Any, prefix: str = "") -> Iterator[str]:
    """Yield the names of numbers in a response that servers do not write.

    >>> choice = {"index": 0, "message": {"content": "a cat"}, "judge": 0.5}
    >>> list(find_numbers({"created": 1700000000, "choices": [choice], "scores": {"bleu": 25}}))
    ['choices.judge', 'scores.bleu']
    """
    if isinstance(value, list):
        for one in value:
            yield from find_numbers(one, prefix)
    for name, inner in value.items() if isinstance(value, dict) else ():
        if _BOOKKEEPING.fullmatch(name):
            continue
        kinds = set(map(kind_of, inner.values())) if isinstance(inner, dict) else set()
        if kind_of(inner) == NUMBER:
            yield prefix + name
        elif name in _ANSWERS or kinds == {NUMBER}:
            yield from find_numbers(inner, f"{prefix}{name}.")


def find_choices(body: Any) -> Any:
    """Return the answers in a response as choices; None if it is not a response.

    >>> find_choices({"content": " a cat", "stop": True, "stop_type": "eos"})[0]["message"]
    {'content': ' a cat'}
    >>> find_choices({"id": 0, "content": "a cat", "stop_reason": "end", "judge": 0.5})
    """
    match body:
        case {"usageMetadata": _} | {"usage_metadata": _}:
            return _parse_candidates(body)
        case {"candidates": [{"content": {}} as one, *_]} if _get(one, "finish_reason"):
            return _parse_candidates(body)
        case {"choices": None | [] | [{"message": _} | {"delta": _} | {"text": _, "index": _}, *_]}:
            return body["choices"]
        case {"choices": [{"text": _, "finish_reason": _} | {"text": _, "logprobs": _}, *_]}:
            return body["choices"]
        case {"output": _, "object": "response"} | {"output": [{"type": _}, *_], "status": _}:
            return _parse_output(body)
        case {"content": [] | [{"type": _}, *_], "stop_reason": reason}:
            return [_choice(body["content"], reason) if reason else {"delta": "Anthropic"}]
        case {"done": bool(), "message": {}} | {"done": bool(), "response": str()}:
            return _parse_message(body) if not _OF_OLLAMA.isdisjoint(body) else None
        case {"message": {"content": [*_]}, "finish_reason": _, "usage": _}:
            return _parse_cohere(body)
        case {"type": "message_start", "message": {}}:
            return [{"delta": "Anthropic"}]
        case {"type": "response.created", "response": {}}:
            return [{"delta": "the Responses API"}]
        case {"token": {}, "generated_text": _}:
            return [{"delta": "TGI"}]
        case {"generated_text": _} if len(body) == 1:
            return _parse_generated(body)
        case {"id": _}:
            return None  # the others have none
        case {"content": str(), "stop": bool()}:
            return _parse_completion(body) if not _OF_LLAMA.isdisjoint(body) else None
        case {"completion": str(text), "stop_reason": reason}:
            return [_choice(text, reason)]
        case {"text": str(), "meta_info": {"finish_reason": reason}}:
            return _parse_sglang(body) if reason else [{"delta": "SGLang"}]
        case {"details": {"finish_reason": str()}}:
            return _parse_generated(body)
        case {"outputs": _}:
            return _parse_outputs(body)
        case {"output": {"message": {"content": _}}} | {"generation_token_count": _}:
            return _parse_converse(body)
    return None


def _parse_output(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of the Responses API, without its items of reasoning and tools."""
    messages = [item for item in _list(body, "output") if _get(item, "type") == "message"]
    content = [part for message in messages for part in _list(message, "content")]
    tokens = [token for part in content for token in _list(part, "logprobs")]
    reason = _get(body, "incomplete_details", "reason") or body.get("status")
    return [_choice(content, reason, tokens)]


def _parse_candidates(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers of Gemini; its packages write names in snake case."""
    choices: list[dict[str, Any]] = []
    for one in _list(body, "candidates"):
        if _get(one, "content", "parts") and _get(one, "finish_reason") is None:
            return [{"delta": "Gemini"}]
        tokens = map(_read_token, _list(one, "logprobs_result", "chosen_candidates"))
        content, reason = _get(one, "content", "parts"), _get(one, "finish_reason")
        choices.append(_choice(content, reason, list(tokens), mean=_get(one, "avg_logprobs")))
    return choices


def _parse_message(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of Ollama, to a chat or to a prompt."""
    message = body.get("message") or {**body, "content": body.get("response")}
    choice = _choice(None, body.get("done_reason"), body.get("logprobs"))
    return [{**choice, "message": message} if body["done"] else _PART]


def _parse_completion(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of llama.cpp to a prompt."""
    tokens = list(map(_read_token, _list(body, "completion_probabilities")))
    reason = "limit" if body.get("stopped_limit") else body.get("stop_type")
    return [_choice(body["content"], reason, tokens) if body["stop"] else _PART]


def _parse_generated(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers of TGI, and of pipelines of Transformers, whose texts may be chats."""
    choices = []
    first = {"generated_text": body.get("generated_text"), **(_get(body, "details") or {})}
    for one in (first, *_list(body, "details", "best_of_sequences")):
        text = _get(one, "generated_text")
        content = _get(text[-1], "content") if isinstance(text, list) and text else text
        tokens = map(_read_token, _list(one, "tokens"))
        choices.append(_choice(content, _get(one, "finish_reason"), list(tokens)))
    return choices


def _parse_sglang(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of SGLang, whose tokens are lists: log-probability, number and text."""
    reason, names = _get(body, "meta_info", "finish_reason"), ("logprob", "number", "token")
    logged = _list(body, "meta_info", "output_token_logprobs")
    tokens = [dict(zip(names, of, strict=False)) if isinstance(of, list) else of for of in logged]
    return [_choice(body.get("text"), _get(reason, "type") or reason, tokens)]


def _parse_outputs(body: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the answers of vLLM in Python, or of Mistral on Bedrock; None for other outputs."""
    choices = []
    for one in _list(body, "outputs"):
        reason = _get(one, "finish_reason") or _get(one, "stop_reason")
        if not (isinstance(one, dict) and one.keys() <= _OUTPUT and isinstance(reason, str)):
            return None
        ids, at = _list(one, "token_ids"), _list(one, "logprobs")
        tokens = [_read_token(_get(of, str(number))) for of, number in zip(at, ids, strict=False)]
        total = one.get("cumulative_logprob")
        mean = total / len(ids) if ids and isinstance(total, int | float) else None
        choices.append(_choice(one.get("text"), reason, tokens, mean=mean, length=len(ids)))
    return choices


def _parse_converse(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of models on Bedrock."""
    content = _get(body, "output", "message", "content") or body.get("generation")
    return [_choice(content, _get(body, "stop_reason"))]


def _parse_cohere(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of Cohere, whose entries of log-probabilities have several tokens."""
    tokens = [
        {"token": None if place else _get(of, "text"), "logprob": value}
        for of in _list(body, "logprobs")
        for place, value in enumerate(_list(of, "logprobs"))
    ]
    return [_choice(None, body["finish_reason"], tokens) | {"message": body["message"]}]


def _choice(content: Any, reason: Any, tokens: Any = None, **means: Any) -> dict[str, Any]:
    logprobs = {"content": tokens, **means}
    return {"message": {"content": content}, "finish_reason": reason, "logprobs": logprobs}


def _read_token(one: Any) -> dict[str, Any]:
    """Return a token of Gemini, TGI, vLLM or llama.cpp, which once wrote it with alternatives."""
    names = ("token", "content", "text", "decoded_token")
    token, logprob = next(filter(None, (_get(one, n) for n in names)), None), _get(one, "logprob")
    if logprob is None:
        logprob = _get(one, "log_probability")
    probs = [_get(of, "prob") for of in _list(one, "probs") if _get(of, "tok_str") == token]
    prob = probs[0] if probs else _get(one, "prob")
    if logprob is None and type(prob) in (int, float) and prob > 0:
        logprob = math.log(prob)
    return {"token": token, "logprob": logprob}


def _find_request(body: Any) -> Any:
    """Return a request with messages or a prompt, of the Responses API or Gemini too."""
    given = _get(body, "input")
    if isinstance(given, str):
        return {**body, "prompt": given}
    turns = [
        {"role": _get(turn, "role") or "user", "content": _get(turn, "parts")}
        for turn in _list(body, "contents")
    ]
    messages = turns or _list(body, "input")
    return {**body, "messages": messages} if messages else body


def _get(value: Any, *names: str) -> Any:
    """Return a field of objects inside one another, also in camel case; None if it is missing."""
    for name in names:
        camel = name[0] + name.title().replace("_", "")[1:]
        value = value.get(name, value.get(camel)) if isinstance(value, dict) else None
    return value


def _list(value: Any, *names: str) -> list[Any]:
    """Return the list in a field; nothing if there is none."""
    values = _get(value, *names)
    return values if isinstance(values, list) else []


def without_reasoning(text: str) -> str:
    r"""Return an answer without the reasoning before it, which may begin in the prompt.

    >>> without_reasoning("<think>\nsurely two</think>\n\n2")
    '2'
    """
    begun = _BEGUN.match(text)
    for end in (*([f"</{begun[1]}>"] if begun and begun[1] else []), *_THOUGHT):
        if end in text:
            return _AROUND.sub("", text.partition(end)[2])
    return text


def find_start(answer: str, tokens: Sequence[str]) -> int | None:
    """Return the place of the first token of an answer, before which a model may have reasoned.

    None if the tokens do not show it.

    >>> find_start("42", ["42", "?", "</think>", "4", "2", "<|end|>"]), find_start("42", ["4"])
    (3, None)
    """
    marks = [place for place, token in enumerate(tokens, 1) if token.strip() in _THOUGHT]
    first, generated = max(marks, default=0), "".join(tokens)
    starts = list(accumulate(map(len, tokens), initial=0))
    for text in filter(str.strip, (answer, answer.strip())):
        at = generated.rfind(text, starts[first])
        while at >= 0:
            place = bisect(starts, at) - 1
            if not generated[starts[place] : at].strip():
                return place if generated[: starts[place]].strip() else 0
            at = generated.rfind(text, starts[first], at + len(text) - 1)
    return first or None


def compare_tokens(answer: str, tokens: Sequence[str]) -> tuple[int, int]:
    """Return how many characters of tokens precede an answer, and how many tokens end with it.

    Blanks do not count. One token after the answer, such as the end of the sequence, belongs to it;
    more are of a stop sequence. -1 characters if the tokens are too short for the answer.

    >>> compare_tokens("a cat", ["▁a", "▁cat", "</s>"]), compare_tokens("a cat", ["a"])
    ((0, 3), (-1, 1))
    >>> compare_tokens("42", ["so", " 42"]), compare_tokens("42", ["42", "!", "Q", ":"])
    ((2, 2), (0, 2))
    """
    texts = [_BLANKS.sub("", token) for token in tokens]
    generated, wanted = "".join(texts), _BLANKS.sub("", answer)
    if generated and len(generated) + texts.count("") < len(wanted):
        return -1, len(tokens)
    at = generated.find(wanted)
    starts = list(accumulate(map(len, texts), initial=0))
    if not wanted or at not in starts:
        return 0, len(tokens)
    after = [n for n, text in enumerate(texts) if text and starts[n] >= at + len(wanted)]
    return at, after[0] + 1 if len(after) > 1 else len(tokens)

"""Responses of servers of LLMs, and lines of batches of requests, in one form: choices.

Most servers write the choices of the chat and completion APIs of OpenAI. Other answers become
choices here:

    {"status": "completed", "output": [{"type": "message", "content": […]}]}     Responses API
    {"content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn"}      Anthropic
    {"candidates": [{"content": {"parts": […]}, "finishReason": "STOP"}]}        Gemini, Vertex AI
    {"message": {"content": "…"}, "done": true}, {"response": "…", "done": true} Ollama
    {"content": "…", "stop": true, "completion_probabilities": […]}              llama.cpp

Their batches have other names for `custom_id`, `response` and the `body` of a request.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

import msgspec

# Names of fields in the lines of batches, by those of OpenAI.
_FIELDS = {
    "custom_id": ("key", "recordId"),
    "response": ("result", "modelOutput"),
    "body": ("params", "modelInput"),
}
_THOUGHT = ("</think>", "[/THINK]")


class Token(msgspec.Struct, gc=False):
    """A token of an answer."""

    token: str | int | None = None
    logprob: float | None = None


class Part(msgspec.Struct, gc=False):
    """A part of a message."""

    text: str | None = None
    refusal: str | None = None
    thought: Any = None


class Message(msgspec.Struct, gc=False):
    """A message of a chat."""

    role: str | None = None
    content: str | list[Part] | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    thinking: Any = None
    tool_calls: Any = None

    @property
    def text(self) -> str | None:
        """The text, without reasoning; None if there is none, or only calls of tools."""
        text = self.content
        if isinstance(text, list):
            shown = [part.text for part in text if not part.thought]
            texts = [one for one in shown if one is not None]
            text = "".join(texts) if texts else None
        return None if self.tool_calls and not text else text

    @property
    def has_reasoning(self) -> bool:
        """Whether the server has taken reasoning out of the text."""
        return bool(self.reasoning or self.reasoning_content or self.thinking)

    @property
    def is_refusal(self) -> bool:
        """Whether the model refuses to answer."""
        parts = self.content if isinstance(self.content, list) else ()
        return bool(self.refusal or any(part.refusal for part in parts))


class Logprobs(msgspec.Struct, gc=False):
    """The tokens of an answer, objects in chats and two lists in completions; or their mean."""

    content: list[Token] | None = None
    tokens: list[str | int | None] | None = None
    token_logprobs: list[float | None] | None = None
    mean: float | None = None


class Choice(msgspec.Struct, gc=False):
    """One of the answers to a prompt."""

    index: int | None = None
    message: Message | None = None
    text: str | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    delta: Any = None

    @property
    def answer(self) -> Message:
        """The message, also that of a completion."""
        if self.message is None or self.text is not None:
            return Message(content=self.text)
        return self.message

    @property
    def token_logprobs(self) -> Sequence[float | None]:
        """The log-probabilities of the tokens; None is an unknown one."""
        logged = self.logprobs or Logprobs()
        if logged.content is None:
            return logged.token_logprobs or ()
        return [token.logprob for token in logged.content]

    @property
    def tokens(self) -> list[str]:
        """The tokens; nothing for those that the server does not write as texts."""
        logged = self.logprobs or Logprobs()
        tokens = [token.token for token in logged.content or ()] or logged.tokens or ()
        return [token if isinstance(token, str) else "" for token in tokens]


class Line(msgspec.Struct, gc=False):
    """A line, and the objects in it: a response, its body, and a request that is repeated."""

    custom_id: str | int | None = None
    response: Line | str | None = None
    request: Line | None = None
    body: Line | str | None = None
    messages: list[Message] | None = None
    prompt: str | list[Any] | None = None
    echo: Any = None
    choices: list[Choice] | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    usage: Any = None
    error: Any = None
    status_code: int | None = None

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
        while isinstance(error, dict) and (inner := error.get("message") or error.get("error")):
            error = inner
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
    """
    fields: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    for usual, names in _FIELDS.items():
        for name in filter(fields.__contains__, names):
            fields.setdefault(usual, fields.pop(name))
    for name in ("body", "request"):
        fields[name] = _find_request(fields.get(name))
    response = fields.get("response")
    bodies: tuple[Any, ...] = (fields, response, _get(response, "body"), _get(response, "message"))
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


def find_choices(body: Any) -> Any:
    """Return the answers in a response as objects of choices; None if it is no response.

    >>> find_choices({"content": " a cat", "stop": True, "stop_type": "eos"})[0]["message"]
    {'content': ' a cat'}
    """
    if not isinstance(body, dict):
        return None
    parts = [_get(one, "content", "parts") for one in _list(body, "candidates")]
    if any(parts) or _get(body, "usage_metadata") is not None:
        return _parse_candidates(body)
    return next((of(body) for names, of in _SHAPES if body.keys() >= names), None)


def _parse_output(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of the Responses API, without its items of reasoning and tools."""
    messages = [item for item in _list(body, "output") if _get(item, "type") == "message"]
    content = [part for message in messages for part in _list(message, "content")]
    tokens = [token for part in content for token in _list(part, "logprobs")]
    reason = _get(body, "incomplete_details", "reason") or body.get("status")
    return [_choice(content, reason, tokens)]


def _parse_content(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of Anthropic."""
    return [_choice(body["content"], body["stop_reason"])]


def _parse_candidates(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers of Gemini; its packages write names in snake case."""
    choices = []
    for one in _list(body, "candidates"):
        tokens = map(_token, _list(one, "logprobs_result", "chosen_candidates"))
        content, reason = _get(one, "content", "parts"), _get(one, "finish_reason")
        choices.append(_choice(content, reason, list(tokens), _get(one, "avg_logprobs")))
    return choices


def _parse_message(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of Ollama, to a chat or to a prompt."""
    message = body.get("message") or {**body, "content": body.get("response")}
    choice = _choice(None, body.get("done_reason"), body.get("logprobs"))
    return [{**choice, "message": message} if body["done"] else {"delta": body}]


def _parse_completion(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer of llama.cpp to a prompt."""
    tokens = list(map(_token, _list(body, "completion_probabilities")))
    reason = "limit" if body.get("stopped_limit") else body.get("stop_type")
    return [_choice(body["content"], reason, tokens) if body["stop"] else {"delta": body}]


#: What returns the answers of a server, by the fields that show it.
_SHAPES: tuple[tuple[set[str], Callable[[dict[str, Any]], Any]], ...] = (
    ({"choices"}, itemgetter("choices")),
    ({"output", "object"}, _parse_output),
    ({"output", "status"}, _parse_output),
    ({"content", "stop_reason"}, _parse_content),
    ({"message", "done"}, _parse_message),
    ({"response", "done"}, _parse_message),
    ({"content", "stop"}, _parse_completion),
)


def _choice(content: Any, reason: Any, tokens: Any = None, mean: Any = None) -> dict[str, Any]:
    logprobs = {"content": tokens, "mean": mean}
    return {"message": {"content": content}, "finish_reason": reason, "logprobs": logprobs}


def _token(one: Any) -> dict[str, Any]:
    """Return a token of Gemini or llama.cpp, whose older versions write it with alternatives."""
    token, logprob = _get(one, "token") or _get(one, "content"), _get(one, "logprob")
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
    for end in _THOUGHT:
        if end in text:
            return text.partition(end)[2].lstrip()
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

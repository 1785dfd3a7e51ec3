"""The web application of `bpa judge`: one question at a time, and the state of the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from bpa_ppl.extras.judging.questions import Outlook
from bpa_ppl.extras.judging.session import Session
from bpa_ppl.extras.judging.web import Refused, read_body, static_routes, web_application
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.text.differences import Parts, mark_differences

#: Bytes of the body of a request; corrections are the only long part.
_LIMIT = 2**18
#: The address is a secret: it is neither stored nor sent to other sites.
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
#: Extras of sentences: the text before the source, and the document of the source.
_CONTEXT, _DOCUMENT = "context", "doc"
#: How many earlier sentences of the document are shown, and how many weights.
_MOST_PREVIOUS, _MOST_WEIGHTS = 2, 20
#: Ten more answers are not worth the time if they raise the expected share of the gain by less than
#: the first number, and the lower bound of the share is at least the second.
_WORTHWHILE, _CERTAIN = 0.005, 0.7
#: The least number of answers that test the prior, and of answers to random questions that test the
#: predictions.
_TEST, _ENOUGH = 10, 20
#: If a larger share of the characters differs, marks would not help.
_UNRELATED = 0.5
#: Texts with more characters are not compared, which could take seconds.
_LONGEST_TEXT = 5000


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: the question that it is about, and the answer to it."""

    number: int
    answer: str = ""
    correction: str | None = None


def judging_application(
    session: Session, token: str, *, hosts: Sequence[str] = (), state_shown: bool | None = None
) -> Starlette:
    """Return the application of a session, for uvicorn or another ASGI server.

    Args:
        session: whose questions are answered. Requests wait for each other.
        token: the first part of the path of every address, of letters, digits, `-` and `_`.
        hosts: names of the server, with 127.0.0.1 and localhost; requests to others are refused.
        state_shown: whether the rater sees the weights and what the answers have changed, which may
            influence the next answers. None shows them to a rater without a name.
    """
    shown = session.rater is None if state_shown is None else state_shown
    lock = Lock()

    def reply(content: dict[str, Any], status: int = 200) -> Response:
        body = msgspec.json.encode(content)
        return Response(body, status, headers=_HEADERS, media_type="application/json")

    def question(request: Request) -> Response:
        with lock:
            return reply(show_question(session))

    def state(request: Request) -> Response:
        with lock:
            return reply(show_panel(session) if shown else {"hidden": True})

    def change(number: int, work: Callable[[], object]) -> Response:
        """Change the session if its question is still the one of a request."""
        with lock:
            if number == session.next().number:
                work()
                return reply(show_question(session))
            error = {"error": "the question was answered in another window", "code": "stale"}
            return reply({**error, "question": show_question(session)}, 409)

    async def answer(request: Request) -> Response:
        body = await _read(request)
        work = partial(session.answer, body.answer, correction=body.correction)
        return await run_in_threadpool(change, body.number, work)

    async def undo(request: Request) -> Response:
        body = await _read(request)
        return await run_in_threadpool(change, body.number, session.undo)

    def refuse(request: Request) -> Response:
        problem = "this address has no valid token: open the one that the server printed"
        raise Refused(403, problem, "bad-token")

    api = [
        Route("/question", question),
        Route("/state", state),
        Route("/answer", answer, methods=["POST"]),
        Route("/undo", undo, methods=["POST"]),
    ]
    pages = static_routes("bpa_ppl.extras.judging", _HEADERS)
    other = Route("/{path:path}", refuse, methods=["GET", "POST"])
    return web_application([Mount(f"/{token}", routes=[*api, *pages]), other], hosts)


async def _read(request: Request) -> _Body:
    """Return the body of a request.

    Raises:
        Refused: if it is too large, or not JSON as expected.
    """
    body = await read_body(request, _LIMIT, "write a shorter correction")
    try:
        return msgspec.json.decode(body, type=_Body)
    # Python reads no integers of thousands of digits.
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not as expected: {error}", "bad-json") from error


def show_question(session: Session) -> dict[str, Any]:
    """Return the question of a session as the page shows it.

    Returns:
        `number`, which the answer must repeat; `answers`, the number of answers so far, and `last`,
        the last answer or None; `context`, `source`; and `candidates`, the parts of each text, with
        whether each part differs from the other text.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a red cat", "a cat"]], [[[1.0], [0.0]]], ["lm"])
    >>> view = show_question(Session(lists))
    >>> view["number"], view["answers"], sorted(view["candidates"])
    (2, 0, [[('a ', False), ('red', True), (' cat', False)], [('a cat', False)]])
    """
    question = session.next()
    judgements = session.judgements
    return {
        "number": question.number,
        "answers": len(judgements),
        "last": judgements[-1].answer if judgements else None,
        "context": find_context(session.lists, question.sentence),
        "source": question.source,
        "candidates": split_candidates(question.texts),
    }


def find_context(lists: NBest, sentence: int) -> list[str]:
    """Return the texts before a source: the extra `context`, or earlier sources of its `doc`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"]] * 3, [[[1.0]]] * 3, ["lm"], sources=["x", "y", "z"])
    >>> find_context(lists.with_sentence_extras(doc=[1, 2, 2]), 2)
    ['y']
    """
    extras = lists.sentence_extras
    if _CONTEXT in extras:
        value = extras[_CONTEXT][sentence]
        values = value if isinstance(value, list | tuple) else [value]
        return [str(text) for text in values if text is not None]
    documents, start = extras.get(_DOCUMENT), sentence
    if documents is None or lists.sources is None or documents[sentence] is None:
        return []
    while start > max(0, sentence - _MOST_PREVIOUS) and documents[start - 1] == documents[sentence]:
        start -= 1
    return list(lists.sources[start:sentence])


def split_candidates(texts: Sequence[str]) -> Sequence[Parts]:
    """Split two texts by `mark_differences`, unless they are very long or have little in common.

    >>> split_candidates(["a red cat", "a cat"])[1]
    [('a cat', False)]
    >>> split_candidates(["a cat sat", "one dog"])
    [[('a cat sat', False)], [('one dog', False)]]
    """
    if max(map(len, texts)) <= _LONGEST_TEXT:
        sides = mark_differences(*texts)
        differing = sum(len(text) for parts in sides for text, differs in parts if differs)
        if differing <= _UNRELATED * sum(map(len, texts)):
            return sides
    return [[(text, False)] for text in texts]


def show_panel(session: Session) -> dict[str, Any]:
    """Return the state of a session as the page shows it.

    Returns:
        the fields of `Outlook`; `advice`, as `advise` returns it; and `weights`, the weights with
        the largest means. Each of these has its name and, in standard deviations of the prior, the
        posterior mean, half the width of the 95 % interval, and the prior mean. `more_weights` is
        the number of the other weights.

    >>> from bpa_ppl import from_lists
    >>> texts, table = [["a cat", "a dog"]] * 2, [[[1.0, 2.0], [0.0, 0.0]]] * 2
    >>> lists = from_lists(texts, table, ["a", "b"])
    >>> state = show_panel(Session(lists, {"b": 0.0}))
    >>> state["answers"], state["lists"], state["advice"][0], state["weights"]
    (0, 2, 'continue', [('a', 0.0, 1.96, 0.0), ('b', 0.0, 1.96, 0.0)])
    """
    state = session.outlook()
    deviation = np.sqrt(np.diag(session.start.covariance)[:-1])
    unit = np.where(deviation > 0, deviation, 1.0)
    mean = session.weights.mean[:-1] / unit
    half = 1.96 * np.sqrt(np.diag(session.weights.covariance)[:-1]) / unit
    start = np.asarray(session.prior.mean) / unit
    largest = np.argsort(-np.abs(mean), kind="stable")[:_MOST_WEIGHTS]
    weights = [
        (session.features[k], *(round(float(x[k]), 4) for x in (mean, half, start)))
        for k in largest
    ]
    return {
        **state._asdict(),
        "advice": advise(state),
        "weights": weights,
        "more_weights": len(mean) - len(weights),
    }


def advise(state: Outlook) -> tuple[str, str]:
    """Return whether further answers are worth the time: a code, and a sentence.

    The code is `no-help` if there are answers to 20 random questions or more, and the weights do
    not predict them better than the prior or a guess. It is `stop` if there are at least ten
    answers, ten more are expected to raise the share of the gain by less than 0.005, the lower
    bound of the share is at least 0.7, and the answers to random questions are predicted better
    than by guessing, by a standard deviation of guesses. Otherwise it is `continue`.

    >>> state = Outlook(30, 100, 40, 0.6, 0.9, 0.8, 0.002, 12.0, 8.0, 15, 2, 2)
    >>> advise(state)[0], advise(state._replace(further=0.02))[0]
    ('stop', 'continue')
    >>> advise(state._replace(least=0.3))[1]
    'Worth going on: the share of the achievable gain may be only 30 %.'
    >>> advise(state._replace(random=20, predicted=9.5))[1]
    'Of 20 answers to random questions 9.5 were predicted, no better than by chance: ...'
    """
    by_chance = state.random / 2
    if state.random >= _ENOUGH and state.predicted <= max(by_chance, state.predicted_before):
        starting = f"by the starting weights ({state.predicted_before:g})"
        rival = "by chance" if state.predicted <= by_chance else starting
        return "no-help", (
            f"Of {state.random} answers to random questions {state.predicted:g} were predicted, no "
            f"better than {rival}: further clicks do not help here. Better features would."
        )
    share = "the share of the achievable gain"
    little = f"raise {share} by less than {100 * _WORTHWHILE:g} points."
    reason = ""
    if state.further >= _WORTHWHILE:
        gain = f"{100 * state.further:.1f} points"
        reason = f"ten more answers are expected to raise {share} by {gain}."
    elif state.answers < _TEST:
        reason = f"a few answers test the start: if it is right, ten more are expected to {little}"
    elif state.least < _CERTAIN:
        least = f"{100 * state.least:.0f} %"
        reason = f"{share} may be only {least}."
    elif state.predicted - by_chance < np.sqrt(state.random) / 2:
        predicted = f"{state.predicted:g} were predicted, which may be chance."
        reason = f"of {state.random} answers to random questions {predicted}"
    if reason:
        return "continue", f"Worth going on: {reason}"
    return "stop", f"You can stop: ten more answers are expected to {little}"

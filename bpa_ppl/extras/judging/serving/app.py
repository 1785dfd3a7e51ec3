"""The web application: lists in JSON in, choices and probabilities out."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from time import perf_counter
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bpa_ppl._runtime.arrays import is_number
from bpa_ppl._runtime.messages import capture_notes, warn_user
from bpa_ppl.decoding.reranker import Reranker
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.diagnostics.pages.provenance import signature
from bpa_ppl.errors import BpaError, DataError, list_names, locate, quote
from bpa_ppl.extras.judging.serving.limits import Limits
from bpa_ppl.extras.judging.serving.web import (
    JSON,
    Refused,
    error_response,
    read_body,
    run,
    static_routes,
    web_application,
)
from bpa_ppl.features.recipe import describe_unused
from bpa_ppl.formats.block import CANDIDATES, ID, SOURCE, TEXT, TOTAL
from bpa_ppl.formats.build import build
from bpa_ppl.formats.in_memory import from_lists
from bpa_ppl.formats.records import read_rows
from bpa_ppl.formats.roles import OF_FEATURES, Roles
from bpa_ppl.formats.schema import Schema
from bpa_ppl.posterior.weight_draws import DOMAIN

LOGGER = logging.getLogger("bpa_ppl.serving")
_TYPES = (JSON, "application/x-ndjson", "application/jsonl", "application/x-jsonlines")
_BODIES = 2**27  # bytes of all bodies that are in memory at once
_THREADS = 2  # requests in work at once


class Service:
    """The state of the service: its reranker, which `reload` replaces.

    Args:
        load: returns the reranker.
        limits: what a request may take.
    """

    def __init__(self, load: Callable[[], Reranker], limits: Limits) -> None:
        self.load, self.limits, self.reranker = load, limits, load()
        self._threads, self._reserved = asyncio.Semaphore(_THREADS), 0
        self._reloading, self._changed = False, False
        self._drift: tuple[str, ...] = ()

    async def reload(self) -> None:
        """Load the posterior again; keep the one in use if that fails, or requests would change.

        During a reload, further calls return at once, and the file is loaded once more afterwards:
        so the newest file is served, and one thread at most is busy with reading.
        """
        self._changed = True
        if self._reloading:
            return
        self._reloading = True
        try:
            while self._changed:
                self._changed = False
                await self._load()
        finally:
            self._reloading = False

    async def _load(self) -> None:
        try:
            reranker = await anyio.to_thread.run_sync(self.load)
            _require_same_requests(self.reranker, reranker)
            self.reranker = reranker
            log(event="reload", status="done")
        except BpaError as error:
            log(event="reload", status="failed", error=error.message)
        except MemoryError:
            log(event="reload", status="failed", error="out of memory")

    async def rerank(self, request: Request) -> tuple[bytes, dict[str, Any]]:
        """Return the answer to a request as JSON, and what is logged of it."""
        limit = self.limits.max_body
        size = min(int(request.headers.get("content-length", limit)), limit)
        if self._reserved + size > max(_BODIES, limit):
            raise Refused(503, "too many bodies are in memory: try again later", "busy")
        self._reserved += size
        try:
            remedy = "send the lists in several requests"
            kind, body = await read_body(request, limit, remedy, _TYPES)
            with anyio.fail_after(self.limits.timeout):
                await self._threads.acquire()
                # The thread cannot be stopped: it is free again when its work has ended.
                work = partial(self._answer, kind, body)
                task = asyncio.create_task(anyio.to_thread.run_sync(work, abandon_on_cancel=True))
                task.add_done_callback(lambda task: self._threads.release())
                return await asyncio.shield(task)
        except TimeoutError as error:
            message = (
                f"not answered within {self.limits.timeout:g} seconds: send fewer candidates, or "
                "try again later"
            )
            raise Refused(503, message, "timeout") from error
        finally:
            self._reserved -= size

    def _answer(self, kind: str, body: bytes) -> tuple[bytes, dict[str, Any]]:
        """Return the answer to the body of a request, and what is logged of it."""
        records, single = _records(kind, body)
        count = sum(len(record["candidates"]) for record in records)
        if count > self.limits.max_candidates:
            raise Refused(
                413,
                f"{count:,} candidates: a request may have {self.limits.max_candidates:,}; send "
                "the lists in several requests",
                "too-many-candidates",
            )
        _require_known_fields(self.reranker, records)
        result = answer_records(self.reranker, records)
        if (drift := self.reranker.drift) != self._drift:
            self._drift = drift
            log(event="drift", changes=drift)
        content = msgspec.json.encode(result[0] if single else result)
        return content, {"lists": len(records), "candidates": count}

    def description(self) -> dict[str, Any]:
        """Return what the model expects, as plain data."""
        reranker, record = self.reranker, self.reranker.draws.record
        return {
            "features": list(reranker.required_features),
            "needs": list(reranker.needs),
            "optional_features": reranker.feature_names[len(reranker.required_features) :],
            "computed_features": [source.label for source in record.recipe.sources],
            "metric": record.observed.gain,
            "sampler": record.sampler.name,
            "rule": RULES.name_of(reranker.rule),
            "draws": len(reranker.draws.flat),
            "drift": list(reranker.drift),
            "check": "skipped" if reranker.unchecked else "passed",
            "version": version("bpa_ppl"),
            "signature": signature(reranker.draws),
            "limits": {
                "body": self.limits.max_body,
                "candidates": self.limits.max_candidates,
                "seconds": self.limits.timeout,
            },
        }


def _records(kind: str, body: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the lists of a request, and whether it has a single one.

    Raises:
        Refused: if the body is not JSON, or has no lists with candidates.
    """
    try:
        if kind != JSON:
            content = msgspec.json.Decoder().decode_lines(body)
        else:
            content = msgspec.json.decode(body)
    # Python reads no integers of thousands of digits.
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not valid JSON: {error}", "bad-json") from error
    records = content if isinstance(content, list) else [content]
    if not records:
        raise Refused(422, "there is no list to rerank", "no-data")
    for number, record in enumerate(records, 1):
        if not (isinstance(record, dict) and isinstance(record.get("candidates"), list)):
            raise Refused(
                422,
                f"list {number} is not an object with candidates: send "
                '{"candidates": [{"text": "a cat", "lm": -1.5}]}, or an array of such objects',
                "bad-list",
            )
        if not record["candidates"]:
            raise Refused(422, f"list {number} has no candidates", "no-data")
    return records, not isinstance(content, list)


def _require_known_fields(reranker: Reranker, records: Sequence[Mapping[str, Any]]) -> None:
    """Refuse fields of lists that have no meaning here, as a misspelt one.

    Raises:
        Refused: naming the first one.
    """
    names = [CANDIDATES, ID, SOURCE, *_domain_field(reranker)]
    for number, record in enumerate(records, 1):
        for name in record:
            if name not in names:
                message = (
                    f"list {number} has the field {quote(name)}, which is unknown here: the "
                    f"fields of a list are {list_names(names)}"
                )
                raise Refused(400, message, "unknown-field")


def _require_same_requests(old: Reranker, new: Reranker) -> None:
    """Raise a DataError if requests that one reranker answers do not fit another one."""
    required, optional = {*old.required_features, *old.needs}, {*old.feature_names}
    differing = required ^ {*new.required_features, *new.needs} | optional ^ {*new.feature_names}
    differing |= {*_domain_field(old)} ^ {*_domain_field(new)}
    if differing:
        raise DataError(
            "requests for the new posterior have other fields than those for the one in use: "
            f"{list_names(sorted(differing))}: start another service for it",
            code="mismatch",
        )


def _list_features(reranker: Reranker) -> set[str]:
    """Return the names of the columns that have weights."""
    return {*reranker.draws.features, *reranker.draws.fixed}


def _domain_field(reranker: Reranker) -> list[str]:
    """Return the name of the field of the domain, if the posterior has weights for domains."""
    return [DOMAIN] if reranker.draws.domains else []


def answer_records(reranker: Reranker, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the choice and the probabilities for each list; the first answer has all notes.

    Args:
        reranker: chooses.
        records: lists as in JSON lines: `candidates` with a `text` and numbers; `id`, `source` and
            `domain` if they have them.

    Raises:
        BpaError: if a list does not fit the posterior.

    >>> import numpy as np
    >>> from bpa_ppl import Draws
    >>> from bpa_ppl.posterior.weight_draws import name_weights
    >>> reranker = Reranker(name_weights(np.ones((1, 4, 1)), ("lm",)), unchecked=True)
    >>> candidates = [{"text": "a", "lm": 0.0}, {"text": "b", "lm": 40.0}]
    >>> answer_records(reranker, [{"id": "x", "candidates": candidates}])
    [{'id': 'x', 'choice': 1, 'text': 'b', 'probability': 1.0, 'probabilities': [...], ...}]
    """
    # Equal or missing ids are allowed here: every record is a list.
    numbered = [{**record, "id": number} for number, record in enumerate(records, 1)]
    features = _list_features(reranker)
    schema = Schema(roles=Roles(tuple(features), optional=True))
    declared = [OF_FEATURES + name for name in features]
    used = {*features, *declared, *reranker.needs, *_domain_field(reranker)}
    numbered, unused = select_fields(numbered, used)
    with capture_notes() as notes:
        try:
            rows = read_rows([(numbered, range(1, len(numbered) + 1))], schema)
            lists = next(build(rows, schema))
            _note_unused(reranker, unused)
            choices = reranker(lists)
        except DataError as error:
            raise _about_a_list(error, unused) from error
    messages = list(dict.fromkeys(note.message for note in notes))
    return [
        {
            "id": record.get("id"),
            "choice": choice,
            "text": choices.texts[s],
            "probability": float(choices[s][choice]),
            "probabilities": choices[s].tolist(),
            **({} if choices.sure is None else {"sure": bool(choices.sure[s])}),
            "notes": [] if s else messages,
        }
        for s, (record, choice) in enumerate(zip(records, choices.choice.tolist(), strict=True))
    ]


def select_fields(
    records: list[dict[str, Any]], names: Iterable[str]
) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """Return lists with the columns that are used alone.

    In records that have few fields in common, all columns together are much larger than the
    records.

    Args:
        records: lists.
        names: of the columns of candidates; those of objects inside have names with dots.

    Returns:
        The lists, and the other columns of candidates, by name, with whether each is a number.

    >>> candidates = [{"text": "a", "features": {"lm": -1.5, "tm": 2}}]
    >>> select_fields([{"candidates": candidates}], ["features.lm"])
    ([{'candidates': [{'text': 'a', 'features': {'lm': -1.5}}]}], {'features.tm': True})
    """
    used = {ID, SOURCE, TEXT, TOTAL, CANDIDATES}
    for name in names:
        parts = name.split(".")
        used.update(".".join(parts[: k + 1]) for k in range(len(parts)))
    unused: dict[str, bool] = {}

    def select(fields: Any, prefix: str = "") -> Any:
        if not isinstance(fields, dict):
            return fields
        kept = {}
        for name, value in fields.items():
            column = prefix + name
            is_object = isinstance(value, dict) and len(value) > 0
            if column not in used:
                inside = {f"{column}.{n}": v for n, v in value.items()} if is_object else None
                for of, one in (inside or {column: value}).items():
                    if value is not None:
                        unused.setdefault(of, is_number(one))
            elif not is_object:
                kept[name] = value
            elif inner := select(value, f"{column}."):
                kept[name] = inner
        return kept

    selected = []
    for record in records:
        record = {name: value for name, value in record.items() if name in used}
        if isinstance(candidates := record.get(CANDIDATES), list):
            record[CANDIDATES] = [select(candidate) for candidate in candidates]
        selected.append(record)
    return selected, unused


def _note_unused(reranker: Reranker, unused: Mapping[str, bool]) -> None:
    """Warn of fields of candidates that are neither features of the posterior nor recorded as none.

    Args:
        reranker: that did not read them.
        unused: whether each is a number.
    """
    used = reranker.recipe.without_gain(from_lists([], [], list(unused))).extras
    unknown = [name for name in unused if name not in used]
    if numbers := [name for name in unknown if unused[name]]:
        warn_user(describe_unused(numbers))
    if others := [name for name in unknown if not unused[name]]:
        warn_user(f"{list_names(others)} not used: the posterior needs no such field")


def _about_a_list(error: DataError, unused: Iterable[str]) -> DataError:
    """Return an error for a client: records are called lists and counted from 1."""
    message = error.message.removeprefix(locate(error.path, error.line))
    place = None if error.line is None else f"list {error.line}"
    if error.code == "missing-feature" and (names := list_names(unused)):
        message += f"; not used: {names}"
    return DataError(message, place, parameter=error.parameter, code=error.code)


def application(
    load: Callable[[], Reranker],
    limits: Limits | None = None,
    *,
    hosts: Sequence[str] = (),
    started: Callable[[Service], None] | None = None,
) -> Starlette:
    """Return the application of the service, for uvicorn or another ASGI server.

    Args:
        load: returns the reranker, now and at each reload.
        limits: what a request may take.
        hosts: names of the server, with 127.0.0.1 and localhost, or `*` for any. Others are
            refused.
        started: called with the service when the event loop runs.

    Raises:
        BpaError: if the posterior cannot be used.
    """
    service = Service(load, limits or Limits())

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if started is not None:
            started(service)
        yield

    async def rerank(request: Request) -> Response:
        start = perf_counter()
        fields: dict[str, Any] = {}
        try:
            content, fields = await service.rerank(request)
            response = Response(content, media_type=JSON)
        except (HTTPException, BpaError, ClientDisconnect, MemoryError) as error:
            response = error_response(error)
        milliseconds = round(1000 * (perf_counter() - start), 2)
        log(event="rerank", status=response.status_code, ms=milliseconds, **fields)
        return response

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def model(request: Request) -> Response:
        return JSONResponse(service.description())

    async def openapi(request: Request) -> Response:
        return JSONResponse(_openapi_description(service))

    routes = [
        Route("/rerank", rerank, methods=["POST"]),
        Route("/health", health),
        Route("/model", model),
        Route("/openapi.json", openapi),
        *static_routes("bpa_ppl.extras.judging.serving"),
    ]
    return web_application(routes, hosts, lifespan=lifespan)


def log(**fields: Any) -> None:
    """Log an event as one line of JSON, without any text of a request."""
    LOGGER.info(json.dumps(fields))


def _openapi_description(service: Service) -> dict[str, Any]:
    """Return the OpenAPI description of the service, with the columns that its model needs."""
    reranker = service.reranker
    template = files("bpa_ppl.extras.judging.serving").joinpath("openapi.json").read_text("utf-8")
    description: dict[str, Any] = json.loads(template)
    description["info"]["version"] = version("bpa_ppl")
    schemas = description["components"]["schemas"]
    columns: dict[str, Any] = {name: {"type": "number"} for name in reranker.required_features}
    columns |= {name: {} for name in reranker.needs if name != "sources"}
    schemas["candidate"]["required"] += columns
    schemas["candidate"]["properties"] |= columns
    schemas["list"]["required"] += ["source"] * ("sources" in reranker.needs)
    schemas["list"]["properties"] |= {name: {} for name in _domain_field(reranker)}
    return description


def serve(
    load: Callable[[], Reranker],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Sequence[str] = (),
    limits: Limits | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a posterior over HTTP until the process is stopped; SIGHUP loads it again.

    Args:
        load: returns the reranker, such as `partial(Reranker, "posterior.nc")`.
        host: the address to listen on.
        port: 0 chooses a free one.
        allowed_hosts: further names that requests may use; `*` stands for any.
        limits: what a request may take.
        ready: called with the URL when connections are accepted.

    Raises:
        NotConverged: if the posterior fails its check.
        DataError: if the posterior cannot be read.
        UsageError: if the address cannot be used.
    """
    with _early_hangups() as early:
        started = partial(_reload_on_hangup, early)
        app = application(load, limits, hosts=[host, *allowed_hosts], started=started)
        if not LOGGER.handlers:
            LOGGER.addHandler(logging.StreamHandler())
            LOGGER.propagate = False
        LOGGER.setLevel(logging.INFO)
        run(app, host, port, ready)


@contextmanager
def _early_hangups() -> Iterator[list[int]]:
    """Collect the SIGHUP that come before the event loop takes them."""
    early: list[int] = []
    if not hasattr(signal, "SIGHUP"):
        yield early
        return
    handler = signal.signal(signal.SIGHUP, lambda number, frame: early.append(number))
    try:
        yield early
    finally:
        signal.signal(signal.SIGHUP, handler)


def _reload_on_hangup(early: list[int], service: Service) -> None:
    """Reload the posterior at each SIGHUP, and now if there has been one."""
    if hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(service.reload()))
        if early:
            loop.call_soon(lambda: loop.create_task(service.reload()))

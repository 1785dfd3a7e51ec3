"""Fuzz test of the HTTP service: malformed requests, slow clients, dropped connections.

    python tests/soak/service.py [--requests 10000] [--slow 16] [--dropped 64] [--seed 1]

Starts `bpa serve` with a small posterior. Afterwards the service must be healthy, answer a good
request as at the start, and have logged no traceback; no answer has the status 500, and its memory
has grown by less than 64 MiB. Prints a table of statuses and exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "serving"))

from attempts import changed, odd_json
from test_server import Server, running

from bpa_ppl import Draws, write_posterior

GOOD = {
    "id": "news-1",
    "source": "un chat",
    "candidates": [{"text": "a cat", "lm": -1.5, "tm": 2}, {"text": "the cat", "lm": 0, "tm": 1}],
}
LIMIT = 100_000  # bytes of a body
TIMEOUT = 120.0  # seconds until an answer must be there, on a busy machine
PATIENCE = 1.0  # seconds for an answer, before the client ends its side
GROWTH = 64  # MiB
METHODS = ["POST", "POST", "POST", "GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "X", "post"]
PATHS = [
    *("/rerank", "/rerank", "/rerank", "/health", "/model", "/openapi.json", "/", "/page.js"),
    *("/rerank/", "//rerank", "/../../etc/passwd", "/%00", "/%ff%fe", "/rerank?x=" + "a" * 999),
    *("/page.js/..", "*", "http://elsewhere/rerank", "/" + "a" * 9000, "/static/index.html"),
]
HEADERS = [
    *("Content-Type: application/json", "Content-Type: application/x-ndjson", "Content-Type: \xff"),
    *("Content-Type: multipart/form-data", "Transfer-Encoding: chunked", "Expect: 100-continue"),
    *(
        "Content-Encoding: gzip",
        "Connection: upgrade",
        "Upgrade: websocket",
        "Cookie: " + "a" * 9000,
    ),
    *(
        "Content-Length: -1",
        "Content-Length: x",
        "Content-Length: 99999999999999999999",
        "Bad",
        ": x",
    ),
    *("Host: a b", "Range: bytes=0-", "Authorization: Basic x", "Accept: image/png", "X: a\tb"),
]


def body_of(rng: random.Random) -> bytes:
    """Return the body of a request, which is rarely a good one."""
    kind = rng.randrange(10)
    if kind == 0:
        return rng.randbytes(rng.randrange(300))
    if kind == 1:
        return rng.choice([b"[" * 9000, b'{"candidates":' * 2000, b"9" * 5000, b'"\\ud800"', b""])
    if kind == 2:
        return b" " * rng.choice([LIMIT - 10, LIMIT + 10, 3 * LIMIT]) + b"{}"
    record: Any = rng.choice([GOOD, [GOOD, GOOD]])
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        record = changed(record, rng, odd_json)
    text = json.dumps(record, ensure_ascii=rng.random() < 0.8)
    content = text.encode("utf-8", "surrogatepass")
    if kind == 3:
        content = b"\n".join([content] * 3)
    if kind == 4 and content:
        place = rng.randrange(len(content))
        content = content[:place] + rng.choice([b"\0", b"\xff", b'"', b",", b"}"]) + content[place:]
    return content


def request_of(rng: random.Random) -> bytes:
    """Return the bytes of a request, malformed in its line, its headers or its body."""
    body = body_of(rng)
    method, path, version = "POST", "/rerank", "HTTP/1.1"
    headers = ["Host: localhost", "Connection: close"]
    headers += ["Content-Type: application/json"] * (rng.random() < 0.9)
    kind = rng.randrange(4)
    if kind == 0:
        method, path = rng.choice(METHODS), rng.choice(PATHS)
    if kind == 1:
        headers += rng.sample(HEADERS, rng.choice((1, 1, 2)))
    if rng.random() < 0.05:
        version = rng.choice(["HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "X"])
    if not any(header.startswith(("Content-Length", "Transfer")) for header in headers):
        headers.append(f"Content-Length: {len(body)}")
    if rng.random() < 0.03:
        return rng.randbytes(200) + b"\r\n\r\n"
    head = "\r\n".join([f"{method} {path} {version}", *headers, "", ""])
    return head.encode("latin-1") + body


def send(url: str, content: bytes) -> str:
    """Send some bytes, and return the status of the answer, or how the connection ended."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), TIMEOUT) as connection:
        try:
            connection.sendall(content)
            connection.settimeout(PATIENCE)
            try:
                answer = connection.recv(4096)
            except TimeoutError:  # it waits for more, as the request says: there is no more
                connection.settimeout(TIMEOUT)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(4096)
        except TimeoutError:
            return "no answer"
        except OSError:
            return "closed"
    return answer.split(b" ")[1].decode() if answer.startswith(b"HTTP/1.1 ") else "closed"


def good_bytes() -> bytes:
    """Return a good request."""
    body = json.dumps(GOOD).encode()
    head = "POST /rerank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def slow_client(url: str, seconds: float) -> None:
    """Send a good request, a byte a second, until the service closes the connection."""
    place = urlsplit(url)
    with (
        socket.create_connection((place.hostname, place.port), TIMEOUT) as connection,
        suppress(ConnectionError),
    ):
        end = time.monotonic() + seconds
        for value in good_bytes():
            if time.monotonic() > end:
                return
            connection.sendall(bytes([value]))
            time.sleep(1)


def dropping_client(url: str, rng: random.Random) -> None:
    """Drop a connection at a random moment of a good request, or of its answer."""
    place = urlsplit(url)
    content = good_bytes()
    with socket.create_connection((place.hostname, place.port), TIMEOUT) as connection:
        if rng.random() < 0.5:  # with a reset instead of an orderly end
            linger = (1).to_bytes(4, sys.byteorder) + (0).to_bytes(4, sys.byteorder)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.sendall(content[: rng.randrange(len(content) + 1)])
        time.sleep(rng.random() / 20)


def answers(url: str) -> Any:
    """Return the answer to a good request."""
    response = httpx.post(f"{url}/rerank", json=GOOD, timeout=TIMEOUT)
    return response.status_code, response.json()


def failures(server: Server, options: argparse.Namespace) -> Iterator[str]:
    """Send all requests, and yield what went wrong."""
    rng, url = random.Random(options.seed), server.url
    memory = psutil.Process(server.process.pid).memory_info
    for _ in range(200):  # whatever is loaded on first use
        send(url, request_of(rng))
    expected, before = answers(url), memory().rss
    slow = [
        threading.Thread(target=slow_client, args=(url, options.seconds))
        for _ in range(options.slow)
    ]
    for thread in slow:
        thread.start()
    statuses: Counter[str] = Counter()
    for number in range(options.requests):
        content = request_of(rng)
        status = send(url, content)
        statuses[status] += 1
        if (status.startswith("5") and status != "503") or status == "no answer":
            yield f"request {number}: {status} for {content[:300]!r}"
    print(f"{options.requests} requests: ", dict(sorted(statuses.items())), flush=True)
    dropping = [
        threading.Thread(target=dropping_client, args=(url, random.Random(f"{options.seed} {n}")))
        for n in range(options.dropped)
    ]
    for thread in dropping:
        thread.start()
    for thread in (*dropping, *slow):
        thread.join()
    if httpx.get(f"{url}/health", timeout=TIMEOUT).json() != {"status": "ok"}:
        yield "the service is not healthy"
    if answers(url) != expected:
        yield f"a good request is answered with {answers(url)}, at the start with {expected}"
    grown = (memory().rss - before) / 2**20
    print(f"memory: {before / 2**20:.0f} MiB, grown by {grown:.1f} MiB", flush=True)
    if grown > GROWTH:
        yield f"memory has grown by {grown:.0f} MiB"
    log = [server.lines.get() for _ in range(server.lines.qsize())]
    for line in log:
        if "Traceback" in line or '"status": 500' in line:
            yield f"in the log: {line}"
            break


def main() -> int:
    """Print the table and the failures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--slow", type=int, default=16, help="clients that send a byte a second")
    parser.add_argument("--seconds", type=float, default=60, help="until they give up")
    parser.add_argument("--dropped", type=int, default=64, help="connections that are dropped")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        weights = np.random.default_rng(0).normal([1.0, -0.5], 0.1, size=(4, 500, 2))
        write_posterior(Draws({"weights": weights}, ("lm", "tm")), path)
        with running(path, "--port", "0", "--max-body", str(LIMIT)) as server:
            for message in failures(server, options):
                failed += 1
                print(f"FAILED {message}", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

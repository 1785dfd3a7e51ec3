"""The server over real HTTP: load, signals, and the page in a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import NamedTuple

import h5py
import numpy as np
import pytest
from support.browser import Browser
from support.posteriors import name_weights
from support.raising import raises

from bpa_ppl import Reranker, UsageError, write_posterior

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
serve = pytest.importorskip("bpa_ppl.extras.judging.serving.app", reason="no extra `serve`").serve

listen = pytest.importorskip("bpa_ppl.extras.judging.serving.web").listen

Connect = Callable[..., socket.socket]
BODY = {"candidates": [{"text": f"text {i}", "lm": i % 7, "tm": i % 3} for i in range(20)]}


class Server(NamedTuple):
    """A running `bpa serve`: its address, its process, and the lines of its standard error."""

    url: str
    process: subprocess.Popen[str]
    lines: Queue[str]


@pytest.fixture(scope="module")
def path(posterior: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A posterior that may be changed."""
    return Path(shutil.copy(posterior, tmp_path_factory.mktemp("server") / "served.nc"))


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    """A server that the tests share; the last of them stops it."""
    command = [sys.executable, "-m", "bpa_ppl", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        lines: Queue[str] = Queue()  # a pipe that nobody reads would stop it
        reader = Thread(target=lambda: [lines.put(line) for line in process.stderr or ()])
        reader.start()
        try:
            first = lines.get(timeout=120)
            assert " at http://" in first, first
            yield Server(first.split(" at ")[1].strip(), process, lines)
        finally:
            process.kill()
            reader.join()


def test_a_port_in_use_is_an_error(posterior: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with raises(UsageError, parameter="port", match=str(port)):
            serve(partial(Reranker, posterior), port=port)


def test_standard_output_may_be_closed(posterior: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: started.extend(sockets))
    serve(partial(Reranker, posterior), port=0)
    assert len(started) == 1


IMPATIENT = """
import sys
from functools import partial
from bpa_ppl import Reranker
from bpa_ppl.extras.judging.serving import web
from bpa_ppl.extras.judging.serving.app import serve
web._PATIENCE, web._GRACE, web._CONNECTIONS = float(sys.argv[2]), 0.5, 8
serve(partial(Reranker, sys.argv[1]), port=0, ready=lambda url: print(url, flush=True))
"""


@contextmanager
def impatient(path: Path, patience: float) -> Iterator[tuple[str, Connect, subprocess.Popen[str]]]:
    """Run a server with few connections and short limits.

    Args:
        path: of the posterior.
        patience: seconds for the head of a request.

    Yields:
        its address, a function that returns a new connection that has sent something, its process.
    """
    command = [sys.executable, "-c", IMPATIENT, str(path), str(patience)]
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(process.kill)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        host, _, port = url.removeprefix("http://").partition(":")

        def connect(content: bytes = b"") -> socket.socket:
            connection = socket.create_connection((host, int(port)), timeout=30)
            stack.enter_context(connection).sendall(content)
            return connection

        yield url, connect, process


HEAD = b"POST /rerank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.slow
def test_silent_connections_are_closed(posterior: Path) -> None:
    """Some send nothing, some a part of a first head, or of another one after an answer."""
    with impatient(posterior, 1) as (_, connect, _):
        silent = [connect(), connect(HEAD[:30]), connect(GET + b"\r\n")]
        assert silent[2].recv(12) == b"HTTP/1.1 200"
        silent[2].sendall(HEAD[:30])
        for one in silent:
            while one.recv(1000):
                pass


@pytest.mark.slow
def test_silent_connections_are_no_obstacle(posterior: Path) -> None:
    """Neither to requests nor to the end, although the last has sent a part of a body."""
    with (
        impatient(posterior, 60) as (url, connect, process),
        httpx.Client(base_url=url) as client,
    ):
        assert client.get("/health").status_code == 200
        for count in range(20):
            connect(HEAD[: count % 2 * 30])
        assert client.get("/health").status_code == 200
        connect(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert httpx.get(f"{url}/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_a_request_with_two_lengths_is_refused_and_not_answered_twice(server: Server) -> None:
    """The second request is a part of the body by one length, and follows it by the other one."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    second = GET + b"\r\n"
    body = b"0\r\n\r\n" + second
    one, other = b"Content-Length: %d\r\n" % len(body), b"Transfer-Encoding: chunked\r\n"
    for head in (HEAD, GET):
        for lengths in (one + other, other.lower() + one.lower()):
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(head + lengths + b"\r\n" + body)
                answer = b"".join(iter(partial(connection.recv, 1000), b""))
            assert answer.count(b"HTTP/1.1 ") == 1
            assert answer.startswith(b"HTTP/1.1 400")
            assert b"Content-Length and Transfer-Encoding" in answer


SLOW = """
import sys, time
from bpa_ppl.cli.app import main
from bpa_ppl.decoding import reranker
from bpa_ppl.posterior import files
def read_slowly(path):
    draws = files.read_weight_draws(path)
    print("reading", flush=True)
    sys.stdin.readline()
    return draws
reranker.read_weight_draws = read_slowly
sys.argv[0] = "bpa"
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_a_hangup_before_the_server_listens_loads_the_newest_posterior(
    posterior: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(posterior, tmp_path / "served.nc"))
    command = [sys.executable, "-c", SLOW, "serve", str(path), "--port", "0"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            assert process.stdout.readline() == "reading\n"
            weights = np.random.default_rng(0).normal(1, 0.1, size=(4, 300, 2))
            write_posterior(name_weights(weights, ("lm", "tm")), path)
            process.send_signal(signal.SIGHUP)
            process.stdin.write("\n\n")
            process.stdin.flush()
            url = process.stderr.readline().split(" at ")[1].strip()
            assert json.loads(process.stderr.readline()) == {"event": "reload", "status": "done"}
            assert httpx.get(f"{url}/model").json()["draws"] == 1200
        finally:
            process.kill()


def test_the_page_in_a_browser(server: Server, browser: Browser) -> None:
    page = browser.open(f"{server.url}/")
    page.wait("document.querySelector('tr.chosen td')?.textContent.startsWith('0.')")
    assert "Features: lm, tm" in page.get("document.body.textContent")
    assert page.messages == []


def test_requests_go_on_during_reloads(server: Server) -> None:
    url, process, _ = server
    done = Event()

    def hang_up() -> None:
        while not done.wait(0.05):
            process.send_signal(signal.SIGHUP)

    with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(5) as threads:
        hanging = threads.submit(hang_up)
        answers = threads.map(lambda _: client.post("/rerank", json=BODY).status_code, range(100))
        assert set(answers) == {200}
        done.set()
        hanging.result()


def test_reload_and_shutdown(server: Server, path: Path) -> None:
    url, process, lines = server
    # Another posterior, then a file that cannot be read: that one is not taken.
    weights = np.random.default_rng(0).normal(1, 0.1, size=(4, 300, 2))
    write_posterior(name_weights(weights, ("lm", "tm")), path)
    process.send_signal(signal.SIGHUP)
    while httpx.get(f"{url}/model").json()["draws"] != 1200:
        lines.get(timeout=60)  # reloads of other tests may come first
    with h5py.File(path, "a") as file:
        file.attrs["schema_version"] = 1
    earlier = path.read_bytes()
    for content, shown in ((b"no", "not a readable"), (earlier, "version 1"), (None, "a pipe")):
        path.unlink()
        if content is None:
            os.mkfifo(path)  # nobody writes to it
        else:
            path.write_bytes(content)
        process.send_signal(signal.SIGHUP)
        while (line := json.loads(lines.get(timeout=60))).get("status") != "failed":
            pass
        assert shown in line["error"]
        assert httpx.get(f"{url}/model").json()["draws"] == 1200
    path.unlink()
    write_posterior(name_weights(weights[:, :200], ("lm", "tm")), path)
    process.send_signal(signal.SIGHUP)
    while json.loads(lines.get(timeout=60)) != {"event": "reload", "status": "done"}:
        pass
    assert httpx.get(f"{url}/model").json()["draws"] == 800
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in (0, -signal.SIGTERM)

"""The server over real HTTP: load, signals, and the page in a browser."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import NamedTuple

import numpy as np
import pytest
from raising import raises

from bpa_ppl import Draws, UsageError, write_posterior

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
serve = pytest.importorskip("bpa_ppl.serving", reason="the extra `serve` is not installed").serve

listen = pytest.importorskip("bpa_ppl.serving.web").listen

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
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
            serve(posterior, port=port)


def test_answers_are_sent_at_once() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_in_a_browser(server: Server) -> None:
    options = "--headless=new --no-sandbox --disable-gpu --virtual-time-budget=5000"
    command = [str(CHROMIUM), *options.split(), "--enable-logging=stderr", "--dump-dom"]
    command.append(f"{server.url}/")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Features: lm, tm" in done.stdout
    assert '<tr class="chosen"><td>0.' in done.stdout
    assert "CONSOLE" not in done.stderr


def test_the_newest_file_is_served(server: Server, path: Path) -> None:
    """The first of two files takes longer to load than the pause between them."""
    url, process, lines = server
    rng = np.random.default_rng(0)
    for draws in (100_000, 250):
        write_posterior(Draws({"weights": rng.normal(size=(4, draws, 2))}, ("lm", "tm")), path)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.08)
    for _ in range(2):
        while json.loads(lines.get(timeout=60)) != {"event": "reload", "status": "done"}:
            pass
    assert httpx.get(f"{url}/model").json()["draws"] == 1000


def test_requests_go_on_during_reloads(server: Server) -> None:
    url, process, _ = server
    done = Event()

    def hang_up() -> None:
        while not done.wait(0.05):
            process.send_signal(signal.SIGHUP)

    with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(5) as threads:
        hanging = threads.submit(hang_up)
        answers = threads.map(lambda _: client.post("/rerank", json=BODY).status_code, range(200))
        assert set(answers) == {200}
        done.set()
        hanging.result()


def test_reload_and_shutdown(server: Server, path: Path) -> None:
    url, process, lines = server
    with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(4) as threads:
        answers = threads.map(lambda _: client.post("/rerank", json=BODY).status_code, range(40))
        assert set(answers) == {200}
    # Another posterior, then a file that cannot be read: that one is not taken.
    weights = np.random.default_rng(0).normal(1, 0.1, size=(4, 300, 2))
    write_posterior(Draws({"weights": weights}, ("lm", "tm")), path)
    for content in (path.read_bytes(), b"no"):
        path.write_bytes(content)
        process.send_signal(signal.SIGHUP)
        while json.loads(lines.get(timeout=60))["event"] != "reload":
            pass
        assert httpx.get(f"{url}/model").json()["draws"] == 1200
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in (0, -signal.SIGTERM)

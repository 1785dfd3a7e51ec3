"""Chromium without a window, driven by its DevTools protocol through two pipes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # which root has no use of
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
#: The browser reads from descriptor 3 and writes to descriptor 4.
START = "import os, sys; [os.dup2(int(sys.argv[n]), n + 2) for n in (1, 2)]; "
START += "os.execv(sys.argv[3], sys.argv[3:])"
#: Keys that are no characters: their codes.
CODES = {"ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Enter": 13, "Tab": 9}
SHIFT, CTRL = 8, 2
_TIMEOUT = 60.0


class Browser:
    """A running Chromium.

    Args:
        profile: an empty folder.

    Attributes:
        events: what the pages have reported, in order.
    """

    def __init__(self, profile: Path) -> None:
        (read, self._out), (self._in, write) = os.pipe(), os.pipe()
        command = [sys.executable, "-S", "-c", START, str(read), str(write), str(CHROMIUM)]
        command += [*OPTIONS, "--hide-scrollbars", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(command, pass_fds=(read, write), stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._out)
        self._process.kill()
        self._process.wait()
        os.close(self._in)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + _TIMEOUT
        while (reply := self._message(until)).get("id") != self._number:
            self.events.append(reply)
        assert "error" not in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._in, 2**16)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, url: str) -> Page:
        """Open a page in a new tab."""
        return Page(self, url)


class Page:
    """A tab with a page.

    Args:
        browser: of the tab.
        url: its address.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.go(url)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol for this tab."""
        return self._browser.call(method, self._session, **parameters)

    def go(self, url: str) -> None:
        """Load another address."""
        self.call("Page.navigate", url=url)

    def get(self, expression: str) -> Any:
        """Return the value of an expression in JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + _TIMEOUT
        while not self.get(expression):
            assert time.monotonic() < until, expression
            time.sleep(0.02)

    def key(self, key: str, modifiers: int = 0) -> None:
        """Press a key and release it."""
        parameters: dict[str, Any] = {"key": key, "modifiers": modifiers}
        if key in CODES:
            parameters["windowsVirtualKeyCode"] = CODES[key]
        else:
            parameters["text"] = key
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self.call("Page.bringToFront")
        box = self.get(
            f"(e => (e.scrollIntoView({{block: 'center'}}), e.getBoundingClientRect().toJSON()))"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the page."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme: str) -> None:
        """Prefer a colour scheme: `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    @property
    def messages(self) -> list[str]:
        """What the page has written on the console, and the browser about it."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event) for event in self._events(*kinds)]

    @property
    def requests(self) -> list[str]:
        """The addresses that the page has asked for."""
        return [e["request"]["url"] for e in self._events("Network.requestWillBeSent")]

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] in methods
        ]

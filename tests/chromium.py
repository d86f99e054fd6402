"""A page in headless Chromium, driven over its DevTools pipe: no driver package is needed.

Chromium with `--remote-debugging-pipe` reads commands from file descriptor 3 and writes answers to
4, each a JSON text that ends in a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ANSWER_SECONDS = 600.0


def find() -> str | None:
    """The path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Visit:
    """What happened while a page was open.

    Attributes:
        requests: Addresses the page asked for, itself first.
        console: Errors and warnings of the console, and exceptions.
        values: Results of the expressions that were evaluated.
        screenshots: Pictures by theme, PNG bytes.
    """

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    screenshots: dict[str, bytes] = field(default_factory=dict)


class Browser:
    """One browser process; each visit has a context of its own, with no history and no cache."""

    def __init__(self, program: str, profile: Path) -> None:
        self._session_id: str | None = None
        self._events: list[dict[str, Any]] = []
        self._next = 0
        self._buffer = b""
        browser_reads, self._write = os.pipe()
        self._read, browser_writes = os.pipe()
        # The shell puts the pipe ends on descriptors 3 and 4, whatever numbers they have here.
        script = f'exec "$@" 3<&{browser_reads} 4>&{browser_writes}'
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "chromium", program, *arguments],
            pass_fds=(browser_reads, browser_writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_reads)
        os.close(browser_writes)

    def visit(
        self,
        page: Path,
        expressions: dict[str, str],
        *,
        width: int = 1280,
        themes: Sequence[str] = (),
    ) -> Visit:
        """Open a file, take a picture of it in each theme asked for, and evaluate expressions."""
        context = self._ask("Target.createBrowserContext")["browserContextId"]
        try:
            where = {"url": "about:blank", "browserContextId": context}
            target = self._ask("Target.createTarget", where)["targetId"]
            attached = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})
            self._session_id = attached["sessionId"]
            self._events.clear()
            for domain in ("Page", "Network", "Runtime", "Log"):
                self._ask(f"{domain}.enable")
            self._ask(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
            )
            self._ask("Page.navigate", {"url": page.resolve().as_uri()})
            self._wait_for("Page.loadEventFired")
            seen = Visit()
            for theme in themes:
                seen.screenshots[theme] = self._screenshot(theme)
            for name, expression in expressions.items():
                answer = self._ask(
                    "Runtime.evaluate",
                    {"expression": expression, "returnByValue": True, "awaitPromise": True},
                )
                seen.values[name] = answer["result"].get("value")
            seen.requests = self._requests()
            seen.console = self._console()
            return seen
        finally:
            self._session_id = None
            self._ask("Target.disposeBrowserContext", {"browserContextId": context})

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _ask(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and give its result; events that come before it are kept."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters or {}}
        if self._session_id is not None:
            message["sessionId"] = self._session_id
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _wait_for(self, method: str) -> None:
        """Receive until an event of this name has come."""
        while not any(event.get("method") == method for event in self._events):
            self._note(self._receive())

    def _screenshot(self, theme: str) -> bytes:
        """A picture of the whole page with the reader's preference set to `theme`."""
        preference = {"name": "prefers-color-scheme", "value": theme}
        self._ask("Emulation.setEmulatedMedia", {"features": [preference]})
        parameters = {"format": "png", "captureBeyondViewport": True}
        return base64.b64decode(self._ask("Page.captureScreenshot", parameters)["data"])

    def _requests(self) -> list[str]:
        """Every address that was asked for; data inside the page needs no asking."""
        addresses = [
            event["params"]["request"]["url"]
            for event in self._events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [address for address in addresses if not address.startswith("data:")]

    def _console(self) -> list[str]:
        """What the console shows as a warning or an error."""
        lines = []
        for event in self._events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                lines.append(str(parameters["exceptionDetails"]["text"]))
            elif event.get("method") == "Runtime.consoleAPICalled":
                lines.append(str(parameters["args"]))
            elif event.get("method") == "Log.entryAdded":
                lines.append(str(parameters["entry"]["text"]))
        return lines

    def _note(self, event: dict[str, Any]) -> None:
        """Keep what the page of this visit says; a page that was left may still say something."""
        if event.get("sessionId") == self._session_id:
            self._events.append(event)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"chromium did not answer within {ANSWER_SECONDS} s"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "chromium ended"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

"""A headless Chromium, driven through its DevTools protocol: for tests of pages, and for their pictures.

    async with Browser.started() as browser, browser.tab() as tab:
        await tab.open("http://127.0.0.1:8480/ui/login")

It needs Debian's `chromium`, and nothing else: the protocol is JSON over a WebSocket, which aiohttp speaks.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

PROGRAMS = ("chromium", "chromium-headless-shell", "chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--remote-debugging-port=0", "--force-color-profile=srgb",
)  # fmt: skip
STARTS_WITHIN_S, ANSWERS_WITHIN_S = 60.0, 30.0
LOOK_S = 0.05
LARGEST_ANSWER = 64 * 2**20
WIDTH, HEIGHT = 1280, 900


class BrowserFailed(Exception):
    """The browser does not start, or a page's script raised."""


def find_browser() -> str | None:
    """The program; None: there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One browser, without anything that an earlier one has kept."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[Browser]:
        """A browser until the block ends.

        Raises:
            BrowserFailed: there is none, or it does not start.
        """
        program = find_browser()
        if program is None:
            raise BrowserFailed("There is no chromium: apt-get install chromium.")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            process = await asyncio.create_subprocess_exec(
                program, *FLAGS, f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={folder}", "about:blank",
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                url = await _address(Path(folder) / "DevToolsActivePort")
                async with (
                    aiohttp.ClientSession() as session,
                    session.ws_connect(url, max_msg_size=LARGEST_ANSWER) as socket,
                    asyncio.TaskGroup() as group,
                ):
                    browser = cls(socket)
                    reading = group.create_task(browser._read())
                    try:
                        yield browser
                    finally:
                        reading.cancel()
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    @asynccontextmanager
    async def tab(self, *, dark: bool = False, context: str | None = None) -> AsyncIterator[Tab]:
        """A page, with the cookies of `context` or of none."""
        own = context or (await self.send("Target.createBrowserContext"))["browserContextId"]
        target = await self.send("Target.createTarget", url="about:blank", browserContextId=own)
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        tab = Tab(self, attached["sessionId"], own)
        self._tabs[attached["sessionId"]] = tab
        await tab.prepare(dark=dark)
        try:
            yield tab
        finally:
            self._tabs.pop(attached["sessionId"], None)
            await self.send("Target.closeTarget", targetId=target["targetId"])

    async def send(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """One command; its result."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_str(json.dumps(message | ({"sessionId": session} if session else {})))
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            result: dict[str, Any] = await answer
        return result

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                answer = self._answers.pop(told["id"], None)
                if answer is None or answer.done():
                    continue
                if "error" in told:
                    answer.set_exception(BrowserFailed(f"{told['error'].get('message')}"))
                else:
                    answer.set_result(told["result"])
            elif (tab := self._tabs.get(told.get("sessionId", ""))) is not None:
                tab.hear(told["method"], told["params"])


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser = browser
        self._session = session
        self.context = context
        """Which a further tab shares."""
        self._loaded = asyncio.Event()
        self.faults: list[str] = []
        """What the console said in red: violated policies, scripts that raised, answers that failed."""

    async def prepare(self, *, dark: bool) -> None:
        """Have it say what happens, in light or dark."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")
        await self.send("Security.setIgnoreCertificateErrors", ignore=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command about this page."""
        return await self._browser.send(method, self._session, **parameters)

    def hear(self, method: str, parameters: dict[str, Any]) -> None:
        """An event of this page."""
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Runtime.exceptionThrown":
            self.faults.append(str(parameters["exceptionDetails"].get("exception", {}).get("description", "raised")))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.faults.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}".strip())

    async def open(self, url: str) -> None:
        """Load a page, to its end."""
        self._loaded.clear()
        await self.send("Page.navigate", url=url)
        await self.wait_loaded()

    async def wait_loaded(self) -> None:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            await self._loaded.wait()

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, whatever its policy; a promise is awaited.

        Raises:
            BrowserFailed: it raised.
        """
        told = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise BrowserFailed(str(told["exceptionDetails"]))
        return told["result"].get("value")

    async def submit(self, form: str, **fields: str) -> None:
        """Fill fields of a form, by their ids, and press its button; returns when the next page is loaded."""
        for name, value in fields.items():
            await self.evaluate(f"document.getElementById({json.dumps(name)}).value = {json.dumps(value)}")
        self._loaded.clear()
        await self.evaluate(f"document.querySelector({json.dumps(form)}).querySelector('button').click()")
        await self.wait_loaded()

    async def wait_for(self, expression: str, within_s: float = ANSWERS_WITHIN_S) -> Any:
        """Wait until an expression is true in the page; its value.

        Raises:
            BrowserFailed: it never was.
        """
        try:
            async with asyncio.timeout(within_s):
                while not (found := await self.evaluate(expression)):  # noqa: ASYNC110 - in another process
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise BrowserFailed(f"This never became true: {expression}") from None
        return found

    async def picture(self, path: Path, height: int = HEIGHT) -> None:
        """Save a PNG of the page as it looks now, `height` pixels of it."""
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        told = await self.send("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(told["data"]))

    async def cookies(self) -> list[dict[str, Any]]:
        """All that its context has."""
        return list((await self.send("Network.getCookies"))["cookies"])


def _words_of(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def _address(file: Path) -> str:
    """Where a browser listens, which it writes when it does."""
    try:
        async with asyncio.timeout(STARTS_WITHIN_S):
            while True:
                lines = await asyncio.to_thread(_words_of, file)
                if len(lines) > 1:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise BrowserFailed("The browser does not start.") from None

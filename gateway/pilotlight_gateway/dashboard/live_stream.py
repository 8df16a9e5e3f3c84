"""The stream of one browser: what has changed on the pages that its tabs show, at most once a second for each.

All tabs of a browser share one stream, since it may hold few connections to a host. Each topic is the address of a
page; the first word on it is a snapshot, and so is that after a reconnection.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import msgspec
from starlette.types import Receive, Send

from pilotlight_gateway.dashboard.page_drawings import PageDrawing, PageDrawings
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.live_changes import snapshot_of
from pilotlight_gateway.dashboard.page_parts.page import Page
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer, Viewers
from pilotlight_gateway.dashboard.request_rules import ALWAYS

EVERY_S = 1.0
LAGS_S = 2.0
"""Who has not taken what was sent for so long is let go, and comes again."""
SILENT_TICKS = 10
"""After so many without a word a comment is sent, so that a connection that is gone shows."""
TOPICS_AT_MOST, QUERY_FIELDS = 16, 16
STREAMS_PER_SESSION, STREAMS_PER_KEY, STREAMS_PER_TENANT, STREAMS = 4, 64, 256, 1_024
HEAD = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    *ALWAYS,
)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A page as its address names it."""

    address: str
    page: Page
    words: dict[str, str]
    query: dict[str, str]


class StreamSlots:
    """How many streams there may be: in all, of one tenant, of one API key, and of one session, that is one browser."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._bounds = {
            "session": STREAMS_PER_SESSION, "key": STREAMS_PER_KEY, "tenant": STREAMS_PER_TENANT, "all": STREAMS,
        }  # fmt: skip

    @property
    def held(self) -> int:
        """Streams there are."""
        return self._held[""]

    @contextmanager
    def holding(self, viewer: Viewer) -> Iterator[bool]:
        """Whether there is room for one more, which is held until the block ends."""
        names = {
            "session": f"session {viewer.token}", "key": f"key {viewer.key}", "tenant": f"tenant {viewer.tenant}",
            "all": "",
        }  # fmt: skip
        if any(self._held[name] >= self._bounds[kind] for kind, name in names.items()):
            yield False
            return
        self._held.update(names.values())
        try:
            yield True
        finally:
            self._held.subtract(names.values())
            self._held = +self._held


def topics_of(addresses: list[str], drawings: PageDrawings) -> list[Topic]:
    """The pages that a stream is about, of what its address names; what is none is left out."""
    found: list[Topic] = []
    for address in dict.fromkeys(addresses):
        parts = urlsplit(address)
        known = drawings.find(parts.path)
        if known is not None and known[0].live and len(found) < TOPICS_AT_MOST:
            with suppress(ValueError):  # it has more words than any page
                query = dict(parse_qsl(parts.query, max_num_fields=QUERY_FIELDS))
                found.append(Topic(address=address, page=known[0], words=known[1], query=query))
    return found


class LiveStream:
    """Sends the changes of some topics to one viewer, until either goes."""

    def __init__(
        self,
        viewer: Viewer,
        topics: list[Topic],
        drawings: PageDrawings,
        viewers: Viewers,
        *,
        every_s: float = EVERY_S,
        lags_s: float = LAGS_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._viewer = viewer
        self._topics = topics
        self._drawings = drawings
        self._viewers = viewers
        self._every_s = every_s
        self._lags_s = lags_s
        self._clock = clock
        self._seen: dict[str, PageDrawing] = {}

    async def run(self, receive: Receive, send: Send) -> None:
        """Answer a request with the stream."""
        await send({"type": "http.response.start", "status": 200, "headers": list(HEAD)})
        gone = asyncio.ensure_future(_wait_gone(receive))
        try:
            silent = 0
            while not gone.done():
                began = self._clock()
                piece = await self._next_piece()
                silent = 0 if piece else silent + 1
                if silent >= SILENT_TICKS:
                    piece, silent = b": still here\n\n", 0
                if piece:
                    async with asyncio.timeout(self._lags_s):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                if not await self._is_good():
                    break
                await asyncio.wait((gone,), timeout=max(0.0, self._every_s - (self._clock() - began)))
            async with asyncio.timeout(self._lags_s):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            raise LaggingClient from None  # the server breaks the connection off
        finally:
            gone.cancel()

    async def _next_piece(self) -> bytes:
        pieces = []
        for topic in self._topics:
            drawing = await self._drawings.draw(self._viewer, topic.page, topic.words, topic.query, topic.address)
            before = self._seen.get(topic.address)
            self._seen[topic.address] = drawing
            if before is None:
                changes = msgspec.json.encode(snapshot_of(drawing.blocks))
            else:
                changes = drawing.changes_since(before)
            if changes:
                name = msgspec.json.encode(topic.address)
                pieces.append(b'event: page\ndata: {"topic":' + name + b',"changes":' + changes + b"}\n\n")
        return b"".join(pieces)

    async def _is_good(self) -> bool:
        """Whether its session is, and still may what it might; while no gateway says, the stream waits.

        Who may less now, or more, comes again as somebody else: drawings are shared by what viewers may.
        """
        try:
            found = await self._viewers.find(self._viewer.token)
        except ApiProblem:
            return True
        return found is not None and found.audience == self._viewer.audience


class LaggingClient(Exception):
    """A browser does not take what it is sent."""


async def _wait_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

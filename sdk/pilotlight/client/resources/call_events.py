"""The events of a call, also over several connections: a stream that waits for its client is read on where it broke."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, suppress

import httpx
from httpx_sse import ServerSentEvent

from pilotlight.client.transport.event_stream import read_events
from pilotlight.client.transport.platform_connection import PlatformConnection, lost
from pilotlight.client.transport.wire import EVENTS
from pilotlight.definitions.errors import PilotlightError

LAST = ("result", "error")
BACKOFF_S = 0.1
MOST_BACKOFF_S = 2.0
CANCEL_S = 2.0
"""How long whoever leaves a stream waits for the word that it is cancelled."""


async def read_call(
    connection: PlatformConnection,
    opened: AbstractAsyncContextManager[httpx.Response],
    params: Mapping[str, str] | None,
) -> AsyncGenerator[ServerSentEvent, None]:
    """Yield the events of the call that `opened` makes, its result or error last.

    If the platform says that the stream waits for its client, it is read on when its connection breaks, for so long, by
    whichever gateway answers; no event is lost, and none comes twice. Closing the iterator cancels the call.

    Raises:
        PilotlightError: `call_lost` if it broke off, or as the problem document says.
    """
    reader = _CallEvents(connection, params)
    try:
        async for event in reader.read_first(opened):
            yield event
        while not reader.is_over:
            async for event in reader.read_on():
                yield event
    finally:
        if not reader.is_over:
            await reader.cancel()


class _CallEvents:
    """How far the events of one call are read."""

    def __init__(self, connection: PlatformConnection, params: Mapping[str, str] | None) -> None:
        self.is_over = False
        """Whether its last event has come, or it was given up."""
        self._connection = connection
        self._params = params
        self._call_id = ""
        self._resume_s = 0.0
        self._last = 0
        """The id of the last event."""
        self._broken_at = 0.0
        self._failures = 0
        self._closings = connection.closings

    async def read_first(
        self, opened: AbstractAsyncContextManager[httpx.Response]
    ) -> AsyncGenerator[ServerSentEvent, None]:
        """Yield the events of the connection that began the call."""
        broken = lost("The answer broke off before its end; the call may have been carried out.")
        try:
            async with opened as answer:
                self._call_id = answer.headers.get("pilotlight-call-id", "")
                self._resume_s = _seconds(answer.headers.get("pilotlight-resume-s", ""))
                async for event in self._events(answer):
                    yield event
        except PilotlightError as error:
            broken = error
            if not self._resume_s:
                raise
        if self._connection.closings != self._closings:
            self._resume_s = 0.0  # its client was closed: nobody reads on
        if not self.is_over and not self._resume_s:
            raise broken
        self._broken_at = time.monotonic()

    async def read_on(self) -> AsyncGenerator[ServerSentEvent, None]:
        """Yield what another connection brings, if one comes about in time."""
        await asyncio.sleep(min(MOST_BACKOFF_S, BACKOFF_S * 2.0**self._failures) if self._failures else 0.0)
        headers = {"Accept": EVENTS, "Last-Event-ID": str(self._last)}
        before = self._last
        try:
            path = f"/v1/calls/{self._call_id}/events"
            async with self._connection.open("GET", path, headers=headers, params=self._params) as answer:
                if answer.status_code == httpx.codes.NO_CONTENT:
                    self.is_over = True
                    raise lost("The stream has ended, and its last event is lost.")
                try:
                    async for event in self._events(answer):
                        yield event
                finally:  # the stream waits from here on, however long it was silent
                    self._broken_at = time.monotonic()
        except PilotlightError as error:
            self._note_failure(error)
        if self._last > before:
            self._failures = 0
        else:
            self._failures += 1

    async def cancel(self) -> None:
        """The events are not wanted any more: a stream that waits for its client goes on otherwise."""
        if not self._resume_s or not self._call_id or self._connection.closings != self._closings:
            return  # the end of its connection has cancelled it; or its client is closed, and nobody will come back
        with suppress(PilotlightError, TimeoutError):
            async with asyncio.timeout(CANCEL_S):
                await self._connection.fetch("DELETE", f"/v1/calls/{self._call_id}")

    def _note_failure(self, error: PilotlightError) -> None:
        """A connection did not come about, or broke: raise what no other attempt mends, or is too late for."""
        is_gone = error.wire_code == "call_lost" and "request_id" in error.more  # its gateway, as another one says
        if self._connection.closings != self._closings:
            self._resume_s = 0.0
        is_final = is_gone or (error.meaning.status < 500 and not error.meaning.retry)
        if self.is_over or is_final or time.monotonic() - self._broken_at > self._resume_s:
            self.is_over = True
            raise error

    async def _events(self, answer: httpx.Response) -> AsyncGenerator[ServerSentEvent, None]:
        async with aclosing(read_events(answer.aiter_bytes())) as stream:
            async for event in stream:
                number = int(event.id) if event.id.isdecimal() else 0
                if event.event in ("chunk", *LAST) and number:
                    if number <= self._last:
                        continue
                    self._last = number
                self.is_over = event.event in LAST
                yield event
                if self.is_over:
                    return


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0

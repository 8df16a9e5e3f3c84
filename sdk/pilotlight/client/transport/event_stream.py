"""Server-sent events of an answer, of bounded size."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import httpx
from httpx_sse import EventSource, ServerSentEvent

from pilotlight.definitions.errors import BadOutput

MAX_EVENT_BYTES = 64 * 2**20
"""An answer of 32 MiB in base64, with room."""
EVENT_ENDS = (b"\n\n", b"\n\r", b"\r\r")
"""An empty line after any of the three line ends."""


async def read_events(
    chunks: AsyncIterator[bytes], limit: int = MAX_EVENT_BYTES
) -> AsyncGenerator[ServerSentEvent, None]:
    """Yield the events of a body that have data.

    Raises:
        BadOutput: if an event is larger than `limit` bytes.
    """
    headers = {"Content-Type": "text/event-stream"}
    async for event in EventSource(httpx.Response(200, headers=headers, content=_bounded(chunks, limit))).aiter_sse():
        if event.data:
            yield event


async def _bounded(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Pass chunks on while no event is too large; httpx-sse would keep them."""
    held, last = 0, b""
    async for chunk in chunks:
        seen = last + chunk
        end = max(seen.rfind(mark) for mark in EVENT_ENDS)
        held = held + len(chunk) if end < 0 else len(seen) - end - 2
        if held > limit:
            raise BadOutput(f"The answer holds an event of more than {limit} bytes.")
        yield chunk
        last = chunk[-1:]

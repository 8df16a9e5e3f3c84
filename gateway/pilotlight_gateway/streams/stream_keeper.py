"""The streams of this gateway that can be read again: those that run, and for a while those that have ended."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.streams.kept_stream import KeptStream

HELD_BYTES = 64 * 10**6
"""Of all kept events."""
MOST_ENDED = 4_096
"""Streams that have ended, of all tenants; the oldest of the tenant with one more goes first."""


class StreamKeeper:
    """`clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float], budget: ByteBudget | None = None) -> None:
        self.budget = budget or ByteBudget(limit=HELD_BYTES)
        self._clock = clock
        self._streams: dict[str, KeptStream] = {}
        self._ended: OrderedDict[str, asyncio.TimerHandle] = OrderedDict()
        """Those that have ended, in that order, and when they are forgotten."""

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, call_id: str, tenant: str, resume_s: float) -> KeptStream:
        """Keep the events of a call that begins; `close` follows."""
        stream = self._streams[call_id] = KeptStream(
            call_id, tenant, resume_s, budget=self.budget, make_room=self._make_room, clock=self._clock
        )
        return stream

    def find(self, tenant: str, call_id: str) -> KeptStream | None:
        """A tenant's stream."""
        stream = self._streams.get(call_id)
        return stream if stream is not None and stream.tenant == tenant else None

    def close(self, stream: KeptStream) -> None:
        """The call has ended: its last events can be read for `resume_s` more."""
        if not stream.has_ended or not stream.is_whole:
            self._forget(stream.call_id)
            return
        later = asyncio.get_running_loop().call_later(stream.resume_s, self._forget, stream.call_id)
        self._ended[stream.call_id] = later
        if len(self._ended) > MOST_ENDED and not self._make_room(stream.tenant):
            self._forget(next(iter(self._ended)))

    def _make_room(self, tenant: str) -> bool:
        """Forget the tenant's stream that ended first; False: there is none."""
        oldest = next((call_id for call_id in self._ended if self._streams[call_id].tenant == tenant), None)
        if oldest is None:
            return False
        self._forget(oldest)
        return True

    def _forget(self, call_id: str) -> None:
        if (later := self._ended.pop(call_id, None)) is not None:
            later.cancel()
        if (stream := self._streams.pop(call_id, None)) is not None:
            stream.discard()

"""Sends the chunks that streams have in one turn of their event loop together: a write costs more than a small chunk.

They go when the turn ends. Code that blocks its loop would hold them up, so after a turn that took long they go at once
for a while: such code delays one chunk a second at most.
"""

from __future__ import annotations

import asyncio

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import GuestFrame

LONG_TURN_S = 2e-3
WARY_S = 1.0


class TurnSender:
    """The `FrameSender` of one loop."""

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop) -> None:
        self._channel = channel
        self._loop = loop
        self._is_due = False
        self._left_at = 0.0
        """When the first of those that wait was left."""
        self._wary_until = 0.0
        self.send = channel.send

    def send_soon(self, frame: GuestFrame) -> None:
        """See `FrameSender`."""
        at = self._loop.time()
        if at < self._wary_until:
            self._channel.send(frame)
        elif self._channel.leave(frame) and not self._is_due:
            self._is_due, self._left_at = True, at
            self._loop.call_soon(self._send_left)

    def _send_left(self) -> None:
        at = self._loop.time()
        self._is_due = False
        if at - self._left_at > LONG_TURN_S:
            self._wary_until = at + WARY_S
        with exits.with_agent():
            self._channel.send_left()

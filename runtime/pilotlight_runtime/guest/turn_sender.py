"""Sends the chunks that streams have in one turn of their event loop together: a write costs more than a small chunk.

They go when the turn ends, or if its code blocks the loop for longer, from a thread.
"""

from __future__ import annotations

import asyncio

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import GuestFrame
from pilotlight_runtime.guest.late_sender import LateSender

LONG_TURN_S = 2e-3
"""The chunks of 64 streams take half of it."""


class TurnSender:
    """The `FrameSender` of one loop."""

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop) -> None:
        self._channel = channel
        self._loop = loop
        self._late = LateSender(channel, LONG_TURN_S)
        self._is_due = False
        self.send = channel.send

    def send_soon(self, frame: GuestFrame) -> None:
        """See `FrameSender`."""
        self._late.send(frame)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._send_left)

    def _send_left(self) -> None:
        self._is_due = False
        with exits.with_agent():
            self._channel.send_left()

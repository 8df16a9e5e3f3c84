"""What the code of a resumable generator finds in its container: the state to go on from, and where to save one.

`pilotlight.resume` reads and `pilotlight.checkpoint` saves; the guest says what runs here.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol


class StatefulStream(Protocol):
    """The stream that runs here."""

    is_resumable: bool

    def read_state(self) -> bytes:
        """The msgpack of what the last checkpoint saved; b"": it begins."""
        ...

    def save_state(self, state: bytes) -> str:
        """Save a state, in which all that was yielded is; returns why it cannot be, "": it is saved."""
        ...


RUNNING_STREAM: ContextVar[StatefulStream | None] = ContextVar("pilotlight_running_stream", default=None)
"""None: no generator runs here, or outside the platform."""

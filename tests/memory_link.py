"""A link in memory: what is sent is kept, and tests say when it breaks."""

from __future__ import annotations

from pilotlight_core.links import LinkOwner
from pilotlight_core.model.messages.message import Message


class MemoryLink:
    """A `LinkPort` whose other end hears nothing."""

    def __init__(self, owner: LinkOwner) -> None:
        self._owner = owner
        self.sent: list[Message] = []
        self.closed = ""
        """Why."""
        self.held = False
        self.flushes = 0
        self.ticks = 0
        self.breaks_at_send = False

    def send(self, message: Message) -> None:
        self.sent.append(message)
        if self.breaks_at_send:
            self.close("it broke")

    def flush(self) -> None:
        self.flushes += 1

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False

    def tick(self) -> None:
        self.ticks += 1

    def unheard(self) -> list[Message]:
        return list(self.sent)

    def close(self, reason: str) -> None:
        if not self.closed:
            self.closed = reason
            self._owner.closed(self)

"""The port of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.model.messages.logs import PlatformEvent


class EventLog(Protocol):
    """Takes events; nobody waits for one, and those that there is no room for are counted and lost."""

    def note(self, event: PlatformEvent) -> None: ...

    async def store(self, event: PlatformEvent, name: str) -> None:
        """Store one that must not be lost, in place of `note`: under a name, by which a second time is the first.

        Raises:
            BusError, OSError: it may or may not be stored.
        """
        ...


@dataclass
class MemoryEventLog:
    """The fake for tests, and for processes that tell nobody."""

    events: list[PlatformEvent] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def note(self, event: PlatformEvent) -> None:
        self.events.append(event)

    async def store(self, event: PlatformEvent, name: str) -> None:
        if name not in self.names:
            self.names.add(name)
            self.events.append(event)


class SilentEventLog:
    """Tells nobody."""

    def note(self, event: PlatformEvent) -> None: ...

    async def store(self, event: PlatformEvent, name: str) -> None: ...

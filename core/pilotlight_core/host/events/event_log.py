"""The port of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.model.messages.logs import PlatformEvent


class EventLog(Protocol):
    """Takes events; nobody waits for one, and those that there is no room for are counted and lost."""

    def note(self, event: PlatformEvent) -> None: ...


@dataclass
class MemoryEventLog:
    """The fake for tests, and for processes that tell nobody."""

    events: list[PlatformEvent] = field(default_factory=list)

    def note(self, event: PlatformEvent) -> None:
        self.events.append(event)


class SilentEventLog:
    """Tells nobody."""

    def note(self, event: PlatformEvent) -> None: ...

"""A port in memory: what a driver sends is kept, its clock is moved by hand, and it is woken when a test says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from pilotlight_core.bus import BusDown
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.cluster.driver_port import NEVER

M = TypeVar("M")


@dataclass
class MemoryDriverPort:
    """Tests script it: the time, and whether there is a bus."""

    at: float = 100.0
    connected: bool = True
    sent: list[tuple[str, Message]] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    """Of each message where the bus is to say that nobody listens; "" nowhere."""
    wakes_at: float = NEVER
    """The earliest instant that was asked for since `woken`."""

    def send(self, subject: str, message: Message, *, reply: str = "") -> None:
        if not self.connected:
            raise BusDown("there is no bus")
        self.sent.append((subject, message))
        self.replies.append(reply)

    def clock(self) -> float:
        return self.at

    def wake_at(self, instant: float) -> None:
        self.wakes_at = min(self.wakes_at, instant)

    def take_turn_if_many(self) -> None:
        """A turn is taken when the test says so."""

    def woken(self) -> float:
        """When a turn was asked for; from now on anew."""
        instant, self.wakes_at = self.wakes_at, NEVER
        return instant

    def told(self, kind: type[M]) -> list[M]:
        """The messages of a kind that were sent."""
        return [message for _, message in self.sent if isinstance(message, kind)]

"""Messages of the usage stream, as the fold gets them: with the instant of the bus's own clock, and who sent them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from pilotlight_core.model.subjects import NO_NODE


class Sender(StrEnum):
    """Who may publish on a subject of the stream; the bus holds it."""

    AGENT = "agent"  # of the node
    CONTROLLER = "controller"
    BEFORE_NODES = "before_nodes"  # an agent, before subjects named nodes; nobody may publish there any more


class UsageDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """One stored message."""

    seq: int
    at: float
    """Unix seconds at which the bus stored it."""
    sender: Sender
    node: str = ""
    """Whose agent sent it, or that the controller speaks of; "" before subjects named nodes."""
    message: Any
    subject: str = ""
    folded_at: float = 0.0
    """Unix seconds at which it is folded, where that is long after `at`; 0.0: at once."""

    read_at: float = 0.0
    """Unix seconds at which the fold reads it from the stream, which may be a restored one; 0.0: at once, or the ledger
    kept it meanwhile."""

    @property
    def metered_until(self) -> float:
        """Up to which unix second the ledger may have folded more of the same container or device."""
        return max(self.at, self.folded_at)


def delivery_of(seq: int, subject: str, at: float, message: Any, read_at: float = 0.0) -> UsageDelivery:
    """The delivery of a message that was stored at the unix second `at`, and is read at `read_at`."""
    sender, of_node = Sender.BEFORE_NODES, ""
    match subject.split("."):
        case [_, _, place, node] if place == NO_NODE:
            sender, of_node = Sender.CONTROLLER, node
        case [_, _, node, _]:
            sender, of_node = Sender.AGENT, node
    return UsageDelivery(seq=seq, at=at, sender=sender, node=of_node, message=message, subject=subject, read_at=read_at)

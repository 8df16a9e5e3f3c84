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


def delivery_of(seq: int, subject: str, at: float, message: Any) -> UsageDelivery:
    """The delivery of a stored message."""
    match subject.split("."):
        case [_, _, place, node] if place == NO_NODE:
            return UsageDelivery(seq=seq, at=at, sender=Sender.CONTROLLER, node=node, message=message)
        case [_, _, node, _]:
            return UsageDelivery(seq=seq, at=at, sender=Sender.AGENT, node=node, message=message)
    return UsageDelivery(seq=seq, at=at, sender=Sender.BEFORE_NODES, message=message)

"""Commands that were sent to agents, and that no report shows yet."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_placement.fleet.reports import IncomingContainer


@dataclass(frozen=True, kw_only=True)
class PendingBind:
    """A bind that was sent and that no report shows yet."""

    bind: Bind
    node: str
    at: float
    tries: int = 1


@dataclass(frozen=True, kw_only=True)
class PendingUnpark:
    """A parked container was told to serve again, which no report shows yet."""

    coming: IncomingContainer
    at: float

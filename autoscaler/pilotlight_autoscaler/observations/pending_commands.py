"""Commands that were sent to agents, and that no report shows yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_placement.fleet.reports import IncomingContainer, devices_named

BIND_LOST_S = 2.0
"""A bind that no report shows after so long is sent again, which is harmless since agents know container ids."""
BIND_TRIES = 3
FIRST_PAUSE_S = 0.05
"""Before a bind is sent to a node again that ends what is parked there; each further pause is twice as long."""
GIVING_WAY_TRIES = 12


@dataclass(frozen=True, kw_only=True)
class PendingBind:
    """A bind that was sent and that no report shows yet."""

    bind: Bind
    node: str
    at: float
    tries: int = 1
    gives_way: bool = False
    """Its node ends what is parked on the slice, and takes it then."""

    def is_due(self, at: float) -> bool:
        """Whether it is to be sent again, as no report shows it: after ever longer pauses, and not for ever."""
        if self.gives_way:
            pause_s = min(BIND_LOST_S, FIRST_PAUSE_S * 2.0 ** (self.tries - 1))
            return self.tries < GIVING_WAY_TRIES and at - self.at > pause_s
        return self.tries < BIND_TRIES and at - self.at > BIND_LOST_S

    def is_over(self, at: float) -> bool:
        """Whether nothing is expected of it any more."""
        return at - self.at > BIND_LOST_S * BIND_TRIES


def stuck_devices(pending: Iterable[PendingBind], at: float) -> list[tuple[str, str]]:
    """The devices, each with its node, on which something was to give way and has not, as often as it was asked."""
    stuck = [each for each in pending if each.gives_way and each.is_over(at)]
    return [(each.node, device) for each in stuck for device in devices_named(each.bind.slice)]


@dataclass(frozen=True, kw_only=True)
class PendingUnpark:
    """A parked container was told to serve again, which no report shows yet."""

    coming: IncomingContainer
    at: float

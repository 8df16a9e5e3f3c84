"""The one door between homes and origins: whether the other side is here or at another gateway is decided here alone.

What is for this gateway is put into an inbox, which the driver of that side works off in its next turn; what is for
another goes with its mail. Neither side knows which it was, nor does the router know them.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from pilotlight_core.model.messages.agent_messages import Grant
from pilotlight_core.model.messages.scheduling import Dropped, HomeItem, Settle
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort
from pilotlight_gateway.cluster.outbox import Outbox
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership

OriginItem = Grant | Dropped
"""What a home has for the origin of a call. Of each thing that an origin says, `HomeItem` is the counterpart."""


def home_of(ownership: ShardOwnership, gateway: str, shard: int, at: float) -> str | None:
    """The process that acts as the home of a shard: our own only while we may act at `at`; None: nobody does."""
    if ownership.mine(shard, at) is not None:
        return gateway
    owner = ownership.owner(shard)
    return owner.gateway if owner is not None and owner.gateway != gateway else None


class Router(Protocol):
    """Brings what one side says to the other."""

    def to_home(self, shard: int, item: HomeItem, at: float) -> bool:
        """To the home of a shard, wherever that is; False: nobody is."""
        ...

    def to_origin(self, gateway: str, item: OriginItem) -> None:
        """To the calls of a gateway."""
        ...

    def settle(self, item: Settle, epoch: int) -> None:
        """To the home that acts under `epoch`, of a call that its origin has forgotten; 0: to all that are here."""
        ...


class ShardRouter:
    """The real `Router`, of one gateway. A driver empties `home_inbox`, another `origin_inbox`."""

    def __init__(self, port: DriverPort, ownership: ShardOwnership, outbox: Outbox, *, gateway: str) -> None:
        self._port = port
        self._ownership = ownership
        self._outbox = outbox
        self._gateway = gateway
        self.home_inbox: deque[tuple[int | None, HomeItem]] = deque()
        """With the shard whose home it is for; None: for all homes here."""
        self.origin_inbox: deque[OriginItem] = deque()

    def to_home(self, shard: int, item: HomeItem, at: float) -> bool:
        home = home_of(self._ownership, self._gateway, shard, at)
        if home is None:
            return False  # as soon as there is one, its origin repeats itself
        if home == self._gateway:
            self.home_inbox.append((shard, item))
            self._port.wake_at(SOON)
        else:
            self._outbox.to_home(home, shard, item)
        return True

    def to_origin(self, gateway: str, item: OriginItem) -> None:
        if gateway == self._gateway:
            self.origin_inbox.append(item)
            self._port.wake_at(SOON)
        elif isinstance(item, Grant):
            self._outbox.grant(item)
        else:
            self._outbox.drop(item)

    def settle(self, item: Settle, epoch: int) -> None:
        # Of a grant that no agent has seen nobody else can tell; else a home elsewhere hears from the agent's credits.
        found = self._ownership.home_under(epoch) if epoch else None
        if found is not None and found[1] != self._gateway:
            self._outbox.to_home(found[1], found[0], item)
        else:
            self.home_inbox.append((None, item))
            self._port.wake_at(SOON)

"""Brings items between homes and origins; only it knows whether the other side is at another gateway.

Items for this gateway wait in an inbox for the next turn of that side's driver; those of one turn for another gateway
are one message, over its link or the bus.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import Grant
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.scheduling import Dropped, HomeItem, Settle, ToHome, ToOrigin
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort
from pilotlight_gateway.cluster.peer_links import PeerLinks
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership

T = TypeVar("T")
ITEMS = 256
"""In one message, if they fit: usually some 100 KiB."""
EARLY = 256
"""Settlements of grants by homes that this gateway has not heard of; older ones are left to the agents' credits."""
OriginItem = Grant | Dropped
"""From a home to the origin of a call; `HomeItem` is the other direction."""

log = structlog.get_logger(__name__)


def home_of(ownership: ShardOwnership, gateway: str, shard: int, at: float) -> str | None:
    """The process that is the home of a shard; our own only while it may act at `at`. None: there is none."""
    if ownership.mine(shard, at) is not None:
        return gateway
    owner = ownership.owner(shard)
    return owner.gateway if owner is not None and owner.gateway != gateway else None


class Router(Protocol):
    """Brings items to the other side, wherever it is."""

    def to_home(self, shard: int, item: HomeItem, at: float) -> bool:
        """To the home of a shard; False: there is none."""
        ...

    def to_origin(self, gateway: str, item: OriginItem) -> None:
        """To the calls of a gateway."""
        ...

    def settle(self, item: Settle, epoch: int) -> None:
        """To the home that acts under `epoch`, for a call that its origin has forgotten; 0: to all homes here."""
        ...


class Outbox:
    """Items for other gateways. A lost message does no harm: origins and agents repeat them."""

    def __init__(self, port: DriverPort, region: str) -> None:
        self._port = port
        self._region = region
        self.peers = PeerLinks(port)
        self.peers.resend = self._add_again
        self._to_home: defaultdict[tuple[str, int], list[HomeItem]] = defaultdict(list)
        self._granted: defaultdict[str, list[Grant]] = defaultdict(list)
        self._dropped: defaultdict[str, list[Dropped]] = defaultdict(list)

    def add_for_home(self, gateway: str, shard: int, item: HomeItem) -> None:
        """An item for the home of a shard."""
        self._to_home[gateway, shard].append(item)
        self._port.wake_at(SOON)

    def add_grant(self, grant: Grant) -> None:
        """A grant for its origin."""
        self._granted[grant.gateway].append(grant)
        self._port.wake_at(SOON)

    def add_dropped(self, dropped: Dropped) -> None:
        """A drop for its origin."""
        self._dropped[dropped.gateway].append(dropped)
        self._port.wake_at(SOON)

    def flush(self) -> None:
        """Send all items, at the end of a turn."""
        for (gateway, shard), items in self._to_home.items():
            self._send(gateway, subjects.to_home(self._region, gateway), items, partial(_to_home, shard))
        for gateway, grants in self._granted.items():
            self._send(gateway, subjects.to_origin(self._region, gateway), grants, lambda some: ToOrigin(granted=some))
        for gateway, dropped in self._dropped.items():
            self._send(gateway, subjects.to_origin(self._region, gateway), dropped, lambda some: ToOrigin(dropped=some))
        self._to_home.clear()
        self._granted.clear()
        self._dropped.clear()

    def _add_again(self, gateway: str, messages: list[Message]) -> None:
        """Of a link that has ended the other gateway may not have got these."""
        for message in messages:
            if isinstance(message, ToHome):
                for item in message.items:
                    self.add_for_home(gateway, message.shard, item)
            elif isinstance(message, ToOrigin):
                for grant in message.granted:
                    self.add_grant(grant)
                for dropped in message.dropped:
                    self.add_dropped(dropped)

    def _send(self, gateway: str, subject: str, items: list[T], message_of: Callable[[tuple[T, ...]], Message]) -> None:
        todo = [items[start : start + ITEMS] for start in range(0, len(items), ITEMS)]
        todo.reverse()
        while todo:
            some = todo.pop()
            try:
                self.peers.send(gateway, subject, message_of(tuple(some)))
            except MessageTooLarge as error:
                # An error that a home tells to all that waited has a traceback, as large as its tenant made it.
                if len(some) > 1:
                    todo += [some[len(some) // 2 :], some[: len(some) // 2]]
                else:
                    log.warning("an item is too large", subject=subject, error=str(error))
            except BusDown as error:
                log.debug("items were not sent", subject=subject, error=str(error))
                return


class ShardRouter:
    """The real `Router` of one gateway."""

    def __init__(self, port: DriverPort, ownership: ShardOwnership, outbox: Outbox, *, gateway: str) -> None:
        self._port = port
        self._ownership = ownership
        self._outbox = outbox
        self._gateway = gateway
        self.home_inbox: deque[tuple[int | None, HomeItem]] = deque()
        """Items with their shards; None: for all homes here."""
        self.origin_inbox: deque[OriginItem] = deque()
        self._early: deque[tuple[Settle, int]] = deque(maxlen=EARLY)
        """With the epochs of the homes: a grant may be here before it is known whose it is."""

    def to_home(self, shard: int, item: HomeItem, at: float) -> bool:
        home = home_of(self._ownership, self._gateway, shard, at)
        if home is None:
            return False  # as soon as there is one, its origin repeats itself
        if home == self._gateway:
            self.home_inbox.append((shard, item))
            self._port.wake_at(SOON)
        else:
            self._outbox.add_for_home(home, shard, item)
        return True

    def to_origin(self, gateway: str, item: OriginItem) -> None:
        if gateway == self._gateway:
            self.origin_inbox.append(item)
            self._port.wake_at(SOON)
        elif isinstance(item, Grant):
            self._outbox.add_grant(item)
        else:
            self._outbox.add_dropped(item)

    def settle(self, item: Settle, epoch: int) -> None:
        # Of a grant that no agent has seen nobody else can tell; else a home elsewhere hears from the agent's credits.
        found = self._ownership.home_under(epoch) if epoch else None
        if found is not None and found[1] != self._gateway:
            self._outbox.add_for_home(found[1], found[0], item)
        else:
            if found is None and epoch:
                self._early.append((item, epoch))
            self.home_inbox.append((None, item))
            self._port.wake_at(SOON)

    def homes_changed(self) -> None:
        """Tell homes that are known by now of the grants that were declined before they were."""
        early = list(self._early)
        self._early.clear()
        for item, epoch in early:
            if self._ownership.home_under(epoch) is None:
                self._early.append((item, epoch))
            else:
                self.settle(item, epoch)


def _to_home(shard: int, items: tuple[HomeItem, ...]) -> ToHome:
    return ToHome(shard=shard, items=items)

"""Mail between gateways: what comes up in one turn for one of them is one message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import Grant, Message
from pilotlight_core.model.messages.scheduling import Dropped, HomeItem, ToHome, ToOrigin
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort

T = TypeVar("T")
ITEMS = 256
"""In one message, if they fit: usually some 100 KiB."""

log = structlog.get_logger(__name__)


class Outbox:
    """Letters for other gateways. One that is lost is no harm: origins repeat themselves, agents tell homes again."""

    def __init__(self, port: DriverPort, region: str) -> None:
        self._port = port
        self._region = region
        self._to_home: defaultdict[tuple[str, int], list[HomeItem]] = defaultdict(list)
        self._granted: defaultdict[str, list[Grant]] = defaultdict(list)
        self._dropped: defaultdict[str, list[Dropped]] = defaultdict(list)

    def to_home(self, gateway: str, shard: int, item: HomeItem) -> None:
        """Send something to the gateway that is the home of a shard."""
        self._to_home[gateway, shard].append(item)
        self._port.wake_at(SOON)

    def grant(self, grant: Grant) -> None:
        """Send a grant to its origin."""
        self._granted[grant.gateway].append(grant)
        self._port.wake_at(SOON)

    def drop(self, dropped: Dropped) -> None:
        """Tell an origin that its call is out of the queue."""
        self._dropped[dropped.gateway].append(dropped)
        self._port.wake_at(SOON)

    def flush(self) -> None:
        """Send what there is: at the end of each turn."""
        for (gateway, shard), items in self._to_home.items():
            self._send(subjects.to_home(self._region, gateway), items, partial(_to_home, shard))
        for gateway, grants in self._granted.items():
            self._send(subjects.to_origin(self._region, gateway), grants, lambda some: ToOrigin(granted=some))
        for gateway, dropped in self._dropped.items():
            self._send(subjects.to_origin(self._region, gateway), dropped, lambda some: ToOrigin(dropped=some))
        self._to_home.clear()
        self._granted.clear()
        self._dropped.clear()

    def _send(self, subject: str, items: list[T], message_of: Callable[[tuple[T, ...]], Message]) -> None:
        todo = [items[start : start + ITEMS] for start in range(0, len(items), ITEMS)]
        todo.reverse()
        while todo:
            some = todo.pop()
            try:
                self._port.send(subject, message_of(tuple(some)))
            except MessageTooLarge as error:
                # An error that a home tells to all that waited has a traceback, as large as its tenant made it.
                if len(some) > 1:
                    todo += [some[len(some) // 2 :], some[: len(some) // 2]]
                else:
                    log.warning("a letter is too large", subject=subject, error=str(error))
            except BusDown as error:
                log.debug("mail was not sent", subject=subject, error=str(error))
                return


def _to_home(shard: int, items: tuple[HomeItem, ...]) -> ToHome:
    return ToHome(shard=shard, items=items)

"""Credits of agents whose reports do not say which containers have ended; those of others are not read.

Each container's credit comes once a second, and nearly all of them say nothing new to a controller.
"""

from __future__ import annotations

import contextlib

from pilotlight_core.bus import Bus, BusError, Handler
from pilotlight_core.bus.client import Subscription
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import NodeReport


class OldAgents:
    """Subscribes to the credits of such agents, as long as their nodes have them."""

    def __init__(self, bus: Bus, handler: Handler, *, region: str) -> None:
        self._bus = bus
        self._handler = handler
        self._region = region
        self._heard: dict[str, Subscription | None] = {}
        """By node; None: it is being subscribed or ended."""

    def on_report(self, report: NodeReport) -> None:
        """Listen to the node's credits, or listen no more."""
        node = report.node
        if report.ended is None and not report.stopped and node not in self._heard:
            self._heard[node] = None
            self._bus.spawn(self._subscribe(node))
        elif (report.ended is not None or report.stopped) and (heard := self._heard.get(node)) is not None:
            self._heard[node] = None
            self._bus.spawn(self._unsubscribe(node, heard))

    async def _subscribe(self, node: str) -> None:
        try:
            self._heard[node] = await self._bus.subscribe(subjects.credit(self._region, node), self._handler)
        except BusError:
            del self._heard[node]  # the next report tries again

    async def _unsubscribe(self, node: str, heard: Subscription) -> None:
        with contextlib.suppress(BusError):
            await heard.unsubscribe()
        del self._heard[node]

"""Closes the connections of nodes whose identity has ended: revoked, expired, or given to another host.

Every gateway does, so that it is done while any is there. A connection that was let in just before the end may become
one of the server's only after it was asked for its connections: so it is asked again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import structlog

from pilotlight_core.bus import BusError, bus_users
from pilotlight_core.model.records.nodes import NODE_KEYS, NodeRecord
from pilotlight_gateway.tenancy.registry_port import NodeRegistry

AGAIN_S = (0.0, 0.75, 1.5)
"""The waits before each closing of who is out; with the half seconds in which servers answer, four seconds."""
EXPIRED_EVERY_S = 30.0
LATELY_S = 86_400.0
"""What ended before that was closed by some gateway when this one starts, and has not come back."""
AT_ONCE = 16
"""Nodes whose connections are asked for at a time."""

log = structlog.get_logger(__name__)


class ConnectionCloser(Protocol):
    """Who can close what a user of the bus has open."""

    async def close(self, user: str) -> int:
        """Close it; how many connections. Raises BusError."""
        ...


def ends_connections(before: NodeRecord | None, now: NodeRecord | None, at: float) -> bool:
    """Whether what is open of a node is of an identity that has ended."""
    if now is None or not now.joined:
        return before is not None and before.joined
    return bool(now.why_out(at)) or (before is not None and before.joined and before.joined_at != now.joined_at)


class NodeEviction:
    """Watches the records while `running` is open. `wall`: unix seconds."""

    def __init__(
        self, registry: NodeRegistry, connections: ConnectionCloser, wall: Callable[[], float] = time.time
    ) -> None:
        self._registry = registry
        self._connections = connections
        self._wall = wall
        self._known: dict[str, NodeRecord] = {}
        self._due: asyncio.Queue[str] = asyncio.Queue()
        self._asking = asyncio.Semaphore(AT_ONCE)
        self._out: set[str] = set()
        """Whose connections are being closed."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch until the block ends."""
        async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
            self._registry.on_change.append(self._changed)
            stack.callback(self._registry.on_change.remove, self._changed)
            self._known = {record.node: record for record in self._registry.nodes()}
            self._find_ended(LATELY_S)
            loops = [group.create_task(self._close_due(group)), group.create_task(self._expire())]
            try:
                yield
            finally:
                for loop in loops:
                    loop.cancel()

    def _changed(self, key: str, record: Any) -> None:
        if not key.startswith(NODE_KEYS):
            return
        node = key.removeprefix(NODE_KEYS)
        before = self._known.pop(node, None)
        if record is not None:
            self._known[node] = record
        if ends_connections(before, record, self._wall()):
            self._due.put_nowait(node)

    def _find_ended(self, within_s: float) -> None:
        at = self._wall()
        for node, record in self._known.items():
            if record.joined and record.why_out(at) and at - (record.revoked_at or record.expires_at) <= within_s:
                self._due.put_nowait(node)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRED_EVERY_S)
            self._find_ended(2 * EXPIRED_EVERY_S)

    async def _close_due(self, group: asyncio.TaskGroup) -> None:
        while True:
            node = await self._due.get()
            if node not in self._out:
                self._out.add(node)
                group.create_task(self._close(node))

    async def _close(self, node: str) -> None:
        try:
            for wait in AGAIN_S:
                await asyncio.sleep(wait)
                if wait and self._is_in(node):  # it has joined anew, and what it opened is of its present identity
                    return
                await self._close_once(node)
        finally:
            self._out.discard(node)

    def _is_in(self, node: str) -> bool:
        record = self._known.get(node)
        return record is not None and not record.why_out(self._wall())

    async def _close_once(self, node: str) -> None:
        try:
            async with self._asking:
                closed = await self._connections.close(bus_users.agent(node).name)
            if closed:
                log.warning("connections of a node that is out were closed", node=node, connections=closed)
        except BusError as error:
            log.error("connections of a node that is out could not be closed", node=node, error=str(error))

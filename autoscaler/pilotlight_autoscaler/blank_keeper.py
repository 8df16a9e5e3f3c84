"""Says to nodes what to do ahead of binds, while its controller leads, beside passes, which must not wait for it.

How many blanks each keeps, and which versions, just deployed, some fetch.

What a node was told last is in its report, so a lost command is said again, and a new leader has nothing to remember.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from heapq import nsmallest

import structlog

from pilotlight_autoscaler.deployed_needs import DeployedNeeds
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.nodes.blank_sizes import BlankNeed, StartableFunctions, blank_sizes, fits_on, need_of
from pilotlight_core.bus import Bus, BusError, Lease
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import BlankSize, KeepBlanks, NodeReport, Prefetch
from pilotlight_core.model.records.nodes import NodeState
from pilotlight_core.model.spec import VersionRecord

LOOK_EVERY_S = 2.0
SOON_S = 0.02
"""After a deploy, which others may follow."""
AGAIN_S = 2.0
"""A node's report shows within a second what it was told."""
NODES_AT_ONCE = 32
LOOKED_AT_ONCE = 8
"""Nodes of which the blanks are worked out, between two turns of others: a millisecond or two."""
PREFETCHED_ON = 3
"""Nodes that fetch a version ahead."""
ANSWER_WITHIN_S = 2.0

log = structlog.get_logger()


class BlankKeeper:
    def __init__(self, bus: Bus, registry: Registry, lease: Lease, world: World, *, region: str) -> None:
        self._bus = bus
        self._lease = lease
        self._world = world
        self._region = region
        self._registry = registry
        self._deployed = DeployedNeeds(registry)
        self._needs: dict[BlankNeed, StartableFunctions] = {}
        self._settled: dict[str, tuple[str, int]] = {}
        """Node -> instance and revision of a report by which it keeps what it should."""
        self._told: dict[str, tuple[tuple[BlankSize, ...], float]] = {}
        """Node -> what it was told last, and when."""
        self._last = ""
        """The node that was told last: those after it have their turn, whatever others do with what they are told."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It keeps nodes informed until the block ends."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._run())
            try:
                yield
            finally:
                task.cancel()
                self._deployed.close()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._deployed.stirred.wait()
                await asyncio.sleep(SOON_S)
            except TimeoutError:
                pass
            try:
                await self._deployed.read_some()
                if self._lease.valid(time.monotonic()):
                    await self._notify_nodes(time.monotonic())
            except BusError as error:
                log.warning("nodes are told later how many blanks they keep", error=repr(error))
                await asyncio.sleep(LOOK_EVERY_S)

    async def _notify_nodes(self, at: float) -> None:
        scaling = self._world.scaling
        ahead: list[tuple[str, Prefetch]] = []
        for record in self._deployed.take_fresh():
            ahead += self._prefetches(record)
            await asyncio.sleep(0)  # it asks all nodes
        needs = self._deployed.counted(scaling.ahead, scaling.functions())
        if needs != self._needs:
            self._needs = needs
            self._settled.clear()
        due = await self._due(at)
        for node, command in due:
            self._told[node], self._last = (command.sizes, at), node
        commands: list[tuple[str, KeepBlanks | Prefetch]] = [*due, *ahead]
        async with asyncio.TaskGroup() as group:
            for node, sent in commands:
                group.create_task(self._send(node, sent))

    def _prefetches(self, record: VersionRecord) -> Iterator[tuple[str, Prefetch]]:
        """For the first few nodes, those with a blank for it first: it starts there, if it is called soon."""
        need, base = need_of(record), record.base
        nodes = (node for node in self._world.nodes.values() if self._may_fetch(node) and fits_on(node, need))
        for node in nsmallest(PREFETCHED_ON, nodes, key=lambda node: (not node.blanks.get(base), node.node)):
            sent = Prefetch(
                epoch=self._lease.epoch, version=record.id, tenant=record.tenant, manifest_sha256=record.manifest_sha256
            )
            yield node.node, sent

    def _may_fetch(self, node: NodeReport) -> bool:
        """Whether it may hear of versions that are not bound there.

        Not if it has joined by a token: it reads nothing of the store without a binding, nor is it to learn more.
        """
        known = self._registry.node_nowait(node.node)
        return node.blank_sizes is not None and (known is None or (not known.joined and known.state is NodeState.OPEN))

    async def _due(self, at: float) -> list[tuple[str, KeepBlanks]]:
        """The first nodes that are to be told something. Others have turns in between: there may be much to sum up."""
        nodes, due, looked = self._world.nodes, list[tuple[str, KeepBlanks]](), 0
        self._settled = {node: known for node, known in self._settled.items() if node in nodes}
        self._told = {node: (sizes, told_at) for node, (sizes, told_at) in self._told.items() if at - told_at < AGAIN_S}
        names = list(nodes)
        first = names.index(self._last) + 1 if self._last in nodes else 0
        for node in (*names[first:], *names[:first]):
            report = nodes.get(node)
            if report is None or report.blank_sizes is None or report.stopped:
                continue
            if self._settled.get(node) == (report.instance, report.revision):
                continue
            command = self._command(report)
            if command.sizes == report.blank_sizes:
                self._settled[node] = (report.instance, report.revision)
            elif node not in self._told or self._told[node][0] != command.sizes:
                due.append((node, command))
                if len(due) == NODES_AT_ONCE:
                    break
            looked += 1
            if looked % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return due

    def _command(self, report: NodeReport) -> KeepBlanks:
        return KeepBlanks(epoch=self._lease.epoch, sizes=blank_sizes(report, self._needs))

    async def _send(self, node: str, command: KeepBlanks | Prefetch) -> None:
        try:
            await self._bus.request(subjects.command(self._region, node), command, ANSWER_WITHIN_S)
        except BusError as error:
            log.warning(
                "a node was not told what to do ahead", node=node, what=type(command).__name__, error=repr(error)
            )

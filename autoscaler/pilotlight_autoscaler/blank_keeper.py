"""Says to each node how many blanks it keeps, while its controller leads: beside passes, which must not wait for it.

What a node was told last is in its report, so a lost command is said again, and a new leader has nothing to remember.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import structlog

from pilotlight_autoscaler.deployed_needs import DeployedNeeds
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.blank_sizes import BlankNeed, StartableFunctions, blank_sizes
from pilotlight_core.bus import Bus, BusError, Lease
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.blank_messages import BlankSize, KeepBlanks
from pilotlight_core.model.messages.node_messages import NodeReport

LOOK_EVERY_S = 2.0
SOON_S = 0.1
"""After a deploy, which others may follow."""
AGAIN_S = 2.0
"""A node's report shows within a second what it was told."""
NODES_AT_ONCE = 32
ANSWER_WITHIN_S = 2.0

log = structlog.get_logger()


class BlankKeeper:
    def __init__(self, bus: Bus, registry: Registry, lease: Lease, world: World, *, region: str) -> None:
        self._bus = bus
        self._lease = lease
        self._world = world
        self._region = region
        self._deployed = DeployedNeeds(registry)
        self._needs: dict[BlankNeed, StartableFunctions] = {}
        self._settled: dict[str, tuple[str, int]] = {}
        """Node -> instance and revision of a report by which it keeps what it should."""
        self._told: dict[str, tuple[tuple[BlankSize, ...], float]] = {}
        """Node -> what it was told last, and when."""

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
                    await self._tell(time.monotonic())
            except BusError as error:
                log.warning("nodes are told later how many blanks they keep", error=repr(error))

    async def _tell(self, at: float) -> None:
        scaling = self._world.scaling
        needs = self._deployed.counted(scaling.ahead, lambda function: scaling.get(function) is not None)
        if needs != self._needs:
            self._needs = needs
            self._settled.clear()
        commands = [(node, command) for node, command in self._due(at)][:NODES_AT_ONCE]
        async with asyncio.TaskGroup() as group:
            for node, command in commands:
                group.create_task(self._send(node, command, at))

    def _due(self, at: float) -> Iterator[tuple[str, KeepBlanks]]:
        nodes = self._world.nodes
        self._settled = {node: known for node, known in self._settled.items() if node in nodes}
        self._told = {node: (sizes, told_at) for node, (sizes, told_at) in self._told.items() if at - told_at < AGAIN_S}
        for node, report in nodes.items():
            if report.blank_sizes is None or report.stopped:
                continue
            if self._settled.get(node) == (report.instance, report.revision):
                continue
            command = self._command(report)
            if command.sizes == report.blank_sizes:
                self._settled[node] = (report.instance, report.revision)
            elif node not in self._told or self._told[node][0] != command.sizes:
                yield node, command

    def _command(self, report: NodeReport) -> KeepBlanks:
        return KeepBlanks(epoch=self._lease.epoch, sizes=blank_sizes(report, self._needs))

    async def _send(self, node: str, command: KeepBlanks, at: float) -> None:
        self._told[node] = (command.sizes, at)
        try:
            await self._bus.request(subjects.command(self._region, node), command, ANSWER_WITHIN_S)
        except BusError as error:
            log.warning("a node was not told how many blanks it keeps", node=node, error=repr(error))

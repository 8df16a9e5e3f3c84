"""A keeper of pools over a world, records and a cloud in memory, in virtual time; its controller may die anytime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pilotlight_autoscaler.observations.spot_zones import SpotZones
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.pools.node_pool import PoolMachine
from pilotlight_autoscaler.pools.pool_keeper import BATCH_S, SETTLE_S, PoolKeeper
from pilotlight_autoscaler.pools.providers.simulated_pool import SimulatedPool
from pilotlight_core.model.messages.node_messages import ContainerReport, NodeReport
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_placement.asks.ask import Ask
from tests.builders.nodes import cpu_slot, gpu_device, node_report

GPU = Ask(function="acme:shop.greet", tenant="acme", gpu=(GpuAsk("L4"),))
BEGAN = 1_000.0


@dataclass
class FakeLease:
    epoch: int = 1
    is_valid: bool = True

    def valid(self, _: float) -> bool:
        return self.is_valid


@dataclass
class PoolWorld:
    """`answers`: whether agents of new machines report."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    cloud: SimulatedPool = field(default_factory=SimulatedPool)
    now: float = BEGAN
    answers: bool = True
    containers: dict[str, tuple[ContainerReport, ...]] = field(default_factory=dict)
    """By node."""
    seq: int = 0

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new controller, which knows what is on record and no more."""
        self.world, self.spot_zones = World(), SpotZones()
        self.lease = FakeLease(epoch=getattr(self, "lease", FakeLease(epoch=0)).epoch + 1)
        self.keeper = PoolKeeper(
            self.world, self.registry, self.lease, self.cloud.open, region="local", zone="a", clock=lambda: self.now,
            wall=lambda: self.now, spot_zones=self.spot_zones,
        )  # fmt: skip

    def add(self, record: PoolRecord) -> None:
        self.registry.pool_records[record.name] = record

    def miss(self, *versions: str, ask: Ask = GPU) -> None:
        """These have no place."""
        self.world.refusals.note(versions, self.now, room=False, ask=ask)

    def launches(self) -> list[LaunchRecord]:
        return list(self.registry.launches())

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        """A controller leads until the end of the block, and dies there with whatever it was at."""
        try:
            async with asyncio.TaskGroup() as self.keeper.tasks:
                yield
                raise _Died
        except* _Died:
            pass

    async def turn(self, seconds: float = 0.5) -> None:
        """Time passes, agents report, and the keeper looks once."""
        self.now += seconds
        self._report()
        await self.keeper.tick()
        for _ in range(8):
            await asyncio.sleep(0)
        self._report()

    async def settle(self, seconds: float = SETTLE_S + BATCH_S + 1.0) -> None:
        """Turns for so long."""
        for _ in range(int(seconds / 0.5)):
            await self.turn()

    def _report(self) -> None:
        self.seq += 1
        here = {machine.node for machine in self.cloud.machines.values()} if self.answers else set[str]()
        for machine in self.cloud.machines.values():
            if machine.node in here:
                self.world.on_report(self._report_of(machine), self.now)
        for node in self.world.nodes.keys() - here:
            self.world.on_report(node_report(node, self.seq, stopped=True), self.now)
        self.world.forget(self.now)

    def _report_of(self, machine: PoolMachine) -> NodeReport:
        return node_report(
            machine.node, self.seq, zone=machine.zone, slices=(cpu_slot(),), devices=(gpu_device(kind="L4", gib=24),),
            containers=self.containers.get(machine.node, ()), pool="l4",
        )  # fmt: skip


class _Died(Exception):
    pass

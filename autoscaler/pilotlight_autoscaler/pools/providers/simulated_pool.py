"""Machines in memory, for tests and simulations: scripted by its fields, and it starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from pilotlight_autoscaler.pools.node_pool import LaunchOrder, PoolMachine, PoolNotice
from pilotlight_core.model.records.pools import PoolRecord


@dataclass(kw_only=True)
class SimulatedPool:
    """The cloud of all pools, which outlives its controllers. `on_launch` starts what stands for an agent."""

    machines: dict[str, PoolMachine] = field(default_factory=dict)
    """By launch."""
    errors: list[Exception] = field(default_factory=list)
    """What the next launches raise, in their order."""
    crash_after: int | None = None
    """After so many more launches the answer to one is lost: its controller dies before it hears of it."""
    to_tell: list[PoolNotice] = field(default_factory=list)
    orders: list[LaunchOrder] = field(default_factory=list)
    on_launch: Callable[[PoolMachine], None] = lambda _: None
    on_end: Callable[[PoolMachine], None] = lambda _: None
    _pools: dict[str, str] = field(default_factory=dict)
    """Of launches."""
    _numbers: Iterator[int] = field(default_factory=count)

    def open(self, record: PoolRecord) -> SimulatedPoolView:
        """An `OpenPool`."""
        return SimulatedPoolView(self, record.name)

    def of(self, pool: str) -> list[PoolMachine]:
        return [each for launch, each in self.machines.items() if self._pools.get(launch) == pool]

    def add(self, order: LaunchOrder) -> PoolMachine:
        """Launch it, unless it was launched before."""
        self.orders.append(order)
        launch = order.launch
        if (known := self.machines.get(launch.id)) is not None:
            return known
        if self.errors:
            raise self.errors.pop(0)
        machine = PoolMachine(
            launch=launch.id, provider_id=f"i-{next(self._numbers)}", node=launch.node, type=order.types[0],
            zone=launch.zone,
        )  # fmt: skip
        self.machines[launch.id] = machine
        self._pools[launch.id] = launch.pool
        self.on_launch(machine)
        return machine

    def remove(self, launch: str) -> None:
        """The machine is gone."""
        if (machine := self.machines.pop(launch, None)) is not None:
            self.on_end(machine)


class LostAnswer(BaseException):
    """The controller died while it waited for an answer: nothing catches that."""


class SimulatedPoolView:
    """One pool of a simulated cloud."""

    def __init__(self, cloud: SimulatedPool, pool: str) -> None:
        self._cloud = cloud
        self._pool = pool

    async def list_machines(self) -> Sequence[PoolMachine]:
        return self._cloud.of(self._pool)

    async def launch(self, order: LaunchOrder) -> PoolMachine:
        machine = self._cloud.add(order)
        if self._cloud.crash_after is not None:
            self._cloud.crash_after -= 1
            if self._cloud.crash_after <= 0:
                self._cloud.crash_after = None
                raise LostAnswer
        return machine

    async def terminate(self, machine: PoolMachine) -> None:
        self._cloud.remove(machine.launch)

    async def notices(self) -> Sequence[PoolNotice]:
        told, self._cloud.to_tell = self._cloud.to_tell, []
        return told

    async def aclose(self) -> None:
        """There is nothing to close."""

"""What the money of a call costs its gateway, from the question to the settlement, where the home of its limits is.

The product's own code: worst case, reservation at the home, what it cost, settlement; a call with one hard budget and
64 in flight. Each call is timed in place and the middle one counts, so that a busy machine may interrupt some.

    money_us        with warm caches
    money_cold_us   when other data has gone through the processor's caches before each step, as the rest of a call does
    reserve_us, settle_us   their parts, warm; settle_us less what it takes without money
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import report
from benchmarks.gateway_path import BUDGET, FUNCTION, GATEWAY, REGION, TENANT, KeptBudgets, MemoryBus, OwnLease
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_admission import Admission, settle_admission
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limiter import HomeLimiter
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.world import World, function

IN_FLIGHT = 64
CALLS, QUICK_CALLS = 40_000, 4_000
EVICTED = 2**19
"""Bytes that are copied before each step that is to be cold: as much again is read, more than a core's own caches."""
SPENT = (Spent(ns=1_000_000, ppm=1_000_000, price="cpu"),)


class MoneyPath:
    """Calls of one tenant, without anything of them but their money."""

    def __init__(self, limits: CallLimits, world: World, call: PreparedCall) -> None:
        self._limits = limits
        self._world = world
        self._call = call
        self._policy = limits.policy(TENANT, call.version)
        self._running: deque[Admission] = deque()
        self._swept, self._other = bytearray(EVICTED), bytes(EVICTED)

    def step(self, *, has_money: bool, is_cold: bool) -> tuple[int, int]:
        """Let one call in, and end the oldest; nanoseconds of both."""
        first = Admission(TENANT, FUNCTION, self._policy)
        if is_cold:
            self._swept[:] = self._other
        begun = time.perf_counter_ns()
        if has_money and not self._limits.reserve_now(first, self._call):
            raise RuntimeError("the home does not decide at once")
        reserved = time.perf_counter_ns() - begun
        self._running.append(first)
        if len(self._running) <= IN_FLIGHT:
            return reserved, 0
        oldest, usage = self._running.popleft(), CallUsage()
        usage.count(1.0, 1, 0, 0, SPENT)
        if is_cold:
            self._swept[:] = self._other
        begun = time.perf_counter_ns()
        settle_admission(usage, oldest, self._world.services.costs, self._call.version.id, self._limits.prices)
        return reserved, time.perf_counter_ns() - begun

    def median_us(self, calls: int, *, has_money: bool, is_cold: bool = False) -> tuple[float, float]:
        """Microseconds of a reservation and of a settlement."""
        steps = [self.step(has_money=has_money, is_cold=is_cold) for _ in range(calls)][2 * IN_FLIGHT :]
        reserved, settled = zip(*steps, strict=True)
        return report.median(reserved) / 1e3, report.median(settled) / 1e3


async def measure(folder: Path, calls: int) -> dict[str, float]:
    """The figures."""
    bus: Any = MemoryBus()
    world = World(folder, MemoryRegistry())
    registry: Any = world.services.registry
    world.registry = registry
    (version,) = world.deploy(function(), tenant=TENANT)
    table = ShardTable(GATEWAY, OwnLease())
    table.acting = dict.fromkeys(range(subjects.SHARDS), 1)
    table.see_owners([ShardOwner(GATEWAY, 1)] * subjects.SHARDS)
    budgets = KeptBudgets(registry)
    limiter = HomeLimiter(
        bus, table, LimitPolicies(registry.limits, registry.budgets), region=REGION, gateway=GATEWAY,
        budgets=budgets.home,
    )  # fmt: skip
    limits = CallLimits(limiter, world.services.costs, world.services.recorder, world.services.prices)
    limits.prices._clock = time.monotonic  # noqa: SLF001 - that of a gateway
    at = time.monotonic()
    call = PreparedCall(
        call_id="call_a_1_b", client_id=None, tenant=TENANT, version=version, method=version.spec.methods[0], input=b"",
        priority=Priority.STANDARD, deadline_at=at + version.spec.timeout, arrived_at=at, stream=False, key="key_1",
    )  # fmt: skip
    async with limiter:
        await budgets.set((BUDGET,))
        path = MoneyPath(limits, world, call)
        cold = calls // 8
        found = {
            "warm": path.median_us(calls, has_money=True),
            "cold": path.median_us(cold, has_money=True, is_cold=True),
        }
        budgets.keep()
        path.median_us(2 * IN_FLIGHT + 1, has_money=False)
        without = {
            "warm": path.median_us(calls, has_money=False),
            "cold": path.median_us(cold, has_money=False, is_cold=True),
        }
    world.ledger.close()
    parts = {
        kind: (found[kind][0] - without[kind][0], found[kind][1] - without[kind][1]) for kind in ("warm", "cold")
    }  # fmt: skip
    return {
        "money_us": sum(parts["warm"]),
        "money_cold_us": sum(parts["cold"]),
        "reserve_us": parts["warm"][0],
        "settle_us": parts["warm"][1],
        "reserve_cold_us": parts["cold"][0],
        "settle_cold_us": parts["cold"][1],
    }


def main() -> None:
    """Measure, print the table and the figures."""
    options = report.parsed(report.arguments("money_path", __doc__ or ""))
    with TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), QUICK_CALLS if options.quick else CALLS))
    report.table("The money of a call at its gateway", ("what", "µs"), list(figures.items()))
    report.finish("money_path", figures)


if __name__ == "__main__":
    main()

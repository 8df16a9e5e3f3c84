"""A call of a rollout that hangs is told of once, before it ends; nothing else is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import BusError
from pilotlight_core.model.messages.call_messages import Started
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutState
from pilotlight_core.model.rollouts.split import Side
from pilotlight_gateway.calls.call_pipeline import CallPipeline
from pilotlight_gateway.calls.live_calls import WaitedCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.judging.usual.slow_limits import FunctionSlowLimits, SlowLimits
from pilotlight_gateway.judging.usual.usual_amounts import UsualAmount
from pilotlight_gateway.rollouts.compared_sink import ComparedSink
from pilotlight_gateway.rollouts.running_calls import LATE_S, RunningCalls
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.calls import grant, prepared_call
from tests.gateway.calls.test_call_pipeline import begun, go_on, result
from tests.gateway.calls.test_live_calls import Waiter
from tests.gateway.calls.test_origins import Site, ended
from tests.gateway.rollouts.kept_rollout import record_of, rollout

CANARY = Side("rol_1", Arm.CANARY, 0.5, "")
SLOW_MS = 1_000.0
LIMITS = SlowLimits(
    "rol_1",
    {"fn": FunctionSlowLimits(0.0, {" h100": UsualAmount(level=6.907755278982137, slope=0.0, spread=1.0, high=0.0)})},
)
"""A second."""
WARM = {"nth": 50, "price": "h100"}


class Bench:
    """The origins of a gateway, and what it tells the judge of."""

    def __init__(self, limits: SlowLimits | None = LIMITS) -> None:
        self.site = Site()
        self.told: list[ComparedCall] = []
        self.reads = 0
        self.limits = limits
        self.error: Exception | None = None
        registry = MemoryRegistry()
        one = rollout(state=RolloutState.RAMP, share=5_000, control={"fn": "a"}, canary={"fn": "b"})
        registry.rollout_records["acme", "app"] = record_of(one)
        sink = ComparedSink(registry, self.note, wall=lambda: 7.0)
        self.running = RunningCalls(
            find=self.site.origins.find, compared=sink.running_call, read=self.read, note=self.note,
            clock=self.site.port.clock, wall=lambda: 9.0,
        )  # fmt: skip
        self.site.origins.on_begun = self.running.begun

    def note(self, _tenant: str, _app: str, call: ComparedCall) -> None:
        self.told.append(call)

    async def read(self, _tenant: str, _app: str) -> SlowLimits | None:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.limits

    def begin(
        self,
        side: Side | None = CANARY,
        started: dict[str, Any] | None = None,
        pipeline: CallPipeline | None = None,
        **more: Any,
    ) -> WaitedCall:
        """A call that its container has begun."""
        at, site = self.site.port.at, self.site
        options: dict[str, Any] = {"arrived_at": at, "deadline_at": at + 600.0, "side": side} | more
        call = prepared_call(**options)
        live = WaitedCall(call, 0, Origin(call, "gw1", at), site.origins, Waiter())
        live.pipeline = pipeline
        site.origins.begin(live)
        site.router.origin_inbox.append(grant())
        site.turn()
        site.origins.on_frame("n1", Started(call_id="a", grant_number=1, **(WARM if started is None else started)))
        return live

    async def after(self, seconds: float) -> list[ComparedCall]:
        """What was told when so many more have passed."""
        self.site.port.at += seconds
        await self.running.report_slow()
        return self.told


async def test_a_call_that_hangs_is_told_of_once() -> None:
    """When it has surely run for longer than is usual; never again, nor is it remembered."""
    bench = Bench()
    bench.begin()
    assert await bench.after(1.0 + LATE_S - 0.001) == []
    (told,) = await bench.after(0.1)
    assert (told.is_running, told.arm, told.rho, told.at, told.container) == (True, Arm.CANARY, 0.5, 9.0, "c1")
    assert told.execute_ms == pytest.approx(1_099.0)
    assert (told.nth_call, told.gpu_type, told.code) == (50, "h100", "")
    assert len(await bench.after(60.0)) == 1
    assert not len(bench.running)


async def test_a_call_that_has_ended_is_not_told_of() -> None:
    """Nor one that a read of what is usual has outlasted."""
    bench = Bench()
    bench.begin()
    bench.site.origins.on_frame("n1", ended())
    assert await bench.after(5.0) == []
    assert (bench.reads, len(bench.running)) == (0, 0)

    bench = Bench()
    bench.begin()
    read = bench.read

    async def slowly(tenant: str, app: str) -> SlowLimits | None:
        bench.site.origins.on_frame("n1", ended())
        return await read(tenant, app)

    bench.running.read = slowly
    assert await bench.after(5.0) == []


@pytest.mark.parametrize(
    ("side", "started", "more"),
    [
        (None, WARM, {}),
        (CANARY._replace(rho=0.0), WARM, {}),
        (CANARY, WARM, {"shadow": True}),
        (CANARY._replace(rollout="rol_0"), WARM, {}),
        (CANARY, {}, {}),
        (CANARY, WARM | {"nth": 20}, {}),
        (CANARY, WARM | {"price": "cpu"}, {}),
    ],
)
async def test_what_the_judge_would_not_count_is_not_told(
    side: Side | None, started: dict[str, Any], more: dict[str, Any]
) -> None:
    """Calls of no side, not compared, of agents of 0.1, in a container's first calls; shadows."""
    bench = Bench()
    bench.begin(side, started, **more)
    assert await bench.after(60.0) == []


async def test_a_call_of_a_sticky_unit_says_whose_it_is() -> None:
    bench = Bench()
    bench.begin(CANARY._replace(unit="u"))
    (told,) = await bench.after(60.0)
    assert (told.is_running, told.unit) == (True, "u")


@pytest.mark.parametrize(("stages", "cold", "count"), [(0, None, 0), (1, None, 1), (1, {"load": 1.0}, 0), (2, None, 0)])
async def test_of_a_class_with_hooks_its_own_method_is_watched(
    stages: int, cold: dict[str, float] | None, count: int
) -> None:
    """Neither hook is; nor a call for which a hook's container was started, which is compared in nothing at its end."""
    bench = Bench()
    pipeline, _ = begun()
    for _ in range(stages):
        go_on(pipeline, result({}, cold_start=cold))
    bench.begin(pipeline=pipeline)
    assert len(await bench.after(60.0)) == count


async def test_calls_outside_rollouts_cost_nothing() -> None:
    """Their agents say nothing of their starts, and nothing is read or kept."""
    bench = Bench()
    bench.begin(None)
    await bench.after(60.0)
    assert (bench.reads, len(bench.running)) == (0, 0)


async def test_what_is_usual_is_read_once_a_second_and_only_of_long_calls() -> None:
    bench = Bench(SlowLimits("rol_1", {}))
    bench.begin()
    await bench.after(0.1)
    assert bench.reads == 0
    for _ in range(10):
        await bench.after(0.25)
    assert bench.reads == 3


async def test_a_threshold_that_comes_later_counts_from_then() -> None:
    """Also where it could not be read, or was read before."""
    bench = Bench(None)
    bench.begin()
    assert await bench.after(2.0) == []
    bench.error = BusError("away")
    assert await bench.after(2.0) == []
    bench.error, bench.limits = None, replace(LIMITS, rollout="rol_0")
    assert await bench.after(2.0) == []
    bench.limits = LIMITS
    assert len(await bench.after(2.0)) == 1


async def test_they_are_looked_at_while_there_are_some() -> None:
    bench, heard = Bench(), asyncio.Event()

    def note(_tenant: str, _app: str, call: ComparedCall) -> None:
        bench.told.append(call)
        heard.set()

    bench.running.note = note
    looking = asyncio.create_task(bench.running.run())
    bench.begin()
    bench.site.port.at += 5.0
    await asyncio.wait_for(heard.wait(), 20.0)
    looking.cancel()
    assert len(bench.told) == 1

"""Facts are gathered from where they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pilotlight_core.model.limits import EffectiveLimits, Limits
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.messages.scheduling import BreakerReport, Breakers, GatewayLoad, SlowFlowLoad
from pilotlight_core.model.messages.seeing.tallies import JOBS, BatchTally, FunctionTally, HomeTally
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.diagnosis.function_diagnoses import FunctionDiagnoses
from pilotlight_gateway.fleet.curve_trials import CurveService
from pilotlight_gateway.fleet.fleet_inventory import FleetPlacements
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.tally.tally_window import FoundWindows, FunctionWindow
from tests.builders.nodes import container, node_report
from tests.gateway.world import World, function

NOW = 1_000.0
HELLO = "acme:shop.hello"


class FixedWindows:
    """Says that each function had the same calls."""

    def __init__(
        self,
        *functions: str,
        versions: Mapping[str, FunctionTally] | None = None,
        runs: Mapping[str, FunctionTally] | None = None,
    ) -> None:
        tally = FunctionTally(since_ns=int(990e9), until_ns=int(1_000e9), arrivals=40, ended=40)
        self._windows = tuple(
            FunctionWindow(
                function=name, since_ns=int(400e9), until_ns=int(1_000e9), tally=tally, silent=("g2",),
                by_version={(version, ""): each for version, each in (versions or {}).items()}
                | {(version, JOBS): each for version, each in (runs or {}).items()},
                home=HomeTally(seen_s=10.0, ready_s=20.0),
            )
            for name in functions
        )  # fmt: skip

    async def window(self, function: str, minutes: int = 10) -> FunctionWindow:
        return next(each for each in self._windows if each.function == function)

    async def tenant(self, tenant: str, minutes: int = 10) -> FoundWindows:
        return FoundWindows(since_ns=0, until_ns=1, windows=self._windows, gateways=(), silent=())


def diagnoses(world: World, counted: FixedWindows | None = None, **more: Any) -> FunctionDiagnoses:
    return FunctionDiagnoses(
        counted=counted or FixedWindows(HELLO), registry=world.registry,
        placements=FleetPlacements(more.pop("fleet", FleetView()), clock=lambda: NOW),
        curves=CurveService(world.registry), loads=more.pop("loads", tuple), clock=lambda: NOW, wall=lambda: NOW,
    )  # fmt: skip


async def test_what_jobs_take_of_containers_is_a_fact_of_its_own(world: World) -> None:
    """Apart from what calls take, and whatever their latency."""
    version = deployed(world)
    runs = FunctionTally(ended=5, batches={1: BatchTally(calls=5, gpu_ms=3_000.0)})
    found = await diagnoses(world, FixedWindows(HELLO, runs={version.id: runs})).of(version, 10)
    assert (found.window.jobs_busy_s, found.window.busy_s, found.window.completed) == (3.0, None, 40)


def deployed(world: World) -> VersionRecord:
    (version,) = world.deploy(function("hello"))
    return version


async def test_a_window_is_as_long_as_its_calls_were_counted(world: World) -> None:
    """Not since before its first one: a rate would be too low."""
    found = await diagnoses(world).of(deployed(world), 10)

    assert found.window.free_places is None  # no node has told anything
    assert (found.window.seconds, found.window.completed) == (10.0, 40)
    assert (found.window.function, found.window.owner) == ("shop.hello@v1", "acme")
    assert found.silent == ("g2",)


async def test_a_version_is_told_by_its_own_calls(world: World) -> None:
    version = deployed(world)
    own = FunctionTally(since_ns=int(990e9), until_ns=int(1_000e9), arrivals=7, ended=7)
    found = await diagnoses(world, FixedWindows(HELLO, versions={version.id: own})).of(version, 10)

    assert found.window.completed == 7


async def test_containers_slices_and_breakers_are_those_of_nodes(world: World) -> None:
    version, fleet = deployed(world), FleetView()
    cut = SliceReport(id="GPU-1", kind=SliceKind.GPU, device="GPU-1", ppm=1_000_000, price="h100", gpu_type="H100")
    for at, used in ((NOW - 20, 0), (NOW - 1, 5_000)):
        one = container(version=version.id, slice="GPU-1", cpu_ms=used, memory_bytes=2**30)
        fleet.on_report(node_report(seq=int(at), revision=int(at), slices=(cut,), containers=(one,)), at)
    open_one = BreakerReport(version=version.id, state="open", failures=5)
    fleet.on_breakers(Breakers(gateway="g1", reports=(open_one,)), NOW - 1)
    found = (await diagnoses(world, fleet=fleet).of(version, 10)).window

    assert (found.breaker, found.slice, found.guest_cpu_s, found.memory_part) == ("open", "H100", 5.0, 0.5)
    assert found.free_places == 0


async def test_who_is_slowed_down_is_told_by_the_home(world: World) -> None:
    version = deployed(world)
    slow = SlowFlowLoad(
        version=version.id, function=HELLO, tenant="mouse", priority="standard", slowdown=8.0, calls=50,
        neighbour="elephant", held_part=0.1, neighbour_part=0.9, mean_ms=480.0,
    )  # fmt: skip
    load = GatewayLoad(
        gateway="g1", name="g1", requests_per_s=1.0, loop_lag_s=0.0, body_bytes=0, body_bytes_limit=1, slow=(slow,)
    )
    found = (await diagnoses(world, loads=lambda: (load,)).of(version, 10)).window

    assert [(flow.tenant, flow.held_part) for flow in found.flows] == [("mouse", 0.1), ("elephant", 0.9)]


async def test_limits_that_may_be_reached_are_told_with_what_is_set_beside_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = deployed(world)
    set_ones = Limits(requests_per_s=4.0, burst=9.0, concurrency=5, cost_per_s=100.0)
    limits = EffectiveLimits(tenant=set_ones, function=Limits())
    monkeypatch.setattr(world.registry, "limits", lambda *_: limits)
    monkeypatch.setattr(world.registry, "own_limits", lambda *_: set_ones)
    (quota,) = (await diagnoses(world).of(version, 10)).window.quotas

    assert quota.command(9) == "pilotlight quota set acme requests_per_s=9 cost_per_s=100 concurrency=5"


async def test_all_functions_of_a_tenant_that_had_calls_are_diagnosed(world: World) -> None:
    """But not those that are not deployed any more."""
    deployed(world)
    found, left = await diagnoses(world, FixedWindows(HELLO, "acme:shop.former")).of_tenant("acme", 10)

    assert [each.window.function for each in found] == ["shop.hello@v1"]
    assert left == 0

"""The fleet from what a gateway hears: drawn, and asked whether a function could ever fit."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.api.placement_api import FloorInfo
from pilotlight_core.model.devices import MigMode
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import (
    ContainerReport,
    ContainerState,
    HostShare,
    NodeReport,
    SandboxCeilings,
)
from pilotlight_core.model.placing import Placing, Purchase
from pilotlight_core.model.units import GpuAsk
from pilotlight_core.model.versions.manifest_codec import ARTIFACTS, SANDBOX_LIMITS, USAGE_TAGS
from pilotlight_gateway.fleet.fleet_inventory import SURE_AFTER_S, FleetPlacements
from pilotlight_gateway.fleet.fleet_view import REMEMBERED_S, FleetView
from tests.builders.nodes import container, gpu_device, gpu_node
from tests.gateway.world import Clock, World, function

GIB = 2**30


def report(seq: int = 1, node: str = "n1", **more: Any) -> NodeReport:
    """A node with one H100 and a CPU slot."""
    return gpu_node(node, seq, **{"zone": "a", "host": HostShare(cpu_millis=8000, memory=32 * GIB)} | more)


def heard(*reports: NodeReport) -> tuple[FleetPlacements, Clock]:
    """Placements that have listened for long enough."""
    clock = Clock(0.0)
    view = FleetView()
    for each in reports:
        view.on_report(each, 0.0)
    clock.at = SURE_AFTER_S
    return FleetPlacements(view, clock), clock


async def refusal(placements: FleetPlacements, **options: object) -> BadInput:
    with pytest.raises(BadInput) as refused:
        await placements.check([function("f", **options)])
    return refused.value


async def test_what_can_never_fit_is_refused_with_the_largest_slice_and_what_is_missing() -> None:
    """Naming the function and the option."""
    placements, _ = heard(report())

    large = await refusal(placements, gpu=(GpuAsk("H100"),), vram=100 * GIB)
    assert large.more["field"] == "vram"
    assert "f can never run here" in large.detail
    assert "the largest slice that exists is a whole H100-80GB with 80.0 GiB: 20.0 GiB are missing" in large.detail

    several = await refusal(placements, gpu=(GpuAsk("H100", 8),))
    assert several.more["field"] == "gpu"
    assert "no node has so many of them" in several.detail

    elsewhere = await refusal(placements, placing=Placing(zones=("b",)))
    assert elsewhere.more["field"] == "zone"
    assert (await refusal(placements, memory=64 * GIB)).more["field"] == "memory"

    many = await refusal(placements, cpu=256.0)
    assert many.more["field"] == "cpu"
    assert many.detail == (
        "f can never run here: it asks for a CPU slot and 256 cores and 2.0 GiB of host memory, and the fleet has "
        "1 CPU slot, 1 H100-80GB: no node with such a device or slot has more than 8 cores for containers (cpu=)."
    )


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"gpu": (GpuAsk("H1000"),), "placing": Placing(zones=("a",))}, "gpu"),  # the node of zone b is not at fault
        ({"gpu": (GpuAsk("T4"),), "placing": Placing(zones=("a",))}, "gpu"),
        ({"gpu": (GpuAsk("H100", 2),), "placing": Placing(regions=("local",))}, "gpu"),
        ({"gpu": (GpuAsk("H1000"),), "placing": Placing(zones=("nowhere",))}, "gpu"),
        ({"gpu": (GpuAsk("A10"),), "placing": Placing(zones=("a",))}, "zone"),
        ({"gpu": (GpuAsk("A10"), GpuAsk("H1000")), "placing": Placing(zones=("a",))}, "zone"),
        ({"gpu": (GpuAsk("H100"),), "placing": Placing(regions=("mars",))}, "region"),
        ({"gpu": (GpuAsk("H100"),), "placing": Placing(purchase=Purchase.SPOT)}, "spot"),
        ({"gpu": (GpuAsk("H100"),), "vram": 100 * GIB, "placing": Placing(zones=("a",))}, "vram"),
        ({"gpu": (GpuAsk("A10"),), "vram": 100 * GIB, "placing": Placing(zones=("a",))}, "vram"),
        ({"gpu": (GpuAsk("H100"),), "memory": 64 * GIB, "placing": Placing(zones=("nowhere",))}, "memory"),
        ({"gpu": (GpuAsk("H100"),), "cpu": 256.0, "placing": Placing(zones=("nowhere",))}, "cpu"),
        ({"cpu": 256.0}, "cpu"),
    ],
)
async def test_the_option_is_named_that_stands_in_the_way(options: dict[str, Any], field: str) -> None:
    """Not one that also rules something out, and would not help."""
    a10 = gpu_device(kind="A10", gib=24, mig=MigMode.NONE)
    placements, _ = heard(report(), report(node="n2", zone="b", devices=(a10,)))

    assert (await refusal(placements, **options)).more["field"] == field


async def test_a_base_environment_that_no_node_has_is_refused_with_those_there_are() -> None:
    """Naming the option; one that some node has is let in, also if that is in use."""
    placements, _ = heard(report(), report(node="n2", bases=("default", "torch")))

    with pytest.raises(BadInput) as refused:
        await placements.check([function("f")], "jax")

    assert refused.value.more["field"] == "base"
    assert refused.value.detail.endswith(": there is no base environment jax; there is default, torch.")
    assert await placements.check([function("f"), function("g", gpu=(GpuAsk("H100"),))], "torch") == ()
    assert (await placements.of_spec(function("f"), "acme", "torch")).fits
    unfit = await placements.of_spec(function("f"), "acme", "jax")
    assert not unfit.fits


@pytest.mark.parametrize("option", ["shm", "scratch", "pids"])
async def test_limits_of_the_sandbox_that_no_node_allows_are_refused(option: str) -> None:
    """By the name of the option; where all agents are older, with the feature that they lack."""
    most = SandboxCeilings(shm=GIB, scratch=GIB, pids=512)
    new, old = report(features=(SANDBOX_LIMITS,), ceilings=most), report(node="n2")
    allowed: dict[str, Any] = {option: getattr(most, option), "memory": 4 * GIB}
    over = {**allowed, option: getattr(most, option) + 1}

    assert await heard(new, old)[0].check([function("f", **allowed)]) == ()
    refused = await refusal(heard(new, old)[0], **over)
    assert refused.more["field"] == option
    assert f"({option}=)" in refused.detail
    unable = await refusal(heard(old)[0], **allowed)
    assert unable.more["field"] == option
    assert "1 on nodes whose agent is older and cannot do sandbox-limits (upgrade it)" in unable.detail


async def test_an_agent_that_can_do_more_since_its_restart_is_heard() -> None:
    """Nothing else of its node has changed."""
    placements, clock = heard(report())
    with pytest.raises(BadInput):
        await placements.check([function("f")], "torch")

    placements.view.on_report(report(seq=2, bases=("default", "torch")), clock.at)

    assert await placements.check([function("f")], "torch") == ()


async def test_what_fits_once_something_is_free_or_back_is_let_in() -> None:
    """A GPU that is used, changing or on a node that drains is still one."""
    placements, _ = heard(report(draining=True, devices=(gpu_device(changing=True),)))

    await placements.check([function("f", gpu=(GpuAsk("H100"),), vram=8 * GIB), function("g")])


async def test_a_floor_that_can_never_be_held_is_warned_of_and_let_in() -> None:
    """With how many the fleet could hold, whoever uses it now; one that fits is nobody's concern."""
    placements, _ = heard(report(), report(node="n2"))
    h100 = {"gpu": (GpuAsk("H100"),), "vram": 30 * GIB}

    fitting = [function("g", min_containers=4, **h100), function("h", min_containers=2), function("i")]
    assert await placements.check(fitting) == ()
    (warning,) = await placements.check([*fitting, function("f", min_containers=5, **h100)])

    assert warning == (
        "f: of min_containers=5 only 4 can ever run here: the fleet has 2 CPU slots, 2 H100-80GBs, "
        "and no room for more of them even if all of it were free."
    )


async def test_artifacts_are_named_where_no_agent_lays_them_out() -> None:
    """Not an option that the function does not have; a floor counts the nodes that can run it."""
    old, new = (report(node=name, features=names) for name, names in (("n1", ()), ("n2", (ARTIFACTS, SANDBOX_LIMITS))))
    needs = {"f": (ARTIFACTS,), "g": (ARTIFACTS, SANDBOX_LIMITS)}
    for name, options in (("f", {}), ("g", {"shm": 2**20})):
        with pytest.raises(BadInput) as refused:
            await heard(old)[0].check([function(name, **options)], needs=needs)
        assert refused.value.more["field"] == "artifacts"

    (warning,) = await heard(old, new)[0].check([function("f", min_containers=2)], needs=needs)
    assert warning.startswith("f: of min_containers=2 only 1 can ever run here")


async def test_tags_are_named_where_all_agents_are_older() -> None:
    """They would refuse the specification."""
    old, new = report(), report(node="n2", features=(USAGE_TAGS,))

    refused = await refusal(heard(old)[0], tags={"team": "search"})
    assert refused.more["field"] == "tags"
    assert "cannot do usage-tags (upgrade it)" in refused.detail
    assert await heard(old, new)[0].check([function("f", tags={"team": "search"})]) == ()


async def test_how_much_of_a_floor_fits_is_told_now_and_ever(world: World) -> None:
    """What runs of the version counts, what leaves does not; what others use is free for nobody."""
    (record,) = world.deploy(function("f", gpu=(GpuAsk("H100"),), min_containers=4, max_containers=4))

    def running(name: str, gpu: str, version: str, state: ContainerState = ContainerState.READY) -> ContainerReport:
        return container(name, version, app="shop", function="f", slice=gpu, state=state)

    gpus = [gpu_device(f"GPU-{n}") for n in range(3)]
    there = (running("c1", "GPU-0", record.id), running("c2", "GPU-1", "other"))
    leaving = running("c3", "cpu-0", record.id, ContainerState.DRAINING)
    placements, _ = heard(report(devices=tuple(gpus), containers=(*there, leaving)))

    told = await placements.of_version(record)

    assert told.floor == FloorInfo(wanted=4, there=1, room=1, most=3)
    assert (await placements.of_spec(record.spec, "acme")).floor == FloorInfo(wanted=4, there=0, room=1, most=3)
    assert (await placements.of_spec(function("g"), "acme")).floor is None


async def test_a_fleet_that_is_not_known_yet_refuses_nothing() -> None:
    """Calls are told then; a node that was silent for a while counts still."""
    nobody = FleetPlacements(FleetView(), Clock(100.0))
    await nobody.check([function("f", gpu=(GpuAsk("H100", 8),))])

    placements, clock = heard(report())
    clock.at = SURE_AFTER_S - 0.1
    await placements.check([function("f", gpu=(GpuAsk("H100", 8),))])
    clock.at = REMEMBERED_S
    await placements.check([function("f", gpu=(GpuAsk("H100"),))])
    assert (await placements.fleet()).devices == ()


def test_nodes_that_are_long_gone_are_forgotten() -> None:
    """When the next one comes."""
    view = FleetView()
    view.on_report(report(), 0.0)
    view.on_report(report(node="n2"), REMEMBERED_S + 1.0)

    assert [each.node for each in view.remembered(REMEMBERED_S + 1.0)] == ["n2"]
    assert view.listened(REMEMBERED_S + 1.0) == REMEMBERED_S + 1.0


async def test_the_fleet_is_told_as_it_is_now() -> None:
    """With what the nodes say of themselves."""
    placements, _ = heard(report(spot=True))

    told = await placements.fleet()

    assert [(row.id, row.spot, row.zone) for row in told.devices] == [("GPU-1", True, "a"), ("cpu-0", True, "a")]
    assert told.totals["H100-80GB"]["free"] == 1

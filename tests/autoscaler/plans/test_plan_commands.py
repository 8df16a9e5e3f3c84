"""From a plan's commands to commands for agents."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.devices import InstanceReport, MigMode, MigPlacement
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_core.model.messages.node_messages import Bind, ContainerState, Stop
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.units import GpuAsk
from pilotlight_core.model.versions.manifest_codec import NETWORK
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import GIB, container, gpu_device, gpu_node


@pytest.mark.parametrize("agrees", [False, True])
def test_an_agent_is_told_who_agrees_to_neighbours(agrees: bool) -> None:
    """It refuses shares beside those of other tenants otherwise."""
    world = World()
    world.on_report(report(), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    (sent,) = decide(world, record(placing=Placing(neighbours=agrees)), only="ver_1").commands

    assert isinstance(sent.command, Bind)
    assert sent.command.neighbours is agrees


def test_an_agent_is_told_what_the_tenant_may_log() -> None:
    """As its limits are when the container starts."""
    world = World()
    world.on_report(report(), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    (sent,) = decide(world, record(), only="ver_1", limits_of=lambda _tenant: Limits(log_bytes_per_hour=5_000)).commands

    assert isinstance(sent.command, Bind)
    assert sent.command.log_bytes_per_hour == 5_000


def test_an_agent_is_told_what_of_the_network_its_tenant_has() -> None:
    """Of what the function asks for; as the operator's list is when the container starts."""
    world = World()
    world.on_report(report(features=(NETWORK,)), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    asking = record(network=("api.example.com:443", "example.org:443"))

    (sent,) = decide(world, asking, only="ver_1", network_of=lambda _tenant: ("*.example.com:443",)).commands

    assert isinstance(sent.command, Bind)
    assert sent.command.network == ("api.example.com:443",)


def test_an_agent_is_told_why_a_container_is_started() -> None:
    """Calls wait for the first one, the next ones are the floor's."""
    world = World()
    world.on_report(report(slots=4), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    sent = [each.command for each in decide(world, record(min_containers=3)).commands]

    assert [bind.purpose for bind in sent if isinstance(bind, Bind)] == [Purpose.CALL, Purpose.FLOOR, Purpose.FLOOR]


def test_what_is_parked_in_the_way_ends_as_a_part_of_the_plan() -> None:
    """It is stopped, then its GPU is cut; also one whose version nobody knows any more."""
    there = InstanceReport(
        slice="GPU-1:7g@0", place=MigPlacement(start=0, profile="7g"), name="7g.80gb", uuid="MIG-1", memory=80 * GIB,
        ppm=1_000_000,
    )  # fmt: skip
    world = World()
    asleep = container("p", "ver_old", slice="", state=ContainerState.PARKED, parks="GPU-1:7g@0")
    world.on_report(gpu_node(devices=(gpu_device(mig=MigMode.ON, instances=(there,)),), containers=(asleep,)), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    made = decide(world, record(gpu=(GpuAsk("H100"),), vram=5 * GIB))

    (steps,) = made.executions
    assert [type(step.command) for step in steps] == [Stop, Cut, Bind]
    assert isinstance(steps[0].command, Stop)
    assert steps[0].command.container == "p"
    assert [step.after for step in steps] == [(), (0,), (0, 1)]
    assert any(note.startswith("p, which is parked, ends: its GPU is needed for ") for note in made.notes)


def test_a_node_that_says_of_what_is_parked_that_it_serves_stops_no_pass() -> None:
    """It names a container twice, or a version that there is not: it is stopped there, and others get their starts."""
    asleep = container("p", "ver_old", slice="", state=ContainerState.PARKED, parks="GPU-1")
    awake = container("p", "ver_none", slice="elsewhere")
    for told in ((asleep, awake), (awake, asleep)):
        world = World()
        world.on_report(gpu_node(containers=told), 1.0)
        world.on_demand(msgspec.structs.replace(demand(queued=1), tenant="zoo"), 1.0)

        (steps,) = decide(world, msgspec.structs.replace(record(gpu=(GpuAsk("H100"),)), tenant="zoo")).executions

        assert [type(step.command) for step in steps] == [Stop, Bind]

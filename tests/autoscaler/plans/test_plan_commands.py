"""From a plan's commands to commands for agents."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.versions.manifest_codec import NETWORK
from tests.autoscaler.builders import decide, demand, record, report


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

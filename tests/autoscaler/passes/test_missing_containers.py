"""What is missing, and how much of it is asked for."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.explain_answers import answer
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.controller_questions import ExplainPlacement
from pilotlight_core.model.messages.node_messages import Bind, ContainerState
from tests.autoscaler.builders import decide, demand, limits, record, report
from tests.builders.calls import credit
from tests.builders.nodes import container


def test_a_start_that_failed_is_not_repeated_at_once() -> None:
    """Failures to load back off; a later success forgets them."""
    world = World()
    world.on_report(report(), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    failed = credit("c9", state=ContainerState.GONE, error=RemoteError("ImportError", "no module"))

    world.on_credit(failed, 1.0)
    world.on_credit(failed, 1.0)  # said again for a while, and counted once

    assert decide(world, record(), at=1.1).commands == []
    world.on_demand(demand(queued=1), 2.0)
    assert len(decide(world, record(), at=2.0).commands) == 1


def test_a_tenant_gets_as_many_containers_as_its_limit_allows() -> None:
    """The rest is refused with the limit's name, and another tenant's call starts."""
    world = World()
    busy = [container(f"c{n}", "ver_2", running=1, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*busy, slots=8), 1.0)
    world.on_demand(demand(queued=5, service_ms=1e6), 1.0)
    other = msgspec.structs.replace(record("ver_z"), tenant="zoo", app="zoo")
    world.on_demand(msgspec.structs.replace(demand("ver_z", queued=1), tenant="zoo"), 1.0)

    decision = decide(world, record(), record("ver_2"), other, **limits(containers=4))

    started = [sent.command.version for sent in decision.commands if isinstance(sent.command, Bind)]
    assert sorted(started) == ["ver_1", "ver_1", "ver_z"]
    (shortage,) = decision.shortages
    assert (shortage.version, shortage.never) == ("ver_1", False)
    assert "(limit containers)" in shortage.reason
    told = answer(world, ExplainPlacement(function="acme:hello.greet"), 1.0, 0.0)
    assert "acme has 2 containers, and its limit containers=4 allows no more" in " ".join(told.lines)
    assert not any("would do" in line for line in told.lines if "limit" in line)


def test_a_burst_leaves_others_a_place() -> None:
    """Of four slots three go to a burst of two hundred calls, one to another tenant's first call."""
    world = World()
    world.on_report(report(slots=4), 1.0)
    world.on_demand(demand(queued=200), 1.0)
    other = msgspec.structs.replace(record("ver_z"), tenant="zoo", app="zoo")
    world.on_demand(msgspec.structs.replace(demand("ver_z", queued=1), tenant="zoo"), 1.0)

    decision = decide(world, record(max_containers=200), other)

    started = [sent.command.version for sent in decision.commands if isinstance(sent.command, Bind)]
    assert sorted(started) == ["ver_1", "ver_1", "ver_1", "ver_z"]

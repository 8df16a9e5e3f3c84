"""Places that are kept for who has waited longest."""

from __future__ import annotations

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.node_messages import Bind, HostShare
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import GIB, container


def test_a_host_is_kept_for_an_ask_that_has_waited_long() -> None:
    """Else small ones would take each part of its memory as soon as it is free, for ever."""
    world = World()
    host, small = HostShare(cpu_millis=8000, memory=24 * GIB), HostShare(cpu_millis=100, memory=6 * GIB)
    busy = [container(f"c{n}", "ver_1", slice=f"cpu-{n}", running=1, host=small) for n in range(4)]
    large = record("ver_2", memory=20 * GIB)
    known = (record("ver_1", memory=6 * GIB, max_containers=10), large)
    world.on_report(report(*busy, slots=8, host=host), 1.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=20_000.0), 1.0)
    decide(world, *known)
    assert world.reservation is not None
    assert world.reservation.kept.nodes == {"n1"}

    world.on_report(report(*busy[:2], seq=2, slots=8, host=host), 2.0)
    world.on_demand(demand("ver_1", queued=9, oldest_ms=1.0), 2.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=21_000.0), 2.0)
    assert decide(world, *known, at=2.0).commands == []

    world.on_report(report(seq=3, slots=8, host=host), 3.0)
    world.on_demand(demand("ver_1", queued=9, oldest_ms=1.0), 3.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=22_000.0), 3.0)
    started = [sent.command for sent in decide(world, *known, at=3.0).commands]
    assert [command.version for command in started if isinstance(command, Bind)] == ["ver_2"]


def test_a_pass_that_does_not_look_at_it_leaves_it() -> None:
    """Nothing is new of it; once it is wanted no more, or is gone, nothing is kept."""
    world = World()
    host = HostShare(cpu_millis=8000, memory=24 * GIB)
    busy = [
        container(f"c{n}", "ver_1", slice=f"cpu-{n}", running=1, host=HostShare(cpu_millis=100, memory=6 * GIB))
        for n in range(4)
    ]
    known = (record("ver_1", memory=6 * GIB, max_containers=10), record("ver_2", memory=20 * GIB))
    world.on_report(report(*busy, slots=8, host=host), 1.0)
    world.on_demand(demand("ver_2", queued=1, oldest_ms=20_000.0), 1.0)
    decide(world, *known)
    kept = world.reservation

    decide(world, *known, at=1.5, decided={"ver_1"})
    assert kept is not None
    assert world.reservation == kept
    world.refusals.keep(())
    decide(world, *known, at=1.7, decided={"ver_1"})
    assert world.reservation is None

"""Idle containers are parked, serve again when somebody calls, and end when they are not worth their memory."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decision import Decision
from pilotlight_autoscaler.passes.parked_containers import ANY_SLOT
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_core.model.messages.node_messages import (
    Bind,
    ContainerReport,
    ContainerState,
    Drain,
    HostMemory,
    NodeReport,
    Park,
    Unpark,
)
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.spec import VersionRecord
from tests.autoscaler.builders import decide, demand, limits, record, report
from tests.builders.nodes import container

MEMORY = HostMemory(total=2**30)
OLD: dict[str, Any] = {"age_s": 500.0, "idle_s": 100.0, "timeline": {"enter": 2_000.0}}
SPEC: dict[str, Any] = {"scaledown_window": 10.0, "forecast": False}


def idle(name: str = "c1", **more: Any) -> ContainerReport:
    """A container that its version does not need any more, and that can be parked."""
    return container(name, **{"slice": "cpu-0", "parks": ANY_SLOT, **OLD, **more})


def asleep(name: str = "c1", **more: Any) -> ContainerReport:
    """The same once it is parked."""
    return idle(name, **{"slice": "", "state": ContainerState.PARKED, "idle_s": 5.0, **more})


def world_of(*containers: ContainerReport, at: float = 1.0, **more: Any) -> World:
    """A world with one node."""
    world = World()
    world.on_report(told(*containers, **more), at)
    return world


def told(*containers: ContainerReport, **more: Any) -> NodeReport:
    """A report of that node, which has memory for what is parked."""
    return report(*containers, **{"memory": MEMORY, **more})


def given(version: VersionRecord) -> PassInput:
    """The input of a pass over one version."""
    return PassInput(versions={version.id: version}, deployed={version.id}, epoch=7, new_id=lambda _: "new", at=1.0)


def commands(decision: Decision) -> list[Any]:
    return [sent.command for sent in decision.commands]


def test_an_idle_container_that_starts_slowly_is_parked() -> None:
    """It would have been ended. How likely a call is goes with it; the next pass does not say it again."""
    world = world_of(idle())
    (park,) = commands(decide(world, record(**SPEC)))

    assert isinstance(park, Park)
    assert (park.container, 0.0 <= park.likelihood <= 1.0) == ("c1", True)


def test_what_cannot_be_parked_or_starts_quickly_is_ended() -> None:
    """As ever: also by an agent that parks nothing, and of a version that is not deployed any more."""
    for one, memory, more in (
        (idle(parks=""), MEMORY, {}),
        (idle(), None, {}),
        (idle(), HostMemory(total=0), {}),
        (idle(timeline={"enter": 20.0}), MEMORY, {}),
        (idle(), MEMORY, {"deployed": ()}),
        (idle(), MEMORY, {"unfunded": lambda _: "its budget is used up"}),
    ):
        found = commands(decide(world_of(one, memory=memory), record(**SPEC), **more))
        assert [type(each) for each in found] == [Drain], (one, memory, more)


def test_a_container_with_calls_is_not_parked() -> None:
    """What others owe is taken back from busy ones too: these drain."""
    world = world_of(idle(running=1))
    state = PassState(world, given(record(**SPEC)))

    state.put_aside("c1", state.versions["ver_1"], "owed")

    assert [type(each) for each in commands(state.decision)] == [Drain]


def test_a_parked_container_serves_before_another_is_started() -> None:
    """On a slot that nobody has. It is one of those that the version has from then on."""
    world = world_of(asleep())
    world.on_demand(demand(queued=1), 1.0)

    (unpark,) = commands(decide(world, record(**SPEC), only="ver_1"))

    assert unpark == Unpark(epoch=7, container="c1", slice="cpu-0", purpose=Purpose.CALL)
    assert commands(decide(world, record(**SPEC), at=1.1, only="ver_1")) == []
    (held,) = world.fleet(1.1).held.values()
    assert (held.container, held.slice.ids) == ("c1", ("cpu-0",))


def test_what_was_parked_a_moment_ago_serves_again_at_once() -> None:
    """That it was told to leave its slice is over: it does not count as leaving, or another one would start."""
    world = world_of(asleep())
    world.parking["c1"] = 0.9
    world.on_demand(demand(queued=1), 1.0)
    decide(world, record(**SPEC), only="ver_1")
    world.on_report(told(idle(running=1, idle_s=0.0), seq=2), 1.1)
    world.on_demand(demand(running=1), 1.2)

    assert commands(decide(world, record(**SPEC), at=1.2, only="ver_1")) == []


def test_what_is_being_parked_is_called_back() -> None:
    """No report says yet that it has left its slice: it may stay there, and no other one starts."""
    world = world_of(idle())
    decide(world, record(**SPEC))
    world.parking["c1"] = 1.0
    world.on_demand(demand(queued=1), 1.05)

    (unpark,) = commands(decide(world, record(**SPEC), at=1.05, only="ver_1"))

    assert unpark == Unpark(epoch=7, container="c1", slice="cpu-0", purpose=Purpose.CALL)
    assert commands(decide(world, record(**SPEC), at=1.06, only="ver_1")) == []


def test_the_latest_parked_serves_first_and_others_are_started_beside_it() -> None:
    """As many as the version wants: two are parked, three are wanted."""
    world = world_of(asleep("c1", idle_s=50.0), asleep("c2"))
    world.on_demand(demand(queued=3, service_ms=9e3), 1.0)

    found = commands(decide(world, record(**SPEC), only="ver_1"))

    assert [(type(each), each.container, each.slice) for each in found[:2]] == [
        (Unpark, "c2", "cpu-0"), (Unpark, "c1", "cpu-1"),
    ]  # fmt: skip
    assert [(type(each), each.slice) for each in found[2:]] == [(Bind, "cpu-2")]


def test_where_its_node_is_full_another_is_started_elsewhere() -> None:
    """A slot that somebody is on his way to is taken too; a parked container never waits for one."""
    world = world_of(asleep(), container("c9", "ver_9", slice="cpu-0", running=1), slots=1)
    world.on_report(told(slots=1, node="n2"), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    (sent,) = decide(world, record(**SPEC), only="ver_1").commands

    assert isinstance(sent.command, Bind)
    assert sent.node == "n2"


def test_a_tenants_limit_bounds_what_serves_and_not_what_is_parked() -> None:
    """What is parked holds nothing that others could have."""
    world = world_of(asleep("c1"), asleep("c2"))
    world.on_demand(demand(queued=9, service_ms=9e3), 1.0)

    found = commands(decide(world, record(**SPEC), only="ver_1", **limits(containers=1)))

    assert [type(each) for each in found] == [Unpark]


def test_what_is_told_to_serve_counts_for_its_tenants_limit_at_once() -> None:
    """Passes follow each other faster than reports: the next one would tell another."""
    world = world_of(asleep("c1"), asleep("c2"))
    for at in (1.0, 1.1, 1.2):
        world.on_demand(demand(queued=9, service_ms=9e3), at)
        found = commands(decide(world, record(**SPEC), at=at, only="ver_1", **limits(containers=1)))
        assert [type(each) for each in found] == ([Unpark] if at == 1.0 else [])


def test_what_cannot_serve_again_keeps_no_other_from_starting() -> None:
    """Its node has no memory left to promise: the call goes elsewhere, and it is told again some seconds later."""
    world = world_of(asleep())
    found = []
    for at in (1.0, 1.1, 20.0):
        world.on_report(told(asleep(), seq=round(at * 10)), at)
        world.forget(at)
        world.on_demand(demand(queued=1), at)
        found += commands(decide(world, record(**SPEC), at=at, only="ver_1"))
        world.on_stays_parked("c1", at)
        assert "ver_1" in world.changed

    assert [type(each) for each in found] == [Unpark, Bind, Unpark]


def test_a_gpu_container_returns_to_its_own_slice_alone() -> None:
    """While that is another's it does not serve."""
    world = world_of(asleep(parks="GPU-1"))
    world.on_demand(demand(queued=1), 1.0)

    assert [type(each) for each in commands(decide(world, record(**SPEC), only="ver_1"))] == [Bind]


def test_an_unpark_that_shows_no_effect_is_forgotten() -> None:
    """The agent has refused it, or was killed: it is parked still, and may be told again."""
    world = world_of(asleep())
    world.on_demand(demand(queued=1), 1.0)
    decide(world, record(**SPEC), only="ver_1")
    world.on_report(told(asleep(), seq=2), 4.0)
    world.forget(4.0)
    world.on_demand(demand(queued=1), 4.0)

    assert [type(each) for each in commands(decide(world, record(**SPEC), at=4.0, only="ver_1"))] == [Unpark]


def test_what_is_parked_ends_when_it_is_not_worth_its_memory() -> None:
    """Nobody calls for long, another version is deployed, there is no money, or its node drains by itself."""
    for one, more, why in (
        (asleep(idle_s=4_000.0), {}, "parked, and not called for 4000 s"),
        (asleep(), {"deployed": ()}, "another version is deployed"),
        (asleep(), {"unfunded": lambda _: "no money"}, "no money"),
    ):
        (drain,) = commands(decide(world_of(one), record(**SPEC), **more))
        assert isinstance(drain, Drain)
        assert drain.reason == why
    assert commands(decide(world_of(asleep()), record(**SPEC))) == []
    assert commands(decide(world_of(asleep(idle_s=4_000.0), draining=True), record(**SPEC))) == []


def test_what_is_parked_ends_with_its_version() -> None:
    """Its app is stopped, its tenant disabled, or what it was let out to is taken away."""
    (drain,) = commands(decide(world_of(asleep()), record(**SPEC), shut_down={"ver_1": "its app is stopped"}))
    assert drain.reason == "its app is stopped"

    world = world_of(asleep(network=1))
    (drain,) = commands(decide(world, record(network=("a.example.com:443",), **SPEC), network_of=lambda _: ()))
    assert isinstance(drain, Drain)

"""Functions that avoid each other never share a node, whichever of them says so and whichever is there first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.node_messages import Bind, NodeReport
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.spec import VersionRecord
from tests.autoscaler.builders import decide, demand
from tests.builders.nodes import bind, container, cpu_slot, node_report
from tests.builders.specs import function_spec, version_record

SHY, LOUD = "shy", "loud"


def version(function: str, *avoid: str) -> VersionRecord:
    """The version `ver_{function}` of a function of the app `hello`."""
    spec = function_spec(function, placing=Placing(avoid=avoid))
    return version_record(spec, id=f"ver_{function}", app="hello", function=function)


ONE_WAY = (version(SHY, "hello.loud"), version(LOUD))


def node(name: str, *functions: str, slots: int = 2) -> NodeReport:
    """A node on whose first slots containers of these functions run."""
    there = tuple(
        container(f"{name}-{function}", f"ver_{function}", function=function, slice=f"cpu-{number}")
        for number, function in enumerate(functions)
    )
    used = {one.slice: one.id for one in there}
    slices = tuple(cpu_slot(number, container=used.get(f"cpu-{number}", "")) for number in range(slots))
    return node_report(name, slices=slices, containers=there)


def reported(world: World, there: str) -> None:
    """Its container runs on n1."""
    world.on_report(node("n1", there), 1.0)


def on_its_way(world: World, there: str) -> None:
    """It was sent to n1, and no report shows it yet."""
    world.on_report(node("n1"), 1.0)
    sent = bind("coming", f"ver_{there}", slice="cpu-0", function=f"acme:hello.{there}")
    world.pending["coming"] = PendingBind(bind=sent, node="n1", at=1.0)


def starts(world: World, *versions: VersionRecord) -> dict[str, str]:
    """Function -> node of what is started."""
    sent = decide(world, *versions).commands
    return {one.command.version.removeprefix("ver_"): one.node for one in sent if isinstance(one.command, Bind)}


@pytest.mark.parametrize(("there", "comes"), [(LOUD, SHY), (SHY, LOUD)], ids=["avoids what is there", "is avoided"])
@pytest.mark.parametrize("arrange", [reported, on_its_way])
def test_who_comes_goes_elsewhere(arrange: Callable[[World, str], None], there: str, comes: str) -> None:
    """To the other node, though the first has room; where there is no other it waits, and its callers hear why."""
    world = World()
    arrange(world, there)
    world.on_demand(demand(f"ver_{comes}", queued=1), 1.0)
    alone = decide(world, *ONE_WAY)

    world.on_report(node("n2"), 1.0)

    assert not alone.commands
    assert "with functions that it avoids or that avoid it" in alone.shortages[0].reason
    assert starts(world, *ONE_WAY) == {comes: "n2"}


@pytest.mark.parametrize("first", [SHY, LOUD])
def test_who_starts_at_the_same_time_starts_apart(first: str) -> None:
    """Within one pass, in either order."""
    world = World()
    for name in ("n1", "n2"):
        world.on_report(node(name), 1.0)
    for function in (SHY, LOUD):
        oldest_ms = 20.0 if function == first else 10.0
        world.on_demand(demand(f"ver_{function}", queued=1, oldest_ms=oldest_ms), 1.0)

    where = starts(world, *ONE_WAY)

    assert where.keys() == {SHY, LOUD}
    assert where[SHY] != where[LOUD]


def test_who_avoids_nobody_goes_where_there_is_room() -> None:
    """The same two without `avoid` share the only node, as do those of another tenant's function of that name."""
    world = World()
    world.on_report(node("n1", LOUD), 1.0)
    world.on_demand(demand("ver_shy", queued=1), 1.0)
    assert starts(world, version(SHY), version(LOUD)) == {SHY: "n1"}

    world.on_report(node("n1", LOUD), 1.0)
    assert starts(world, version(SHY, "other.loud"), version(LOUD)) == {SHY: "n1"}

"""Versions as the scaling policy sees them: what counts as running, held and coming."""

from __future__ import annotations

from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.version_views import VersionViews, ask_of, held_by
from pilotlight_autoscaler.policy.scaling_policy import to_drain
from pilotlight_core.model.messages.node_messages import ContainerState
from tests.autoscaler.builders import demand, record, report, wanted
from tests.builders.nodes import bind, binding, container
from tests.builders.specs import function_spec, version_record


def test_a_version_that_is_shut_down_wants_nothing_and_keeps_nothing() -> None:
    """However many calls wait, and whatever its floor."""
    world = World()
    world.on_report(report(container("c1", idle_s=100.0)), 1.0)
    world.on_demand(demand(queued=5), 1.0)
    version = record(min_containers=2)

    (view,) = VersionViews(world, {"ver_1": version}, ["ver_1"], 1.0, shut_down={"ver_1": "stopped"}).values()

    assert (wanted(view), view.floor) == (0, 0)
    assert [each.id for each in to_drain(view, 0)] == ["c1"]


def test_a_floor_is_what_the_tenants_limit_allows_of_it() -> None:
    """No entry: its spec's."""
    version = record(min_containers=2)

    def floor(**floors: int) -> int:
        return VersionViews(World(), {"ver_1": version}, ["ver_1"], 1.0, floors=floors)["ver_1"].floor

    assert (floor(), floor(ver_1=1), floor(ver_1=5)) == (2, 1, 2)


def test_what_drains_is_counted_apart() -> None:
    """By its own state, by command, or with its node, and what is replaced too; what is gone is nowhere."""
    world = World()
    ready = ContainerState.READY
    states = (ready, ready, ContainerState.DRAINING, ContainerState.GONE, ready)
    there = [container(f"c{n}", state=state, slice=f"cpu-{n}") for n, state in enumerate(states)]
    world.on_report(report(*there), 1.0)
    world.draining["c1"] = world.replacing["c4"] = 1.0

    view = VersionViews(world, {"ver_1": record()}, ["ver_1"], 1.0)["ver_1"]

    assert ([each.id for each in view.containers], view.leaving) == (["c0"], 3)


def test_who_holds_slices_counts_in_any_state_and_before_it_is_reported() -> None:
    """What is gone holds none; a version without a record counts all the same."""
    world = World()
    states = (ContainerState.LOADING, ContainerState.DRAINING, ContainerState.GONE)
    there = [container(f"c{n}", state=state, slice=f"cpu-{n}") for n, state in enumerate(states)]
    world.on_report(report(*there, container("c7", "ver_7", slice="cpu-3")), 1.0)
    world.pending["c8"] = PendingBind(bind=bind("c8"), node="n1", at=1.0)
    known = record()

    found = list(held_by(world, {"ver_1": known}, "acme"))

    assert found == [(known.spec, 2), (None, 1), (known.spec, 1)]
    assert list(held_by(world, {"ver_1": known}, "zoo")) == []


def test_the_ask_of_a_version_is_for_nodes_that_can_run_it() -> None:
    """Its base environment, and the features that its manifest needs; limits of its sandbox are the spec's."""
    version = version_record(function_spec(pids=64, shm=2**20), base="torch", needs=("sandbox-limits", "wings"))

    ask = ask_of(version)

    assert (ask.base, ask.needs) == ("torch", ("sandbox-limits", "wings"))
    assert (ask.pids, ask.shm, ask.scratch) == (64, 2**20, 0)


def test_what_a_new_leader_has_not_heard_of_counts_as_on_its_way() -> None:
    """For its version's size, and for what its tenant holds."""
    world = World()
    world.unheard = [binding("c1"), binding("c2")]
    known = record("ver_1")

    assert VersionViews(world, {"ver_1": known}, {"ver_1"}, 0.0)["ver_1"].size == 2
    assert list(held_by(world, {"ver_1": known}, "acme")) == [(known.spec, 1), (known.spec, 1)]

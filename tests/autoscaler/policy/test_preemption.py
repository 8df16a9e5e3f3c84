"""What gives way to a version that finds no place."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.policy.preemption import (
    IdleContainers,
    PreemptionVictim,
    TrialBudget,
    choose_victims,
    round_robin,
)
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_core.model.messages.node_messages import ContainerReport, SliceKind
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer, Slice
from pilotlight_placement.plan.plan import Shortfall
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.place import place
from tests.builders.nodes import container
from tests.builders.specs import function_spec
from tests.placement.makers import ask, gpu, node


def held(name: str, gpu_id: str, kind: str) -> PlacedContainer:
    return PlacedContainer(
        container=name, slice=Slice(node="n", kind=SliceKind.GPU, type=kind, ids=(gpu_id,), memory=1), function=name
    )


def view(*containers: ContainerReport, **options: Any) -> VersionView:
    return VersionView(spec=function_spec(**options), deployed=True, demand=None, containers=containers)


def idle(views: dict[str, VersionView]) -> list[PreemptionVictim]:
    """What may go for calls that wait."""
    return IdleContainers(views=views).beyond_floors(waited_for=True)


def test_only_what_makes_a_place_goes() -> None:
    """The longest idle container is on a GPU that would not do."""
    fleet = Fleet([node("n", gpu("t", "T4"), gpu("h"))])
    fleet.hold(held("c1", "t", "T4"))
    fleet.hold(held("c2", "h", "H100-80GB"))
    views = {"a": view(container("c1", idle_s=90.0)), "b": view(container("c2", idle_s=5.0)), "w": view()}

    found = choose_victims(fleet, ask("H100"), idle(views))

    assert [victim[0].id for victim in found] == ["c2"]
    assert set(fleet.held) == {"c1", "c2"}
    assert choose_victims(fleet, ask("H100"), idle(views), spared={"c2"}) == ()


def test_what_is_worth_least_goes_first() -> None:
    """A device's memory is a cache: the longest idle one only where two are worth the same."""
    views = {
        name: view(container(f"c-{name}", idle_s=idle_s)) for name, idle_s in (("a", 90.0), ("b", 50.0), ("c", 9.0))
    }

    found = IdleContainers(views=views, worth=lambda name: 2.0 if name == "a" else 1.0).beyond_floors(waited_for=True)

    assert [victim[0].id for victim in found] == ["c-b", "c-c", "c-a"]


def test_several_of_a_node_go_if_one_is_not_enough() -> None:
    """Two whole GPUs are asked for."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"))])
    fleet.hold(held("c1", "a", "T4"))
    fleet.hold(held("c2", "b", "T4"))
    views = {"a": view(container("c1", idle_s=9.0)), "b": view(container("c2", idle_s=5.0)), "w": view()}

    found = choose_victims(fleet, ask("T4:2"), idle(views))

    assert [victim[0].id for victim in found] == ["c1", "c2"]


def test_a_whole_node_goes_where_a_hundred_are_idle() -> None:
    """Eight GPUs of one node are asked for, each has an idle container, and one of a node is none of them."""
    nodes = [node(f"n{n}", *(gpu(f"g{n}{m}") for m in range(8))) for n in range(13)]
    fleet, views = Fleet(nodes), {"w": view()}
    for n in range(13):
        for m in range(8):
            slice_ = Slice(node=f"n{n}", kind=SliceKind.GPU, type="H100-80GB", ids=(f"g{n}{m}",), memory=1)
            fleet.hold(PlacedContainer(container=f"c{n}_{m}", slice=slice_, function="f"))
            busy = m == 7 and n != 5
            views[f"v{n}_{m}"] = view(container(f"c{n}_{m}", idle_s=0.0 if busy else 9.0 + n + m))

    found = choose_victims(fleet, ask("H100:8"), idle(views))

    assert sorted(victim[0].id for victim in found) == [f"c5_{m}" for m in range(8)]
    fewer = choose_victims(fleet, ask("H100:2"), idle(views))
    assert len({victim[0].id.partition("_")[0] for victim in fewer}) == 1
    assert len(fewer) == 2


def test_whoever_is_of_no_use_stays() -> None:
    """Of four idle ones on the node, the longest idle are on GPUs of another kind."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"), gpu("c"), gpu("d"))])
    views = {"w": view()}
    for number, (name, kind) in enumerate((("a", "T4"), ("b", "T4"), ("c", "H100-80GB"), ("d", "H100-80GB"))):
        fleet.hold(held(f"c{number}", name, kind))
        views[name] = view(container(f"c{number}", idle_s=90.0 - number))

    found = choose_victims(fleet, ask("H100:2"), idle(views))

    assert [victim[0].id for victim in found] == ["c2", "c3"]


def test_what_is_tried_in_a_pass_is_bounded() -> None:
    """Whoever comes too late has its turn in the next one."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    fleet.hold(held("c1", "a", "T4"))
    views = {"a": view(container("c1", idle_s=9.0)), "w": view()}

    assert choose_victims(fleet, ask("T4"), idle(views), trials=TrialBudget(left=0)) == ()
    assert choose_victims(fleet, ask("T4"), idle(views), trials=TrialBudget(left=1))


def blocked(tenant: str, function: str) -> Shortfall:
    """A container of that tenant's function that finds no place."""
    refused = place(Fleet([node("n", gpu("a", "T4"))]), ask("H100", tenant=tenant, function=function))
    assert isinstance(refused, NoFit)
    return Shortfall(function=function, missing=1, refusal=refused)


def test_one_of_each_tenant_is_looked_at_first() -> None:
    """A tenant with a hundred waiting functions comes with its second one after the first one of all others."""
    shorts = [blocked("evil", "e1"), blocked("evil", "e2"), blocked("evil", "e3"), blocked("acme", "a1")]

    assert [short.function for short in round_robin(shorts, 0)] == ["e1", "a1", "e2", "e3"]
    assert [short.function for short in round_robin(shorts, 6)] == ["e2", "e3", "e1", "a1"]


def test_nothing_goes_for_what_cannot_be_helped() -> None:
    """Every container keeps its place."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    fleet.hold(held("c1", "a", "T4"))
    views = {"a": view(container("c1", idle_s=9.0)), "w": view()}

    assert choose_victims(fleet, ask("H100"), idle(views)) == ()


def on_1g(name: str, gpu_id: str) -> PlacedContainer:
    """A container on an instance of a GPU in MIG mode."""
    slice_ = Slice(
        node="n", kind=SliceKind.MIG, type="H100-80GB", ids=(gpu_id,), memory=9984, profile="1g", start=6
    )  # fmt: skip
    return PlacedContainer(container=name, slice=slice_, function=name)


def test_an_idle_container_gives_way_where_a_change_of_mode_must_follow() -> None:
    """Two whole GPUs are asked for, both are in MIG mode, and one has an idle container."""
    fleet = Fleet([node("n", gpu("a", mig=True), gpu("b", mig=True))])
    fleet.hold(on_1g("c1", "a"))
    views = {"a": view(container("c1", idle_s=3.0)), "w": view()}

    found = choose_victims(fleet, ask("H100:2"), idle(views))

    assert [victim[0].id for victim in found] == ["c1"]
    assert set(fleet.held) == {"c1"}
    assert choose_victims(fleet, ask("H100:4"), idle(views)) == ()


def test_nobody_gives_way_where_idle_gpus_can_change_their_mode() -> None:
    """Two of three are idle already."""
    fleet = Fleet([node("n", gpu("a", mig=True), gpu("b", mig=True), gpu("c", mig=True))])
    fleet.hold(on_1g("c1", "a"))
    views = {"a": view(container("c1", idle_s=3.0)), "w": view()}

    assert choose_victims(fleet, ask("H100:2"), idle(views)) == ()

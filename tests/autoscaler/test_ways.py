"""What gives way to a version that finds no place."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.policy import VersionView
from pilotlight_autoscaler.ways import gives_way
from pilotlight_core.model.messages import ContainerReport, SliceKind
from pilotlight_placement.fleet import Fleet
from pilotlight_placement.node import Held, Slice
from tests.autoscaler.builders import container, spec
from tests.placement.makers import ask, gpu, node


def held(name: str, gpu_id: str, kind: str) -> Held:
    return Held(
        container=name, slice=Slice(node="n", kind=SliceKind.GPU, type=kind, ids=(gpu_id,), memory=1), function=name
    )


def view(*containers: ContainerReport, **options: Any) -> VersionView:
    return VersionView(spec=spec(**options), deployed=True, demand=None, containers=containers)


def test_only_what_makes_a_place_goes() -> None:
    """The longest idle container is on a GPU that would not do."""
    fleet = Fleet([node("n", gpu("t", "T4"), gpu("h"))])
    fleet.hold(held("c1", "t", "T4"))
    fleet.hold(held("c2", "h", "H100-80GB"))
    views = {"a": view(container("c1", idle_s=90.0)), "b": view(container("c2", idle_s=5.0)), "w": view()}
    tenants = dict.fromkeys(views, "acme")

    found = gives_way(fleet, ask("H100"), "w", views, tenants, waited_for=True)

    assert [victim[0].id for victim in found] == ["c2"]
    assert set(fleet.held) == {"c1", "c2"}
    assert gives_way(fleet, ask("H100"), "w", views, tenants, waited_for=True, spared={"c2"}) == ()


def test_several_of_a_node_go_if_one_is_not_enough() -> None:
    """Two whole GPUs are asked for."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"))])
    fleet.hold(held("c1", "a", "T4"))
    fleet.hold(held("c2", "b", "T4"))
    views = {"a": view(container("c1", idle_s=9.0)), "b": view(container("c2", idle_s=5.0)), "w": view()}

    found = gives_way(fleet, ask("T4:2"), "w", views, dict.fromkeys(views, "acme"), waited_for=True)

    assert [victim[0].id for victim in found] == ["c1", "c2"]


def test_nothing_goes_for_what_cannot_be_helped() -> None:
    """Every container keeps its place."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    fleet.hold(held("c1", "a", "T4"))
    views = {"a": view(container("c1", idle_s=9.0)), "w": view()}

    assert gives_way(fleet, ask("H100"), "w", views, dict.fromkeys(views, "acme"), waited_for=True) == ()


def on_1g(name: str, gpu_id: str) -> Held:
    """A container on an instance of a GPU in MIG mode."""
    slice_ = Slice(
        node="n", kind=SliceKind.MIG, type="H100-80GB", ids=(gpu_id,), memory=9984, profile="1g", start=6
    )  # fmt: skip
    return Held(container=name, slice=slice_, function=name)


def test_an_idle_container_gives_way_where_a_change_of_mode_must_follow() -> None:
    """Two whole GPUs are asked for, both are in MIG mode, and one has an idle container."""
    fleet = Fleet([node("n", gpu("a", mig=True), gpu("b", mig=True))])
    fleet.hold(on_1g("c1", "a"))
    views = {"a": view(container("c1", idle_s=3.0)), "w": view()}
    tenants = dict.fromkeys(views, "acme")

    found = gives_way(fleet, ask("H100:2"), "w", views, tenants, waited_for=True)

    assert [victim[0].id for victim in found] == ["c1"]
    assert set(fleet.held) == {"c1"}
    assert gives_way(fleet, ask("H100:4"), "w", views, tenants, waited_for=True) == ()


def test_nobody_gives_way_where_idle_gpus_can_change_their_mode() -> None:
    """Two of three are idle already."""
    fleet = Fleet([node("n", gpu("a", mig=True), gpu("b", mig=True), gpu("c", mig=True))])
    fleet.hold(on_1g("c1", "a"))
    views = {"a": view(container("c1", idle_s=3.0)), "w": view()}

    assert gives_way(fleet, ask("H100:2"), "w", views, dict.fromkeys(views, "acme"), waited_for=True) == ()

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

"""The containers of a function, and who avoids it, by node and zone."""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.function_containers import FunctionContainers
from pilotlight_placement.hardware.node import PlacedContainer, Slice
from tests.placement.makers import gpu, node


def test_what_is_removed_leaves_nothing_behind() -> None:
    """Counts go up and down together, and functions without containers are not listed."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"), zone="z"), node("m", gpu("c", "T4"), zone="z")])
    counted = FunctionContainers()
    placed = [
        (PlacedContainer(
            container=f"c{number}", function="f", avoid=("g",),
            slice=Slice(node=name, kind=SliceKind.GPU, type="T4", ids=(id_,), memory=1),
        ), fleet.places[name])
        for number, (name, id_) in enumerate((("n", "a"), ("n", "b"), ("m", "c")))
    ]  # fmt: skip
    n, m = fleet.places["n"].rank, fleet.places["m"].rank

    for held, where in placed:
        counted.add(held, where)

    assert counted.by_function["f"].keys() == {"c0", "c1", "c2"}
    assert counted.nodes_of("f") == {n: 2, m: 1}
    assert counted.zones("f") == {("local", "z"): 3}
    assert counted.nodes_avoiding("g") == {n: 2, m: 1}
    assert counted.nodes_of("g") == {}

    for held, where in placed:
        counted.remove(held, where)

    assert counted.by_function == {}
    assert (counted.nodes_of("f"), counted.zones("f"), counted.nodes_avoiding("g")) == ({}, {}, {})

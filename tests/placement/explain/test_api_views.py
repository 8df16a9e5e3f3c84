"""Decisions, the fleet and memory, as bodies of the API."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from pilotlight_core.model.api.placement_api import ROOM_COUNTED, FloorInfo
from pilotlight_core.model.placing import Model, Placing
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.explain.api_views import UNMEASURED, decision_info, fleet_info, placement_info
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import STEP_NAMES
from tests.builders.specs import function_spec
from tests.example_counts import examples
from tests.placement.makers import CHURN, ask, fill, gpu, node, some_nodes

LLAMA = Model(parameters=8e9, layers=32, kv_heads=8, head_size=128, hidden=4096, context_tokens=8192)


def spec(*gpus: str, **options: Any) -> FunctionSpec:
    asked = tuple(GpuAsk(name.split(":")[0], int([*name.split(":"), "1"][1])) for name in gpus)
    return function_spec("f", gpu=asked, **options)


def test_a_decision_is_told_with_its_value_and_its_losers() -> None:
    """Step by step, and what each filter ruled out."""
    fleet = Fleet([node("a", gpu("g1", "T4")), node("b", gpu("g2", "T4")), node("c", gpu("g3", "L4"))])
    told = decision_info(place(fleet, ask("T4", function="acme:x.f")), "ctr_1")

    assert (told.container, told.function, told.considered, told.refused) == ("ctr_1", "acme:x.f", 3, {"type": 1})
    assert told.winner is not None
    assert tuple(told.winner.value) == STEP_NAMES
    assert [loser.step for loser in told.losers] == ["order"]
    assert {told.winner.node, told.losers[0].node} == {"a", "b"}

    refused = decision_info(place(fleet, ask("H100")))
    assert (refused.winner, refused.never) == (None, True)
    assert "the fleet has 1 L4, 2 T4s" in refused.reason


def test_a_fleet_is_told_to_scale() -> None:
    """Widths sum; what is free on a device that takes nothing is out of service."""
    fleet = Fleet([node("n", gpu("g", mig=True), gpu("h", withdrawn="it is lost"), zone="z", spot=True)])
    found = place(fleet, ask("H100", gib=8))
    assert isinstance(found, Placement)
    fleet.hold(PlacedContainer(container="c", slice=found.slice, tenant="acme"))

    told = fleet_info(fleet)

    cut, ill = told.devices
    assert (cut.zone, cut.spot, cut.mig, ill.withdrawn) == ("z", True, True, "it is lost")
    assert [(part.use, part.tenant) for part in cut.segments if part.use == "used"] == [("used", "acme")]
    assert told.totals == {"H100-80GB": {"devices": 2, "used": 0.125, "free": 0.75, "stranded": 0.125, "out": 1}}


@examples(40)
@given(some_nodes(), CHURN)
def test_every_device_is_counted_once(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """Whatever is on it."""
    fleet = Fleet(nodes)
    fill(fleet, steps)
    told = fleet_info(fleet)

    assert len(told.devices) == len(fleet.units)
    for each in told.devices:
        assert sum(part.width for part in each.segments) == each.width
    for parts in told.totals.values():
        assert sum(parts[use] for use in ("used", "free", "stranded", "out")) == pytest.approx(
            parts["devices"], abs=1e-3
        )


def test_memory_is_told_line_by_line_against_the_largest_slice() -> None:
    """For each choice; with the verdict last."""
    fleet = Fleet([node("n", gpu("g", "L4"), gpu("h", "A30", mig=True))])
    told = placement_info(
        fleet,
        wanted := spec("A30", "L4:2", "H100", placing=Placing(model=LLAMA), max_inputs=8),
        Ask.of(wanted),
        "x.f@v1",
    )

    assert [plan.gpu for plan in told.plans] == ["A30", "L4:2", "H100"]
    assert told.plans[0].largest == "4g.24gb of A30"
    assert told.plans[2].largest == ""
    assert sum(row.bytes for row in told.plans[1].rows) == told.plans[1].per_device
    assert not told.fits
    text = "\n".join(told.lines)
    assert "8.00 G parameters x 2 B (bf16) / 2 GPUs" in text
    assert "4g.24gb of A30: " in text
    assert "the fleet has none of this type" in text
    assert told.lines[-1].startswith("It can never run here: it asks for A30 or L4:2 or H100 with")


def test_what_fits_and_what_says_nothing_of_memory() -> None:
    """A CPU slot has no memory plan."""
    fleet = Fleet([node("n", gpu("g", "T4"))])
    silent, small = spec("T4"), spec("T4", vram=8 * GIB)

    assert placement_info(fleet, small, Ask.of(small), "x.f@v1").fits
    assert "nothing says how much" in placement_info(fleet, silent, Ask.of(silent), "x.f@v1").lines[1]
    assert "CPU slot" in placement_info(fleet, spec(), Ask.of(spec()), "x.f@v1").lines[0]
    assert UNMEASURED not in placement_info(fleet, small, Ask.of(small), "x.f@v1").lines
    assert UNMEASURED in placement_info(fleet, small, Ask.of(small), "x.f@v1", 20.0).lines


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        (
            FloorInfo(wanted=8, there=3, room=2, most=5),
            (
                "Of its floor of 8 containers 5 fit at most, if all of the fleet were free; "
                "3 are there now, and 2 more would find a place."
            ),
        ),
        (
            FloorInfo(wanted=2, there=1, room=0, most=5),
            (
                "Its floor of 2 containers fits, if all of the fleet is free; "
                "1 is there now, and 0 more would find a place."
            ),
        ),
        (
            FloorInfo(wanted=400, there=0, room=ROOM_COUNTED, most=500),
            (
                "Its floor of 400 containers fits, if all of the fleet is free; "
                "0 are there now, and 100 or more would find a place."
            ),
        ),
        (
            FloorInfo(wanted=2, there=2, room=0, most=5),
            "Its floor of 2 containers fits, if all of the fleet is free; 2 are there now.",
        ),
    ],
)
def test_how_much_of_a_floor_fits_is_told(floor: FloorInfo, said: str) -> None:
    """Now and at most, in the last line; a function that can never run has no such line."""
    fleet, wanted = Fleet([node("n", gpu("g", "T4"))]), spec("T4")
    told = placement_info(fleet, wanted, Ask.of(wanted), "x.f@v1", floor=floor)

    assert told.lines[-2:] == ("The fleet can hold it.", said)
    assert told.floor == floor
    never = spec("H100")
    assert placement_info(fleet, never, Ask.of(never), "x.f@v1", floor=floor).lines[-1].startswith("It can never run")

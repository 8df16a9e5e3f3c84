"""The fleet as rows to draw."""

from __future__ import annotations

from hypothesis import given

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.explain.drawing import SegmentUse, row, rows, text
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice
from tests.example_counts import examples
from tests.placement.makers import CHURN, fill, gpu, node, some_nodes


def held(container: str, profile: str, start: int) -> PlacedContainer:
    slice_ = Slice(node="n", kind=SliceKind.MIG, type="H100", ids=("g",), memory=1, profile=profile, start=start)
    return PlacedContainer(container=container, slice=slice_, tenant="t")


def test_a_cut_device_shows_its_instances_and_what_nobody_can_use() -> None:
    """With a 1g at 6, slice 7 is of no use to any profile."""
    fleet = Fleet([node("n", gpu("g", mig=True))])
    fleet.hold(held("a", "1g", 6))
    fleet.hold(held("b", "2g", 0))

    drawn = row(next(iter(fleet.units.values())))

    parts = [(segment.use, segment.width, segment.label) for segment in drawn.segments]
    assert parts == [
        (SegmentUse.USED, 2, "2g"),
        (SegmentUse.FREE, 4, ""),
        (SegmentUse.USED, 1, "1g"),
        (SegmentUse.STRANDED, 1, ""),
    ]
    assert text(drawn, columns=16) == "n g H100-80GB [2g##........1gxx]"


def test_shares_and_whole_devices_are_drawn_to_scale() -> None:
    """A quarter is a quarter of the bar."""
    fleet = Fleet([node("n", gpu("g", "T4", shareable=True), gpu("h", "T4"), draining=True)])
    quarter = Slice(node="n", kind=SliceKind.SHARE, type="T4", ids=("g",), memory=3840, ppm=250_000, units=250)
    fleet.hold(PlacedContainer(container="a", slice=quarter, tenant="t"))

    assert [text(each, columns=8) for each in rows(fleet)] == [
        "n g T4 [sh......] draining",
        "n h T4 [........] draining",
    ]


@examples(40)
@given(some_nodes(), CHURN)
def test_every_row_is_filled_exactly(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """Whatever is on it: the segments make the device, and each container is drawn."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    drawn = rows(fleet)

    assert len(drawn) == len(fleet.units)
    assert all(sum(segment.width for segment in each.segments) == each.width for each in drawn)
    shown = {segment.container for each in drawn for segment in each.segments if segment.container}
    assert shown == set(fleet.held)
    assert all(len(text(each, columns=64)) > 64 for each in drawn)

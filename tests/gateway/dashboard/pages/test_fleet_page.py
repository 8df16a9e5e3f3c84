"""The fleet, filtered and in pages."""

from __future__ import annotations

import pytest

from pilotlight_gateway.dashboard.page_parts.blocks import Drawing, LinkLine
from pilotlight_gateway.dashboard.pages.fleet_page import DEVICES, fleet_blocks, is_asked
from tests.gateway.dashboard.pages.scenes import answer_of, container, device, table_of

USED = {"use": "used", "width": 6, "label": "", "tenant": "acme", "container": "ctr_1"}
TOTALS = {"H100": {"devices": 1.0, "used": 0.75, "free": 0.25, "stranded": 0.0, "out": 0.0}}


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, True), ({"type": "H100"}, True), ({"type": "T4"}, False), ({"node": "n1"}, True), ({"node": "n"}, False),
        ({"tenant": "acme"}, True), ({"tenant": "rival"}, False), ({"type": "H100", "tenant": "rival"}, False),
    ],
)  # fmt: skip
def test_devices_are_filtered(query: dict[str, str], asked: bool) -> None:
    """By kind, node and who is there."""
    assert is_asked(device("g", "H100", USED), query) is asked


def test_a_device_is_said_beside_its_drawing() -> None:
    """With its containers and how they are."""
    fleet = {"devices": [device("g", "H100", USED, {"use": "free", "width": 2})], "totals": TOTALS}
    blocks = fleet_blocks(fleet, {"containers": [container(state="loading")]}, {})
    assert answer_of(blocks)[0] == "0.75 of 1 H100 used."
    assert table_of(blocks, "devices") == [
        ("n1 g", "H100", "25.0 %", "0.0 %", "in use", "acme: ctr_1 (loading)"),
    ]  # fmt: skip


def test_many_devices_are_in_pages() -> None:
    """Whose links keep what was asked for."""
    fleet = {"devices": [device(f"g{n}", "H100", USED) for n in range(DEVICES + 5)], "totals": TOTALS}
    query = {"type": "H100", "part": "2"}
    blocks = fleet_blocks(fleet, {"containers": []}, query)
    (links,) = [block for block in blocks if isinstance(block, LinkLine)]
    (drawing,) = [block for block in blocks if isinstance(block, Drawing)]
    assert [(text, present) for text, _, present in links.links] == [("1 to 250", False), ("251 to 255", True)]
    assert links.links[1][1] == "/ui/fleet?type=H100&part=2"
    assert len(drawing.marks) == 5
    assert len(table_of(fleet_blocks(fleet, {"containers": []}, {"part": "x"}), "devices")) == DEVICES

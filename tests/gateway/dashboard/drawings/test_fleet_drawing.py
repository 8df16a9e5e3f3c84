"""The fleet to scale."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.dashboard.drawings.fleet_drawing import BAR, COLOURS, colour_of, fleet_drawing


def device(*widths: int, **more: Any) -> dict[str, Any]:
    segments = [
        {"use": "used", "width": width, "label": f"{width}g", "tenant": "acme", "container": f"ctr_{n}"}
        for n, width in enumerate(widths)
    ]
    return {
        "node": "n",
        "id": "g",
        "width": sum(widths),
        "segments": segments,
        "withdrawn": "",
        "draining": False,
        **more,
    }


@given(st.lists(st.integers(1, 8), min_size=1, max_size=8))
def test_slices_are_as_wide_as_their_part_of_the_device(widths: list[int]) -> None:
    """One after the other, none over the next."""
    drawn = fleet_drawing([device(*widths)], {})
    found = re.findall(r'<rect id="s0-\d+" class="[^"]*" x="([\d.e+]+)" width="([\d.e+]+)"', drawn.inner)
    left, scale = 0.0, BAR / sum(widths)
    for (x, width), units in zip(found, widths, strict=True):
        assert abs(float(x) - left) < 0.1
        assert float(width) <= max(1.0, units * scale) + 0.1
        left += units * scale
    assert abs(left - BAR) < 0.1


def test_a_mark_says_whose_it_is_and_how() -> None:
    """What changes of it is a class; who is there is the shape."""
    starting = fleet_drawing([device(4, 4)], {"ctr_0": "loading", "ctr_1": "ready"})
    ready = fleet_drawing([device(4, 4)], {"ctr_0": "ready", "ctr_1": "ready"})
    colour = f"part t{colour_of('acme')}"
    assert starting.marks == {"s0-0": f"{colour} loading", "s0-1": colour}
    assert ready.marks == {"s0-0": colour, "s0-1": colour}
    assert starting.shape == ready.shape
    assert fleet_drawing([device(8)], {}).shape != ready.shape
    free = device(8)
    free["segments"][0] |= {"use": "stranded", "container": ""}
    assert fleet_drawing([free], {}).marks == {"s0-0": "part stranded"}


def test_what_is_drawn_is_said_too() -> None:
    """Names are escaped; devices that take nothing look so."""
    named = device(8, node="<n>", draining=True)
    named["segments"][0]["tenant"] = "<t>"
    drawn = fleet_drawing([named], {"ctr_0": "ready"})
    assert "<title>8g &lt;t&gt;: ctr_0 ready</title>" in drawn.inner
    assert "&lt;n&gt;" in drawn.inner
    assert 'class="device out"' in drawn.inner


def test_two_thousand_containers_are_a_small_drawing() -> None:
    """A page has at most 250 devices: seven slices each."""
    drawn = fleet_drawing([device(1, 1, 1, 1, 1, 1, 2) for _ in range(250)], {})
    assert len(drawn.marks) == 1_750
    assert len(drawn.inner) < 350_000
    assert {colour_of(f"tenant-{n}") for n in range(100)} == set(range(COLOURS))

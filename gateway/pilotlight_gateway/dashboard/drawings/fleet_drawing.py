"""The fleet to scale: a bar for each device, as wide as it has memory slices, in whole rows. Pure.

Colour is a tenant's, the outline is a container's state, and what no instance can use is hatched by its outline. Of
joined f-strings: two thousand rectangles by templates take ten times as long.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pilotlight_gateway.dashboard.page_parts.markup import Markup, escaped

ACROSS, LEGEND, NAMED = 8, 26, 6
BAR, HEIGHT, GAP_X, GAP_Y, LABEL = 132, 18, 14, 24, 14
LETTERS = 20
"""Of a node's name, and of what tells its devices apart, above a bar."""
COLOURS = 8
OTHERS = (
    ("part free outlined", "free"),
    ("part loading", "starting"),
    ("part stranded", "stranded"),
    ("part blank", "blank"),
)


@dataclass(frozen=True, kw_only=True)
class FleetDrawing:
    inner: Markup
    width: int
    height: int
    marks: dict[str, str]
    shape: str


def fleet_drawing(devices: Sequence[Mapping[str, Any]], states: Mapping[str, str]) -> FleetDrawing:
    """Devices as `GET /v1/fleet` lists them; `states` has those of containers by id."""
    parts, marks = [_legend(devices)], {}
    step = HEIGHT + GAP_Y
    for place, device in enumerate(devices):
        x, y = (place % ACROSS) * (BAR + GAP_X), (place // ACROSS) * step + LEGEND + LABEL
        inner, scale, left = [], BAR / max(1, device["width"]), 0.0
        for number, segment in enumerate(device["segments"]):
            width = segment["width"] * scale
            name = f"s{place}-{number}"
            mark = mark_of(segment, states)
            marks[name] = mark
            inner.append(
                f'<rect id="{name}" class="{mark}" x="{left:.4g}" width="{max(1.0, width - 1):.4g}" height="{HEIGHT}">'
                f"<title>{escaped(about(segment, states))}</title></rect>"
            )
            left += width
        name = escaped(f"{device['node'][: LETTERS - 7]} {device['id'][-6:]}")
        out = "device out" if device.get("withdrawn") or device.get("draining") else "device"
        parts.append(
            f'<g transform="translate({x} {y})"><text y="-3">{name}</text>{"".join(inner)}'
            f'<rect class="{out}" width="{BAR}" height="{HEIGHT}"/></g>'
        )
    rows = -(-len(devices) // ACROSS)
    text = "".join(parts)
    return FleetDrawing(
        inner=Markup(text), width=ACROSS * (BAR + GAP_X), height=LEGEND + rows * step, marks=marks,
        shape=shape_of(devices),
    )  # fmt: skip


def _legend(devices: Sequence[Mapping[str, Any]]) -> str:
    """The colours of those who have most here, and what else there is to see."""
    width: Counter[str] = Counter()
    for device in devices:
        for segment in device["segments"]:
            if segment["use"] == "used":
                width[segment.get("tenant") or "the platform"] += segment["width"] / max(1, device["width"])
    names = [(f"part t{colour_of(name)}", name[:LETTERS]) for name, _ in width.most_common(NAMED)]
    drawn, x = [], 0
    for mark, name in (*names, *OTHERS):
        drawn.append(
            f'<rect class="{mark}" x="{x + 1}" y="2" width="12" height="12"/><text x="{x + 18}" y="12">'
            f"{escaped(name)}</text>"
        )
        x += 34 + 7 * len(name)
    return "".join(drawn)


def shape_of(devices: Sequence[Mapping[str, Any]]) -> str:
    """What a drawing has the same as long as only colours change: devices and their cuts, and who is in them."""
    told = repr([
        (one["node"], one["id"], one.get("withdrawn"), one.get("draining"),
         [(part["width"], part.get("container"), part["use"]) for part in one["segments"]])
        for one in devices
    ])  # fmt: skip
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def mark_of(segment: Mapping[str, Any], states: Mapping[str, str]) -> str:
    """The class of a segment: what it is used for, whose it is, and how its container is."""
    if segment["use"] != "used":
        return f"part {segment['use']}"
    state = states.get(segment.get("container", ""), "")
    return f"part t{colour_of(segment.get('tenant', ''))} {state if state != 'ready' else ''}".rstrip()


def colour_of(tenant: str) -> int:
    """One of `COLOURS`, the same on every page."""
    return zlib.crc32(tenant.encode()) % COLOURS


def about(segment: Mapping[str, Any], states: Mapping[str, str]) -> str:
    """What a segment is, for who points at it."""
    if segment["use"] != "used":
        return f"{segment.get('label', '')} {segment['use']}".strip()
    container = segment.get("container", "")
    who, state = segment.get("tenant") or "the platform", states.get(container, "")
    return f"{segment.get('label', '')} {who}: {container} {state}".strip()

"""Fleet: what lies where?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pilotlight_gateway.dashboard.drawings.fleet_drawing import fleet_drawing
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Drawing,
    Figure,
    FigureList,
    FormField,
    LinkLine,
    PageForm,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import number_text, part_text, plural

DEVICES = 250
"""On one page."""
PARTS = ("devices", "used", "free", "stranded", "out")
FILTERS = ("type", "node", "tenant")


def fleet_blocks(fleet: Mapping[str, Any], containers: Mapping[str, Any], query: Mapping[str, str]) -> list[Block]:
    """Of the devices that the words of the address ask for, those of one page."""
    found = [device for device in fleet["devices"] if is_asked(device, query)]
    first = DEVICES * max(0, _number(query.get("part", "1")) - 1)
    shown = found[first : first + DEVICES]
    states = {one["id"]: one["state"] for one in containers["containers"]}
    drawn = fleet_drawing(shown, states)
    totals = [sum(parts.get(name, 0.0) for parts in fleet["totals"].values()) for name in PARTS]
    figures = tuple(
        Figure(
            key=name, label=name.capitalize(), value=number_text(value),
            note="" if name == "devices" or not totals[0] else part_text(value / totals[0]),
        )
        for name, value in zip(PARTS, totals, strict=True)
    )  # fmt: skip
    return [
        Sentence(id="answer", text=_sentence(fleet)),
        FigureList(id="totals", figures=figures),
        PageForm(id="filter", action="/ui/fleet", submit="Show", fields=_fields(fleet, query)),
        *_parts(len(found), first, query),
        Drawing(
            id="drawing", label=f"{plural(len(shown), 'device')} to scale: the table below has the same",
            inner=drawn.inner, width=drawn.width, height=drawn.height, marks=drawn.marks, shape=drawn.shape,
        ),
        DataTable(
            id="devices", caption="Devices",
            columns=columns_of("Device", "Kind", "#Free", "#Stranded", "State", "Containers"),
            rows=rows_of([_row(device, states) for device in shown]),
            empty="No device is like that.", note=f"{plural(len(shown), 'device')} of {len(found):,}.", folded=True,
        ),
    ]  # fmt: skip


def is_asked(device: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    """Whether a device is one of those that the page is asked for."""
    if (kind := query.get("type")) and device["type"] != kind:
        return False
    if (node := query.get("node")) and device["node"] != node:
        return False
    tenant = query.get("tenant")
    return not tenant or any(part.get("tenant") == tenant for part in device["segments"])


def _sentence(fleet: Mapping[str, Any]) -> str:
    kinds = [
        f"{number_text(parts['used'] + 0.0)} of {number_text(parts['devices'])} {kind} used"
        for kind, parts in fleet["totals"].items()
    ]
    return f"{', '.join(kinds)}." if kinds else "No node has told of a device."


def _fields(fleet: Mapping[str, Any], query: Mapping[str, str]) -> tuple[FormField, ...]:
    kinds = ("", *fleet["totals"])
    return (
        FormField(name="type", label="Kind", value=query.get("type", ""), options=kinds),
        FormField(name="node", label="Node", value=query.get("node", "")),
        FormField(name="tenant", label="Tenant", value=query.get("tenant", "")),
    )


def _parts(devices: int, first: int, query: Mapping[str, str]) -> list[Block]:
    """Links to the other pages of as many devices."""
    pages = -(-devices // DEVICES)
    if pages < 2:
        return []
    asked = {name: query.get(name) for name in FILTERS}
    links = tuple(
        (
            f"{number * DEVICES + 1} to {min(devices, (number + 1) * DEVICES)}",
            ui_link("/ui/fleet", **asked, part=number + 1),
            number * DEVICES == first,
        )
        for number in range(pages)
    )
    return [LinkLine(id="parts", label="Devices", links=links)]


def _row(device: Mapping[str, Any], states: Mapping[str, str]) -> tuple[str, tuple[Cell | str, ...]]:
    width, segments = max(1, device["width"]), device["segments"]
    free, stranded = (_sum(segments, use) / width for use in ("free", "stranded"))
    names = [
        f"{part.get('tenant') or 'the platform'}: {part['container']} ({states.get(part['container'], part['use'])})"
        for part in segments
        if part.get("container")
    ]
    state = "draining" if device["draining"] else device.get("withdrawn") or "in use"
    return f"{device['node']} {device['id']}", (
        Cell(text=f"{device['node']} {device['id']}", href=ui_link("/ui/fleet", node=device["node"])),
        device["type"], part_text(free), part_text(stranded), state, ", ".join(names),
    )  # fmt: skip


def _sum(segments: Sequence[Mapping[str, Any]], use: str) -> float:
    return float(sum(part["width"] for part in segments if part["use"] == use))


def _number(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 6 else 1


async def _draw(view: PageView) -> list[Block]:
    fleet, containers = await asyncio.gather(view.read("/v1/fleet"), view.read("/v1/containers", all="true"))
    return fleet_blocks(fleet, containers, view.query)


FLEET_PAGE = Page(
    path="/ui/fleet", title="Fleet", question="What lies where?", section=Section.OPERATOR, draw=_draw,
    scopes=("operator",),
)  # fmt: skip

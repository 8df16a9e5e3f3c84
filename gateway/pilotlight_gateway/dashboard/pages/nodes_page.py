"""Nodes and drains: who is there, and who leaves?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    PageForm,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageAction, PageView, Section, filled
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, instant_text, plural, text_at, time_text

NODES = 500
TONES = {"up": "good", "silent": "bad", "revoked": "quiet", "expired": "warn"}


def nodes_blocks(nodes: Mapping[str, Any], at: float) -> list[Block]:
    """The nodes, those first that are not as they should be."""
    listed = sorted(nodes["nodes"], key=lambda one: (one["status"] == "up" and one["state"] == "open", one["node"]))
    silent = sum(one["status"] == "silent" for one in listed)
    leaving = sum(one["state"] == "draining" or one["draining"] for one in listed)
    text = f"{plural(len(listed), 'node')}: {silent or 'none'} silent, {leaving or 'none'} on the way out."
    return [
        Sentence(id="answer", text=text, tone="bad" if silent else "good"),
        DataTable(
            id="nodes", caption="Nodes",
            columns=columns_of("Node", "Status", "State", "Zone", "Pool", "#Containers", "#Slices", "Notice", "#Clock"),
            rows=rows_of([_row(one, at) for one in listed[:NODES]]),
            empty="No node has joined.", note=f"{plural(min(NODES, len(listed)), 'node')} of {len(listed):,}.",
        ),
    ]  # fmt: skip


def node_blocks(node: Mapping[str, Any], containers: Mapping[str, Any]) -> list[Block]:
    """One node, and what may be done with it."""
    name = node["node"]
    here = [one for one in containers["containers"] if one["node"] == name]
    devices = node["guarantees"].get("devices", ())
    text = f"{name} is {node['status']} and {node['state']}."
    return [
        Sentence(id="answer", text=text, tone=TONES.get(node["status"], "")),
        *(
            PageForm(id=verb, action=f"/ui/do/nodes/{name}/{verb}", submit=label, method="post", confirm=note)
            for verb, label, note in (
                ("cordon", "Cordon", "Nothing new starts there."),
                ("drain", "Drain", "Its containers end, each once its calls are done."),
                ("uncordon", "Open again", "It takes containers again."),
            )
        ),
        DataTable(
            id="devices", caption="Devices", columns=columns_of("Device", "Kind", "MIG", "Withdrawn"),
            rows=rows_of([
                (one["id"], (one["id"], one["type"], "yes" if one["mig"] else "no", text_at(one, "withdrawn")))
                for one in devices
            ]),
            empty="It has no GPU.",
        ),
        DataTable(
            id="containers", caption="Containers",
            columns=columns_of("Container", "Tenant", "Function", "State", "Slice", "#Running", "#Age"),
            rows=rows_of([
                (one["id"], (one["id"], one["tenant"], f"{one['app']}.{one['function']}", one["state"], one["slice"],
                             f"{one['running']} of {one['slots']}", time_text(one["age_s"] * 1000)))
                for one in here
            ]),
        ),
    ]  # fmt: skip


def _row(one: Mapping[str, Any], at: float) -> tuple[str, tuple[Cell | str, ...]]:
    notice = one["notice"]
    told = ""
    if notice:
        left = notice["deadline"] - at
        told = f"{notice['kind']} in {time_text(max(0.0, left) * 1000)}" if notice["deadline"] else notice["kind"]
    ends = f", until {instant_text(one['expires_at'])}" if one["status"] == "expired" else ""
    clock = "" if one["clock_s"] is None else f"{one['clock_s']:+.2f} s"
    return one["node"], (
        Cell(text=one["node"], href=f"/ui/nodes/{one['node']}"),
        Cell(text=f"{one['status']}{ends}", tone=TONES.get(one["status"], "")),
        Cell(text=one["state"], tone="" if one["state"] == "open" else "warn"),
        one["zone"], one["pool"], count_text(one["containers"]), count_text(len(one["slices"])),
        Cell(text=told, tone="warn"), clock,
    )  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    return nodes_blocks(await view.read("/v1/nodes"), view.at)


async def _draw_one(view: PageView) -> list[Block]:
    node = await view.read(filled("/v1/nodes/{node}", view.words))
    return node_blocks(node, await view.read("/v1/containers", all="true"))


NODES_PAGE = Page(
    path="/ui/nodes", title="Nodes", question="Who is there, and who leaves?", section=Section.OPERATOR, draw=_draw,
    scopes=("operator",),
)  # fmt: skip
NODE_PAGE = Page(
    path="/ui/nodes/{node}", title="Node", question="What is on it?", section=Section.OPERATOR, draw=_draw_one,
    scopes=("operator",),
)  # fmt: skip
NODE_ACTIONS = tuple(
    PageAction(
        path=f"/ui/do/nodes/{{node}}/{verb}", method="POST", api_path=f"/v1/nodes/{{node}}/{verb}",
        back="/ui/nodes/{node}", scopes=("operator",),
    )
    for verb in ("cordon", "drain", "uncordon")
)  # fmt: skip

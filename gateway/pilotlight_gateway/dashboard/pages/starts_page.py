"""Cold starts: what takes their time?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.drawings.step_bars import step_bars
from pilotlight_gateway.dashboard.page_parts.blocks import Block, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import count_text, time_text

DRAWN = 20


def starts_blocks(starts: Mapping[str, Any]) -> list[Block]:
    """By function and step."""
    listed = starts["starts"]
    steps = list(dict.fromkeys(step for one in listed for step in one["steps"]))
    text = "No container has told how it started."
    if listed:
        slowest = listed[0]
        step = max(slowest["steps"], key=lambda name: slowest["steps"][name])
        text = (
            f"A start of {slowest['function']} takes {time_text(slowest['total_ms'])}, "
            f"most of it {step} ({time_text(slowest['steps'][step])})."
        )
    rows = [(one["function"], list(one["steps"].items())) for one in listed[:DRAWN]]
    return [
        Sentence(id="answer", text=text),
        step_bars("drawing", "Starts by step, on average: the table below has the same", rows),
        DataTable(
            id="starts", caption="Starts of the containers that are there",
            columns=columns_of("Function", "#Containers", "#Starting", "#On average", "#Longest",
                               *(f"#{step}" for step in steps)),
            rows=rows_of([
                (one["function"],
                 (one["function"], count_text(one["containers"]), count_text(one["starting"]),
                  time_text(one["total_ms"]), time_text(one["longest_ms"]),
                  *(time_text(one["steps"].get(step)) for step in steps)))
                for one in listed
            ]),
        ),
    ]  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    return starts_blocks(await view.read("/v1/starts"))


STARTS_PAGE = Page(
    path="/ui/starts", title="Cold starts", question="What takes their time?", section=Section.OPERATOR, draw=_draw,
    scopes=("operator",),
)  # fmt: skip

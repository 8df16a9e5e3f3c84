"""Breakers: what is kept from calls because it fails?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import Block, Cell, DataTable, Sentence, columns_of, rows_of
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section
from pilotlight_gateway.dashboard.page_parts.shown_values import NOTHING, count_text, plural, time_text

TONES = {"open": "bad", "half_open": "warn", "closed": ""}


def breakers_blocks(breakers: Mapping[str, Any]) -> list[Block]:
    """Of those that are not closed, or count failures."""
    listed = breakers["breakers"]
    shut = [one for one in listed if one["state"] != "closed"]
    text = f"{plural(len(shut), 'breaker')} not closed." if shut else "All breakers are closed."
    return [
        Sentence(id="answer", text=text, tone="bad" if shut else "good"),
        DataTable(
            id="breakers", caption="Breakers",
            columns=columns_of("Version", "Of", "Container or caller", "State", "#Failures in a row", "#Next try"),
            rows=rows_of([
                (f"{one['version']} {one['of']} {one['container']} {one['caller']}",
                 (one["version"], one["of"], one["container"] or one["caller"] or "all calls",
                  Cell(text=one["state"].replace("_", " "), tone=TONES.get(one["state"], "")),
                  count_text(one["failures"]),
                  time_text(one["retry_after_s"] * 1000) if one["retry_after_s"] else NOTHING))
                for one in listed
            ]),
            empty="None is open, and none counts failures.",
        ),
    ]  # fmt: skip


async def _draw(view: PageView) -> list[Block]:
    return breakers_blocks(await view.read("/v1/breakers"))


BREAKERS_PAGE = Page(
    path="/ui/breakers", title="Breakers", question="What is kept from calls because it fails?",
    section=Section.OPERATOR, draw=_draw, scopes=("operator",),
)  # fmt: skip

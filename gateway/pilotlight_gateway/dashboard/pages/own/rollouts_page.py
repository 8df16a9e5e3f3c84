"""Rollouts: which of my apps change, how far are they, and is a new version worse?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pilotlight_gateway.dashboard.page_parts.blocks import (
    BarScale,
    Block,
    Cell,
    CellBar,
    DataTable,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    NOTHING,
    count_text,
    instant_text,
    number_text,
    plural,
    short_text,
)

HOLDS, GOES_BACK = 10.0, 100.0
"""E from which a rollout holds, and goes back."""
DECADES = 3.0
"""Of E, along its bar: from 1 to 1,000, so that both marks are at thirds."""
MOST_NAMES, LONGEST_NAME = 3, 40
OVER = ("promoted", "rolled_back", "superseded")
STATE_TONES = {"promoted": "good", "rolled_back": "bad", "rolling_back": "bad", "superseded": "quiet"}
VERDICT_TONES = {"regressed": "bad", "invalid": "bad", "verified": "good"}


def rollouts_blocks(told: Mapping[str, Any], tenant: str, *, of_all: bool = False) -> list[Block]:
    """Of each app the rollout under way, or the last one. `of_all`: of all tenants."""
    listed = told["rollouts"]
    columns = ("App", "State", "#Step", "Share", "E", "Verdict", "#Since (UTC)", "#Goes on (UTC)", "Versions")
    left = f"{count_text(told['left'])} more ended earlier." if told["left"] else ""
    return [
        Sentence(id="answer", text=_answer(listed), tone=_tone(listed)),
        DataTable(
            id="rollouts", caption="Rollouts, those under way first",
            columns=columns_of(*(("Tenant",) if of_all else ()), *columns),
            rows=rows_of([(f"{one['tenant']}:{one['app']}", _row(one, tenant, of_all=of_all)) for one in listed]),
            empty="No app has had a rollout: pilotlight rollout start APP begins one.", note=left,
        ),
        Sentence(id="marks", tone="quiet", text=(
            "E says how much speaks for the new version being worse. Its bar has two marks: from 10 a rollout holds, "
            "from 100 it goes back by itself."
        )),
    ]  # fmt: skip


def _answer(listed: Sequence[Mapping[str, Any]]) -> str:
    running = [one for one in listed if one["state"] not in OVER]
    if not running:
        return "No rollout is under way."
    stand = [one for one in running if one["held"] or one["paused_by"] or one["frozen"]]
    text = f"{plural(len(running), 'rollout is', 'rollouts are')} under way"
    standing = f", and {'does not go on' if len(running) == 1 else f'{len(stand)} of them do not go on'}"
    text += f"{standing}." if stand else "."
    loudest = max(running, key=lambda one: one["evidence"])
    if loudest["evidence"] >= HOLDS:
        text += f" E of {loudest['app']} is {number_text(loudest['evidence'])}."
    return text


def _tone(listed: Sequence[Mapping[str, Any]]) -> str:
    running = [one for one in listed if one["state"] not in OVER]
    if any(one["evidence"] >= HOLDS or one["state"] == "rolling_back" for one in running):
        return "bad"
    return "warn" if any(one["held"] for one in running) else ""


def _row(one: Mapping[str, Any], tenant: str, *, of_all: bool) -> tuple[Cell | str, ...]:
    own = one["tenant"] == tenant
    app = Cell(text=one["app"], href=rollout_link(one["app"]) if own else "")
    return (
        *((one["tenant"],) if of_all else ()), app, state_cell(one),
        f"{one['step']} of {len(one['steps'])}" if one["step"] else NOTHING, share_cell(one),
        evidence_cell(one["evidence"]), Cell(text=one["verdict"], tone=VERDICT_TONES.get(one["verdict"], "")),
        instant_text(one["since"]), next_text(one), _versions(one["functions"]),
    )  # fmt: skip


def _versions(functions: Mapping[str, Mapping[str, str]]) -> str:
    """What becomes of which function, without the app's name, which stands beside it."""
    names = sorted(functions)
    text = ", ".join(
        f"{short_text(name, LONGEST_NAME)} {_number(functions[name].get('control', 'none'))} → "
        f"{_number(functions[name]['canary'])}" for name in names[:MOST_NAMES]
    )  # fmt: skip
    return f"{text} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else text


def _number(version: str) -> str:
    return short_text(version.rpartition("@")[2], LONGEST_NAME)


def state_cell(one: Mapping[str, Any]) -> Cell:
    """Where a rollout is, and whether it goes on."""
    text, tone = one["state"].replace("_", " "), STATE_TONES.get(one["state"], "")
    if one["state"] in OVER:
        return Cell(text=text, tone=tone)
    for word, is_so in (("paused", one["paused_by"]), ("frozen", one["frozen"]), ("held", one["held"])):
        if is_so:
            return Cell(text=f"{text}, {word}", tone=tone or "warn")
    return Cell(text=text, tone=tone)


def share_cell(one: Mapping[str, Any]) -> Cell:
    """The part of the traffic that the new version has."""
    share = 100.0 if one["state"] == "promoted" else one["share"]
    return Cell(text=f"{number_text(share)} %", bar=CellBar(part=share / 100.0))


def evidence_cell(evidence: float, *, counts: bool = True) -> Cell:
    """E, or the e of a guard, with the two marks; `counts`: whether anything follows from it."""
    part = max(0.0, math.log10(evidence) / DECADES) if evidence > 0.0 else 0.0
    tone = "bad" if evidence >= GOES_BACK else "warn" if evidence >= HOLDS else ""
    return Cell(
        text=number_text(evidence), tone=tone if counts else "quiet",
        bar=CellBar(part=min(1.0, part), scale=BarScale.EVIDENCE),
    )  # fmt: skip


def next_text(one: Mapping[str, Any]) -> str:
    """When it goes on, or what it waits for."""
    if one["state"] in OVER:
        return NOTHING
    if one["state"] == "rolling_back":
        return "once what runs has ended"
    if one["paused_by"] or one["frozen"]:
        return "when told to"
    if one["next_at"]:
        return instant_text(one["next_at"])
    return f"held: {one['held'].replace('_', ' ')}" if one["held"] else "once it is ready"


def rollout_link(app: str) -> str:
    """The page of an app's rollout."""
    return filled("/ui/rollouts/{app}", {"app": app})


async def _draw(view: PageView) -> list[Block]:
    return rollouts_blocks(await view.read("/v1/rollouts"), view.viewer.tenant)


ROLLOUTS_PAGE = Page(
    path="/ui/rollouts", title="Rollouts", question="Which of mine change, and is a new version worse?",
    section=Section.TENANT, draw=_draw, scopes=("read", "deploy"), every_s=2.0,
)  # fmt: skip

"""The rollout of an app: how far is it, is the new version worse, and what may be done about it?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.model.rollouts.rollout_record import WHY_HELD
from pilotlight_gateway.dashboard.drawings.rollout_line import rollout_line
from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, read_part, unanswered
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Figure,
    FigureList,
    FormField,
    Heading,
    PageForm,
    Sentence,
    TextLines,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.page import Page, PageAction, PageView, Section, filled
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    NOTHING,
    count_text,
    instant_text,
    number_text,
    plural,
    short_text,
)
from pilotlight_gateway.dashboard.pages.own.rollouts_page import (
    GOES_BACK,
    HOLDS,
    OVER,
    STATE_TONES,
    VERDICT_TONES,
    evidence_cell,
    evidence_text,
    next_text,
    share_cell,
    state_cell,
)

MOST_EVENTS, LONGEST_SENTENCE = 40, 300
KINDS = "rollout."
EVENT_TONES = {"rollout.rolled_back": "bad", "rollout.held": "warn", "rollout.promoted": "good"}
WORDS = (
    ("pause", "Pause", "It stays at its share; the judge may still roll back."),
    ("resume", "Resume", "It goes on after a pause or a freeze."),
    ("freeze", "Freeze", "Nothing changes, also if the evidence is against it."),
    ("promote", "Promote", "The new version is put into service now, whatever the judge says."),
    ("abort", "Abort", "All goes back to the old version now; the new one is not marked as worse."),
)
"""What may be said to a rollout, with what that does."""
REASONED = ("promote", "abort")
TERMS = {
    "every_s": "Seconds at a step, at least", "calls": "Compared calls at a step, at least",
    "bake_s": "Seconds of baking", "sticky": "What stays on one side", "twin": "With a twin", "pairs": "Pairs",
    "tolerance": "Tolerated part, if it was named", "on_undecided": "At the end without proof", "gate": "Gate",
    "allow_breaking": "Breaking schemas allowed", "skip_judging": "Without a judge",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RolloutNotes:
    """What is told of an app's rollouts beside the one that is shown."""

    events: Sequence[Mapping[str, Any]] | None = ()
    """None: nobody says."""
    past: AnsweredPart = field(default_factory=lambda: AnsweredPart(value={"rollouts": ()}))


def rollout_blocks(one: Mapping[str, Any], notes: RolloutNotes, *, may_tell: bool = False) -> list[Block]:
    """Of the rollout under way, or the last one. `may_tell`: whether the viewer may say what becomes of it."""
    running = one["state"] not in OVER
    return [
        Sentence(id="answer", text=_answer(one), tone=_tone(one)),
        rollout_line("steps", one["steps"], _place(one), _mark(one)),
        FigureList(id="now", figures=_figures(one)),
        *(_forms(one) if running and may_tell else []),
        *([] if may_tell or not running else [Sentence(id="telling", tone="quiet", text=(
            f"Keys with the scope deploy may say: pilotlight rollout pause {one['app']} "
            "(or resume, freeze, promote, abort)."
        ))]),
        Heading(id="judged", text="What the judge says"),
        TextLines(id="sentences", label="What the judge says", lines=tuple(one["sentences"]) or ("Nothing yet.",)),
        _guards(one),
        _versions(one),
        _events(one["app"], notes.events),
        *unanswered("no-past", "Earlier rollouts", notes.past),
        *([_past(notes.past.value["rollouts"])] if notes.past.answered else []),
        DataTable(
            id="terms", caption="What was asked for", columns=columns_of("What", "Value"), folded=True,
            rows=rows_of([(name, (words, _term(one["terms"][name])))
                          for name, words in TERMS.items() if name in one["terms"]]),
        ),
    ]  # fmt: skip


def _answer(one: Mapping[str, Any]) -> str:
    text = f"Rollout {one['number']} of {one['app']} "
    if one["state"] in OVER:
        because = f": {one['reason']}" if one["reason"] else ""
        return f"{text}ended at {instant_text(one['since'])}: {one['state'].replace('_', ' ')}{because}"
    text += f"({state_cell(one).text}): {number_text(one['share'])} % of calls go to the new version"
    if one["state"] == "rolling_back":
        return f"{text}. Because: {one['reason']}"
    held = f", and it does not go on: {WHY_HELD.get(one['held'], one['held'])}" if one["held"] else ""
    paused = f", paused by {one['paused_by']}" if one["paused_by"] else ""
    return f"{text}; E is {evidence_text(one['evidence'])}{paused}{held}."


def _tone(one: Mapping[str, Any]) -> str:
    if one["state"] in STATE_TONES:
        return STATE_TONES[one["state"]]
    return "bad" if one["evidence"] >= HOLDS else "warn" if one["held"] or one["paused_by"] or one["frozen"] else ""


def _place(one: Mapping[str, Any]) -> int:
    """Where it is, on the line of its steps and what comes behind them."""
    steps, step = len(one["steps"]), int(one["step"])
    return {"baking": steps, "promoted": steps + 1}.get(one["state"], step - 1)


def _mark(one: Mapping[str, Any]) -> str:
    if one["state"] in ("rolled_back", "rolling_back", "superseded"):
        return "back"
    return "held" if one["held"] or one["paused_by"] or one["frozen"] else "now"


def _figures(one: Mapping[str, Any]) -> tuple[Figure, ...]:
    calls, ready = one["calls"], one["ready"]
    old = sum(count for arm, count in calls.items() if arm != "canary")
    pairs = sum(seen["canary"] for seen in one["seen"] if seen["guard"] == "pairs")
    evidence = one["evidence"]
    tone = "bad" if evidence >= GOES_BACK else "warn" if evidence >= HOLDS else ""
    return (
        Figure(key="state", label="State", value=state_cell(one).text, note=f"since {instant_text(one['since'])}",
               tone=state_cell(one).tone),
        Figure(key="next", label="Goes on (UTC)", value=next_text(one),
               note="at the earliest" if one["next_at"] else ""),
        Figure(key="share", label="Share of the new version", value=share_cell(one).text,
               note=f"twin: {number_text(one['twin_share'])} %"),
        Figure(key="e", label="E", value=evidence_text(evidence), note="holds from 10, goes back from 100", tone=tone),
        Figure(key="verdict", label="Verdict", value=one["verdict"], tone=VERDICT_TONES.get(one["verdict"], "")),
        Figure(key="calls", label="Compared calls, new version", value=count_text(calls.get("canary", 0)),
               note=f"{count_text(old)} of the old one; {count_text(pairs)} pairs of shadows"),
        Figure(key="ready", label="Ready containers, new version", value=count_text(ready.get("canary", 0)),
               note=f"{count_text(ready.get('twin', 0))} of its twin, {count_text(ready.get('control', 0))} of the old "
                    "one"),
        Figure(key="begun", label="Begun (UTC)", value=instant_text(one["started_at"]), note=f"by {one['by']}"),
    )  # fmt: skip


def _forms(one: Mapping[str, Any]) -> list[Block]:
    """What may be said to it now."""
    stands = bool(one["paused_by"] or one["frozen"])
    useless = {"pause": bool(one["paused_by"]), "freeze": one["frozen"], "resume": not (stands or one["held"])}
    if one["state"] == "rolling_back":
        return []
    return [
        PageForm(
            id=word, action=filled(f"/ui/do/rollouts/{{app}}/{word}", {"app": one["app"]}), submit=label,
            method="post", confirm=note,
            fields=(
                FormField(name="rollout", value=one["id"]),  # what the viewer has seen: a newer one is left alone
                *((FormField(name="reason", label="Why"),) if word in REASONED else ()),
            ),
        )
        for word, label, note in WORDS if not useless.get(word, False)
    ]  # fmt: skip


def _guards(one: Mapping[str, Any]) -> DataTable:
    whole = (
        "E", "the mean of all guards", "all" if len(one["functions"]) > 1 else "".join(one["functions"]),
        evidence_cell(one["evidence"]), count_text(one["calls"].get("canary", 0)),
        count_text(sum(count for arm, count in one["calls"].items() if arm != "canary")), NOTHING, NOTHING, NOTHING,
    )  # fmt: skip
    rows: list[tuple[str, tuple[Cell | str, ...]]] = [("E", whole)]
    rows += [(f"{seen['function']} {seen['guard']}", _guard(seen)) for seen in one["seen"]]
    return DataTable(
        id="guards", caption="What each guard says, the loudest first",
        columns=columns_of("Guard", "About", "Function", "E", "#New version", "#Old version", "#Effect",
                           "#19 times in 20", "#Proven within"),
        rows=rows_of(rows),
        note="Marks of E: from 10 the rollout holds, from 100 it goes back. The interval is for one look, and decides "
             "nothing. Guards without weight are shown alone.",
    )  # fmt: skip


def _guard(seen: Mapping[str, Any]) -> tuple[Cell | str, ...]:
    interval = NOTHING
    if seen["low"] is not None and seen["high"] is not None:
        interval = f"{_signed(seen['low'])} to {_signed(seen['high'])}"
    within = "" if seen["proven"] is None else f"{seen['proven'] * 100:.0f} %"
    return (
        seen["guard"], seen["about"], seen["function"], evidence_cell(seen["evidence"], counts=seen["weight"] > 0.0),
        _counted(seen["canary"], seen["canary_of"]), _counted(seen["other"], seen["other_of"]),
        _signed(seen["effect"]), interval, Cell(text=within or NOTHING, tone="good" if within else ""),
    )  # fmt: skip


def _counted(count: int, whole: int | None) -> str:
    return count_text(count) if whole is None else f"{count_text(count)} of {count_text(whole)}"


def _signed(part: float | None) -> str:
    """A part more or less: beyond ten times, how many times."""
    if part is None:
        return NOTHING
    return f"×{number_text(1 + part)}" if part >= 9.0 else f"{part * 100:+.1f} %"


def _versions(one: Mapping[str, Any]) -> DataTable:
    return DataTable(
        id="versions", caption="Versions", columns=columns_of("Function", "Old", "New"),
        rows=rows_of([
            (name, (name, sides.get("control", "none: it is new"), sides["canary"]))
            for name, sides in sorted(one["functions"].items())
        ]),
    )  # fmt: skip


def _events(app: str, told: Sequence[Mapping[str, Any]] | None) -> Block:
    if told is None:
        return Sentence(id="events", text="Its events: not known.", tone="quiet")
    mine = [event for event in told[::-1] if event["facts"].get("app") == app][:MOST_EVENTS]
    return DataTable(
        id="events", caption="Events, the newest first", columns=columns_of("#At (UTC)", "Kind", "What"),
        rows=rows_of([
            (str(event["id"]),
             (instant_text(event["at"]), Cell(text=event["kind"], tone=EVENT_TONES.get(event["kind"], "")),
              short_text(event["says"], LONGEST_SENTENCE)))
            for event in mine
        ]),
        empty="There is none, lately.",
    )  # fmt: skip


def _past(listed: Sequence[Mapping[str, Any]]) -> DataTable:
    rows = [
        (one["id"],
         (count_text(one["number"]), instant_text(one["started_at"]), Cell(text=one["state"].replace("_", " "),
          tone=STATE_TONES.get(one["state"], "")), ", ".join(sides["canary"] for sides in one["functions"].values()),
          evidence_text(one["evidence"]), one["verdict"], short_text(one["reason"], LONGEST_SENTENCE)))
        for one in listed[1:]
    ]  # fmt: skip
    return DataTable(
        id="past", caption="Earlier rollouts", empty="There was none.",
        columns=columns_of("Number", "Begun (UTC)", "State", "New", "#E", "Verdict", "Reason"),
        rows=rows_of(list(rows)), note=f"{plural(len(rows), 'rollout')}." if rows else "",
    )  # fmt: skip


def _term(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if value in (None, "") else number_text(value) if isinstance(value, float | int) else str(value)


async def _draw(view: PageView) -> list[Block]:
    app = view.words["app"]
    one = await view.read_if_there(filled("/v1/apps/{app}/rollout", view.words))
    if one is None:
        text = f"{app} has had no rollout: pilotlight rollout start {app} begins one."
        return [Sentence(id="answer", text=text, tone="quiet")]
    events, past = await asyncio.gather(
        _followed(view), read_part(view, filled("/v1/apps/{app}/rollouts", view.words))
    )  # fmt: skip
    return rollout_blocks(one, RolloutNotes(events=events, past=past), may_tell=view.viewer.may("deploy"))


async def _followed(view: PageView) -> Sequence[Mapping[str, Any]] | None:
    """The last events of all rollouts of the tenant, which its pages share; None: nobody says."""
    try:
        return await view.follow("/v1/events", kind=KINDS, limit=150)
    except ApiProblem as problem:
        if problem.status == 401:
            raise
        return None


ROLLOUT_PAGE = Page(
    path="/ui/rollouts/{app}", title="Rollout", question="Is the new version worse?", section=Section.TENANT,
    draw=_draw, scopes=("read", "deploy"),
)  # fmt: skip
ROLLOUT_ACTIONS = tuple(
    PageAction(
        path=f"/ui/do/rollouts/{{app}}/{word}", method="POST", api_path=f"/v1/apps/{{app}}/rollout/{word}",
        back="/ui/rollouts/{app}", scopes=("deploy",),
        body=lambda fields: {"reason": fields.get("reason", ""), "rollout": fields.get("rollout", "")},
    )
    for word, _, _ in WORDS
)  # fmt: skip

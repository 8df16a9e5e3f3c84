"""Keys and limits: who may do what, and what stands in the way?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, read_part, unanswered
from pilotlight_gateway.dashboard.page_parts.blocks import (
    Block,
    Cell,
    DataTable,
    Sentence,
    columns_of,
    rows_of,
)
from pilotlight_gateway.dashboard.page_parts.page import Page, PageView, Section, filled, ui_link
from pilotlight_gateway.dashboard.page_parts.shown_values import (
    bytes_text,
    count_text,
    instant_text,
    number_text,
    plural,
)

USED_DAYS = 30
MOST_REFUSALS = 200
MOST_KEYS = 200
REFUSALS = (
    "rate_limited", "queue_full", "quota_exceeded", "budget_exhausted", "too_many_tokens", "payload_too_large",
    "overloaded",
)  # fmt: skip
"""Codes of calls that a limit refused."""
EXPLAINED = {
    "requests_per_s": "calls a second", "burst": "calls at once", "cost_per_s": "GPU ms a second",
    "cost_burst": "GPU ms at once", "tokens_per_s": "tokens a second", "tokens_burst": "tokens at once",
    "prompt_tokens": "tokens of a prompt", "output_tokens": "tokens of an answer", "concurrency": "calls at a time",
    "payload_bytes": "bytes of a call", "queue_calls": "calls that wait", "queue_seconds": "seconds of waiting",
    "timeout_s": "seconds of a call", "apps": "apps", "functions": "functions", "versions": "versions of a function",
    "open_functions": "functions for everybody", "record_bytes": "bytes of records", "blob_bytes": "bytes of files",
    "keys": "valid keys", "deploys_per_hour": "deploys an hour", "api_requests_per_s": "other requests a second",
    "open_requests": "other requests at a time", "log_bytes_per_hour": "bytes of logs an hour",
    "containers": "containers", "gpus": "GPUs", "floor_containers": "containers without calls",
    "guarantee": "part of the fleet that is theirs", "borrow": "part of the fleet beside it",
}  # fmt: skip


def keys_blocks(
    keys: AnsweredPart,
    used: AnsweredPart,
    limits: AnsweredPart,
    held: Mapping[str, int],
    refused: AnsweredPart,
    at: float,
) -> list[Block]:
    """Of the keys with the days on which they were used, and of the limits with how much of them is held now."""
    valid = [one for one in keys.value["keys"] if _is_valid(one, at)] if keys.answered else []
    found = (
        Counter(one["code"] for one in refused.value["calls"] if one["code"] in REFUSALS) if refused.answered else {}
    )
    text = f"{plural(len(valid), 'key is', 'keys are')} valid. " if keys.answered else ""
    reached = [name for name, limit in _effective(limits) if name in held and held[name] >= limit]
    if reached:
        text += f"Reached is the limit of {', '.join(EXPLAINED.get(name, name) for name in reached)}."
    elif found:
        text += f"Limits refused {plural(sum(found.values()), 'call')} lately."
    else:
        text += "No limit stands in the way now."
    return [
        Sentence(id="answer", text=text, tone="warn" if reached or found else ""),
        *unanswered("no-keys", "Keys", keys),
        *([_keys(keys.value, used, at)] if keys.answered else []),
        *unanswered("no-use", "When keys were used", used),
        *unanswered("no-limits", "Limits", limits),
        *(_limits(limits.value, held) if limits.answered else []),
        *unanswered("no-refusals", "What limits refused", refused),
        *([_refusals(found)] if refused.answered else []),
    ]


def _is_valid(one: Mapping[str, Any], at: float) -> bool:
    return not one["revoked"] and (one["expires_at"] is None or one["expires_at"] > at)


def _keys(told: Mapping[str, Any], used: AnsweredPart, at: float) -> DataTable:
    lines = used.value["lines"] if used.answered else ()
    last: dict[str, str] = {}
    calls: Counter[str] = Counter()
    for one in lines:
        if one["calls"]:
            last[one["key"]] = max(last.get(one["key"], ""), one["day"])
            calls[one["key"]] += one["calls"]
    return DataTable(
        id="keys", caption="API keys",
        columns=columns_of("Key", "Label", "Scopes", "State", "Last calls (day)", "#Calls in 30 days", "Made (UTC)",
                           "Ends (UTC)"),
        rows=rows_of([
            (one["id"],
             (one["id"], one["label"], ", ".join(one["scopes"]), _state(one, at),
              (last.get(one["id"], "none") if used.answered else "not known"),
              count_text(calls[one["id"]]) if used.answered else "not known", instant_text(one["created_at"]),
              instant_text(one["expires_at"]) if one["expires_at"] else "never"))
            for one in told["keys"][:MOST_KEYS]
        ]),
        note=f"{count_text(len(told['keys']))} in all." if len(told["keys"]) > MOST_KEYS else "",
    )  # fmt: skip


def _state(one: Mapping[str, Any], at: float) -> Cell:
    if one["revoked"]:
        return Cell(text="revoked", tone="quiet")
    if not _is_valid(one, at):
        return Cell(text="expired", tone="quiet")
    if one["break_glass"]:
        return Cell(text="valid, for emergencies", tone="warn")
    return Cell(text=f"replaced by {one['replaced_by']}", tone="warn") if one["replaced_by"] \
        else Cell(text="valid", tone="good")  # fmt: skip


def _effective(limits: AnsweredPart) -> list[tuple[str, float]]:
    return list(limits.value["effective"].items()) if limits.answered else []


def _limits(told: Mapping[str, Any], held: Mapping[str, int]) -> list[Block]:
    rows = []
    for name, limit in told["effective"].items():
        now = held.get(name)
        state = Cell(text="not told here", tone="quiet")
        if now is not None:
            state = Cell(text="reached", tone="bad") if now >= limit else Cell(text="open", tone="good")
        source = "your own" if name in told["limits"] else f"the tier {told['tier']}"
        rows.append((name, (EXPLAINED.get(name, name), _amount(name, limit), count_text(now), state, source)))
    single = [
        (f"{function} {name}", (function, EXPLAINED.get(name, name), _amount(name, limit)))
        for function, own in told["functions"].items()
        for name, limit in own.items()
    ]
    return [
        DataTable(
            id="limits", caption="Limits of all that is yours",
            columns=columns_of("Of", "#Limit", "#Now", "State", "Set by"),
            rows=rows_of(list(rows)), empty="There is none: nothing is limited but by the fleet.",
        ),
        *([DataTable(id="function-limits", caption="Limits of calls to one function",
                     columns=columns_of("Function", "Of", "#Limit"), rows=rows_of(list(single)))] if single else []),
    ]  # fmt: skip


def _amount(name: str, limit: float) -> str:
    return bytes_text(limit) if name.endswith(("_bytes", "_bytes_per_hour")) else number_text(limit, 9)


def _refusals(found: Mapping[str, int]) -> DataTable:
    return DataTable(
        id="refusals", caption="What limits refused, of the failed calls that are kept",
        columns=columns_of("Code", "#Calls", "Which"),
        rows=rows_of([
            (code, (code, count_text(count), Cell(text="calls", href=ui_link("/ui/calls", kept="error"))))
            for code, count in found.items()
        ]),
        empty="Nothing, lately.",
    )  # fmt: skip


def held_of(keys: AnsweredPart, apps: AnsweredPart, containers: AnsweredPart, at: float) -> dict[str, int]:
    """How much there is now of what is limited, as far as lists say."""
    found = {}
    if keys.answered:
        found["keys"] = sum(_is_valid(one, at) for one in keys.value["keys"])
    if apps.answered:
        found["apps"] = len(apps.value["apps"])
        found["functions"] = sum(len(app["functions"]) for app in apps.value["apps"])
    if containers.answered:
        found["containers"] = len(containers.value["containers"])
    return found


async def _draw(view: PageView) -> list[Block]:
    first = (datetime.fromtimestamp(view.at, UTC).date() - timedelta(days=USED_DAYS - 1)).isoformat()
    keys, used, limits, apps, containers, refused = await asyncio.gather(
        read_part(view, "/v1/keys"),
        read_part(view, "/v1/usage", **{"from": first}, group="day,key"),
        read_part(view, filled("/v1/tenants/{tenant}/limits", {"tenant": view.viewer.tenant})),
        read_part(view, "/v1/apps"),
        read_part(view, "/v1/containers"),
        read_part(view, "/v1/calls", kept="error", limit=MOST_REFUSALS),
    )
    return keys_blocks(keys, used, limits, held_of(keys, apps, containers, view.at), refused, view.at)


KEYS_PAGE = Page(
    path="/ui/keys", title="Keys and limits", question="Who may do what, and what stands in the way?",
    section=Section.TENANT, draw=_draw, live=False,  # it sums thirty days
)  # fmt: skip

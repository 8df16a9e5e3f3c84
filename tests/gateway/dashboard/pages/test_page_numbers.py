"""Every number on a page is a JSON route's: each page is drawn again with one number of a route changed.

What is on the page follows each number that it shows, and nothing else on the page has digits.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import Block
from pilotlight_gateway.dashboard.pages.breakers_page import breakers_blocks
from pilotlight_gateway.dashboard.pages.decisions_page import decisions_blocks
from pilotlight_gateway.dashboard.pages.fleet_page import fleet_blocks
from pilotlight_gateway.dashboard.pages.functions_page import functions_blocks
from pilotlight_gateway.dashboard.pages.money_page import money_blocks
from pilotlight_gateway.dashboard.pages.nodes_page import node_blocks, nodes_blocks
from pilotlight_gateway.dashboard.pages.overview_page import overview_blocks
from pilotlight_gateway.dashboard.pages.own.batches_page import batches_blocks
from pilotlight_gateway.dashboard.pages.own.call_page import call_blocks
from pilotlight_gateway.dashboard.pages.own.calls_page import calls_blocks
from pilotlight_gateway.dashboard.pages.own.events_page import events_blocks
from pilotlight_gateway.dashboard.pages.own.function_details import (
    bound_blocks,
    cause_blocks,
    container_blocks,
    version_blocks,
)
from pilotlight_gateway.dashboard.pages.own.jobs_page import jobs_blocks
from pilotlight_gateway.dashboard.pages.own.keys_page import keys_blocks
from pilotlight_gateway.dashboard.pages.own.logs_page import logs_blocks
from pilotlight_gateway.dashboard.pages.own.rollout_page import RolloutNotes, rollout_blocks
from pilotlight_gateway.dashboard.pages.own.rollouts_page import rollouts_blocks
from pilotlight_gateway.dashboard.pages.own.schedules_page import schedules_blocks
from pilotlight_gateway.dashboard.pages.own.spending_page import spending_blocks
from pilotlight_gateway.dashboard.pages.own.webhooks_page import webhooks_blocks
from pilotlight_gateway.dashboard.pages.queues_page import queues_blocks
from pilotlight_gateway.dashboard.pages.slowdowns_page import slowdowns_blocks
from pilotlight_gateway.dashboard.pages.starts_page import starts_blocks
from pilotlight_gateway.dashboard.pages.tenants_page import tenants_blocks
from tests.gateway.dashboard.pages import own_scenes as scenes
from tests.gateway.dashboard.pages.rollout_scenes import rollout, rollouts, told_event

FLEET = {
    "devices": [
        {
            "node": "n1", "id": "gpu", "type": "H100", "mig": True, "draining": False, "withdrawn": "", "width": 8,
            "segments": [
                {"use": "used", "width": 3, "label": "3g", "tenant": "acme", "container": "ctr"},
                {"use": "free", "width": 4, "label": "4g"}, {"use": "stranded", "width": 1, "label": ""},
            ],
        }
    ],
    "totals": {"H100": {"devices": 31.0, "used": 0.375, "free": 0.5, "stranded": 0.125, "out": 2.0}},
}  # fmt: skip
NODE = {
    "node": "n1", "status": "up", "state": "open", "zone": "a", "pool": "", "containers": 41, "slices": [{}, {}],
    "notice": {"kind": "preempt", "deadline": 120.0}, "draining": False, "clock_s": 0.25, "expires_at": None,
    "guarantees": {"devices": [{"id": "gpu", "type": "H100", "mig": True}]},
}  # fmt: skip
CONTAINER = {
    "id": "ctr", "tenant": "acme", "app": "shop", "function": "hello", "state": "ready", "node": "n1", "slice": "s",
    "running": 3, "slots": 16, "age_s": 77.0, "timeline": {"load": 900.0},
}  # fmt: skip
QUEUE = {
    "version": "shop.hello", "tenant": "acme", "function": "acme:shop.hello", "gateway": "g", "queued": 17,
    "oldest_ms": 1_234.0, "expected_ms": 5_678.0, "running": 19, "slots": 23, "ready": 29, "starting": 37,
    "why": "full", "sentence": "All are taken.",
    "flows": [{"tenant": "acme", "priority": "batch", "queued": 13, "oldest_ms": 2_345.0}], "flows_left": 0,
}  # fmt: skip
QUEUES = {"queued": 43, "queues": [QUEUE], "left": 47}
SLOW = {
    "slowdowns": [
        {"function": "acme:shop.hello", "version": "shop.hello", "tenant": "acme", "priority": "batch",
         "slowdown": 7.5, "calls": 53, "neighbour": "bully"}
    ]
}  # fmt: skip
BREAKERS = {
    "breakers": [
        {"version": "shop.hello", "function": "acme:shop.hello", "tenant": "acme", "of": "version", "container": "",
         "caller": "", "state": "open", "failures": 59, "retry_after_s": 6.5}
    ]
}  # fmt: skip
LOAD = {"requests_per_s": 61.5, "loop_lag_s": 0.067, "body_bytes": 71, "body_bytes_limit": 1_000, "calls": 73}
SCALING = {
    "gateways": [{"gateway": "g.i", "name": "g", **LOAD}],
    "sum": {"gateways": 79, "requests_per_s": 83.5, "calls": 89, "loop_lag_s": 0.0},
    "most": {"loop_lag_s": 0.097},
}
STARTS = {
    "starts": [
        {"function": "acme:shop.hello", "tenant": "acme", "containers": 101, "starting": 103, "total_ms": 10_700.0,
         "longest_ms": 10_900.0, "steps": {"load": 11_300.0, "warm": 127.0}}
    ]
}  # fmt: skip
EXPLAINED = {
    "lines": [],
    "decisions": [
        {"container": "ctr", "function": "acme:shop.hello", "version": "shop.hello", "state": "waiting",
         "decided_at": "2026-11-27T06:00:00Z", "considered": 131, "refused": {"memory": 137}, "reason": "no room",
         "winner": None, "losers": []}
    ],
}  # fmt: skip
COSTS = {
    "currency": "USD",
    "tenants": [{"tenant": "acme", "cost": "139.5", "idle_cost": "1.49", "calls": 151, "gpu_seconds": 157.0}],
    "operator": [{"cause": "unused", "cost": "16.3", "gpu_seconds": 16.7}],
    "devices": [{"node": "n1", "device": "gpu", "gpu": "H100", "hours": 173.0, "sold": 0.179, "revenue": "18.1",
                 "list_value": "191"}],
}  # fmt: skip
QUARANTINE = {"counts": [{"node": "n1", "reason": "unknown", "events": 193}]}
TENANTS = {"tenants": [{"name": "acme", "tier": "paid", "weight": 19.7, "disabled": False}]}
APPS = {
    "apps": [
        {"app": "shop", "revision": 199, "deployed_at": 211.0, "stopped": False,
         "functions": [{"name": "hello", "version": "shop.hello@v", "containers": 1}]}
    ]
}  # fmt: skip
USAGE = {"lines": [{"app": "shop", "function": "hello", "calls": 223, "cost": "2.27"}], "total": {"currency": "USD"}}
STATS = {
    "functions": [{"function": "shop.hello", "calls": 229, "per_s": 2.29, "p50_ms": 233.0, "p95_ms": 239.0,
                   "failed": 241, "cold_calls": 251}]
}  # fmt: skip
CONTAINERS = {"containers": [CONTAINER]}


def answered(draw: Callable[..., list[Block]], *before: Any) -> Callable[..., list[Block]]:
    """A page that is made of answered parts, with what it is asked for."""
    return lambda *values: draw(*before, *(AnsweredPart(value=value) for value in values))


def spending(by_day: Any, by_function: Any, forecast: Any, budgets: Any, credit: Any) -> list[Block]:
    parts = (AnsweredPart(value=one) for one in (forecast, budgets, credit))
    return spending_blocks(("2026-11-27", "2026-11-27"), by_day, by_function, *parts)


def keys_and_limits(keys: Any, used: Any, limited: Any, refused: Any) -> list[Block]:
    told, spent, limits, calls = (AnsweredPart(value=one) for one in (keys, used, limited, refused))
    return keys_blocks(told, spent, limits, {}, calls, 0.0)


def details(diagnosis: Any, history: Any, containers: Any) -> list[Block]:
    bound, versions, own = (AnsweredPart(value=one) for one in (diagnosis, history, containers))
    return [*bound_blocks("f", bound), *cause_blocks(bound), *version_blocks("hello", versions),
            *container_blocks("shop", "hello", own)]  # fmt: skip


def one_rollout(one: Any, events: Any, past: Any) -> list[Block]:
    return rollout_blocks(one, RolloutNotes(events=events, past=AnsweredPart(value=past)))


OWN: dict[str, tuple[Callable[..., list[Block]], tuple[Any, ...]]] = {
    "calls": (calls_blocks, (scenes.kept_calls(scenes.kept_call()),)),
    "call": (answered(call_blocks, "call_x"), (scenes.call_status(), scenes.explanation(), scenes.receipt())),
    "jobs": (jobs_blocks, ({"jobs": [scenes.job(), scenes.job("queued", position=619, starts_in_s=6.31)],
                            "next": None},)),
    "batches": (batches_blocks, (scenes.batches(scenes.batch()),)),
    "schedules": (schedules_blocks, ({"apps": [scenes.app()]},)),
    "webhooks": (
        lambda listed, sent: webhooks_blocks(listed, [AnsweredPart(value=sent)]),
        ({"webhooks": [scenes.webhook(failing_since=1_795_763_110.0)]},
         {"deliveries": [scenes.delivery("failed", scenes.ATTEMPT)]}),
    ),
    "logs": (lambda lines: logs_blocks(["shop"], "shop", "", lines), ([scenes.log_line()],)),
    "rollouts": (rollouts_blocks, (rollouts(rollout(), left=709), "acme")),
    "rollout": (one_rollout, (rollout(), [told_event()], {"rollouts": [{}, rollout(number=719)]})),
    "events": (lambda told: events_blocks(told, "acme"), ([scenes.event()],)),
    "usage": (spending, (scenes.usage_report(scenes.usage_line()), scenes.usage_report(scenes.usage_line()),
                         scenes.FORECAST, {"budgets": [scenes.budget()], "currency": "USD"}, scenes.CREDITS)),
    "keys": (keys_and_limits, ({"keys": [scenes.api_key()]}, scenes.usage_report(scenes.usage_line()),
                               scenes.limits(containers=641, queue_seconds=6.43), scenes.kept_calls())),
    "details": (details, (scenes.diagnosis(), {"history": [scenes.deploy(577, "v")]},
                          {"containers": [scenes.own_container()]})),
}  # fmt: skip

CASES: dict[str, tuple[Callable[..., list[Block]], tuple[Any, ...]]] = {
    "overview": (overview_blocks, (FLEET, {"nodes": [NODE]}, QUEUES, SLOW, BREAKERS, SCALING)),
    "fleet": (fleet_blocks, (FLEET, CONTAINERS, {})),
    "nodes": (nodes_blocks, ({"nodes": [NODE]}, 20.0)),
    "node": (node_blocks, (NODE, CONTAINERS)),
    "queues": (queues_blocks, (QUEUES,)),
    "slowdowns": (slowdowns_blocks, (SLOW,)),
    "breakers": (breakers_blocks, (BREAKERS,)),
    "starts": (starts_blocks, (STARTS,)),
    "decisions": (decisions_blocks, (EXPLAINED, "")),
    "tenants": (tenants_blocks, (TENANTS, CONTAINERS, QUEUES, SLOW, COSTS)),
    "money": (money_blocks, (COSTS, QUARANTINE)),
    "functions": (functions_blocks, (APPS, CONTAINERS, QUEUES, USAGE, STATS, "acme")),
    **OWN,
}
Path = tuple[Any, ...]
SHOWN: dict[str, set[Any]] = {
    "overview": {"devices", "used", "free", "stranded", "out", "queued", "failures", "slowdown",
                 "requests_per_s", "loop_lag_s", "calls", "body_bytes", "body_bytes_limit", "gateways"},
    "fleet": {"devices", "used", "free", "stranded", "out", "width"},
    "nodes": {"containers", "clock_s", "deadline"},
    "node": {"running", "slots", "age_s"},
    "queues": {"queued", "left", "oldest_ms", "expected_ms", "running", "slots", "ready", "starting"},
    "slowdowns": {"slowdown", "calls"},
    "breakers": {"failures", "retry_after_s"},
    "starts": {"containers", "starting", "total_ms", "longest_ms", "load", "warm"},
    "decisions": {"considered", "memory"},
    "tenants": {"weight", "slowdown", "calls", "cost", "queued"},
    "money": {"cost", "idle_cost", "calls", "gpu_seconds", "hours", "sold", "revenue", "list_value", "events"},
    "functions": {"revision", "deployed_at", "queued", "calls", "cost", "per_s", "p50_ms", "p95_ms", "failed",
                  "cold_calls"},
    "calls": {"arrived_at", "total_ms", "longest_ms", "attempts"},
    "call": {"total_ms", "arrived_at", "batch_size", "begin_ms", "ms", "load", "ppm", "usd_per_hour", "ns", "cost",
             "discount", "gpu_seconds", "vram_gib_seconds", "cold_start_ms"},
    "jobs": {"created_at", "started_at", "ended_at", "attempts", "position", "starts_in_s"},
    "batches": {"total", "submitted", "succeeded", "failed", "cancelled", "expired", "created_at"},
    "schedules": {"period_s", "next_tick"},
    "webhooks": {"failing_since", "created_at", "at", "ms", "status", "next_at"},
    "logs": {"at"},
    "rollouts": {"step", "share", "evidence", "since", "next_at", "left"},
    "rollout": {"number", "step", "share", "twin_share", "evidence", "since", "next_at", "started_at", "canary", "twin",
                "control", "canary_of", "other", "other_of", "effect", "low", "high", "proven", "every_s", "calls",
                "at"},
    "events": {"at"},
    "usage": {"calls", "gpu_seconds", "cost", "so_far", "expected", "low", "high", "error", "days", "usd", "spent_usd",
              "left_usd", 0, "balance_usd", "owed_usd"},
    "keys": {"created_at", "calls", "containers", "queue_seconds"},
    "details": {"gain", "revision", "at", "running", "slots", "calls", "age_s", "load"},
}  # fmt: skip
"""By page, the fields that it shows."""


def numbers_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All numbers of a JSON value, those too that are written as text, with where they are."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from numbers_in(one, (*path, name))
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value):
            yield from numbers_in(one, (*path, place))
    elif not isinstance(value, bool) and re.fullmatch(r"[0-9.]+", str(value)):
        yield path, value


def changed(answers: Any, path: Path) -> Any:
    """The same answers but for one number, which is about half as large again."""
    copied = copy.deepcopy(list(answers))
    place: Any = copied
    for step in path[:-1]:
        place = place[step]
    was = place[path[-1]]
    more = float(was) * 1.5 + 1
    place[path[-1]] = f"{more}" if isinstance(was, str) else int(more) if isinstance(was, int) else more
    return copied


@pytest.mark.parametrize("name", CASES)
def test_a_page_follows_the_numbers_of_its_routes(name: str) -> None:
    """Each field that it shows, wherever it stands in the answers."""
    draw, answers = CASES[name]
    before = blocks_markup(draw(*answers), "")
    followed = set()
    for path, _ in numbers_in(answers):
        if blocks_markup(draw(*changed(answers, path)), "") != before:
            followed.add(path[-1])
    assert SHOWN[name] <= followed


ALLOWED = re.compile(
    r"(?:30 days|from 10|from 100|19 times in 20|v[78]|key1|p50|p95|H100|n1|10 minutes|7g|01-01 00:00:00\.000|"
    r"2026-11(?!-)|06:00(?!:))"
)


@pytest.mark.parametrize("name", CASES)
def test_a_page_has_no_other_numbers(name: str) -> None:
    """With all numbers of the routes at nought, noughts, counts of rows and the pages' own words are left."""
    draw, answers = CASES[name]
    nothing = copy.deepcopy(list(answers))
    for path, value in numbers_in(answers):
        place: Any = nothing
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = type(value)(0)
    text = re.sub(r"<svg.*?</svg>", "", blocks_markup(draw(*nothing), ""), flags=re.S)
    words = unescape(re.sub(r"<[^>]*>", " ", text))
    found = {number.rstrip(".,:-") for number in re.findall(r"\d[\d.,:-]*", ALLOWED.sub("", words))}
    rows = {"1", "2"}
    assert found <= {"0", "0.0", "0.00", "0.25", "2026-11-27", "06:00:00"} | rows, found

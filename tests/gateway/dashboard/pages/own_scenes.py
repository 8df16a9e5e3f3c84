"""What the routes of a tenant's own pages answer, for tests of these pages. Each number is another one."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart, PartState

NOT_ALLOWED = AnsweredPart(state=PartState.NOT_ALLOWED, detail="It needs admin.")
NOT_THERE = AnsweredPart(state=PartState.NOT_THERE, detail="It is not kept.")
HOSTILE = "<img src=x onerror=alert(1)>"


def kept_call(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "call_x", "trace_id": "ab", "function": "shop.hello", "version": "shop.hello@v", "kept": "slow",
        "code": "", "arrived_at": 1_795_763_110.0, "total_ms": 263.0, "longest": "start", "longest_ms": 269.0,
        "cold_start": True, "attempts": 271, "gateway": "g",
    }  # fmt: skip
    return usual | more


def kept_calls(*calls: dict[str, Any], unanswered: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"calls": list(calls), "unanswered": list(unanswered)}


def explanation(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "call_x", "trace_id": "ab", "function": "shop.hello", "version": "shop.hello@v", "method": "",
        "kept": "slow", "code": "", "arrived_at": 1_795_763_110.0, "total_ms": 13_700.0, "cold_start": {"load": 277.0},
        "batch_size": 281, "sentences": ["It took long.", "It waited."],
        "rows": [{"name": "start", "begin_ms": 0.0, "ms": 283.0, "attempt": 0, "step_of": ""},
                 {"name": "execute", "begin_ms": 293.0, "ms": 307.0, "attempt": 0, "step_of": ""}],
        "attempts": [{"container": "ctr", "outcome": "ok", "reason": "", "started": True, "ms": 311.0}], "gateway": "g",
    }  # fmt: skip
    return usual | more


def call_status(**more: Any) -> dict[str, Any]:
    return {"id": "call_x", "state": "succeeded", "version": "shop.hello@v", "error": None} | more


def receipt(**more: Any) -> dict[str, Any]:
    line = {
        "day": "2026-11-27", "function": "shop.hello", "version": "shop.hello@v", "price": "gpu", "ppm": 313_000_000,
        "usd_per_hour": "3.17", "ns": 331_000_000, "cost": "33.7", "discount": "0.347", "memory": 0, "outcome": "ok",
        "fault": "none", "batch_size": 349, "units": {}, "tags": {}, "stage": "",
    }  # fmt: skip
    usual = {
        "id": "call_x", "lines": [line], "cost": "35.3", "gpu_seconds": 0.359, "vram_gib_seconds": 367.0, "key": "k",
        "cold_start_ms": 373.0, "cold_start_billed": True, "parent": "", "nested": [], "currency": "USD",
    }  # fmt: skip
    return usual | more


def job(state: str = "failed", **more: Any) -> dict[str, Any]:
    usual = {
        "id": "call_j", "state": state, "version": "shop.hello@v", "error": None, "created_at": 1_795_763_110.0,
        "started_at": 1_795_763_120.0, "ended_at": 1_795_763_130.0, "attempts": 379, "run": None, "position": None,
        "starts_in_s": None, "waits_for": None, "reason": None,
    }  # fmt: skip
    return usual | more


def batch(state: str = "running", **more: Any) -> dict[str, Any]:
    usual = {
        "id": "batch_x", "state": state, "function": "shop.hello@v", "method": None, "label": "mine", "total": 383,
        "submitted": 389, "counts": {"succeeded": 397, "failed": 401, "cancelled": 409, "expired": 419},
        "created_at": 1_795_763_110.0, "expires_at": 0.0, "ended_at": None, "reason": None,
    }  # fmt: skip
    return usual | more


def batches(*listed: dict[str, Any], has_more: bool = False) -> dict[str, Any]:
    return {"batches": list(listed), "has_more": has_more, "last_id": listed[-1]["id"] if listed else None}


def app(**more: Any) -> dict[str, Any]:
    schedule = {"method": "", "cron": "", "tz": "UTC", "period_s": 421}
    usual = {
        "app": "shop", "revision": 1, "deployed_at": 1.0, "stopped": False,
        "functions": [{"name": "hello", "version": "shop.hello@v", "containers": 1,
                       "schedules": [{"schedule": schedule, "next_tick": 1_795_763_110}]}],
    }  # fmt: skip
    return usual | more


def log_line(text: str = "hello", **more: Any) -> dict[str, Any]:
    usual = {"at": 1_795_763_110.5, "stream": "stdout", "text": text, "container": "c", "function": "hello", "call": ""}
    return usual | more


def event(**more: Any) -> dict[str, Any]:
    usual = {
        "id": 7, "at": 1_795_763_110.0, "kind": "function.scaled", "tenant": "acme", "function": "acme:shop.hello",
        "says": "It should have one more.", "facts": {},
    }  # fmt: skip
    return usual | more


def usage_report(*lines: dict[str, Any], **total: Any) -> dict[str, Any]:
    summed = {"calls": 431, "ns": 0, "gpu_seconds": 4.33, "cost": "43.9", "currency": "USD"} | total
    return {"lines": list(lines), "total": summed}


def usage_line(**more: Any) -> dict[str, Any]:
    usual = {
        "day": "2026-11-27", "app": "shop", "function": "hello", "calls": 443, "ns": 0, "gpu_seconds": 4.49,
        "cost": "45.7", "currency": "USD", "key": "k",
    }  # fmt: skip
    return usual | more


FORECAST = {
    "month": "2026-11", "so_far": "46.1", "expected": "46.3", "low": "46.7", "high": "47.9", "error": 0.487,
    "method": "mean", "days": 491, "currency": "USD",
}  # fmt: skip


def budget(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "month", "usd": "49.9", "period": "month", "tz": "UTC", "function": None, "key": None, "mode": "hard",
        "thresholds": [50], "by_operator": True, "begins": None, "resets_at": "2026-11-27T06:00:00Z",
        "spent_usd": "50.3", "left_usd": "50.9", "is_exhausted": False, "reached": [52], "prepaid": False,
    }  # fmt: skip
    return usual | more


CREDITS = {
    "balance_usd": "52.1", "owed_usd": "52.3", "history": [], "currency": "USD",
    "grants": [{"id": "g", "usd": "54.1", "left_usd": "54.7", "begins": "2026-11-27", "ends": None, "priority": 0,
                "note": "hello"}],
}  # fmt: skip


def api_key(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "k", "label": "mine", "scopes": ["read", "invoke"], "created_at": 1_795_763_110.0, "expires_at": None,
        "revoked": False, "replaced_by": "", "certificate": "", "break_glass": False,
    }  # fmt: skip
    return usual | more


def limits(**effective: Any) -> dict[str, Any]:
    return {"tenant": "acme", "tier": "paid", "limits": {"keys": 1}, "functions": {}, "effective": effective}


def webhook(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "wh_x", "url": "https://example.com/x", "events": ["job.failed"], "label": "mine",
        "created_at": 1_795_763_110.0, "disabled": False, "disabled_because": "", "failing_since": None,
    }  # fmt: skip
    return usual | more


def delivery(state: str = "pending", *attempts: dict[str, Any], **more: Any) -> dict[str, Any]:
    usual = {
        "id": "msg_x", "event": "job.failed", "about": "call_x", "state": state, "created_at": 1.0,
        "next_at": 1_795_763_110.0, "attempts": list(attempts),
    }  # fmt: skip
    return usual | more


ATTEMPT = {"at": 1_795_763_110.0, "ms": 557.0, "status": 563, "error": "It answered so."}


def diagnosis(**more: Any) -> dict[str, Any]:
    cure = {"cost": "setting", "what": "Raise it.", "command": "pilotlight scale", "changes": {}, "gain": 0.569}
    usual = {
        "function": "shop.hello@v", "window_s": 600.0, "calls": 100, "name": "cold_starts",
        "sentence": "It starts cold.",
        "trouble": "slow", "confidence": 0.9, "gain": 0.571, "evidence": ["Half of them."], "cures": [cure],
    }  # fmt: skip
    return usual | more


def deploy(revision: int, version: str) -> dict[str, Any]:
    return {
        "revision": revision, "at": 1_795_763_110.0, "by": "k", "message": "", "functions": {"hello": f"ver_{version}"},
        "versions": {"hello": version},
    }  # fmt: skip


HISTORY = {"app": "shop", "history": [deploy(577, "v1"), deploy(587, "v1"), deploy(593, "v2")]}


def own_container(**more: Any) -> dict[str, Any]:
    usual = {
        "id": "ctr", "app": "shop", "function": "hello", "state": "ready", "slice": "GPU-1:7g@x", "running": 599,
        "slots": 601, "calls": 607, "age_s": 613.0, "timeline": {"load": 617.0}, "breaker": "closed", "reason": "",
    }  # fmt: skip
    return usual | more

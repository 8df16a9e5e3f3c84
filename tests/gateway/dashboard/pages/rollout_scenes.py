"""What the routes of rollouts answer, for tests of their pages. Each number is another one."""

from __future__ import annotations

from typing import Any


def guard_seen(**more: Any) -> dict[str, Any]:
    usual = {
        "function": "hello", "guard": "latency", "about": "time to run", "weight": 1.0, "evidence": 3.11,
        "canary": 1_301, "canary_of": None, "other": 1_303, "other_of": None, "effect": 0.307, "low": 0.211,
        "high": 0.409, "proven": None,
    }  # fmt: skip
    return usual | more


def rollout(**more: Any) -> dict[str, Any]:
    """One at its second step of four."""
    usual = {
        "id": "rol_x", "number": 701, "app": "shop", "tenant": "acme", "state": "ramp", "held": "", "step": 2,
        "steps": [1.0, 5.0, 25.0, 100.0], "share": 5.09, "twin_share": 5.11, "since": 1_795_763_110.0,
        "next_at": 1_795_763_410.0, "started_at": 1_795_762_110.0, "by": "key1", "paused_by": "", "frozen": False,
        "reason": "", "functions": {"hello": {"control": "shop.hello@v7", "canary": "shop.hello@v8"}},
        "verdict": "undecided", "evidence": 2.71, "guards": {"latency": 3.11}, "verified_within": {},
        "seen": [guard_seen(), guard_seen(guard="errors", about="failures", evidence=0.83, canary=13, canary_of=1_307,
                                          other=11, other_of=1_319, proven=0.5)],
        "calls": {"canary": 1_321, "twin": 1_327}, "ready": {"control": 17, "canary": 19, "twin": 23},
        "sentences": ["E is low.", "Nothing is known of GPU time yet."],
        "terms": {"every_s": 307.0, "calls": 109, "sticky": "call", "twin": True, "tolerance": None},
    }  # fmt: skip
    return usual | more


def rollouts(*listed: dict[str, Any], left: int = 0) -> dict[str, Any]:
    return {"rollouts": list(listed), "left": left}


def told_event(**more: Any) -> dict[str, Any]:
    usual = {
        "id": 7, "at": 1_795_763_110.0, "kind": "rollout.step", "tenant": "acme", "function": "",
        "says": "Rollout of shop: a step.", "facts": {"app": "shop"},
    }  # fmt: skip
    return usual | more

"""What a platform answers about rollouts and aliases, and the commands that ask."""

from __future__ import annotations

from typing import Any

from tests.sdk.cli.seeing_answers import NOW

ALIAS: dict[str, Any] = {
    "function": "greet", "alias": "prod", "ref": "hello.greet@prod", "version": "hello.greet@v1",
    "version_id": f"ver_{32 * '0'}", "withdrawn": False,
}  # fmt: skip
ROLLOUT: dict[str, Any] = {
    "id": "rol_00000000000000000001", "number": 3, "app": "hello", "state": "ramp", "held": "calls", "step": 2,
    "steps": [1, 5, 100], "share": 5.0, "twin_share": 5.0, "since": NOW - 120, "started_at": NOW - 7_300,
    "by": "8c1f0eXYabcd", "functions": {"greet": {"control": "hello.greet@v7", "canary": "hello.greet@v8"}},
    "verdict": "undecided", "evidence": 0.52, "guards": {"crash": 0.4, "latency": 0.7},
    "verified_within": {"latency": 0.2}, "calls": {"canary": 120, "twin": 118}, "ready": {"control": 4, "canary": 1},
    "sentences": ["E is 0.52 after 120 calls of the new version and 118 of the old one: no alarm."],
}  # fmt: skip
ROLLOUT_ROUTES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/apps/hello/rollback"): {
        "app": "hello",
        "revision": 4,
        "back_to": 1,
        "functions": [],
        "jobs": [{"function": "greet", "jobs": 12, "runs": "hello.greet@v1"}],
        "sentences": ["Calls go to hello.greet@v1, also those that waited."],
    },
    ("POST", "/v1/apps/hello/rollout"): {
        "rollout": ROLLOUT,
        "visible": ["It shows if the new version is slower by 12 %."],
        "warnings": ["no pairs"],
    },
    ("GET", "/v1/apps/hello/rollout"): ROLLOUT,
    ("GET", "/v1/rollouts"): {"rollouts": [ROLLOUT], "left": 2},
    ("GET", "/v1/apps/hello/rollouts"): {"app": "hello", "rollouts": [ROLLOUT]},
    **{
        ("POST", f"/v1/apps/hello/rollout/{word}"): ROLLOUT
        for word in ("pause", "resume", "promote", "abort", "freeze")
    },
    ("PUT", "/v1/apps/hello/aliases/greet/prod"): ALIAS,
    ("GET", "/v1/apps/hello/aliases"): {"app": "hello", "aliases": [ALIAS]},
    ("DELETE", "/v1/apps/hello/aliases/greet/prod"): {},
}

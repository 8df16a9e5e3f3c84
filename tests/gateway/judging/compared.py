"""Compared calls, as gateways tell them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutTerms

CALL = ComparedCall(
    "rol_1", 1, "hello", "", "twin", 0.5, "call_1", "acme", "", 0.0, "", execute_ms=100.0, total_ms=110.0,
    gpu_ns=100_000_000, nth_call=99, container="c1", gpu_type="cpu",
)  # fmt: skip


def compared(arm: str = "canary", **more: Any) -> ComparedCall:
    return replace(CALL, arm=arm, **more)


def a_rollout(**terms: Any) -> Rollout:
    asked = {"pairs": 0, "tolerance": 0.0} | terms
    return Rollout(
        id="rol_1", number=1, control={"hello": "ver_old"}, canary={"hello": "ver_new"}, twins={"hello": "ver_twin"},
        salt=b"s" * 32, since=0.0, started_at=0.0, by="key_1", terms=RolloutTerms(**asked),
    )  # fmt: skip

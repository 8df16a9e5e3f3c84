"""Compared calls and rollouts, with what a test does not care for filled in."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, RolloutState, RolloutTerms

ROLLOUT = "rol_00000000000000000001"
FUNCTION = "answer"


def compared_call(arm: str = Arm.TWIN, **fields: Any) -> ComparedCall:
    """One call, drawn with one half, that took 100 ms."""
    values: dict[str, Any] = {
        "rollout": ROLLOUT,
        "revision": 1,
        "function": FUNCTION,
        "method": "",
        "arm": str(arm),
        "rho": 0.5,
        "call_id": "call_1",
        "tenant": "default",
        "unit": "",
        "at": 0.0,
        "code": "",
        "execute_ms": 100.0,
        "gpu_ns": 100_000_000,
        "gpu_type": "sim",
    }
    return ComparedCall(**values | fields)


def rollout_of(terms: RolloutTerms | None = None, **fields: Any) -> Rollout:
    """A rollout of one function, at the first step of its ramp."""
    values: dict[str, Any] = {
        "id": ROLLOUT,
        "number": 1,
        "control": {FUNCTION: "ver_old"},
        "canary": {FUNCTION: "ver_new"},
        "twins": {FUNCTION: "ver_twin"},
        "terms": terms or RolloutTerms(tolerance=0.0),
        "salt": bytes(32),
        "state": RolloutState.RAMP,
        "step": 0,
        "share": 100,
        "twin_share": 100,
        "since": 0.0,
        "started_at": 0.0,
        "by": "key",
    }
    return Rollout(**values | fields)


def compared_calls(
    count: int,
    seed: int,
    *,
    slower: float = 1.0,
    dearer: float = 1.0,
    fails: float = 0.0,
    rho: float = 0.5,
    **fields: Any,
) -> Iterator[ComparedCall]:
    """Calls of both sides as they come: times and costs are lognormal; the canary's are worse by the named factors."""
    draw = random.Random(seed)
    for number in range(count):
        canary = draw.random() < rho
        slow, dear, failed = draw.gauss(0.0, 0.5), draw.gauss(0.0, 0.6), draw.random()
        yield compared_call(**{
            "arm": Arm.CANARY if canary else Arm.TWIN,
            "rho": rho,
            "call_id": f"call_{number}",
            "at": float(number),
            "execute_ms": 100.0 * 2.718281828 ** slow * (slower if canary else 1.0),
            "gpu_ns": int(1e8 * 2.718281828 ** dear * (dearer if canary else 1.0)),
            "code": "function_raised" if failed < 0.001 + (fails if canary else 0.0) else "",
        } | fields)  # fmt: skip


def compared_history(count: int = 400, seed: int = 1_000) -> list[ComparedCall]:
    """Calls of the old version before a rollout."""
    return list(compared_calls(count, seed, rho=0.0, arm=Arm.CONTROL))

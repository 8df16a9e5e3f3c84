"""What EventBridge leaves in a queue about EC2's machines, as notices. Pure."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pilotlight_autoscaler.pools.node_pool import NoticeAbout, PoolNotice

INTERRUPTED_IN_S = 120.0
"""After its warning a spot machine has two minutes."""
ENDED = ("shutting-down", "terminated", "stopping", "stopped")


def notice_in(body: str) -> PoolNotice | None:
    """The notice of one message; None: it says nothing of a machine."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("detail"), dict):
        return None
    detail, said_at = event["detail"], _unix(event.get("time"))
    machine = detail.get("instance-id") or detail.get("EC2InstanceId")
    if not isinstance(machine, str) or not machine:
        return None
    return _notice(str(event.get("detail-type")), machine[:63], detail, said_at)


def _notice(kind: str, machine: str, detail: dict[str, Any], said_at: float) -> PoolNotice | None:
    match kind:
        case "EC2 Spot Instance Interruption Warning":
            deadline_at = said_at + INTERRUPTED_IN_S if said_at else 0.0
            return PoolNotice(
                provider_id=machine, about=NoticeAbout.INTERRUPTION, deadline_at=deadline_at,
                reason="EC2 takes the spot machine back",
            )  # fmt: skip
        case "EC2 Instance Rebalance Recommendation":
            reason = "EC2 expects to take the spot machine back"
            return PoolNotice(provider_id=machine, about=NoticeAbout.REBALANCE, reason=reason)
        case "EC2 Instance-terminate Lifecycle Action":
            reason = "its Auto Scaling group ends it"
            return PoolNotice(provider_id=machine, about=NoticeAbout.REBALANCE, reason=reason)
        case "EC2 Instance State-change Notification" if detail.get("state") in ENDED:
            return PoolNotice(provider_id=machine, about=NoticeAbout.STATE, reason=f"it is {detail['state']}")
    return None


def _unix(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0

"""What EventBridge says of machines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pilotlight_autoscaler.pools.node_pool import NoticeAbout, PoolNotice
from pilotlight_autoscaler.pools.providers.ec2_events import INTERRUPTED_IN_S, notice_in

AT = "2026-11-20T10:00:00Z"
UNIX = datetime(2026, 11, 20, 10, 0, tzinfo=UTC).timestamp()
STATE = {"instance-id": "i-1", "state": "running"}
RUNNING = {"detail-type": "EC2 Instance State-change Notification", "detail": STATE}


def told(kind: str, at: str = AT, **detail: Any) -> PoolNotice | None:
    return notice_in(json.dumps({"detail-type": kind, "time": at, "detail": detail}))


def test_a_warning_has_two_minutes() -> None:
    """From when it was given."""
    found = told("EC2 Spot Instance Interruption Warning", **{"instance-id": "i-1"})
    assert found is not None
    assert (found.provider_id, found.about) == ("i-1", NoticeAbout.INTERRUPTION)
    assert found.deadline_at == UNIX + INTERRUPTED_IN_S
    untimed = told("EC2 Spot Instance Interruption Warning", at="soon", **{"instance-id": "i-1"})
    assert untimed is not None
    assert untimed.deadline_at == 0.0


@pytest.mark.parametrize(
    ("kind", "detail", "about"),
    [
        ("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1"}, NoticeAbout.REBALANCE),
        ("EC2 Instance-terminate Lifecycle Action", {"EC2InstanceId": "i-1"}, NoticeAbout.REBALANCE),
        ("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": "stopping"}, NoticeAbout.STATE),
    ],
)
def test_other_events_of_a_machine(kind: str, detail: dict[str, str], about: NoticeAbout) -> None:
    """Each has its meaning."""
    found = told(kind, **detail)
    assert found is not None
    assert (found.provider_id, found.about, found.deadline_at) == ("i-1", about, 0.0)


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "null", '{"detail": 1}', '{"detail": {}}', '{"detail": {"instance-id": 7}}', "[" * 100_000,
        '{"detail-type": "something else", "detail": {"instance-id": "i-1"}}', json.dumps(RUNNING),
    ],
)  # fmt: skip
def test_whatever_else_is_in_the_queue_says_nothing(body: str) -> None:
    """And harms nobody."""
    assert notice_in(body) is None

"""The usage of calls, also after their callers have left."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, Refused, Spent
from pilotlight_gateway.limits.call_usage import AFTER_TIMEOUT_S, CallUsage, UsageTracker
from tests.builders.calls import grant

MS = Spent(ns=1_000_000, ppm=1_000_000, price="cpu")


def left_behind(tracker: UsageTracker, *, timeout: float = 60.0) -> tuple[CallUsage, list[CallUsage]]:
    """A call that was cancelled while it ran, whose first start took 2 ms, and the list of those that are settled."""
    usage, settled = CallUsage(), list[CallUsage]()
    usage.count(2.0, 1, 0)
    tracker.left(usage, grant(2), timeout, 10.0)
    usage.settle(settled.append)
    return usage, settled


def ended(outcome: Outcome = Outcome.CANCELLED, **more: Any) -> Ended:
    options: dict[str, Any] = {"call_id": "a", "grant_number": 2, "container": "c1", "outcome": outcome} | more
    return Ended(**options)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (ended(spent=MS), (3.0, 2, 0)),
        (ended(), (2.0, 2, 0)),  # nothing was metered
        (ended(started=False), (2.0, 1, 0)),
        (ended(Outcome.DIED, container=""), (2.0, 1, 1)),  # its agent does not know it
        # No call took so long, or so much of its host: what was reserved for it stands.
        (ended(spent=Spent(ns=10**12, ppm=1, price="cpu", core_ppm=10**6)), (2.0, 1, 1)),
        (ended(spent=Spent(ns=1_000, ppm=10**12, price="cpu")), (2.0, 1, 1)),
        (Refused(call_id="a", grant_number=2, container="c1", reason=Refusal.DRAINING), (2.0, 1, 0)),
    ],
)
def test_an_open_usage_is_settled_by_the_end_of_its_start(
    frame: Ended | Refused, expected: tuple[float, int, int]
) -> None:
    """The end of another start does not settle it."""
    tracker = UsageTracker()
    usage, settled = left_behind(tracker)
    tracker.on_frame("n1", ended(grant_number=1, spent=MS), 1.0)
    assert settled == []

    tracker.on_frame("n1", frame, 1.0)
    tracker.on_frame("n1", frame, 1.0)

    assert settled == [usage]
    assert (usage.cost, usage.known, usage.lost) == expected
    assert not tracker.open


@pytest.mark.parametrize("node_gone", [True, False])
def test_a_start_without_an_end_is_lost(node_gone: bool) -> None:
    """Its node is gone, or it must have ended long ago."""
    tracker = UsageTracker()
    usage, settled = left_behind(tracker)
    tracker.node_gone("n1", "i2")
    tracker.expire(69.0 + AFTER_TIMEOUT_S)
    assert settled == []

    if node_gone:
        tracker.node_gone("n1", "i1")
    else:
        tracker.expire(70.0 + AFTER_TIMEOUT_S)
    assert settled == [usage]
    assert (usage.cost, usage.known, usage.lost) == (2.0, 1, 1)


def test_a_closed_usage_is_settled_at_once() -> None:
    """A call that failed by itself leaves no start behind."""
    usage, settled = CallUsage(), list[CallUsage]()
    usage.count(2.0, 2, 1)
    usage.settle(settled.append)

    assert settled == [usage]
    assert (usage.cost, usage.known, usage.lost) == (2.0, 2, 1)


def test_a_start_whose_agent_was_gone_before_its_call_failed_is_lost() -> None:
    """Nobody tells of that agent again: the call failed while it waited for last words."""
    tracker = UsageTracker()
    usage, settled = left_behind(tracker)
    tracker.lose_gone(lambda node, instance: (node, instance) == ("n1", "i2"))
    assert usage.is_open
    tracker.lose_gone(lambda node, instance: (node, instance) == ("n1", "i1"))
    assert settled == [usage]
    assert usage.lost == 1

"""The log entries of flows that others slow down."""

from __future__ import annotations

from structlog.testing import capture_logs

from pilotlight_gateway.home.slow_log import NAMED, REFRESH_EVERY_S, SlowLog
from pilotlight_gateway.home.slowdown import SlowFlow


def flow(tenant: str, slowdown: float = 9.0) -> SlowFlow:
    """A slow one."""
    return SlowFlow(
        version="v", function="f", tenant=tenant, priority="batch", slowdown=slowdown, calls=50, neighbour="elephant"
    )


def test_a_slow_flow_is_named_once_and_its_end_too() -> None:
    """The log names the tenant that has most of the slots."""
    slow_log = SlowLog()
    with capture_logs() as tier_queues:
        slow_log.update([flow("mouse")], 0.0)
        slow_log.update([flow("mouse", 12.0)], 10.0)
        slow_log.update([], 20.0)
        slow_log.update([], 30.0)

    assert [(tier_queue["log_level"], tier_queue["tenant"]) for tier_queue in tier_queues] == [
        ("warning", "mouse"),
        ("info", "mouse"),
    ]
    assert tier_queues[0]["neighbour"] == "elephant"
    assert tier_queues[0]["slowdown"] == 9.0


def test_no_more_flows_are_named_than_allowed() -> None:
    """The slowest are named, the others are counted."""
    with capture_logs() as tier_queues:
        SlowLog().update([flow(f"t{number}", 5.0 + number) for number in range(NAMED + 10)], 0.0)

    assert len(tier_queues) == NAMED
    assert tier_queues[0]["tenant"] == f"t{NAMED + 9}"
    assert {tier_queue["slow_flows"] for tier_queue in tier_queues} == {NAMED + 10}


def test_an_update_is_due_every_ten_seconds() -> None:
    """An update walks over all flows."""
    slow_log = SlowLog()
    assert slow_log.is_due(0.0)
    slow_log.update([], 0.0)
    assert not slow_log.is_due(REFRESH_EVERY_S - 0.1)
    assert slow_log.is_due(REFRESH_EVERY_S)

"""The log names whose clock differs."""

from __future__ import annotations

from structlog.testing import capture_logs

from pilotlight_gateway.fleet.clock_news import note_clock
from pilotlight_gateway.fleet.clock_watch import REPORTS, ClockKind, ClockWatch


def test_a_clock_is_named_when_it_differs_and_when_it_ceases_to() -> None:
    """A line each."""
    watch, at = ClockWatch(), 1_790_000_000.0
    with capture_logs() as lines:
        for ahead in [-3.0] * 2 * REPORTS + [0.5] * 2 * REPORTS:
            note_clock(watch, ClockKind.GATEWAY, "gw-2", at + ahead, lambda: at)
    assert [(line["log_level"], line["of"], line["ahead_s"]) for line in lines] == [
        ("warning", "gateway gw-2", -3.0), ("info", "gateway gw-2", 0.5),
    ]  # fmt: skip

"""Schedules as lines of a table."""

from __future__ import annotations

import pytest

from pilotlight.cli.schedule_rows import ScheduleRow, next_tick_text, schedule_text
from pilotlight_core.model.spec import Schedule


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (Schedule(cron="0 6 * * 1-5", tz="Europe/Berlin"), "0 6 * * 1-5"),
        (Schedule(period_s=2), "every 2s"),
        (Schedule(period_s=5_400), "every 1h 30m"),
        (Schedule(period_s=86_400 * 3 + 1), "every 3d 1s"),
    ],
)
def test_a_schedule_is_shown_as_it_was_written(schedule: Schedule, text: str) -> None:
    """A period in the units that it has."""
    assert schedule_text(schedule) == text


@pytest.mark.parametrize(
    ("tz", "text"),
    [
        ("Europe/Berlin", "2026-03-29 03:30:00 Europe/Berlin (in 1m)"),
        ("UTC", "2026-03-29 01:30:00 UTC (in 1m)"),
        ("Mars/Olympus", "2026-03-29 01:30:00 UTC (in 1m)"),
    ],
)
def test_a_tick_is_shown_on_the_clock_of_its_zone(tz: str, text: str) -> None:
    """Or of none, where this machine does not know the zone."""
    row = ScheduleRow(function="etl.nightly", schedule="", tz=tz, next_tick=1_774_747_800, version="etl.nightly@v1")
    assert next_tick_text(row, 1_774_747_740.0) == text

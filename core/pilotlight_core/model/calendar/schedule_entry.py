"""When a function runs by itself, as its specification says it."""

from __future__ import annotations

import msgspec


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a function runs by itself: at the minutes of a cron expression, or every so many seconds.

    `schedules.schedule_checks` says which are allowed, `schedules.ticks` what their ticks are.
    """

    method: str = ""
    """Of a class: the method that runs."""
    cron: str = ""
    """Minute, hour, day of the month, month, day of the week; empty: it has a period."""
    tz: str = "UTC"
    """The time zone of `cron`, as the IANA names it."""
    period_s: int = 0
    """Seconds from one tick to the next; 0: it has a cron expression."""

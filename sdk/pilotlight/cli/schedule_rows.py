"""Schedules of deployed functions, as `pilotlight app schedules` lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from pilotlight.cli.output import span
from pilotlight.definitions.schedules import DAY_S, HOUR_S, MINUTE_S
from pilotlight_core.model.api.call_api import AppInfo
from pilotlight_core.model.spec import Schedule


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    function: str
    """`app.function`, with the method of a class behind it."""
    schedule: str
    """`0 6 * * *`, or `every 5m`."""
    tz: str
    next_tick: int | None
    """Unix second; None: it does not run, since its app is stopped."""
    version: str


def schedule_rows(apps: Iterable[AppInfo]) -> Iterator[ScheduleRow]:
    for app in apps:
        for function in app.functions:
            for info in function.schedules:
                method = info.schedule.method
                yield ScheduleRow(
                    function=f"{app.app}.{function.name}" + (f".{method}" if method else ""),
                    schedule=schedule_text(info.schedule),
                    tz=info.schedule.tz,
                    next_tick=info.next_tick,
                    version=function.version,
                )


def schedule_text(schedule: Schedule) -> str:
    """Return a cron expression as it is, and a period as `every 1h 30m`."""
    if schedule.cron:
        return schedule.cron
    parts, left = [], schedule.period_s
    for unit, length in (("d", DAY_S), ("h", HOUR_S), ("m", MINUTE_S), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return f"every {' '.join(parts)}"


def next_tick_text(row: ScheduleRow, at: float) -> str:
    """Return the next tick on the clock of its zone, and how long it is from the unix second `at` until then."""
    if row.next_tick is None:
        return "stopped"
    try:
        zone, name = ZoneInfo(row.tz), row.tz
    except (ZoneInfoNotFoundError, ValueError, OSError):  # of a platform whose zones are newer
        zone, name = ZoneInfo("UTC"), "UTC"
    clock = datetime.fromtimestamp(row.next_tick, UTC).astimezone(zone)
    return f"{clock:%Y-%m-%d %H:%M:%S} {name} (in {span(row.next_tick - at)})"

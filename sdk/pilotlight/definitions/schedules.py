"""`schedule=` of a function or method: when it runs by itself."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import Schedule

DAY_S, HOUR_S, MINUTE_S = 86_400, 3_600, 60


class Cron(msgspec.Struct, frozen=True):
    """The minutes that a cron expression names, on the clock of a time zone.

    Where the clock is set forward, a time that it skips comes right after; where it is set back, a time that comes
    twice counts once. An expression whose minute or hour starts with `*` follows the clock on the wall instead.

    Raises:
        OptionError: naming the field that is wrong, or the time zone.
    """

    expression: str
    """Minute, hour, day of the month, month, day of the week: "0 6 * * 1-5"."""
    tz: str = "UTC"
    """As the IANA names it: "Europe/Berlin"."""

    def __post_init__(self) -> None:
        if not isinstance(self.expression, str) or not isinstance(self.tz, str):
            raise OptionError(
                f'Cron({self.expression!r}, tz={self.tz!r}): expected two texts, such as Cron("0 6 * * *", tz="UTC").',
                field="schedule",
            )
        _check(self, Schedule(cron=self.expression, tz=self.tz))


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Every so often: the sum of its parts, one second at least.

    Periods count from a fixed instant, of each function its own: a deploy does not begin them anew.

    Raises:
        OptionError: if it is no number of whole seconds between 1 and 366 days.
    """

    days: float = 0
    hours: float = 0
    minutes: float = 0
    seconds: float = 0

    def __post_init__(self) -> None:
        parts = msgspec.structs.astuple(self)
        if not all(isinstance(part, int | float) and not isinstance(part, bool) for part in parts):
            raise OptionError(f"{self!r}: expected numbers.", field="schedule")
        if not self.total_s >= 1 or not float(self.total_s).is_integer():
            raise OptionError(f"{self!r}: expected whole seconds, and one at least.", field="schedule")
        _check(self, Schedule(period_s=int(self.total_s)))

    @property
    def total_s(self) -> float:
        """Seconds."""
        return self.days * DAY_S + self.hours * HOUR_S + self.minutes * MINUTE_S + self.seconds


def schedule_of(value: Any, method: str) -> Schedule:
    """Return what `schedule=` says about a function, or about the method `method` of a class.

    Raises:
        OptionError: if it is neither Cron nor Period.
    """
    if isinstance(value, Cron):
        return Schedule(method=method, cron=value.expression, tz=value.tz)
    if isinstance(value, Period):
        return Schedule(method=method, period_s=int(value.total_s))
    raise OptionError(
        f'schedule={value!r}: expected Cron("0 6 * * *", tz="Europe/Berlin") or Period(minutes=5).', field="schedule"
    )


def _check(shown: Cron | Period, schedule: Schedule) -> None:
    # Late, since it loads time zones: who has no schedule does without.
    from pilotlight_core.model.schedules.schedule_checks import check_schedule

    try:
        check_schedule(schedule)
    except BadInput as error:
        raise OptionError(f"{type(shown).__name__}: {error.detail}", field=error.more.get("field", "")) from None

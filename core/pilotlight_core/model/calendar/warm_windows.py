"""Warm windows: times of the week in which a function keeps containers without calls.

    Warm("Mon-Fri 08:00-18:00", containers=2, tz="Europe/Berlin")
    Warm("Sat,Sun 22:00-06:00")                 over midnight: it belongs to the day on which it opens
    Warm("00:00-24:00")                         every day

A window is a span between two readings of its zone's clock. Where a clock shows a time twice, as in autumn, a window
opens at the first and closes at the last; what a clock leaves out, as in spring, is at the instant of the jump. So a
window is never shorter than the clock says, and never open in two parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise

import msgspec

MOST_WINDOWS = 16
"""Of a function."""
MOST_WARM = 1_000
"""Containers of a window."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY_MINUTES = 24 * 60
WEEK_S = 8 * 86_400.0
"""In which each window has done all that it does; a day more than a week, for clocks that are set meanwhile."""
WHEN = re.compile(r"(?:(?P<days>[A-Za-z,-]{3,40}) +)?(?P<begins>\d\d:\d\d)-(?P<ends>\d\d:\d\d)")
ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")
EXPECTED = 'expected days and times such as "Mon-Fri 08:00-18:00", "Sat,Sun 22:00-06:00" or "00:00-24:00"'


Spans = tuple[tuple[float, float], ...]
"""Openings, each from an instant to another one."""


class _UnknownZone(ValueError):
    """This host has no such zone."""


class Warm(msgspec.Struct, frozen=True):
    """A time of the week in which a function keeps containers without calls."""

    when: str
    """Days and times of day: "Mon-Fri 08:00-18:00". Without days: every day. Over midnight: "22:00-06:00"."""
    containers: int = 1
    tz: str = "UTC"
    """The zone whose clock it goes by: "Europe/Berlin"."""

    def __str__(self) -> str:
        return f"{self.when} {self.tz}"


@dataclass(frozen=True)
class WeeklyHours:
    """When a window is open. Pure: instants are unix seconds."""

    days: frozenset[int]
    """On which it opens; 0 is Monday."""
    begins: int
    """Minute of the day."""
    ends: int
    """Minutes after the midnight before it opens, more than `begins`; over 1440: on the next day."""
    zone: tzinfo

    def is_open(self, at: float) -> bool:
        return _is_within(self._spans(at), at)

    def changes_at(self, at: float) -> float:
        """The next instant at which it opens or closes; infinity: it never does."""
        spans = self._spans(at)
        is_open = _is_within(spans, at)
        edges = sorted(edge for span in spans for edge in span if at < edge <= at + WEEK_S)
        return next((edge for edge in edges if _is_within(spans, edge) is not is_open), math.inf)

    def _spans(self, at: float) -> Spans:
        return _spans_about(self, datetime.fromtimestamp(at, self.zone).date())

    def spans_about(self, today: date) -> Iterator[tuple[float, float]]:
        """Each opening from the day before yesterday to this day next week, and one day more."""
        for offset in range(-2, 10):
            day = today + timedelta(days=offset)
            if day.weekday() in self.days:
                yield self._instant(day, self.begins, first=True), self._instant(day, self.ends, first=False)

    def _instant(self, day: date, minute: int, *, first: bool) -> float:
        """When the clock shows `minute` after midnight of `day`: the first or the last time."""
        shown = datetime(day.year, day.month, day.day) + timedelta(minutes=minute)  # noqa: DTZ001 - a clock's reading
        early = shown.replace(tzinfo=self.zone, fold=0).timestamp()
        late = shown.replace(tzinfo=self.zone, fold=1).timestamp()
        if early <= late:
            return early if first else late
        return self._jump(late, early)

    def _jump(self, before: float, after: float) -> float:
        """The whole second between two instants at which the zone's clock jumps."""
        low, high = int(before), int(after)
        offset = datetime.fromtimestamp(low, self.zone).utcoffset()
        while high - low > 1:
            middle = (low + high) // 2
            if datetime.fromtimestamp(middle, self.zone).utcoffset() == offset:
                low = middle
            else:
                high = middle
        return float(high)


def _is_within(spans: Spans, at: float) -> bool:
    return any(begins_at <= at < ends_at for begins_at, ends_at in spans)


@lru_cache(1_024)
def _spans_about(hours: WeeklyHours, today: date) -> Spans:
    """Worked out once a day: many functions have the same hours, and all of them change in one instant."""
    return tuple(hours.spans_about(today))


@lru_cache(4_096)
def hours_of(when: str, tz: str) -> WeeklyHours:
    """What a window's text and zone say.

    Raises:
        ValueError: saying what is wrong and what was expected.
    """
    found = WHEN.fullmatch(when)
    if found is None:
        raise ValueError(f"{when!r:.80} cannot be read: {EXPECTED}")
    begins, ends = _minute(found["begins"], when), _minute(found["ends"], when)
    if begins == DAY_MINUTES:
        raise ValueError(f"{when!r} opens at 24:00: write 00:00 of the next day")
    if begins == ends:
        raise ValueError(f"{when!r} opens and closes at one time: a whole day is 00:00-24:00")
    days = _days(found["days"], when) if found["days"] else frozenset(range(7))
    return WeeklyHours(days, begins, ends if ends > begins else ends + DAY_MINUTES, _zone(tz))


def windows_fault(windows: tuple[Warm, ...], most: int) -> str:
    """Why a function of `most` containers cannot have these windows, naming the first that is wrong; "": it can."""
    if len(windows) > MOST_WINDOWS:
        return f"{len(windows)} windows are too many: expected at most {MOST_WINDOWS}"
    for window in windows:
        try:
            hours_of(window.when, window.tz)
        except _UnknownZone as error:
            # A container may have no zones at all: who imports a function there deploys nothing.
            if _zones_are_known():
                return str(error)
        except ValueError as error:
            return str(error)
        if not 1 <= window.containers <= MOST_WARM:
            return f"{window.when!r} has containers={window.containers}: expected 1 to {MOST_WARM}"
        if window.containers > most:
            return f"{window.when!r} has containers={window.containers}: expected at most max_containers={most}"
    return ""


def _minute(text: str, when: str) -> int:
    hour, minute = map(int, text.split(":"))
    if not (hour < 24 and minute < 60) and (hour, minute) != (24, 0):
        raise ValueError(f"{when!r} has no time of day {text}: expected 00:00 to 24:00")
    return hour * 60 + minute


def _days(text: str, when: str) -> frozenset[int]:
    days: set[int] = set()
    for part in text.split(","):
        ends = [_day(name, when) for name in part.split("-")]
        if len(ends) > 2:
            raise ValueError(f"{when!r} has the days {part!r}: {EXPECTED}")
        if len(ends) == 1:
            days.add(ends[0])
        for first, last in pairwise(ends):
            days |= {day % 7 for day in range(first, last + (8 if last < first else 1))}
    return frozenset(days)


def _day(name: str, when: str) -> int:
    try:
        return DAYS.index(name.capitalize())
    except ValueError:
        raise ValueError(f"{when!r} has no day {name!r}: expected {', '.join(DAYS)}") from None


def _zone(tz: str) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # here: most readers of a specification have no windows

    try:
        if ZONE.fullmatch(tz):
            return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise _UnknownZone(f'there is no time zone {tz!r:.80}: expected a name such as "Europe/Berlin" or "UTC"')


def _zones_are_known() -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo.no_cache("Etc/UTC")
    except ZoneInfoNotFoundError:
        return False
    return True

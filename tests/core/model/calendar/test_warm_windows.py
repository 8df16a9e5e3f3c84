"""Warm windows: what their texts say, and when they are open, also where clocks jump."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.calendar.warm_windows import DAYS, MOST_WINDOWS, Warm, hours_of, windows_fault
from tests.example_counts import examples

BERLIN = "Europe/Berlin"
ZONES = ("UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia")


def clock(text: str, zone: str = BERLIN, *, fold: int = 0) -> float:
    """The unix second at which the zone's clock shows `text`; where it does so twice, `fold` says which."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


@pytest.mark.parametrize(
    ("when", "open_at", "shut_at"),
    [
        ("Mon-Fri 08:00-18:00", ("2026-11-24 08:00", "2026-11-24 17:59"), ("2026-11-24 18:00", "2026-11-22 12:00")),
        ("Fri-Mon 08:00-18:00", ("2026-11-22 12:00", "2026-11-23 12:00"), ("2026-11-24 12:00",)),
        ("Sat,Sun 22:00-06:00", ("2026-11-21 22:00", "2026-11-23 05:59"), ("2026-11-20 23:00", "2026-11-24 03:00")),
        ("tue,THU  10:00-24:00", ("2026-11-24 23:59", "2026-11-26 10:00"), ("2026-11-25 00:00", "2026-11-25 12:00")),
        ("00:00-24:00", ("2026-11-24 00:00", "2026-11-29 23:59"), ()),
        ("23:00-01:00", ("2026-11-24 23:30", "2026-11-24 00:30"), ("2026-11-24 01:00", "2026-11-24 12:00")),
    ],
)
def test_a_window_is_open_between_its_times(when: str, open_at: tuple[str, ...], shut_at: tuple[str, ...]) -> None:
    """Over midnight it belongs to the day on which it opens."""
    hours = hours_of(when, BERLIN)
    assert [text for text in open_at if not hours.is_open(clock(text))] == []
    assert [text for text in shut_at if hours.is_open(clock(text))] == []


def test_the_next_change_is_its_end_and_then_its_begin() -> None:
    """Over the weekend too."""
    hours = hours_of("Mon-Fri 08:00-18:00", BERLIN)
    assert hours.changes_at(clock("2026-11-27 12:00")) == clock("2026-11-27 18:00")
    assert hours.changes_at(clock("2026-11-27 18:00")) == clock("2026-11-30 08:00")
    assert hours_of("00:00-24:00", BERLIN).changes_at(clock("2026-11-27 12:00")) == math.inf
    assert hours_of("Mon-Sat 00:00-24:00", BERLIN).changes_at(clock("2026-11-23 00:00")) == clock("2026-11-29 00:00")


def test_a_day_of_25_hours_opens_at_the_first_reading_and_closes_at_the_last() -> None:
    """On 2026-10-25 the clock of Berlin shows the hour from 2 to 3 twice."""
    hours = hours_of("02:15-02:45", BERLIN)
    begin, end = clock("2026-10-25 02:15"), clock("2026-10-25 02:45", fold=1)
    assert end - begin == 90 * 60
    assert [hours.is_open(at) for at in (begin - 1, begin, end - 1, end)] == [False, True, True, False]
    assert hours.changes_at(begin) == end


def test_a_day_of_23_hours_opens_and_closes_at_the_jump() -> None:
    """On 2026-03-29 the clock of Berlin goes from 2 to 3."""
    jump = clock("2026-03-29 03:00")
    begins, ends = hours_of("02:30-04:00", BERLIN), hours_of("01:00-02:30", BERLIN)
    assert begins.changes_at(jump - 600) == jump
    assert begins.is_open(jump)
    assert ends.changes_at(jump - 600) == jump
    assert not ends.is_open(jump)
    assert not hours_of("Sun 02:15-02:45", BERLIN).is_open(jump)


def test_a_window_has_its_length_where_no_clock_jumps() -> None:
    """Of a night at a weekend in New York."""
    hours = hours_of("Sat 22:00-06:00", "America/New_York")
    begin = clock("2026-11-21 22:00", "America/New_York")
    assert hours.changes_at(begin) - begin == 8 * 3600


@examples(60, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    days=st.sets(st.sampled_from(DAYS), min_size=1),
    begins=st.integers(0, 1439),
    length=st.integers(1, 1440),
    at=st.integers(1_767_225_600, 1_830_297_600),
)
def test_a_window_goes_by_its_clock(zone: str, days: set[str], begins: int, length: int, at: int) -> None:
    """It is open where the clock shows a time in it, and shut an hour and more away from it; changes are changes."""
    ends = (begins + length) % 1440
    if ends == begins:
        ends, begins, length = 1440, 0, 1440
    when = f"{','.join(days)} {begins // 60:02}:{begins % 60:02}-{ends // 60:02}:{ends % 60:02}"
    hours = hours_of(when, zone)

    def shown(instant: float) -> tuple[str, int]:
        local = datetime.fromtimestamp(instant, ZoneInfo(zone))
        return DAYS[local.weekday()], local.hour * 60 + local.minute

    day, minute = shown(at)
    eve = DAYS[DAYS.index(day) - 1]
    inside = (day in days and begins <= minute < begins + length) or (eve in days and minute + 1440 < begins + length)
    near = {shown(at + moved * 1800)[1] for moved in range(-3, 4)}
    if inside:
        assert hours.is_open(at)
    elif not any(abs(each - edge) % 1440 in range(91) for each in near for edge in (begins, ends)):
        assert not hours.is_open(at)
    change = hours.changes_at(float(at))
    assert change > at
    if change < math.inf:
        assert hours.is_open(change) is not hours.is_open(at)
        assert hours.is_open(change - 1) is hours.is_open(at)


@pytest.mark.parametrize(
    ("window", "says"),
    [
        (Warm("morning"), "'morning' cannot be read: expected days and times such as"),
        (Warm("Mon-Fri 8-18"), "cannot be read"),
        (Warm("Mon-Fri 08:00-18:60"), "has no time of day 18:60: expected 00:00 to 24:00"),
        (Warm("Mon-Fri 24:00-08:00"), "opens at 24:00: write 00:00 of the next day"),
        (Warm("Mon-Fri 08:00-08:00"), "opens and closes at one time: a whole day is 00:00-24:00"),
        (Warm("Mon-Mit 08:00-18:00"), "has no day 'Mit': expected Mon, Tue, Wed"),
        (Warm("Mon-Wed-Fri 08:00-18:00"), "has the days 'Mon-Wed-Fri': expected days and times"),
        (Warm("Mon, 08:00-18:00"), "has no day ''"),
        (Warm("08:00-18:00", tz="Europe/Atlantis"), "there is no time zone 'Europe/Atlantis': expected a name such as"),
        (Warm("08:00-18:00", tz="../../etc/passwd"), "there is no time zone"),
        (Warm("08:00-18:00", tz="Europe"), "there is no time zone 'Europe'"),
        (Warm("08:00-18:00", containers=0), "has containers=0: expected 1 to 1000"),
        (Warm("08:00-18:00", containers=11), "has containers=11: expected at most max_containers=10"),
    ],
)
def test_what_is_no_window_is_refused(window: Warm, says: str) -> None:
    """With what was expected instead."""
    assert says in windows_fault((Warm("00:00-24:00"), window), 10)


def test_windows_are_few() -> None:
    """Each pass of the controller may look at all of them."""
    assert not windows_fault((Warm("00:00-24:00"),) * MOST_WINDOWS, 10)
    assert "17 windows are too many: expected at most 16" in windows_fault((Warm("00:00-24:00"),) * 17, 10)


def test_a_window_is_shown_as_it_was_written() -> None:
    """With its zone."""
    assert str(Warm("Mon-Fri 08:00-18:00", 2, BERLIN)) == "Mon-Fri 08:00-18:00 Europe/Berlin"
    assert hours_of("Mon 08:00-18:00", "UTC").changes_at(0.0) == (
        datetime(1970, 1, 5, 8, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    ) / timedelta(seconds=1)


def test_where_no_zones_are_known_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container imports a function that was checked at its deploy, perhaps without a database of zones."""
    monkeypatch.setitem(sys.modules, "tzdata", None)
    reset_tzpath(to=())
    try:
        assert windows_fault((Warm("08:00-18:00", tz="Asia/Kathmandu"),), 10) == ""
        assert "cannot be read" in windows_fault((Warm("8-18", tz="Asia/Kathmandu"),), 10)
    finally:
        reset_tzpath()
    monkeypatch.undo()
    assert windows_fault((Warm("08:00-18:00", tz="Asia/Kathmandu"),), 10) == ""
    assert "no time zone" in windows_fault((Warm("08:00-18:00", tz="Asia/Atlantis"),), 10)

"""The instants at which schedules run: the same for everybody, over months and changes of the clocks."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.schedules.ticks import (
    LEAST_WAIT_S,
    LONGEST_WAIT_S,
    is_tick,
    kept_s,
    last_tick,
    latest_start,
    next_tick,
    share_of,
    who_of,
)
from pilotlight_core.model.spec import Schedule

WHO = who_of("acme", "etl", "nightly", "")
BERLIN = "Europe/Berlin"


def cron(text: str, tz: str = "UTC") -> Schedule:
    return Schedule(cron=text, tz=tz)


def second(text: str) -> float:
    """The unix second of an instant with its offset."""
    return datetime.fromisoformat(text).timestamp()


def shown(schedule: Schedule, since: str, count: int) -> list[str]:
    """The ticks after an instant, on the clock of their zone."""
    at, found = second(since), []
    for _ in range(count):
        tick = next_tick(schedule, WHO, at)
        assert tick is not None
        found.append(datetime.fromtimestamp(tick, UTC).astimezone(ZoneInfo(schedule.tz)).isoformat(" ", "minutes"))
        at = tick
    return found


def test_it_follows_the_clock_of_its_zone() -> None:
    """Six in the morning stays six in the morning, whatever that is in UTC."""
    assert shown(cron("0 6 * * *", BERLIN), "2026-03-27T12:00Z", 3) == [
        "2026-03-28 06:00+01:00", "2026-03-29 06:00+02:00", "2026-03-30 06:00+02:00",
    ]  # fmt: skip


def test_what_the_clock_skips_comes_right_after() -> None:
    """At 2:00 it is 3:00; a tick that is at 3:00 anyway does not come twice."""
    assert shown(cron("30 2 * * *", BERLIN), "2026-03-28T12:00Z", 2) == [
        "2026-03-29 03:00+02:00", "2026-03-30 02:30+02:00",
    ]  # fmt: skip
    assert shown(cron("0,15,30 2,3 * * *", BERLIN), "2026-03-29T00:59Z", 4) == [
        "2026-03-29 03:00+02:00", "2026-03-29 03:15+02:00", "2026-03-29 03:30+02:00", "2026-03-30 02:00+02:00",
    ]  # fmt: skip


def test_what_the_clock_shows_twice_comes_once() -> None:
    """The first time, also if it is asked for between the two."""
    assert shown(cron("30 2 * * *", BERLIN), "2026-10-24T12:00Z", 2) == [
        "2026-10-25 02:30+02:00", "2026-10-26 02:30+01:00",
    ]  # fmt: skip
    assert shown(cron("30 2 * * *", BERLIN), "2026-10-25T01:10Z", 1) == ["2026-10-26 02:30+01:00"]


def test_a_star_follows_the_wall() -> None:
    """Every half hour is every half hour, and of an hour that comes twice both."""
    assert shown(cron("*/30 * * * *", BERLIN), "2026-03-29T00:00Z", 3) == [
        "2026-03-29 01:30+01:00", "2026-03-29 03:00+02:00", "2026-03-29 03:30+02:00",
    ]  # fmt: skip
    assert shown(cron("*/30 2 * * *", BERLIN), "2026-10-24T12:00Z", 5) == [
        "2026-10-25 02:00+02:00", "2026-10-25 02:30+02:00", "2026-10-25 02:00+01:00", "2026-10-25 02:30+01:00",
        "2026-10-26 02:00+01:00",
    ]  # fmt: skip


def test_a_midnight_that_there_is_not() -> None:
    """In Cairo the clock is set forward at midnight: what follows the wall does not come, what is given comes late."""
    cairo, night = "Africa/Cairo", "2026-04-23T20:00Z"
    assert shown(cron("*/20 0 * * *", cairo), night, 1) == ["2026-04-25 00:00+03:00"]
    assert shown(cron("0 0 * * *", cairo), night, 2) == ["2026-04-24 01:00+03:00", "2026-04-25 00:00+03:00"]


def test_ends_of_months() -> None:
    """A day that a month lacks is not moved; `L` is the last one."""
    assert shown(cron("0 0 31 * *"), "2026-03-30T00:00Z", 3) == [
        "2026-03-31 00:00+00:00", "2026-05-31 00:00+00:00", "2026-07-31 00:00+00:00",
    ]  # fmt: skip
    assert shown(cron("0 0 L 2 *"), "2026-03-01T00:00Z", 2) == ["2027-02-28 00:00+00:00", "2028-02-29 00:00+00:00"]
    assert shown(cron("0 0 29 2 *"), "2026-01-01T00:00Z", 2) == ["2028-02-29 00:00+00:00", "2032-02-29 00:00+00:00"]


def test_weekdays_and_days_of_the_month() -> None:
    """Where both are given one of them is enough, as in cron."""
    assert shown(cron("0 6 * * MON-FRI"), "2026-11-20T12:00Z", 1) == ["2026-11-23 06:00+00:00"]
    assert shown(cron("0 0 13 * 5"), "2026-11-07T00:00Z", 2) == ["2026-11-13 00:00+00:00", "2026-11-20 00:00+00:00"]


def test_periods_count_from_the_epoch() -> None:
    """With an offset of their own, which the same function always has."""
    every = Schedule(period_s=300)
    ticks = [next_tick(every, WHO, at) for at in (1_000_000.0, 1_000_299.9)]
    assert ticks[0] is not None
    assert ticks[0] % 300 == next_tick(every, WHO, 0.0)
    offsets = {next_tick(every, who_of("acme", "etl", f"f{number}", ""), 0.0) for number in range(20)}
    assert len(offsets) > 10


def test_a_name_has_its_share() -> None:
    """Always the same, and as many as there are parts."""
    shares = {share_of(f"acme:etl.f{number}", 4) for number in range(100)}
    assert shares == {0, 1, 2, 3}
    assert share_of(WHO, 1) == 0
    assert share_of(WHO, 10**6) == share_of(WHO, 10**6)


def test_a_tick_may_begin_until_the_next_one() -> None:
    """But for a minute at least, and a day at most."""
    assert latest_start(cron("*/5 * * * *"), WHO, 0) == 300.0
    assert latest_start(Schedule(period_s=2), WHO, 0) == LEAST_WAIT_S
    assert latest_start(cron("0 0 1 * *"), WHO, 0) == LONGEST_WAIT_S


def test_the_last_tick_is_found_as_far_back_as_it_may_begin() -> None:
    """And no further, so that what may not begin any more is not looked for."""
    at = second("2026-11-24T05:59Z")
    assert last_tick(cron("0 6 * * *"), WHO, at) == second("2026-11-23T06:00Z")
    assert last_tick(cron("0 6 * * *"), WHO, second("2026-11-24T06:00Z")) == second("2026-11-24T06:00Z")
    assert last_tick(cron("0 6 1 * *"), WHO, at) is None


zones = st.sampled_from([
    "UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Cairo", "America/Havana",
])  # fmt: skip
crons = st.builds(
    "{} {} {} * {}".format,
    st.sampled_from(["*", "0", "30", "*/15", "5,35", "10-20/5"]),
    st.sampled_from(["*", "0", "2", "1-3", "*/6", "0,2,23"]),
    st.sampled_from(["*", "1", "L", "25-31"]),
    st.sampled_from(["*", "0", "1-5"]),
)
schedules = st.builds(cron, crons, zones) | st.builds(Schedule, period_s=st.integers(1, 40 * 86_400))
CHANGES = [second(f"2026-{text}Z") for text in ("03-29T01:00", "10-25T01:00", "03-08T07:00", "11-01T06:00")]
instants = st.one_of(
    st.floats(0.0, 4e9), st.builds(float.__add__, st.sampled_from(CHANGES), st.floats(-90_000.0, 90_000.0))
)


@given(schedules, instants, st.floats(0.0, 90_000.0))
def test_everybody_finds_the_same_tick(schedule: Schedule, at: float, later: float) -> None:
    """Whenever it is asked for: the next one after an instant is so for each instant before it."""
    tick = next_tick(schedule, WHO, at)
    assert tick is not None
    assert tick > at
    assert is_tick(schedule, WHO, tick)
    after = next_tick(schedule, WHO, at + later)
    assert after is not None
    assert after == tick if at + later < tick else after > tick


@given(schedules, instants)
def test_ticks_rise(schedule: Schedule, at: float) -> None:
    """No instant comes twice, and the last tick is the one before the next."""
    ticks: list[int] = []
    for _ in range(4):
        tick = next_tick(schedule, WHO, ticks[-1] if ticks else at)
        assert tick is not None
        ticks.append(tick)
    assert at < ticks[0]
    for tick, following in pairwise(ticks):
        assert tick < following
        if following - tick < LONGEST_WAIT_S:
            assert last_tick(schedule, WHO, following - 1) == tick


@given(schedules, instants)
def test_a_job_is_kept_for_longer_than_it_may_begin(schedule: Schedule, at: float) -> None:
    """Else it could be forgotten, made again and run again."""
    tick = next_tick(schedule, WHO, at)
    assert tick is not None
    waits = latest_start(schedule, WHO, tick) - tick
    assert LEAST_WAIT_S <= waits <= LONGEST_WAIT_S
    assert kept_s(schedule, WHO, tick) > 2 * waits


@pytest.mark.parametrize("who", ["a:b.c", "a:b.c.run"])
def test_a_method_is_named_behind_its_class(who: str) -> None:
    """A plain function has none."""
    assert who_of("a", "b", "c", who[6:]) == who

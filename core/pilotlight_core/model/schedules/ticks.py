"""The ticks of a schedule: unix seconds at which a function runs. Plain functions of the schedule and an instant.

A tick is computed forwards only, from whatever instant, and comes out the same whoever asks and when: it names the job
that it becomes. `who` is the function and method, `tenant:app.function.method`.

*Cron* follows Debian's cron at a change of the clocks. Where minute and hour are both given, a tick in the hour that is
skipped comes right after it, and one in the hour that comes twice comes once, the first time. Where one of them starts
with `*`, ticks follow the clock on the wall: none in the skipped hour, and those of the double hour twice.

*Periods* count from the epoch, with an offset that follows from `who`: a deploy does not shift them, and functions with
one period do not all run at the same second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from pilotlight_core.model.spec import Schedule

LEAST_WAIT_S = 60.0
"""A tick may begin this late, however soon the next one is: a container takes its time to start."""
LONGEST_WAIT_S = 86_400.0
"""A tick begins no later than this, however far off the next one is."""
KEPT_TICKS = 200
"""As long as this many ticks take, their jobs are kept, within the two bounds below."""
LEAST_KEPT_S = 3_600.0
LONGEST_KEPT_S = 7 * 86_400.0
SPANS_S = (120.0, 7_200.0, LONGEST_WAIT_S)
"""How far back to look for the last tick: a short span costs little where ticks are frequent."""


def next_tick(schedule: Schedule, who: str, at: float) -> int | None:
    """The first tick after the unix second `at`; None: there is none in the next fifty years."""
    return next(_ticks_after(schedule, who, at), None)


def last_tick(schedule: Schedule, who: str, at: float) -> int | None:
    """The last tick up to the unix second `at`; None: there is none within `LONGEST_WAIT_S`."""
    for span_s in SPANS_S:
        last = None
        for tick in _ticks_after(schedule, who, at - span_s):
            if tick > at:
                break
            last = tick
        if last is not None:
            return last
    return None


def is_tick(schedule: Schedule, who: str, tick: int) -> bool:
    return next_tick(schedule, who, tick - 1) == tick


def latest_start(schedule: Schedule, who: str, tick: int) -> float:
    """Until when the job of a tick may begin: the next tick, but not sooner or later than the bounds above."""
    return tick + min(max(_gap_s(schedule, who, tick), LEAST_WAIT_S), LONGEST_WAIT_S)


def kept_s(schedule: Schedule, who: str, tick: int) -> float:
    """How long the job of a tick is kept after its end: longer than it may begin, so that it is not made again."""
    return min(max(KEPT_TICKS * _gap_s(schedule, who, tick), LEAST_KEPT_S), LONGEST_KEPT_S)


def share_of(who: str, parts: int) -> int:
    """A number from 0 to `parts` - 1 that follows from the name: it spreads what would come at one instant."""
    return int.from_bytes(hashlib.sha256(who.encode()).digest()[:8], "big") % parts


def who_of(tenant: str, app: str, function: str, method: str) -> str:
    """The name of what runs, which ticks and their jobs follow from."""
    return f"{tenant}:{app}.{function}" + (f".{method}" if method else "")


def _gap_s(schedule: Schedule, who: str, tick: int) -> float:
    following = next_tick(schedule, who, tick)
    return LONGEST_KEPT_S if following is None else following - tick


def _ticks_after(schedule: Schedule, who: str, at: float) -> Iterator[int]:
    if not schedule.cron:
        yield from _of_period(schedule.period_s, who, at)
        return
    last, zone = at, ZoneInfo(schedule.tz)
    for instant in CronSim(schedule.cron, datetime.fromtimestamp(at, UTC).astimezone(zone)):
        tick = int(instant.timestamp())
        # Where the clock is set back, it names the first of two instants, which may be over; where it is set forward,
        # one instant for all that is skipped, or at midnight one that there is not.
        if tick > last and instant.hour == datetime.fromtimestamp(tick, zone).hour:
            last = tick
            yield tick


def _of_period(period_s: int, who: str, at: float) -> Iterator[int]:
    offset = share_of(who, period_s)
    tick = offset + period_s * (int((at - offset) // period_s) + 1)
    while True:
        yield tick
        tick += period_s

"""Which schedules a function may have."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from cronsim import CronSimError

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.schedules.ticks import next_tick
from pilotlight_core.model.spec import FunctionSpec, Schedule, schedules_of

LEAST_PERIOD_S = 1
LONGEST_PERIOD_S = 366 * 86_400
MOST_TEXT = 200
"""Characters of a cron expression."""
FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+\-/]{0,63}")


def check_schedules(spec: FunctionSpec) -> None:
    """Refuse schedules of a function that cannot be kept.

    Raises:
        BadInput: naming the field.
    """
    schedules = schedules_of(spec)
    if not schedules and spec.schedules == ():
        raise _wrong(spec, "expected one or more, or no such field")
    named = [schedule.method for schedule in schedules]
    if len(set(named)) != len(named):
        raise _wrong(spec, "a method has one schedule")
    for schedule in schedules:
        try:
            check_schedule(schedule)
        except BadInput as error:
            raise _wrong(spec, error.detail.removesuffix(".")) from None
        _check_method(spec, schedule.method)


def check_schedule(schedule: Schedule) -> None:
    """Refuse what has no ticks.

    Raises:
        BadInput: saying what was expected.
    """
    if bool(schedule.cron) == bool(schedule.period_s):
        raise BadInput("a schedule has either a cron expression or a period.", field="schedule")
    if schedule.cron:
        _check_zone(schedule.tz)
        _check_cron(schedule)
    elif not LEAST_PERIOD_S <= schedule.period_s <= LONGEST_PERIOD_S:
        raise BadInput(
            f"a period of {schedule.period_s} s: expected {LEAST_PERIOD_S} second to 366 days.", field="schedule"
        )


def _check_zone(name: str) -> None:
    try:
        found = ZONE.fullmatch(name) is not None and ZoneInfo(name) is not None
    except (OSError, ValueError, LookupError):  # a folder of zones; no file of a zone; no such zone
        found = False
    if not found:
        raise BadInput(
            f'tz={name[:70]!r}: there is no such time zone; expected one such as "Europe/Berlin".', field="tz"
        )


def _check_cron(schedule: Schedule) -> None:
    text = schedule.cron
    what = f"cron {text[:MOST_TEXT]!r}"
    if len(text) > MOST_TEXT or len(text.split()) != len(FIELDS):
        raise BadInput(
            f'{what}: expected five fields ({", ".join(FIELDS)}), such as "0 6 * * 1-5". Seconds are for periods.',
            field="schedule",
        )
    try:
        tick = next_tick(schedule, "", 0.0)
    except CronSimError as error:
        reason = str(error).removeprefix("Bad ").replace("-", " ")
        raise BadInput(f"{what}: the {reason} is wrong.", field="schedule") from None
    if tick is None:
        raise BadInput(f"{what}: no day matches it.", field="schedule")


def _check_method(spec: FunctionSpec, name: str) -> None:
    method = next((one for one in spec.methods if one.name == name), None)
    if method is None:
        known = ", ".join(one.name for one in spec.methods if one.name) or "none"
        raise _wrong(spec, f"there is no method {name!r}; its methods: {known}")
    if method.batching is not None:
        raise _wrong(spec, f"{method.attribute} runs without arguments then, and a batch is made of them")
    if needed := method.input_schema.get("required"):
        shown = ", ".join(map(str, needed)) if isinstance(needed, list) else "some"
        raise _wrong(spec, f"{method.attribute} runs without arguments then, and it needs {shown}: give it a default")


def _wrong(spec: FunctionSpec, why: str) -> BadInput:
    return BadInput(f"{spec.name}: schedule: {why}.", field="schedule")

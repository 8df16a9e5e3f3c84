"""What is no schedule is refused, with what was expected."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.schedules.schedule_checks import check_schedule, check_schedules
from pilotlight_core.model.spec import Batching, Schedule
from tests.builders.specs import function_spec, method


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(cron="*/5 0,12 1-7 JAN-MAR MON#1", tz="America/Argentina/Buenos_Aires"),
        Schedule(cron="0 0 L * *"),
        Schedule(cron="0 0 29 2 *", tz="Etc/GMT+5"),
        Schedule(period_s=1),
        Schedule(period_s=366 * 86_400),
    ],
)
def test_what_has_ticks_is_allowed(schedule: Schedule) -> None:
    """Names, lists, ranges, steps and last days; zones; periods of a second to a year."""
    check_schedule(schedule)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either a cron expression or a period"),
        ({"cron": "0 0 * * *", "period_s": 60}, "either a cron expression or a period"),
        ({"cron": "60 0 * * *"}, "the minute is wrong"),
        ({"cron": "0 24 * * *"}, "the hour is wrong"),
        ({"cron": "0 0 30 2 *"}, "the day of month is wrong"),
        ({"cron": "0 0 1 13 *"}, "the month is wrong"),
        ({"cron": "0 0 * * FUN"}, "the day of week is wrong"),
        ({"cron": "0 0 */31 2 7#5"}, "no day matches"),
        ({"cron": "0 0 * * * *"}, "expected five fields"),
        ({"cron": "@daily"}, "expected five fields"),
        ({"cron": "0 0 * * " + "1," * 200 + "1"}, "expected five fields"),
        ({"cron": "0 0 * * *", "tz": "Europe/Atlantis"}, "no such time zone"),
        ({"cron": "0 0 * * *", "tz": "Europe"}, "no such time zone"),
        ({"cron": "0 0 * * *", "tz": "../../etc/passwd"}, "no such time zone"),
        ({"cron": "0 0 * * *", "tz": "x" * 10_000}, "no such time zone"),
        ({"cron": "0 0 * * *", "tz": ""}, "no such time zone"),
        ({"period_s": -5}, "1 second to 366 days"),
        ({"period_s": 367 * 86_400}, "1 second to 366 days"),
    ],
)
def test_what_has_none_is_refused(given: dict[str, Any], said: str) -> None:
    """In one short sentence, however long what was sent."""
    with pytest.raises(BadInput, match=said) as refused:
        check_schedule(Schedule(**given))
    assert len(refused.value.detail) < 500


NEEDS = {"type": "object", "properties": {"rows": {}}, "required": ["rows"]}


@pytest.mark.parametrize(
    ("methods", "schedules", "said"),
    [
        ((method("run", input_schema=NEEDS),), (Schedule(method="run", period_s=60),), "needs rows: give it a default"),
        ((method("run", input_schema={"required": 7}),), (Schedule(method="run", period_s=60),), "needs some"),
        ((method("run", batching=Batching(max_batch_size=2)),), (Schedule(method="run", period_s=60),), "a batch"),
        ((method("run"),), (Schedule(method="stop", period_s=60),), "no method 'stop'; its methods: run"),
        ((method("run"),), (Schedule(method="run", period_s=60),) * 2, "a method has one schedule"),
        ((method("run"),), (Schedule(method="run"),), "greet: schedule: a schedule has either"),
        ((method("run"),), (), "expected one or more"),
    ],
)
def test_what_cannot_run_by_itself_has_no_schedule(methods: Any, schedules: Any, said: str) -> None:
    """Nobody gives it arguments."""
    with pytest.raises(BadInput, match=said) as refused:
        check_schedules(function_spec("greet", *methods, schedules=schedules))
    assert refused.value.more["field"] == "schedule"


def test_what_runs_without_arguments_may() -> None:
    """A function without a schedule too."""
    check_schedules(function_spec("greet", schedules=(Schedule(period_s=60),)))
    check_schedules(function_spec("greet"))

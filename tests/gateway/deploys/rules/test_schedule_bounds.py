"""How many schedules a tenant may have, over all of its apps."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import AppRecord, FunctionSpec, Schedule
from pilotlight_gateway.deploys.rules.schedule_bounds import SCHEDULES_AT_MOST, check_schedule_bounds, ticks_per_s
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import function_spec, version_record

DAILY = Schedule(cron="0 6 * * *")


def functions(count: int, schedule: Schedule = DAILY) -> list[FunctionSpec]:
    return [function_spec(f"f{number}", schedules=(schedule,)) for number in range(count)]


def registry(*schedules: Schedule, **app: object) -> MemoryRegistry:
    """`acme` with the app `other`, a function of which has schedules."""
    found = MemoryRegistry()
    found.versions["ver_1"] = version_record(function_spec(schedules=schedules), app="other")
    fields = {"tenant": "acme", "app": "other", "revision": 1, "functions": {"greet": "ver_1"}} | app
    found.apps["acme", "other"] = AppRecord(**fields)  # type: ignore[arg-type] # what a test says
    return found


def test_there_may_be_so_many() -> None:
    """Those of other apps count, but not of the same app before the deploy, nor of other tenants."""
    check_schedule_bounds(registry(DAILY), "acme", "etl", functions(SCHEDULES_AT_MOST - 1))
    check_schedule_bounds(registry(DAILY), "acme", "other", functions(SCHEDULES_AT_MOST))
    check_schedule_bounds(registry(DAILY), "zoo", "etl", functions(SCHEDULES_AT_MOST))
    with pytest.raises(BadInput, match=f"{SCHEDULES_AT_MOST + 1} schedules, and {SCHEDULES_AT_MOST} is the most"):
        check_schedule_bounds(registry(DAILY), "acme", "etl", functions(SCHEDULES_AT_MOST))


def test_what_does_not_run_does_not_count() -> None:
    """A stopped app, and a run."""
    for app in ({"stopped": True}, {"ends_at": 9e9}):
        check_schedule_bounds(registry(DAILY, **app), "acme", "etl", functions(SCHEDULES_AT_MOST))


def test_all_together_may_run_so_often() -> None:
    """Five a second: a cron expression counts as every minute."""
    second = Schedule(period_s=1)
    check_schedule_bounds(registry(second), "acme", "etl", functions(4, second))
    with pytest.raises(BadInput, match=r"6\.0 times a second together, and 5 is the most"):
        check_schedule_bounds(registry(second), "acme", "etl", functions(5, second))
    assert ticks_per_s(DAILY) == 1 / 60


def test_whoever_has_none_is_not_asked() -> None:
    """A deploy without schedules is nobody's burden, whatever others of the tenant have."""
    check_schedule_bounds(registry(*[Schedule(period_s=1)] * 9), "acme", "etl", [function_spec()])

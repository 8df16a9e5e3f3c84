"""Which ticks' jobs have to stand: the next one, and the last one where it was missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.schedules.ticks import latest_start
from pilotlight_core.model.spec import Schedule
from pilotlight_gateway.schedules.scheduled_methods import ScheduledMethod
from pilotlight_gateway.schedules.tick_jobs import tick_job
from pilotlight_gateway.schedules.tick_plan import AHEAD_S, FAR_S, LEAST_AHEAD_S, plan_ticks
from tests.gateway.schedules.scheduled_apps import app_record, scheduled_method

HOUR_S = 3_600.0
METHOD = scheduled_method()
APP = app_record((0.0, "ver_1"))
MINUTE = scheduled_method(Schedule(cron="* * * * *"))


def test_a_job_is_stored_shortly_before_its_tick() -> None:
    """Not sooner; until then there is nothing to look at."""
    app = app_record((HOUR_S + 1.0, "ver_1"))
    early = plan_ticks(METHOD, app, HOUR_S + 1.0)
    assert early.ticks == ()
    assert AHEAD_S >= 2 * HOUR_S - early.look_again_at >= LEAST_AHEAD_S
    assert plan_ticks(METHOD, app, early.look_again_at - 1.0) == early
    ahead = plan_ticks(METHOD, app, early.look_again_at)
    assert (ahead.ticks, ahead.look_again_at) == ((7_200,), 2 * HOUR_S)


def test_full_hours_are_no_crowd() -> None:
    """Each method's job is stored at an instant of its own, minutes before the tick that they share."""
    methods = (scheduled_method(tenant=f"t{number}") for number in range(50))
    looks = {plan_ticks(method, app_record((HOUR_S + 1.0, "ver_1")), HOUR_S + 1.0).look_again_at for method in methods}
    assert len(looks) > 25


def test_of_missed_ticks_the_last_one_comes() -> None:
    """As long as it may begin: until the next one, and a day at most."""
    assert plan_ticks(METHOD, APP, 3 * HOUR_S + 100.0).ticks == (3 * 3_600,)
    assert plan_ticks(METHOD, APP, 4 * HOUR_S - 1.0).ticks == (3 * 3_600, 4 * 3_600)
    monthly = scheduled_method(Schedule(cron="0 0 1 * *"))
    first_of_february = 31 * 86_400
    assert plan_ticks(monthly, APP, first_of_february + 86_399.0).ticks == (first_of_february,)
    assert plan_ticks(monthly, APP, first_of_february + 86_400.0).ticks == ()


def test_what_was_not_deployed_was_not_missed() -> None:
    """Nor what was stopped then, or deployed in another version."""
    at = 3 * HOUR_S + 100.0
    for deploys in (
        [(3 * HOUR_S + 50.0, "ver_1")],
        [(0.0, "ver_1"), (2.5 * HOUR_S, ""), (3 * HOUR_S + 50.0, "ver_1")],
        [(0.0, "ver_0"), (3 * HOUR_S + 50.0, "ver_1")],
    ):
        assert plan_ticks(METHOD, app_record(*deploys), at).ticks == ()


def test_a_schedule_without_ticks_is_looked_at_tomorrow() -> None:
    """Where no day of fifty years matches any more: the check of a deploy lets none through."""
    fifth_sunday_and_first_day = scheduled_method(Schedule(cron="0 0 */31 2 7#5"))
    plan = plan_ticks(fifth_sunday_and_first_day, APP, 1_000.0)
    assert (plan.ticks, plan.look_again_at) == ((), 1_000.0 + FAR_S)


@given(st.floats(0.0, 4e9), st.sampled_from([METHOD, MINUTE, scheduled_method(Schedule(period_s=7))]))
def test_whoever_looks_stores_the_same(at: float, method: ScheduledMethod) -> None:
    """Every tick is in the plan of an instant before it and of each one until it may not begin; none is later."""
    plan = plan_ticks(method, APP, at)
    assert plan.look_again_at > at
    assert len(plan.ticks) <= 2
    for tick in plan.ticks:
        assert tick in plan_ticks(method, APP, float(tick)).ticks
        assert at < latest_start(method.schedule, method.who, tick)
        assert tick <= at + AHEAD_S


@given(st.floats(0.0, 4e9), st.sampled_from([METHOD, MINUTE, scheduled_method(Schedule(period_s=7))]))
def test_a_cancelled_tick_is_remembered_until_it_is_over(at: float, method: ScheduledMethod) -> None:
    """It is kept from the instant of its cancellation on, and must not be made again after that."""
    for tick in plan_ticks(method, APP, at).ticks:
        job = tick_job("local", method, tick, at)
        assert tick - AHEAD_S + job.keep_s > job.expires_at

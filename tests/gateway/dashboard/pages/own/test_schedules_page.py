"""Schedules."""

from __future__ import annotations

from pilotlight_gateway.dashboard.pages.own.schedules_page import MOST_SCHEDULES, schedules_blocks
from tests.gateway.dashboard.pages.own_scenes import app
from tests.gateway.dashboard.pages.scenes import answer_of, table_of


def test_the_one_that_ticks_first_is_first() -> None:
    """One that does not tick says why."""
    cron = {"method": "refresh", "cron": "0 6 * * *", "tz": "Europe/Berlin", "period_s": 0}
    resting = [{"name": "old", "schedules": [{"schedule": cron, "next_tick": None}]}]
    blocks = schedules_blocks({"apps": [app(app="late", functions=resting, stopped=True), app()]})
    assert answer_of(blocks)[0] == "2 schedules; the next tick is at 2026-11-27 07:05:10 UTC, of shop.hello."
    assert table_of(blocks, "schedules") == [
        ("shop.hello", "", "each 7 min 1 s", "2026-11-27 07:05:10", "jobs"),
        ("late.old", "refresh", "0 6 * * * (Europe/Berlin)", "it is stopped", "jobs"),
    ]
    again = schedules_blocks({"apps": [app(functions=resting)]})
    assert answer_of(again)[0] == "1 schedule, of which none ticks."
    assert table_of(again, "schedules")[0][3] == "none until it is deployed anew"


def test_without_one_nothing_runs_by_itself() -> None:
    """And of many the first are shown, and all are counted."""
    assert answer_of(schedules_blocks({"apps": []}))[0] == "Nothing runs by itself."
    many = schedules_blocks({"apps": [app(app=f"a{n}") for n in range(MOST_SCHEDULES + 5)]})
    assert len(table_of(many, "schedules")) == MOST_SCHEDULES
    assert answer_of(many)[0].startswith(f"{MOST_SCHEDULES + 5} schedules")

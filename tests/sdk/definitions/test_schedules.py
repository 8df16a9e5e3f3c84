"""`schedule=` as it is written, and what of it is refused where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from pilotlight import App, Cron, OptionError, Period, batched, method
from pilotlight_core.model.spec import Schedule
from pilotlight_core.model.versions.manifest_codec import needs_of


def untyped(value: Any) -> Any:
    """A value that a type checker lets through."""
    return value


def plain(rows: int = 3) -> int:
    return rows


def needy(rows: int) -> int:
    return rows


@batched(max_batch_size=3)
def together(rows: list[int]) -> list[int]:
    return rows


class Report:
    """With a schedule, and without."""

    @method(schedule=Period(hours=1, minutes=30))
    def refresh(self) -> None: ...

    @method(schedule=Cron("0 0 * * MON"))
    def sweep(self) -> None: ...

    @method()
    def read(self, name: str) -> str:
        return name


def test_a_function_says_when_it_runs() -> None:
    """By a cron expression with its zone, or every so often."""
    app = App("etl")
    cron = app.gpu_function(schedule=Cron("0 6 * * *", tz="Europe/Berlin"))(plain)
    assert cron.spec.schedules == (Schedule(cron="0 6 * * *", tz="Europe/Berlin"),)
    period = app.gpu_function(schedule=Period(days=1, seconds=1), name="other")(plain)
    assert period.spec.schedules == (Schedule(period_s=86_401),)
    assert cron.local() == 3


def test_methods_of_a_class_say_it_each() -> None:
    """The class itself does not."""
    assert App("etl").gpu_function(Report).spec.schedules == (
        Schedule(method="refresh", period_s=5_400),
        Schedule(method="sweep", cron="0 0 * * MON"),
    )
    with pytest.raises(OptionError, match=r"say it at the method, @method\(schedule"):
        App("etl").gpu_function(schedule=Period(hours=1))(Report)


def test_only_what_has_one_needs_agents_that_know_it() -> None:
    """And only its manifest has the field."""
    app = App("etl")
    assert app.gpu_function(plain).spec.schedules is UNSET
    assert needs_of(app.gpu_function(plain).spec) == ()
    assert needs_of(app.gpu_function(schedule=Period(hours=1))(plain).spec) == ("schedules",)
    assert app.gpu_function(schedule=None)(plain).spec.schedules is UNSET


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Cron("61 * * * *"), "cron '61 .*: the minute is wrong"),
        (lambda: Cron("* * * * * *"), "five fields"),
        (lambda: Cron("0 6 * * *", tz="Mars/Olympus"), "no such time zone"),
        (lambda: Cron(untyped(6)), "expected two texts"),
        (lambda: Period(), "whole seconds, and one at least"),
        (lambda: Period(minutes=-5), "whole seconds, and one at least"),
        (lambda: Period(seconds=0.5), "whole seconds, and one at least"),
        (lambda: Period(seconds=float("nan")), "whole seconds, and one at least"),
        (lambda: Period(seconds=float("inf")), "whole seconds, and one at least"),
        (lambda: Period(days=400), "1 second to 366 days"),
        (lambda: Period(minutes=untyped("5")), "expected numbers"),
        (lambda: App("etl").gpu_function(schedule=untyped("0 6 * * *"))(plain), r"expected Cron\("),
        (lambda: untyped(App("etl").gpu_function)(cron="0 6 * * *")(plain), r"here it is schedule=Cron\("),
        (lambda: App("etl").gpu_function(schedule=Period(hours=1))(needy), "needy runs without arguments then"),
        (lambda: App("etl").gpu_function(schedule=Period(hours=1))(together), "a batch is made of them"),
        (lambda: method(schedule=untyped("hourly")), r"expected Cron\("),
        (lambda: untyped(method)(schedule=Period(hours=1), cron="x"), "its one option is schedule="),
    ],
)
def test_what_is_wrong_is_named_where_it_is_written(make: Callable[[], Any], said: str) -> None:
    """Before anything is deployed."""
    with pytest.raises(OptionError, match=said):
        make()


def test_half_a_minute_is_a_period() -> None:
    """Parts need not be whole, their sum has to be."""
    assert Period(minutes=0.5).total_s == 30

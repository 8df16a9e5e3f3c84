"""What of an app runs by itself, and which version of it was deployed when."""

from __future__ import annotations

from pilotlight_core.model.spec import Schedule
from pilotlight_gateway.schedules.scheduled_methods import scheduled_methods, version_at
from tests.builders.specs import method
from tests.gateway.schedules.scheduled_apps import HOURLY, app_record, scheduled_version


def test_each_method_with_a_schedule() -> None:
    """Under the name of its function, which is the same in each version."""
    refresh = Schedule(method="refresh", period_s=60)
    methods = method("refresh", "refresh"), method("sweep", "sweep")
    version = scheduled_version(refresh, Schedule(method="sweep", cron="0 0 * * *"), methods=methods)
    found = list(scheduled_methods(app_record((0.0, "ver_1")), {"ver_1": version}.get))

    assert [one.who for one in found] == ["acme:etl.nightly.refresh", "acme:etl.nightly.sweep"]
    assert {one.function for one in found} == {"acme:etl.nightly"}
    plain = scheduled_methods(app_record((0.0, "ver_1")), {"ver_1": scheduled_version()}.get)
    assert [one.who for one in plain] == ["acme:etl.nightly"]


def test_nothing_of_what_does_not_stay() -> None:
    """An app that is stopped, a run, a version that is gone."""
    versions = {"ver_1": scheduled_version(HOURLY)}
    assert not list(scheduled_methods(app_record((0.0, "ver_1"), (5.0, "")), versions.get))
    assert not list(scheduled_methods(app_record((0.0, "ver_1"), ends_at=9e9), versions.get))
    assert not list(scheduled_methods(app_record((0.0, "ver_2")), versions.get))


def test_the_version_of_an_instant() -> None:
    """From the deploy on, until the next one or the stop."""
    app = app_record((10.0, "ver_1"), (20.0, "ver_2"), (30.0, ""), (40.0, "ver_2"))
    found = [version_at(app, "nightly", at) for at in (9.9, 10.0, 19.9, 20.0, 30.0, 39.9, 40.0, 1e9)]
    assert found == [None, "ver_1", "ver_1", "ver_2", None, None, "ver_2", "ver_2"]
    assert version_at(app, "other", 15.0) is None
    assert version_at(app_record((10.0, "ver_1"), ends_at=9e9), "nightly", 15.0) is None


def test_a_deploy_of_later_than_now_has_been() -> None:
    """The clock was set back since; by less than clocks of hosts may be apart it may be another host's."""
    app = app_record((10.0, "ver_1"), (9_000.0, "ver_2"))
    assert version_at(app, "nightly", 5_000.0, 5_001.0) == "ver_2"
    assert version_at(app, "nightly", 8_990.0, 8_991.0) == "ver_1"
    assert version_at(app, "nightly", 5_000.0, 9_500.0) == "ver_1"
    assert version_at(app, "nightly", 5.0, 6.0) is None
    assert version_at(app_record((9_000.0, "ver_2"), (9_100.0, "")), "nightly", 5.0, 6.0) is None

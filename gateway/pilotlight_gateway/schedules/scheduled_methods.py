"""What runs by itself of a deployed app, and which version of it at an instant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from pilotlight_core.model.schedules.ticks import who_of
from pilotlight_core.model.spec import AppRecord, Schedule, VersionRecord, schedules_of

FindVersion = Callable[[str], VersionRecord | None]

CLOCKS_APART_S = 60.0
"""By so much the clocks of two gateways may differ, without that one of them was set back."""


class ScheduledMethod(msgspec.Struct, frozen=True, kw_only=True):
    """A function or method with its schedule, in the version that is deployed."""

    version: VersionRecord
    schedule: Schedule

    @property
    def who(self) -> str:
        """What its ticks and their jobs are named after: the same in each version."""
        version = self.version
        return who_of(version.tenant, version.app, version.function, self.schedule.method)

    @property
    def function(self) -> str:
        return who_of(self.version.tenant, self.version.app, self.version.function, "")


def scheduled_methods(app: AppRecord, find_version: FindVersion) -> Iterator[ScheduledMethod]:
    """What runs by itself of an app: nothing of one that is stopped, nor of a run (`pilotlight run`)."""
    if app.stopped or app.ends_at:
        return
    for version_id in app.functions.values():
        version = find_version(version_id)
        if version is not None:
            yield from methods_of(version)


def methods_of(version: VersionRecord) -> Iterator[ScheduledMethod]:
    return (ScheduledMethod(version=version, schedule=schedule) for schedule in schedules_of(version.spec))


def version_at(app: AppRecord, function: str, at: float, now: float = math.inf) -> str | None:
    """The id of the version that was deployed at the unix second `at`; None: none was, or the history is too short.

    Args:
        now: a deploy that is later than this was made by a clock that has been set back since: nobody knows when it
            was, and it is taken to have been before `at`. Otherwise nothing would run until the clock is as late again.
    """
    present: dict[str, str] = {}
    for line in app.history:
        if at < line.at <= now + CLOCKS_APART_S:
            break
        if line.traffic:
            present = line.functions
    return None if app.ends_at else present.get(function)

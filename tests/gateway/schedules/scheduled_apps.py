"""Apps with schedules, as the registry has them."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.spec import AppRecord, DeployRecord, MethodSpec, Schedule, VersionRecord
from pilotlight_gateway.schedules.scheduled_methods import ScheduledMethod
from tests.builders.specs import function_spec, method, version_record

HOURLY = Schedule(cron="0 * * * *")


def scheduled_version(
    *schedules: Schedule, tenant: str = "acme", name: str = "ver_1", methods: tuple[MethodSpec, ...] = (), **spec: Any
) -> VersionRecord:
    """A version of `etl.nightly` with schedules, which are hourly unless a test says more."""
    methods = methods or (method(attribute="nightly"),)
    built = function_spec("nightly", *methods, schedules=schedules or (HOURLY,), **spec)
    return version_record(built, id=name, tenant=tenant, app="etl", function="nightly")


def scheduled_method(*schedules: Schedule, **more: Any) -> ScheduledMethod:
    version = scheduled_version(*schedules, **more)
    return ScheduledMethod(version=version, schedule=(schedules or (HOURLY,))[0])


def app_record(*deploys: tuple[float, str], tenant: str = "acme", **more: Any) -> AppRecord:
    """The app `etl`: at each instant the version of `nightly` that was deployed, or "" where it was stopped."""
    history = tuple(
        DeployRecord(revision=number, at=at, by="key", functions={"nightly": version} if version else {})
        for number, (at, version) in enumerate(deploys, 1)
    )
    last = [version for _, version in deploys if version]
    return AppRecord(
        tenant=tenant, app="etl", revision=len(deploys), functions={"nightly": last[-1]} if last else {},
        history=history, stopped=bool(deploys) and not deploys[-1][1], **more,
    )  # fmt: skip

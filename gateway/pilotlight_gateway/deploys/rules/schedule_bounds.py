"""How many schedules a tenant may have, and how often all of them together may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import FunctionSpec, Schedule, schedules_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort

SCHEDULES_AT_MOST = 200
TICKS_PER_S_AT_MOST = 5.0
"""The jobs of all tenants' ticks are stored by one process."""
MINUTE_S = 60.0


def check_schedule_bounds(registry: RegistryPort, tenant: str, app: str, specs: Iterable[FunctionSpec]) -> None:
    """Refuse a deploy of `specs` as `app` with which a tenant would have more schedules than one may.

    Raises:
        BadInput: naming the bound and how much it would be.
    """
    wanted = [schedule for spec in specs for schedule in schedules_of(spec)]
    if not wanted:
        return
    everything = [*wanted, *_elsewhere(registry, tenant, app)]
    if len(everything) > SCHEDULES_AT_MOST:
        raise BadInput(
            f"schedule: {tenant} would have {len(everything)} schedules, and {SCHEDULES_AT_MOST} is the most.",
            field="schedule",
        )
    rate = sum(map(ticks_per_s, everything))
    if rate > TICKS_PER_S_AT_MOST:
        raise BadInput(
            f"schedule: the schedules of {tenant} would run {rate:.1f} times a second together, and "
            f"{TICKS_PER_S_AT_MOST:g} is the most: take longer periods.",
            field="schedule",
        )


def ticks_per_s(schedule: Schedule) -> float:
    """How often it runs at most: a cron expression counts as every minute."""
    return 1.0 / (MINUTE_S if schedule.cron else schedule.period_s)


def _elsewhere(registry: RegistryPort, tenant: str, app: str) -> Iterator[Schedule]:
    """Those of the tenant's other apps, unless they are stopped or runs."""
    for record in registry.iter_apps(tenant):
        if record.app != app and not record.stopped and not record.ends_at:
            for version_id in record.functions.values():
                version = registry.version(version_id)
                yield from () if version is None else schedules_of(version.spec)

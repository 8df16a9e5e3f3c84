"""People's word about the size of a function, without a deploy: what holds now, and changes of it."""

from __future__ import annotations

import math

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, AutoscalerRequest, ScaleBoundInfo, WarmInfo
from pilotlight_core.model.api.call_api import LONGEST_LIFE_S
from pilotlight_core.model.calendar.warm_windows import Warm, hours_of
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.scaling.scale_bounds import BoundReason, bounds_of, windows_of
from pilotlight_core.model.scaling.scale_record import BOUNDS, BoundOverride, ScaleRecord, deployed, overridden
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.versions.spec_checks import check_spec
from pilotlight_gateway.deploys.deploy_limits import check_override
from pilotlight_gateway.tenancy.quotas import check_quota
from pilotlight_gateway.tenancy.registry_port import RegistryPort

RECORD_BYTES = 2_048
"""The most that a record takes, which a test shows."""


async def override_scale(
    registry: RegistryPort, version: VersionRecord, asked: AutoscalerRequest, *, by: str, at: float
) -> ScaleRecord | None:
    """Let people's word of the unix second `at` go before a function's specification; what stands then.

    Args:
        by: the id of the API key.

    Raises:
        BadInput: nothing is asked for, its end is past, or it contradicts itself, the rest or a limit of the tenant.
        QuotaExceeded: the tenant's records take all of their room.
    """
    given = {field: value for field in BOUNDS if (value := getattr(asked, field)) is not UNSET}
    if not given:
        raise BadInput(f"Name what to change: {', '.join(BOUNDS)}.", field="min_containers")
    ends_at = _end_of(asked, at)
    said = {
        field: None if value is None else BoundOverride(value=float(value), at=at, by=by, ends_at=ends_at)
        for field, value in given.items()
    }

    def changed(present: ScaleRecord | None) -> ScaleRecord | None:
        if present is None:
            _check_room(registry, version.tenant)
        before = present or ScaleRecord(tenant=version.tenant, app=version.app, function=version.function)
        after = msgspec.structs.replace(before, **dict.fromkeys(BOUNDS) | before.holding(at) | said)
        # Of windows with more containers than may be there, as many as may are kept warm.
        check_spec(msgspec.structs.replace(overridden(version.spec, after, at), warm=UNSET))
        check_override(registry, version, before, after, at)
        return after if after.holding(at) else None

    return await registry.change_scale(version.tenant, version.app, version.function, changed)


async def reset_scale(registry: RegistryPort, version: VersionRecord) -> None:
    """End all that people said of a function's size."""
    await registry.change_scale(version.tenant, version.app, version.function, lambda _: None)


def autoscaler_info(version: VersionRecord, record: ScaleRecord | None, at: float) -> AutoscalerInfo:
    """What a function is held to at the unix second `at`, as the API shows it."""
    bounds = bounds_of(version.spec, record, at)
    held = (bounds.least, bounds.most, bounds.buffer, bounds.window_s, bounds.zero_window_s, bounds.forecast)
    values = dict(zip(BOUNDS, held, strict=True))
    shown = {field: _bound_info(version, field, value, bounds.because[field]) for field, value in values.items()}
    return AutoscalerInfo(
        function=f"{version.app}.{version.function}",
        version=version.ref,
        at=at,
        warm=tuple(_warm_info(window, at) for window in windows_of(version.spec)),
        changes_at=_finite(bounds.changes_at),
        **shown,
    )


def _end_of(asked: AutoscalerRequest, at: float) -> float:
    """The unix second at which the request's word ends; 0: never."""
    if asked.ends_at is not None and asked.ends_in_s is not None:
        raise BadInput("ends_in_s: ends_at is given too; expected one of both.", field="ends_in_s")
    if asked.ends_in_s is not None:
        return at + asked.ends_in_s
    if asked.ends_at is None:
        return 0.0
    if not at < asked.ends_at <= at + LONGEST_LIFE_S:
        raise BadInput(
            f"ends_at: {asked.ends_at:.0f} is not ahead: expected a unix second after {at:.0f}, within ten years.",
            field="ends_at",
        )
    return asked.ends_at


def _check_room(registry: RegistryPort, tenant: str) -> None:
    """Refuse a first word about a function where the tenant's records take all of their room."""
    allowed, used = registry.limits(tenant, "").tenant.record_bytes, registry.bytes_of(tenant)
    how = "delete an app, or end another function's with 'pilotlight scale --reset'"
    check_quota(tenant, "record_bytes", allowed, used + RECORD_BYTES, "bytes of records", how)


def _bound_info(version: VersionRecord, field: str, value: float | bool, because: BoundReason) -> ScaleBoundInfo:
    said = deployed(version.spec, field)
    return ScaleBoundInfo(value=value, because=because.word, deployed=said, ends_at=_finite(because.ends_at))


def _warm_info(window: Warm, at: float) -> WarmInfo:
    try:
        hours = hours_of(window.when, window.tz)
    except ValueError:  # it was deployed where another list of zones is known
        return WarmInfo(when=window.when, tz=window.tz, containers=window.containers, open=False, changes_at=None)
    return WarmInfo(
        when=window.when,
        tz=window.tz,
        containers=window.containers,
        open=hours.is_open(at),
        changes_at=_finite(hours.changes_at(at)),
    )


def _finite(instant: float) -> float | None:
    return None if math.isinf(instant) else instant
